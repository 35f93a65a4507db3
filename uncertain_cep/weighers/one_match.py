"""One match with conditions on times: its events' ticks, what is asked of them, and what is forbidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from confidence import Pmfs
from confidence.chain.distribution import DOUBTFUL
from confidence.timed.bounds import UNBOUND, Bounds, tightened
from confidence.timed.factors import Cells, Factor, law_of
from confidence.timed.forbidden_spans import Grid, Span
from confidence.timed.members import Member, members_of
from eventbased.gaps.gap_events import NO_OFFSETS, HeldOffsets, MatchEvents, Placed, intervals_given
from uncertain_cep.config import MOST_CELLS_IN_TABLE, MOST_CONFIDENCE_STEPS
from uncertain_cep.weighers.shapes import Rule, Shape
from uncertain_cep.weighers.templates import OTHER, TimeTemplates

__all__ = ["Gather", "TimedMatch", "own_bounds", "span_of", "tie"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

Gather = Callable[[Int64], tuple[list[tuple[int, int, int, int]], NDArray[np.bool_]]]
"""Returns row, law and interval of the events that some rules forbid a match, and which rules, (x, k) bool.
The law is where probabilities start, -1 for uniform.

The rules are those of :func:`eventbased.gaps.shape_rules.forbidden_by_rule`, the k-th negation in the place
-2 - k.
"""


class TimedMatch:
    """One match: its events' ticks, what is asked of them, and what is forbidden."""

    def __init__(
        self,
        templates: TimeTemplates,
        shape: Shape,
        matches: MatchEvents,
        n: int,
        candidates: Placed,
        offsets: Int64,
        pmfs: Pmfs,
        held: HeldOffsets = NO_OFFSETS,
        probability: Float64 | None = None,
    ) -> None:
        self._templates, self._shape, self._pmfs = templates, shape, pmfs
        self._probability = probability
        own = slice(int(matches.start[n]), int(matches.start[n + 1]))
        place = matches.place[own]
        self._rows: list[int] = candidates.row[place].tolist()
        base = candidates.base[place]
        rows = candidates.row[place]
        self._lower, self._upper, self._laws = intervals_given(
            held, n, rows, candidates.lower[place] - base, candidates.upper[place] - base, offsets[rows]
        )
        self._box = matches.boxes[:, own] if matches.boxes.shape[1] else None

    def listed(self, gather: Gather) -> tuple[list[int], int, int, Sequence[float]]:
        """Return the rows of what may be in the spans of the only negation, the range, and the sums of that.

        The range, empty if nothing may be, is of the worlds where something is.
        """
        nothing: tuple[list[int], int, int, Sequence[float]] = [], 0, -1, (0.0,) * 4
        system = self._system()
        if system is None:
            return nothing
        bounds, grid = system
        spans = self._spans(gather, grid)
        if not spans:
            return nothing
        cells = Cells(MOST_CONFIDENCE_STEPS, MOST_CELLS_IN_TABLE)
        factors = self._own_factors(bounds, grid, cells)
        axes = sorted(frozenset[int]().union(*(own[0].times for *_, own in spans)))
        weight = law_of(axes, grid.sizes, factors, cells)
        events = [
            Member(low, high, self._pmf(law, low, high), own[0], self._happened(row))
            for row, law, low, high, own in spans
        ]
        found = members_of(events, axes, weight, grid, cells)
        if not found.sums[1] > 0.0:
            return nothing
        factors.append(Factor(tuple(axes), found.some))
        ends = dict.fromkeys((*self._shape.firsts, *self._shape.lasts))
        first, last = self._range({time: law_of([time], grid.sizes, factors, cells) for time in ends}, grid)
        rows = [row for (row, *_), is_present in zip(spans, found.present, strict=True) if is_present]
        return rows, min(first, found.first), max(last, found.last), found.sums

    def _system(self) -> tuple[Bounds, Grid] | None:
        """Return all bounds of the match's times, and the ticks that they leave; None if they leave none."""
        bounds = dict(self._shape.order)
        lower, upper = self._lower, self._upper
        if self._box is not None:
            lower, upper = np.maximum(lower, self._box[0]), np.minimum(upper, self._box[1])
        own = own_bounds(self._templates, self._shape, self._rows, bounds)
        if own is None or (lower > upper).any():
            return None
        tight = tightened(lower, upper, bounds)
        return None if tight is None else (bounds, Grid(*tight))

    def _own_factors(self, bounds: Bounds, grid: Grid, cells: Cells) -> list[Factor]:
        """Return the probabilities of the match's own times, and what binds them."""
        factors = [Factor((k,), self._weights(k, grid)) for k in range(len(grid.sizes))]
        return [*factors, *self._differences(bounds, grid, cells)]

    def _pmf(self, law: int, low: int, high: int) -> Float64 | None:
        """Return the probabilities of the ticks of an event, if it happened; None if they are uniform."""
        if law <= DOUBTFUL:
            law = int(self._pmfs.values[DOUBTFUL - law + 1])
        return None if law < 0 else self._pmfs.values[law : law + high - low + 1]

    def _happened(self, row: int) -> float:
        """Return the probability that an event happened."""
        return 1.0 if self._probability is None else float(self._probability[row])

    def _range(self, laws: Mapping[int, Float64], grid: Grid) -> tuple[int, int]:
        """Return the first and last tick of the match, given the laws of the times that can be either."""
        ends = {time: np.flatnonzero(law > 0.0) for time, law in laws.items()}
        first = min(int(grid.first[time] + ends[time][0]) for time in self._shape.firsts)
        last = max(int(grid.first[time] + ends[time][-1]) for time in self._shape.lasts)
        return first, last

    def _weights(self, k: int, grid: Grid) -> Float64:
        """Return P(t) for the ticks of an event of the match."""
        size, offset = grid.sizes[k], int(self._laws[k])
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

    def _spans(self, gather: Gather | None, grid: Grid) -> list[tuple[int, int, int, int, list[Span]]]:
        """Return row, law, interval and spans of each event that may be where it is forbidden."""
        rules = self._shape.rules
        if not rules or gather is None:
            return []
        rule_rows = np.empty((len(rules), 9), dtype=np.int64)
        for k, rule in enumerate(rules):
            above = max(int(grid.first[event]) + offset for event, offset in rule.span.lowers) - 1
            until = min(int(grid.last[event]) + offset for event, offset in rule.span.uppers) + 1
            rule_rows[k] = rule.pool, above, until, *rule.conditions, rule.component, rule.stop
        events, forbids = gather(rule_rows)
        found = []
        for (row, law, low, high), which in zip(events, forbids, strict=True):
            chosen = [rules[k] for k in np.flatnonzero(which).tolist()]
            spans = [span_of(self._templates, rule, self._rows, row) for rule in chosen]
            possible = [span for span in spans if span is not None and _possible(span, low, high, grid)]
            if possible:
                found.append((row, law, low, high, possible))
        return found


def own_bounds(templates: TimeTemplates, shape: Shape, rows: Sequence[int], bounds: Bounds) -> Bounds | None:
    """Add what conditions ask of a match's own times to some bounds; None if that cannot be met.

    ``rows`` are those of the match's events.
    """
    for instance in shape.own:
        found = templates.bounds(instance, rows)
        if found is None:
            return None
        tie(bounds, instance.later, instance.earlier, *found)
    return bounds if all(low <= high for low, high in bounds.values()) else None


def span_of(templates: TimeTemplates, rule: Rule, rows: Sequence[int], row: int) -> Span | None:
    """Return the span of a rule for an event; None if a condition is not true of it.

    ``rows`` are those of the match's events.
    """
    lowers, uppers, _ = rule.span
    guards: Bounds = {}
    for instance in rule.instances:
        bounds = templates.bounds(instance, rows, row)
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
            tie(guards, later, earlier, low, high)
    return Span(lowers, uppers, guards)


def _possible(span: Span, low: int, high: int, grid: Grid) -> bool:
    """Return whether an event of an interval may be in a span, as far as the intervals of the match tell."""
    lowers = [offset + (int(grid.first[time]) if time >= 0 else 0) for time, offset in span.lowers]
    uppers = [offset + (int(grid.last[time]) if time >= 0 else 0) for time, offset in span.uppers]
    return max([low, *lowers]) <= min([high, *uppers])


def tie(bounds: Bounds, later: int, earlier: int, low: int, high: int) -> None:
    """Add a bound of a time or a difference to others."""
    if (earlier, later) in bounds:
        later, earlier, low, high = earlier, later, -high, -low
    known = bounds.get((later, earlier), (-UNBOUND, UNBOUND))
    bounds[later, earlier] = max(known[0], low), min(known[1], high)
