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
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.one_match import tie

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


def spoilers(model: MatchModel, clocks: SharedClocks | None) -> Iterator[tuple[int, Int64]]:
    """Yield the matches of a model, and the rows of the events that can spoil each, ascending.

    Parameters
    ----------
    model : MatchModel
    clocks : SharedClocks or None
        What ties the times of events besides.
    """
    for part in model.explicit:
        for k, n in enumerate(part.which.tolist()):
            start = part.forbidden.start
            events = range(int(start[k]), int(start[k + 1]))
            base = _match_system(part, k, model, clocks) if events else None
            rows = [
                int(part.spoiler_row[x])
                for x in events
                if base is not None and _can_spoil(part, x, base, model, clocks)
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
    part: ExplicitMatches, x: int, base: _System, model: MatchModel, clocks: SharedClocks | None
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
        if _forbid(system, part, r, count) and system.has_solution():
            return True
    return False


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
    if law < 0:
        return [(lower, upper)]
    possible = values[law : law + upper - lower + 1] > 0.0
    edges = np.flatnonzero(np.diff(np.concatenate(([False], possible, [False]))))
    return [(lower + int(begin), lower + int(end) - 1) for begin, end in edges.reshape(-1, 2)]
