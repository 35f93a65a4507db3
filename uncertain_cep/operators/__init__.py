"""The ways of finding matches."""
