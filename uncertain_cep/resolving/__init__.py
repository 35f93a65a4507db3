"""Things that would decide answers: how much the uncertainty of answers would fall if a time or a clock were known."""
