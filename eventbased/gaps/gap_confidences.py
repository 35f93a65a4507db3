"""How likely it is that what is forbidden stays out of the gaps of matches of sequences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confidence.arrays import largest
from confidence.chain.distribution import DOUBTFUL, Intervals, Pmfs
from confidence.chain.exact import redo_exactly
from confidence.chain.tick_pairs import MOST_EDGES
from confidence.gaps import chains
from confidence.gaps.chains import BUDGET, COUPLED, DONE, INEXACT, NO_SPACE, SPENT, TOO_DEAR, Limits
from confidence.gaps.coupled import gap_confidence
from confidence.gaps.describing import (
    ALL,
    COSTLY,
    PAUSED,
    SPACE,
    Described,
    Space,
    describe_each,
)
from confidence.gaps.forbidden import forbidden_confidence
from confidence.kernel import kernel
from confidence.predicates.conditions import Conditions, Scratch
from eventbased.config import LEAST_TABLED
from eventbased.gaps.free_matches import describe_free, forbids
from eventbased.gaps.gap_events import (
    ForbiddenEvents,
    GapEvents,
    GapRules,
    Gathered,
    HeldOffsets,
    MatchEvents,
    Placed,
    forbidden_in,
    intervals_given,
    some_of,
    take_match,
    unmark,
)
from eventbased.gaps.pool_tables import NO_TABLES, PoolTables, new_pool_tables, tabled_edges

__all__ = ["GapConfidences", "gap_confidences"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_Input = tuple[Placed, Int64, ForbiddenEvents, GapRules, Conditions, Pmfs, bool, Scratch]


@kernel(allocates=True)
def gap_confidences(
    matches, first_match, window, events, rules, pmfs, limits, with_confidence, tables, work, out
):
    """Fill range and confidence of matches whose gaps must stay free.

    Parameters
    ----------
    matches : MatchEvents
    first_match : int64
        The match to begin with.
    window : int64
        W, ticks.
    events : GapEvents
    rules : GapRules
    pmfs : Pmfs
    limits : Limits
    with_confidence : bool
        Whether a confidence is needed where no event is in the way.
    tables : PoolTables
        Of an earlier call with the same pools, or new; without rows where :func:`_can_share` does not hold.
    work : Workspace
    out : tuple of (k,) int64 twice, float64
        Range and confidence, overwritten. The range is empty where the confidence is 0, and the confidence
        NaN where :mod:`confidence.chain.exact` has to give it.

    Returns
    -------
    done : int64
        Matches done.
    reason : int64
        ALL, SPACE if work arrays are too small, COSTLY if match ``done`` takes too many steps, PAUSED.
    need : tuple of 4 int64
        For SPACE the events of a match, edges, ticks and forbidden events needed; for COSTLY the steps.
    """
    out_lower, out_upper, out_confidence = out
    scratch, gathered = events.scratch, events.gathered
    forbidden = gathered.forbidden
    count = matches.start.shape[0] - 1
    scratch.steps[0] = 0
    for n in range(first_match, count):
        if work.progress[SPENT] + float(scratch.steps[0]) >= work.progress[BUDGET]:
            return n, PAUSED, (0, 0, 0, 0)
        work.progress[SPENT] += 1.0
        size = matches.start[n + 1] - matches.start[n]
        # Before a leading gap there is one more event than in the match.
        if size + 1 > forbidden.gaps.shape[1] - 2:
            return n, SPACE, (size + 1, 0, 0, 0)
        match = Intervals(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64))
        bounds = np.empty((4, size), np.int64)
        share = take_match(matches, n, events, match)
        feasible, listed = False, 0
        if share > 0.0:
            feasible, listed = forbidden_in(events, rules, matches, n, match, bounds, window)
        tabled = False
        if tables.key.shape[0] and feasible and listed > 0:
            tabled = tabled_edges(
                bounds[2:], window, listed, forbidden, events.pools, rules, matches.place[matches.start[n]],
                scratch.start, gathered.mark, pmfs, tables, work,
            )  # fmt: skip
        unmark(matches, n, events, listed)
        if listed < 0:
            return n, SPACE, (size, 0, 0, forbidden.event.shape[0] + 1)
        out_confidence[n] = 0.0
        out_lower[n] = 0
        out_upper[n] = -1
        if not feasible:
            continue
        if listed == 0 and not with_confidence and largest(match.offset) < 0:
            out_lower[n] = bounds[2, 0]
            out_upper[n] = bounds[3, size - 1]
            continue
        status = TOO_DEAR
        if tabled:
            for k in range(size):
                bounds[0, k], bounds[1, k] = bounds[2, k] - k, bounds[3, k] - k
            status, value, first, last = forbidden_confidence(
                match, bounds[0], bounds[1], pmfs, window, 0, forbidden, True, limits, work
            )
        if status == TOO_DEAR:
            status, value, first, last = gap_confidence(
                match, pmfs, window, listed, forbidden, limits.most_steps, work
            )
        if status == NO_SPACE:
            return n, SPACE, (size, first, last, 0)
        if status == chains.PAUSED:
            return n, PAUSED, (0, 0, 0, 0)
        if status in (TOO_DEAR, COUPLED):
            return n, COSTLY, (int(min(value, float(MOST_EDGES))), 0, 0, 0)
        if status in (DONE, INEXACT):
            out_lower[n] = first
            out_upper[n] = last
            out_confidence[n] = value * share if status == DONE else np.nan
    return count, ALL, (0, 0, 0, 0)


class GapConfidences:
    """Ranges and confidences of matches, with work arrays that grow as matches need them.

    Parameters
    ----------
    window : int
        W, ticks.
    rows : int
        Number of events.
    limits : Limits
    """

    def __init__(self, window: int, rows: int, limits: Limits) -> None:
        self._window, self._limits = window, limits
        self._mark = np.full(rows, -1, dtype=np.int64)
        self._space = Space()
        self._tables = NO_TABLES
        self._tables_of: ForbiddenEvents | None = None

    def describe(
        self,
        matches: MatchEvents,
        candidates: Placed,
        offsets: Int64,
        pools: ForbiddenEvents,
        rules: GapRules,
        conditions: Conditions,
        pmfs: Pmfs,
        wanted: bool,
        scratch: Scratch,
        out: tuple[Int64, Int64, Float64],
        held: HeldOffsets,
        declined: dict[int, float],
    ) -> None:
        """Fill ranges and confidences, see :func:`gap_confidences`.

        Matches that take too many steps are put into ``declined``, by how many.
        """
        inputs = candidates, offsets, pools, rules, conditions, pmfs, wanted, scratch
        if len(held.start) or matches.boxes.shape[1] or forbids(rules):
            self._describe(matches, inputs, out, held, declined.__setitem__)
            return
        left = describe_free(matches, candidates, offsets, self._window, wanted, out)
        if len(left):
            columns = np.empty(len(left), np.int64), np.empty(len(left), np.int64), np.empty(len(left))
            self._describe(
                some_of(matches, left),
                inputs,
                columns,
                held,
                lambda n, steps: declined.__setitem__(int(left[n]), steps),
            )
            for column, values in zip(out, columns, strict=True):
                column[left] = values

    def _describe(
        self,
        matches: MatchEvents,
        inputs: _Input,
        out: tuple[Int64, Int64, Float64],
        held: HeldOffsets,
        declined: Callable[[int, float], None],
    ) -> None:
        """Do what :meth:`describe` does, one match after the other."""
        candidates, offsets, pools, rules, conditions, pmfs, wanted, scratch = inputs
        kernel: Any = gap_confidences
        space = self._space
        # In boxes a match is weighed again and again, always in the same way.
        alone = len(held.start) > 0 or matches.boxes.shape[1] > 0
        tables = NO_TABLES if alone else self._tables_for(inputs, len(matches.start) - 1)

        space.work.begin()

        def call(done: int) -> Described:
            gathered = Gathered(self._mark, offsets, space.forbidden, held)
            events = GapEvents(candidates, pools, conditions, scratch, gathered)
            described: Described = kernel(
                matches, done, self._window, events, rules, pmfs, self._limits, wanted, tables,
                space.work.go_on(), out,
            )  # fmt: skip
            return described

        describe_each(call, space.grow, declined)
        if wanted:
            redo_exactly(out[2], self._window, partial(_intervals, matches, candidates, held))

    def _tables_for(self, inputs: _Input, count: int) -> PoolTables:
        """Return the tables that so many matches share; none where there is nothing to share, or too few."""
        _, _, pools, rules, conditions, _, _, _ = inputs
        if self._tables_of is not pools and count >= LEAST_TABLED:
            self._tables, self._tables_of = NO_TABLES, pools
            if _can_share(pools, rules, conditions):
                self._tables = new_pool_tables(self._window)
        return self._tables if self._tables_of is pools else NO_TABLES


def _can_share(pools: ForbiddenEvents, rules: GapRules, conditions: Conditions) -> bool:
    """Return whether what is forbidden in a gap between two events depends on the gap alone.

    Only negations forbid, none before a match or behind it, and one in each gap at most; no condition of them
    speaks of the match, and all events happened.
    """
    after = rules.after
    return (
        len(after) > 0
        and int(after.min()) > 0
        and int(after.max()) < len(rules.taking)
        and len(np.unique(after)) == len(after)
        and rules.between < 0
        and bool((rules.taking < 0).all())
        and bool((np.diff(conditions.negated) == 0).all())
        and int(pools.offset.min(initial=-1)) > DOUBTFUL
    )


def _intervals(
    matches: MatchEvents, candidates: Placed, held: HeldOffsets, n: int
) -> tuple[Int64, Int64, Int64 | None]:
    """Return the bounds and boxes of the events of match n."""
    events = slice(int(matches.start[n]), int(matches.start[n + 1]))
    places = matches.place[events]
    base = candidates.base[places]
    boxes = matches.boxes[:, events] if matches.boxes.shape[1] else None
    lower, upper = candidates.lower[places] - base, candidates.upper[places] - base
    rows = candidates.row[places]
    lower, upper, _ = intervals_given(held, n, rows, lower, upper, rows)
    return lower, upper, boxes
