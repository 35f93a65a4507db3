"""Backtracking searches for matches that are no plain sequence."""
