"""Query-order ("sorted") evaluation of skip till any match, whole partitions at a time.

With positions subtracted (``A_j = lower_j - j``, ``B_j = upper_j - j``, 0-based) a choice of one event per
component is feasible iff ``A_i <= B_j`` for all i <= j and ``max A <= min B + w``, ``w = W - l``. The join is
pivoted on the first component p that attains ``m = min B``. Given the pivot event, what is left is

* before p: ``A <= m < B``, each component for itself;
* behind p: ``B >= m``, ``A <= m + w`` and ``max(A_{p+1..j-1}) <= B_j``, a chain without a window;

so every match comes out once, and the latest time G_j up to which a chain can still be completed from
component j on follows from running maxima of B. Events with ``A_j > G_{j+1}`` are never entered: no
partial match is a dead end as far as order and window go.

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

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel
from confidence.predicates.bytecode import STACK_DEPTH, holds
from eventbased.config import BLOCK_ROWS, SPARE

__all__ = [
    "BEGIN",
    "COMPONENT_BITS",
    "FIRST",
    "PARENT",
    "PARENT_ROW",
    "PASS",
    "PAUSED",
    "PIVOT",
    "PLACE",
    "POSITIVE",
    "SIZE",
    "TOP",
    "Search",
    "choose",
    "first_above",
    "join",
    "start_search",
]

PASS: Final = 0
CLASS: Final = 1
INDEX: Final = 2
NEXT_PASS: Final = 3

COUNT: Final = 0
ROW: Final = 1
WITHIN: Final = 2
NEXT: Final = 3

END: Final = 0
BEGUN: Final = 1

PLACE: Final = 0
PARENT_ROW: Final = 1
PIVOT: Final = 2
REACH: Final = 3
TOP: Final = 4
FIRST: Final = 5

PARENT: Final = 0
BEGIN: Final = 1
SIZE: Final = 2

FRESH: Final = -1

PAUSED: Final = -1
"""Instead of the number of runs, where a join took the steps of one call without finding a match."""

COMPONENT_BITS: Final = 62
"""Bits for sets of components; two components of a longer pattern share one."""

POSITIVE: Final = 2**48 - 1
"""Mask for a place in an array, which tells the compiler that it is no place from the end."""


@dataclass(frozen=True, slots=True)
class Search:
    """Where a join stands, and the blocks of partial matches behind the matches it found last.

    Attributes
    ----------
    state : (4,) int64
        ``state[PASS]`` is the pivot component of the blocks.
    cursor : (4, l - 1) int64
        For each block its rows, the row to go on with, and the class and candidate to go on with.
    hints : (2, c) int64
        For each class where the last searches ended.
    minimum : (k,) int64
        m = min B of each pivot of the first block.
    begins, ends : (c, k) int64
        For each class and pivot of the first block where the candidates begin and end that go with it.
    blocks : (l - 1, 6, k + SPARE) int64
        Block, then PLACE of the candidate bound last, PARENT_ROW in the block before, PIVOT in the first
        block, REACH = max A from the pivot on, TOP = max A, FIRST = A of component 0 once bound; then row.
    shares : (l - 1, k) int64
        Which components the chosen events could fill, each its own included if there are others: bit j for
        component j, modulo COMPONENT_BITS.
    inner : (3, k + 1) int64
        Runs between two blocks.
    found : (l, l) int64
        Partial matches found with each component for their pivot, of one component, two and so on.
    """

    state: NDArray[np.int64]
    cursor: NDArray[np.int64]
    hints: NDArray[np.int64]
    minimum: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    blocks: NDArray[np.int64]
    shares: NDArray[np.int64]
    inner: NDArray[np.int64]
    found: NDArray[np.int64]

    @property
    def arrays(self) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any]:
        """The arguments of :func:`join`."""
        return (
            self.state, self.cursor, self.hints, self.minimum, self.begins, self.ends, self.blocks,
            self.shares, self.inner, self.found,
        )  # fmt: skip


def start_search(length: int, classes: int, block_rows: int = BLOCK_ROWS) -> Search:
    """Return a search for ``length`` >= 2 components that stands before the first match."""
    state = np.zeros(4, dtype=np.int64)
    cursor = np.zeros((4, length - 1), dtype=np.int64)
    cursor[NEXT] = FRESH
    return Search(
        state=state,
        cursor=cursor,
        hints=np.zeros((2, classes), dtype=np.int64),
        minimum=np.empty(block_rows, dtype=np.int64),
        begins=np.empty((classes, block_rows), dtype=np.int64),
        ends=np.empty((classes, block_rows), dtype=np.int64),
        blocks=np.zeros((length - 1, 6, block_rows + SPARE), dtype=np.int64),
        shares=np.empty((length - 1, block_rows), dtype=np.int64),
        inner=np.empty((3, block_rows + 1), dtype=np.int64),
        found=np.zeros((length, length), dtype=np.int64),
    )


@kernel(inline=True)
def first_above(values, start, stop, x, hint):
    """Return the first index in [start, stop] whose value is > x, galloping away from ``hint``. O(log d)."""
    if hint < start:
        hint = start
    if hint > stop:
        hint = stop
    step = 1
    if hint < stop and values[hint] <= x:
        low = hint + 1
        high = low
        while high < stop and values[high] <= x:
            low = high + 1
            high = low + step
            step *= 2
        if high > stop:
            high = stop
    else:
        high = hint
        low = hint
        while low > start and values[low - 1] > x:
            high = low - 1
            low = high - step
            step *= 2
        if low < start:
            low = start
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _reach_of_pivots(
    p, count, w, first_class, class_start, class_stop, class_longest, lower, highest, hint, begins, ends,
    minimum, latest, reached,
):  # fmt: skip
    """Set where each class's candidates for each pivot begin and end; ``latest`` < m: no match has it.

    O(c log d) for each pivot.
    """
    length = first_class.shape[0] - 1
    for k in range(count):
        latest[k] = minimum[k] + w
    for j in range(length - 1, -1, -1):
        if j == p:
            continue
        behind = j > p
        for k in range(count):
            reached[k] = minimum[k] - 1
        for c in range(first_class[j], first_class[j + 1]):
            start, stop = class_start[c], class_stop[c]
            end, begin = hint[END, c], hint[BEGUN, c]
            back = class_longest[c] + 1 if behind else class_longest[c]
            for k in range(count):
                end = first_above(lower, start, stop, latest[k] if behind else minimum[k], end)
                ends[c, k] = end
                if end > start:
                    reached[k] = max(reached[k], highest[end - 1])
                begin = first_above(lower, start, end, minimum[k] - back, begin)
                begins[c, k] = begin
            hint[END, c] = end
            hint[BEGUN, c] = begin
        for k in range(count):
            if behind:
                latest[k] = min(latest[k], reached[k])
            elif reached[k] <= minimum[k]:
                latest[k] = minimum[k] - 1


@kernel
def _can_straddle(p, first_class, class_longest):
    """Return whether every component before p has an interval that can lie around a pivot's upper bound."""
    possible = True
    for j in range(p):
        possible = possible and class_longest[first_class[j + 1] - 1] > 0
    return possible


@kernel
def _next_pivots(
    w, first_class, class_start, class_stop, class_longest, lower, upper, highest, fills,
    state, hint, minimum, begins, ends, block, share,
):  # fmt: skip
    """Fill the first block with those of the next pivots that may have matches; return how many."""
    capacity = minimum.shape[0]
    pivots = np.empty(capacity, np.int64)
    latest = np.empty(capacity, np.int64)
    reached = np.empty(capacity, np.int64)
    p = state[NEXT_PASS]
    c = state[CLASS]
    following = state[INDEX]
    found = 0
    count = 0
    while count < capacity and c < first_class[p + 1]:
        following = max(following, class_start[c])
        stop = min(class_stop[c], following + capacity - count)
        for pivot in range(following, stop):
            pivots[count] = pivot
            minimum[count] = upper[pivot]
            count += 1
        following = stop
        if following == class_stop[c]:
            c += 1
    _reach_of_pivots(
        p, count, w, first_class, class_start, class_stop, class_longest, lower, highest, hint,
        begins, ends, minimum, latest, reached,
    )  # fmt: skip
    for k in range(count):
        if latest[k] >= minimum[k]:
            block[PLACE, found] = pivots[k]
            block[PIVOT, found] = k
            block[REACH, found] = minimum[k]
            block[TOP, found] = lower[pivots[k]]
            block[FIRST, found] = lower[pivots[k]]
            share[found] = fills[pivots[k]]
            found += 1
    state[PASS] = p
    if c == first_class[p + 1]:
        p += 1
    state[NEXT_PASS] = p
    state[CLASS] = c
    state[INDEX] = following
    return found


@kernel
def choose(ordered, blocks, level, row, chosen):
    """Write the candidates of a partial match, a row of block ``level``, to ``chosen``, (l,) int64. O(l)."""
    for s in range(level, -1, -1):
        chosen[ordered[s]] = blocks[s, PLACE, row]
        row = blocks[s, PARENT_ROW, row]


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
def _extend(
    p, level, first_class, class_shortest, class_longest, lower, upper, follow_start, follow, event, twin,
    limit, order, program_start, code, ints, floats, nulls, slots, minimum, all_begins, all_ends, blocks,
    share, cursor, chosen, whole, real, absent, taken, most_steps, room, runs,
):  # fmt: skip
    """Extend a block's rows by one component, from its cursor on.

    A run is a row and candidates side by side that extend it. Returns the numbers of runs, of extensions, and
    of steps; it pauses after ``most_steps`` or without ``room``.
    """
    ordered = order[p]
    j = ordered[level + 1]
    behind = j > p
    row = program_start[p, level + 1]
    row_stop = program_start[p, level + 2]
    first = first_class[j]
    stop_class = first_class[j + 1]
    rows = cursor[COUNT]
    parents, begins, sizes = runs[PARENT], runs[BEGIN], runs[SIZE]
    places, pivots, reaches = blocks[level, PLACE], blocks[level, PIVOT], blocks[level, REACH]
    limited = limit.shape[0] > 0
    chained = j > p + 1
    bit = 1 << j % COMPONENT_BITS
    follows = follow_start[first]
    plain = not limited and row == row_stop and stop_class == first + 1
    plain = plain and class_shortest[first] == class_longest[first]
    weight = 1 + row_stop - row
    classes = stop_class - first
    count = 0
    found = 0
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
            if plain and not share[r] & bit:
                stop = all_ends[first, pivot]
                begin = min(all_begins[first, pivot], stop)
                if chained:
                    begin = min(follow[follows + places[r] & POSITIVE], stop)
                    if lower[places[r] & POSITIVE] < need:
                        begin = _first_reaching(lower, begin, stop, need - class_longest[first] - 1)
                size = stop - begin
                if size <= room - found:
                    parents[count] = r
                    begins[count] = begin
                    sizes[count] = size
                    count += size > 0
                    found += size
                    r += 1
                    continue
        takens = 0
        shared = share[r] & bit
        if shared or row < row_stop or limited:
            choose(ordered, blocks, level, r, chosen)
        if shared:
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
            if i == FRESH:
                i = min(all_begins[c, pivot], stop)
                if chained:
                    i = min(follow[follow_start[c] + places[r] & POSITIVE], stop)
                    if lower[places[r] & POSITIVE] < need:
                        i = _first_reaching(lower, i, stop, need - class_longest[c] - 1)
            even = class_shortest[c] == class_longest[c] and (behind or not limited)
            if even and row == row_stop:
                # The search for the start has left exactly the candidates that reach far enough.
                while True:
                    cut = stop
                    for s in range(takens):
                        if i <= taken[s] < cut:
                            cut = taken[s]
                    size = min(cut - i, room - found)
                    parents[count] = r
                    begins[count] = i
                    sizes[count] = size
                    count += size > 0
                    found += size
                    i += size
                    if i < cut or cut == stop:
                        break
                    i += 1
            else:
                while i < stop and found < room and steps < most_steps:
                    begin = i
                    while i < stop and i - begin < room - found:
                        free = even or upper[i] >= need
                        if limited and not behind:
                            free = free and lower[chosen[j + 1]] <= limit[i]
                        for s in range(takens):
                            free = free and taken[s] != i
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
                        found += i - begin
                    else:
                        i += 1
            if i < stop:
                cursor[ROW] = r
                cursor[WITHIN] = c
                cursor[NEXT] = i
                return count, found, steps + classes * (r - begun + 1)
            i = FRESH
            c += 1
        r += 1
    cursor[ROW] = r
    cursor[NEXT] = FRESH
    return count, found, steps + classes * (r - begun)


@kernel
def _carry_on(p, level, order, lower, fills, block, share, runs, count, next_block, next_share):
    """Fill the next block from ``count`` runs."""
    j = order[p, level + 1]
    behind = j > p
    n = 0
    for k in range(count):
        r = runs[PARENT, k]
        i = runs[BEGIN, k]
        pivot, reach, top, first, shared = (
            block[PIVOT, r],
            block[REACH, r],
            block[TOP, r],
            block[FIRST, r],
            share[r],
        )
        for _ in range(runs[SIZE, k]):
            a = lower[i & POSITIVE]
            next_block[PLACE, n] = i
            next_block[PARENT_ROW, n] = r
            next_block[PIVOT, n] = pivot
            next_block[REACH, n] = max(reach, a) if behind else reach
            next_block[TOP, n] = max(top, a)
            next_block[FIRST, n] = a if j == 0 else first
            next_share[n] = shared | fills[i & POSITIVE]
            i += 1
            n += 1


@kernel
def join(
    w, first_class, class_start, class_stop, class_shortest, class_longest, lower, upper, highest,
    follow_start, follow, event, fills, twin, limit, order, program_start, code, ints, floats, nulls, slots,
    state, cursor, hints, minimum, begins, ends, blocks, shares, inner, partial, most_steps, room, runs,
):  # fmt: skip
    """Find the next feasible choices; return the numbers of runs and of matches.

    Both are 0 when there are no more. PAUSED and 0 say that it took ``most_steps`` without finding any: there
    may be more.

    Parameters
    ----------
    w : int64
        ``W - l``, at least 0; the pattern has l >= 2 components.
    first_class : (l + 1,) int64
        Classes of component j: ``first_class[j] .. first_class[j + 1] - 1``.
    class_start, class_stop : (c,) int64
        Candidates of a class, as places in the candidate arrays.
    class_shortest, class_longest : (c,) int64
        Smallest and largest ``upper - lower`` of a class.
    lower, upper : (n + SPARE,) int64
        A and B of every candidate, ticks; ascending A within a class.
    highest : (n,) int64
        Running maximum of B within the class.
    follow_start : (c,) int64, follow : (f,) int64
        For class c of component j >= 2 and a candidate i of component j - 1, ``follow[follow_start[c] + i]``
        is the first candidate of c with ``B >= A_i``, were all its intervals as long as the longest.
    event : (n,) int64
        Row of ``twin`` for an event that is a candidate of several components, else -1.
    fills : (n + SPARE,) int64
        Bit j modulo COMPONENT_BITS for each component j that has such an event as a candidate, else 0.
    twin : (s, l) int64
        Where such an event is among the candidates of each component; -1 where it is none.
    limit : (n,) int64, or (0,)
        For each candidate of component j the largest A that a candidate of component j + 1 may have to follow
        it, see :func:`eventbased.gaps.next_match.next_limits`; empty: any.
    order : (l, l) int64
        For each pivot component, the components in the order in which they are bound.
    program_start : (l, l + 1) int64
        For each pivot component and binding step, the rows of ``code`` to run then.
    code, ints, floats, nulls, slots
        Predicates across components, see :func:`confidence.predicates.bytecode.holds`.
    state, cursor, hints, minimum, begins, ends, blocks, shares, inner, partial
        See :class:`Search`.
    most_steps : int64
        At least 1; see :func:`confidence.budget.steps_per_call`.
    room : int64
        Most matches to find, at least 1.
    runs : (3, m) int64, m > room
        Overwritten: for each run the row of the last block, ascending, the first of the candidates of the
        component bound last that complete it, and how many there are, side by side.

    Notes
    -----
    O(runs and partial matches), no partial match being a dead end, where intervals of a class are
    equally long and no predicate is left; and O(n c log d) for the pivots, d being how far the bounds
    move from one to the next.
    """
    length = first_class.shape[0] - 1
    last = length - 2
    chosen = np.empty(length, np.int64)
    whole = np.empty(STACK_DEPTH, np.int64)
    real = np.empty(STACK_DEPTH, np.float64)
    absent = np.empty(STACK_DEPTH, np.bool_)
    taken = np.empty(length, np.int64)
    left = most_steps
    while True:
        if left <= 0:
            return PAUSED, 0
        level = last
        while level >= 0 and cursor[ROW, level] == cursor[COUNT, level]:
            level -= 1
        if level < 0:
            following = state[NEXT_PASS]
            if following == length or not _can_straddle(following, first_class, class_longest):
                return 0, 0
            found = _next_pivots(
                w, first_class, class_start, class_stop, class_longest, lower, upper, highest, fills,
                state, hints, minimum, begins, ends, blocks[0], shares[0],
            )  # fmt: skip
            left -= minimum.shape[0] * class_start.shape[0]
            partial[state[PASS], 0] += found
            cursor[COUNT, 0] = found
            cursor[ROW, 0] = 0
            continue
        p = state[PASS]
        if level == last:
            most, output = room, runs
        else:
            most, output = minimum.shape[0], inner
        count, found, steps = _extend(
            p, level, first_class, class_shortest, class_longest, lower, upper, follow_start, follow, event,
            twin, limit, order, program_start, code, ints, floats, nulls, slots, minimum, begins, ends,
            blocks, shares[level], cursor[:, level], chosen, whole, real, absent, taken, left, most, output,
        )  # fmt: skip
        left -= steps
        partial[p, level + 1] += found
        if level < last:
            _carry_on(
                p, level, order, lower, fills, blocks[level], shares[level], inner, count,
                blocks[level + 1], shares[level + 1],
            )  # fmt: skip
            cursor[COUNT, level + 1] = found
            cursor[ROW, level + 1] = 0
        elif found > 0:
            return count, found
