"""Ranges and confidences of matches of one or two uniform times, by sums over pieces of their ticks.

An event that must stay out of a span leaves a share of the worlds that is linear in both times between few
lines: where one end of the span passes another one. So all that the events leave together is a polynomial on
each cell between the lines. Given the *outer* time, the lines cut the ticks of the *inner* one into pieces,
whose sums few ticks tell; and their total is a polynomial in the outer time between the points where two of
the lines cross. No cost depends on the number of ticks.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, plain_checkpoint
from confidence.chain.distribution import DOUBTFUL
from confidence.chain.piece_sums import PieceSums, piece_term, piece_terms
from confidence.chain.pieces import add_point
from confidence.gaps.describing import ALL, COSTLY, PAUSED
from confidence.kernel import kernel
from confidence.timed.bounds import UNBOUND
from confidence.timed.forbidden_tables import OTHER, take_span

__all__ = ["PieceWork", "describe_by_pieces", "piece_work"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

NOBODY: Final = -5
"""Stands for the outer time of a match of one time: tick 0."""

LOW: Final = 0
HIGH: Final = 1
LOW_OUT: Final = 2
HIGH_OUT: Final = 3
LOW_IN: Final = 4
HIGH_IN: Final = 5
OUT: Final = 6
IN: Final = 8
APART: Final = 10

EVENTS: Final = 0
CONSTANTS: Final = 1
SLOPES: Final = 2
OUTER: Final = 3
FIRST_OUT: Final = 4
LAST_OUT: Final = 5
FIRST_IN: Final = 6
LAST_IN: Final = 7
LEAST: Final = 8
MOST: Final = 9
STEPS: Final = 10
MAY_VANISH: Final = 11

_POINTS_EACH: Final = 16
"""Points of the outer time that there is room for, for each event that is forbidden."""

_LOOKED_AT: Final = 4
"""Ticks at each end of a piece of the outer time one of which is possible, if any of the piece is.

A share is linear, and not negative, on a cell of the two times. So it is 0 at no tick inside the cell, or at
all of them, and a cell that has one tick more or less for each tick of the outer time has three by then.
"""


class PieceWork(NamedTuple):
    """Work arrays for matches of up to m forbidden events each.

    Attributes
    ----------
    bound : (m, 12) int64
        Of each event: first and last tick of its span whatever the times, and less the outer and the inner
        time, -UNBOUND and UNBOUND for none; and the bounds of the outer time, the inner one and the inner
        less the outer one, between which there is a span.
    law : (m, 3) float64
        Its ticks; the probability of each; the probability that it did not happen.
    points : (3, p) int64
        Ascending: ticks at which a piece of the inner time begins whatever the outer time; such ticks less
        the outer time; ticks at which a piece of the outer time begins.
    used : (12,) int64
        How many there are of each; bounds of both times and of the inner one less the outer one; the steps
        of a match; whether an event may leave no world.
    outer, inner : PieceSums
        The ticks that are taken of a piece of each time.
    first, size : (2,) int64
        The first tick of each time, and how many there are.
    """

    bound: Int64
    law: Float64
    points: Int64
    used: Int64
    outer: PieceSums
    inner: PieceSums
    first: Int64
    size: Int64


def piece_work(events: int) -> PieceWork:
    """Return work arrays for matches that so many events are forbidden at most. Limits are looked at."""
    points, nodes = _POINTS_EACH * (events + 2), events + 16
    checkpoint(8 * (15 * events + 3 * points + 2 * nodes * (nodes + 3)))
    return PieceWork(
        np.empty((events, 12), dtype=np.int64), np.empty((events, 3)), np.empty((3, points), dtype=np.int64),
        np.zeros(12, dtype=np.int64), PieceSums.of_nodes(nodes), PieceSums.of_nodes(nodes),
        np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.int64),
    )  # fmt: skip


@kernel
def _bind(bound, column, low, high):
    """Narrow the bounds of a time, or of a difference, of an event."""
    bound[column], bound[column + 1] = max(bound[column], low), min(bound[column + 1], high)


@kernel
def _take_event(forbidden, x, pmfs, outer, inner, spans, work):
    """Take what an event leaves as the next one of the match; its span is the first of ``spans``."""
    low, high, offset = forbidden.lower[x], forbidden.upper[x], forbidden.offset[x]
    number = work.used[EVENTS]
    bound = work.bound[number]
    for k in range(LOW_OUT, 12, 2):
        bound[k], bound[k + 1] = -UNBOUND, UNBOUND
    bound[LOW], bound[HIGH] = spans.ends[0, 0], spans.ends[0, 1]
    for c in range(spans.kept[0]):
        i, j = spans.limits[0, c, 0], spans.limits[0, c, 1]
        lowest, highest = spans.limits[0, c, 2], spans.limits[0, c, 3]
        if i == OTHER:
            _bind(bound, LOW_OUT if j == outer else LOW_IN, lowest, highest)
        elif j < 0:
            _bind(bound, OUT if i == outer else IN, lowest, highest)
        elif i < 0:
            _bind(bound, OUT if j == outer else IN, -highest, -lowest)
        elif i == inner:
            _bind(bound, APART, lowest, highest)
        else:
            _bind(bound, APART, -highest, -lowest)
    happened = pmfs.values[DOUBTFUL - offset] if offset <= DOUBTFUL else 1.0
    ticks = float(high - low + 1)
    work.law[number, 0], work.law[number, 1], work.law[number, 2] = ticks, happened / ticks, 1.0 - happened
    if happened == 1.0 and bound[HIGH] - bound[LOW] >= high - low:
        work.used[MAY_VANISH] = 1
    work.used[EVENTS] = number + 1


@kernel
def _add(work, list_, counter, point, low, high):
    """Put a point within (low, high] into a list; the steps are too many if there is no room."""
    count = work.used[counter]
    if point <= low or point > high:
        return
    if count + 1 >= work.points.shape[1]:
        work.used[STEPS] = UNBOUND
        return
    work.used[counter] = add_point(work.points[list_], count, point, low, high)


@kernel
def _cross(work, one, other, of_one, of_other, shift):
    """Add where two ends of a span pass each other: where ``of_one + shift`` is ``of_other``.

    An end is a tick, 0, or the outer or inner time (1, 2) and a number of ticks, -UNBOUND or UNBOUND: none.
    """
    used = work.used
    if abs(of_one) >= UNBOUND or abs(of_other) >= UNBOUND or one == other:
        return
    if one > other:
        one, other, of_one, of_other, shift = other, one, of_other, of_one, -shift
    point = of_one + shift - of_other
    if one == 0 and other == 1:
        _add(work, 2, OUTER, point, used[FIRST_OUT], used[LAST_OUT])
    elif one == 0:
        _add(work, 0, CONSTANTS, point, used[FIRST_IN], used[LAST_IN])
    else:
        _add_slope(work, point)


@kernel
def _add_slope(work, point):
    used = work.used
    _add(work, 1, SLOPES, point, used[FIRST_IN] - used[LAST_OUT], used[LAST_IN] - used[FIRST_OUT])


@kernel
def _lines(work):
    """Write the points at which pieces begin; return whether there is room for them."""
    used = work.used
    used[CONSTANTS] = used[SLOPES] = used[OUTER] = 0
    if used[LEAST] > -UNBOUND:
        _add_slope(work, used[LEAST])
    if used[MOST] < UNBOUND:
        _add_slope(work, used[MOST] + 1)
    for n in range(used[EVENTS]):
        bound = work.bound[n]
        for one in range(3):
            for other in range(3):
                if one < other:
                    _cross(work, one, other, bound[2 * one], bound[2 * other], 0)
                    _cross(work, one, other, bound[2 * one + 1], bound[2 * other + 1], 0)
                # A span is empty where its last tick is one before its first.
                _cross(work, one, other, bound[2 * one], bound[2 * other + 1], -1)
        for edge in range(2):
            _add(work, 2, OUTER, bound[OUT + edge] + edge, used[FIRST_OUT], used[LAST_OUT])
            _add(work, 0, CONSTANTS, bound[IN + edge] + edge, used[FIRST_IN], used[LAST_IN])
            _add_slope(work, bound[APART + edge] + edge)
    for c in range(used[SLOPES]):
        slope = work.points[1, c]
        for edge in (used[FIRST_IN], used[LAST_IN] + 1):
            _add(work, 2, OUTER, edge - slope, used[FIRST_OUT], used[LAST_OUT])
        for k in range(used[CONSTANTS]):
            _add(work, 2, OUTER, work.points[0, k] - slope, used[FIRST_OUT], used[LAST_OUT])
    return used[STEPS] < UNBOUND


@kernel(inline=True)
def _share(bound, law, s, t):
    """Return the probability that an event is not in its span, given the outer time s and the inner t."""
    if (
        bound[OUT] <= s <= bound[OUT + 1]
        and bound[IN] <= t <= bound[IN + 1]
        and bound[APART] <= t - s <= bound[APART + 1]
    ):
        low = max(bound[LOW], s + bound[LOW_OUT], t + bound[LOW_IN])
        high = min(bound[HIGH], s + bound[HIGH_OUT], t + bound[HIGH_IN])
        # Whole numbers of ticks, so that what is 0 is exactly 0.
        return law[2] + law[1] * (law[0] - float(max(high - low + 1, 0)))
    return 1.0


@kernel
def _shares(work, s, t):
    """Return the probability that all events are out of their spans, given both times."""
    product = 1.0
    for n in range(work.used[EVENTS]):
        product *= _share(work.bound[n], work.law[n], s, t)
    return product


@kernel
def _piece(work, s, begin, end):
    """Return the sum over the inner times begin..end of one piece, given the outer time."""
    degree = 0
    left, right = 1.0, 1.0
    for n in range(work.used[EVENTS]):
        one, other = _share(work.bound[n], work.law[n], s, begin), _share(work.bound[n], work.law[n], s, end)
        left *= one
        right *= other
        degree += one != other
    work.used[STEPS] += 2 * work.used[EVENTS] + 2
    count = end - begin + 1
    if degree == 0:
        return left * float(count)
    if degree == 1 or count <= 2:
        return (left + right) * (float(count) / 2.0) if count > 1 else left
    terms, nodes, apart = piece_terms(count, degree, work.inner)
    total = 0.0
    work.used[STEPS] += terms * work.used[EVENTS]
    for k in range(terms):
        plain_checkpoint()
        tick, weight = piece_term(k, nodes, apart, work.inner)
        total += weight * _shares(work, s, begin + tick)
    return total


@kernel
def _given(work, s, is_sum):
    """Return the sum over the inner times given the outer one; else 1 if one of them is possible, or 0."""
    used = work.used
    begin, last = max(used[FIRST_IN], s + used[LEAST]), min(used[LAST_IN], s + used[MOST])
    total = 0.0
    k = c = 0
    while begin <= last:
        while k < used[CONSTANTS] and work.points[0, k] <= begin:
            k += 1
        while c < used[SLOPES] and s + work.points[1, c] <= begin:
            c += 1
        end = last
        if k < used[CONSTANTS]:
            end = min(end, work.points[0, k] - 1)
        if c < used[SLOPES]:
            end = min(end, s + work.points[1, c] - 1)
        if is_sum:
            total += _piece(work, s, begin, end)
        else:
            for t in (begin, min(begin + 1, end), end):
                if _shares(work, s, t) > 0.0:
                    return 1.0
        begin = end + 1
    return total


@kernel
def _degree(work, begin, end):
    """Return the degree, at most, of the sums given the outer times begin..end."""
    used = work.used
    first, last = max(used[FIRST_IN], begin + used[LEAST]), min(used[LAST_IN], end + used[MOST])
    degree = 1
    for n in range(used[EVENTS]):
        bound = work.bound[n]
        if begin < bound[OUT] or begin > bound[OUT + 1]:
            continue
        is_guarded = bound[IN] > -UNBOUND or bound[IN + 1] < UNBOUND
        is_guarded |= bound[APART] > -UNBOUND or bound[APART + 1] < UNBOUND
        low_first = max(bound[LOW], begin + bound[LOW_OUT], first + bound[LOW_IN])
        low_last = max(bound[LOW], end + bound[LOW_OUT], last + bound[LOW_IN])
        high_first = min(bound[HIGH], begin + bound[HIGH_OUT], first + bound[HIGH_IN])
        high_last = min(bound[HIGH], end + bound[HIGH_OUT], last + bound[HIGH_IN])
        degree += is_guarded or max(high_first - low_last + 1, 0) != max(high_last - low_first + 1, 0)
    return degree


@kernel
def _end_of_piece(work, p):
    return work.points[2, p] - 1 if p < work.used[OUTER] else work.used[LAST_OUT]


@kernel
def _sum(work, most_steps):
    """Return the sum over both times; the steps are above ``most_steps`` if it takes more."""
    total = 0.0
    begin = work.used[FIRST_OUT]
    for p in range(work.used[OUTER] + 1):
        end = _end_of_piece(work, p)
        count = end - begin + 1
        terms, nodes, apart = piece_terms(
            count, _degree(work, begin, end) if count > 2 else count, work.outer
        )
        for k in range(terms):
            plain_checkpoint()
            if work.used[STEPS] > most_steps:
                return 0.0
            tick, weight = piece_term(k, nodes, apart, work.outer)
            total += weight * _given(work, begin + tick, True)
        begin = end + 1
    return total


@kernel
def _first_possible(work, step):
    """Return the first (step 1) or last (step -1) outer time that is possible, and whether there is one."""
    count = work.used[OUTER] + 1
    for n in range(count):
        plain_checkpoint()
        p = n if step > 0 else count - 1 - n
        begin = work.points[2, p - 1] if p > 0 else work.used[FIRST_OUT]
        end = _end_of_piece(work, p)
        size = end - begin + 1
        for k in range(min(size, 2 * _LOOKED_AT)):
            moved = k if k < _LOOKED_AT else max(size - 2 * _LOOKED_AT, 0) + k
            s = begin + moved if step > 0 else end - moved
            if _given(work, s, False) > 0.0:
                return s, True
    return 0, False


@kernel
def _prepare(times, n, forbidden, pmfs, outer, inner, spans, work):
    """Write what the events leave of a match, by roles of its times; return whether there is room."""
    used = work.used
    used[EVENTS] = used[MAY_VANISH] = used[STEPS] = 0
    length = times.first.shape[1]
    for v in range(length):
        work.first[v], work.size[v] = times.first[n, v], times.last[n, v] - times.first[n, v] + 1
    used[FIRST_OUT] = times.first[n, outer] if outer >= 0 else 0
    used[LAST_OUT] = times.last[n, outer] if outer >= 0 else 0
    used[FIRST_IN] = times.first[n, inner] if inner >= 0 else 0
    used[LAST_IN] = times.last[n, inner] if inner >= 0 else 0
    used[LEAST], used[MOST] = -UNBOUND, UNBOUND
    m = min(n, times.low.shape[0] - 1)
    for e in range(times.sides.shape[0]):
        if times.sides[e, 0] == times.sides[e, 1]:
            continue
        if times.sides[e, 0] == inner:
            low, high = times.low[m, e], times.high[m, e]
        else:
            low, high = -times.high[m, e], -times.low[m, e]
        used[LEAST], used[MOST] = max(used[LEAST], low), min(used[MOST], high)
    for x in range(forbidden.start[n], forbidden.start[n + 1]):
        for k in range(forbidden.rule_start[x], forbidden.rule_start[x + 1]):
            if take_span(
                forbidden, k, work.first, work.size, forbidden.lower[x], forbidden.upper[x], 0, spans
            ):
                _take_event(forbidden, x, pmfs, outer, inner, spans, work)
    return _lines(work)


@kernel
def _range(times, n, forbidden, pmfs, outer, inner, spans, work):
    """Return the first and last tick of a match some of whose worlds the events leave."""
    length = times.first.shape[1]
    lower, upper = UNBOUND, -UNBOUND
    for turn in range(length):
        if turn > 0 or outer < 0:
            outer, inner = inner, outer
            _prepare(times, n, forbidden, pmfs, outer, inner, spans, work)
        begin, is_possible = _first_possible(work, 1)
        if not is_possible:
            return 0, -1
        if times.ends[0, outer]:
            lower = min(lower, begin)
        if times.ends[1, outer]:
            end, _ = _first_possible(work, -1)
            upper = max(upper, end)
    return lower, upper


@kernel
def describe_by_pieces(times, forbidden, pmfs, begin, with_confidence, most_steps, budget, spans, work, out):
    """Fill range and confidence of matches, from one on.

    Parameters
    ----------
    times : confidence.timed.summed_matches.SummedTimes
        Tight; one or two times a match, uniform.
    forbidden : confidence.timed.forbidden_tables.Others
        Uniform, each forbidden by one rule at most.
    pmfs : confidence.chain.distribution.Pmfs
    begin : int64
        The match to begin with.
    with_confidence : bool
        Whether a confidence is needed where no event is in the way.
    most_steps, budget : float64
        Multiplications for one match; after how many to come back.
    spans : confidence.timed.forbidden_tables.Spans
    work : PieceWork
    out : tuple of (k,) int64 twice and (k,) float64
        Overwritten; the range is empty where the confidence is 0.

    Returns
    -------
    done : int64
        Matches done.
    reason : int64
        ALL, COSTLY if match ``done`` takes too many steps, PAUSED.

    Notes
    -----
    O(m^3) pieces for m events that are forbidden, each with O(m^2) multiplications.
    """
    out_lower, out_upper, out_confidence = out
    spent = 0.0
    for n in range(begin, times.first.shape[0]):
        if spent > budget:
            return n, PAUSED
        out_lower[n], out_upper[n], out_confidence[n] = 0, -1, 0.0
        if times.first[n, 0] > times.last[n, 0]:
            continue
        outer, inner = NOBODY, 0
        if times.first.shape[1] == 2:
            outer, inner = (0, 1) if times.first[n, 1] < times.last[n, 1] else (1, 0)
        if not _prepare(times, n, forbidden, pmfs, outer, inner, spans, work):
            return n, COSTLY
        used = work.used
        lower, upper = UNBOUND, -UNBOUND
        for v in range(times.first.shape[1]):
            lower, upper = min(lower, times.first[n, v]), max(upper, times.last[n, v])
        confidence = 0.0
        if with_confidence or used[EVENTS] > 0:
            confidence = _sum(work, most_steps)
            if float(used[STEPS]) > most_steps:
                return n, COSTLY
            for v in range(times.first.shape[1]):
                confidence /= times.size[n, v]
        spent += float(used[STEPS]) + 64.0
        if used[MAY_VANISH]:
            lower, upper = _range(times, n, forbidden, pmfs, outer, inner, spans, work)
            confidence = confidence if lower <= upper else 0.0
        out_lower[n], out_upper[n], out_confidence[n] = lower, upper, min(confidence, 1.0)
    return times.first.shape[0], ALL
