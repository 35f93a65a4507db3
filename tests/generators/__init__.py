"""The trace generators keep what they promise."""
