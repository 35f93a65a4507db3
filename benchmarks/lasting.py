"""Events that last: tasks that contain a peak, and spans that overlap, by what is known of them."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, Target, at_most
from benchmarks.plan_patterns import cluster_events
from benchmarks.timing import pin_to_one_core, take_turns

__all__ = ["measure"]

_PAIRS: Final = 100_000
_PEAK: Final = "PATTERN AND(Task t, Cpu m) WHERE [nodeId] AND m.value > 95% AND t CONTAINS m WITHIN 5 min"
_AS_POINTS: Final = (
    "PATTERN SEQ(TaskStart a, Cpu m, (MapFinish|ReduceFinish) c) WHERE [nodeId] AND m.value > 95% "
    "AND a.taskId = c.taskId WITHIN 5 min"
)
_KINDS: Final = ("stamps of both ends", "a stamp and a length", "both stamps and a length")
_TICKS: Final = (100, 10_000, 1_000_000)


def measure(options: Options) -> Results:
    """Time a row of the example of a cluster, and one of spans that overlap."""
    pin_to_one_core(options.core)
    results = Results()
    points = cluster_events(options)
    with warnings.catch_warnings():
        # Failed tasks have no end.
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        tasks = uc.spans(points, "TaskStart", ("MapFinish", "ReduceFinish"), by="taskId", type="Task")
    contenders = {"span": partial(_match, tasks, _PEAK), "points": partial(_match, points, _AS_POINTS)}
    _add_rows("the example: a task contains a peak", contenders, options, results, at_most(5.0))
    count = options.events(_PAIRS)
    for ticks in _TICKS:
        for kind in _KINDS:
            spans = _pairs(kind, count, ticks)
            window = 10 * ticks
            contenders = {
                "span": partial(
                    _match, spans, f"PATTERN AND(A a, B b) WHERE [k] AND a OVERLAPS b WITHIN {window}"
                ),
                "points": partial(_match, _begins(spans), f"PATTERN SEQ(A a, B b) WHERE [k] WITHIN {window}"),
            }
            _add_rows(f"overlap, {kind}, {ticks:,} ticks", contenders, options, results, None)
    return results


def _match(events: pa.Table, query: str) -> pa.Table:
    return uc.match(events, query, threads=1)


def _add_rows(
    name: str, contenders: dict[str, Any], options: Options, results: Results, target: Target | None
) -> None:
    """Add how long a row takes, and without a target of its own how much longer than one of points."""
    timings = take_turns(contenders, options.rounds)
    each = {
        kind: timing.seconds(options.clock) / max(timing.rows, 1) * 1e6 for kind, timing in timings.items()
    }
    note = f"{timings['span'].rows:,} rows; of points {each['points']:.2f} us"
    results.add(name, each["span"], "us", target, timings["span"].rounds(options.clock), note)
    if target is None:
        more = each["span"] - each["points"]
        results.add(f"{name}, more than a pair of points", more, "us", at_most(1.0))


def _pairs(kind: str, count: int, ticks: int) -> pa.Table:
    """Return pairs of spans that may overlap, each far from all other pairs; intervals have so many ticks."""
    random = np.random.default_rng(1)
    pair = np.arange(count) // 2
    begin = 10 * ticks * pair + random.integers(0, max(ticks // 2, 1), count)
    length = random.integers(ticks // 4, ticks, count)
    last = begin + ticks - 1
    columns = {
        "type": np.array(["A", "B"])[np.arange(count) % 2], "id": np.arange(count), "k": pair, "lower": begin,
        "begin_lower": begin, "begin_upper": last,
    }  # fmt: skip
    if kind != _KINDS[1]:
        columns |= {"end_lower": begin + length, "end_upper": last + length}
    if kind != _KINDS[0]:
        columns |= {"length_lower": length, "length_upper": length}
    return pa.table({**columns, "upper": last + length})


def _begins(spans: pa.Table) -> pa.Table:
    """Return the begins of spans as points."""
    bounds = [spans.column(f"begin_{side}") for side in ("lower", "upper")]
    points = spans.select(["type", "id", "k"])
    for side, bound in zip(("lower", "upper"), bounds, strict=True):
        points = points.append_column(side, bound)
    return points
