"""Times between two ends of a match that RETURN asks for: ``DURATION(a, b) AS took``.

They depend on the world, so a row has three columns of each: the shortest, the longest and the mean one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from uncertain_cep.query.parser import query_of
from uncertain_cep.query.span_relations import length_ends
from uncertain_cep.query.syntax import Query, ReturnItem

__all__ = ["TIME_COLUMNS", "ends_of_item", "query_without_times", "without_times"]

TIME_COLUMNS: Final = ("lower", "upper", "mean")
"""What stands behind the name of an item and ``_``."""


def ends_of_item(item: ReturnItem) -> tuple[str, str]:
    """Return the first and the last time of an item, such as ``a`` and ``b.end``."""
    ends = length_ends(item.expression)
    assert ends is not None
    first, last = (
        time.variable if time.part is None else f"{time.variable}.{time.part}" for time in reversed(ends)
    )
    return first, last


def without_times(query: Query | str, parameters: Any) -> tuple[Query | str, tuple[ReturnItem, ...]]:
    """Return a query without the times between ends that it returns, and these; as text if it has none."""
    if isinstance(query, str):
        returned = query.lower().partition("return")[2]
        if "duration" not in returned and "time" not in returned:
            return query, ()
    parsed = query_of(query, parameters)
    items = tuple(item for item in parsed.returns if length_ends(item.expression) is not None)
    return (query_without_times(parsed), items) if items else (query, ())


def query_without_times(query: Query | str, parameters: Any = ()) -> Query:
    """Return a query, see `query_of`, for those who read no times of its matches."""
    parsed = query_of(query, parameters)
    kept = tuple(item for item in parsed.returns if length_ends(item.expression) is None)
    return replace(parsed, returns=kept)
