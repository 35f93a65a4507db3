"""Kernels that cut many lines of text into columns at once."""
