"""Predicates and RETURN expressions: on columns, as bytecode for kernels, as codes of values."""
