"""Joins of partial matches in any order of the components, one after the other and block by block.

With positions subtracted (``A_j = lower_j - j``, ``B_j = upper_j - j``, 0-based) events chosen for a set S
of components go together as far as order and window go iff ``A_i <= B_j`` for all i < j in S and
``A_j <= B_i + w`` for all pairs, ``w = W - l``. With the conditions of a partial order it is
``A_i + D_ij <= B_j`` for all pairs, D being the longest distances that the pattern asks for, for these are
difference constraints. Each of these conditions is on two events, so components can be bound in any order,
and two sets of them joined: rows of a left block with rows of a right side, which are the candidates of one
component or the partial matches of several.

Of the right rows let ``first = max A`` and ``last = min B``. What a left row asks of them is ``last >= lo``
and ``first <= hi``; only where components of the two sides interleave, pairs of them are looked at one by
one. The right side is sorted by ``first``; where predicates equate something of the two sides, within groups
of equal values, so that what does not go together is not even seen.

Source of the plans: Kolchinsky and Schuster, "Join Query Optimization Techniques for Complex Event Processing
Applications", PVLDB 11(11), 2018, sections 2.2 and 2.3.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel
from confidence.predicates.bytecode import STACK_DEPTH, holds
from eventbased.joins.pivot_join import BEGIN, PARENT, SIZE, first_above

__all__ = [
    "BEFORE",
    "BEHIND",
    "FRESH",
    "NEXT_LEFT",
    "NEXT_RIGHT",
    "ROW",
    "Programs",
    "RightSide",
    "append",
    "extend",
    "reach",
]

Int64 = NDArray[np.int64]

ROW: Final = 0
WITHIN: Final = 1
INDEX: Final = 2
FRESH: Final = -1

BEFORE: Final = 0
"""A of the left component and a distance are at most B of the right one."""

BEHIND: Final = 1
"""A of the right component and a distance are at most B of the left one."""

NEXT_RIGHT: Final = 2
"""The right component is the next one after the left one, and its event has to start in time."""

NEXT_LEFT: Final = 3
"""The left component is the next one after the right one."""


class RightSide(NamedTuple):
    """What left rows are joined with: candidates of a component, or partial matches; n rows.

    Attributes
    ----------
    components : (t,) int64
    places : (t, n) int64
        The candidates, as places in the layout.
    first, last : (n,) int64
        ``max A`` and ``min B`` of each row; within a group and class ``first`` ascends.
    start : (groups * classes + 1,) int64
        Where the rows of class c of group g start: at ``start[g * classes + c]``.
    longest : (classes,) int64
        Largest ``last - first`` of a class.
    even : (classes,) bool
        Whether ``last - first`` is the same for all rows of a class.
    hint : (groups * classes,) int64
        Where the last searches ended.
    number : (m,) int64
        The group of each key, -1 for none; empty if ``keys`` is used.
    keys : (k,) int64
        The key of each group, ascending.
    """

    components: Int64
    places: Int64
    first: Int64
    last: Int64
    start: Int64
    longest: Int64
    even: NDArray[np.bool_]
    hint: Int64
    number: Int64
    keys: Int64


class Programs(NamedTuple):
    """Predicates across components, see :func:`confidence.predicates.bytecode.holds`."""

    code: Int64
    ints: Int64
    floats: NDArray[np.float64]
    nulls: NDArray[np.bool_]
    slots: Int64


@kernel
def reach(
    count, block, left, slack, right, least, most, lower, upper, limit, equated, codes, lo, hi, group
):  # fmt: skip
    """Set what each left row asks of the right rows.

    Parameters
    ----------
    count : int64
        Rows of the block.
    block : (l, k) int64
        The candidates of each row's components, as places in the layout.
    left : (s,) int64
        The components bound in the block.
    slack : (s, 2) int64
        For each of them by how much ``last`` of the right rows may be below its A, and ``first`` above its B.
    right : RightSide
    least, most : int64
        What ``last`` and ``first`` of the right rows have to reach and keep to whatever the left row.
    lower, upper : (n,) int64
        A and B of every candidate.
    limit : (n,) int64, or (0,)
        See :func:`eventbased.joins.pivot_join.join`.
    equated : (e, 3) int64
        For each equality between the two sides the left component, where the codes of its candidates are in
        ``codes`` less where its candidates start, and what to multiply them with.
    codes : (c,) int64
        Numbers of values, -1 for null.
    lo, hi, group : (k,) int64
        Overwritten; the group is -1 if no right row has equal values.

    Notes
    -----
    O(s + e) for each row, and O(log g) where groups are searched for.
    """
    components = right.components
    for r in range(count):
        lo[r] = least
        hi[r] = most
        group[r] = 0
    for k in range(left.shape[0]):
        s = left[k]
        place = block[s]
        below, above = slack[k, 0], slack[k, 1]
        for r in range(count):
            lo[r] = max(lo[r], lower[place[r]] - below)
            hi[r] = min(hi[r], upper[place[r]] + above)
        if limit.shape[0] and components.shape[0] == 1 and s == components[0] - 1:
            for r in range(count):
                hi[r] = min(hi[r], limit[place[r]])
    if not equated.shape[0]:
        return
    for e in range(equated.shape[0]):
        place, shift, factor = block[equated[e, 0]], equated[e, 1], equated[e, 2]
        for r in range(count):
            code = codes[shift + place[r]]
            if code < 0 or group[r] < 0:
                group[r] = -1
            else:
                group[r] += code * factor
    number, keys = right.number, right.keys
    for r in range(count):
        if group[r] < 0:
            continue
        if number.shape[0]:
            group[r] = number[group[r]]
        else:
            at = np.searchsorted(keys, group[r])
            group[r] = at if at < keys.shape[0] and keys[at] == group[r] else -1


@kernel(inline=True)
def _pairs_hold(pairs, block, r, places, i, lower, upper, limit):
    """Return whether the conditions on pairs of a left and a right component hold."""
    for q in range(pairs.shape[0]):
        kind = pairs[q, 0]
        x = block[pairs[q, 1], r]
        y = places[pairs[q, 2], i]
        if kind == BEFORE:
            if lower[x] + pairs[q, 3] > upper[y]:
                return False
        elif kind == BEHIND:
            if lower[y] + pairs[q, 3] > upper[x]:
                return False
        elif kind == NEXT_RIGHT:
            if lower[y] > limit[x]:
                return False
        elif lower[x] > limit[y]:
            return False
    return True


@kernel
def extend(
    count, block, left, lo, hi, group, right, pairs, shared, event, twin, lower, upper, limit, row, row_stop,
    programs, cursor, most_steps, room, runs,
):  # fmt: skip
    """Find the right rows that go with left rows, from a cursor on; return the numbers of runs and pairs.

    It pauses after ``most_steps`` or without ``room``. It is done when the cursor is behind the last row.

    Parameters
    ----------
    count, block, left, right, lower, upper, limit
        See :func:`reach`.
    lo, hi, group : (k,) int64
        From :func:`reach`.
    pairs : (q, 4) int64
        Conditions on a left and a right component: their kind, the left component, the right one as a row of
        ``right.places``, and their distance.
    shared : bool
        Whether an event may be a candidate both of a left and of a right component.
    event : (n,) int64, twin : (s, l) int64
        See :func:`eventbased.joins.pivot_join.join`.
    row, row_stop : int64
        The rows of ``programs.code`` to run.
    programs : Programs
    cursor : (3,) int64
        The left row, and the class and right row, to go on with; the last one FRESH for a new left row.
    most_steps : int64
        At least 1; see :func:`confidence.budget.steps_per_call`.
    room : int64
        Most pairs to find, at least 1.
    runs : (3, m) int64, m >= room
        Overwritten: for each run the left row, the first of the right rows that go with it, and how many
        there are, side by side.

    Notes
    -----
    O(log d + right rows between ``lo`` and ``hi`` in the group) for each left row, d being how far the bounds
    move from one to the next; where intervals are equally long and nothing else is asked, O(log) for a run.
    """
    first, last, places, start = right.first, right.last, right.places, right.start
    components = right.components
    classes = right.longest.shape[0]
    longest = right.longest.max()
    length = block.shape[0]
    chosen = np.zeros(length, np.int64)
    whole = np.empty(STACK_DEPTH, np.int64)
    real = np.empty(STACK_DEPTH, np.float64)
    absent = np.empty(STACK_DEPTH, np.bool_)
    taken = np.empty(length * length, np.int64)
    tested = row < row_stop
    paired = pairs.shape[0] > 0
    parents, begins, sizes = runs[PARENT], runs[BEGIN], runs[SIZE]
    weight = 1 + row_stop - row + pairs.shape[0] + places.shape[0]
    runs_found = 0
    found = 0
    steps = 0
    r = cursor[ROW]
    c = cursor[WITHIN]
    i = cursor[INDEX]
    while r < count:
        g = group[r]
        if g < 0 or lo[r] > hi[r] + longest:
            r += 1
            continue
        low, high = lo[r], hi[r]
        if i == FRESH:
            c = 0
        takens = 0
        if shared:
            for s in left:
                e = event[block[s, r]]
                if e >= 0:
                    for t in components:
                        if twin[e, t] >= 0:
                            taken[takens] = twin[e, t]
                            takens += 1
        if tested:
            for s in left:
                chosen[s] = block[s, r]
        while c < classes:
            bucket = g * classes + c
            stop = start[bucket + 1]
            if i == FRESH:
                i = first_above(first, start[bucket], stop, low - right.longest[c] - 1, right.hint[bucket])
                right.hint[bucket] = i
            if right.even[c] and not (tested or paired or takens):
                # The search for the start has left exactly the rows that reach far enough.
                stop = first_above(first, i, stop, high, i)
                size = min(stop - i, room - found)
                if size > 0:
                    parents[runs_found] = r
                    begins[runs_found] = i
                    sizes[runs_found] = size
                    runs_found += 1
                    found += size
                    i += size
                if i < stop:
                    cursor[ROW], cursor[WITHIN], cursor[INDEX] = r, c, i
                    return runs_found, found
            else:
                open_run = -1
                while i < stop and first[i] <= high:
                    if steps >= most_steps:
                        cursor[ROW], cursor[WITHIN], cursor[INDEX] = r, c, i
                        return runs_found, found
                    steps += weight
                    free = last[i] >= low
                    if free and takens:
                        for x in range(takens):
                            for t in range(places.shape[0]):
                                free = free and places[t, i] != taken[x]
                    if free and paired:
                        free = _pairs_hold(pairs, block, r, places, i, lower, upper, limit)
                    if free and tested:
                        for t in range(places.shape[0]):
                            chosen[components[t]] = places[t, i]
                        free = holds(
                            programs.code, row, row_stop, programs.ints, programs.floats, programs.nulls,
                            programs.slots, chosen, whole, real, absent,
                        )  # fmt: skip
                    if free:
                        if found == room:
                            cursor[ROW], cursor[WITHIN], cursor[INDEX] = r, c, i
                            return runs_found, found
                        if open_run == i:
                            sizes[runs_found - 1] += 1
                        else:
                            parents[runs_found] = r
                            begins[runs_found] = i
                            sizes[runs_found] = 1
                            runs_found += 1
                        open_run = i + 1
                        found += 1
                    i += 1
            i = FRESH
            c += 1
        r += 1
    cursor[ROW], cursor[WITHIN], cursor[INDEX] = r, 0, FRESH
    return runs_found, found


@kernel
def append(block, left, places, components, runs, count, out, filled):
    """Write the joined rows of ``count`` runs behind ``filled`` rows of the next block, (l, m) int64.

    O(found) for each component.
    """
    parents, begins, sizes = runs[PARENT], runs[BEGIN], runs[SIZE]
    for s in left:
        source, target = block[s], out[s]
        n = filled
        for k in range(count):
            value = source[parents[k]]
            for _ in range(sizes[k]):
                target[n] = value
                n += 1
    for t in range(places.shape[0]):
        source, target = places[t], out[components[t]]
        n = filled
        for k in range(count):
            i = begins[k]
            for x in range(sizes[k]):
                target[n] = source[i + x]
                n += 1
