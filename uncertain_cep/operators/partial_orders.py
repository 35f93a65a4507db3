"""Sets by their ids, for backtracking searches of AND."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.operators.batch import MatchBatch, Series
from uncertain_cep.plan import EvaluationPlan

__all__ = ["sorted_by_id"]


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
