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

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import steps_per_call
from confidence.kernel import kernel
from confidence.predicates.bytecode import STACK_DEPTH, holds
from eventbased.config import FIRST_FOUND, FIRST_RUNS
from eventbased.incremental.candidate_pool import BytecodeArrays, CandidateArrays, grown

__all__ = ["MOST_COMPONENTS", "RunPool"]

Int64 = NDArray[np.int64]

MOST_COMPONENTS: Final = 62
"""Components of a pattern whose runs keep what they hold as the bits of an int64."""

NEXT: Final = 0
MASK: Final = 1
DIES: Final = 2
LIST: Final = 3
HEADER: Final = 4
# Behind the header: low, high and the candidate's place for each component.

TOP: Final = 0
FOUND: Final = 1


@kernel
def _holds_event(runs, r, length, event, number):
    """Return whether a run holds the event of that number. O(l)."""
    contained = False
    for k in range(length):
        if (runs[r, MASK] >> k) & 1:
            contained = contained or event[runs[r, HEADER + 2 * length + k]] == number
    return contained


@kernel
def _satisfies(runs, r, length, place, component, mask, programs, chosen, whole, real, absent):
    """Return whether the predicates hold that a run can be asked once it takes a candidate."""
    for k in range(length):
        chosen[k] = runs[r, HEADER + 2 * length + k]
    chosen[component] = place
    for p in range(programs.mask.shape[0]):
        wanted = programs.mask[p]
        if (wanted >> component) & 1 and wanted & ~mask == 0:
            start, stop = programs.start[p], programs.start[p + 1]
            if not holds(
                programs.code, start, stop, programs.ints, programs.floats, programs.nulls, programs.slots,
                chosen, whole, real, absent,
            ):  # fmt: skip
                return False
    return True


@kernel
def _start(runs, row, length, w, place, component, lower, upper):
    """Write the run of one candidate to ``row``."""
    runs[row, MASK] = np.int64(1) << component
    dies = upper + w + length
    for k in range(length):
        runs[row, HEADER + k] = lower if k >= component else lower - w
        high = upper if k <= component else upper + w
        runs[row, HEADER + length + k] = high
        if k != component:
            dies = min(dies, high + k)
    runs[row, HEADER + 2 * length + component] = place
    runs[row, DIES] = dies


@kernel
def _extend(runs, r, row, length, w, place, component, lower, upper, mask):
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
    runs[row, HEADER + 2 * length + component] = place
    runs[row, DIES] = dies


@kernel
def feed(
    order, start, floor, prefixes, length, w, candidates, programs, most_steps, runs, head, held, state, found
):  # fmt: skip
    """Feed candidates to the runs until done, out of room, or behind the candidate that exceeds the budget.

    Parameters
    ----------
    order : (n,) int64
        Places of the candidates in the order of feeding.
    start : int64
        How many of them were fed before.
    floor : (n, 2) int64
        No event fed to the i-th candidate's partition from it on, now or ever, has a lower bound below
        ``floor[i, 0]``, and none after it below ``floor[i, 1]``, ticks.
    prefixes : bool
        Whether runs hold a prefix of the pattern and only start at its first component (query order).
    length, w : int64
        Number of components l >= 2, and ``W - l``.
    candidates : CandidateArrays
    programs : BytecodeArrays
    most_steps : int64
        See :func:`confidence.budget.steps_per_call`.
    runs : (c, 4 + 3 l) int64
        Next run of its list or -1; components it holds, as bits (0: dead); the last tick at which every
        missing component can begin; its list; low, high and place by component.
    head, held : (lists,) int64
        First run and number of runs of each list: one list for a partition, or with ``prefixes`` one for
        each number of components held but the last.
    state : (2,) int64
        Rows of ``runs`` and of ``found`` in use.
    found : (f, l + 2) int64
        Completed matches: the places of the candidates, and the tight time range.

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
    components = candidates.component
    partitions = candidates.partition
    lowers = candidates.lower
    uppers = candidates.upper
    event = candidates.event
    shared = candidates.shared
    conditional = programs.mask.shape[0] > 0
    lists = length - 1 if prefixes else 1
    full = (np.int64(1) << length) - 1
    top = state[TOP]
    count = state[FOUND]
    done = start
    steps = 0
    weight = 1 + programs.code.shape[0]
    wants_room = False
    while done < order.shape[0] and steps < most_steps:
        place = order[done]
        component = components[place]
        first = prefixes and component == 0
        target = partitions[place] * lists + (component if prefixes else 0)
        source = target - 1 if prefixes and not first else target
        met = 0 if first else held[source]
        if top + met + 1 > runs.shape[0] or count + met > found.shape[0]:
            wants_room = True
            break
        steps += 1
        lower = lowers[place]
        upper = uppers[place]
        number = event[place]
        taken_elsewhere = shared[place]
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
                    runs, r, length, place, component, mask | bit, programs, chosen, whole, real, absent
                )
            if fits:
                _extend(runs, r, top, length, w, place, component, lower, upper, mask | bit)
                if mask | bit == full:
                    for k in range(length):
                        found[count, k] = runs[top, HEADER + 2 * length + k]
                    found[count, length] = runs[top, HEADER]
                    found[count, length + 1] = runs[top, HEADER + 2 * length - 1] + length - 1
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
            _start(runs, top, length, w, place, component, lower, upper)
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
    state[TOP] = top
    state[FOUND] = count
    return done, wants_room


@kernel
def _let_go_of_dead(runs, top, lists, floor, head, held):
    """Move the runs that can still grow together, relink their lists, and return how many there are."""
    for r in range(top):
        if runs[r, MASK]:
            head[runs[r, LIST]] = -1
            held[runs[r, LIST]] = 0
    kept = 0
    for r in range(top):
        at = runs[r, LIST]
        if runs[r, MASK] and runs[r, DIES] >= floor[at // lists]:
            if kept < r:
                runs[kept] = runs[r]
            runs[kept, NEXT] = head[at]
            head[at] = kept
            held[at] += 1
            kept += 1
    return kept


@kernel
def _mark(runs, top, length, used):
    for r in range(top):
        for k in range(length):
            if (runs[r, MASK] >> k) & 1:
                used[runs[r, HEADER + 2 * length + k]] = True


@kernel
def _move(runs, top, length, mapping):
    for r in range(top):
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
    """

    def __init__(self, length: int, w: int, prefixes: bool) -> None:
        self.length = length
        self.w = w
        self.prefixes = prefixes
        self._lists = length - 1 if prefixes else 1
        self._runs: Int64 = np.empty((FIRST_RUNS, HEADER + 3 * length), dtype=np.int64)
        self._head: Int64 = np.zeros(0, dtype=np.int64)
        self._held: Int64 = np.zeros(0, dtype=np.int64)
        self._state: Int64 = np.zeros(2, dtype=np.int64)
        self._found: Int64 = np.empty((FIRST_FOUND, length + 2), dtype=np.int64)

    @property
    def size(self) -> int:
        """Rows in use, dead ones that nobody met since included."""
        return int(self._state[TOP])

    def admit(self, partitions: int) -> None:
        """Make room for partitions 0 to ``partitions - 1``."""
        before = len(self._head)
        self._head = grown(self._head, partitions * self._lists)
        self._held = grown(self._held, partitions * self._lists)
        self._head[before:] = -1

    def feed(
        self, order: Int64, start: int, floor: Int64, candidates: CandidateArrays, programs: BytecodeArrays
    ) -> tuple[int, bool, Int64]:
        """Feed candidates; return how many are done, and the matches completed (a view).

        Fewer than all are done when it takes :meth:`make_room`, which the second value says, or when they
        are more than one call of the kernel feeds.
        """
        done, wants_room = feed(
            order, start, floor, self.prefixes, self.length, self.w, candidates, programs, steps_per_call(),
            self._runs, self._head, self._held, self._state, self._found,
        )  # fmt: skip
        count = int(self._state[FOUND])
        self._state[FOUND] = 0
        return int(done), bool(wants_room), self._found[:count]

    def make_room(self, place: int, candidates: CandidateArrays) -> None:
        """Make room for what feeding one more candidate can bring."""
        at = int(candidates.partition[place]) * self._lists
        met = int(self._held[at : at + self._lists].max())
        # Half of the rows stay free, so that a pass over all of them is paid for by as many new runs.
        if 2 * self.size + met + 1 > len(self._runs):
            longer = np.empty((2 * len(self._runs) + met, self._runs.shape[1]), dtype=np.int64)
            longer[: self.size] = self._runs[: self.size]
            self._runs = longer
        if met > len(self._found):
            self._found = np.empty((2 * met, self.length + 2), dtype=np.int64)

    def let_go_of_dead(self, floor: Int64) -> None:
        """Let go of the runs that nothing can complete. O(size).

        Parameters
        ----------
        floor : (partitions,) int64
            No event fed to the partition from now on has a smaller lower bound, ticks.
        """
        self._state[TOP] = _let_go_of_dead(
            self._runs, self._state[TOP], self._lists, floor, self._head, self._held
        )

    def mark(self, used: NDArray[np.bool_]) -> None:
        """Mark the candidates that runs hold; dead runs were let go of."""
        _mark(self._runs, self._state[TOP], self.length, used)

    def move(self, mapping: Int64) -> None:
        """Follow candidates to their new places."""
        _move(self._runs, self._state[TOP], self.length, mapping)

    def earliest(self) -> int | None:
        """Return the earliest first time of a match that a run can become, ticks; None without runs."""
        return int(self._runs[: self.size, HEADER].min()) if self.size else None

    def check(self) -> None:
        """Assert the invariants: lists hold the living runs of their partition, bounds leave room."""
        seen: list[Any] = []
        for at, first in enumerate(self._head.tolist()):
            r, count = first, 0
            while r >= 0:
                row = self._runs[r]
                low, high = row[HEADER : HEADER + self.length], row[HEADER + self.length :][: self.length]
                assert row[MASK]
                assert row[LIST] == at
                assert (low <= high).all()
                assert (np.diff(high) >= 0).all()
                assert (np.diff(low) >= 0).all()
                seen.append(r)
                count += 1
                r = int(row[NEXT])
            assert self._held[at] == count
        alive = np.flatnonzero(self._runs[: self.size, MASK])
        assert sorted(seen) == alive.tolist()
