"""Runs of the any-state method: partial matches that may begin at, and lack, any component.

Every run keeps valid bounds for *all* components, filled or not. With positions subtracted and
``w = W - l`` they are

    low_k  = max( A_i of the filled i <= k,  A_i - w of the filled i > k )
    high_k = min( B_i of the filled i >= k,  B_i + w of the filled i < k )

which are the paper's vlb and vub (C.2), carried over components not matched yet and made tight under the
window. An event fits component k iff ``A <= high_k`` and ``B >= low_k``: two comparisons decide order
*and* window against everything the run holds. As every event is tried on every run when it is fed, a
component that a run lacks can only be filled by an event not fed yet; so a run is dead once
``high_k + k`` of one such component is below every lower bound still to come. That one rule contains
both of C.2 (the window gone by; an empty predecessor that nothing can fill any more).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import steps_per_call
from confidence.kernel import kernel
from confidence.pools import grown
from confidence.predicates.bytecode import STACK_DEPTH, holds
from eventbased.incremental.candidate_pool import (
    COMPONENT,
    EVENT,
    LOWER,
    PARTITION,
    SHARED,
    UPPER,
    BytecodeArrays,
)

__all__ = ["MOST_COMPONENTS", "RunPool"]

Int64 = NDArray[np.int64]

MOST_COMPONENTS: Final = 62
"""Components of a pattern whose runs keep what they hold as the bits of an int64."""

NEXT: Final = 0
MASK: Final = 1
DIES: Final = 2
LIST: Final = 3
HEADER: Final = 4
# Behind the header: low, high and the candidate's index for each component.

TOP: Final = 0
COMPLETED: Final = 1

FIRST_RUNS: Final = 1024
"""Runs that there is room for at first."""

FIRST_FOUND: Final = 1 << 16
"""Matches that there is room for at first."""


class RunArrays(NamedTuple):
    """The runs of all partitions.

    Attributes
    ----------
    rows : (c, 4 + 3 l) int64
        Next run of its list or -1; components it holds, as bits (0: dead); the last tick at which every
        missing component can begin; its list; low, high and candidate by component.
    head, held : (lists,) int64
        First run and number of runs of each list: one list for a partition, or with ``prefixes`` one for
        each number of components held but the last.
    state : (2,) int64
        Rows of ``rows`` and of ``completed`` in use.
    completed : (f, l + 2) int64
        Completed matches: the indices of the candidates, and the tight time range, ticks.
    """

    rows: Int64
    head: Int64
    held: Int64
    state: Int64
    completed: Int64


@kernel
def _holds_event(runs, r, length, event, number):
    """Return whether a run holds the event of that number. O(l)."""
    contained = False
    for k in range(length):
        if (runs[r, MASK] >> k) & 1:
            contained = contained or event[runs[r, HEADER + 2 * length + k]] == number
    return contained


@kernel
def _satisfies(runs, r, length, index, component, mask, bytecode, chosen, whole, real, absent):
    """Return whether the predicates hold that a run can be asked once it takes a candidate."""
    for k in range(length):
        chosen[k] = runs[r, HEADER + 2 * length + k]
    chosen[component] = index
    for p in range(bytecode.mask.shape[0]):
        bound_mask = bytecode.mask[p]
        if (bound_mask >> component) & 1 and bound_mask & ~mask == 0:
            start, stop = bytecode.start[p], bytecode.start[p + 1]
            if not holds(
                bytecode.code, start, stop, bytecode.ints, bytecode.floats, bytecode.nulls, bytecode.slots,
                chosen, whole, real, absent,
            ):  # fmt: skip
                return False
    return True


@kernel
def _start(runs, row, length, w, index, component, lower, upper):
    """Write the run of one candidate to ``row``."""
    runs[row, MASK] = np.int64(1) << component
    dies = upper + w + length
    for k in range(length):
        runs[row, HEADER + k] = lower if k >= component else lower - w
        high = upper if k <= component else upper + w
        runs[row, HEADER + length + k] = high
        if k != component:
            dies = min(dies, high + k)
    runs[row, HEADER + 2 * length + component] = index
    runs[row, DIES] = dies


@kernel
def _extend(runs, r, row, length, w, index, component, lower, upper, mask):
    """Write to ``row`` the clone of run r that takes a candidate, its bounds updated to both sides. O(l)."""
    runs[row, MASK] = mask
    dies = upper + w + length
    for k in range(length):
        low = lower if k >= component else lower - w
        high = upper if k <= component else upper + w
        low = max(low, runs[r, HEADER + k])
        high = min(high, runs[r, HEADER + length + k])
        runs[row, HEADER + k] = low
        runs[row, HEADER + length + k] = high
        if not (mask >> k) & 1:
            dies = min(dies, high + k)
        runs[row, HEADER + 2 * length + k] = runs[r, HEADER + 2 * length + k]
    runs[row, HEADER + 2 * length + component] = index
    runs[row, DIES] = dies


@kernel(allocates=True)
def feed(order, start, floor, prefixes, length, w, candidates, bytecode, most_steps, pool):
    """Feed candidates to the runs until done, out of room, or behind the candidate that exceeds the budget.

    Parameters
    ----------
    order : (n,) int64
        Indices of the candidates in the order of feeding.
    start : int64
        How many of them were fed before.
    floor : (n, 2) int64
        No event fed to the i-th candidate's partition from it on, now or ever, has a lower bound below
        ``floor[i, 0]``, and none after it below ``floor[i, 1]``, ticks.
    prefixes : bool
        Whether runs hold a prefix of the pattern and only start at its first component (query order).
    length, w : int64
        Number of components l >= 2, and ``W - l``, ticks.
    candidates : (7, capacity) int64
        See :class:`eventbased.incremental.candidate_pool.CandidatePool`.
    bytecode : BytecodeArrays
    most_steps : int64
        See :func:`confidence.budget.steps_per_call`.
    pool : RunArrays

    Returns
    -------
    done : int64
        How many of ``order`` are.
    wants_room : bool
        Whether it takes more room to go on.

    Notes
    -----
    O(runs of the partition) for each candidate, and O(l) for each run made. Dead runs met on the way are
    taken off their list.
    """
    whole = np.empty(STACK_DEPTH, np.int64)
    real = np.empty(STACK_DEPTH, np.float64)
    absent = np.empty(STACK_DEPTH, np.bool_)
    chosen = np.empty(length, np.int64)
    runs, head, held, completed = pool.rows, pool.head, pool.held, pool.completed
    components = candidates[COMPONENT]
    partitions = candidates[PARTITION]
    lowers = candidates[LOWER]
    uppers = candidates[UPPER]
    event = candidates[EVENT]
    shared = candidates[SHARED]
    conditional = bytecode.mask.shape[0] > 0
    lists = length - 1 if prefixes else 1
    full = (np.int64(1) << length) - 1
    top = pool.state[TOP]
    count = pool.state[COMPLETED]
    done = start
    steps = 0
    weight = 1 + bytecode.code.shape[0]
    wants_room = False
    while done < order.shape[0] and steps < most_steps:
        index = order[done]
        component = components[index]
        first = prefixes and component == 0
        target = partitions[index] * lists + (component if prefixes else 0)
        source = target - 1 if prefixes and not first else target
        met = 0 if first else held[source]
        if top + met + 1 > runs.shape[0] or count + met > completed.shape[0]:
            wants_room = True
            break
        steps += 1
        lower = lowers[index]
        upper = uppers[index]
        number = event[index]
        taken_elsewhere = shared[index] != 0
        bit = np.int64(1) << component
        oldest = floor[done, 0]
        later = floor[done, 1]
        fresh = -1
        fresh_end = -1
        previous = -1
        r = -1 if first else head[source]
        while r >= 0:
            steps += 1
            following = runs[r, NEXT]
            if runs[r, DIES] < oldest:
                runs[r, MASK] = 0
                held[source] -= 1
                if previous < 0:
                    head[source] = following
                else:
                    runs[previous, NEXT] = following
                r = following
                continue
            previous = r
            mask = runs[r, MASK]
            fits = (
                mask & bit == 0
                and lower <= runs[r, HEADER + length + component]
                and runs[r, HEADER + component] <= upper
                and not (taken_elsewhere and _holds_event(runs, r, length, event, number))
            )
            if fits and conditional:
                steps += weight
                fits = _satisfies(
                    runs, r, length, index, component, mask | bit, bytecode, chosen, whole, real, absent
                )
            if fits:
                _extend(runs, r, top, length, w, index, component, lower, upper, mask | bit)
                if mask | bit == full:
                    for k in range(length):
                        completed[count, k] = runs[top, HEADER + 2 * length + k]
                    completed[count, length] = runs[top, HEADER]
                    completed[count, length + 1] = runs[top, HEADER + 2 * length - 1] + length - 1
                    count += 1
                elif runs[top, DIES] >= later:
                    runs[top, LIST] = target
                    runs[top, NEXT] = fresh
                    fresh = top
                    if fresh_end < 0:
                        fresh_end = top
                    held[target] += 1
                    top += 1
            r = following
        if first or not prefixes:
            _start(runs, top, length, w, index, component, lower, upper)
            if runs[top, DIES] >= later:
                runs[top, LIST] = target
                runs[top, NEXT] = fresh
                fresh = top
                if fresh_end < 0:
                    fresh_end = top
                held[target] += 1
                top += 1
        if fresh >= 0:
            runs[fresh_end, NEXT] = head[target]
            head[target] = fresh
        done += 1
    pool.state[TOP] = top
    pool.state[COMPLETED] = count
    return done, wants_room


@kernel
def _evict_dead(pool, lists, floor):
    """Move the runs that can still grow together, and relink their lists."""
    runs, head, held = pool.rows, pool.head, pool.held
    top = pool.state[TOP]
    for r in range(top):
        if runs[r, MASK]:
            head[runs[r, LIST]] = -1
            held[runs[r, LIST]] = 0
    kept = 0
    for r in range(top):
        at = runs[r, LIST]
        if runs[r, MASK] and runs[r, DIES] >= floor[at // lists]:
            for k in range(runs.shape[1] if kept < r else 0):
                runs[kept, k] = runs[r, k]
            runs[kept, NEXT] = head[at]
            head[at] = kept
            held[at] += 1
            kept += 1
    pool.state[TOP] = kept


@kernel
def _mark(pool, length, used):
    runs = pool.rows
    for r in range(pool.state[TOP]):
        for k in range(length):
            if (runs[r, MASK] >> k) & 1:
                used[runs[r, HEADER + 2 * length + k]] = True


@kernel
def _move(pool, length, mapping):
    runs = pool.rows
    for r in range(pool.state[TOP]):
        for k in range(length):
            if (runs[r, MASK] >> k) & 1:
                at = HEADER + 2 * length + k
                runs[r, at] = mapping[runs[r, at]]


class RunPool:
    """The runs of all partitions.

    Parameters
    ----------
    length : int
        Number of components, 2 to ``MOST_COMPONENTS``.
    w : int
        ``W - length``, ticks, 0 to 2**62.
    prefixes : bool
        See :func:`feed`.

    Attributes
    ----------
    arrays : RunArrays
    """

    def __init__(self, length: int, w: int, prefixes: bool) -> None:
        self.length = length
        self.w = w
        self.prefixes = prefixes
        self._lists = length - 1 if prefixes else 1
        self.arrays = RunArrays(
            rows=np.empty((FIRST_RUNS, HEADER + 3 * length), dtype=np.int64),
            head=np.zeros(0, dtype=np.int64),
            held=np.zeros(0, dtype=np.int64),
            state=np.zeros(2, dtype=np.int64),
            completed=np.empty((FIRST_FOUND, length + 2), dtype=np.int64),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state but for free rows and completed matches, which have left: room is made again."""
        arrays = self.arrays
        in_use = arrays._replace(rows=arrays.rows[: self.size], completed=arrays.completed[:0])
        return {**self.__dict__, "arrays": in_use}

    def __setstate__(self, held: dict[str, Any]) -> None:
        """Take what was pickled, and make room."""
        self.__dict__.update(held)
        completed = np.empty((FIRST_FOUND, self.length + 2), dtype=np.int64)
        rows = grown(self.arrays.rows, FIRST_RUNS, axis=0)
        self.arrays = self.arrays._replace(rows=rows, completed=completed)

    @property
    def size(self) -> int:
        """Rows in use, dead ones that nobody met since included."""
        return int(self.arrays.state[TOP])

    def admit(self, partitions: int) -> None:
        """Make room for partitions 0 to ``partitions - 1``."""
        before, lists = len(self.arrays.head), partitions * self._lists
        head, held = grown(self.arrays.head, lists), grown(self.arrays.held, lists)
        head[before:] = -1
        self.arrays = self.arrays._replace(head=head, held=held)

    def feed(
        self, order: Int64, start: int, floor: Int64, candidates: Int64, bytecode: BytecodeArrays
    ) -> tuple[int, bool, Int64]:
        """Feed candidates; return how many are done, and the matches completed (a view).

        Fewer than all are done when it takes :meth:`make_room`, which the second value says, or when they
        are more than one call of the kernel feeds.
        """
        done, wants_room = feed(
            order, start, floor, self.prefixes, self.length, self.w, candidates, bytecode, steps_per_call(),
            self.arrays,
        )  # fmt: skip
        count = int(self.arrays.state[COMPLETED])
        self.arrays.state[COMPLETED] = 0
        return int(done), bool(wants_room), self.arrays.completed[:count]

    def make_room(self, index: int, candidates: Int64) -> None:
        """Make room for what feeding one more candidate can bring."""
        at = int(candidates[PARTITION, index]) * self._lists
        met = int(self.arrays.held[at : at + self._lists].max())
        completed = self.arrays.completed
        if met > len(completed):
            completed = np.empty((2 * met, self.length + 2), dtype=np.int64)
        # Half of the rows stay free, so that a pass over all of them is paid for by as many new runs.
        rows = grown(self.arrays.rows, 2 * self.size + met + 1, axis=0)
        self.arrays = self.arrays._replace(rows=rows, completed=completed)

    def evict_dead(self, floor: Int64) -> None:
        """Drop the runs that nothing can complete, given the floor of each partition, ticks. O(size)."""
        _evict_dead(self.arrays, self._lists, floor)

    def mark(self, used: NDArray[np.bool_]) -> None:
        """Mark the candidates that runs hold; dead runs were dropped."""
        _mark(self.arrays, self.length, used)

    def move(self, mapping: Int64) -> None:
        """Follow candidates to their new indices."""
        _move(self.arrays, self.length, mapping)

    def earliest(self) -> int | None:
        """Return the earliest first time of a match that a run can become, ticks; None without runs."""
        return int(self.arrays.rows[: self.size, HEADER].min()) if self.size else None
