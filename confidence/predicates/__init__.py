"""Predicate bytecode and the conditions of searches."""
