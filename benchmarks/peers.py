"""The same signatures from DuckDB and from Polars, one thread each, in the same process as ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Sized
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Final

import pyarrow as pa

from benchmarks.figures import Options, Results, Target, at_least, exactly
from benchmarks.isolated import ONE_THREAD, IsolatedError, run_isolated
from benchmarks.peer_query import PeerQuery
from benchmarks.timing import Timing, pin_to_one_core, take_turns
from benchmarks.workload import FIVE, THREE, WINDOW, Stream, sequence_query
from uncertain_cep.files.cache_folder import cache_folder

__all__ = ["CASES", "Case", "measure"]

_EVENTS: Final = 1_000_000
_TRIAL_EVENTS: Final = 200_000
_TRIAL_ROUNDS: Final = 3
_TRIAL_SECONDS: Final = 120.0
_TRIAL_GIGABYTES: Final = 10.0
_ROUND_SECONDS: Final = 120.0
_DUCKDB_GIGABYTES: Final = 4.0

PEERS: Final = ("DuckDB", "Polars")
REWRITTEN: Final = "Polars, point in range"
"""Not the same query: it is written for the interval lengths of the stream at hand."""


@dataclass(frozen=True, slots=True)
class Case:
    """One stream and one pattern that all contenders answer."""

    name: str
    stream: Stream
    divisors: tuple[int, ...]
    target: Target
    with_confidence: Target | None = None
    """Peers compute none."""

    def query(self) -> PeerQuery:
        """Return the query as the peers need it."""
        return PeerQuery(self.divisors, WINDOW, self.stream.interval_lengths)

    def with_events(self, n: int) -> Case:
        """Return the same case with another number of events."""
        return replace(self, stream=replace(self.stream, events=n))


CASES: Final = (
    Case("d=0", Stream(_EVENTS, 0), THREE, at_least(5.0)),
    Case("d=5", Stream(_EVENTS, 5), THREE, at_least(8.0), at_least(3.0)),
    Case("d=50", Stream(_EVENTS, 50), THREE, at_least(8.0), at_least(2.5)),
    Case("d=5, five components", Stream(_EVENTS, 5), FIVE, at_least(7.0), at_least(3.0)),
    Case("d=5, 1% of the events d=2000", Stream(_EVENTS, 5, long_share=0.01), THREE, at_least(3.0)),
)


def _formulations(peer: str) -> tuple[str, ...]:
    if peer == "DuckDB":
        from benchmarks import peer_duckdb

        return tuple(peer_duckdb.FORMULATIONS)
    from benchmarks import peer_polars

    return tuple(
        name for name in peer_polars.FORMULATIONS if ("point-in-range" in name) == (peer == REWRITTEN)
    )


def _contender(peer: str, formulation: str, query: PeerQuery, events: pa.Table) -> Callable[[], Sized | int]:
    """Return a function that gives the signatures as a table; loading the events is not part of it."""
    if peer == "DuckDB":
        from benchmarks import peer_duckdb

        connection = peer_duckdb.connect(events, _DUCKDB_GIGABYTES)
        sql = peer_duckdb.FORMULATIONS[formulation](query)
        return lambda: connection.sql(sql).to_arrow_table()
    import polars as pl

    from benchmarks import peer_polars

    frame = pl.DataFrame(events.select(["id", "lower", "upper", "value"]))
    plan = peer_polars.FORMULATIONS[formulation](frame, query)
    return lambda: peer_polars.collect(plan)


def _trial(case: Case, peer: str, formulation: str, core: int | None) -> tuple[float, int]:
    pin_to_one_core(core)
    run = _contender(peer, formulation, case.query(), case.stream.table())
    timing = take_turns({"trial": run}, _TRIAL_ROUNDS)["trial"]
    # One thread each, and a choice has to come out the same whatever else the machine does.
    return min(timing.cpu), timing.rows


def _choose(case: Case, options: Options) -> tuple[dict[str, tuple[str, float]], list[dict[str, Any]]]:
    """Return each peer's best formulation with its seconds, and the table of all trials.

    A brief run takes what an earlier run on this machine found best of the same versions.
    """
    kept = cache_folder() / "benchmarks" / "peers.json"
    trials = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    key = f"{case.name}, DuckDB {version('duckdb')}, Polars {version('polars')}"
    if options.brief and key in trials:
        return {peer: (name, seconds) for peer, (name, seconds) in trials[key].items()}, []
    best, rows = _tried(case, options)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(trials | {key: best}), encoding="utf-8")
    return best, rows


def _tried(case: Case, options: Options) -> tuple[dict[str, tuple[str, float]], list[dict[str, Any]]]:
    best: dict[str, tuple[str, float]] = {}
    rows: list[dict[str, Any]] = []
    for peer in (*PEERS, REWRITTEN):
        for formulation in _formulations(peer):
            row: dict[str, Any] = {"case": case.name, "peer": peer, "formulation": formulation}
            try:
                seconds, matches = run_isolated(
                    _trial, case, peer, formulation, options.core,
                    environment=ONE_THREAD, memory_gigabytes=_TRIAL_GIGABYTES, seconds=_TRIAL_SECONDS,
                )  # fmt: skip
            except IsolatedError as error:
                rows.append(row | {"seconds": None, "matches": None, "outcome": str(error)})
                continue
            rows.append(row | {"seconds": seconds, "matches": matches, "outcome": "finished"})
            if peer not in best or seconds < best[peer][1]:
                best[peer] = (formulation, seconds)
    return best, rows


def _compare(case: Case, formulations: dict[str, str], options: Options) -> dict[str, Timing]:
    import uncertain_cep as uc
    from benchmarks.throughput import consume

    pin_to_one_core(options.core)
    events = case.stream.table()
    text = sequence_query(case.divisors)
    contenders: dict[str, Callable[[], Sized | int]] = {
        "ours": lambda: uc.match(events, text, confidence=False, max_matches=None),
        "ours, batch by batch": lambda: consume(events, text, confidence=False),
        "ours, with confidence": lambda: uc.match(events, text, max_matches=None),
    }
    for peer, formulation in formulations.items():
        contenders[peer] = _contender(peer, formulation, case.query(), events)
    # One after the other: answers of a gigabyte in turns would time how an allocator gets memory back that it
    # has just given up for another's answer, and not the joins.
    return {name: take_turns({name: run}, options.rounds)[name] for name, run in contenders.items()}


def measure(options: Options) -> Results:
    """Choose each peer's best formulation on a short stream, then compare on the whole one."""
    results = Results()
    trials: list[dict[str, Any]] = []
    for case in CASES:
        short = case.with_events(options.events(_TRIAL_EVENTS))
        best, rows = _choose(short, options)
        trials += rows
        if not best.keys() & set(PEERS):
            results.failures.append(f"{case.name}: no peer finished")
            continue
        n = options.events(case.stream.events)
        slowest = max(seconds for _, seconds in best.values())
        if slowest * n / short.stream.events > _ROUND_SECONDS:
            n = short.stream.events
        formulations = {peer: formulation for peer, (formulation, _) in best.items()}
        try:
            timings = run_isolated(
                _compare, case.with_events(n), formulations, options, environment=ONE_THREAD
            )
        except IsolatedError as error:
            results.failures.append(f"{case.name}: {error}")
            continue
        _report(results, case, n, formulations, timings, options)
    if trials:
        title = (
            f"Peers' formulations, {options.events(_TRIAL_EVENTS):,} events, best of {_TRIAL_ROUNDS} rounds"
        )
        results.breakdowns[title] = trials
    return results


def _report(
    results: Results,
    case: Case,
    n: int,
    formulations: dict[str, str],
    timings: dict[str, Timing],
    options: Options,
) -> None:
    clock = options.clock
    for name, timing in timings.items():
        note = formulations.get(name, "") or f"{timing.rows:,} matches of {n:,} events"
        rate = n / timing.seconds(clock) / 1e6
        results.add(f"{case.name}, {name}", rate, "M events/s", None, timing.rounds(clock), note)
    same = [peer for peer in PEERS if peer in formulations]
    fastest = min(same, key=lambda peer: timings[peer].seconds(clock))
    ours = {
        "ours": case.target,
        "ours, batch by batch": None,
        "ours, with confidence": case.with_confidence,
    }
    for name, target in ours.items():
        ratio = timings[fastest].seconds(clock) / timings[name].seconds(clock)
        note = f"{fastest}; signatures, ours with ranges"
        results.add(f"{case.name}, {name} to the better peer", ratio, "x", target, note=note)
    if REWRITTEN in formulations:
        ratio = timings[REWRITTEN].seconds(clock) / timings["ours"].seconds(clock)
        results.add(
            f"{case.name}, ours to {REWRITTEN}", ratio, "x", note="written for these interval lengths"
        )
    counts = {timing.rows for timing in timings.values()}
    results.add(f"{case.name}, distinct numbers of matches", len(counts), "counts", exactly(1))
