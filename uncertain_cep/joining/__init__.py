"""Joins of two tables of events by their times: exact probabilities that two rows belong together."""
