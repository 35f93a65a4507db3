"""The process that evaluates: its installation, threads, limits of time and memory, progress and compiler."""
