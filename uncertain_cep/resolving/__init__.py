"""Things that would decide answers: how much less uncertain these were if a time or a clock were known."""
