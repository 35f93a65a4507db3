"""Task attempts of a Hadoop cluster whose TaskTrackers' clocks are off by up to minutes."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import uncertain_cep as uc
from tests.integration.chains import Answer, Interval, Signature, assert_matches, dataset, pair
from tests.integration.raw import rows
from tests.traces.files import validation_report
from uncertain_cep.traces import load_schema, read_traces

SECONDS = 1000


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    return shared_data / "yahoo_hadoop_2009_skew"


@pytest.fixture(scope="module")
def attempts(folder: Path) -> list[dict[str, str]]:
    return rows(folder / "attempts_19jobs.csv.gz")


@pytest.fixture(scope="module")
def offsets(folder: Path) -> dict[str, Interval]:
    return {
        row["host"]: (int(row["offset_lo_ms"]), int(row["offset_hi_ms"]))
        for row in rows(folder / "host_offsets_19jobs.csv.gz")
    }


@pytest.fixture(scope="module")
def trace(folder: Path) -> pa.Table:
    return read_traces([folder], load_schema(dataset("yahoo_hadoop", "schema.toml")))


def test_clocks_from_what_cannot_be_otherwise(folder: Path, offsets: dict[str, Interval]) -> None:
    """Launch, success, phases and retries bound every clock, none worse than the JobTracker alone."""
    schema = load_schema(dataset("yahoo_hadoop", "clocks.toml"))
    events = read_traces([folder / "attempts_19jobs.csv.gz"], schema)
    without_retries = uc.infer_offsets(events, schema.constraints[:-1], prior="10min", source="host")
    width = pc.subtract(without_retries["offset_hi"], without_retries["offset_lo"]).cast(pa.int64())
    assert np.median(width.filter(pc.is_in(without_retries["host"], pa.array(list(offsets))))) == 7_773
    with pytest.warns(uc.UncertainCepWarning, match="22 of 1,166 pairs of the constraint"):
        table_of_bounds = uc.infer_offsets(
            events, schema.constraints, prior="10min", source="host", contradictions="drop"
        )
    bounds = {
        row["host"]: (
            row["offset_lo"] // timedelta(milliseconds=1),
            row["offset_hi"] // timedelta(milliseconds=1),
        )
        for row in table_of_bounds.to_pylist()
    }
    assert len(bounds) == 1536
    assert all(bounds[host][0] >= low and bounds[host][1] <= high for host, (low, high) in offsets.items())
    widths = sorted(bounds[host][1] - bounds[host][0] for host in bounds.keys() - offsets.keys())
    assert (len(widths), widths[18], widths[-1]) == (37, 15_082, 19_993)


def _bounded(stamp: int, host: str, offsets: dict[str, Interval]) -> Interval | None:
    if host not in offsets:
        return None
    lower, upper = offsets[host]
    return stamp + lower, stamp + upper


def _failure(attempt: dict[str, str], offsets: dict[str, Interval]) -> Interval | None:
    started, failed = int(attempt["tt_start_ms"]), int(attempt["tt_finish_ms"])
    if started <= 0 or failed < started:
        return failed, failed
    return _bounded(failed, attempt["host"], offsets)


def test_an_event_is_dropped_only_for_want_of_bounds(
    trace: pa.Table, attempts: list[dict[str, str]], offsets: dict[str, Interval]
) -> None:
    bounded = [attempt for attempt in attempts if attempt["host"] in offsets]
    failures = [attempt for attempt in attempts if attempt["result"] == "FAILED"]
    kinds = trace["type"].to_pylist()
    assert kinds.count("AttemptStart") == sum(int(attempt["tt_start_ms"]) > 0 for attempt in bounded)
    assert kinds.count("AttemptFailed") == sum(_failure(a, offsets) is not None for a in failures)
    assert kinds.count("MapFinish") == sum(
        attempt["task_type"] == "MAP" and attempt["result"] == "SUCCESS" for attempt in bounded
    )
    assert kinds.count("ShuffleEnd") == sum(
        attempt["task_type"] == "REDUCE" and attempt["result"] == "SUCCESS" for attempt in bounded
    )


def test_the_dropped_events_are_counted_and_nothing_else_is_wrong(
    folder: Path, attempts: list[dict[str, str]], offsets: dict[str, Interval]
) -> None:
    report = validation_report(
        [folder],
        load_schema(dataset("yahoo_hadoop", "schema.toml")),
        partition=("task_id",),
    )
    unknown = [attempt for attempt in attempts if attempt["host"] not in offsets]
    started = sum(int(attempt["tt_start_ms"]) > 0 for attempt in unknown)
    failed = sum(_failure(a, offsets) is None for a in unknown if a["result"] == "FAILED")
    succeeded = sum(attempt["result"] == "SUCCESS" for attempt in unknown)
    assert report.faults == ()
    assert report.dropped == started + failed
    assert succeeded == 0


def test_a_failed_attempt_was_retried_elsewhere(
    trace: pa.Table, attempts: list[dict[str, str]], offsets: dict[str, Interval]
) -> None:
    by_name = {attempt["attempt_id"]: attempt for attempt in attempts}
    expected: dict[Signature, Answer] = {}
    for attempt in attempts:
        task, _, number = attempt["attempt_id"].rpartition("_")
        following = by_name.get(f"{task}_{int(number) + 1}")
        if attempt["result"] != "FAILED" or following is None or following["host"] == attempt["host"]:
            continue
        failed = _failure(attempt, offsets)
        started = int(following["tt_start_ms"])
        retried = _bounded(started, following["host"], offsets) if started > 0 else None
        if failed is None or retried is None:
            continue
        answer = pair(failed, retried, 120 * SECONDS)
        if answer is not None:
            signature = (f"{attempt['attempt_id']}:failed", f"{following['attempt_id']}:start")
            expected[signature] = answer

    matches = uc.match(trace, dataset("yahoo_hadoop", "retry.query").read_text(encoding="utf-8"))
    assert_matches(matches, ("a", "b"), expected)
    assert len(expected) == 677


def rigid(first: Interval, second: Interval, window: int) -> Answer | None:
    """Return the answer for a pair by one clock, whose order is certain."""
    if not 0 < second[0] - first[0] < window:
        return None
    return Answer(Fraction(1), first[0], second[1])


OVERLAP = """
    PATTERN SEQ(Start a, Start b, End c)
    WHERE [host] AND c.attempt_id = a.attempt_id AND b.attempt_id != a.attempt_id
    WITHIN 5 minutes
"""


def by_hosts(rows: list[dict[str, Any]], offsets: dict[str, Interval], tick: str) -> pa.Table:
    """Return stamps as events of the clocks of hosts."""
    bounds = {host: (float(low), float(high)) for host, (low, high) in offsets.items()}
    rule = uc.clock_offset(bounds, unit="ms", key="host", shared=True)
    return uc.to_intervals(pa.Table.from_pylist(rows), time="at", unit="ms", tick=tick, uncertainty=rule)


def stamped(attempt: dict[str, str], kind: str, column: str) -> dict[str, Any]:
    names = {name: attempt[name] for name in ("attempt_id", "host")}
    return {"type": kind, "id": f"{attempt['attempt_id']}:{kind}", "at": int(attempt[column]), **names}


def test_two_attempts_overlapped_on_a_host(
    attempts: list[dict[str, str]], offsets: dict[str, Interval]
) -> None:
    """All answers that are uncertain by independent times are certain, or none, by the clock of the host."""
    stamps = [
        stamped(attempt, kind, column)
        for attempt in attempts
        if attempt["host"] in offsets and int(attempt["tt_start_ms"]) > 0
        for kind, column in (("Start", "tt_start_ms"), ("End", "tt_finish_ms"))
    ]
    events = by_hosts(stamps, offsets, "1ms")
    apart, together = (uc.match(events, OVERLAP, sources=sources) for sources in (False, True))
    assert apart.num_rows == 10_984
    uncertain = apart.filter(pc.less(apart["confidence"], 1 - 1e-9))
    assert uncertain.num_rows == 4_444
    assert together["confidence"].to_pylist() == [1.0] * (10_984 - 3_240)
    keys = [
        set(zip(*(table[name].to_pylist() for name in "abc"), strict=True)) for table in (uncertain, together)
    ]
    assert len(keys[0] & keys[1]) == 1_204
    at = {row["id"]: row["at"] for row in stamps}
    assert all(at[a] < at[b] < at[c] for a, b, c in keys[1])


def test_the_next_start_on_a_host_after_a_failure(
    attempts: list[dict[str, str]], offsets: dict[str, Interval]
) -> None:
    stamps, starts, failures = [], defaultdict(list), []
    for attempt in attempts:
        start, end, host = int(attempt["tt_start_ms"]), int(attempt["tt_finish_ms"]), attempt["host"]
        if host in offsets and start > 0:
            stamps.append(stamped(attempt, "Start", "tt_start_ms"))
            starts[host].append((start // 100, stamps[-1]["id"]))
            if attempt["result"] == "FAILED" and end >= start:
                stamps.append(stamped(attempt, "End", "tt_finish_ms"))
                failures.append((end // 100, stamps[-1]["id"], host))
    events = by_hosts(stamps, offsets, "100ms")
    query = "PATTERN SEQ(End a, Start b) WHERE skip_till_next_match(a, b) AND [host] WITHIN 2 minutes"
    apart, together = (uc.match(events, query, sources=sources) for sources in (False, True))
    assert apart.num_rows == 4_974
    assert pc.sum(pc.less(apart["confidence"], 1 - 1e-9)).as_py() == 3_845
    assert together["confidence"].to_pylist() == [1.0] * 2_901
    expected = set()
    for end, failure, host in failures:
        later = [start for start, _ in starts[host] if end < start < end + 1200]
        expected |= {(failure, id) for start, id in starts[host] if later and start == min(later)}
    assert set(zip(together["a"].to_pylist(), together["b"].to_pylist(), strict=True)) == expected


def test_a_map_finished_before_a_reduce_ended_its_shuffle(
    trace: pa.Table, attempts: list[dict[str, str]], offsets: dict[str, Interval]
) -> None:
    maps: dict[str, list[tuple[str, Interval, str]]] = defaultdict(list)
    shuffles: dict[str, list[tuple[str, Interval, str]]] = defaultdict(list)
    for attempt in attempts:
        if attempt["result"] != "SUCCESS":
            continue
        if attempt["task_type"] == "MAP":
            ended = _bounded(int(attempt["tt_finish_ms"]), attempt["host"], offsets)
            if ended is not None:
                maps[attempt["job_id"]].append((f"{attempt['attempt_id']}:finish", ended, attempt["host"]))
        elif attempt["task_type"] == "REDUCE":
            ended = _bounded(int(attempt["tt_shuffle_ms"]), attempt["host"], offsets)
            if ended is not None:
                shuffles[attempt["job_id"]].append(
                    (f"{attempt['attempt_id']}:shuffle", ended, attempt["host"])
                )
    expected: dict[Signature, Answer] = {}
    for job, finished in maps.items():
        for map_id, first, map_host in finished:
            for shuffle_id, second, host in shuffles[job]:
                answer = (rigid if host == map_host else pair)(first, second, 60 * SECONDS)
                if answer is not None:
                    expected[map_id, shuffle_id] = answer

    text = dataset("yahoo_hadoop", "map_before_shuffle.query").read_text(encoding="utf-8")
    assert_matches(uc.match(trace, text), ("a", "b"), expected)
    assert len(expected) == 38_451
