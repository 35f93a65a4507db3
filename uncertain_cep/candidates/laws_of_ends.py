"""The law of one end of an event that lasts, whatever its other end.

It is the sum over the other end. With weights w of lengths,

    P(end = e)  ~  p_end(e)  sum_b p_begin(b) w(e - b)

and a begin is the mirror image of an end. Where lengths weigh alike, the sum has as many terms of one weight
as there are begins at ``e - longest .. e - shortest``: a concave function of e. So it is constant, and the
end uniform, if its values at both ends and between are equal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from uncertain_cep.candidates.span_times import SpanTimes

__all__ = ["are_uniform", "law_of_end"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
Law = Float64 | None
"""Probabilities of ticks, or weights of lengths; None: all are alike."""


def are_uniform(spans: SpanTimes, at_end: Mask, has_law: Mask) -> Mask:
    """Return whether as many pairs are possible at each tick of an end, (n,) bool.

    ``at_end``, (n,), says which end of each event, ``has_law``, (2n,), which begins, and behind them which
    ends, have explicit probabilities.
    """
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
    uniform &= ~(has_law[:count] | has_law[count:])
    if spans.length_laws is not None:
        uniform &= spans.length_laws.start < 0
    return uniform


def law_of_end(spans: SpanTimes, n: int, laws: tuple[Law, Law], *, at_end: bool) -> Float64:
    """Return the probabilities of the ticks of an end of an event, by its clock.

    ``laws`` are those of its begin and end, each within its bounds.
    """
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
