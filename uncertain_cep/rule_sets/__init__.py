"""Rules: queries with names and notes, asked of the same events together."""
