"""The rows that a part of a stream's state has released: they come again when their slice is final."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from uncertain_cep.files.blobs import packed, unpacked
from uncertain_cep.streaming.early_rows import EarlyRows
from uncertain_cep.streaming.held_ids import BlobStore
from uncertain_cep.streaming.slice_matches import HeldSlice, events_of, waiting_owners
from uncertain_cep.streaming.stream_layout import StreamLayout

__all__ = ["ReleasedRows"]

_SLICE = -(2**61)
"""The slice under which the state keeps these rows; others are far behind it."""


class ReleasedRows:
    """The rows of a part of the state that were told before they were final, each once.

    Parameters
    ----------
    layout : StreamLayout
    store : BlobStore
        Of the part.
    count : int
        How many rows it keeps.

    Attributes
    ----------
    undecided : int
        Matches that were undecided when rows were released.
    """

    def __init__(self, layout: StreamLayout, store: BlobStore, count: int) -> None:
        self._layout, self._store, self._count = layout, store, count
        plan = layout.plan
        self._is_possible = not (plan.is_grouped or plan.counts or plan.approximate is not None)
        self._early = EarlyRows(plan, layout.query, layout.schema, layout.matching, None)
        self._rows = [unpacked(store.read(_SLICE, 0))[0]] if count else []
        for rows in self._rows:
            self._early.remember(rows)
        self.undecided = 0

    def untold(self, matches: Iterable[pa.Table | pa.RecordBatch]) -> Iterator[pa.Table | pa.RecordBatch]:
        """Yield matches that are final, but for those that were told."""
        return self._early.untold(matches)

    def release(self, slices: Mapping[int, HeldSlice], bound: int) -> Iterator[pa.RecordBatch]:
        """Yield the matches of slices that are decided, as no event to come begins before a tick."""
        for number, held in slices.items() if self._is_possible else ():
            table = events_of(self._layout, self._store, number, held)
            owned = waiting_owners(self._layout, number, held, table)
            if owned.any():
                for batch in self._early.certain(table, bound, owned=owned):
                    self._rows.append(pa.Table.from_batches([batch]))
                    yield batch
                self.undecided += self._early.undecided_count

    def keep(self) -> int:
        """Keep the rows that are to come again, and return how many these are."""
        rows = None if not self._rows else self._early.remembered(pa.concat_tables(self._rows))
        count = 0 if rows is None else rows.num_rows
        if count != self._count or len(self._rows) > 1:
            if self._count:
                self._store.remove(_SLICE, 0)
            if rows is not None and count:
                self._store.write(_SLICE, 0, packed(rows, self._layout.mark))
        return count
