"""The probability of partially ordered events."""
