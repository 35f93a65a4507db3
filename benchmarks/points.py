"""Events a second of the point-based framework, as batches and as a stream, and the state that it holds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, Target, at_least, at_most
from benchmarks.timing import pin_to_one_core, take_turns
from benchmarks.workload import KEYED, Stream, sequence_query
from pointbased import PointEvaluation, compile_sequence

__all__ = ["measure"]

_EVENTS: Final = 200_000
_WINDOW: Final = 100
_BATCH: Final = 1000


def _batches(events: pa.Table) -> list[tuple[Any, ...]]:
    """Return the candidates of ``KEYED`` as they arrive, a thousand events a time, and what is safe then."""
    value, lower, upper = (np.asarray(events.column(name)) for name in ("value", "lower", "upper"))
    batches = []
    for start in range(0, len(value), _BATCH):
        part = slice(start, start + _BATCH)
        rows = [start + np.flatnonzero(value[part] % divisor == 0) for divisor in KEYED]
        component = np.repeat(np.arange(len(KEYED)), [len(rows_of_component) for rows_of_component in rows])
        event = np.concatenate(rows)
        safe = int(lower[part].max() - (upper - lower).max())
        batches.append((component, np.zeros_like(event), lower[event], upper[event], event, safe))
    return batches


def _stream(batches: list[tuple[Any, ...]], next_match: bool) -> tuple[int, list[int]]:
    evaluation = PointEvaluation(compile_sequence(len(KEYED), _WINDOW, next_match=next_match))
    matches, sizes = 0, []
    for *columns, safe in batches:
        evaluation.push(*columns)
        matches += len(evaluation.advance(safe).lower)
        sizes.append(evaluation.size)
    return matches + len(evaluation.close().lower), sizes


def measure(options: Options) -> Results:
    """Measure d = 5 and d = 0 for both strategies, v = (20, 22, 26), with exact confidences."""
    pin_to_one_core(options.core)
    results = Results()
    n = options.events(_EVENTS)
    plain = sequence_query(KEYED, _WINDOW)
    queries = {
        "any": plain,
        "next": plain.replace("\nWITHIN", " AND skip_till_next_match(a, b, c)\nWITHIN"),
    }
    tables = {half: Stream(n, half_interval=half).table() for half in (5, 0)}
    arrivals = _batches(tables[5])
    contenders = {
        f"d={half}, skip till {name}": lambda table=table, query=query: uc.match(
            table, query, evaluation="point"
        )
        for half, table in tables.items()
        for name, query in queries.items()
    }
    streams = {
        f"d=5, skip till {name}, as a stream": lambda next_match=next_match: _stream(arrivals, next_match)[0]
        for name, next_match in (("any", False), ("next", True))
    }
    for name, timing in take_turns({**contenders, **streams}, options.rounds).items():
        target: Target | None = at_least(20.0) if name == "d=5, skip till any" else None
        results.add(
            name,
            n / timing.seconds(options.clock) / 1e3,
            "k events/s",
            target,
            timing.rounds(options.clock),
            f"{timing.rows:,} matches of {n:,} events",
        )
    for name, next_match in (("any", False), ("next", True)):
        _, sizes = _stream(arrivals, next_match)
        early, late = max(sizes[: len(sizes) // 2]), max(sizes[len(sizes) // 2 :])
        results.add(
            f"skip till {name}, most rows held, second half to first",
            late / early,
            "x",
            at_most(1.2),
            note=f"{late:,} rows in the second half",
        )
    return results
