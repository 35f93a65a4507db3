"""Evaluation of SEQ by the point-based framework: expand, match the points, collapse by signature.

The points are matched by the join of the event-based framework, for which they are events with
certain times: as the paper has it (section 3, step 2), any engine for exact times will do once it
refuses to use two points of one event in a match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pointbased import collapse_matches, expand
from uncertain_cep.config import MOST_POINTS
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.pmfs import ExplicitPmfs
from uncertain_cep.selection import Selection
from uncertain_cep.sequence import Chunk, evaluate_sequence

__all__ = ["evaluate_points"]

Int64 = NDArray[np.int64]


def evaluate_points(
    plan: EvaluationPlan,
    table: pa.Table,
    selection: Selection,
    pmfs: ExplicitPmfs | None,
    payload: Int64 | None,
    with_confidence: bool,
    batch_rows: int,
) -> Iterator[Chunk]:
    """Yield what :func:`uncertain_cep.sequence.evaluate_sequence` yields, by way of point events.

    Raises
    ------
    OptionError
        If there are more points or matches than ``MOST_POINTS``: both are held in memory.
    """
    lengths = zip(selection.lower, selection.upper, strict=True)
    _check_size(sum(int((high - low + 1).sum()) for low, high in lengths), "point events")
    points = []
    for rows, low, high in zip(selection.rows, selection.lower, selection.upper, strict=True):
        points.append(
            expand(low, high, *((None, None) if pmfs is None else (pmfs.offset[rows], pmfs.values)))
        )
    partition = selection.partition
    expanded = replace(
        selection,
        rows=tuple(rows[part.source] for rows, part in zip(selection.rows, points, strict=True)),
        lower=tuple(part.time for part in points),
        upper=tuple(part.time for part in points),
        partition=None
        if partition is None
        else tuple(numbers[part.source] for numbers, part in zip(partition, points, strict=True)),
        tags=tuple(np.arange(len(part.time)) for part in points),
    )
    held: tuple[Any, ...] | None = None
    for chunk in evaluate_sequence(plan, table, expanded, None, None, False, batch_rows):
        sources = [part.source[tags] for part, tags in zip(points, chunk.events, strict=True)]
        probabilities = [part.probability[tags] for part, tags in zip(points, chunk.events, strict=True)]
        found: tuple[Any, ...] = (np.stack(sources), chunk.lower, chunk.upper, np.prod(probabilities, axis=0))
        if held is not None:
            found = tuple(np.concatenate(pair, axis=-1) for pair in zip(held, found, strict=True))
        held = collapse_matches(*found)
        _check_size(len(held[1]), "matches")
    if held is None:
        return
    signature, lower, upper, confidence = held
    events = np.stack([rows[found] for rows, found in zip(selection.rows, signature, strict=True)])
    if payload is not None:
        events = payload[events]
    for start in range(0, len(lower), batch_rows):
        part = slice(start, start + batch_rows)
        yield Chunk(events[:, part], lower[part], upper[part], confidence[part] if with_confidence else None)


def _check_size(count: int, what: str) -> None:
    if count > MOST_POINTS:
        message = f"{count:,} {what}, and evaluation='point' holds at most {MOST_POINTS:,}"
        raise OptionError(f"{message}: use evaluation='query_order'")
