"""The incremental methods: pools of runs that events extend as they arrive."""
