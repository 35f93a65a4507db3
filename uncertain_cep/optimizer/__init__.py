"""In which order the events of a pattern are put together, and why: statistics, costs, planners."""
