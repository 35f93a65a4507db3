"""Times as the engine counts them: int64 ticks, and lengths of time in nanoseconds."""
