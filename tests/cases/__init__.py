"""Drawn queries and traces, what compares answers, and plain twins of what is fast."""
