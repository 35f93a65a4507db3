"""Tables of the worlds of a match that an event leaves which must stay out of spans of ticks.

A rule forbids an event where all of its constraints hold. Those on the event's own time say where its span
begins and ends, given the match's times; the others, on the match's own times alone, whether there is one.
An event that lasts has two spans for each rule: of its begin, and of its end.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, plain_checkpoint
from confidence.chain.distribution import DOUBTFUL, at_least, at_most, exactly, inside
from confidence.kernel import kernel
from confidence.timed.bounds import UNBOUND
from confidence.timed.counted_pairs import RECORD, free_of_rules, lasts, law_of_pairs, record_of
from confidence.timed.tables import (
    AT,
    BUDGET,
    LATER,
    LEFT,
    PRICE,
    SPENT,
    TOO_MANY,
    add_time,
    table_over,
)
from confidence.timed.weighed_pairs import PAIRS, free_of_weighed

__all__ = ["NO_TIME", "OTHER", "Others", "Spans", "forbid", "spans", "take_span", "weigh_one_time"]

NO_TIME: Final = -1
"""Stands in a constraint for tick 0, in the place of a time."""

OTHER: Final = -2
"""Stands for the time of the event that is forbidden."""

NO_INNER: Final = -3
"""Stands for the time that changes along a row where none does."""

Int64 = NDArray[np.int64]


class Others(NamedTuple):
    """The events that may be forbidden in the gaps of some matches, one match's behind the other's.

    Attributes
    ----------
    start : (k + 1,) int64
        Where those of each match begin.
    lower, upper, offset : (n,) int64
        As of :class:`confidence.chain.distribution.Intervals`.
    rule_start : (n + 1,) int64
        Where the rules of each begin.
    rule : (r,) int64
        Of an event that lasts each twice: for its begin, and for its end.
    sides : (q, c, 2) int64
        For each rule its constraints: they bound the first time less the second.
    constraints : (q,) int64
        How many of them there are.
    low, high : (r, c) int64
        The bounds, -UNBOUND and UNBOUND for none.
    """

    start: Int64
    lower: Int64
    upper: Int64
    offset: Int64
    rule_start: Int64
    rule: Int64
    sides: Int64
    constraints: Int64
    low: Int64
    high: Int64


class Spans(NamedTuple):
    """The spans of one event.

    Attributes
    ----------
    limits : (r, c, 4) int64
        For each span the constraints that can bind: two times and bounds, as of a rule; the event's own time
        is the first.
    kept : (r,) int64
        How many there are.
    ends : (r, 10) int64
        First and last tick of each, whatever the times; and for the row of a table that is written: the same
        for its times, the same less the time that changes in it, and the ticks of that between which there
        is a span; of a begin the lengths between which it is forbidden.
    found : (2, r) int64
        First and last tick of those that are not empty, ascending.
    marks : (v,) bool
        Work array, False between two calls.
    scope : (2, v) int64
        The times of a table, and the ticks of all times: 0 but while the table is gone through.
    """

    limits: Int64
    kept: Int64
    ends: Int64
    found: Int64
    marks: NDArray[np.bool_]
    scope: Int64


def spans(most: int, constraints: int, times: int) -> Spans:
    """Return room for so many spans of so many constraints, and for so many times. Limits are looked at."""
    checkpoint(8 * (most * (4 * constraints + 13) + 3 * times))
    return Spans(
        np.empty((most, constraints, 4), dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty((most, 10), dtype=np.int64),
        np.empty((2, most), dtype=np.int64),
        np.zeros(times, dtype=np.bool_),
        np.zeros((2, times), dtype=np.int64),
    )


@kernel
def take_span(forbidden, k, first, size, low, high, r, spans):
    """Take the constraints of a rule that can bind as span r; return whether it can hold the event.

    An end of the span that another one is always within is left out, and so is what holds in any case.
    """
    rule = forbidden.rule[k]
    earliest, latest = low, high
    spans.ends[r, 0], spans.ends[r, 1] = low, high
    count = 0
    for c in range(forbidden.constraints[rule]):
        i, j = forbidden.sides[rule, c, 0], forbidden.sides[rule, c, 1]
        lowest, highest = forbidden.low[k, c], forbidden.high[k, c]
        if lowest > highest:
            return False
        if i != OTHER and j == OTHER:
            i, j = j, i
            lowest, highest = -highest, -lowest
        if i == j:
            if lowest > 0 or highest < 0:
                return False
            continue
        early = first[j] if j >= 0 else 0
        late = early + size[j] - 1 if j >= 0 else 0
        if i == OTHER:
            if lowest > -UNBOUND:
                earliest = max(earliest, early + lowest)
            if highest < UNBOUND:
                latest = min(latest, late + highest)
            if early == late:
                if lowest > -UNBOUND:
                    spans.ends[r, 0] = max(spans.ends[r, 0], early + lowest)
                if highest < UNBOUND:
                    spans.ends[r, 1] = min(spans.ends[r, 1], early + highest)
                continue
        else:
            smallest = first[i] - late
            largest = first[i] + size[i] - 1 - early
            if smallest > highest or largest < lowest:
                return False
            if lowest <= smallest and largest <= highest:
                continue
        spans.limits[r, count, 0], spans.limits[r, count, 1] = i, j
        spans.limits[r, count, 2], spans.limits[r, count, 3] = lowest, highest
        count += 1
    if earliest > latest:
        return False
    # The ends that the times leave for certain: what is within them in any case never binds.
    begin, stop = spans.ends[r, 0], spans.ends[r, 1]
    for c in range(count):
        if spans.limits[r, c, 0] == OTHER:
            j = spans.limits[r, c, 1]
            if spans.limits[r, c, 2] > -UNBOUND:
                begin = max(begin, first[j] + spans.limits[r, c, 2])
            if spans.limits[r, c, 3] < UNBOUND:
                stop = min(stop, first[j] + size[j] - 1 + spans.limits[r, c, 3])
    kept = 0
    for c in range(count):
        i, j = spans.limits[r, c, 0], spans.limits[r, c, 1]
        lowest, highest = spans.limits[r, c, 2], spans.limits[r, c, 3]
        if i == OTHER:
            if lowest > -UNBOUND and first[j] + size[j] - 1 + lowest <= begin:
                lowest = -UNBOUND
            if highest < UNBOUND and first[j] + highest >= stop:
                highest = UNBOUND
            if lowest == -UNBOUND and highest == UNBOUND:
                continue
        spans.limits[r, kept, 0], spans.limits[r, kept, 1] = i, j
        spans.limits[r, kept, 2], spans.limits[r, kept, 3] = lowest, highest
        kept += 1
    spans.kept[r] = kept
    return True


@kernel
def _take_spans(forbidden, x, first, size, pmfs, spans):
    """Take the spans of an event that can hold it; return how many there are."""
    low, high, offset = forbidden.lower[x], forbidden.upper[x], forbidden.offset[x]
    begin, end = forbidden.rule_start[x], forbidden.rule_start[x + 1]
    count = 0
    if not lasts(offset, pmfs.values):
        for k in range(begin, end):
            count += take_span(forbidden, k, first, size, low, high, count, spans)
        return count
    record = record_of(offset, pmfs.values)
    first_end, last_end = low + int(pmfs.values[record]), low + int(pmfs.values[record + 1])
    for k in range(begin, end, 2):
        if not take_span(forbidden, k, first, size, low, high, count, spans):
            continue
        if take_span(forbidden, k + 1, first, size, first_end, last_end, count + 1, spans):
            lengths = record + RECORD + k - begin
            spans.ends[count, 8] = int(pmfs.values[lengths])
            spans.ends[count, 9] = int(pmfs.values[lengths + 1])
            count += 2
    return count


@kernel
def _scope(spans, begin, end, size):
    """Write the times that some spans depend on, ascending; return how many, and their choices of ticks."""
    scope, marks = spans.scope[0], spans.marks
    depth = 0
    choices = 1.0
    for r in range(begin, end):
        for c in range(spans.kept[r]):
            for side in range(2):
                v = spans.limits[r, c, side]
                if v >= 0 and size[v] > 1 and not marks[v]:
                    marks[v] = True
                    choices *= float(size[v])
                    place = depth
                    while place > 0 and scope[place - 1] > v:
                        scope[place] = scope[place - 1]
                        place -= 1
                    scope[place] = v
                    depth += 1
    for d in range(depth):
        marks[scope[d]] = False
    return depth, choices


@kernel
def _at(first, ticks, v):
    """Return the tick at which a time stands."""
    return first[v] + ticks[v] if v >= 0 else 0


@kernel
def _fix(spans, r, first, inner):
    """Set the ends of span r for a row along which time ``inner`` changes."""
    ends, ticks = spans.ends, spans.scope[1]
    ends[r, 2], ends[r, 3] = ends[r, 0], ends[r, 1]
    ends[r, 4], ends[r, 5] = -UNBOUND, UNBOUND
    ends[r, 6], ends[r, 7] = -UNBOUND, UNBOUND
    for c in range(spans.kept[r]):
        i, j = spans.limits[r, c, 0], spans.limits[r, c, 1]
        lowest, highest = spans.limits[r, c, 2], spans.limits[r, c, 3]
        if i == OTHER and j == inner:
            ends[r, 4], ends[r, 5] = max(ends[r, 4], lowest), min(ends[r, 5], highest)
        elif i == OTHER:
            at = _at(first, ticks, j)
            if lowest > -UNBOUND:
                ends[r, 2] = max(ends[r, 2], at + lowest)
            if highest < UNBOUND:
                ends[r, 3] = min(ends[r, 3], at + highest)
        elif i == inner:
            at = _at(first, ticks, j)
            ends[r, 6], ends[r, 7] = max(ends[r, 6], at + lowest), min(ends[r, 7], at + highest)
        elif j == inner:
            at = _at(first, ticks, i)
            ends[r, 6], ends[r, 7] = max(ends[r, 6], at - highest), min(ends[r, 7], at - lowest)
        else:
            difference = _at(first, ticks, i) - _at(first, ticks, j)
            if difference < lowest or difference > highest:
                ends[r, 7] = -UNBOUND
    if ends[r, 2] > ends[r, 3]:
        ends[r, 7] = -UNBOUND


@kernel
def _free(low, high, offset, pmfs, found, count):
    """Return P(an event is in none of the first so many spans found, which ascend)."""
    free = at_most(low, high, offset, pmfs.head, found[0, 0] - 1)
    behind = found[1, 0]
    for r in range(1, count):
        if found[0, r] > behind + 1:
            free += inside(low, high, offset, pmfs.values, behind, found[0, r])
        behind = max(behind, found[1, r])
    return free + at_least(low, high, offset, pmfs.tail, behind + 1)


@kernel
def _insert(spans_found, count, begin, stop):
    """Put a span among those found, by its first tick; return how many there are now."""
    k = count
    while k > 0 and spans_found[0, k - 1] > begin:
        spans_found[0, k], spans_found[1, k] = spans_found[0, k - 1], spans_found[1, k - 1]
        k -= 1
    spans_found[0, k], spans_found[1, k] = begin, stop
    return count + 1


@kernel
def _weigh_row(cells, at, start, width, low, high, offset, pmfs, spans, count):
    """Multiply cells by the probability that an event is in none of its first so many spans.

    ``start`` is the tick of the first of the ``width`` cells.
    """
    ends = spans.ends
    if count == 1 and (offset == -1 or (offset <= DOUBTFUL and pmfs.values[DOUBTFUL - offset + 1] < 0.0)):
        begin, stop = max(start, ends[0, 6]), min(start + width - 1, ends[0, 7])
        happened = 1.0 if offset == -1 else pmfs.values[DOUBTFUL - offset]
        # Whole numbers of ticks, so that what is 0 is exactly 0.
        ticks = float(high - low + 1)
        scale, remainder = happened / ticks, 1.0 - happened
        early, late = float(ends[0, 2] - low), float(ends[0, 3] - low)
        if begin <= stop:
            moved_early, moved_late = float(begin + ends[0, 4] - low), float(begin + ends[0, 5] - low)
            to = at + begin - start
            for k in range(stop - begin + 1):
                common = min(late, moved_late + float(k)) - max(early, moved_early + float(k)) + 1.0
                cells[to + k] *= remainder + scale * (ticks - max(common, 0.0))
        return
    if lasts(offset, pmfs.values):
        if law_of_pairs(offset, pmfs.values) >= 0:
            for k in range(width):
                cells[at + k] *= free_of_weighed(low, high, offset, pmfs, ends, count // 2, start + k)
            return
        for k in range(width):
            cells[at + k] *= free_of_rules(low, high, offset, pmfs.values, ends, count // 2, start + k)
        return
    for k in range(width):
        tick = start + k
        span_count = 0
        for r in range(count):
            if ends[r, 6] <= tick <= ends[r, 7]:
                begin = max(ends[r, 2], tick + ends[r, 4])
                stop = min(ends[r, 3], tick + ends[r, 5])
                if begin <= stop:
                    span_count = _insert(spans.found, span_count, begin, stop)
        if span_count > 0:
            cells[at + k] *= _free(low, high, offset, pmfs, spans.found, span_count)


@kernel
def _work_of_cell(low, offset, values, spans, count):
    """Return about how many multiplications a cell takes that is weighed by an event in none of its spans."""
    if count == 1 and offset == -1:
        return 1.0
    if lasts(offset, values):
        law, last_end = law_of_pairs(offset, values), low + int(values[record_of(offset, values) + 1])
        if law >= 0 and not _is_half(low, last_end, spans, count):
            return values[law + PAIRS] * float(count)
    # An event that several spans may hold, or with a law of its own, takes a search in each cell.
    return 8.0 * float(count)


@kernel
def _is_half(low, last_end, spans, count):
    """Return whether an event that lasts is forbidden a late end with an early begin, as by an overlap."""
    if count != 2 or spans.ends[0, 0] > low or spans.ends[1, 1] < last_end:
        return False
    for r in range(2):
        for c in range(spans.kept[r]):
            if spans.limits[r, c, 0] == OTHER:
                if r == 0 and spans.limits[r, c, 2] > -UNBOUND:
                    return False
                if r == 1 and spans.limits[r, c, 3] < UNBOUND:
                    return False
    return True


@kernel
def _weigh_table(tables, table, depth, first, low, high, offset, pmfs, chosen, count, spans):
    """Weigh a table over the first ``depth`` times of the scope by an event that is in no span.

    The spans are the first so many. If ``chosen`` is one of them, the last time of the table is the event's
    own, which is behind the ``depth``, and only that span counts. Else returns LATER between two rows if the
    budget of the call is spent, and goes on there in the next one; 0 at the end.
    """
    axes, ticks = spans.scope[0], spans.scope[1]
    size, cells, place = tables.size, tables.cells, tables.place[table]
    outer = depth
    inner = NO_INNER
    begin = 0
    width = 1
    if chosen < 0 and depth > 0:
        outer -= 1
        inner = axes[outer]
        begin, width = first[inner], size[inner]
    used, limits = tables.used, tables.limits
    at = used[AT]
    used[AT] = -1
    if at < 0:
        at = tables.start[table]
    each = _work_of_cell(low, offset, pmfs.values, spans, count)
    while True:
        plain_checkpoint()
        if chosen >= 0:
            _fix(spans, chosen, first, inner)
            if spans.ends[chosen, 7] == UNBOUND:
                for tick in range(spans.ends[chosen, 2], spans.ends[chosen, 3] + 1):
                    cells[at + tick - low] = 0.0
        else:
            if limits[SPENT] > limits[BUDGET]:
                used[AT] = at
                return LATER
            limits[SPENT] += each * float(width) + 8.0 * float(count)
            for r in range(count):
                _fix(spans, r, first, inner)
            _weigh_row(cells, at, begin, width, low, high, offset, pmfs, spans, count)
        d = outer - 1
        while d >= 0:
            axis = axes[d]
            ticks[axis] += 1
            at += tables.step[place + d]
            if ticks[axis] < size[axis]:
                break
            at -= tables.step[place + d] * size[axis]
            ticks[axis] = 0
            d -= 1
        if d < 0:
            return 0


@kernel
def _hold(tables, first, low, high, offset, pmfs, count, spans):
    """Add a time for an event that is in none of its first so many spans; return 0, FULL or TOO_MANY.

    Given the event's own time, its gaps have nothing more to do with each other.
    """
    # One tick more, on which it did not happen.
    ticks = high - low + 1
    held = add_time(tables, ticks + (offset <= DOUBTFUL))
    first[held] = low
    spans.scope[0, 0] = held
    table = table_over(tables, spans.scope[0], 1)
    if table < 0:
        return table
    for k in range(ticks):
        tables.cells[tables.start[table] + k] = exactly(low, high, offset, pmfs.values, low + k)
    if offset <= DOUBTFUL:
        tables.cells[tables.start[table] + ticks] = 1.0 - pmfs.values[DOUBTFUL - offset]
    for r in range(count):
        depth, choices = _scope(spans, r, r + 1, tables.size)
        spans.scope[0, depth] = held
        table = table_over(tables, spans.scope[0], depth + 1)
        if table < 0:
            return table
        tables.limits[SPENT] += float(ticks) * choices
        _weigh_table(tables, table, depth, first, low, high, offset, pmfs, r, count, spans)
    return 0


@kernel
def forbid(tables, first, others, x, pmfs, spans):
    """Weigh tables by the probability that an event is in no span that a rule forbids it.

    Parameters
    ----------
    tables : confidence.timed.tables.Tables
    first : (v,) int64
        The first tick of each time.
    others : Others
    x : int64
        The event.
    pmfs : confidence.chain.distribution.Pmfs
    spans : Spans

    Returns
    -------
    int64
        How many spans it can be in; FULL or TOO_MANY as of :func:`confidence.timed.tables.table_over`; LATER
        if the budget of the call is spent, and the next one is to go on with the event.
    """
    low, high, offset = others.lower[x], others.upper[x], others.offset[x]
    count = _take_spans(others, x, first, tables.size, pmfs, spans)
    if count == 0:
        return 0
    depth, together = _scope(spans, 0, count, tables.size)
    is_held = False
    if depth > 2 and high > low and count > 1 and not lasts(offset, pmfs.values):
        apart = 0.0
        for r in range(count):
            apart += _scope(spans, r, r + 1, tables.size)[1]
        is_held = together > apart * float(high - low + 1)
        depth = _scope(spans, 0, count, tables.size)[0]
    if not is_held:
        table = table_over(tables, spans.scope[0], depth)
        if table < 0:
            return table
        is_weighed = lasts(offset, pmfs.values) and law_of_pairs(offset, pmfs.values) >= 0
        if is_weighed and tables.used[AT] < 0:
            work = together * _work_of_cell(low, offset, pmfs.values, spans, count)
            tables.limits[LEFT] -= work
            if tables.limits[LEFT] < 0.0:
                tables.limits[PRICE] = work
                return TOO_MANY
        status = _weigh_table(tables, table, depth, first, low, high, offset, pmfs, -1, count, spans)
        return count if status == 0 else status
    status = _hold(tables, first, low, high, offset, pmfs, count, spans)
    return status if status < 0 else count


@kernel
def weigh_one_time(work, alone, forbidden, x, pmfs):
    """Weigh the ticks of the time that tells where an event is forbidden; return whether it is one, or none.

    Parameters
    ----------
    work : confidence.timed.held_chains.HeldWork
        Its weights are of the ticks of all times.
    alone : int64
        The place of the weight to multiply where no time tells.
    forbidden : Others
    x : int64
        The event.
    pmfs : confidence.chain.distribution.Pmfs
    """
    first, size, spans = work.first, work.size, work.spans
    low, high, offset = forbidden.lower[x], forbidden.upper[x], forbidden.offset[x]
    count = _take_spans(forbidden, x, first, size, pmfs, spans)
    if count == 0:
        return True
    depth, _ = _scope(spans, 0, count, size)
    if depth > 1:
        return False
    inner = spans.scope[0, 0] if depth else NO_INNER
    begin, width, at = 0, 1, alone
    if depth:
        begin, width, at = first[inner], size[inner], work.start[inner]
    for r in range(count):
        _fix(spans, r, first, inner)
    _weigh_row(work.weights, at, begin, width, low, high, offset, pmfs, spans, count)
    return True
