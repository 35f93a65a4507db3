"""The possible parts of matches: events of each component, their layout, pmfs, and forbidden events."""
