"""Text-based reading: kernels that cut many lines of text into columns at once."""
