"""In which order the events of a pattern are joined, and why: statistics, costs, planners."""
