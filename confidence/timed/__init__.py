"""Confidences of matches whose times are bound by more than order and window."""
