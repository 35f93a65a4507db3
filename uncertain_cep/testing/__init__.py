"""For those who test pipelines: what a right answer is, by enumeration of possible worlds."""
