"""Joins of candidates: in pattern order from a pivot, and along trees."""
