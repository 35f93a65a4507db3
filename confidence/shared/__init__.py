"""Exact confidences of events that share clocks: their times move together."""
