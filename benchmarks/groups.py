"""Probabilities of groups of matches, RETURN PROBABILITY, beside the matches themselves."""

from __future__ import annotations

import contextlib
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, Target, at_least, at_most
from benchmarks.plan_patterns import cluster_events
from benchmarks.timing import take_turns

__all__ = ["measure"]

_QUERIES: Final = Path(__file__).parents[1] / "datasets" / "cluster"
_BY: Final = {
    "cpu_max_out": ("a.taskId", "a.jobId"),
    "shuffle_floods_network": ("a.taskId", "a.jobId"),
    "merge_loads_cpu": ("b.taskId", "b.jobId"),
    "memory_failure": ("b.taskId", "b.jobId"),
}
"""The four queries of the example of a cluster, each by task and by job."""

_TIMED: Final = ("cpu_max_out", "shuffle_floods_network")
_EVENTS: Final = 1_000_000
_PER_KEY: Final = 0.3
"""Events of a key within the length of an interval, on average."""

_LENGTH: Final = 1_000
_THREADS: Final = 2


def measure(options: Options) -> Results:
    """Compare the probabilities of groups with the matches that they are made of, by two threads."""
    results = Results()
    events = cluster_events(options)
    for name, keys in _BY.items():
        matches = (_QUERIES / f"{name}.query").read_text(encoding="utf-8").split("HAVING")[0]
        target = at_most(1.5) if name in _TIMED else None
        for key in keys:
            exact = _compare(f"{name} by {key[2:]}", events, matches, key, options, results, target)
            results.add(f"{name} by {key[2:]}, exact groups", 100 * exact, "%", at_least(100.0))
    random = _random_keys(options.events(_EVENTS))
    matches = "PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN 1000"
    exact = _compare("random, sparse, by first event", random, matches, "a", options, results, at_most(10.0))
    results.add("random, sparse, exact groups", 100 * exact, "%")
    pairs = _pairs(1_000)
    matches = "PATTERN SEQ(A a, B b) WITHIN 100"
    _compare("1,000 groups of one match", pairs, matches, "a", options, results, at_most(1.2))
    results.add("too dear, stopped after", _seconds_to_stop(options), "s", at_most(2.0))
    return results


def _seconds_to_stop(options: Options) -> float:
    """Return how long it takes to say that a group of 900 matches, all tied, takes too long."""
    lower = 3 * np.arange(60)
    tied = pa.table(
        {"type": ["A"] * 30 + ["B"] * 30, "id": np.arange(60), "lower": lower, "upper": lower + 200}
    )
    read = time.perf_counter if options.clock == "wall" else time.process_time
    seconds = []
    for _ in range(options.rounds):
        started = read()
        with contextlib.suppress(uc.ConfidenceCostError):
            uc.match(tied, "PATTERN SEQ(A a, B b) WITHIN 2000 RETURN PROBABILITY", threads=_THREADS)
        seconds.append(read() - started)
    return statistics.median(seconds)


def _compare(
    name: str,
    events: pa.Table,
    matches: str,
    key: str,
    options: Options,
    results: Results,
    target: Target | None,
) -> float:
    """Add how many times as long groups take as their matches; return the share of groups that are exact."""
    grouped = f"{matches} RETURN PROBABILITY BY {key}"
    rows = uc.match(events, grouped, threads=_THREADS, undecided="bounds")
    exact = float(np.mean(rows["exact"].to_numpy(zero_copy_only=False))) if rows.num_rows else 1.0
    if target is not None:
        timings = take_turns(
            {
                "matches": partial(uc.match, events, matches, threads=_THREADS),
                "groups": partial(uc.match, events, grouped, threads=_THREADS, undecided="bounds"),
            },
            options.rounds,
        )
        results.add(
            name,
            timings["groups"].seconds(options.clock) / timings["matches"].seconds(options.clock),
            "x",
            target,
            timings["groups"].rounds(options.clock),
            f"{timings['groups'].rows:,} groups of {timings['matches'].rows:,} matches",
        )
    return exact


def _random_keys(count: int) -> pa.Table:
    """Return events of three types with keys, a few of a key within the length of an interval."""
    random = np.random.default_rng(1)
    keys = max(count // 100, 1)
    lower = random.integers(0, int(count / keys * _LENGTH / _PER_KEY), count)
    return pa.table(
        {
            "type": np.array(["A", "B", "C"])[random.integers(0, 3, count)],
            "id": np.arange(count),
            "lower": lower,
            "upper": lower + _LENGTH - 1,
            "k": random.integers(0, keys, count),
        }
    )


def _pairs(count: int) -> pa.Table:
    """Return pairs of events that are far from each other pair."""
    lower = np.repeat(np.arange(count) * 1_000, 2) + np.tile([0, 10], count)
    return pa.table(
        {
            "type": np.tile(["A", "B"], count),
            "id": np.arange(2 * count),
            "lower": lower,
            "upper": lower + 40,
        }
    )
