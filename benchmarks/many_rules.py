"""How long 200 rules of a million events take, beside one of them and beside each on its own events."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import uncertain_cep as uc
from benchmarks.figures import Options, Results, at_most

__all__ = ["measure"]

_RULES: Final = 200
_SHAPES: Final = {
    "keys": "PATTERN SEQ(T0 a, T1 b) WHERE [k] AND a.v > {x} AND b.v > {x} WITHIN 8000",
    "no keys": "PATTERN SEQ(T0 a, T1 b) WHERE a.v > {x} AND b.v > {x} WITHIN 200",
    "windows": "PATTERN SEQ(T0 a, T1 b) WHERE a.v > 0.99 AND b.v > 0.99 WITHIN {w}",
    "b.v > a.v": "PATTERN SEQ(T0 a, T1 b) WHERE a.v > {x} AND b.v > a.v WITHIN 200",
}
"""Rules of one shape, for each of which {x} rises from 0.99, or {w} from 200."""


def _events(count: int, types: int) -> pa.Table:
    draw = np.random.default_rng(1)
    lower = np.sort(draw.integers(0, 10 * count, count))
    names = np.array([f"T{number}" for number in range(types)])
    return pa.table(
        {
            "type": names[draw.integers(0, types, count)],
            "id": np.arange(count),
            "lower": lower,
            "upper": lower + draw.integers(0, 10, count),
            "k": draw.integers(0, 1000, count),
            "v": draw.random(count),
        }
    )


def _timed(work: Callable[[], object], clock: Literal["wall", "cpu"]) -> float:
    read = time.perf_counter if clock == "wall" else time.process_time
    started = read()
    work()
    return read() - started


def _rounds(options: Options, first: Callable[[], object], second: Callable[[], object]) -> list[float]:
    """Return how many times as long the first takes, of each round."""
    first(), second()
    return [_timed(first, options.clock) / _timed(second, options.clock) for _ in range(options.rounds)]


def measure(options: Options) -> Results:
    """Measure rules in this process, of events in memory unless a row says otherwise."""
    results = Results()
    count = options.events(1_000_000)
    events = _events(count, 4)
    for name, shape in _SHAPES.items():
        queries = [shape.format(x=0.99 + number * 5e-6, w=200 + number) for number in range(_RULES)]
        rules = uc.rules({f"r{number}": query for number, query in enumerate(queries)})
        rounds = _rounds(options, lambda: uc.match(events, rules), lambda: uc.match(events, rules[:1]))  # noqa: B023
        target = None if name == "b.v > a.v" else at_most(20.0)
        results.add_median(f"{_RULES} rules of one shape, {name}, against one", rounds, "x", target)
        rounds = _rounds(options, lambda: uc.match(events, rules), lambda: uc.match(events, queries[0]))  # noqa: B023
        results.add_median(f"{_RULES} rules of one shape, {name}, against the query alone", rounds, "x")
    _add_different(options, count, results)
    return results


def _add_different(options: Options, count: int, results: Results) -> None:
    """Add the row of rules each of which is about 1% of the events."""
    events = _events(count, _RULES)
    rules = uc.rules(
        {
            f"r{number}": f"PATTERN SEQ(T{number} a, T{(7 * number + 1) % _RULES} b) WITHIN 1000"
            for number in range(_RULES)
        }
    )
    parts = []
    for number in range(_RULES):
        types = pa.array([f"T{number}", f"T{(7 * number + 1) % _RULES}"])
        parts.append(events.filter(pc.is_in(events.column("type"), types)))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "events.parquet")
        pq.write_table(events, file)

        def apart() -> None:
            uc.match(pq.read_table(file), rules[:1])
            for rule, part in zip(rules, parts, strict=True):
                uc.match(part, rule.query)

        rounds = _rounds(options, lambda: uc.match(pq.read_table(file), rules), apart)
    name = f"{_RULES} rules of 1% of the events each, against reading and each on its events"
    results.add_median(name, rounds, "x", at_most(3.0))
