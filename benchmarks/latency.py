"""How long little work takes: a command and a call on 100 events, and a push of one event."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

import uncertain_cep as uc
from benchmarks.figures import Options, Results, at_most
from benchmarks.workload import THREE, Stream, sequence_query
from uncertain_cep.config import tuning

__all__ = ["measure"]

_EVENTS: Final = 100
_CALLS: Final = 300
_PUSHED: Final = 3_000
_TABLES: Final = 300
_COMMAND: Final = "from uncertain_cep.cli import main; main()"


def _seconds(clock: Literal["wall", "cpu"]) -> float:
    spent = os.times()
    # Of this process, and of those that it has waited for.
    return time.perf_counter() if clock == "wall" else sum(spent[:4])


def _timed(work: Callable[[], object], times: int, clock: Literal["wall", "cpu"]) -> float:
    """Return the seconds that a call takes, of some that are timed together."""
    started = _seconds(clock)
    for _ in range(times):
        work()
    return (_seconds(clock) - started) / times


def _push_all(evaluation: str) -> Callable[[], object]:
    events = Stream(_PUSHED, 5).table()
    rows = events.to_pylist()

    def work() -> None:
        matcher = uc.IncrementalMatcher(
            sequence_query(THREE), events.schema, evaluation=evaluation, largest_interval=10
        )
        for row in rows:
            matcher.push(row)

    return work


_ALTERNATING: Final = "PATTERN SEQ(A a, B b) WHERE b.v > a.v WITHIN 20"
_PUSHES: Final[Mapping[str, tuple[str, tuple[str, ...], float]]] = {
    "falls through": ("selectivity", ("C",), 20.0),
    "is a candidate": ("selectivity", ("A", "B"), 60.0),
    "completes matches": ("selectivity", ("A", "B"), 100.0),
    "is held for a slice": ("sliced", ("A", "B"), 60.0),
}
"""By what comes of an event: the method, the types of the events in turn, and the most microseconds."""


def _timed_pushes(
    matcher: uc.IncrementalMatcher, pushed: Iterable[Any], clock: Literal["wall", "cpu"]
) -> Iterator[tuple[float, bool]]:
    """Yield of each push the seconds, and whether it had matches."""
    read = time.perf_counter if clock == "wall" else time.process_time
    for events in pushed:
        started = read()
        has_matches = matcher.push(events).num_rows > 0
        yield read() - started, has_matches


def _alternating(count: int, types: Sequence[str]) -> pa.Table:
    numbers = range(count)
    columns = {
        "id": numbers, "lower": [5 * n for n in numbers], "upper": [5 * n + 3 for n in numbers],
        "v": [n % 7 for n in numbers],
    }  # fmt: skip
    return pa.table({"type": [types[n % len(types)] for n in numbers], **columns})


def _push_seconds(name: str, clock: Literal["wall", "cpu"]) -> float:
    """Return the median time of the pushes of which this comes, seconds."""
    evaluation, types, _ = _PUSHES[name]
    events = _alternating(_PUSHED, types)
    matcher = uc.IncrementalMatcher(_ALTERNATING, events.schema, evaluation=evaluation, largest_interval=3)
    is_counted = name == "completes matches"
    pushes = _timed_pushes(matcher, events.to_pylist(), clock)
    return statistics.median(seconds for seconds, has_matches in pushes if has_matches is is_counted)


def _table_seconds(size: int, duplicates: str, clock: Literal["wall", "cpu"]) -> float:
    """Return the median time of pushes of tables of so many events, each a candidate, seconds."""
    events = _alternating(_TABLES * size, ("A", "B"))
    matcher = uc.IncrementalMatcher(
        _ALTERNATING, events.schema, evaluation="selectivity", largest_interval=3, duplicates=duplicates
    )
    tables = (events.slice(begin, size) for begin in range(0, events.num_rows, size))
    return statistics.median(seconds for seconds, _ in _timed_pushes(matcher, tables, clock))


def measure(options: Options) -> Results:
    """Measure the paper's stream and query, d = 5, with confidence, once everything is loaded."""
    results = Results()
    events, query = Stream(_EVENTS, 5).table(), sequence_query(THREE)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.parquet")
        pq.write_table(events, trace)
        environment = dict(os.environ)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def command() -> None:
            subprocess.run(
                [sys.executable, "-c", _COMMAND, "match", query, str(trace)],
                env=environment, capture_output=True, check=True,
            )  # fmt: skip

        command()
        rounds = [_timed(command, 1, options.clock) for _ in range(options.rounds)]
    results.add_median(f"uncertain-cep match, {_EVENTS} events", rounds, "s", at_most(0.8))
    # As in a process that has gone over to compiled kernels by itself.
    tuning.FEW_EVENTS = 0
    uc.match(events, query)
    rounds = [
        1e3 * _timed(lambda: uc.match(events, query), _CALLS, options.clock) for _ in range(options.rounds)
    ]
    results.add_median(f"uc.match of a text, {_EVENTS} events", rounds, "ms", at_most(1.0))
    uc.warm_up(["incremental methods"])
    for name, (_, _, target) in _PUSHES.items():
        rounds = [1e6 * _push_seconds(name, options.clock) for _ in range(options.rounds)]
        results.add_median(f"push of a mapping that {name}, median", rounds, "us", at_most(target))
    for size, duplicates in ((1, "error"), (50, "error"), (51, "error"), (1, "drop")):
        rounds = [1e6 * _table_seconds(size, duplicates, options.clock) for _ in range(options.rounds)]
        results.add_median(f"push of a table of {size}, duplicates={duplicates}, median", rounds, "us")
    for evaluation in ("any_state", "selectivity"):
        work = _push_all(evaluation)
        work()
        rounds = [1e6 * _timed(work, 1, options.clock) / _PUSHED for _ in range(options.rounds)]
        results.add_median(f"push of one event as a mapping, {evaluation}", rounds, "us", at_most(100.0))
    return results
