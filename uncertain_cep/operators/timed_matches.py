"""Ranges and confidences of matches with conditions on times.

Each condition is a bound of a time or of a difference of two; an event that must stay out of a gap is
forbidden in a run of ticks whose ends depend on the match's times. Both are factors of a sum over the times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import CostlyMatchError, Pmfs
from confidence.budget import checkpoint
from confidence.chain.distribution import Intervals
from confidence.gaps.chains import room_for
from confidence.predicates.conditions import Conditions, Scratch
from confidence.timed.bounds import UNBOUND, Bounds, tightened
from confidence.timed.factors import Cells, Factor, TooManyCellsError, law_of
from confidence.timed.forbidden_runs import Grid, Run, factors_of
from confidence.timed.members import Member, members_of
from eventbased.gaps.asked_gaps import forbidden_by_rule
from eventbased.gaps.gap_events import ForbiddenEvents, GapRules, Gathered, MatchEvents, Placed
from uncertain_cep.config import MOST_CELLS_IN_TABLE, MOST_TIMED_CELLS
from uncertain_cep.operators.time_templates import OTHER, Instance, TimeTemplates
from uncertain_cep.operators.timed_paths import describe_paths
from uncertain_cep.operators.timed_shapes import Rule, Shape, Shapes
from uncertain_cep.plan import EvaluationPlan

__all__ = ["TimedConfidences"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class TimedConfidences:
    """Ranges and confidences of the matches of a plan with conditions on times; see `describe`.

    ``conditions`` decide what is forbidden, and may be None if nothing is.
    """

    def __init__(
        self,
        plan: EvaluationPlan,
        table: pa.Table,
        rules: GapRules,
        conditions: Conditions | None,
        window: int,
    ) -> None:
        self._plan, self._conditions, self._window = plan, conditions, window
        self._templates = TimeTemplates(plan, table)
        self._shapes = Shapes(plan, self._templates, rules, conditions, window)
        self._mark = np.full(table.num_rows, -1, dtype=np.int64)
        self._room = 64

    def describe(
        self,
        matches: MatchEvents,
        candidates: Placed,
        offsets: Int64,
        pools: ForbiddenEvents | None,
        _rules: Any,
        _conditions: Conditions | None,
        pmfs: Pmfs,
        wanted: bool,
        scratch: Scratch | None,
        out: tuple[NDArray[Any], ...],
    ) -> None:
        """Fill ranges, confidences and, where there is room, standard errors, which are 0.

        Raises
        ------
        CostlyMatchError
            If the tables of a match have too many cells.
        """
        for column in out[3:]:
            column[:] = 0.0
        for counts, chosen in self._by_counts(matches):
            shape = self._shapes.of(counts)
            left = chosen
            if shape.is_path:
                left = describe_paths(
                    shape.own, self._templates, self._window, matches, chosen, candidates, offsets,
                    pmfs.values, wanted, out,
                )  # fmt: skip
            for done, n in enumerate(left.tolist()):
                if done % 64 == 0:
                    checkpoint()
                match = _Match(self, shape, matches, n, candidates, offsets, pmfs)
                with _costly(n):
                    out[0][n], out[1][n], out[2][n] = match.described(pools, scratch, wanted)

    def describe_lists(
        self,
        matches: MatchEvents,
        candidates: Placed,
        offsets: Int64,
        pools: ForbiddenEvents,
        pmfs: Pmfs,
        scratch: Scratch,
        out: tuple[NDArray[Any], ...],
        list_start: Int64,
    ) -> Int64:
        """Fill ranges and sums of matches; return the rows of the events that can be in the gap of each.

        Parameters are those of :func:`eventbased.gaps.compressed.compressed_matches`.

        Raises
        ------
        CostlyMatchError
            If the tables of a match have too many cells.
        """
        rows: list[int] = []
        for counts, chosen in self._by_counts(matches):
            shape = self._shapes.of(counts)
            for n in chosen.tolist():
                checkpoint()
                match = _Match(self, shape, matches, n, candidates, offsets, pmfs)
                with _costly(n):
                    found, out[0][n], out[1][n], out[2][:, n] = match.listed(pools, scratch)
                rows += found
                list_start[n + 1] = len(rows)
        return np.array(rows, dtype=np.int64)

    def _by_counts(self, matches: MatchEvents) -> Iterator[tuple[tuple[int, ...], Int64]]:
        """Yield the matches with the same numbers of events of each component, and these."""
        found, length = len(matches.start) - 1, len(self._plan.components)
        if not found:
            return
        if len(self._plan.singles) == length:
            yield (1,) * length, np.arange(found)
            return
        match = np.repeat(np.arange(found), np.diff(matches.start))
        counts = np.bincount(match * length + matches.component, minlength=found * length)
        counts = counts.reshape(found, length)
        number = np.zeros(found, dtype=np.int64)
        for column in counts.T:
            # Dense again, so that the numbers stay small.
            number = np.unique(number * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
        order = np.argsort(number, kind="stable")
        ends = np.cumsum(np.bincount(number))
        for chosen in np.split(order, ends[:-1]):
            yield tuple(counts[chosen[0]].tolist()), chosen

    def forbidden(
        self,
        pools: ForbiddenEvents,
        matches: MatchEvents,
        n: int,
        candidates: Placed,
        asks: Int64,
        scratch: Scratch,
        offsets: Int64,
    ) -> tuple[list[tuple[int, int, int]], NDArray[np.bool_]]:
        """Return row and interval of the events that rules forbid a match, and which rules, (x, k) bool."""
        size = int(matches.start[n + 1] - matches.start[n])
        while True:
            gathered = Gathered(self._mark, offsets, room_for(self._room, len(asks)))
            match = Intervals(*np.empty((3, size), dtype=np.int64))
            kernel: Any = forbidden_by_rule
            found = kernel(pools, matches, n, candidates, asks, self._conditions, scratch, gathered, match)
            if found >= 0:
                events = gathered.forbidden
                intervals = zip(events.event[:found], events.lower[:found], events.upper[:found], strict=True)
                return [(int(row), int(low), int(high)) for row, low, high in intervals], events.gaps[:found]
            self._room *= 4

    @property
    def templates(self) -> TimeTemplates:
        """What the conditions ask."""
        return self._templates

    @property
    def negations(self) -> int:
        """How many negated components there are."""
        return len(self._plan.negations)


@contextmanager
def _costly(n: int) -> Iterator[None]:
    """Say that it is a match that takes too many cells."""
    try:
        yield
    except TooManyCellsError as error:
        raise CostlyMatchError(n, int(min(error.cells, 2.0**62))) from None


class _Match:
    """One match: its events' ticks, what is asked of them, and what is forbidden."""

    def __init__(
        self,
        confidences: TimedConfidences,
        shape: Shape,
        matches: MatchEvents,
        n: int,
        candidates: Placed,
        offsets: Int64,
        pmfs: Pmfs,
    ) -> None:
        self._confidences, self._shape, self._matches, self._n = confidences, shape, matches, n
        self._candidates, self._offsets, self._pmfs = candidates, offsets, pmfs
        own = slice(int(matches.start[n]), int(matches.start[n + 1]))
        place = matches.place[own]
        self._rows: list[int] = candidates.row[place].tolist()
        base = candidates.base[place]
        self._lower, self._upper = candidates.lower[place] - base, candidates.upper[place] - base
        self._box = matches.boxes[:, own] if matches.boxes.shape[1] else None

    def described(
        self, pools: ForbiddenEvents | None, scratch: Scratch | None, wanted: bool
    ) -> tuple[int, int, float]:
        """Return the range and the confidence; an empty range and 0 of what cannot happen."""
        nothing = 0, -1, 0.0
        system = self._system()
        if system is None:
            return nothing
        bounds, grid = system
        runs = self._runs(pools, scratch, grid)
        # Uniform times and nothing forbidden: every tick within the bounds is that of some world.
        is_tight = not runs and bool((self._offsets[self._rows] < 0).all())
        if is_tight and not wanted:
            return int(min(grid.first)), int(max(grid.last)), 0.0
        cells = Cells(MOST_TIMED_CELLS, MOST_CELLS_IN_TABLE)
        factors = self._own_factors(bounds, grid, cells)
        sizes = list(grid.sizes)
        for row, low, high, own in runs:
            found, ticks = factors_of(own, low, high, self._pmf(row, low, high), grid, cells, len(sizes))
            factors += found
            sizes += [ticks] if ticks else []
        shape = self._shape
        times = shape.firsts[:1] if is_tight else dict.fromkeys((*shape.firsts, *shape.lasts))
        laws = {time: law_of([time], sizes, factors, cells) for time in times}
        confidence = min(float(laws[shape.firsts[0]].sum()), 1.0)
        if not confidence > 0.0:
            return nothing
        if is_tight:
            return int(min(grid.first)), int(max(grid.last)), confidence
        return *self._range(laws, grid), confidence

    def listed(self, pools: ForbiddenEvents, scratch: Scratch) -> tuple[list[int], int, int, Sequence[float]]:
        """Return the rows of what may be in the runs of the only negation, the range, and the sums of that.

        The range, empty if nothing may be, is of the worlds where something is.
        """
        nothing: tuple[list[int], int, int, Sequence[float]] = [], 0, -1, (0.0,) * 4
        system = self._system()
        if system is None:
            return nothing
        bounds, grid = system
        runs = self._runs(pools, scratch, grid)
        if not runs:
            return nothing
        cells = Cells(MOST_TIMED_CELLS, MOST_CELLS_IN_TABLE)
        factors = self._own_factors(bounds, grid, cells)
        axes = sorted(frozenset[int]().union(*(own[0].times for *_, own in runs)))
        weight = law_of(axes, grid.sizes, factors, cells)
        events = [Member(low, high, self._pmf(row, low, high), own[0]) for row, low, high, own in runs]
        found = members_of(events, axes, weight, grid, cells)
        if not found.sums[1] > 0.0:
            return nothing
        factors.append(Factor(tuple(axes), found.some))
        ends = dict.fromkeys((*self._shape.firsts, *self._shape.lasts))
        first, last = self._range({time: law_of([time], grid.sizes, factors, cells) for time in ends}, grid)
        rows = [row for (row, *_), is_present in zip(runs, found.present, strict=True) if is_present]
        return rows, min(first, found.first), max(last, found.last), found.sums

    def _system(self) -> tuple[Bounds, Grid] | None:
        """Return all bounds of the match's times, and the ticks that they leave; None if they leave none."""
        bounds = dict(self._shape.order)
        lower, upper = self._lower, self._upper
        if self._box is not None:
            lower, upper = np.maximum(lower, self._box[0]), np.minimum(upper, self._box[1])
        if (lower > upper).any() or not self._add(bounds, self._shape.own):
            return None
        tight = tightened(lower, upper, bounds)
        return None if tight is None else (bounds, Grid(*tight))

    def _own_factors(self, bounds: Bounds, grid: Grid, cells: Cells) -> list[Factor]:
        """Return the probabilities of the match's own times, and what binds them."""
        factors = [Factor((k,), self._weights(k, grid)) for k in range(len(grid.sizes))]
        return [*factors, *self._differences(bounds, grid, cells)]

    def _pmf(self, row: int, low: int, high: int) -> Float64 | None:
        """Return the probabilities of the ticks of an event; None if they are uniform."""
        offset = int(self._offsets[row])
        return None if offset < 0 else self._pmfs.values[offset : offset + high - low + 1]

    def _range(self, laws: Mapping[int, Float64], grid: Grid) -> tuple[int, int]:
        """Return the first and last tick of the match, given the laws of the times that can be either."""
        ends = {time: np.flatnonzero(law > 0.0) for time, law in laws.items()}
        first = min(int(grid.first[time] + ends[time][0]) for time in self._shape.firsts)
        last = max(int(grid.first[time] + ends[time][-1]) for time in self._shape.lasts)
        return first, last

    def _add(self, bounds: Bounds, instances: Sequence[Instance]) -> bool:
        """Add what is asked of the match's own times to some bounds; return whether that can be met."""
        for instance in instances:
            found = self._confidences.templates.bounds(instance, self._rows)
            if found is None:
                return False
            _tie(bounds, instance.later, instance.earlier, *found)
        return all(low <= high for low, high in bounds.values())

    def _weights(self, k: int, grid: Grid) -> Float64:
        """Return P(t) for the ticks of an event of the match."""
        size, offset = grid.sizes[k], int(self._offsets[self._rows[k]])
        if offset < 0:
            return np.full(size, 1.0 / float(self._upper[k] - self._lower[k] + 1))
        start = offset + int(grid.first[k] - self._lower[k])
        return self._pmfs.values[start : start + size]

    def _differences(self, bounds: Bounds, grid: Grid, cells: Cells) -> Iterator[Factor]:
        """Yield where differences are within bounds, of those that can be without."""
        for (i, j), (low, high) in bounds.items():
            if j < 0 or i == j:
                continue
            least, most = int(grid.first[i] - grid.last[j]), int(grid.last[i] - grid.first[j])
            if least >= low and most <= high:
                continue
            axes = (i, j) if i < j else (j, i)
            cells.take(grid.shape(axes))
            yield Factor(axes, grid.meets({(i, j): (low, high)}, axes).astype(np.float64))

    def _runs(
        self, pools: ForbiddenEvents | None, scratch: Scratch | None, grid: Grid
    ) -> list[tuple[int, int, int, list[Run]]]:
        """Return row, interval and runs of each event that may be where it is forbidden."""
        rules = self._shape.rules
        if not rules or pools is None or scratch is None:
            return []
        start = len(scratch.element) - self._confidences.negations
        asks = np.empty((len(rules), 9), dtype=np.int64)
        for k, rule in enumerate(rules):
            above = max(int(grid.first[event]) + offset for event, offset in rule.run.lowers) - 1
            until = min(int(grid.last[event]) + offset for event, offset in rule.run.uppers) + 1
            slot, *others = rule.asked
            if slot < -1:
                slot = start - slot - 2
            asks[k] = rule.pool, above, until, slot, *others, rule.component, rule.stop
        events, forbids = self._confidences.forbidden(
            pools, self._matches, self._n, self._candidates, asks, scratch, self._offsets
        )
        found = []
        for (row, low, high), which in zip(events, forbids, strict=True):
            runs = [self._run(rules[k], row) for k in np.flatnonzero(which).tolist()]
            possible = [run for run in runs if run is not None and _possible(run, low, high, grid)]
            if possible:
                found.append((row, low, high, possible))
        return found

    def _run(self, rule: Rule, row: int) -> Run | None:
        """Return the run of a rule for an event; None if a condition is not true of it."""
        gap, lowers, uppers, _ = rule.run
        guards: Bounds = {}
        for instance in rule.instances:
            bounds = self._confidences.templates.bounds(instance, self._rows, row)
            if bounds is None or bounds[0] > bounds[1]:
                return None
            low, high = bounds
            later, earlier = instance.later, instance.earlier
            if later == OTHER and earlier == OTHER:
                if not low <= 0 <= high:
                    return None
            elif later == OTHER:
                lowers += ((earlier, low),) if low > -UNBOUND else ()
                uppers += ((earlier, high),) if high < UNBOUND else ()
            elif earlier == OTHER:
                lowers += ((later, -high),) if high < UNBOUND else ()
                uppers += ((later, -low),) if low > -UNBOUND else ()
            else:
                _tie(guards, later, earlier, low, high)
        return Run(gap, lowers, uppers, guards)


def _possible(run: Run, low: int, high: int, grid: Grid) -> bool:
    """Return whether an event of an interval may be in a run, as far as the intervals of the match tell."""
    lowers = [offset + (int(grid.first[time]) if time >= 0 else 0) for time, offset in run.lowers]
    uppers = [offset + (int(grid.last[time]) if time >= 0 else 0) for time, offset in run.uppers]
    return max([low, *lowers]) <= min([high, *uppers])


def _tie(bounds: Bounds, later: int, earlier: int, low: int, high: int) -> None:
    """Add a bound of a time or a difference to others."""
    if (earlier, later) in bounds:
        later, earlier, low, high = earlier, later, -high, -low
    known = bounds.get((later, earlier), (-UNBOUND, UNBOUND))
    bounds[later, earlier] = max(known[0], low), min(known[1], high)
