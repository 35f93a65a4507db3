"""Events that last, joins and orders: tasks with a peak, spans that overlap, the last sample before."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

import uncertain_cep as uc
from benchmarks.figures import Options, Results, Target, at_most
from benchmarks.plan_patterns import cluster_events
from benchmarks.timing import pin_to_one_core, take_turns

__all__ = ["measure"]

_PAIRS: Final = 100_000
_STARTS: Final = 10_000
_ORDERED: Final = 1_000_000
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
    _add_asof(points, options, results)
    _add_order(options, results)
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


def _add_asof(points: pa.Table, options: Options, results: Results) -> None:
    """Add how long the last sample before each start of a task takes, by itself and beside pandas."""
    starts, samples = (
        points.filter(pc.equal(points["type"].cast(pa.string()), name)) for name in ("TaskStart", "Cpu")
    )
    starts = starts.slice(0, options.events(_STARTS))
    stamped = [
        side.select(["nodeId", "lower"]).to_pandas().sort_values("lower") for side in (starts, samples)
    ]
    contenders = {
        "join_asof": partial(uc.join_asof, starts, samples, by="nodeId", threads=1),
        "merge_asof": partial(pd.merge_asof, *stamped, on="lower", by="nodeId"),
    }
    timings = take_turns(contenders, options.rounds)
    timing, peer = timings["join_asof"], timings["merge_asof"]
    each = timing.seconds(options.clock) / max(starts.num_rows, 1) * 1e6
    name = "the example: the last sample before each start"
    note = f"{timing.rows:,} rows of {starts.num_rows:,} starts"
    results.add(name, each, "us", at_most(5.0), timing.rounds(options.clock), note)
    times = timing.seconds(options.clock) / peer.seconds(options.clock)
    results.add(f"{name}, beside merge_asof of pandas", times, "x", at_most(20.0))


def _add_order(options: Options, results: Results) -> None:
    """Add how long the pairs in no certain order take, of events of which one in five overlaps the next."""
    random = np.random.default_rng(1)
    count = options.events(_ORDERED)
    lower = 10 * np.arange(count) + random.integers(0, 5, count)
    columns = {"type": pa.array(["A"] * count), "id": np.arange(count), "lower": lower}
    events = pa.table({**columns, "upper": lower + random.integers(0, 12, count)})
    timing = take_turns({"order": partial(uc.order, events, threads=1)}, options.rounds)["order"]
    note = f"{timing.rows:,} pairs"
    seconds, rounds = timing.seconds(options.clock), timing.rounds(options.clock)
    results.add(f"order of {count:,} events", seconds, "s", at_most(0.2), rounds, note)


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
