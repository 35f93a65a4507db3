"""The ids of the events that a stream holds, so that one used twice is found across slices.

The value of an id says in which part of the state it is kept; it is kept as long as its event is in a slice.
All ids of a part are compared whenever some of them are dropped. So two events that are held at the same time
are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Protocol
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.config import EVER
from uncertain_cep.errors import TraceError
from uncertain_cep.files.blobs import packed, unpacked
from uncertain_cep.streaming.stream_layout import StreamLayout
from uncertain_cep.traces.checks import check_ids, used_again

__all__ = ["BlobStore", "HeldIds", "id_pieces"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

_UNTIL: Final = "uncertain_cep.until"
_OF: Final = "uncertain_cep.of"


class BlobStore(Protocol):
    """A store of blobs, kept between batches."""

    def read(self, slice: int, part: int) -> bytes:
        """Return a blob."""

    def write(self, slice: int, part: int, blob: bytes) -> None:
        """Keep a blob."""

    def remove(self, slice: int, part: int) -> None:
        """Drop a blob."""


def id_pieces(
    table: pa.Table, until: Int64, used: Mapping[tuple[str, ...], Mask], layout: StreamLayout
) -> list[dict[str, Any]]:
    """Return the ids of some events, as pieces for the parts of the state that keep them.

    Parameters
    ----------
    table : pyarrow.Table
        Of n events.
    until : (n,) int64
        The last slice that each event matters to.
    used : mapping of tuple of str to (n,) bool
        The attributes within which ids are unique, and which events are of components there.

    Returns
    -------
    list of dict
        With the keys ``bucket``, ``rows`` and ``blob``.
    """
    rows = np.flatnonzero(np.logical_or.reduce([*used.values(), np.zeros(table.num_rows, np.bool_)]))
    if not len(rows):
        return []
    names = layout.plan.names
    columns = dict.fromkeys([names.type, names.id, names.lower, names.upper])
    columns |= dict.fromkeys(key for keys in used for key in keys)
    ids = table.column(names.id).take(pa.array(rows))
    if pa.types.is_integer(ids.type):
        parts = np.asarray(pc.cast(ids, pa.int64()).to_numpy()) % layout.buckets
    else:
        parts = np.array([crc32(id.encode()) for id in ids.to_pylist()]) % layout.buckets
    order = np.argsort(parts, kind="stable")
    rows, parts = rows[order], parts[order]
    events = table.select([*columns]).take(pa.array(rows)).append_column(_UNTIL, pa.array(until[rows]))
    for number, of in enumerate(used.values()):
        events = events.append_column(f"{_OF}{number}", pa.array(of[rows]))
    bounds = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(rows)]
    return [
        {"bucket": int(parts[start]), "rows": stop - start, "blob": packed(events.slice(start, stop - start))}
        for start, stop in pairwise(bounds)
    ]


@dataclass(slots=True)
class HeldIds:
    """The ids that a part of the state keeps: how many blobs and bytes, and when the first one ends.

    The blobs stand in the store with negative numbers, beside those of slice 0.
    """

    parts: int = 0
    bytes: int = 0
    least: int = EVER

    def learn(self, layout: StreamLayout, store: BlobStore, new: Sequence[pa.Table], bound: int) -> None:
        """Keep the ids of new events, and drop those whose events are in no slice any more.

        Raises
        ------
        TraceError
            With the ids that are used twice.
        """
        last = layout.last_over(bound)
        tables = [_kept_columns(table, layout) for table in new if table.num_rows]
        self.least = min([self.least, *(pc.min(table.column(_UNTIL)).as_py() for table in tables)])
        if self.least <= last:
            places = range(-self.parts, 0)
            tables = [unpacked(store.read(0, place))[0] for place in places] + tables
            every = pa.concat_tables(tables)
            _check(every, layout)
            for place in places:
                store.remove(0, place)
            remaining = every.filter(pc.greater(every.column(_UNTIL), last))
            self.parts = self.bytes = 0
            self.least = EVER if not remaining.num_rows else pc.min(remaining.column(_UNTIL)).as_py()
            tables = [remaining] if remaining.num_rows else []
        if tables:
            blob = packed(pa.concat_tables(tables), layout.mark)
            self.parts += 1
            self.bytes += len(blob)
            store.write(0, -self.parts, blob)


def _kept_columns(table: pa.Table, layout: StreamLayout) -> pa.Table:
    """Return the columns that are needed once it is known which events are late."""
    names = layout.plan.names
    keys = [key for keys in layout.id_keys for key in keys]
    bounds = () if layout.drops else (names.lower, names.upper)
    return table.drop_columns([name for name in (names.type, *bounds) if name not in keys])


def _check(every: pa.Table, layout: StreamLayout) -> None:
    names = layout.plan.names
    for number, keys in enumerate(layout.id_keys):
        events = every.filter(every.column(f"{_OF}{number}"))
        faults = check_ids(events, names, partition=keys)
        if faults and layout.drops:
            # Rows of the same time are in the same slices, where whole rows are compared.
            columns = dict.fromkeys([names.id, names.lower, names.upper, *keys])
            faults = check_ids(events.group_by([*columns]).aggregate([]), names, partition=keys)
        if faults:
            raise TraceError([replace(fault, row=None, message=used_again(keys)) for fault in faults])
