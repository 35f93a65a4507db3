"""Properties of the engine, against the oracle and against itself, on random cases."""
