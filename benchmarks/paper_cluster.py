"""The case study of section 5.2: voluminous log events, rare metrics, four queries."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import uncertain_cep as uc
from benchmarks.figures import Options, Results, at_most
from benchmarks.isolated import run_isolated
from benchmarks.paper_options import PaperOptions
from benchmarks.paper_plots import plot_bars
from benchmarks.paper_shapes import ANY, SELECTIVITY, SORTED, Claim, faster, judged
from benchmarks.timing import Timing, pin_to_one_core, take_turns
from uncertain_cep.traces.cluster import cluster_trace

if TYPE_CHECKING:
    from uncertain_cep.query import Query

__all__ = ["cluster_events", "measure_methods", "measure_spark"]

Ints = npt.NDArray[np.int64]

_QUERIES: Final = ("cpu_max_out", "shuffle_floods_network", "merge_loads_cpu", "memory_failure")
_METHODS: Final = (ANY, SELECTIVITY, SORTED)
_MINUTES: Final = 150
_LOG_EVENTS_OF_A_NODE: Final = 43_000
"""What a node logs in that time, a little less than it is on average."""
_TICK: Final = "100ms"
_TICK_MS: Final = 100
_METRIC_WINDOW_MS: Final = 15_000
_HALF_LOG: Final = 5
_HALF_METRIC: Final = 75
"""Half intervals in ticks: 0.5 s for log events, 7.5 s for metrics."""
_PAPER_RATE: Final = 778
_CORES: Final = 2
_SECONDS: Final = 60.0

_CLAIMS: Final = (
    Claim("sorting improves over any state", faster(SORTED, ANY)),
    Claim(
        "selectivity order improves over any state",
        faster(SELECTIVITY, ANY),
        "where few events pass the predicates of one variable, what both do beside the runs is the cost",
    ),
    Claim(
        "selectivity order outperforms sorting: metrics, above all high ones, are rare",
        faster(SELECTIVITY, SORTED),
        "the sorted join starts at the event that ends first, whichever component it fills, and knows by "
        "which time a chain can be completed: it starts no run from a log event without a metric in reach",
    ),
    Claim(
        "throughput is much higher than the arrival rate of 778 events a second",
        lambda series: min(min(points.values()) for points in series.values()) > 10 * _PAPER_RATE,
    ),
)


def cluster_events(log_events: int, seed: int = 2010) -> pa.Table:
    """Return a merged trace of a job log and of metrics, in order of arrival.

    The paper's log has 7 million events of 150 minutes. The simulated nodes log less than the real ones did,
    so there are as many nodes as it takes. A log event's stamp is brought to the reference clock by the
    middle of its node's known bounds.

    Parameters
    ----------
    log_events : int
    seed : int

    Returns
    -------
    pyarrow.Table
        The columns of the simulated trace with ``lower`` and ``upper``, int64 ticks of 0.1 s, for ``time``:
        0.5 s around the stamp of a log event, 7.5 s around the middle of a metric's window.
    """
    trace = cluster_trace(_MINUTES, max(2, -(-log_events // _LOG_EVENTS_OF_A_NODE)), seed)
    offsets = trace.clock_offsets
    middle = (np.asarray(offsets["lower_ms"]) + np.asarray(offsets["upper_ms"])) // 2
    node = np.asarray(pc.index_in(trace.tasks["nodeId"], offsets["nodeId"].combine_chunks()))
    logged = _ticks(_milliseconds(trace.tasks) + middle[node])
    first = np.argsort(logged, kind="stable")[:log_events]
    logged = logged[first]
    measured = _ticks(_milliseconds(trace.metrics) - _METRIC_WINDOW_MS // 2)
    tasks = _uncertain(trace.tasks.take(pa.array(first)), logged, _HALF_LOG)
    metrics = _uncertain(trace.metrics, measured, _HALF_METRIC).filter(pa.array(measured <= logged[-1]))
    return pa.concat_tables([tasks, metrics], promote_options="default").sort_by("lower").combine_chunks()


def _milliseconds(table: pa.Table) -> Ints:
    return np.asarray(table["time"].cast(pa.int64()))


def _ticks(milliseconds: Ints) -> Ints:
    rounded: Ints = (milliseconds + _TICK_MS // 2) // _TICK_MS
    return rounded


def _uncertain(table: pa.Table, middle: Ints, half: int) -> pa.Table:
    bounds = {"lower": middle - half, "upper": middle + half}
    table = table.drop_columns(["time"])
    for name, ticks in bounds.items():
        table = table.append_column(name, pa.array(ticks))
    return table


def _query(name: str) -> Query:
    """Return a query of the case study, asking for all matches."""
    text = Path(__file__).parents[1] / "datasets" / "cluster" / f"{name}.query"
    query = uc.parse(text.read_text(encoding="utf-8"))
    return replace(query, min_confidence=None, order_by_confidence=False, limit=None)


def measure_methods(options: Options, paper: PaperOptions) -> Results:
    """Measure figure 4(f): the event-based methods on each query, in process."""
    pin_to_one_core(options.core)
    results = Results()
    events = cluster_events(paper.log_events)
    n = events.num_rows
    series: dict[str, dict[str, float]] = {method: {} for method in _METHODS}
    for name in _QUERIES:
        query = _query(name)
        timings = take_turns(
            {method: partial(uc.match, events, query, evaluation=method, tick=_TICK) for method in _METHODS},
            options.rounds,
        )
        for method, timing in timings.items():
            speed = n / timing.seconds(options.clock)
            series[method][name] = speed
            results.add(
                f"{name}, {method}",
                speed / 1e3,
                "k events/s",
                None,
                timing.rounds(options.clock),
                f"{timing.rows:,} matches of {n:,} events",
            )
    title = f"4(f) case study, {paper.log_events:,} log events and {n - paper.log_events:,} metrics"
    results.breakdowns[f"{title}: k events/s"] = [
        {"query": name} | {method: series[method][name] / 1e3 for method in _METHODS} for name in _QUERIES
    ]
    results.breakdowns["4(f): the paper's shape"] = judged(_CLAIMS, series)
    plot_bars(Path(paper.folder, "4f.png"), title, series)
    return results


def _write(log_events: int, path: str) -> int:
    events = cluster_events(log_events)
    pq.write_table(events, path)
    return int(events.num_rows)


def _on_spark(trace: str, out: str, rounds: int) -> dict[str, Timing]:
    from uncertain_cep.spark import get_session, match_to_parquet

    session = get_session(f"local[{_CORES}]")

    def job(name: str) -> int:
        return match_to_parquet(session.read.parquet(trace), _query(name), out, tick=_TICK, overwrite=True)

    try:
        return take_turns({name: partial(job, name) for name in _QUERIES}, rounds)
    finally:
        session.stop()


def measure_spark(options: Options, paper: PaperOptions) -> Results:
    """Measure the case study from Parquet to Parquet on local Spark, all matches with confidence."""
    results = Results()
    folder = tempfile.mkdtemp(prefix="uncertain-cep-benchmark-")
    try:
        trace = os.path.join(folder, "cluster.parquet")
        n = run_isolated(_write, paper.log_events, trace)
        timings = run_isolated(_on_spark, trace, os.path.join(folder, "matches"), options.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name, timing in timings.items():
        note = f"{timing.rows:,} matches of {n:,} events"
        results.add_median(
            f"{name}, Spark local[{_CORES}], Parquet to Parquet", timing.wall, "s", at_most(_SECONDS), note
        )
    return results
