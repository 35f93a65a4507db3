"""The time of a multiplication of each weigher on this machine, by matches that it is made to take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import process_time
from typing import Any, Final
from unittest.mock import patch

import numpy as np

import uncertain_cep as uc
from benchmarks.figures import Options, Results
from benchmarks.fitting import fitted
from benchmarks.timing import pin_to_one_core
from benchmarks.weighed_cells import Cell, events_of, query_of
from uncertain_cep.config import tuning
from uncertain_cep.weighers import cheapest
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.sampled_times import Sampling
from uncertain_cep.weighers.weigher import CANNOT, Declined, Weigher

__all__ = ["measure"]

_KINDS: Final = ("negation", "negation, TIME", "until", "set", "set, TIME", "distances", "distances, pmfs")
_SHAPES: Final = ((2, 10), (2, 100), (2, 1000), (3, 10), (3, 100))
_LONGER: Final = {"until": ((3, 1000), (4, 100), (4, 1000))}
"""More of some kinds, whose weigher is for long intervals."""
_EVENTS: Final = 400
_SECONDS: Final = 5.0


@dataclass(slots=True)
class _Total:
    """The total work of one weigher."""

    name: str = ""
    matches: float = 0.0
    steps: float = 0.0
    seconds: float = 0.0


class _Clocked:
    """A weigher that takes all it can, and counts matches, multiplications and seconds."""

    priced_above = -np.inf
    takes_all = False

    def __init__(self, weigher: Weigher, total: _Total) -> None:
        self._weigher, self._total = weigher, total
        self.name, self.why = weigher.name, weigher.why
        total.name = weigher.name

    def price(self, model: MatchModel) -> Any:
        return np.where(np.isinf(self._weigher.price(model)), CANNOT, -np.inf)

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        started = process_time()
        declined = self._weigher.weigh(model, out)
        seconds = process_time() - started
        if not declined:
            self._total.matches += model.count
            self._total.steps += float(self._weigher.price(model).sum())
            self._total.seconds += seconds
        return declined


@contextmanager
def _clocked(build: Callable[[MatchPattern], Weigher | None]) -> Iterator[_Total]:
    total = _Total()

    def cheap(pattern: MatchPattern) -> Weigher | None:
        weigher = build(pattern)
        return None if weigher is None else _Clocked(weigher, total)

    with patch.object(cheapest, "WEIGHERS", (cheap, *cheapest.WEIGHERS)):
        yield total


def _runs() -> Iterator[tuple[str, str, list[float]]]:
    """Yield weigher, cell, and matches, multiplications and seconds of a run."""
    for build in cheapest.WEIGHERS:
        if build == Sampling.of:
            continue
        for kind in _KINDS:
            for length, ticks in (*_SHAPES, *_LONGER.get(kind, ())):
                cell = Cell(kind, length, ticks, 1)
                events, query = events_of(cell, _EVENTS), query_of(cell)
                with _clocked(build) as total:
                    try:
                        uc.match(events, query, threads=1, timeout=_SECONDS)
                        total.matches = total.steps = total.seconds = 0.0
                        uc.match(events, query, threads=1, timeout=_SECONDS)
                    except uc.UncertainCepError:
                        continue
                if total.matches > 0:
                    yield (
                        total.name,
                        f"{kind}, l={length}, {ticks:,} ticks",
                        [total.matches, total.steps, total.seconds],
                    )


def measure(options: Options) -> Results:
    """Fit what a match and a multiplication of each weigher take, and show each run."""
    pin_to_one_core(options.core)
    # Compiled kernels, however few the events are.
    tuning.FEW_EVENTS = 0
    results = Results()
    rows = results.breakdowns.setdefault("weighers, by cell", [])
    runs: dict[str, list[list[float]]] = {}
    for name, cell, (matches, steps, seconds) in _runs():
        runs.setdefault(name, []).append([matches, steps, 1e9 * seconds])
        each = {"multiplications": round(steps / matches, 1), "ns": round(1e9 * seconds / matches, 1)}
        rows.append({"weigher": name, "cell": cell, "matches": int(matches)} | each)
    for name, runs_of_weigher in runs.items():
        numbers = np.array(runs_of_weigher)
        a_match, a_step = fitted(numbers[:, :2], numbers[:, 2]).tolist()
        results.add(f"{name}, a match", a_match, "ns")
        results.add(f"{name}, a multiplication", a_step, "ns")
    return results
