"""Calls that would take minutes or more, each interrupted while its kernels run; a process of its own.

``python -m tests.integration.interrupted_calls FOLDER`` prints a line of JSON for each call: its name, how it
ended, and how many seconds of its processor time after the signal.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any, Final
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import uncertain_cep as uc
from confidence.budget import looking_at
from confidence.kernel import Kernel
from uncertain_cep.cli import main
from uncertain_cep.config import tuning

EVENTS: Final = 200_000
FEW: Final = 40
"""Events of the same kind over which everything is compiled first."""

AT: Final = 8
"""The checkpoint behind which the signal comes, counted from the first kernel on."""

AFTER: Final = 0.05
"""Seconds from that checkpoint to the signal: the next kernel is at work."""

NOTHING: Final = "a.x + b.x + c.x + d.x + e.x < -1"
FIVE: Final = f"SEQ(A a, B b, C c, D d, A e) WHERE {NOTHING}"
KLEENE: Final = "SEQ(A a, B+ b[], C c) WHERE a.x + b[i].x + c.x + b[b.LEN].x < -1"


def trace(count: int, length: int = 20, gap: int = 2) -> pa.Table:
    """Return events whose intervals have up to ``length`` ticks, ``gap`` ticks from one to the next."""
    rng = np.random.default_rng(1)
    lower = gap * np.arange(count)
    return pa.table(
        {
            "type": np.array(list("ABCD"))[rng.integers(0, 4, count)],
            "id": np.arange(count),
            "lower": lower,
            "upper": lower + rng.integers(0, length, count),
            "x": rng.integers(0, 100, count),
        }
    )


def with_pmfs(count: int, ticks: int) -> pa.Table:
    """Return events that each have so many probabilities."""
    rng = np.random.default_rng(1)
    weights = rng.random((count, ticks))
    pmfs = pa.array(list(weights / weights.sum(axis=1, keepdims=True)))
    columns = trace(count, 1).drop_columns(["upper"])
    upper = pa.array(np.asarray(columns["lower"]) + ticks - 1)
    return columns.append_column("upper", upper).append_column("pmf", pmfs)


def by_clocks(count: int, *more: str) -> pa.Table:
    """Return events whose times are by one of two clocks, with more columns that tell of these."""
    columns = {
        "source": pa.array(np.array(["one", "other"])[np.arange(count) % 3 % 2]),
        "offset_lower": pa.array(np.full(count, -9)),
        "offset_upper": pa.array(np.full(count, 9)),
        "sequence": pa.array(np.arange(count)),
        "ordered": pa.array(np.full(count, True)),
    }
    events = trace(count, 5)
    events = events.set_column(3, "upper", pc.add(events["upper"], 18))
    for name in ("source", "offset_lower", "offset_upper", *more):
        events = events.append_column(name, columns[name])
    return events


def matched(pattern: str, window: int, more: str = "", **options: Any) -> Callable[[pa.Table], object]:
    """Return a call of match."""
    query = f"PATTERN {pattern} WITHIN {window} {more}"
    return lambda events: uc.match(events, query, **{"max_matches": None, **options})


def explained(events: pa.Table) -> str:
    return uc.explain(f"PATTERN {FIVE} WITHIN 1000", events, analyze=True)


def pushed(evaluation: str, window: int) -> Callable[[pa.Table], object]:
    """Return a stream of one batch."""

    def push(events: pa.Table) -> None:
        matcher = uc.IncrementalMatcher(
            f"PATTERN {FIVE} WITHIN {window}", events.schema, evaluation=evaluation, largest_interval=20
        )
        matcher.push(events)
        matcher.close()

    return push


def iterated(events: pa.Table) -> None:
    for _ in uc.iter_matches(events, f"PATTERN {FIVE} WITHIN 1000"):
        pass


def commanded(folder: Path) -> Callable[[pa.Table], object]:
    """Return a call of the command; it raises SystemExit."""

    def command(events: pa.Table) -> None:
        file = folder / "trace.parquet"
        pq.write_table(events, file)
        query = f"PATTERN {FIVE} WITHIN {1000 if events.num_rows > FEW else 20}"
        main(["match", query, str(file), "-o", str(folder / "out"), "--overwrite"], prog_name="uncertain-cep")

    return command


def calls(folder: Path) -> Iterator[tuple[str, Callable[[pa.Table], object], Callable[[int], pa.Table]]]:
    """Yield names, calls, and what makes their events."""
    any_order = "skip_till_next_match(a, b, c, d, e)"

    def short(count: int) -> pa.Table:
        return trace(count, 3)

    def wide(count: int) -> pa.Table:
        return trace(count, 400, 8)

    yield "query order", matched(FIVE, 1000, evaluation="query_order"), trace
    yield "tree, left deep", matched(FIVE, 1000, planner="((((a b) c) d) e)"), trace
    yield "tree, bushy", matched(FIVE, 1000, planner="((a b) (c (d e)))"), trace
    yield "any state", matched(FIVE, 100, evaluation="any_state"), trace
    yield "selectivity", matched(FIVE, 100, evaluation="selectivity"), trace
    yield "points", matched(FIVE, 100, evaluation="point"), trace
    yield "skip till next", matched(f"{FIVE} AND {any_order}", 1000, evaluation="query_order"), trace
    yield "Kleene", matched(KLEENE, 500), short
    yield "Kleene by points", matched(KLEENE, 60, evaluation="point"), short
    yield (
        "compressed",
        matched("SEQ(A a, B+ b[], C c, D d) WHERE a.x + c.x + d.x < -1", 3000, kleene="compressed"),
        trace,
    )
    yield "negation", matched(f"SEQ(A a, B b, !B n, C c, D d, A e) WHERE {NOTHING}", 1000), trace
    contiguous = (
        "SEQ(A a, B b, C c, D d, A e, B f) WHERE strict_contiguity(a, b, c, d, e, f) AND a.x + f.x < -1"
    )
    yield "contiguity", matched(contiguous, 1000), wide
    yield "set", matched(f"AND(A a, B b, C c, D d, A e) WHERE {NOTHING}", 1000), trace
    yield "expected count", matched(FIVE, 1000, "RETURN EXPECTED COUNT EVERY 1000"), trace
    yield "non-overlapping", matched(FIVE, 1000, "OUTPUT NON OVERLAPPING"), trace
    yield "the best", matched("SEQ(A a, B b, C c, D d, A e)", 1000, "ORDER BY CONFIDENCE DESC LIMIT 3"), wide
    yield (
        "pmfs",
        matched("SEQ(A a, B b, C c)", 10**6),
        lambda count: with_pmfs(min(count, 120), 50_000 if count > FEW else 20),
    )
    coupled = "SEQ(A a, !C n, B b, !C m, D d)"
    yield "coupled gaps", matched(coupled, 100, approximate=0.01), lambda count: trace(count, 50, 3)
    yield (
        "next match",
        matched("SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c)", 200),
        lambda count: trace(count, 120, 2),
    )
    yield (
        "set with negation",
        matched("SEQ(AND(A a, B b), !C n, D d)", 100),
        lambda count: trace(count, 30, 2),
    )
    anything = "(A|B|C|D)"
    yield (
        "counted at once",
        matched(f"SEQ({anything} a, {anything} b, {anything} c)", 20_000, "RETURN EXPECTED COUNT"),
        lambda count: trace(min(count, 12), 20_000 if count > FEW else 20),
    )
    distances = f"{FIVE} AND TIME(b) - TIME(a) <= 200 AND TIME(d) - TIME(c) >= 5"
    yield "distances", matched(distances, 1000), trace
    yield "choices, weighed", matched(distances, 100, evaluation="any_state"), trace
    yield "chords", matched(f"{FIVE} AND TIME(c) - TIME(a) <= 300", 1000), trace
    sums = "SEQ(A a, B b, C c, D d) WHERE TIME(c) - TIME(a) <= 300 AND TIME(d) - TIME(b) <= 300"
    yield "sums over times", matched(sums, 400), trace
    spaced = f"{coupled} WHERE TIME(n) - TIME(a) >= 2 AND TIME(d) - TIME(a) <= 90"
    yield "negation at distances", matched(spaced, 100), lambda count: trace(count, 50, 3)
    yield (
        "drawn times",
        matched(spaced, 5000, approximate=0.01),
        lambda count: trace(count, 4000 if count > FEW else 50, 3),
    )
    yield "shared clocks", matched("SEQ(A a, B b, C c)", 1000), by_clocks
    yield "shared clocks, negation", matched("SEQ(A a, !B n, C c, D d)", 100), by_clocks
    yield (
        "sequences of sources",
        matched("SEQ(A a, B b, C c)", 300),
        lambda count: by_clocks(count, "sequence"),
    )
    yield (
        "ordered sources",
        matched("SEQ(A a, B b, C c)", 300),
        lambda count: by_clocks(count, "sequence", "ordered"),
    )
    yield "explain", explained, trace
    yield "iter_matches", iterated, trace
    yield "stream, any state", pushed("any_state", 100), trace
    yield "stream, sliced", pushed("sliced", 1000), trace
    yield "stream, points", pushed("point", 100), trace
    yield "command", commanded(folder), trace


def interrupted(call: Callable[[pa.Table], object], events: pa.Table) -> tuple[str, float]:
    """Make a call, interrupt it while its kernels run, and return how it ended and how soon."""
    met, sent, begun = 0, 0.0, False
    made = Kernel.__call__

    def kernel(called: Kernel, *arguments: Any) -> Any:
        nonlocal begun
        begun = True
        return made(called, *arguments)

    def send() -> None:
        nonlocal sent
        sent = time.process_time()
        os.kill(os.getpid(), signal.SIGINT)

    def check(needed: int) -> None:
        nonlocal met
        met += begun
        if begun and met == AT:
            Timer(AFTER, send).start()

    try:
        with looking_at(check), mock.patch.object(Kernel, "__call__", kernel):
            call(events)
            end = "finished"
    except KeyboardInterrupt:
        end = "interrupted"
    except SystemExit as error:
        end = f"exit {error.code}"
    return end, time.process_time() - sent


def run(folder: Path, names: list[str]) -> None:
    """Make all calls, or those that are wanted."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tuning.FEW_EVENTS = 0
    for name, call, made in calls(folder):
        if names and name not in names:
            continue
        with suppress(SystemExit):
            call(made(FEW))
        before = sorted(os.listdir(folder))
        end, seconds = interrupted(call, made(EVENTS))
        after = sorted(os.listdir(folder))
        print(json.dumps({"name": name, "end": end, "seconds": seconds, "left": before != after}), flush=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2:])
