"""Gaps between sets, and sets by their ids, for backtracking searches of AND."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.operators.batch import MatchBatch, Series
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.branches import GapPlace, PartialOrder

__all__ = ["sides_of_gap", "sorted_by_id"]


def sides_of_gap(order: PartialOrder, gap: GapPlace, kleene: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the bits of the components on both sides of a gap; 0 and 0 if a partial match cannot tell."""
    if gap.place != "between":
        return 0, 0
    components = range(len(kleene))
    # A set that goes on may begin earlier.
    if any(kleene[j] and order.is_set[j] for j in components if gap.before >> j & 1):
        return 0, 0
    earlier = gap.after
    for j in components:
        if gap.after >> j & 1:
            earlier |= order.before[j]
    # What may be in the gap itself could turn out to be the very event in question.
    later = [j for j in components if gap.before >> j & 1 or order.before[j] & gap.before]
    beside = [j for j in components if not earlier >> j & 1 and j not in later]
    return (0, 0) if beside else (gap.after, gap.before)


def sorted_by_id(
    chunk: MatchBatch, is_set: NDArray[np.bool_], plan: EvaluationPlan, table: pa.Table, by_id: bool
) -> MatchBatch:
    """Return matches with the events of each set, (l,) bool, by ascending id.

    Events are in order as their ids are if ``by_id``; else they are rows.
    """
    if not is_set.any():
        return chunk
    series: list[Series | None] = list(chunk.series)
    single = chunk.events.copy()
    for j, found in enumerate(series):
        if found is None or not is_set[j]:
            continue
        key = found.events
        if not by_id:
            ids = table.column(plan.names.id).take(pa.array(key))
            ids = ids.cast(ids.type.value_type) if pa.types.is_dictionary(ids.type) else ids
            key = np.asarray(pc.rank(ids, tiebreaker="dense").to_numpy()).astype(np.int64)
        match = np.repeat(np.arange(len(chunk.lower)), np.diff(found.start))
        events = found.events[np.lexsort((key, match))]
        series[j] = Series(found.start, events)
        single[j] = events[found.start[:-1]]
    return replace(chunk, events=single, series=tuple(series))
