"""Events as they arrive: the matcher, micro-batches, what is kept, and when the plan changes."""
