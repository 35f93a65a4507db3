"""Offsets of clocks: their bounds from events, and from the logs of time services."""
