"""Alerts of rules that run all day: where they go, and how the run feels."""
