"""Counts of candidates in Spark's Python workers; nothing here imports pyspark.

Spark's own aggregates take as long as reading the rows: they update some twenty numbers for each row, and
none tells whether an id occurs again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.config.limits import MOST_BITS

__all__ = ["COUNTED", "GROUPS", "GROUP_BITS", "counted_candidates"]

GROUP_BITS: Final = 3
GROUPS: Final = 1 << GROUP_BITS
"""The number of groups into which hashes divide keys; the least hash of each group is kept."""

COUNTED: Final = pa.schema(
    [
        ("faulty", pa.int64()),
        ("first", pa.int64()),
        ("later", pa.int64()),
        ("candidates", pa.int64()),
        ("earliest", pa.int64()),
        ("latest", pa.int64()),
        ("longest", pa.int64()),
        ("length", pa.float64()),
        ("least", pa.list_(pa.float64())),
        ("components", pa.list_(pa.int64())),
        ("ids", pa.list_(pa.int64())),
    ]
)
"""Counts of rows; extremes of the times of first events, null without any; the summed length of later events;
the least hash of each group of keys, null without any; the candidates of each component; and the least and
largest id, empty without ids, null if two are the same."""


def counted_candidates(batches: Iterable[pa.RecordBatch], *, kinds: int) -> Iterator[pa.RecordBatch]:
    """Yield the counts of each batch, a row of `COUNTED`.

    The first columns are numbers whose bits, `MOST_BITS` of each, are the ``kinds`` of a row: whether it is
    at fault, and whether it can be a first event, a later one, and one of each component. Then come its
    ``lower``, its length, the hash of its keys, and its id, null if that is no whole number.
    """
    for batch in batches:
        *packed, lower, length, key, id = batch.columns
        numbers = [np.asarray(number) for number in packed]
        faulty, first, later, *components = (
            numbers[kind // MOST_BITS] & np.int64(1 << kind % MOST_BITS) != 0 for kind in range(kinds)
        )
        times, lengths, keys = (np.asarray(pc.fill_null(part, 0)) for part in (lower, length, key))
        taken = np.logical_or.reduce(components)
        begins = times[first]
        counts = {
            "faulty": int(faulty.sum()),
            "first": int(first.sum()),
            "later": int(later.sum()),
            "candidates": int((first | later).sum()),
            "earliest": int(begins.min()) if len(begins) else None,
            "latest": int(begins.max()) if len(begins) else None,
            "longest": int(lengths[first].max()) if len(begins) else None,
            "length": float(lengths[later].sum(dtype=np.float64)),
            "least": _least_hashes(keys[first | later]),
            "components": [int(rows.sum()) for rows in components],
            "ids": None if id.null_count else _range(np.asarray(id)[taken]),
        }
        yield pa.RecordBatch.from_pylist([counts], COUNTED)


def _least_hashes(keys: NDArray[np.int64]) -> list[float | None]:
    """Return the least hash of each group of keys, None without any."""
    hashes = keys.view(np.uint64)
    groups = (hashes & np.uint64(GROUPS - 1)).astype(np.int64)
    least_hashes = np.full(GROUPS, np.uint64(2**64 - 1))
    np.minimum.at(least_hashes, groups, hashes >> np.uint64(GROUP_BITS))
    there = np.bincount(groups, minlength=GROUPS) > 0
    return [float(value) if has_hash else None for value, has_hash in zip(least_hashes, there, strict=True)]


def _range(ids: NDArray[np.int64]) -> list[int] | None:
    """Return the least and the largest of ids, an empty list without any; None if two are the same."""
    if not (ids[1:] > ids[:-1]).all():
        ids = np.sort(ids)
        if (ids[1:] == ids[:-1]).any():
            return None
    return [int(ids[0]), int(ids[-1])] if len(ids) else []
