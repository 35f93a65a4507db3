"""Query-order ("sorted") evaluation of skip till any match, whole partitions at a time.

With positions subtracted (``A_j = lower_j - j``, ``B_j = upper_j - j``, 0-based) a choice of one event per
component is feasible iff ``A_i <= B_j`` for all i <= j and ``max A <= min B + w``, ``w = W - l``. The join is
pivoted on the first component p that attains ``m = min B``. Given the pivot event, what is left is

* before p: ``A <= m < B``, each component for itself;
* behind p: ``B >= m``, ``A <= m + w`` and ``max(A_{p+1..j-1}) <= B_j``, a chain without a window;

so every match comes out once, and the latest time G_j up to which a chain can still be completed from
component j on follows from running maxima of B. Events with ``A_j > G_{j+1}`` are never entered: no
partial match is a dead end as far as order and window go.

A largest difference ``c_j`` of a time from the one before, positions taken off, leaves the pivot where it
is: any solution stays one with m for all its times up to p, and with no time behind p before m. So behind p
the times that a choice leaves to its last event are an interval [E, L], ``E_j = max(E_{j-1}, A_j)``,
``L_j = min(L_{j-1} + c_j, B_j, m + w)``, and a candidate is also to have ``A_j <= L_{j-1} + c_j``.

Candidates are sorted by A within classes of similar interval length. A class whose longest interval
is L ticks holds the events with ``B >= x`` at or behind the first ``A > x - L``, so a few long intervals
do not widen the search among the short ones.

Where the search among the candidates of the next component begins follows, but for those that an earlier
event outreaches, from the candidate bound last alone, and is known for each before the join begins.

Partial matches are extended a block at a time, one component more from block to block, the deepest
block first: a tight loop for each, and memory bounded by a block for each component. All of it lives in
arrays, so that the search goes on where it stopped.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel
from confidence.predicates.bytecode import (
    STACK_DEPTH,
    UNRELATED,
    holds,
    leading_comparison,
    next_related,
    related,
    value_at,
)
from eventbased.config import SPARE
from eventbased.galloping import first_above
from eventbased.joins.join_state import (
    BEGIN,
    CANDIDATE,
    COMPONENT_BITS,
    COUNT,
    FIRST,
    FRESH,
    LATEST,
    LEFT,
    NEXT,
    NEXT_PASS,
    PARENT,
    PARENT_ROW,
    PASS,
    PIVOT,
    REACH,
    ROW,
    SIZE,
    TOP,
    WITHIN,
    trace_back,
)
from eventbased.joins.pivots import can_straddle, next_pivots

__all__ = ["PAUSED", "POSITIVE", "UNBOUND_GAP", "join"]

UNBOUND_GAP: Final = 2**61
"""A difference that no two times of a time line have, ticks."""

PAUSED: Final = -1
"""Instead of the number of spans, where a join took the steps of one call without finding a match."""

POSITIVE: Final = 2**48 - 1
"""Mask for an index, which tells the compiler that it does not count from the end."""


class _Scratch(NamedTuple):
    """Work arrays: the candidates chosen, the stack of the bytecode, candidates that are taken."""

    chosen: NDArray[np.int64]
    whole: NDArray[np.int64]
    real: NDArray[np.float64]
    absent: NDArray[np.bool_]
    taken: NDArray[np.int64]


@kernel(inline=True)
def _first_reaching(lower, begin, stop, x):
    """Return the first index in [begin, stop] whose lower bound is > x, the first eight without a branch."""
    i = begin & POSITIVE
    below = 0
    for k in range(SPARE):
        below += (lower[i + k] <= x) & (k < stop - i)
    if below == SPARE:
        return first_above(lower, begin + SPARE, stop, x, begin + SPARE)
    return begin + below


@kernel
def _extend_evenly(
    level, j, chained, cap, candidates, shared, search, taken, room, spans, r, rows, count, matched
):
    """Extend rows from r on by a component whose intervals are equally long, if nothing else is asked of it.

    Return the first row whose extensions there is no ``room`` for, and the numbers of spans and extensions.
    It is a loop of its own so that what it needs stays in registers.
    """
    lower, follow, event, twin = candidates.lower, candidates.follow, shared.event, shared.twin
    first = candidates.first_class[j]
    follows, longest = candidates.follow_start[first], candidates.class_longest[first]
    starts, stops = search.begins[first], search.ends[first]
    blocks, share = search.blocks, search.shares[level]
    bound_last, pivots = blocks[level, CANDIDATE], blocks[level, PIVOT]
    reaches, latests = blocks[level, REACH], blocks[level, LATEST]
    parents, begins, sizes = spans[PARENT], spans[BEGIN], spans[SIZE]
    bit = 1 << j % COMPONENT_BITS
    while r < rows:
        pivot = pivots[r & POSITIVE] & POSITIVE
        stop = stops[pivot]
        if chained:
            last = bound_last[r & POSITIVE] & POSITIVE
            begin = min(follow[follows + last & POSITIVE], stop)
            need = reaches[r & POSITIVE]
            if lower[last] < need:
                begin = _first_reaching(lower, begin, stop, need - longest - 1)
        else:
            begin = min(starts[pivot], stop)
        if cap >= 0:
            stop = first_above(lower, begin, stop, latests[r & POSITIVE] + cap, begin)
        if stop - begin > room - matched:
            break
        takens = 0
        if share[r & POSITIVE] & bit:
            at = r & POSITIVE
            for s in range(level, -1, -1):
                e = event[blocks[s, CANDIDATE, at] & POSITIVE]
                at = blocks[s, PARENT_ROW, at] & POSITIVE
                if e >= 0:
                    taken[takens] = twin[e, j]
                    takens += begin <= taken[takens] < stop
        while True:
            cut = stop
            for s in range(takens):
                if begin <= taken[s] < cut:
                    cut = taken[s]
            n = count & POSITIVE
            parents[n] = r
            begins[n] = begin
            sizes[n] = cut - begin
            count += cut > begin
            matched += cut - begin
            if cut == stop:
                break
            begin = cut + 1
        r += 1
    return r, count, matched


@kernel
def _extend(p, level, inputs, search, scratch, most_steps, room, spans):
    """Extend a block's rows by one component, from its cursor on.

    A span is a row and candidates side by side that extend it. Returns the numbers of spans, of extensions,
    and of steps; it pauses after ``most_steps`` or without ``room``.
    """
    _, candidates, shared, limit, most_apart, order, bytecode = inputs
    first_class, lower, upper = candidates.first_class, candidates.lower, candidates.upper
    class_shortest, class_longest = candidates.class_shortest, candidates.class_longest
    follow_start, follow = candidates.follow_start, candidates.follow
    event, twin = shared.event, shared.twin
    minimum, all_begins, all_ends, blocks = search.minimum, search.begins, search.ends, search.blocks
    share, cursor = search.shares[level], search.cursor[:, level]
    chosen, taken = scratch.chosen, scratch.taken
    # Read from their tuples once, not for each candidate.
    code, ints, floats, nulls, slots = (
        bytecode.code, bytecode.ints, bytecode.floats, bytecode.nulls, bytecode.slots,
    )  # fmt: skip
    whole, real, absent = scratch.whole, scratch.real, scratch.absent
    ordered = order[p]
    j = ordered[level + 1]
    behind = j > p
    row = bytecode.start[p, level + 1]
    row_stop = bytecode.start[p, level + 2]
    tested = row < row_stop
    relation, is_real, own_value, other = leading_comparison(code, row, row_stop, slots, j)
    values, own_nulls, number, real_number = 0, 0, 0, 0.0
    if relation != UNRELATED:
        row += 1
        values, own_nulls = slots[own_value, 1], slots[own_value, 2]
    first = first_class[j]
    stop_class = first_class[j + 1]
    rows = cursor[COUNT]
    parents, begins, sizes = spans[PARENT], spans[BEGIN], spans[SIZE]
    bound_last, pivots, reaches = blocks[level, CANDIDATE], blocks[level, PIVOT], blocks[level, REACH]
    capped = behind and most_apart.shape[0] > 0
    latests = blocks[level, LATEST]
    cap = most_apart[j] if capped else -1
    limited = limit.shape[0] > 0
    chained = j > p + 1
    bit = 1 << j % COMPONENT_BITS
    plain = not limited and not tested and stop_class == first + 1
    plain = plain and class_shortest[first] == class_longest[first]
    weight = 1 + row_stop - row + tested
    classes = stop_class - first
    count = 0
    matched = 0
    steps = 0
    r = cursor[ROW]
    c = cursor[WITHIN]
    i = cursor[NEXT]
    begun = r
    while r < rows:
        pivot = pivots[r]
        need = reaches[r] if behind else minimum[pivot] + 1
        if i == FRESH:
            c = first
            if plain:
                r, count, matched = _extend_evenly(
                    level, j, chained, cap, candidates, shared, search, taken, room, spans, r, rows, count,
                    matched,
                )  # fmt: skip
                if r == rows:
                    break
                pivot = pivots[r]
                need = reaches[r] if behind else minimum[pivot] + 1
        takens = 0
        overlaps = share[r] & bit
        if overlaps or tested or limited:
            trace_back(ordered, blocks, level, r, chosen)
        if relation != UNRELATED:
            k = chosen[slots[other, 0]]
            is_known, number, real_number = value_at(
                is_real, slots[other, 1] + k, slots[other, 2] + k, ints, floats, nulls
            )
            if not is_known:
                r += 1
                i = FRESH
                continue
        if overlaps:
            for s in range(level + 1):
                e = event[chosen[ordered[s]]]
                if e >= 0 and twin[e, j] >= 0:
                    taken[takens] = twin[e, j]
                    takens += 1
        while c < stop_class:
            stop = all_ends[c, pivot]
            if limited and behind:
                begin = all_begins[c, pivot]
                stop = first_above(lower, begin, stop, limit[chosen[j - 1]], begin)
            if capped:
                begin = min(all_begins[c, pivot], stop)
                stop = first_above(lower, begin, stop, latests[r] + cap, begin)
            if i == FRESH:
                i = min(all_begins[c, pivot], stop)
                if chained:
                    i = min(follow[follow_start[c] + bound_last[r] & POSITIVE], stop)
                    if lower[bound_last[r] & POSITIVE] < need:
                        i = _first_reaching(lower, i, stop, need - class_longest[c] - 1)
            even = class_shortest[c] == class_longest[c] and (behind or not limited)
            if even and not tested:
                # The search for the start has left exactly the candidates that reach far enough.
                while True:
                    cut = stop
                    for s in range(takens):
                        if i <= taken[s] < cut:
                            cut = taken[s]
                    size = min(cut - i, room - matched)
                    parents[count] = r
                    begins[count] = i
                    sizes[count] = size
                    count += size > 0
                    matched += size
                    i += size
                    if i < cut or cut == stop:
                        break
                    i += 1
            else:
                while i < stop and matched < room and steps < most_steps:
                    if relation != UNRELATED:
                        begin = i
                        until = min(stop, i + most_steps - steps)
                        i = next_related(
                            relation, is_real, ints, floats, nulls, values, own_nulls, number, real_number,
                            i, until,
                        )  # fmt: skip
                        steps += i - begin
                        if i == until:
                            continue
                    begin = i
                    while i < stop and i - begin < room - matched:
                        free = even or upper[i] >= need
                        if limited and not behind:
                            free = free and lower[chosen[j + 1]] <= limit[i]
                        for s in range(takens):
                            free = free and taken[s] != i
                        if free and relation != UNRELATED:
                            free = related(
                                relation, is_real, values + i, own_nulls + i, ints, floats, nulls, number,
                                real_number,
                            )  # fmt: skip
                        if free and row < row_stop:
                            chosen[j] = i
                            free = holds(
                                code, row, row_stop, ints, floats, nulls, slots, chosen, whole, real, absent
                            )
                        if not free:
                            break
                        i += 1
                    steps += weight * (i - begin + 1)
                    if i > begin:
                        parents[count] = r
                        begins[count] = begin
                        sizes[count] = i - begin
                        count += 1
                        matched += i - begin
                    else:
                        i += 1
            if i < stop:
                cursor[ROW] = r
                cursor[WITHIN] = c
                cursor[NEXT] = i
                return count, matched, steps + classes * (r - begun + 1)
            i = FRESH
            c += 1
        r += 1
    cursor[ROW] = r
    cursor[NEXT] = FRESH
    return count, matched, steps + classes * (r - begun)


@kernel(packed=True)
def _carry_on(p, level, inputs, search, count):
    """Fill the next block from ``count`` spans."""
    w, candidates, shared_events, _, most_apart, order, _ = inputs
    fills = shared_events.fills
    lower, upper, minimum = candidates.lower, candidates.upper, search.minimum
    j = order[p, level + 1]
    behind = j > p
    capped = behind and most_apart.shape[0] > 0
    block, next_block, spans = search.blocks[level], search.blocks[level + 1], search.inner
    share, next_share = search.shares[level], search.shares[level + 1]
    bound, rows, pivots = next_block[CANDIDATE], next_block[PARENT_ROW], next_block[PIVOT]
    reaches, tops, firsts, until = next_block[REACH], next_block[TOP], next_block[FIRST], next_block[LATEST]
    n = 0
    for k in range(count):
        r = spans[PARENT, k]
        i = spans[BEGIN, k]
        pivot, reach, top, first, latest, shared = (
            block[PIVOT, r],
            block[REACH, r],
            block[TOP, r],
            block[FIRST, r],
            block[LATEST, r],
            share[r],
        )
        if capped:
            latest = min(latest + most_apart[j], minimum[pivot] + w)
        end = n + spans[SIZE, k]
        while True:
            # Four at a time and never fewer, as spans are short; and all loads before all stores.
            i &= POSITIVE
            n &= POSITIVE
            a0, a1, a2, a3 = lower[i], lower[i + 1], lower[i + 2], lower[i + 3]
            s0, s1, s2, s3 = fills[i], fills[i + 1], fills[i + 2], fills[i + 3]
            s0, s1, s2, s3 = shared | s0, shared | s1, shared | s2, shared | s3
            t0, t1, t2, t3 = max(top, a0), max(top, a1), max(top, a2), max(top, a3)
            e0, e1, e2, e3 = reach, reach, reach, reach
            if behind:
                e0, e1, e2, e3 = max(reach, a0), max(reach, a1), max(reach, a2), max(reach, a3)
            u0, u1, u2, u3 = latest, latest, latest, latest
            if capped:
                u0, u1, u2, u3 = upper[i], upper[i + 1], upper[i + 2], upper[i + 3]
                u0, u1, u2, u3 = min(latest, u0), min(latest, u1), min(latest, u2), min(latest, u3)
            if j > 0:
                a0, a1, a2, a3 = first, first, first, first
            bound[n], bound[n + 1], bound[n + 2], bound[n + 3] = i, i + 1, i + 2, i + 3
            rows[n], rows[n + 1], rows[n + 2], rows[n + 3] = r, r, r, r
            pivots[n], pivots[n + 1], pivots[n + 2], pivots[n + 3] = pivot, pivot, pivot, pivot
            reaches[n], reaches[n + 1], reaches[n + 2], reaches[n + 3] = e0, e1, e2, e3
            tops[n], tops[n + 1], tops[n + 2], tops[n + 3] = t0, t1, t2, t3
            firsts[n], firsts[n + 1], firsts[n + 2], firsts[n + 3] = a0, a1, a2, a3
            until[n], until[n + 1], until[n + 2], until[n + 3] = u0, u1, u2, u3
            next_share[n], next_share[n + 1], next_share[n + 2], next_share[n + 3] = s0, s1, s2, s3
            n += 4
            i += 4
            if n >= end:
                break
        n = end


@kernel(allocates=True)
def join(inputs, search, most_steps, room, spans):
    """Find the next feasible choices; return the numbers of spans and of matches.

    Both are 0 when there are no more. PAUSED and 0 say that it took ``most_steps`` without finding any: there
    may be more.

    Parameters
    ----------
    inputs : PivotInputs
    search : JoinState
    most_steps : int64
        At least 1; see :func:`confidence.budget.steps_per_call`.
    room : int64
        Most matches to find, at least 1.
    spans : (3, m) int64, m > room
        Overwritten: for each span the row of the last block, ascending, the first of the candidates of the
        component bound last that complete it, and how many there are, side by side.

    Notes
    -----
    O(spans and partial matches), no partial match being a dead end, where intervals of a class are
    equally long, no difference is bound from above and no predicate is left; and O(n c log d) for the
    pivots, d being how far the bounds move from one to the next.
    """
    candidates = inputs.candidates
    length = candidates.first_class.shape[0] - 1
    last = length - 2
    scratch = _Scratch(
        np.empty(length, np.int64),
        np.empty(STACK_DEPTH, np.int64),
        np.empty(STACK_DEPTH, np.float64),
        np.empty(STACK_DEPTH, np.bool_),
        np.empty(length, np.int64),
    )
    state, cursor, capacity = search.state, search.cursor, search.minimum.shape[0]
    steps_left = most_steps
    while True:
        if steps_left <= 0:
            return PAUSED, 0
        level = last
        while level >= 0 and cursor[ROW, level] == cursor[COUNT, level]:
            level -= 1
        if level < 0:
            following = state[NEXT_PASS]
            if following == length or not can_straddle(
                following, candidates.first_class, candidates.class_longest
            ):
                return 0, 0
            matched = next_pivots(inputs.w, candidates, inputs.shared.fills, search)
            steps_left -= capacity * candidates.class_start.shape[0]
            search.found[state[PASS], 0] += matched
            cursor[COUNT, 0] = matched
            cursor[ROW, 0] = 0
            continue
        p = state[PASS]
        if level == last:
            fitting, output = room, spans
        else:
            fitting, output = capacity, search.inner
        count, matched, steps = _extend(p, level, inputs, search, scratch, steps_left, fitting, output)
        steps_left -= steps
        search.found[p, level + 1] += matched
        if level < last:
            _carry_on(p, level, inputs, search, count)
            cursor[COUNT, level + 1] = matched
            cursor[ROW, level + 1] = 0
        elif matched > 0:
            state[LEFT] = steps_left
            return count, matched
