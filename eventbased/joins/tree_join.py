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
from confidence.predicates.bytecode import (
    STACK_DEPTH,
    UNRELATED,
    holds,
    leading_comparison,
    related,
    value_at,
)
from eventbased.galloping import first_above
from eventbased.joins.join_state import BEGIN, PARENT, SIZE, JoinBytecode

__all__ = [
    "BEFORE",
    "BEHIND",
    "FRESH",
    "NEXT_LEFT",
    "NEXT_RIGHT",
    "ROW",
    "JoinInputs",
    "JoinStep",
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
    """The right side of a join: candidates of a component, or partial matches; n rows."""

    components: Int64
    """(t,) int64."""
    candidates: Int64
    """(t, n) int64. Of each of them, as an index into the layout."""
    first: Int64
    last: Int64
    """(n,) int64. ``max A`` and ``min B`` of each row; within a group and class ``first`` ascends."""
    start: Int64
    """(groups * classes + 1,) int64. Where the rows of class c of group g start: at ``start[g * classes +
    c]``."""
    longest: Int64
    """(classes,) int64. Largest ``last - first`` of a class."""
    even: NDArray[np.bool_]
    """(classes,) bool. Whether ``last - first`` is the same for all rows of a class."""
    hint: Int64
    """(groups * classes,) int64. Where the last searches ended."""
    number: Int64
    """(m,) int64. The group of each key, -1 for none; empty if ``keys`` is used."""
    keys: Int64
    """(k,) int64. The key of each group, ascending."""


class JoinInputs(NamedTuple):
    """The candidates as all joins of a tree see them."""

    lower: Int64
    upper: Int64
    """(n,) int64. A and B of every candidate."""
    event: Int64
    twin: Int64
    """event (n,) int64; twin (s, l) int64. See :class:`eventbased.layout.SharedEvents`."""
    limit: Int64
    """(n,) int64, or (0,). See :func:`eventbased.joins.pivot_join.join`."""
    codes: Int64
    """(c,) int64. Numbers of values that are equated, -1 for null."""
    bytecode: JoinBytecode


class JoinStep(NamedTuple):
    """One join: what a block of partial matches, its left side, is joined with, and on which conditions."""

    left: Int64
    """(s,) int64. The components bound in the block."""
    slack: Int64
    """(s, 2) int64. For each of them by how much ``last`` of the right rows may be below its A, and ``first``
    above its B."""
    right: RightSide
    least: int
    most: int
    """What ``last`` and ``first`` of the right rows have to reach and keep to whatever the left row."""
    equated: Int64
    """(e, 3) int64. For each equality between the two sides the left component, where the codes of its
    candidates are in ``codes`` less where its candidates start, and what to multiply them with."""
    pairs: Int64
    """(q, 4) int64. Conditions on a left and a right component: their kind, the left component, the right one
    as a row of ``right.candidates``, and their distance."""
    shared: bool
    """Whether an event may be a candidate both of a left and of a right component."""
    row: int
    row_stop: int
    """The rows of the bytecode to run."""


@kernel
def reach(count, block, step, inputs, probe):
    """Set the probe of each left row: what it asks of the right rows.

    Parameters
    ----------
    count : int64
        Rows of the block.
    block : (l, k) int64
        The candidate of each row's components.
    step : JoinStep
    inputs : JoinInputs
    probe : (3, k) int64
        Overwritten: what ``last`` of a right row has to reach, what ``first`` has to keep to, and its group;
        -1 if no right row has equal values.

    Notes
    -----
    O(s + e) for each row, and O(log g) where groups are searched for.
    """
    lo, hi, group = probe[0], probe[1], probe[2]
    right, slack, equated, limit = step.right, step.slack, step.equated, inputs.limit
    lower, upper, codes = inputs.lower, inputs.upper, inputs.codes
    components = right.components
    for r in range(count):
        lo[r] = step.least
        hi[r] = step.most
        group[r] = 0
    for k in range(step.left.shape[0]):
        s = step.left[k]
        bound = block[s]
        below, above = slack[k, 0], slack[k, 1]
        for r in range(count):
            lo[r] = max(lo[r], lower[bound[r]] - below)
            hi[r] = min(hi[r], upper[bound[r]] + above)
        if limit.shape[0] and components.shape[0] == 1 and s == components[0] - 1:
            for r in range(count):
                hi[r] = min(hi[r], limit[bound[r]])
    if not equated.shape[0]:
        return
    for e in range(equated.shape[0]):
        bound, shift, factor = block[equated[e, 0]], equated[e, 1], equated[e, 2]
        for r in range(count):
            code = codes[shift + bound[r]]
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
def _pairs_hold(pairs, block, r, candidates, i, inputs):
    """Return whether the conditions on pairs of a left and a right component hold."""
    lower, upper, limit = inputs.lower, inputs.upper, inputs.limit
    for q in range(pairs.shape[0]):
        kind = pairs[q, 0]
        x = block[pairs[q, 1], r]
        y = candidates[pairs[q, 2], i]
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


@kernel(allocates=True)
def extend(count, block, step, inputs, probe, cursor, most_steps, room, spans):
    """Find the right rows that go with left rows, from a cursor on; return the numbers of spans and pairs.

    It pauses after ``most_steps`` or without ``room``. It is done when the cursor is behind the last row.

    Parameters
    ----------
    count, block, step, inputs
        See :func:`reach`.
    probe : (3, k) int64
        From :func:`reach`.
    cursor : (3,) int64
        The left row, and the class and right row, to go on with; the last one FRESH for a new left row.
    most_steps : int64
        At least 1; see :func:`confidence.budget.steps_per_call`.
    room : int64
        Most pairs to find, at least 1.
    spans : (3, m) int64, m >= room
        Overwritten: for each span the left row, the first of the right rows that go with it, and how many
        there are, side by side.

    Notes
    -----
    O(log d + right rows between ``lo`` and ``hi`` in the group) for each left row, d being how far the bounds
    move from one to the next; where intervals are equally long and nothing else is tested, O(log) for a span.
    """
    lo, hi, group = probe[0], probe[1], probe[2]
    right, pairs, row_stop = step.right, step.pairs, step.row_stop
    # Read from their tuples once, not for each candidate.
    code, ints, floats = inputs.bytecode.code, inputs.bytecode.ints, inputs.bytecode.floats
    nulls, slots = inputs.bytecode.nulls, inputs.bytecode.slots
    first, last, candidates, start = right.first, right.last, right.candidates, right.start
    components = right.components
    event, twin = inputs.event, inputs.twin
    classes = right.longest.shape[0]
    longest = right.longest.max()
    length = block.shape[0]
    chosen = np.zeros(length, np.int64)
    whole = np.empty(STACK_DEPTH, np.int64)
    real = np.empty(STACK_DEPTH, np.float64)
    absent = np.empty(STACK_DEPTH, np.bool_)
    taken = np.empty(length * length, np.int64)
    row, tested = step.row, step.row < row_stop
    relation, is_real, own_value, other, side = UNRELATED, False, 0, 0, 0
    for t in range(components.shape[0]):
        if relation == UNRELATED:
            relation, is_real, own_value, other = leading_comparison(
                code, row, row_stop, slots, components[t]
            )
            side = t
    shift, null_shift, number, real_number = 0, 0, 0, 0.0
    if relation != UNRELATED:
        row += 1
        shift, null_shift = slots[own_value, 1], slots[own_value, 2]
    paired = pairs.shape[0] > 0
    parents, begins, sizes = spans[PARENT], spans[BEGIN], spans[SIZE]
    weight = 1 + row_stop - step.row + pairs.shape[0] + candidates.shape[0]
    filled = 0
    matched = 0
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
        if step.shared:
            for s in step.left:
                e = event[block[s, r]]
                if e >= 0:
                    for t in components:
                        if twin[e, t] >= 0:
                            taken[takens] = twin[e, t]
                            takens += 1
        if tested:
            for s in step.left:
                chosen[s] = block[s, r]
        if relation != UNRELATED:
            k = chosen[slots[other, 0]]
            is_known, number, real_number = value_at(
                is_real, slots[other, 1] + k, slots[other, 2] + k, ints, floats, nulls
            )
            if not is_known:
                i = FRESH
                r += 1
                continue
        while c < classes:
            bucket = g * classes + c
            stop = start[bucket + 1]
            if i == FRESH:
                i = first_above(first, start[bucket], stop, low - right.longest[c] - 1, right.hint[bucket])
                right.hint[bucket] = i
            if right.even[c] and not (tested or paired or takens):
                # The search for the start has left exactly the rows that reach far enough.
                stop = first_above(first, i, stop, high, i)
                size = min(stop - i, room - matched)
                if size > 0:
                    parents[filled] = r
                    begins[filled] = i
                    sizes[filled] = size
                    filled += 1
                    matched += size
                    i += size
                if i < stop:
                    cursor[ROW], cursor[WITHIN], cursor[INDEX] = r, c, i
                    return filled, matched
            else:
                open_span = -1
                while i < stop and first[i] <= high:
                    if steps >= most_steps:
                        cursor[ROW], cursor[WITHIN], cursor[INDEX] = r, c, i
                        return filled, matched
                    steps += weight
                    free = last[i] >= low
                    if free and takens:
                        for x in range(takens):
                            for t in range(candidates.shape[0]):
                                free = free and candidates[t, i] != taken[x]
                    if free and relation != UNRELATED:
                        k = candidates[side, i]
                        free = related(
                            relation,
                            is_real,
                            shift + k,
                            null_shift + k,
                            ints,
                            floats,
                            nulls,
                            number,
                            real_number,
                        )
                    if free and paired:
                        free = _pairs_hold(pairs, block, r, candidates, i, inputs)
                    if free and row < row_stop:
                        for t in range(candidates.shape[0]):
                            chosen[components[t]] = candidates[t, i]
                        free = holds(
                            code, row, row_stop, ints, floats, nulls, slots, chosen, whole, real, absent
                        )
                    if free:
                        if matched == room:
                            cursor[ROW], cursor[WITHIN], cursor[INDEX] = r, c, i
                            return filled, matched
                        if open_span == i:
                            sizes[filled - 1] += 1
                        else:
                            parents[filled] = r
                            begins[filled] = i
                            sizes[filled] = 1
                            filled += 1
                        open_span = i + 1
                        matched += 1
                    i += 1
            i = FRESH
            c += 1
        r += 1
    cursor[ROW], cursor[WITHIN], cursor[INDEX] = r, 0, FRESH
    return filled, matched


@kernel
def append(block, step, spans, count, out, filled):
    """Write the joined rows of ``count`` spans behind ``filled`` rows of the next block, (l, m) int64.

    O(found) for each component.
    """
    parents, begins, sizes = spans[PARENT], spans[BEGIN], spans[SIZE]
    right = step.right
    for s in step.left:
        source, target = block[s], out[s]
        n = filled
        for k in range(count):
            value = source[parents[k]]
            for _ in range(sizes[k]):
                target[n] = value
                n += 1
    for t in range(right.components.shape[0]):
        source, target = right.candidates[t], out[right.components[t]]
        n = filled
        for k in range(count):
            i = begins[k]
            for x in range(sizes[k]):
                target[n] = source[i + x]
                n += 1
