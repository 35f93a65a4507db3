"""Weighers that are forced on all matches that they can take, and a toy one that counts worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from confidence.timed.bounds import UNBOUND
from confidence.timed.forbidden_tables import OTHER
from uncertain_cep.weighers import cheapest
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.weigher import CANNOT, Declined, Weigher

__all__ = ["MOST_WORLDS", "CountedWorlds", "Taken", "forced", "leave_out"]

MOST_WORLDS: Final = 5_000
"""Choices of ticks of a match's events that are gone through."""


class CountedWorlds:
    """Goes through all choices of ticks of a match's events: what a new weigher takes, and no more."""

    name = "counted worlds"
    why = "takes tiny matches: adds up the probabilities of all choices of ticks"
    priced_above = -1.0
    takes_all = False

    @classmethod
    def of(cls, _pattern: MatchPattern) -> CountedWorlds:
        return cls()

    def price(self, model: MatchModel) -> NDArray[np.float64]:
        prices = np.full(model.count, CANNOT)
        for part in model.explicit:
            worlds = part.sizes.prod(axis=1)
            prices[part.which] = np.where(worlds <= MOST_WORLDS, worlds, CANNOT)
        return prices

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        for part in model.explicit:
            for k, n in enumerate(part.which.tolist()):
                answer = _counted(part, k)
                out.lower[n], out.upper[n], out.confidence[n], out.std_error[n] = *answer, 0.0
        return {}


def _counted(part: ExplicitMatches, k: int) -> tuple[int, int, float]:
    """Return range and confidence of one match of a batch."""
    times, values = part.times, part.pmfs.values
    axes = [range(low, high + 1) for low, high in zip(times.first[k], times.last[k], strict=True)]
    total, begin, end = 0.0, UNBOUND, -UNBOUND
    row = min(k, len(times.low) - 1)
    for world in product(*axes):
        differences = [world[i] - world[j] for i, j in times.sides.tolist()]
        if not all(
            low <= found <= high
            for low, found, high in zip(times.low[row], differences, times.high[row], strict=True)
        ):
            continue
        weight = 1.0
        for event, tick in enumerate(world):
            size = float(times.size[k, event])
            weight *= 1.0 / size if size > 0.0 else float(values[times.offset[k, event] + tick])
        for x in range(part.forbidden.start[k], part.forbidden.start[k + 1]):
            weight *= _spared(part, x, world)
        if weight > 0.0:
            total += weight
            begin = min(begin, *(tick for tick, first in zip(world, times.ends[0], strict=True) if first))
            end = max(end, *(tick for tick, last in zip(world, times.ends[1], strict=True) if last))
    return (begin, end, total) if total > 0.0 else (0, -1, 0.0)


def _spared(part: ExplicitMatches, x: int, world: tuple[int, ...]) -> float:
    """Return the probability that an event is in no span that forbids it, given the ticks of the match."""
    others, values = part.forbidden, part.pmfs.values
    low, high, offset = int(others.lower[x]), int(others.upper[x]), int(others.offset[x])
    happened = 1.0
    if offset <= -2:
        happened, offset = float(values[-2 - offset]), int(values[-1 - offset])
    spoiled = 0.0
    for place, tick in enumerate(range(low, high + 1)):

        def at(time: int, tick: int = tick) -> int:
            return tick if time == OTHER else 0 if time < 0 else world[time]

        def is_met(r: int, at: Callable[[int], int] = at) -> bool:
            rule = int(others.rule[r])
            return all(
                others.low[r, c] <= at(others.sides[rule, c, 0]) - at(others.sides[rule, c, 1])
                and at(others.sides[rule, c, 0]) - at(others.sides[rule, c, 1]) <= others.high[r, c]
                for c in range(int(others.constraints[rule]))
            )

        if any(is_met(r) for r in range(others.rule_start[x], others.rule_start[x + 1])):
            spoiled += 1.0 / (high - low + 1) if offset < 0 else float(values[offset + place])
    return 1.0 - happened * min(spoiled, 1.0)


class Taken:
    """How many matches a forced weigher took."""

    count = 0


class _Forced:
    """A weigher that costs nothing."""

    priced_above = -np.inf
    takes_all = False

    def __init__(self, weigher: Weigher, taken: Taken) -> None:
        self._weigher, self._taken = weigher, taken
        self.name, self.why = weigher.name, weigher.why

    def price(self, model: MatchModel) -> NDArray[np.float64]:
        return np.where(np.isinf(self._weigher.price(model)), CANNOT, -np.inf)

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        declined = self._weigher.weigh(model, out)
        self._taken.count += model.count - len(declined)
        return declined


@contextmanager
def forced(build: Callable[[MatchPattern], Any]) -> Iterator[Taken]:
    """Let one weigher take all matches that it can; others take those that it declines."""
    taken = Taken()

    def cheap(pattern: MatchPattern) -> Weigher | None:
        weigher = build(pattern)
        return None if weigher is None else _Forced(weigher, taken)

    with patch.object(cheapest, "WEIGHERS", (cheap, *cheapest.WEIGHERS)):
        yield taken


def leave_out(weigher: type[Weigher], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a weigher take no match, so that those of others are as dear as without it."""
    monkeypatch.setattr(weigher, "price", lambda _, model: np.full(model.count, CANNOT))
