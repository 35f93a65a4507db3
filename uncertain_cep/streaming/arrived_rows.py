"""The rows of a stream that may come again, so that copies of them are dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.streaming.recent_events import RecentEvents

__all__ = ["ArrivedRows"]

Int64 = NDArray[np.int64]


class ArrivedRows:
    """The events on time, as long as a copy of them would be on time.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the events; a copy has the same values in all columns.
    id : str
        The column of ids: only events of one id are compared.
    """

    def __init__(self, schema: pa.Schema, id: str) -> None:
        self._names, self._id = schema.names, id
        self._events = RecentEvents(schema, 0)
        # Of whole numbers; None before the first.
        self._largest_id: int | None = None

    def take(self, table: pa.Table, lower: Int64, upper: Int64, rows: Int64) -> Int64:
        """Take some rows of a table; return those that are copies of earlier ones.

        ``lower`` and ``upper``, (n,) int64, are the intervals of the table's events. Only those of ids that
        occur twice are looked at one by one. O(rows + events held).
        """
        new = table.select(self._names).take(pa.array(rows))
        before = self._events.events()[0]
        ids = pa.chunked_array([*before.column(self._id).chunks, *new.column(self._id).chunks])
        used = pc.value_counts(ids.combine_chunks())
        again = used.field("values").filter(pc.greater(used.field("counts"), 1))
        copies: list[int] = []
        if len(again):
            held = before.filter(pc.is_in(before.column(self._id), again))
            seen = set(map(repr, held.to_pylist()))
            places = np.flatnonzero(np.asarray(pc.is_in(new.column(self._id), again)))
            for place, row in zip(places.tolist(), new.take(pa.array(places)).to_pylist(), strict=True):
                text = repr(row)
                if text in seen:
                    copies.append(place)
                seen.add(text)
        kept = np.delete(np.arange(len(rows)), copies)
        self._events.take(new.take(pa.array(kept)), lower[rows[kept]], upper[rows[kept]])
        if pa.types.is_integer(new.schema.field(self._id).type) and len(rows):
            self._learn(pc.max(new.column(self._id)).as_py())
        return rows[copies]

    def has_none_of(self, events: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether events have ids, whole numbers, that are larger than all before."""
        return self._largest_id is None or min(event[self._id] for event in events) > self._largest_id

    def take_few(self, events: Sequence[Mapping[str, Any]], intervals: Sequence[tuple[int, int]]) -> None:
        """Take events of which :meth:`has_none_of` was true."""
        self._events.take_few(events, intervals)
        self._learn(max(event[self._id] for event in events))

    def _learn(self, id: int) -> None:
        self._largest_id = id if self._largest_id is None else max(id, self._largest_id)

    def forget(self, before: int) -> None:
        """Drop events all of whose copies would be late, as no event begins before a tick any more."""
        self._events.forget(before)
