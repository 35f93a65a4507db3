"""Expected numbers of matches."""
