"""Ranges and confidences of matches with conditions on times.

Each condition is a bound of a time or of a difference of two; an event that must stay out of a gap is
forbidden in a run of ticks whose ends depend on the match's times. Both are factors of a sum over the times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate as running_totals
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
from eventbased.gaps.asked_gaps import forbidden_by_rule
from eventbased.gaps.gap_events import ForbiddenEvents, GapRules, Gathered, MatchEvents, Placed
from uncertain_cep.config import MOST_CELLS_IN_TABLE, MOST_TIMED_CELLS
from uncertain_cep.operators.time_templates import OTHER, Instance, TimeTemplates
from uncertain_cep.operators.timed_paths import describe_paths
from uncertain_cep.plan import EvaluationPlan

__all__ = ["TimedConfidences"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Rule:
    """What forbids events in a gap of a match: which pool, in which run, if which conditions hold."""

    pool: int
    run: Run
    asked: tuple[int, int, int, int]
    component: int
    stop: int
    instances: list[Instance]


@dataclass(frozen=True, slots=True)
class _Shape:
    """What matches with the same numbers of events have in common."""

    order: Bounds
    """Order and window."""
    firsts: list[int]
    lasts: list[int]
    """The events that can be the first, or the last."""
    own: list[Instance]
    rules: list[_Rule]
    total: int
    """How many events there are."""
    is_chain: bool
    """Whether they happen one after the other."""

    @property
    def is_path(self) -> bool:
        """Whether nothing is forbidden, and bounds are of times, of neighbours and of the whole match."""
        return not self.rules and self.is_chain and all(map(self._along_path, self.own))

    def _along_path(self, instance: Instance) -> bool:
        later, earlier = instance.later, instance.earlier
        if earlier < 0 or abs(later - earlier) == 1:
            return True
        return (later, earlier) == (self.total - 1, 0) and instance.is_upper


class TimedConfidences:
    """Ranges and confidences of the matches of a plan with conditions on times; see `describe`."""

    def __init__(
        self, plan: EvaluationPlan, table: pa.Table, rules: GapRules, conditions: Conditions, window: int
    ) -> None:
        self._plan, self._rules, self._conditions, self._window = plan, rules, conditions, window
        self._templates = TimeTemplates(plan, table)
        self._mark = np.full(table.num_rows, -1, dtype=np.int64)
        self._shapes: dict[tuple[int, ...], _Shape] = {}
        self._room = 64

    def describe(
        self,
        matches: MatchEvents,
        candidates: Placed,
        offsets: Int64,
        pools: ForbiddenEvents,
        _rules: Any,
        _conditions: Conditions,
        pmfs: Pmfs,
        wanted: bool,
        scratch: Scratch,
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
            if counts not in self._shapes:
                self._shapes[counts] = self._shape(counts)
            shape = self._shapes[counts]
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
                try:
                    out[0][n], out[1][n], out[2][n] = match.described(pools, scratch, wanted)
                except TooManyCellsError as error:
                    raise CostlyMatchError(n, int(min(error.cells, 2.0**62))) from None

    def _by_counts(self, matches: MatchEvents) -> Iterator[tuple[tuple[int, ...], Int64]]:
        """Yield the matches with the same numbers of events of each component, and these."""
        found, length = len(matches.start) - 1, len(self._plan.components)
        match = np.repeat(np.arange(found), np.diff(matches.start))
        counts = np.bincount(match * length + matches.component, minlength=found * length)
        distinct, number = np.unique(counts.reshape(found, length), axis=0, return_inverse=True)
        order = np.argsort(number.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(number.ravel(), minlength=len(distinct)))
        for each, chosen in zip(distinct.tolist(), np.split(order, ends[:-1]), strict=True):
            yield tuple(each), chosen

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

    def _shape(self, counts: tuple[int, ...]) -> _Shape:
        plan, window = self._plan, self._window
        start = [0, *running_totals(counts)]
        total, components = start[-1], range(len(counts))
        before = [(1 << j) - 1 for j in components] if plan.order is None else plan.order.before
        order: Bounds = {}
        has_before, has_behind = set[int](), set[int]()

        def precede(early: int, late: int) -> None:
            order[late, early] = (1, UNBOUND)
            has_before.add(late)
            has_behind.add(early)

        chained = [
            part.kleene and not (plan.order is not None and plan.order.is_set[j])
            for j, part in enumerate(plan.components)
        ]
        for j in components:
            own = range(start[j], start[j + 1])
            if chained[j]:
                for event in own[1:]:
                    precede(event - 1, event)
            for i in components:
                if not before[j] >> i & 1 or (plan.order is None and i < j - 1):
                    continue
                ahead = own[:1] if chained[j] or plan.order is None else own
                behind = range(start[i], start[i + 1])
                behind = behind[-1:] if chained[i] or plan.order is None else behind
                for early in behind:
                    for late in ahead:
                        precede(early, late)
        firsts = [event for event in range(total) if event not in has_before]
        lasts = [event for event in range(total) if event not in has_behind]
        for first in firsts:
            for last in lasts:
                if first != last:
                    low, high = order.get((last, first), (-UNBOUND, UNBOUND))
                    order[last, first] = max(low, 1 - window), min(high, window - 1)
                    order.pop((first, last), None)
        rules = list(self._rules_of(counts, start, firsts, lasts))
        asked = self._templates.own(counts)
        return _Shape(order, firsts, lasts, asked, rules, total, plan.order is None)

    def _rules_of(
        self, counts: tuple[int, ...], start: Sequence[int], firsts: list[int], lasts: list[int]
    ) -> Iterator[_Rule]:
        plan, conditions, window = self._plan, self._conditions, self._window
        for j, part in enumerate(plan.components):
            for event in range(max(start[j], 1), start[j + 1]):
                run = Run(event, ((event - 1, 1),), ((event, -1),), {})
                number = event - start[j]
                if (pool := int(self._rules.taking[j])) >= 0:
                    begin = int(conditions.stages[j, 0 if number == 0 else 1])
                    asked = (event, begin, int(conditions.stages[j, 2]), j)
                    known = (*counts[:j], number + 1)
                    instances = self._templates.of_next(known, part.variable, number)
                    yield _Rule(pool, run, asked, j, event + 1, instances)
                elif self._rules.between >= 0:
                    yield _Rule(self._rules.between, run, (-1, 0, 0, -1), -1, 0, [])
        length = len(counts)
        for k, negation in enumerate(plan.negations):
            behind, ahead = self._sides(k, start)
            lowers = tuple((event, 1) for event in behind) or tuple((event, 1 - window) for event in lasts)
            uppers = tuple((event, -1) for event in ahead) or tuple((event, window - 1) for event in firsts)
            gap = 0
            if plan.order is None:
                gap = ahead[0] if ahead else start[-1]
            # Behind the events, as all_hold has the negated ones.
            asked = (-2 - k, int(conditions.negated[k]), int(conditions.negated[k + 1]), -1)
            instances = self._templates.of_negated(counts, negation.component.variable)
            yield _Rule(
                int(self._rules.negated[k]), Run(gap, lowers, uppers, {}), asked, -1, length + k, instances
            )

    def _sides(self, k: int, start: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the events that end the gap of a negation behind them, and before them; none at an end."""
        plan = self._plan
        if plan.order is None:
            after = plan.negations[k].after
            end = start[after]
            return ([end - 1] if after else []), ([end] if after < len(plan.components) else [])
        gap = plan.order.gaps[k]

        def events(components: int) -> list[int]:
            return [
                event
                for j in range(len(plan.components))
                if components >> j & 1
                for event in range(start[j], start[j + 1])
            ]

        behind = [] if gap.place == "leading" else events(gap.after)
        return behind, [] if gap.place == "trailing" else events(gap.before)


class _Match:
    """One match: its events' ticks, what is asked of them, and what is forbidden."""

    def __init__(
        self,
        confidences: TimedConfidences,
        shape: _Shape,
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

    def described(self, pools: ForbiddenEvents, scratch: Scratch, wanted: bool) -> tuple[int, int, float]:
        """Return the range and the confidence; an empty range and 0 of what cannot happen."""
        bounds = dict(self._shape.order)
        lower, upper = self._lower, self._upper
        if self._box is not None:
            lower, upper = np.maximum(lower, self._box[0]), np.minimum(upper, self._box[1])
        nothing = 0, -1, 0.0
        if (lower > upper).any() or not self._add(bounds, self._shape.own):
            return nothing
        tight = tightened(lower, upper, bounds)
        if tight is None:
            return nothing
        grid = Grid(*tight)
        runs = self._runs(pools, scratch, grid)
        offsets = self._offsets[self._rows]
        if not runs and not wanted and (offsets < 0).all():
            return int(min(grid.first)), int(max(grid.last)), 0.0
        cells = Cells(MOST_TIMED_CELLS, MOST_CELLS_IN_TABLE)
        factors = [Factor((k,), self._weights(k, grid)) for k in range(len(grid.sizes))]
        factors += self._differences(bounds, grid, cells)
        sizes = list(grid.sizes)
        for row, low, high, own in runs:
            offset = int(self._offsets[row])
            pmf = None if offset < 0 else self._pmfs.values[offset : offset + high - low + 1]
            found, ticks = factors_of(own, low, high, pmf, grid, cells, len(sizes))
            factors += found
            sizes += [ticks] if ticks else []
        shape = self._shape
        # Uniform times and nothing forbidden: every tick within the bounds is that of some world.
        is_tight = not runs and bool((offsets < 0).all())
        times = shape.firsts[:1] if is_tight else dict.fromkeys((*shape.firsts, *shape.lasts))
        laws = {time: law_of(time, sizes, factors, cells) for time in times}
        confidence = min(float(laws[shape.firsts[0]].sum()), 1.0)
        if not confidence > 0.0:
            return nothing
        if is_tight:
            return int(min(grid.first)), int(max(grid.last)), confidence
        ends = {time: np.flatnonzero(law > 0.0) for time, law in laws.items()}
        first = min(int(grid.first[time] + ends[time][0]) for time in shape.firsts)
        last = max(int(grid.first[time] + ends[time][-1]) for time in shape.lasts)
        return first, last, confidence

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
        self, pools: ForbiddenEvents, scratch: Scratch, grid: Grid
    ) -> list[tuple[int, int, int, list[Run]]]:
        """Return row, interval and runs of each event that may be where it is forbidden."""
        rules = self._shape.rules
        if not rules:
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

    def _run(self, rule: _Rule, row: int) -> Run | None:
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
