"""The probability of a sequence of events within a window."""
