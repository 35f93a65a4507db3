"""What clocks can have been off by: bounds from events, and from the logs of time services."""
