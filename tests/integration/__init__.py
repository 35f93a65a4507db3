"""The real traces, from their files to matches, against counts derived from the raw files."""
