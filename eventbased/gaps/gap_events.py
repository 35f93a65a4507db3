"""Which events must stay out of the gaps of grown matches, and how likely it is that they do.

One condition a gap (Zhang, Diao, Immerman, PVLDB 3(1), 2010, section 2; negation as in SASE+, Agrawal et al.,
SIGMOD 2008): under skip till next match no event that could have been taken there, under contiguity no event
at all, for a negated component no event that matches it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.arrays import largest
from confidence.budget import checkpoint, multiplications_per_call
from confidence.chain.tick_pairs import MOST_EDGES, enlarged
from confidence.chain.uniform import tight_bounds
from confidence.gaps.coupled import INEXACT, gap_confidence
from confidence.gaps.forbidden import COUPLED, DONE, NO_SPACE, SPENT, TOO_DEAR, workspace
from confidence.gaps.monte_carlo import sampled_confidence
from confidence.kernel import kernel
from confidence.predicates.conditions import Conditions, Scratch, accumulate, all_hold
from eventbased.joins.pivot_join import first_above

__all__ = [
    "NO_BOXES",
    "CostlyGapsError",
    "ForbiddenEvents",
    "GapConfidences",
    "GapRules",
    "clip",
    "collect",
    "contiguity_limits",
    "forbidden_in",
]

ALL: Final = 0
COSTLY: Final = 1
SPACE: Final = 2
PAUSED: Final = 4

UNLIMITED: Final = 2**63 - 1

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

NO_BOXES: Final[Int64] = np.empty((2, 0), dtype=np.int64)


class ForbiddenEvents(NamedTuple):
    """Pools of events that may be forbidden; within a group of a pool by ascending ``lower``.

    Attributes
    ----------
    lower, upper : (n,) int64
        Ticks, inclusive.
    highest : (n,) int64
        Running maxima of ``upper`` within a group.
    row : (n,) int64
        The event.
    place : (n,) int64
        What stands for it in conditions.
    group_start : (g + 1,) int64
        Where each group starts.
    pool_start : (p + 1,) int64
        The first group of each pool.
    group_of : (p, n_0) int64
        For each pool the group, counted from the pool's first, of matches that begin with a candidate of the
        first component; -1: none.
    """

    lower: Int64
    upper: Int64
    highest: Int64
    row: Int64
    place: Int64
    group_start: Int64
    pool_start: Int64
    group_of: Int64


class GapRules(NamedTuple):
    """Which pools are forbidden in which gaps.

    Attributes
    ----------
    taking : (l,) int64
        The pool of what could have been taken instead of an event of each component; -1: none.
    between : int
        The pool forbidden between any two neighbours; -1: none.
    negated : (n,) int64
        The pool of each negated component.
    after : (n,) int64
        How many positive components stand before it.
    """

    taking: Int64
    between: int
    negated: Int64
    after: Int64


@kernel
def contiguity_limits(upper, group, lower_in_pool, upper_in_pool, group_start, out):
    """Write the latest start of an event that can be the direct neighbour of each candidate. O(n log n).

    An event that starts after the candidate ends, and ends before the neighbour starts, is between the two in
    every world, and so no other event of the match.

    Parameters
    ----------
    upper : (n,) int64
        Of the candidates, ticks.
    group : (n,) int64
        Their groups; -1: none.
    lower_in_pool, upper_in_pool, group_start
        See :class:`ForbiddenEvents`.
    out : (n,) int64
        Overwritten.
    """
    count = lower_in_pool.shape[0]
    smallest = np.empty(count + 1, np.int64)
    smallest[count] = UNLIMITED
    for g in range(group_start.shape[0] - 1):
        best = UNLIMITED
        for x in range(group_start[g + 1] - 1, group_start[g] - 1, -1):
            best = min(best, upper_in_pool[x])
            smallest[x] = best
    for i in range(upper.shape[0]):
        out[i] = UNLIMITED
        g = group[i]
        if g >= 0:
            start, stop = group_start[g], group_start[g + 1]
            x = first_above(lower_in_pool, start, stop, upper[i], start)
            if x < stop:
                out[i] = smallest[x]


@kernel
def _pool_range(events, pool, first, above, until):
    """Return the events of a pool that may end after ``above`` and start before ``until``."""
    group = events.group_of[pool, first]
    if group < 0:
        return 0, 0
    g = events.pool_start[pool] + group
    start, stop = events.group_start[g], events.group_start[g + 1]
    begin = first_above(events.highest, start, stop, above, start)
    return begin, first_above(events.lower, begin, stop, until - 1, begin)


@kernel
def collect(
    events, pool, first, above, until, gap, conditions, work, begin, end, newest, slot, own, mark, offsets,
    found, room,
):  # fmt: skip
    """Add the events of a pool that are forbidden in a gap to those found; return their number, or -1.

    ``slot`` is the place in ``work.element`` of the event asked about; -1: nothing is asked.
    """
    x_low, x_high, x_offset, x_row, x_gap = room
    x, stop = _pool_range(events, pool, first, above, until)
    kept = work.element[max(slot, 0)]
    while x < stop:
        work.steps[0] += 1
        row = events.row[x]
        at = mark[row]
        if events.upper[x] > above and at != own:
            free = True
            if slot >= 0 and begin < end:
                work.element[slot] = events.place[x]
                free = all_hold(conditions, work, begin, end, newest)
            if free:
                if at < 0:
                    if found == x_low.shape[0]:
                        work.element[max(slot, 0)] = kept
                        return -1
                    at = found
                    mark[row] = at
                    x_low[at], x_high[at], x_offset[at] = events.lower[x], events.upper[x], offsets[row]
                    x_row[at] = row
                    for g in range(x_gap.shape[1]):
                        x_gap[at, g] = False
                    found += 1
                x_gap[at, gap] = True
        x += 1
    work.element[max(slot, 0)] = kept
    return found


@kernel
def forbidden_in(
    events, rules, conditions, component, a, b, window, first, work, own, mark, offsets, room,
):  # fmt: skip
    """List the events that are forbidden in the gaps of a match; return their number, -1 without room."""
    count = component.shape[0]
    length = rules.taking.shape[0]
    found = 0
    for d in range(1, count):
        j = component[d]
        pool = rules.taking[j]
        if pool >= 0:
            number = d - work.start[j]
            begin = conditions.stages[j, 0] if number == 0 else conditions.stages[j, 1]
            stop = work.stop[j]
            work.stop[j] = d + 1
            found = collect(
                events, pool, first, a[d - 1], b[d], d, conditions, work, begin, conditions.stages[j, 2], j,
                d, own, mark, offsets, found, room,
            )  # fmt: skip
            work.stop[j] = stop
        elif rules.between >= 0:
            found = collect(
                events, rules.between, first, a[d - 1], b[d], d, conditions, work, 0, 0, -1, -1, own, mark,
                offsets, found, room,
            )  # fmt: skip
        if found < 0:
            return found
    for n in range(rules.negated.shape[0]):
        after = rules.after[n]
        if after == 0:
            above, until, gap = a[count - 1] - window, b[0], 0
        elif after == length:
            above, until, gap = a[count - 1], b[0] + window, count
        else:
            gap = work.start[after]
            above, until = a[gap - 1], b[gap]
        found = collect(
            events, rules.negated[n], first, above, until, gap, conditions, work, conditions.negated[n],
            conditions.negated[n + 1], -1, work.start[length + n], own, mark, offsets, found, room,
        )  # fmt: skip
        if found < 0:
            return found
    return found


@kernel
def clip(low, high, offset, k, begin, end):
    """Narrow event k to a box; return the share that is left of a uniform one, 1 of another; 0 if none is."""
    size = high[k] - low[k] + 1
    if begin > low[k]:
        if offset[k] >= 0:
            offset[k] += begin - low[k]
        low[k] = begin
    high[k] = min(high[k], end)
    if low[k] > high[k]:
        return 0.0
    return 1.0 if offset[k] >= 0 else float(high[k] - low[k] + 1) / float(size)


@kernel
def gap_confidences(
    start, place, component, first_match, count, lower, upper, base, row, offsets, boxes, window, events,
    rules, conditions, pmf, head, tail, most_steps, std_error, seed, budget, wanted, scratch, mark, work,
    room, out_lower, out_upper, out_confidence, out_error,
):  # fmt: skip
    """Fill range and confidence of matches whose gaps must stay free.

    Parameters
    ----------
    start, place, component
        See :class:`eventbased.search.state.FoundMatches`.
    first_match, count : int64
        The match to begin with, and how many there are.
    lower, upper, base, row : (n,) int64
        Of the candidates: bounds on the common time line, the shift to take off again, and the event.
    offsets : (rows,) int64
        Where an event's probabilities start in ``pmf``; -1 for uniform.
    boxes : (2, m) int64, or (2, 0)
        First and last tick that is asked of each event of the matches: confidence and range are those of the
        worlds where it is; without any, of all.
    window : int64
        W, ticks.
    events : ForbiddenEvents
    rules : GapRules
    conditions : Conditions
    pmf, head, tail, most_steps, work
        See :func:`confidence.gaps.coupled.gap_confidence`.
    std_error, seed
        See :func:`confidence.gaps.monte_carlo.sampled_confidence`; a standard error of 0 allows exact values
        only.
    budget : float64
        Multiplications after which to pause, see :func:`confidence.budget.multiplications_per_call`.
    wanted : bool
        Whether a confidence is needed where no event is in the way.
    scratch : Scratch
    mark : (rows,) int64
        All -1, and so again afterwards.
    room : tuple
        (q,) int64 four times and (q, d + 1) bool: room for the forbidden events of one match.
    out_lower, out_upper : (m,) int64; out_confidence, out_error : (m,) float64
        Overwritten; the range is empty where the confidence is 0, the error 0 where it is exact, and the
        confidence NaN where :func:`confidence.exact_chain_confidence` has to give it.

    Returns
    -------
    done : int64
        Matches done.
    reason : int64
        ALL, SPACE if work arrays are too small, COSTLY if match ``done`` takes too many steps, PAUSED.
    need : tuple of 4 int64
        For SPACE the events of a match, edges, ticks and forbidden events needed; for COSTLY the steps.
    """
    own = mark.shape[0]
    spent = work[SPENT]
    spent[0] = 0.0
    scratch.steps[0] = 0
    for n in range(first_match, count):
        if spent[0] + float(scratch.steps[0]) >= budget:
            return n, PAUSED, (0, 0, 0, 0)
        spent[0] += 1.0
        size = start[n + 1] - start[n]
        # Before a leading gap there is one more event than in the match.
        if size + 1 > room[4].shape[1] - 2:
            return n, SPACE, (size + 1, 0, 0, 0)
        low = np.empty(size, np.int64)
        high = np.empty(size, np.int64)
        offset = np.empty(size, np.int64)
        bounds = np.empty((4, size), np.int64)
        first = place[start[n]]
        part = component[start[n] : start[n + 1]]
        share = 1.0
        for k in range(size):
            i = place[start[n] + k]
            low[k] = lower[i] - base[i]
            high[k] = upper[i] - base[i]
            offset[k] = offsets[row[i]]
            if boxes.shape[1]:
                share *= clip(low, high, offset, k, boxes[0, start[n] + k], boxes[1, start[n] + k])
            bounds[0, k] = low[k] - k
            bounds[1, k] = high[k] - k
            mark[row[i]] = own
            scratch.element[k] = i
            if k == 0 or part[k] != part[k - 1]:
                scratch.start[part[k]] = k
            scratch.stop[part[k]] = k + 1
            accumulate(conditions, scratch, part[k], k)
        feasible = tight_bounds(bounds[0], bounds[1], window - size, bounds[2], bounds[3]) and share > 0.0
        certain = largest(offset) < 0
        for k in range(size):
            bounds[2, k] += k
            bounds[3, k] += k
        found = 0
        if feasible:
            found = forbidden_in(
                events, rules, conditions, part, bounds[2], bounds[3], window, first, scratch, own, mark,
                offsets, room,
            )  # fmt: skip
        for k in range(size):
            mark[row[place[start[n] + k]]] = -1
        for x in range(room[0].shape[0] if found < 0 else found):
            mark[room[3][x]] = -1
        if found < 0:
            return n, SPACE, (size, 0, 0, room[0].shape[0] + 1)
        out_error[n] = 0.0
        if not feasible:
            out_confidence[n] = 0.0
            out_lower[n] = 0
            out_upper[n] = -1
            continue
        if found == 0 and certain and not wanted:
            out_lower[n] = bounds[2, 0]
            out_upper[n] = bounds[3, size - 1]
            continue
        status, value, earliest, latest = gap_confidence(
            low, high, offset, pmf, head, tail, window, found, room[0], room[1], room[2], room[4], most_steps,
            work,
        )  # fmt: skip
        if status == NO_SPACE:
            return n, SPACE, (size, earliest, latest, 0)
        if status == COUPLED and std_error > 0.0:
            status, value, out_error[n], earliest, latest = sampled_confidence(
                low, high, window, room[0], room[1], room[2], pmf, head, tail, earliest, std_error, seed,
                most_steps, work,
            )  # fmt: skip
        if status in (TOO_DEAR, COUPLED):
            return n, COSTLY, (int(min(value, float(MOST_EDGES))), 0, 0, 0)
        out_lower[n] = earliest
        out_upper[n] = latest
        out_confidence[n] = value * share
        if status == INEXACT:
            out_confidence[n] = np.nan
        elif status != DONE:
            out_confidence[n] = 0.0
            out_lower[n] = 0
            out_upper[n] = -1
    return count, ALL, (0, 0, 0, 0)


class CostlyGapsError(ValueError):
    """The confidence of a match takes too many steps.

    Attributes
    ----------
    match : int
        Which of those given.
    steps : int
    """

    def __init__(self, match: int, steps: int) -> None:
        self.match = match
        self.steps = steps
        super().__init__(f"match {match} takes {steps} steps")


class GapConfidences:
    """Ranges and confidences of grown matches, with work arrays that grow as matches need them.

    Parameters
    ----------
    window : int
        W, ticks.
    rows : int
        Number of events.
    most_steps, std_error, seed
        See :func:`gap_confidences`.
    """

    def __init__(self, window: int, rows: int, most_steps: float, std_error: float, seed: int) -> None:
        self._window = window
        self._limits = (most_steps, std_error, seed)
        self._mark = np.full(rows, -1, dtype=np.int64)
        self._space = (8, 1024, 64, 64)
        self._make_space()

    def _make_space(self) -> None:
        length, edges, ticks, events = self._space
        self._work = workspace(length, edges, ticks, events)
        numbers = np.empty((4, events), dtype=np.int64)
        self._room = (*numbers, np.zeros((events, length + 2), dtype=np.bool_))

    def describe(
        self,
        matches: tuple[Int64, Int64, Int64],
        count: int,
        candidates: tuple[Int64, Int64, Int64, Int64],
        offsets: Int64,
        events: ForbiddenEvents,
        rules: GapRules,
        conditions: Conditions,
        pmfs: tuple[Float64, Float64, Float64],
        wanted: bool,
        scratch: Scratch,
        out: tuple[Int64, Int64, Float64, Float64],
        boxes: Int64 = NO_BOXES,
    ) -> None:
        """Fill ranges, confidences and standard errors, see :func:`gap_confidences`.

        Parameters
        ----------
        matches : tuple
            ``start, place, component``.
        count : int
        candidates : tuple
            ``lower, upper, base, row``.
        offsets, events, rules, conditions
        pmfs : tuple
            ``pmf, head, tail``.
        wanted, scratch
        out : tuple
            ``out_lower, out_upper, out_confidence, out_error``.
        boxes : (2, m) int64, or (2, 0)

        Raises
        ------
        CostlyGapsError
            If a match takes too many steps.
        """
        kernel: Any = gap_confidences
        done = 0
        while True:
            done, reason, need = kernel(
                *matches, done, count, *candidates, offsets, boxes, self._window, events, rules, conditions,
                *pmfs, *self._limits, multiplications_per_call(), wanted, scratch, self._mark, self._work,
                self._room, *out,
            )  # fmt: skip
            if reason == ALL:
                return
            if reason == PAUSED:
                checkpoint()
                continue
            if reason == COSTLY:
                raise CostlyGapsError(done, need[0])
            length, edges, ticks, events_ = enlarged(self._space, need)
            self._space = (length, edges, ticks, events_)
            self._make_space()
