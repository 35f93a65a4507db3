"""Events that can spoil a match: in some world with the rest of it they lie in a forbidden span.

What a match asks are bounds on differences of times, and so is that an event lies in a span; an event of a
clock is within its own bounds of the clock's offset. An event that lasts has two times, with bounds and maybe
a law of its length, their difference. Whether all can hold at once is whether a system of such
bounds has a solution, which whole numbers have as soon as any numbers do. Times with holes, ticks of
probability 0 inside their interval, are tried run by run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.chain.distribution import DOUBTFUL
from confidence.timed.bounds import UNBOUND, Bounds, tightened
from confidence.timed.counted_pairs import LASTING, RECORD
from confidence.timed.forbidden_tables import OTHER
from uncertain_cep.candidates.own_times import SharedClocks
from uncertain_cep.candidates.sequenced import SequencedEvents
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.forbidden_events import tie
from uncertain_cep.weighers.match_model import MatchModel

__all__ = ["MOST_TRIED", "spoilers"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Run = tuple[int, int]

MOST_TRIED: Final = 4096
"""Systems that are tried for one event where times have holes; beyond, the event counts as one that can."""


@dataclass
class _System:
    """Bounds of some times and of their differences.

    ``runs`` are the ticks of each time without holes, or of what a time is apart from that of another. The
    times are those of a match, then of one event that may spoil it, then the offsets of clocks.
    """

    lower: list[int]
    upper: list[int]
    bounds: Bounds
    spoiler: int
    """The number of its begin; its end is the next."""
    runs: list[tuple[int, int, list[Run]]] = field(default_factory=list)

    @property
    def first_clock(self) -> int:
        """The number of the offset of the first clock."""
        return self.spoiler + 2

    def within(self, time: int, other: int, runs: list[Run]) -> None:
        """Keep a time less another one, or a time itself where that is -1, within some runs."""
        tie(self.bounds, time, other, runs[0][0], runs[-1][1])
        if len(runs) > 1:
            self.runs.append((time, other, runs))

    def has_solution(self) -> bool:
        """Return whether some world meets all bounds; at most `MOST_TRIED` systems are looked at."""
        tried = 0
        waiting: list[tuple[int, Bounds]] = [(0, self.bounds)]
        while waiting:
            chosen, bounds = waiting.pop()
            tried += 1
            if tried > MOST_TRIED:
                return True
            if tightened(np.array(self.lower), np.array(self.upper), bounds) is None:
                continue
            if chosen == len(self.runs):
                return True
            time, other, runs = self.runs[chosen]
            for low, high in reversed(runs):
                narrower = dict(bounds)
                tie(narrower, time, other, low, high)
                waiting.append((chosen + 1, narrower))
        return False


def spoilers(
    model: MatchModel, clocks: SharedClocks | None, sequences: SequencedEvents | None = None
) -> Iterator[tuple[int, Int64]]:
    """Yield the matches of a model, and the rows of the events that can spoil each, ascending.

    Parameters
    ----------
    model : MatchModel
    clocks : SharedClocks or None
    sequences : SequencedEvents or None
        What ties the times of events besides.
    """
    records = None if sequences is None or not sequences.clusters else _Records(sequences)
    for part in model.explicit:
        for k, n in enumerate(part.which.tolist()):
            start = part.forbidden.start
            events = range(int(start[k]), int(start[k + 1]))
            base = _match_system(part, k, model, clocks) if events else None
            rows = [
                int(part.spoiler_row[x])
                for x in events
                if base is not None and _Spoiler(part, k, x, model, clocks, records).can_be(base)
            ]
            yield n, np.array(sorted(rows), dtype=np.int64)


def _match_system(
    part: ExplicitMatches, k: int, model: MatchModel, clocks: SharedClocks | None
) -> _System | None:
    """Return the bounds of the times of a match and of clocks; None if it cannot be."""
    times = part.times
    first, last = times.first[k].tolist(), times.last[k].tolist()
    if first[0] > last[0]:
        return None
    system = _System([*first, *2 * [-UNBOUND // 2]], [*last, *2 * [UNBOUND // 2]], {}, len(first))
    row = min(k, len(times.low) - 1)
    for (i, j), low, high in zip(
        times.sides.tolist(), times.low[row].tolist(), times.high[row].tolist(), strict=True
    ):
        tie(system.bounds, i, j, low, high)
    if clocks is not None:
        system.lower += clocks.offsets.lower.tolist()
        system.upper += clocks.offsets.upper.tolist()
        for clock, (low, high, law) in enumerate(zip(*(c.tolist() for c in clocks.offsets), strict=True)):
            system.within(system.first_clock + clock, -1, _runs(low, high, law, clocks.values))
    for event, own in enumerate(part.row[k].tolist()):
        law = -1 if times.size[k, event] > 0.0 else int(times.offset[k, event]) + first[event]
        runs = _runs(first[event], last[event], law, model.pmfs.values)
        if not runs:
            return None
        _place(system, event, own, runs, clocks)
    for end, event in enumerate(part.shape.lasting, start=part.shape.total):
        system.within(end, event, _lengths(model, int(part.row[k, event])))
    return system


def _lengths(model: MatchModel, row: int) -> list[Run]:
    """Return the runs of lengths that an event can have which lasts."""
    assert model.pattern.spans is not None
    length, laws = model.pattern.spans.times.length, model.pattern.spans.times.length_laws
    low, high = int(length.lower[row]), int(length.upper[row])
    law = None if laws is None else laws.of(row, high - low + 1)
    return [(low, high)] if law is None else _runs(low, high, 0, law)


class _Spoiler(NamedTuple):
    """An event, number x of those that may be forbidden, beside match k."""

    part: ExplicitMatches
    k: int
    x: int
    model: MatchModel
    clocks: SharedClocks | None
    records: _Records | None

    def can_be(self, base: _System) -> bool:
        """Return whether it can lie in a span that a rule forbids it, in a world that has the match."""
        others, values, x = self.part.forbidden, self.part.pmfs.values, self.x
        law = int(others.offset[x])
        if law <= DOUBTFUL:
            if not values[DOUBTFUL - law] > 0.0:
                return False
            law = int(values[DOUBTFUL - law + 1])
        lasts = law <= LASTING
        rules = range(int(others.rule_start[x]), int(others.rule_start[x + 1]), 2 if lasts else 1)
        for r in rules:
            system = replace(
                base, lower=list(base.lower), upper=list(base.upper), bounds=dict(base.bounds),
                runs=list(base.runs),
            )  # fmt: skip
            ticks = int(others.lower[x]), int(others.upper[x])
            if lasts:
                self._put_both(system, ticks)
                # Behind the record of such an event stand the lengths that each of its rules forbids.
                at = LASTING - law + RECORD + r - rules.start
                tie(system.bounds, base.spoiler + 1, base.spoiler, int(values[at]), int(values[at + 1]))
            else:
                self._put(system, base.spoiler, int(self.part.spoiler_row[x]), ticks, law)
            if self.records is not None:
                rows = [*self.part.row[self.k].tolist(), int(self.part.spoiler_row[x])]
                if not self.records.put_in_order(system, rows, self.clocks):
                    return False
            met = [_forbid(system, self.part, r + end, base.spoiler + end) for end in range(rules.step)]
            if all(met) and system.has_solution():
                return True
        return False

    def _put_both(self, system: _System, ticks: Run) -> None:
        """Give an event a begin and an end; ``ticks`` are those of the begin."""
        spans, row = self.model.pattern.spans, int(self.part.spoiler_row[self.x])
        assert spans is not None
        ends = tuple(int(bound[row]) for bound in spans.ends)
        rows = row, row + spans.times.events
        for number, (time_row, of_time) in enumerate(zip(rows, (ticks, ends), strict=True)):
            self._put(system, system.spoiler + number, time_row, of_time, int(self.model.offsets[time_row]))
        system.within(system.spoiler + 1, system.spoiler, _lengths(self.model, row))

    def _put(self, system: _System, time: int, row: int, ticks: tuple[int, ...], law: int) -> None:
        low, high = ticks
        system.lower[time], system.upper[time] = low, high
        _place(system, time, row, _runs(low, high, law, self.part.pmfs.values), self.clocks)


class _Records:
    """The records of ordered sources whose times depend on each other.

    Those between two events at hand count one by one where they have laws, which may have holes; what comes
    before the first or behind the last is in order at their earliest or latest ticks.
    """

    def __init__(self, sequences: SequencedEvents) -> None:
        self._sequences = sequences
        self._bounds: dict[int, tuple[list[int], list[int]]] = {}

    def put_in_order(self, system: _System, rows: list[int], clocks: SharedClocks | None) -> bool:
        """Add that the records among some events are in order; return False if they cannot be.

        ``rows`` are those of the first times of a system.
        """
        cluster, place = self._sequences.cluster, self._sequences.place
        of_cluster: dict[int, dict[int, int]] = {}
        for time, row in enumerate(rows):
            if cluster[row] >= 0:
                of_cluster.setdefault(int(cluster[row]), {})[int(place[row])] = time
        for number, times in of_cluster.items():
            members = self._sequences.clusters[number][0].tolist()
            first, last = self.bounds(number)
            previous = -1
            for at in range(min(times), max(times) + 1):
                row = members[at]
                if at not in times and self._sequences.pmfs.offset[row] < 0:
                    continue
                time = times.get(at, len(system.lower))
                if at not in times:
                    low, high = (int(bound[row]) for bound in self._sequences.times)
                    system.lower.append(low)
                    system.upper.append(high)
                runs = self._runs(row, first[at], last[at])
                if not runs:
                    return False
                if clocks is None or clocks.own.clock[row] < 0:
                    low = int(self._sequences.low[row])
                    runs = [(begin + low, end + low) for begin, end in runs]
                _place(system, time, row, runs, clocks)
                if previous >= 0:
                    tie(system.bounds, time, previous, 0, UNBOUND)
                previous = time
        return True

    def _runs(self, row: int, first: int, last: int) -> list[Run]:
        """Return the runs of the time of a record by its source within some ticks."""
        law = int(self._sequences.pmfs.offset[row])
        law += first - int(self._sequences.alone[0][row]) if law >= 0 else 0
        return _runs(first, last, law, self._sequences.pmfs.values)

    def bounds(self, cluster: int) -> tuple[list[int], list[int]]:
        """Return the first and last tick of each record of a cluster by its source, in any world."""
        bounds = self._bounds.get(cluster)
        if bounds is None:
            rows, lower, upper = (column.tolist() for column in self._sequences.clusters[cluster])
            runs = list(map(self._runs, rows, lower, upper))
            first, last = [lower[0]], [upper[-1]]
            for possible in runs:
                late = (max(begin, first[-1]) for begin, end in possible if end >= first[-1])
                first.append(next(late, UNBOUND))
            for possible in runs[::-1]:
                early = (min(end, last[-1]) for begin, end in possible[::-1] if begin <= last[-1])
                last.append(next(early, -UNBOUND))
            first, last = first[1:], last[1:]
            bounds = self._bounds[cluster] = first, last[::-1]
        return bounds


def _forbid(system: _System, part: ExplicitMatches, r: int, time: int) -> bool:
    """Add the constraints of a rule for a time of an event; return False if one is never met."""
    others = part.forbidden
    rule = int(others.rule[r])
    for c in range(int(others.constraints[rule])):
        i, j = (time if side == OTHER else side for side in others.sides[rule, c].tolist())
        low, high = int(others.low[r, c]), int(others.high[r, c])
        if low > high or (i == j and not low <= 0 <= high):
            return False
        if i != j:
            tie(system.bounds, i, j, low, high)
    return True


def _place(system: _System, time: int, row: int, runs: list[Run], clocks: SharedClocks | None) -> None:
    """Keep the time of an event within its runs or, if it shares a clock, where that allows it."""
    clock = -1 if clocks is None else int(clocks.own.clock[row])
    if clocks is None or clock < 0:
        system.within(time, -1, runs)
        return
    own = clocks.own
    apart = _runs(int(own.lower[row]), int(own.upper[row]), int(own.offset[row]), clocks.values)
    system.within(time, system.first_clock + clock, apart)


def _runs(lower: int, upper: int, law: int, values: Float64) -> list[Run]:
    """Return the runs of ticks that an interval can have, whose probabilities start at ``law``."""
    if law < 0 or lower > upper:
        return [(lower, upper)] if lower <= upper else []
    possible = values[law : law + upper - lower + 1] > 0.0
    edges = np.flatnonzero(np.diff(np.concatenate(([False], possible, [False]))))
    return [(lower + int(begin), lower + int(end) - 1) for begin, end in edges.reshape(-1, 2)]
