"""Point-based evaluation: stream expansion into point events, and collapsing of their matches."""

from pointbased.collapse import collapse_matches
from pointbased.expansion import PointEvents, expand

__all__ = ["PointEvents", "collapse_matches", "expand"]
