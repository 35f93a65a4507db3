"""Matching of events as they arrive: the matcher, micro-batches, state, and changes of the plan."""
