"""Matches some of whose events sequences put in order: those at one tick, or all of an ordered source.

The search finds more than there is, see :class:`SequencedEvents`; what it finds is described anew. Without
records of ordered sources, neighbours that may share a tick are one tick apart at least once each event is
moved by as many ticks as there are such neighbours ahead of it. So what describes events of shared clocks
takes them. Records are summed over (:mod:`confidence.shared.contracted`), matches alike once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.chain.side_by_side import tight_ranges
from confidence.flat_lists import starts_of
from confidence.shared.contracted import (
    Apart,
    Node,
    contracted,
    reversed_nodes,
    without_implied,
)
from confidence.shared.held import Offsets, OwnTimes
from confidence.timed.factors import TooManyCellsError
from uncertain_cep.candidates.own_times import SharedClocks, offset_bounds, shared_clocks
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.candidates.sequenced import SequencedEvents
from uncertain_cep.config.limits import MOST_OFFSETS, MOST_RECORD_CELLS
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.shared_clocks import weigher
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plurals import first_few
from uncertain_cep.weighers.templates import TimeTemplates

__all__ = ["SequenceWeigher", "sequence_weigher"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MOST_REMEMBERED = 100_000
"""Matches whose confidences are kept for others alike."""


def sequence_weigher(
    events: SequencedEvents, plan: EvaluationPlan, table: pa.Table
) -> Callable[[MatchBatch], MatchBatch]:
    """Return a weigher for matches whose events have a known order.

    Parameters
    ----------
    events : SequencedEvents
    plan : EvaluationPlan
        That asked for.
    table : pyarrow.Table
        The events.
    """
    weigh = SequenceWeigher.of(events, plan, table)

    def weighed(chunk: MatchBatch) -> MatchBatch:
        many = len(chunk.lower)
        lower, upper, confidence = np.zeros(many, np.int64), np.full(many, -1), np.zeros(many)
        for which, rows, counts in _by_counts(chunk):
            if events.is_total and len(rows) > 1 and not plan.bound.times:
                # All is in order, so that only the window is left to ask for.
                rows = np.take_along_axis(rows, events.in_order(rows)[[0, -1]], axis=0)
            lower[which], upper[which], confidence[which] = weigh(rows, counts)
        error = None if chunk.std_error is None else chunk.std_error * confidence
        if chunk.confidence is not None:
            confidence *= chunk.confidence
        found = replace(
            chunk,
            lower=lower,
            upper=upper,
            confidence=confidence,
            std_error=error,
            at_most_one=False,
            at_least=0.0,
        )
        return found.keep(lower <= upper)

    return weighed


def _no_clocks(events: SequencedEvents, pmfs: ExplicitPmfs | None) -> SharedClocks:
    """Return events that share no clock, each with its own time and its offset taken together."""
    offset = np.full(len(events.source), -1) if pmfs is None else pmfs.offset
    nothing = np.zeros(1, np.int64)
    alone = np.full(len(events.source), -1)
    times = events.lower + events.low, events.upper + events.high
    return SharedClocks(
        OwnTimes(alone, *times, offset),
        Offsets(nothing, nothing, nothing - 1),
        np.zeros(0) if pmfs is None else pmfs.values,
        ("",),
        offset >= 0,
        times,
    )


Counts = tuple[int, ...]
"""How many events a match has of each component."""


def _by_counts(chunk: MatchBatch) -> Iterator[tuple[Int64, Int64, Counts]]:
    """Yield matches of equal numbers of events, (k,) int64, their rows, (l, k) int64, and the numbers."""
    sizes, rows = chunk.by_match()
    start = starts_of(sizes.sum(axis=0))
    kinds, kind = np.unique(sizes, axis=1, return_inverse=True)
    for number, counts in enumerate(kinds.T.tolist()):
        which = np.flatnonzero(kind.reshape(-1) == number)
        yield which, rows[start[which] + np.arange(sum(counts))[:, None]], tuple(counts)


Weighed = tuple[Int64, Int64, Float64]
"""Ranges and confidences of matches; an empty range is that of none."""
Described = tuple[float, int, int]
"""Confidence and range of a match."""


class Asked(NamedTuple):
    """Bounds that conditions on times put on the events of a match."""

    apart: tuple[Apart, ...] = ()
    within: tuple[tuple[int, int, int], ...] = ()
    """Events, by their places, and the first and last ticks that they may have."""

    @property
    def kept(self) -> set[int]:
        """The events that are spoken of."""
        return {place for pair in self.apart for place in pair[:2]} | {place for place, _, _ in self.within}


_NOTHING: Final = Asked()


class SequenceWeigher:
    """Ranges and confidences of matches of one length, whose events come one after the other.

    Where the order of all events is known, an event at either end may be left out, and those in between.
    """

    def __init__(
        self, events: SequencedEvents, clocks: SharedClocks, window: int, templates: TimeTemplates | None
    ) -> None:
        self._events, self._clocks, self._window, self._templates = events, clocks, window, templates
        self._known: dict[Any, Described | None] = {}
        self._laws: dict[Any, Float64] = {}

    @classmethod
    def of(cls, events: SequencedEvents, plan: EvaluationPlan, table: pa.Table) -> SequenceWeigher:
        """Return the weigher of the matches of a plan among the events of a table."""
        times = events.lower + events.low, events.upper + events.high
        clocks, pmfs = shared_clocks(plan, table, offset_bounds(plan, table), events.pmfs, *times)
        templates = TimeTemplates(plan, table) if plan.bound.times else None
        return cls(events, clocks or _no_clocks(events, pmfs), plan.window, templates)

    def __call__(self, rows: Int64, counts: Counts) -> Weighed:
        """Return ranges and confidences of matches, (l, k) rows."""
        if self._templates is not None:
            return self._timed(rows, counts)
        of_records = (self._events.cluster[rows] >= 0).any(axis=0)
        found = np.zeros(rows.shape[1], np.int64), np.full(rows.shape[1], -1), np.zeros(rows.shape[1])
        for some, weigh in ((~of_records, self._moved), (of_records, self._summed)):
            which = np.flatnonzero(some)
            if len(which):
                for column, values in zip(found, weigh(rows[:, which]), strict=True):
                    column[which] = values
        return found

    def _moved(self, rows: Int64) -> Weighed:
        """Weigh matches without records."""
        count, last = rows.shape[1], self._events.rises(rows).sum(axis=0)
        lower, upper, confidence = np.zeros(count, np.int64), np.full(count, -1), np.zeros(count)
        for ties in np.unique(last).tolist():
            which = np.flatnonzero(last == ties)
            moved, shift = self.moved(rows[:, which])
            numbers = np.arange(shift.size).reshape(len(rows), -1)
            window, position = self._window + ties, np.arange(len(rows))[:, None]
            begin, end = (bound.reshape(shift.shape) - position for bound in moved.times)
            first, final, possible = tight_ranges(begin, end, window - len(rows))
            final = np.where(possible, final + len(rows) - 1, first - 1)
            # What is impossible is left out, so the matches are told by their first events.
            some = weigher(moved, window, True)(MatchBatch(numbers, first, final, None))
            assert some.confidence is not None
            place = which[some.events[0]]
            lower[place], upper[place], confidence[place] = some.lower, some.upper - ties, some.confidence
        return lower, upper, confidence

    def _summed(self, rows: Int64) -> Weighed:
        """Weigh matches with records."""
        events, rises = self._events, self._events.rises(rows)
        loose = events.low[rows] < events.high[rows]
        alone = (events.source[rows] == events.source[rows[0]]).all(axis=0)
        low, high = (np.where(alone, 0, bound[rows]) for bound in (events.low, events.high))
        first, last = events.lower[rows] + low, events.upper[rows] + high
        least = 1 - rises.astype(np.int64)
        lower, upper, possible = _ranges(first, last, least, self._window)
        cluster, place = events.cluster[rows], events.place[rows]
        both = (cluster[1:] >= 0) & (cluster[:-1] == cluster[1:])
        certain = ((last[:-1] + least <= first[1:]) | (both & rises)).all(axis=0)
        certain &= last[-1] - first[0] < self._window
        possible &= ~_backward(cluster, place)
        confidence = possible.astype(np.float64)
        holes = (events.pmfs.offset[rows] >= 0).any(axis=0)
        held = loose.any(axis=0) & ~alone
        for n in np.flatnonzero(possible & (~certain | holes | held)).tolist():
            if held[n]:
                weighed = self._held(rows[:, n], least[:, n])
            else:
                weighed = self._one(rows[:, n], low[:, n], least[:, n])
            if weighed is None:
                possible[n], confidence[n] = False, 0.0
            else:
                confidence[n], lower[n], upper[n] = weighed
        lower = np.where(alone, lower + events.low[rows[0]], lower)
        upper = np.where(alone, upper + events.high[rows[0]], upper)
        return np.where(possible, lower, 0), np.where(possible, upper, -1), confidence

    def _timed(self, rows: Int64, counts: Counts) -> Weighed:
        """Weigh matches with conditions on times."""
        events, many = self._events, rows.shape[1]
        lower, upper, confidence = np.zeros(many, np.int64), np.full(many, -1), np.zeros(many)
        least = 1 - events.rises(rows).astype(np.int64)
        for n, asked in enumerate(self._asked(rows, counts)):
            if asked is None:
                continue
            own, source = rows[:, n], events.source[rows[:, n]]
            if asked.within or (source != source[0]).any():
                weighed = self._held(own, least[:, n], asked)
            else:
                weighed = self._one(own, np.zeros_like(own), least[:, n], asked)
                offset = int(events.low[own[0]]), int(events.high[own[0]])
                weighed = weighed and (weighed[0], weighed[1] + offset[0], weighed[2] + offset[1])
            if weighed is not None:
                confidence[n], lower[n], upper[n] = weighed
        return lower, upper, confidence

    def _asked(self, rows: Int64, counts: Counts) -> Iterator[Asked | None]:
        """Yield for each match, (l, k) rows, what is asked of it; None if it cannot be."""
        events, places = self._events, []
        possible = ~_backward(events.cluster[rows], events.place[rows])
        lows, highs = np.zeros((2, 0, rows.shape[1]), np.int64)
        if self._templates is not None:
            instances = self._templates.own(counts)
            bounds = [self._templates.bounds_of_all(instance, rows.T) for instance in instances]
            places = [(instance.earlier, instance.later) for instance in instances]
            if bounds:
                lows, highs = np.array(bounds).transpose(1, 0, 2)
        for is_met, low_of, high_of in zip(possible.tolist(), lows.T.tolist(), highs.T.tolist(), strict=True):
            apart, within = [], []
            for (one, other), low, high in zip(places, low_of, high_of, strict=True):
                is_met &= low <= high and (one != other or low <= 0 <= high)
                if one < 0:
                    within.append((other, low, high))
                elif one < other:
                    apart.append(Apart(one, other, low, high))
                elif one > other:
                    apart.append(Apart(other, one, -high, -low))
            yield Asked(tuple(apart), tuple(within)) if is_met else None

    def _held(self, rows: Int64, least: Int64, asked: Asked = _NOTHING) -> Described | None:
        """Weigh a match by going through the offsets of its sources; None if it cannot be."""
        total, begins, ends = 0.0, [], []
        for weight, moved in self._offsets(rows):
            found = self._one(rows, moved, least, asked)
            if found is not None:
                total += weight * found[0]
                begins.append(found[1])
                ends.append(found[2])
        checkpoint()
        return (total, min(begins), max(ends)) if begins else None

    def _offsets(self, rows: Int64) -> Iterator[tuple[float, Int64]]:
        """Yield the choices of offsets of a match's sources: the probability, and those of its events."""
        events = self._events
        several = {int(events.source[row]): row for row in rows if events.low[row] < events.high[row]}
        laws = [self.offset_law(row) for row in several.values()]
        choices = math.prod(map(len, laws))
        if choices > MOST_OFFSETS // 100:
            raise _too_many([events.names[source] for source in several], choices)
        for offsets in product(*map(range, map(len, laws))):
            weight, moved = 1.0, events.low[rows].copy()
            for source, law, offset in zip(several, laws, offsets, strict=True):
                weight *= float(law[offset])
                moved[events.source[rows] == source] += offset
            if weight > 0.0:
                yield weight, moved

    def offset_law(self, row: int) -> Float64:
        """Return the law of the offset of an event's source."""
        clocks, number = self._clocks, int(self._clocks.own.clock[row])
        size = int(self._events.high[row] - self._events.low[row]) + 1
        at = -1 if number < 0 else int(clocks.offsets.offset[number])
        return np.full(size, 1.0 / size) if at < 0 else clocks.values[at : at + size]

    def _one(
        self,
        rows: Int64,
        moved: Int64,
        least: Int64,
        asked: Asked = _NOTHING,
    ) -> Described | None:
        """Weigh a match whose sources have these offsets; None if it cannot be."""
        nodes, kinds, base = self._nodes(rows, moved, least, asked)
        if kinds in self._known:
            known = self._known[kinds]
        else:
            checkpoint()
            with self._naming(rows):
                known = self._described(nodes, asked, bool((self._events.pmfs.offset[rows] >= 0).any()))
            known = known and (known[0], known[1] - base, known[2] - base)
            if len(self._known) < _MOST_REMEMBERED:
                self._known[kinds] = known
        return known and (known[0], known[1] + base, known[2] + base)

    @contextmanager
    def _naming(self, rows: Int64) -> Iterator[None]:
        """Raise, for a sum over too many ticks, an error that names the source of records."""
        try:
            yield
        except TooManyCellsError as error:
            raise self.too_many(rows, error.cells) from None

    def too_many(self, rows: Int64, cells: float) -> ConfidenceCostError:
        """Return an error that says that a match of events of some rows takes so many cells."""
        sources = np.unique(self._events.source[rows])
        return _too_many([self._events.names[source] for source in sources[sources >= 0].tolist()], cells)

    def _nodes(
        self, rows: Int64, moved: Int64, least: Int64, asked: Asked
    ) -> tuple[list[Node], tuple[Any, ...], int]:
        """Return the events of a match whose sources have these offsets, and what matches alike agree on.

        What these agree on counts from a tick, which is the last that is returned.
        """
        nodes = [
            self.node(row, offset, step)
            for row, offset, step in zip(rows.tolist(), moved.tolist(), [1, *least.tolist()], strict=True)
        ]
        base = nodes[0].first
        kinds = tuple(
            (
                node.first - base, len(node.law), node.least, sources.index(node.source), id(node.records),
                node.place, node.moved - base, at,
            )
            for sources in [[node.source for node in nodes]]
            for node, at in zip(nodes, self._events.pmfs.offset[rows].tolist(), strict=True)
        )  # fmt: skip
        for place, low, high in asked.within:
            node = nodes[place]
            begin = min(max(low - node.first, 0), len(node.law))
            end = max(min(high - node.first + 1, len(node.law)), begin)
            nodes[place] = node._replace(first=node.first + begin, law=node.law[begin:end])
        within = tuple((place, low - base, high - base) for place, low, high in asked.within)
        return nodes, (kinds, asked.apart, within), base

    def moved(self, rows: Int64) -> tuple[SharedClocks, Int64]:
        """Return the clocks of matches without records, (l, k) rows, one place behind the other, and moves.

        With each event moved, (l, k) int64 ticks, a match is one whose times rise, as if there were no
        sequences, within as many more ticks as its last event is moved.
        """
        shift = np.zeros(rows.shape, np.int64)
        np.cumsum(self._events.rises(rows), axis=0, out=shift[1:])
        clocks, mine, by = self._clocks, rows.ravel(), shift.ravel()
        own, (lower, upper) = clocks.own, clocks.times
        moved = OwnTimes(own.clock[mine], own.lower[mine] + by, own.upper[mine] + by, own.offset[mine])
        times = lower[mine] + by, upper[mine] + by
        return replace(clocks, own=moved, has_law=clocks.has_law[mine], times=times), shift

    def law(self, rows: Int64, by: int, counts: Counts) -> tuple[int, Float64]:
        """Return P(match, and one of its events at a tick), from a first tick on, (n,) float64.

        ``rows``, (l,), are the match, and ``by`` the place of the event among them.
        """
        (asked,) = self._asked(rows[:, None], counts)
        events = self._events
        own, source = int(rows[by]), events.source[rows]
        first, size = int(events.lower[own]), int(events.upper[own] - events.lower[own]) + 1
        least = 1 - events.rises(rows[:, None])[:, 0].astype(np.int64)
        if asked is None:
            return first, np.zeros(1)
        low, high = int(events.low[own]), int(events.high[own])
        if asked.within or (source != source[0]).any():
            found = np.zeros(size + high - low)
            for weight, moved in self._offsets(rows):
                begin = int(moved[by]) - low
                found[begin : begin + size] += weight * self._by_tick(rows, moved, least, by, asked)
            return first + low, found
        # The offset is that of all, so it is independent of whether they are a match.
        law = self._by_tick(rows, np.zeros_like(rows), least, by, asked)
        return first + low, np.convolve(law, self.offset_law(own))

    def _by_tick(self, rows: Int64, moved: Int64, least: Int64, by: int, asked: Asked) -> Float64:
        """Return P(match, and one of its events at a tick) for all ticks that it has alone."""
        nodes, kinds, _ = self._nodes(rows, moved, least, asked)
        found = self._laws.get((kinds, by))
        if found is None:
            checkpoint()
            first = int(self._events.lower[rows[by]] + moved[by])
            found = np.zeros(int(self._events.upper[rows[by]] - self._events.lower[rows[by]]) + 1)
            if _ranges(*_bounds(nodes), self._window)[2][0]:
                begin = nodes[by].first - first
                with self._naming(rows):
                    found[begin : begin + len(nodes[by].law)] = self._contracted(nodes, asked, by)
            if (len(self._laws) + 1) * len(found) < _MOST_REMEMBERED:
                self._laws[kinds, by] = found
        return found

    def _contracted(self, nodes: list[Node], asked: Asked, by: int | None = None) -> Float64:
        """Return the probability of a match, by the tick of an event, of any if none is asked for."""
        kept = asked.kept if by is None else asked.kept | {by}
        needed = without_implied(nodes, self._window, kept)
        if len(needed) == 1 and by is None and not kept:
            return np.ones(1)
        at = {n: place for place, n in enumerate(needed)}
        apart = [pair._replace(one=at[pair.one], other=at[pair.other]) for pair in asked.apart]
        return contracted(
            [nodes[n] for n in needed], self._window, MOST_RECORD_CELLS, by=None if by is None else at[by],
            apart=apart,
        )  # fmt: skip

    def _described(self, nodes: list[Node], asked: Asked, holes: bool) -> Described | None:
        """Return confidence and range of a match, counted from the tick at which its laws begin."""
        most, window = MOST_RECORD_CELLS, self._window
        lower, upper, possible = _ranges(*_bounds(nodes), window)
        if not possible[0]:
            return None
        begin, end = int(lower[0]), int(upper[0])
        if holes or asked.apart:
            last = len(nodes) - 1
            backward = [pair._replace(one=last - pair.other, other=last - pair.one) for pair in asked.apart]
            ends = np.flatnonzero(contracted(nodes, window, most, possible=True, apart=asked.apart))
            begins = np.flatnonzero(
                contracted(reversed_nodes(nodes), window, most, possible=True, apart=backward)
            )
            if not len(ends):
                return None
            begin, end = nodes[0].last - int(begins[-1]), nodes[-1].first + int(ends[-1])
        return min(float(self._contracted(nodes, asked).sum()), 1.0), begin, end

    def node(self, row: int, moved: int, least: int = 1) -> Node:
        """Return an event whose source has an offset, and that comes so far behind the one ahead of it."""
        events = self._events
        lower, upper, cluster = int(events.lower[row]), int(events.upper[row]), int(events.cluster[row])
        if cluster < 0:
            at, size = int(events.pmfs.offset[row]), upper - lower + 1
            law = np.full(size, 1.0 / size) if at < 0 else events.pmfs.values[at : at + size]
            return Node(lower + moved, law, least)
        first, records = events.records(cluster)
        place = int(events.place[row])
        law = records.time(place)[lower - first : upper - first + 1]
        return Node(lower + moved, law, least, cluster, records, place, first + moved)


def _backward(cluster: Int64, place: Int64) -> Mask:
    """Return a mask, (k,) bool, of the matches, (l, k), whose records are in another order."""
    found = np.zeros(cluster.shape[1], np.bool_)
    for apart in range(1, len(cluster)):
        backward = (cluster[apart:] == cluster[:-apart]) & (place[apart:] <= place[:-apart])
        found |= (backward & (cluster[apart:] >= 0)).any(axis=0)
    return found


def _bounds(nodes: list[Node]) -> tuple[Int64, Int64, Int64]:
    """Return the first and last ticks of a match's events, and how far each is behind the one ahead."""
    first, last, least = np.array([(node.first, node.last, node.least) for node in nodes]).T[:, :, None]
    return first, last, least[1:]


def _ranges(first: Int64, last: Int64, least: Int64, window: int) -> tuple[Int64, Int64, Mask]:
    """Return the tightest ranges of matches by bounds of times, (l, k), and which can be.

    ``least``, (l - 1, k), is how many ticks each event comes after the one ahead of it at least.
    """
    steps = np.zeros(first.shape, np.int64)
    np.cumsum(least, axis=0, out=steps[1:])
    begin, end, possible = tight_ranges(first - steps, last - steps, window - 1 - steps[-1])
    return begin, end + steps[-1], possible


def _too_many(names: list[str], choices: float) -> ConfidenceCostError:
    return ConfidenceCostError(
        f"the confidence of a match with events of the sources {first_few(names)}, which sequences put in "
        f"order, is a sum over {choices:.1e} choices of times and offsets: give a longer tick or tighter "
        "bounds of the offsets, or take times as independent, sources=False",
        int(choices),
        MOST_RECORD_CELLS,
    )
