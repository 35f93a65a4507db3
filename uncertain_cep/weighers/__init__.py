"""Confidences of chosen events: one model of a match, and what weighs it, chosen by price."""
