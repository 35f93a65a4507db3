"""From a fresh process to its first answer: nothing compiled yet, and with compiled kernels."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

import uncertain_cep as uc
from benchmarks.figures import Options, Results, at_most, exactly
from benchmarks.workload import THREE, Stream, sequence_query

__all__ = ["measure"]

_COPIES: Final = 167
_STEP: Final = 12
_MANY_EVENTS: Final = 30_000
_COLD_ROUNDS: Final = 3
_COMMAND: Final = "from uncertain_cep.cli import main; main()"

_CONSTRUCTS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "sequence": ("PATTERN SEQ(Start s, Load a, Load b, Load c) WITHIN 20", ()),
    "Kleene plus": (
        "PATTERN SEQ(Start s, Load+ c[], Stop e) WHERE c[i].value > c[i-1].value AND count(c[]) >= 2 "
        "WITHIN 20",
        (),
    ),
    "compressed": (
        "PATTERN SEQ(Start s, Load+ c[], Alarm e) WITHIN 7",
        ("--kleene", "compressed"),
    ),
    "negation": ("PATTERN SEQ(Load c, !Alarm n, Stop e) WHERE n.host = c.host WITHIN 20", ()),
    "contiguity": (
        "PATTERN SEQ(Load+ c[], Stop e) WHERE partition_contiguity(c[], e) { [host] } WITHIN 20",
        (),
    ),
    "skip till next match": (
        "PATTERN SEQ(Start s, Load+ c[], Stop e) WHERE skip_till_next_match(s, c[], e) WITHIN 20",
        (),
    ),
    "set": (
        "PATTERN SEQ(AND(Load+ p[], Alarm n), Stop e) WHERE p[i].value >= 50 AND sum(p[].value) > 80 "
        "WITHIN 20",
        (),
    ),
    "alternatives": ("PATTERN SEQ(Load c, OR(!Alarm n, !Load m), Stop e) WITHIN 20", ()),
    "best matches": ("PATTERN SEQ(Load a, Load b) WITHIN 20 ORDER BY CONFIDENCE DESC LIMIT 2", ()),
    "expected count": (
        "PATTERN SEQ(Load a, Alarm b, Stop c) WHERE [host] WITHIN 9 RETURN EXPECTED COUNT BY host EVERY 2",
        (),
    ),
    "by points": (
        "PATTERN SEQ(Load+ c[], !Alarm n, Stop e) WHERE c[i].value > c[i-1].value AND count(c[]) > 2 "
        "WITHIN 20",
        ("--evaluation", "point"),
    ),
}
"""Construct -> its example in docs/language.md, and options of the command."""


def _trace() -> pa.Table:
    """Return the trace of docs/language.md again and again, about 1,000 events."""
    copies = range(_COPIES)
    return pa.table(
        {
            "type": ["Start", "Load", "Load", "Load", "Alarm", "Stop"] * _COPIES,
            "id": range(6 * _COPIES),
            "lower": [low + _STEP * copy for copy in copies for low in (0, 2, 3, 6, 4, 9)],
            "upper": [high + _STEP * copy for copy in copies for high in (1, 3, 5, 7, 8, 10)],
            "value": [None, 40, 60, 90, None, None] * _COPIES,
            "host": ["h1"] * (6 * _COPIES),
        }
    )


def _seconds_of_children() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def _run(arguments: list[str], cache: str | None, clock: Literal["wall", "cpu"]) -> tuple[float, str, int]:
    """Return how long a command takes, what it says, and the lines that it prints."""
    environment = dict(os.environ) if cache is None else os.environ | {"NUMBA_CACHE_DIR": cache}
    # An installation has its modules' byte code; a checkout writes it at the first use, if allowed to.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", _COMMAND, "match", *arguments, "--engine", "local"]
    started, ran = time.perf_counter(), _seconds_of_children()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    elapsed = time.perf_counter() - started if clock == "wall" else _seconds_of_children() - ran
    if done.returncode or not done.stdout:
        raise RuntimeError(f"{arguments[0]!r} gave no answer: {done.stderr[-500:]}")
    return elapsed, done.stderr, len(done.stdout.splitlines()) - 1


def measure(options: Options) -> Results:
    """Measure whole processes: an example of each construct on 1,000 events, and one query on many."""
    results = Results()
    rounds = min(options.rounds, _COLD_ROUNDS)
    uc.warm_up(None)
    with tempfile.TemporaryDirectory() as folder:
        trace, large_trace = Path(folder, "trace.parquet"), Path(folder, "many.parquet")
        pq.write_table(_trace(), trace)
        pq.write_table(Stream(_MANY_EVENTS, 5).table(), large_trace)
        for name, (query, arguments) in _CONSTRUCTS.items():
            first, later, matches = [], [], 0
            for _ in range(rounds):
                with tempfile.TemporaryDirectory(dir=folder) as cache:
                    elapsed, _, matches = _run([query, str(trace), *arguments], cache, options.clock)
                    first.append(elapsed)
                later.append(_run([query, str(trace), *arguments], None, options.clock)[0])
            note = f"{matches:,} matches"
            results.add_median(f"{name}, nothing compiled", first, "s", at_most(4.0), note)
            results.add_median(f"{name}, with compiled kernels", later, "s", at_most(2.5), note)
        with tempfile.TemporaryDirectory(dir=folder) as cache:
            query = sequence_query(THREE)
            elapsed, said, _ = _run([query, str(large_trace)], cache, options.clock)
        results.add(f"{_MANY_EVENTS:,} events, which need compiled kernels", elapsed, "s", at_most(30.0))
        results.add("says that it compiles", float("compil" in said), "1 = yes", exactly(1))
    return results
