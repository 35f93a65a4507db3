"""The events of Kleene components in matches, and what a query returns of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.flat_lists import starts_of
from eventbased.search.state import FoundMatches
from uncertain_cep.expressions.codes import codes_of_values
from uncertain_cep.expressions.vectorised import Values, attribute_values
from uncertain_cep.operators.batch import MatchBatch, Series
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.typed import Aggregated, Column

__all__ = ["aggregated", "by_component", "event_by_event", "event_rows"]

Int64 = NDArray[np.int64]


def event_rows(column: Column, table: pa.Table, first: Int64, series: Series | None) -> Int64:
    """Return for each match the row of the event that an attribute, or a MIN or MAX of one, is taken from.

    It is -1 where there is no such event.

    ``first``, (k,) int64, are the rows of the first, or only, events of the variable; ``series`` are all of a
    Kleene variable.
    """
    if series is None or column.index == "first":
        return first
    if not isinstance(column, Aggregated):
        if not isinstance(column.index, int):
            return series.events[series.start[1:] - 1]
        places = series.start[:-1] + column.index - 1
        there = places < series.start[1:]
        return np.where(there, series.events[np.where(there, places, 0)], -1)
    found = attribute_values(table, column, series.events)
    key = found.data
    if isinstance(key, pa.Array):
        key = np.asarray(pc.rank(key, tiebreaker="dense").to_numpy()).astype(np.int64)
    present = np.ones(len(key), dtype=np.bool_) if found.valid is None else found.valid
    match = np.repeat(np.arange(len(first)), np.diff(series.start))
    if column.function in ("max", "any"):
        return series.events[np.lexsort((key, present, match))[series.start[1:] - 1]]
    return series.events[np.lexsort((key, ~present, match))[series.start[:-1]]]


def aggregated(column: Aggregated, table: pa.Table, series: Series) -> Values:
    """Return an aggregate over the events of a Kleene component, for each match.

    Sums of whole numbers are Python's (dtype object) if one does not fit in int64: int where they fit, else
    float.
    """
    begin = series.start[:-1]
    if not column.name:
        return Values(np.diff(series.start), None)
    if column.function in ("min", "max", "any", "every"):
        return attribute_values(table, column, event_rows(column, table, series.events[begin], series))
    found = attribute_values(table, column, series.events)
    present = np.ones(len(series.events), dtype=np.int64)
    if found.valid is not None:
        present = found.valid.astype(np.int64)
    count = np.add.reduceat(present, begin) if len(begin) else begin
    if column.function == "count":
        return Values(count, None)
    if column.function == "percentile":
        return _percentiles(found, present, count, series, column.fraction or 0.0)
    match = np.repeat(np.arange(len(begin)), np.diff(series.start))
    if column.function == "distinct":
        codes = codes_of_values([found])[0][0]
        pairs = np.unique(np.stack((match, codes))[:, codes >= 0], axis=1)
        return Values(np.bincount(pairs[0], minlength=len(begin)), None)
    data = found.data if found.valid is None else np.where(found.valid, found.data, 0)
    real = np.add.reduceat(data.astype(np.float64), begin) if len(begin) else np.zeros(0)
    if column.function == "avg":
        return Values(real / np.maximum(count, 1), count > 0)
    if column.function == "stddev":
        apart = np.where(present > 0, data - (real / np.maximum(count, 1))[match], 0.0)
        squares = np.add.reduceat(apart * apart, begin) if len(begin) else np.zeros(0)
        return Values(np.sqrt(squares / np.maximum(count - 1, 1)), count > 1)
    if column.kind == "float":
        return Values(real, count > 0)
    return Values(_whole_sums(np.add.reduceat(data, begin), real) if len(begin) else begin, count > 0)


def _percentiles(found: Values, present: Int64, count: Int64, series: Series, fraction: float) -> Values:
    """Return a percentile of the values of each match, between the two next to it in proportion."""
    match = np.repeat(np.arange(len(count)), np.diff(series.start))
    values = np.asarray(found.data, dtype=np.float64)
    ascending = values[np.lexsort((values, 1 - present, match))]
    share = np.maximum(count - 1, 0) * round(fraction * 10**9)
    low = series.start[:-1] + share // 10**9
    behind = np.minimum(low + 1, series.start[:-1] + np.maximum(count - 1, 0))
    part = (share % 10**9) / 10**9
    return Values(ascending[low] + (ascending[behind] - ascending[low]) * part, count > 0)


def _whole_sums(wrapped: Int64, real: NDArray[np.float64]) -> NDArray[Any]:
    """Return sums by what they are in int64, which wraps around, and in float64, which tells how often.

    They are int64, or Python's numbers (dtype object): int, and float beyond 64 bits. The float64 is off by
    less than 2^63.
    """
    turns = np.rint((real - wrapped) / 2.0**64).astype(np.int64)
    if not turns.any():
        return wrapped
    pairs = zip(wrapped.tolist(), turns.tolist(), strict=True)
    return np.array([float(low + turn * 2**64) if turn else low for low, turn in pairs], dtype=object)


def event_by_event(chosen: Int64) -> FoundMatches:
    """Return matches of single events, (l, m) int64 by component, event by event."""
    length, found = chosen.shape
    start = np.arange(0, length * found + 1, length)
    return FoundMatches(start, chosen.T.ravel(), np.tile(np.arange(length), found))


def by_component(
    plan: EvaluationPlan,
    start: Int64,
    component: Int64,
    events: Int64,
    lower: Int64,
    upper: Int64,
    confidence: NDArray[np.float64] | None,
) -> MatchBatch:
    """Return k matches as a chunk.

    The events of match n are at ``start[n] .. start[n + 1] - 1``: their components, ascending, and what to
    return for them.
    """
    found = len(lower)
    match = np.repeat(np.arange(found), np.diff(start))
    single = np.empty((len(plan.components), found), dtype=np.int64)
    series: list[Series | None] = []
    for j, planned in enumerate(plan.components):
        own = component == j
        if not planned.kleene:
            single[j] = events[own]
            series.append(None)
            continue
        starts = starts_of(np.bincount(match[own], minlength=found))
        series.append(Series(starts, events[own]))
        single[j] = events[own][starts[:-1]]
    kleene = any(planned.kleene for planned in plan.components)
    return MatchBatch(single, lower, upper, confidence, None, tuple(series) if kleene else ())
