"""Probabilities of the begins, ends and lengths of events that last.

A pair of begin and end weighs the product of the probabilities that are given: ``begin_pmf`` of its begin,
``end_pmf`` of its end, ``length_pmf`` of its length; of an event with a clock they are of its times by this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.budget import checkpoint
from uncertain_cep.config.tolerances import PMF_TOLERANCE

__all__ = ["FlatLaws", "as_lists", "begins_of_pairs", "laws_of"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
Note = Callable[[Mask, str, str | None], None]


class FlatLaws(NamedTuple):
    """Explicit probabilities of n times or lengths.

    Attributes
    ----------
    start : (n,) int64
        Where those of each begin; -1: alike.
    values : (m,) float64
    """

    start: Int64
    values: Float64

    def moved(self, by: Int64) -> FlatLaws:
        """Return the laws from later ticks on, (n,) int64 ticks behind the first ones."""
        return self._replace(start=np.where(self.start >= 0, self.start + by, -1))

    def of(self, row: int, size: int) -> Float64 | None:
        """Return the probabilities of a row's ticks, (size,); None: alike."""
        start = int(self.start[row])
        return None if start < 0 else self.values[start : start + size]


def laws_of(table: pa.Table, name: str, has_bounds: Mask, size: Int64, note: Note) -> FlatLaws | None:
    """Return the laws in a column of lists; None if it is not there, or empty.

    Parameters
    ----------
    has_bounds : (n,) bool
        Which events have the bounds that the column is about.
    size : (n,) int64
        How many ticks these leave.
    note : callable
        Takes the rows with a fault, and what it is.
    """
    if name not in table.column_names or table.column(name).null_count == table.num_rows:
        return None
    checkpoint(3 * table.column(name).nbytes)
    column = table.column(name)
    nothing = np.zeros(table.num_rows, np.bool_)
    try:
        lists = column.cast(pa.large_list(pa.float64())).combine_chunks()
    except pa.ArrowNotImplementedError:
        note(~nothing[:1], f"its type is {column.type}: a pmf is a list of numbers, one for each tick", name)
        return None
    has_law = np.asarray(lists.is_valid().to_numpy(zero_copy_only=False))
    values = np.array(lists.flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
    start = np.cumsum(lengths) - lengths
    note(has_law & ~has_bounds, f"{name} goes with its bounds: give both", name)
    wrong = has_law & has_bounds & (lengths != size)
    note(wrong, "the pmf has not as many probabilities as its bounds have ticks", name)
    unusable, total = nothing.copy(), np.ones(table.num_rows)
    full = np.flatnonzero(has_law & (lengths > 0))
    if len(full):
        usable = np.minimum.reduceat(np.where(np.isnan(values), -1.0, values), start[full]) >= 0.0
        unusable[full] = ~usable
        total[full] = np.add.reduceat(values, start[full])
    note(unusable, "a probability must be a number of at least 0: correct the pmf", name)
    note(~unusable & (np.abs(total - 1.0) > PMF_TOLERANCE), "the pmf does not sum to 1: scale it", name)
    return FlatLaws(np.where(has_law, start, -1), values)


def begins_of_pairs(
    begin: Float64 | None, end: Float64 | None, length: Float64, sizes: tuple[int, int], shortest: int
) -> Float64:
    """Return the part of all pairs that is possible and has each begin, (w,), by their probabilities.

    Parameters
    ----------
    begin, end : (w,) and (h,) float64, or None
        Probabilities of the ticks, which are scaled to sum to 1; None: alike.
    length : (d,) float64
        Weights of the lengths, from the least on.
    sizes : (w, h)
    shortest : int
        The least length, less that from the first begin to the first end.

    Notes
    -----
    O(w + h) where all lengths weigh alike, else O(w d).
    """
    p_begin, p_end = (
        np.full(size, 1.0 / size) if law is None else law / max(float(law.sum()), 1e-300)
        for law, size in zip((begin, end), sizes, strict=True)
    )
    checkpoint(16 * (sizes[0] + sizes[1]))
    below = np.concatenate(([0.0], np.cumsum(p_end)))
    first = np.arange(sizes[0]) + shortest
    if (length == length[0]).all():
        low, high = (np.clip(bound, 0, sizes[1]) for bound in (first, first + len(length)))
        return np.asarray(length[0] * p_begin * (below[high] - below[low]))
    total = np.zeros(sizes[0])
    for place in np.flatnonzero(length).tolist():
        checkpoint()
        at = first + place
        inside = (at >= 0) & (at < sizes[1])
        total[inside] += length[place] * (p_begin[inside] * p_end[at[inside]])
    return total


def as_lists(laws: FlatLaws, size: Int64, otherwise: pa.ChunkedArray | None) -> pa.Array:
    """Return laws of so many ticks as lists; where they are alike, what stands in another column, or null."""
    has_law = laws.start >= 0
    lengths = np.where(has_law, size, 0)
    begins = np.cumsum(lengths) - lengths
    places = np.repeat(laws.start - begins, lengths) + np.arange(int(lengths.sum()))
    offsets = pa.array(np.append(begins, lengths.sum()))
    lists = pa.LargeListArray.from_arrays(offsets, pa.array(laws.values[places]))
    count = len(size)
    lists_of_points = pa.nulls(count, pa.large_list(pa.float64()))
    if otherwise is not None:
        lists_of_points = otherwise.cast(pa.large_list(pa.float64())).combine_chunks()
    both = pa.concat_arrays([lists, lists_of_points])
    return both.take(pa.array(np.where(has_law, np.arange(count), count + np.arange(count))))
