"""Events that can spoil a match: in some world with the rest of it they lie in a forbidden span.

What a match asks are bounds on differences of times, and so is that an event lies in a span; an event of a
clock is within its own bounds of the clock's offset. Whether all can hold at once is whether a system of such
bounds has a solution, which whole numbers have as soon as any numbers do. Times with holes, ticks of
probability 0 inside their interval, are tried run by run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.chain.distribution import DOUBTFUL
from confidence.timed.bounds import UNBOUND, Bounds, tightened
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

    ``runs`` are the ticks of each time without holes, or of what a time is apart from that of another.
    """

    lower: list[int]
    upper: list[int]
    bounds: Bounds
    runs: list[tuple[int, int, list[Run]]] = field(default_factory=list)

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
                if base is not None and _can_spoil(part, k, x, base, model, clocks, records)
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
    # Behind the events of the match one that may spoil it, then the clocks.
    count = len(first)
    system = _System([*first, -UNBOUND // 2], [*last, UNBOUND // 2], {})
    row = min(k, len(times.low) - 1)
    for (i, j), low, high in zip(
        times.sides.tolist(), times.low[row].tolist(), times.high[row].tolist(), strict=True
    ):
        tie(system.bounds, i, j, low, high)
    if clocks is not None:
        system.lower += clocks.offsets.lower.tolist()
        system.upper += clocks.offsets.upper.tolist()
        for clock, (low, high, law) in enumerate(zip(*(c.tolist() for c in clocks.offsets), strict=True)):
            system.within(count + 1 + clock, -1, _runs(low, high, law, clocks.values))
    for event, own in enumerate(part.row[k].tolist()):
        law = -1 if times.size[k, event] > 0.0 else int(times.offset[k, event]) + first[event]
        runs = _runs(first[event], last[event], law, model.pmfs.values)
        if not runs:
            return None
        _place(system, event, own, runs, count, clocks)
    return system


def _can_spoil(
    part: ExplicitMatches,
    k: int,
    x: int,
    base: _System,
    model: MatchModel,
    clocks: SharedClocks | None,
    records: _Records | None,
) -> bool:
    """Return whether an event can lie in a span that a rule forbids it, in a world that has the match."""
    others, values, count = part.forbidden, model.pmfs.values, part.shape.total
    law = int(others.offset[x])
    if law <= DOUBTFUL:
        if not values[DOUBTFUL - law] > 0.0:
            return False
        law = int(values[DOUBTFUL - law + 1])
    for r in range(int(others.rule_start[x]), int(others.rule_start[x + 1])):
        system = replace(
            base, lower=list(base.lower), upper=list(base.upper), bounds=dict(base.bounds),
            runs=list(base.runs),
        )  # fmt: skip
        system.lower[count], system.upper[count] = int(others.lower[x]), int(others.upper[x])
        runs = _runs(system.lower[count], system.upper[count], law, values)
        _place(system, count, int(part.spoiler_row[x]), runs, count, clocks)
        if records is not None:
            rows = [*part.row[k].tolist(), int(part.spoiler_row[x])]
            if not records.put_in_order(system, rows, clocks):
                return False
        if _forbid(system, part, r, count) and system.has_solution():
            return True
    return False


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
                _place(system, time, row, runs, len(rows) - 1, clocks)
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


def _forbid(system: _System, part: ExplicitMatches, r: int, count: int) -> bool:
    """Add the constraints of a rule for an event; return False if one is never met."""
    others = part.forbidden
    rule = int(others.rule[r])
    for c in range(int(others.constraints[rule])):
        i, j = (count if side == OTHER else side for side in others.sides[rule, c].tolist())
        low, high = int(others.low[r, c]), int(others.high[r, c])
        if low > high or (i == j and not low <= 0 <= high):
            return False
        if i != j:
            tie(system.bounds, i, j, low, high)
    return True


def _place(
    system: _System, time: int, row: int, runs: list[Run], count: int, clocks: SharedClocks | None
) -> None:
    """Keep the time of an event within its runs or, if it shares a clock, where that allows it."""
    clock = -1 if clocks is None else int(clocks.own.clock[row])
    if clocks is None or clock < 0:
        system.within(time, -1, runs)
        return
    own = clocks.own
    apart = _runs(int(own.lower[row]), int(own.upper[row]), int(own.offset[row]), clocks.values)
    system.within(time, count + 1 + clock, apart)


def _runs(lower: int, upper: int, law: int, values: Float64) -> list[Run]:
    """Return the runs of ticks that an interval can have, whose probabilities start at ``law``."""
    if law < 0 or lower > upper:
        return [(lower, upper)] if lower <= upper else []
    possible = values[law : law + upper - lower + 1] > 0.0
    edges = np.flatnonzero(np.diff(np.concatenate(([False], possible, [False]))))
    return [(lower + int(begin), lower + int(end) - 1) for begin, end in edges.reshape(-1, 2)]
