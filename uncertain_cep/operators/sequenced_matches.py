"""Matches some of whose events sequences put in order: those at one tick, or all of an ordered source.

The search finds more than there is, see :class:`SequencedEvents`; what it finds is described anew. Without
records of ordered sources, neighbours that may share a tick are one tick apart at least once each event is
moved by as many ticks as there are such neighbours ahead of it. So what describes events of shared clocks
takes them. Records are summed over (:mod:`confidence.shared.contracted`), matches alike once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.shared.contracted import Node, TooManyCellsError, contracted, reversed_nodes, without_implied
from confidence.shared.held import Offsets, OwnTimes
from uncertain_cep.candidates.own_times import SharedClocks, shared_clocks
from uncertain_cep.candidates.sequenced import SequencedEvents
from uncertain_cep.config import MOST_OFFSETS, MOST_RECORD_CELLS
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.shared_clocks import weigher
from uncertain_cep.plan import EvaluationPlan

__all__ = ["sequence_weigher"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MOST_REMEMBERED = 100_000
"""Matches whose confidences are kept for others alike."""


def sequence_weigher(
    events: SequencedEvents, plan: EvaluationPlan, table: pa.Table
) -> Callable[[MatchBatch], MatchBatch]:
    """Return what makes of matches, whose events are rows, what their sequences let them be.

    Parameters
    ----------
    events : SequencedEvents
    plan : EvaluationPlan
        That asked for.
    table : pyarrow.Table
        The events.
    """
    times = events.lower + events.low, events.upper + events.high
    clocks, _ = shared_clocks(plan, table, events.pmfs, *times)
    weigh = _Weigher(events, clocks or _no_clocks(events), plan.window)
    wanted = plan.needs_confidence

    def weighed(chunk: MatchBatch) -> MatchBatch:
        many = len(chunk.lower)
        lower, upper, confidence = np.zeros(many, np.int64), np.full(many, -1), np.zeros(many)
        for which, rows in _by_length(chunk):
            if events.is_total:
                # All is in order, so that only the window is left to ask for.
                at = events.lower[rows], events.tie[rows]
                ends = (
                    np.lexsort(at[::-1], axis=0)[[0, -1]] if len(rows) > 1 else np.zeros((1, len(which)), int)
                )
                rows = np.take_along_axis(rows, ends, axis=0)
            lower[which], upper[which], confidence[which] = weigh(rows, events.is_total)
        error = None if chunk.std_error is None else chunk.std_error * confidence
        if chunk.confidence is not None:
            confidence *= chunk.confidence
        found = replace(
            chunk, lower=lower, upper=upper, confidence=confidence if wanted else None, std_error=error
        )
        return found.keep(lower <= upper)

    return weighed


def _no_clocks(events: SequencedEvents) -> SharedClocks:
    nothing = np.zeros(1, np.int64)
    alone = np.full(len(events.source), -1)
    return SharedClocks(
        OwnTimes(alone, events.lower + events.low, events.upper + events.high, events.pmfs.offset),
        Offsets(nothing, nothing, nothing - 1),
        events.pmfs.values,
        ("",),
        events.pmfs.offset >= 0,
    )


def _by_length(chunk: MatchBatch) -> Iterator[tuple[Int64, Int64]]:
    """Yield which matches have so many events, (k,) int64, and the rows of these, (l, k) int64, in order."""
    many = len(chunk.lower)
    parts = chunk.of_components
    sizes = [np.ones(many, np.int64) if series is None else np.diff(series.start) for _, series in parts]
    total = np.sum(sizes, axis=0)
    rows = np.concatenate([own if series is None else series.events for own, series in parts])
    match = np.concatenate([np.repeat(np.arange(many), size) for size in sizes])
    rows = rows[np.argsort(match, kind="stable")]
    start = np.cumsum(total) - total
    for length in np.unique(total).tolist():
        which = np.flatnonzero(total == length)
        yield which, rows[start[which] + np.arange(length)[:, None]]


Weighed = tuple[Int64, Int64, Float64]
"""Ranges and confidences of matches; an empty range is that of none."""
Described = tuple[float, int, int]
"""Confidence and range of a match."""


class _Weigher:
    """What gives ranges and confidences of matches of one length."""

    def __init__(self, events: SequencedEvents, clocks: SharedClocks, window: int) -> None:
        self._events, self._clocks, self._window = events, clocks, window
        self._known: dict[Any, Described | None] = {}

    def __call__(self, rows: Int64, in_order: bool) -> Weighed:
        """Return ranges and confidences of matches, (l, k) rows, which may be known to be in order."""
        events = self._events
        rises = events.source[rows[1:]] == events.source[rows[:-1]]
        if not in_order:
            rises &= (events.rank[rows[:-1]] >= 0) & (events.rank[rows[1:]] > events.rank[rows[:-1]])
        of_records = (events.cluster[rows] >= 0).any(axis=0)
        found = np.zeros(rows.shape[1], np.int64), np.full(rows.shape[1], -1), np.zeros(rows.shape[1])
        for some, weigh in ((~of_records, self._moved), (of_records, self._summed)):
            which = np.flatnonzero(some)
            if len(which):
                for column, values in zip(found, weigh(rows[:, which], rises[:, which]), strict=True):
                    column[which] = values
        return found

    def _moved(self, rows: Int64, rises: Mask) -> Weighed:
        """Weigh matches without records."""
        clocks, own, count = self._clocks, self._clocks.own, rows.shape[1]
        shift = np.zeros(rows.shape, np.int64)
        np.cumsum(rises, axis=0, out=shift[1:])
        lower, upper, confidence = np.zeros(count, np.int64), np.full(count, -1), np.zeros(count)
        for ties in np.unique(shift[-1]).tolist():
            which = np.flatnonzero(shift[-1] == ties)
            mine, by = rows[:, which].ravel(), shift[:, which].ravel()
            moved = replace(
                clocks,
                own=OwnTimes(own.clock[mine], own.lower[mine] + by, own.upper[mine] + by, own.offset[mine]),
                has_law=clocks.has_law[mine],
            )
            numbers = np.arange(len(mine)).reshape(len(rows), -1)
            # What is impossible is left out, so the matches are told by their first events.
            unknown = MatchBatch(numbers, lower[which], upper[which], None)
            some = weigher(moved, self._window + ties, True)(unknown)
            assert some.confidence is not None
            place = which[some.events[0]]
            lower[place], upper[place], confidence[place] = some.lower, some.upper - ties, some.confidence
        return lower, upper, confidence

    def _summed(self, rows: Int64, rises: Mask) -> Weighed:
        """Weigh matches with records."""
        events = self._events
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
        for apart in range(1, len(rows)):
            backward = (cluster[apart:] == cluster[:-apart]) & (place[apart:] <= place[:-apart])
            possible &= ~(backward & (cluster[apart:] >= 0)).any(axis=0)
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

    def _held(self, rows: Int64, least: Int64) -> Described | None:
        """Weigh a match by going through the offsets of its sources; None if it cannot be."""
        events, clocks = self._events, self._clocks
        own = [
            (row, number) for row, number in zip(rows.tolist(), clocks.own.clock[rows].tolist(), strict=True)
        ]
        several = {
            int(events.source[row]): (row, number)
            for row, number in own
            if events.low[row] < events.high[row]
        }
        sizes = [int(events.high[row] - events.low[row]) + 1 for row, _ in several.values()]
        if math.prod(sizes) > MOST_OFFSETS // 100:
            raise _too_many([events.names[source] for source in several], math.prod(sizes))
        total, begins, ends = 0.0, [], []
        for offsets in product(*map(range, sizes)):
            weight, moved = 1.0, events.low[rows].copy()
            for (source, (_, number)), size, offset in zip(several.items(), sizes, offsets, strict=True):
                law = -1 if number < 0 else int(clocks.offsets.offset[number])
                weight *= 1.0 / size if law < 0 else float(clocks.values[law + offset])
                moved[events.source[rows] == source] += offset
            found = self._one(rows, moved, least) if weight > 0.0 else None
            if found is not None:
                total += weight * found[0]
                begins.append(found[1])
                ends.append(found[2])
        checkpoint()
        return (total, min(begins), max(ends)) if begins else None

    def _one(self, rows: Int64, moved: Int64, least: Int64) -> Described | None:
        """Weigh a match whose sources have these offsets; None if it cannot be."""
        events = self._events
        nodes = [
            self._node(row, offset, step)
            for row, offset, step in zip(rows.tolist(), moved.tolist(), [1, *least.tolist()], strict=True)
        ]
        base = nodes[0].first
        kinds = tuple(
            (
                node.first - base, len(node.law), node.least, sources.index(node.source), id(node.records),
                node.place, node.moved - base, at,
            )
            for sources in [[node.source for node in nodes]]
            for node, at in zip(nodes, events.pmfs.offset[rows].tolist(), strict=True)
        )  # fmt: skip
        if kinds in self._known:
            known = self._known[kinds]
        else:
            checkpoint()
            try:
                known = self._described(nodes, bool((events.pmfs.offset[rows] >= 0).any()))
            except TooManyCellsError as error:
                clusters = events.cluster[rows]
                names = [events.name_of(int(clusters[clusters >= 0][0]))]
                raise _too_many(names, error.cells) from None
            if len(self._known) < _MOST_REMEMBERED:
                self._known[kinds] = known
        return known and (known[0], known[1] + base, known[2] + base)

    def _described(self, nodes: list[Node], holes: bool) -> Described | None:
        """Return confidence and range of a match, counted from the first tick of its first event."""
        most, window = MOST_RECORD_CELLS, self._window
        first, last = (np.array([[getattr(node, end)] for node in nodes]) for end in ("first", "last"))
        lower, upper, possible = _ranges(first, last, np.array([[n.least] for n in nodes[1:]]), window)
        if not possible[0]:
            return None
        begin, end, base = int(lower[0]), int(upper[0]), nodes[0].first
        if holes:
            ends = np.flatnonzero(contracted(nodes, window, most, possible=True))
            begins = np.flatnonzero(contracted(reversed_nodes(nodes), window, most, possible=True))
            if not len(ends):
                return None
            begin, end = nodes[0].last - int(begins[-1]), nodes[-1].first + int(ends[-1])
        needed = without_implied(nodes, window)
        confidence = 1.0
        if len(needed) > 1:
            confidence = min(float(contracted(needed, window, most).sum()), 1.0)
        return confidence, begin - base, end - base

    def _node(self, row: int, moved: int, least: int) -> Node:
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


def _ranges(first: Int64, last: Int64, least: Int64, window: int) -> tuple[Int64, Int64, Mask]:
    """Return the tightest ranges of matches by bounds of times, (l, k), and which can be.

    ``least``, (l - 1, k), is how many ticks each event comes after the one ahead of it at least.
    """
    steps = np.zeros(first.shape, np.int64)
    np.cumsum(least, axis=0, out=steps[1:])
    spread = window - 1 - steps[-1]
    begin = np.maximum.accumulate(first - steps, axis=0)
    end = np.minimum.accumulate((last - steps)[::-1], axis=0)[::-1]
    begin, end = np.maximum(begin, begin[-1] - spread), np.minimum(end, end[0] + spread)
    return begin[0], end[-1] + steps[-1], (begin <= end).all(axis=0) & (spread >= 0)


def _too_many(names: list[str], choices: int) -> ConfidenceCostError:
    return ConfidenceCostError(
        f"the confidence of a match with events of the sources {', '.join(names)}, which sequences put in "
        f"order, is a sum over {choices:.1e} choices of times and offsets: give a longer tick or tighter "
        "bounds of the offsets, or take times as independent, sources=False",
        choices,
        MOST_RECORD_CELLS,
    )
