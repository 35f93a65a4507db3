"""What formats of distributed traces have in common: a span has a start, an end and events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

__all__ = ["ATTRIBUTES", "span_events"]

ATTRIBUTES: Final = pa.schema(
    [
        ("trace_id", pa.string()),
        ("span_id", pa.string()),
        ("parent_id", pa.string()),
        ("service", pa.string()),
        ("name", pa.string()),
        ("kind", pa.string()),
        ("event", pa.string()),
    ]
)


def span_events(
    attributes: tuple[str | None, ...],
    start: int | None,
    end: int | None,
    within: Iterable[tuple[int, str | None]],
    others: dict[str, Any],
    *,
    part: str = "",
) -> Iterator[tuple[Any, ...]]:
    """Yield the start of a span, what happened within it, and its end.

    ``attributes`` are those before ``event``; ``part`` tells spans of one id apart.
    """
    name = f"{attributes[0]}:{attributes[1]}{part}"
    if start is not None:
        yield "SpanStart", f"{name}:start", start, start, *attributes, None, others
    for number, (time, event) in enumerate(within):
        yield "SpanEvent", f"{name}:event:{number}", time, time, *attributes, event, others
    if end is not None:
        yield "SpanEnd", f"{name}:end", end, end, *attributes, None, others
