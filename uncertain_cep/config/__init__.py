"""Numbers of the engine: limits, tolerances, and what decides how fast it is."""
