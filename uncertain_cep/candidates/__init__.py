"""What may take part in a match: events of each component, their layout, pmfs, and what is forbidden."""
