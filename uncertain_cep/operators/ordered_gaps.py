"""Matches of records in a known order whose times decide what spoils them.

Where the order of all events is certain, it tells which of them lie in a gap. Times are left to ask for where
a gap ends with the window, behind a match or before it, and where there are conditions on times: what may
spoil the match then takes part in the sum over the ticks of its events. Records that are not spoken of are
summed out beforehand, as those of a source are a Markov chain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.shared.contracted import Node, step_between
from confidence.timed.bounds import UNBOUND, Bounds, tightened
from confidence.timed.factors import Cells, Factor, TooManyCellsError, law_of
from confidence.timed.forbidden_spans import Grid, Span
from uncertain_cep.config.limits import MOST_CONFIDENCE_STEPS, MOST_RECORD_CELLS
from uncertain_cep.operators.context import InOrder
from uncertain_cep.operators.sequenced_matches import SequenceWeigher
from uncertain_cep.weighers.explicit import (
    TooManySpoilersError,
    gathered,
    matches_by_counts,
    own_bounds,
    rule_bounds,
)
from uncertain_cep.weighers.forbidden_events import span_of, tie
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns
from uncertain_cep.weighers.shapes import Rule, Shape

__all__ = ["OrderedGaps"]

Int64 = NDArray[np.int64]

Float64 = NDArray[np.float64]

Described = tuple[int, int, float]
"""Range and confidence of a match."""

_Forbidding = tuple[int, list[tuple[Rule, Span]]]
"""The row of an event that may spoil a match, the rules, and its span by the conditions of each."""


class _Other(NamedTuple):
    """An event that may spoil a match."""

    row: int
    happened: float
    spans: tuple[Span, ...]
    """Where it does; of the ends of gaps those alone that the order does not decide."""


class _TimeConstraints(NamedTuple):
    """Constraints on the times of events, by their places in the known order."""

    rows: list[int]
    ends: tuple[int, int]
    """The first and the last event of the match."""
    bounds: Bounds
    others: dict[int, _Other]
    boxes: dict[int, tuple[int, int]]

    @property
    def is_anchored(self) -> bool:
        """Whether more than differences counts."""
        spans = [span for other in self.others.values() for span in other.spans]
        bounds = [pair for found in (self.bounds, *(span.guards for span in spans)) for pair in found]
        ends = [time for span in spans for time, _ in (*span.lowers, *span.uppers)]
        return bool(self.boxes) or any(j < 0 for _, j in bounds) or min(ends, default=0) < 0


class OrderedGaps:
    """Ranges and confidences of matches among events in a known order.

    Parameters
    ----------
    order : InOrder
    table : pyarrow.Table
    """

    def __init__(self, order: InOrder, table: pa.Table) -> None:
        self._plan, self._events = order.plan, order.events
        self._weigher = SequenceWeigher.of(order.events, order.plan, table)

    def weigh(self, model: MatchModel, out: Columns) -> None:
        """Fill ranges, confidences and standard errors, which are 0.

        Raises
        ------
        ConfidenceCostError
            If the sum over the ticks of a match has too many cells.
        """
        out.std_error[:] = 0.0
        try:
            for counts, which in matches_by_counts(model):
                self._of_one_shape(model, model.pattern.shapes.of(counts), which, out)
        except TooManySpoilersError:
            for half in np.array_split(np.arange(model.count), 2):
                answers = Columns.empty(len(half))
                self.weigh(model.some(half), answers)
                out.put(half, answers)

    def _of_one_shape(self, model: MatchModel, shape: Shape, which: Int64, out: Columns) -> None:
        matches, candidates = model.matches, model.candidates
        event = matches.start[which][:, None] + np.arange(shape.total)
        place = matches.place[event]
        rows, at = candidates.row[place], candidates.lower[place] - candidates.base[place]
        bounds = list(own_bounds(model.pattern.templates, shape, rows))
        forbidding = _forbidding(model, shape, which, rows, at, self._events.places)
        for k, n in enumerate(which.tolist()):
            checkpoint()
            of_match: Bounds = {}
            for instance, low, high in bounds:
                at_k = min(k, len(low) - 1)
                tie(of_match, instance.later, instance.earlier, int(low[at_k]), int(high[at_k]))
            answer = None
            if all(low <= high for low, high in of_match.values()):
                boxes = matches.boxes[:, event[k]].T.tolist() if matches.boxes.shape[1] else None
                answer = self._weighed(model, rows[k].tolist(), of_match, forbidding[k], boxes)
            out.lower[n], out.upper[n], out.confidence[n] = answer or (0, -1, 0.0)

    def _weighed(
        self,
        model: MatchModel,
        rows: list[int],
        bounds: Bounds,
        forbidding: Sequence[_Forbidding],
        boxes: list[list[int]] | None,
    ) -> Described | None:
        """Return range and confidence of a match; None if it cannot be.

        ``bounds`` are those of its times by conditions, ``forbidding`` the events that may spoil it.
        """
        sorted_own = self._events.in_order(np.array(rows)[:, None])[:, 0].tolist()
        first, last = sorted_own[0], sorted_own[-1]
        window = self._plan.window
        if first != last:
            tie(bounds, last, first, -UNBOUND, window - 1)
        spoiling, share = [], 1.0
        probability = model.pattern.probability
        for row, rules in forbidding:
            happened = 1.0 if probability is None else float(probability[row])
            spans = [_in_gap(rule, span, first, last, window) for rule, span in rules]
            spans = [span for span in spans if self._can_lie_in(span, row, rows)]
            if any(not (span.lowers or span.uppers or span.guards) for span in spans):
                share *= 1.0 - happened
            elif spans and happened > 0.0:
                spoiling.append(_Other(row, happened, tuple(spans)))
        if not share > 0.0:
            return None
        spoiling = self._decisive(spoiling)
        kept = {first, last}
        for pair in (*bounds, *(pair for other in spoiling for span in other.spans for pair in span.guards)):
            kept.update(pair)
        for other in spoiling:
            kept.update(*(span.times for span in other.spans))
        boxed = {
            event: (low, high)
            for event, (low, high) in enumerate(boxes or ())
            if low > self._lower(rows[event]) or high < self._upper(rows[event])
        }
        kept.update(boxed)
        kept.discard(-1)
        constraints = self._numbered(rows, (first, last), sorted(kept), bounds, spoiling, boxed)
        found = self._over_offsets(constraints)
        return found and (found[0], found[1], min(found[2], 1.0) * share)

    def _can_lie_in(self, span: Span, row: int, rows: list[int]) -> bool:
        """Return whether an event can lie in a span, as far as own times tell."""
        lower, upper = self._events.lower, self._events.upper
        lows = [int(lower[rows[event]]) + by for event, by in span.lowers if event >= 0]
        highs = [int(upper[rows[event]]) + by for event, by in span.uppers if event >= 0]
        return max([int(lower[row]), *lows]) <= min([int(upper[row]), *highs])

    def _lower(self, row: int) -> int:
        return int(self._events.lower[row] + self._events.low[row])

    def _upper(self, row: int) -> int:
        return int(self._events.upper[row] + self._events.high[row])

    def _decisive(self, others: list[_Other]) -> list[_Other]:
        """Return, in their order, those of the others that decide.

        An event is at most as late as one behind it in the order. So where the one behind it happened, and
        spoils the match from some tick on, one ahead of it that spoils it at none before that adds nothing;
        and the other way round.
        """
        if not others:
            return others
        order = self._events.in_order(np.array([other.row for other in others])[:, None])[:, 0]
        found = [others[n] for n in order.tolist()]
        for side in (0, 1):
            # The first time from the last event to the first one.
            deciding: list[Span] = []
            kept = []
            for other in reversed(found):
                if any(all(_implies(span, one, side) for span in other.spans) for one in deciding):
                    continue
                kept.append(other)
                if other.happened >= 1.0:
                    deciding += [span for span in other.spans if not (span[1 - side] or span.guards)]
            found = kept
        return found

    def _numbered(
        self,
        rows: list[int],
        ends: tuple[int, int],
        kept: Sequence[int],
        bounds: Bounds,
        others: Sequence[_Other],
        boxes: dict[int, tuple[int, int]],
    ) -> _TimeConstraints:
        """Return the constraints on times by the places of events in the known order."""
        some = [rows[event] for event in kept] + [other.row for other in others]
        order = self._events.in_order(np.array(some)[:, None])[:, 0].tolist()
        place = {number: at for at, number in enumerate(order)}
        of = {event: place[number] for number, event in enumerate(kept)} | {-1: -1}

        def moved(bounds: Bounds) -> Bounds:
            return {(of[i], of[j]): found for (i, j), found in bounds.items()}

        numbered = {}
        for number, other in enumerate(others, start=len(kept)):
            spans = tuple(
                Span(
                    tuple((of[event], by) for event, by in span.lowers),
                    tuple((of[event], by) for event, by in span.uppers),
                    moved(span.guards),
                )
                for span in other.spans
            )
            numbered[place[number]] = other._replace(spans=spans)
        return _TimeConstraints(
            [some[number] for number in order],
            (of[ends[0]], of[ends[1]]),
            moved(bounds),
            numbered,
            {of[event]: box for event, box in boxes.items()},
        )

    def _over_offsets(self, constraints: _TimeConstraints) -> Described | None:
        """Return range and confidence of a match, whatever its source's offset may be."""
        row = constraints.rows[0]
        low, high = int(self._events.low[row]), int(self._events.high[row])
        if low == high or not constraints.is_anchored:
            found = self._summed(constraints, low)
            return found and (found[0], found[1] + high - low, found[2])
        total, begins, ends = 0.0, [], []
        for offset, share in enumerate(self._weigher.offset_law(row).tolist()):
            checkpoint()
            found = self._summed(constraints, low + offset) if share > 0.0 else None
            if found is not None:
                begins.append(found[0])
                ends.append(found[1])
                total += share * found[2]
        return (min(begins), max(ends), total) if begins else None

    def _summed(self, constraints: _TimeConstraints, offset: int) -> Described | None:
        """Return range and confidence of a match given its source's offset; None if it cannot be."""
        try:
            nodes = [self._weigher.node(row, offset) for row in constraints.rows]
            system = _cut(nodes, constraints)
            if system is None:
                return None
            nodes, grid = system
            cells = Cells(float(MOST_CONFIDENCE_STEPS), float(MOST_RECORD_CELLS))
            summed = _summed_out(nodes, constraints, grid, cells)
            laws = _laws(nodes, summed.keys(), cells)
            factors = [*summed.values(), *laws, *_conditions_of(constraints, summed.keys(), grid, cells)]
            first, last = constraints.ends
            law = law_of([first], grid.sizes, factors, cells)
            # However small they are.
            possible = [Factor(axes, (values > 0.0).astype(np.float64)) for axes, values in factors]
            begins, ends = (
                np.flatnonzero(law_of([end], grid.sizes, possible, cells)) for end in constraints.ends
            )
        except TooManyCellsError as error:
            raise self._weigher.too_many(np.array(constraints.rows), error.cells) from None
        if not len(begins):
            return None
        return nodes[first].first + int(begins[0]), nodes[last].first + int(ends[-1]), float(law.sum())


def _forbidding(
    model: MatchModel, shape: Shape, which: Int64, rows: Int64, at: Int64, places: tuple[int, int]
) -> list[list[_Forbidding]]:
    """Return the events that may spoil each of some matches of one shape, whose events have these places.

    ``places`` are how many a tick has, and how many ticks an event can be behind that of its place.
    """
    listed: list[list[_Forbidding]] = [[] for _ in which]
    if not shape.rules:
        return listed
    events = gathered(model, shape, which, at, at, shape.by_place(*places))
    low, high, match = rule_bounds(model, shape, events, rows)
    sides = shape.constraints[0]
    for x, row in enumerate(events.row.tolist()):
        begin, end = events.rule_start[x : x + 2].tolist()
        rules = []
        for r in range(begin, end):
            k = int(events.rule[r])
            rule = shape.rules[k]
            # The order decides on the ends of the gap.
            conditions = slice(rule.ends, rule.ends + len(rule.instances))
            span = span_of(
                zip(
                    map(tuple, sides[k, conditions].tolist()), low[r, conditions].tolist(),
                    high[r, conditions].tolist(), strict=True,
                )
            )  # fmt: skip
            if span is not None:
                rules.append((rule, span))
        listed[int(match[begin])].append((row, rules))
    return listed


def _in_gap(rule: Rule, span: Span, first: int, last: int, window: int) -> Span:
    """Return the span of an event by its conditions, and by the window where that ends its gap, in ticks."""
    lowers = ((last, 1 - window),) if any(offset != 1 for _, offset in rule.span.lowers) else ()
    uppers = ((first, window - 1),) if any(offset != -1 for _, offset in rule.span.uppers) else ()
    return Span((*lowers, *span.lowers), (*uppers, *span.uppers), span.guards)


def _implies(span: Span, other: Span, side: int) -> bool:
    """Return whether a span begins nowhere before another one does, or, with 1 for ``side``, ends so."""
    sign = 1 - 2 * side
    return all(
        any(event == time and sign * by >= sign * least for event, by in span[side])
        for time, least in other[side]
    )


def _cut(nodes: Sequence[Node], constraints: _TimeConstraints) -> tuple[list[Node], Grid] | None:
    """Return events with those ticks alone that bounds and boxes leave; None if they leave none."""
    lower, upper = np.array([(node.first, node.last) for node in nodes]).T
    for place, (low, high) in constraints.boxes.items():
        lower[place], upper[place] = max(lower[place], low), min(upper[place], high)
    tight = None if (lower > upper).any() else tightened(lower, upper, constraints.bounds)
    if tight is None:
        return None
    grid = Grid(*tight)
    found = []
    for node, low, size in zip(nodes, grid.first.tolist(), grid.sizes, strict=True):
        begin = low - node.first
        found.append(node._replace(first=low, law=node.law[begin : begin + size]))
    return found, grid


def _summed_out(
    nodes: Sequence[Node], constraints: _TimeConstraints, grid: Grid, cells: Cells
) -> dict[int, Factor]:
    """Return the probabilities that the first and the last of all events do not spoil a match, by place.

    Of an event that is the first or the last, and spoils the match in one span that one other time ends, sums
    of its law given the record next to it are enough. All terms are positive.
    """
    found: dict[int, Factor] = {}
    for place, towards in ((0, 1), (len(nodes) - 1, -1)):
        other = constraints.others.get(place)
        if other is None or len(other.spans) > 1 or other.spans[0].guards or len(other.spans[0].times) != 1:
            continue
        (time,) = other.spans[0].times
        node, next_to = nodes[place], None
        law = node.law[None]
        for at in range(place + towards, constraints.ends[towards < 0] + towards, towards):
            if node.records is not None and nodes[at].source == node.source:
                cells.take([node.records.size, node.records.size])
                next_to = at
                law = step_between(nodes[at], node) if towards < 0 else _given_later(node, nodes[at])
                break
        cells.take([len(law), grid.sizes[time]])
        low, high = (np.broadcast_to(end, grid.sizes[time]) for end in grid.ends(other.spans[0], (time,)))
        sums = np.zeros((2, len(law), len(node.law) + 1))
        np.cumsum(law, axis=1, out=sums[0, :, 1:])
        np.cumsum(law[:, ::-1], axis=1, out=sums[1, :, -2::-1])
        outside = sums[0][:, np.clip(low - node.first, 0, len(node.law))]
        outside = outside + sums[1][:, np.clip(high + 1 - node.first, 0, len(node.law))]
        spared = np.where(low <= high, 1.0 - other.happened + other.happened * outside, 1.0)
        if next_to is None or next_to == time:
            found[place] = Factor((time,), spared[0] if next_to is None else spared.diagonal())
        elif next_to < time:
            found[place] = Factor((next_to, time), spared)
        else:
            found[place] = Factor((time, next_to), spared.T)
    return found


def _given_later(node: Node, later: Node) -> Float64:
    """Return the law of a record's tick, by columns, given that of a later one of its source, by rows."""
    both = (node.law[:, None] * step_between(node, later)).T
    total = both.sum(axis=1, keepdims=True)
    return np.asarray(both / np.where(total > 0.0, total, 1.0))


def _laws(nodes: Sequence[Node], left_out: Collection[int], cells: Cells) -> Iterator[Factor]:
    """Yield the laws of events in their order: of records each given the one ahead of it."""
    ahead: dict[int, int] = {}
    for place, node in enumerate(nodes):
        if place in left_out:
            yield Factor((place,), np.eye(1, len(node.law))[0])
            continue
        before = ahead.get(node.source)
        if node.records is None or before is None:
            yield Factor((place,), node.law)
        else:
            cells.take([node.records.size, node.records.size])
            yield Factor((before, place), step_between(nodes[before], node))
        ahead[node.source] = place


def _conditions_of(
    constraints: _TimeConstraints, left_out: Collection[int], grid: Grid, cells: Cells
) -> Iterator[Factor]:
    """Yield where bounds of the match's times hold, and the probabilities that others do not spoil it."""
    for (i, j), found in constraints.bounds.items():
        least, most = int(grid.first[i] - grid.last[j]), int(grid.last[i] - grid.first[j])
        if j >= 0 and i != j and not (found[0] <= least and most <= found[1]):
            axes: tuple[int, ...] = (min(i, j), max(i, j))
            cells.take(grid.shape(axes))
            yield Factor(axes, grid.meets({(i, j): found}, axes).astype(np.float64))
    for place, other in constraints.others.items():
        if place in left_out:
            continue
        times = frozenset({place}).union(*(span.times for span in other.spans))
        axes = tuple(sorted(times))
        cells.take(grid.shape(axes))
        inside = np.zeros(grid.shape(axes), dtype=np.bool_)
        for span in other.spans:
            low, high = grid.ends(span, axes)
            ticks = grid.ticks(place, axes)
            inside |= (low <= ticks) & (ticks <= high)
        yield Factor(axes, np.where(inside, 1.0 - other.happened, 1.0))
