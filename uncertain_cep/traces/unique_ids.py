"""Whether every id is used once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from uncertain_cep.config import FAULT_LIMIT
from uncertain_cep.errors import TraceFault
from uncertain_cep.timedomain import Names
from uncertain_cep.traces.faulty_rows import IntArray, row_faults

__all__ = ["check_ids", "used_again"]


def check_ids(
    table: pa.Table, names: Names, *, partition: Sequence[str] = (), limit: int = FAULT_LIMIT
) -> list[TraceFault]:
    """Return a fault for each id that an earlier row of the same partition has; null ids are passed over.

    Parameters
    ----------
    table : pyarrow.Table
    names : Names
    partition : sequence of str
        Columns that make up the partition; a row with a null in one belongs to none.
    limit : int

    Notes
    -----
    O(n) for increasing int64 ids, else O(n log n).
    """
    column = table.column(names.id)
    if table.num_rows < 2 or _are_unique(column):
        return []
    codes = _codes(column)
    counted = codes >= 0
    for name in partition:
        keys = _codes(table.column(name))
        counted &= keys >= 0
        # Codes stay below the number of rows, so that the product fits into int64.
        codes = np.unique(codes * (int(keys.max(initial=0)) + 1) + keys, return_inverse=True)[1]
    rows = np.flatnonzero(counted)
    order = rows[np.argsort(codes[rows], kind="stable")]
    same = codes[order[1:]] == codes[order[:-1]]
    again = np.zeros(table.num_rows, np.bool_)
    again[order[1:][same]] = True
    if not again.any():
        return []
    return row_faults(again, used_again(partition), column=names.id, values=column, limit=limit)


def used_again(partition: Sequence[str]) -> str:
    """Return what is wrong with an id that an earlier event of the same partition has."""
    within = f" with the same {', '.join(partition)}" if partition else ""
    return f"an earlier event{within} has this id: give each event one of its own"


def _are_unique(column: pa.ChunkedArray) -> bool:
    if column.null_count == 0 and pa.types.is_integer(column.type):
        ids = np.asarray(column.to_numpy())
        if bool((ids[1:] > ids[:-1]).all()):
            return True
        ids = np.sort(ids)
        return bool((ids[1:] != ids[:-1]).all())
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return len(column.unique()) == len(column)


def _codes(column: pa.ChunkedArray) -> IntArray:
    """Return a number for each value, the same for equal ones, from 0; -1 stands for null."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    indices = column.combine_chunks().dictionary_encode()
    if isinstance(indices, pa.ChunkedArray):
        indices = indices.combine_chunks()
    return np.asarray(indices.indices.fill_null(-1).to_numpy()).astype(np.int64)
