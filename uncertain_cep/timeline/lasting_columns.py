"""The columns of events that last: bounds of their begins, ends and lengths."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

__all__ = ["END_BOUNDS", "SPAN_COLUMNS", "SPAN_LAWS", "has_spans"]

END_BOUNDS: Final = ("end_lower", "end_upper")
SPAN_COLUMNS: Final = ("begin_lower", "begin_upper", *END_BOUNDS, "length_lower", "length_upper")
"""In pairs, of which a span has two at least; an event with none of them is a point."""
SPAN_LAWS: Final = ("begin_pmf", "end_pmf", "length_pmf")
"""The probabilities of each, a list for the ticks of its bounds; null where they are alike."""


def has_spans(columns: Collection[str]) -> bool:
    """Return whether a table with some columns can hold events that last."""
    pairs = zip(SPAN_COLUMNS[::2], SPAN_COLUMNS[1::2], strict=True)
    return sum(lower in columns and upper in columns for lower, upper in pairs) >= 2
