"""Did it happen? The probability that a group of matches has at least one, or several: RETURN PROBABILITY."""
