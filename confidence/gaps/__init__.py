"""The probability of a sequence with events forbidden in its gaps."""
