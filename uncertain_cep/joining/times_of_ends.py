"""Events that last as moments: when one end of each is, whatever its other end.

A join as of a time reads one end of each event, and nothing ties ends of different events but their clocks.
So an event is a moment with the law of that end: the sum over its other end. With weights w of lengths,

    P(end = e)  ~  p_end(e)  sum_b p_begin(b) w(e - b)

and a begin is the mirror image of an end. Where lengths weigh alike, the sum has as many terms of one weight
as there are begins at ``e - longest .. e - shortest``: a concave function of e. So it is constant, and the
end uniform, if its values at both ends and between are equal.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from uncertain_cep.candidates.span_times import SpanTimes, with_ends
from uncertain_cep.config.limits import MOST_CONFIDENCE_STEPS
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.executor.checked_events import CheckedEvents
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS

__all__ = ["ENDS", "as_moments"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
Law = Float64 | None
"""Probabilities of ticks, or weights of lengths; None: all are alike."""

ENDS: Final = ("begin", "end")


def as_moments(events: CheckedEvents, table: pa.Table, at_end: Mask) -> pa.Table:
    """Return a table of events in which those that last are moments.

    Parameters
    ----------
    events : CheckedEvents
    table : pyarrow.Table
        As it was before it was checked, with the names of the model.
    at_end : (n,) bool
        Whether each is at its end, not at its begin.

    Raises
    ------
    ConfidenceCostError
        If the ends that are not uniform have too many ticks.
    """
    plan, count = events.plan, len(at_end)
    _, both, spans = with_ends(plan, events.table)
    bounds = [plan.domain.ticks(both.column(name)) for name in (plan.names.lower, plan.names.upper)]
    row = np.arange(count) + count * (at_end & spans.lasts)
    lower, upper = (bound[row] for bound in bounds)
    laws = both.column("pmf").to_pylist() if "pmf" in both.column_names else [None] * len(both)
    pmfs = [laws[place] for place in row.tolist()]
    rows = np.flatnonzero(spans.lasts & ~_are_uniform(spans, at_end, laws))
    ends = spans.own_end.upper - spans.own_end.lower
    ticks = int((np.where(at_end, ends, spans.own_begin.upper - spans.own_begin.lower) + 1)[rows].sum())
    if ticks > MOST_CONFIDENCE_STEPS:
        raise ConfidenceCostError(
            f"the ends of the events that last have {ticks:,} ticks: choose a longer tick", ticks,
            MOST_CONFIDENCE_STEPS,
        )  # fmt: skip
    checkpoint(64 * ticks)
    for n in rows.tolist():
        pmfs[n] = _law_of_end(spans, n, (laws[n], laws[n + count]), at_end=bool(at_end[n]))
    columns = {name: table.column(name) for name in table.column_names}
    for name in (*SPAN_COLUMNS, *SPAN_LAWS):
        columns.pop(name, None)
    columns |= {"lower": plan.domain.times(lower), "upper": plan.domain.times(upper)}
    if any(pmf is not None for pmf in pmfs):
        columns["pmf"] = pa.array(pmfs, pa.large_list(pa.float64()))
    return pa.table(columns)


def _are_uniform(spans: SpanTimes, at_end: Mask, laws: list[list[float] | None]) -> Mask:
    """Return whether as many pairs are possible at each tick of an end, (n,) bool."""
    count, begin, end, length = len(at_end), spans.own_begin, spans.own_end, spans.length
    # A begin is the end of the mirror image.
    low = np.where(at_end, end.lower, -begin.upper)
    high = np.where(at_end, end.upper, -begin.lower)
    first = np.where(at_end, begin.lower, -end.upper)
    last = np.where(at_end, begin.upper, -end.lower)

    def ways(tick: Int64) -> Int64:
        tick = np.clip(tick, low, high)
        count: Int64 = np.minimum(last, tick - length.lower) - np.maximum(first, tick - length.upper)
        return count

    points = [ways(tick) for tick in (low, last + length.lower, first + length.upper, high)]
    uniform = np.asarray(np.equal(points, points[0]).all(axis=0), np.bool_)
    has_law = np.array([law is not None for law in laws])
    uniform &= ~(has_law[:count] | has_law[count:])
    if spans.length_laws is not None:
        uniform &= spans.length_laws.start < 0
    return uniform


def _law_of_end(spans: SpanTimes, n: int, laws: tuple[Law, Law], *, at_end: bool) -> Float64:
    """Return the probabilities of the ticks of an end of an event, by its clock."""
    checkpoint()
    begin, end, length = (
        (int(bounds.lower[n]), int(bounds.upper[n]))
        for bounds in (spans.own_begin, spans.own_end, spans.length)
    )
    of_begin, of_end = (
        np.ones(high - low + 1) if law is None else np.asarray(law, np.float64)
        for law, (low, high) in zip(laws, (begin, end), strict=True)
    )
    if not at_end:
        begin, end = (-end[1], -end[0]), (-begin[1], -begin[0])
        of_begin, of_end = of_end[::-1], of_begin[::-1]
    longest = min(length[1], end[1] - begin[0])
    weights = None if spans.length_laws is None else spans.length_laws.of(n, longest - length[0] + 1)
    # Places of begins from the first one on, for each end and the shortest length.
    latest = np.arange(end[0], end[1] + 1) - length[0] - begin[0]
    if weights is None:
        below = np.concatenate(([0.0], np.cumsum(of_begin)))
        first, behind = (
            np.clip(place, 0, len(of_begin)) for place in (latest - (longest - length[0]), latest + 1)
        )
        law = of_end * (below[behind] - below[first])
    else:
        law = np.zeros(len(of_end))
        for more in np.flatnonzero(weights).tolist():
            checkpoint()
            place = latest - more
            inside = (place >= 0) & (place < len(of_begin))
            law[inside] += weights[more] * of_end[inside] * of_begin[place[inside]]
    law = np.asarray(law / law.sum(), np.float64)
    return law if at_end else law[::-1]
