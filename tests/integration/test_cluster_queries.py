"""The four queries of the simulated cluster, against candidates joined by hand and against the truth."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.integration.chains import Interval, chain, dataset, epoch_milliseconds, mirrored, tight
from uncertain_cep.traces import load_schema, read_traces
from uncertain_cep.traces.cluster import ClusterTrace, cluster_trace, write_cluster


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of the trace: its row, its stamp, its possible times and its true one, ms."""

    row: dict[str, str | int | float]
    stamp: int
    interval: Interval
    truth: int
    clock: str | None
    """The node by whose clock it is stamped."""


Candidate = tuple[Happened, ...]
Ints = npt.NDArray[np.int64]


class Log:
    """The events by type, and by type and node in the order of their upper bounds."""

    def __init__(self, cluster: ClusterTrace) -> None:
        truth = epoch_milliseconds(cluster.truth["true_time"])
        offsets = {
            row["nodeId"]: (row["lower_ms"], row["upper_ms"]) for row in cluster.clock_offsets.to_pylist()
        }
        self.of: dict[str, list[Happened]] = defaultdict(list)
        self.ended: dict[str, dict[tuple[str, int], Happened]] = defaultdict(dict)
        for table, is_metric in ((cluster.tasks, False), (cluster.metrics, True)):
            stamps = epoch_milliseconds(table["time"])
            for row, stamp in zip(table.drop_columns(["time"]).to_pylist(), stamps, strict=True):
                lower, upper = (-14_999, 0) if is_metric else offsets[row["nodeId"]]
                clock = None if is_metric else row["nodeId"]
                event = Happened(row, stamp, (stamp + lower, stamp + upper), truth[row["id"]], clock)
                self.of[row["type"]].append(event)
                if not is_metric and row["type"] != "Fetch":
                    self.ended[row["type"]][row["taskId"], row["attempt"]] = event
        self._metrics: dict[tuple[str, str], list[Happened]] = defaultdict(list)
        for name in ("Cpu", "Network", "Memory"):
            for event in sorted(self.of[name], key=lambda event: event.interval[1]):
                self._metrics[name, str(event.row["nodeId"])].append(event)

    def near(self, name: str, event: Happened, window: int) -> Iterator[Happened]:
        """The metric's values of the event's node that can lie less than `window` ms from the event."""
        values = self._metrics[name, str(event.row["nodeId"])]
        first = bisect_left(values, event.interval[0] - window, key=lambda value: value.interval[1])
        for value in values[first:]:
            if value.interval[0] > event.interval[1] + window:
                return
            yield value

    def same_attempt(self, kind: str, event: Happened) -> Happened | None:
        return self.ended[kind].get((str(event.row["taskId"]), int(event.row["attempt"])))


def _cpu_max_out(log: Log, window: int) -> Iterator[Candidate]:
    for start in log.of["TaskStart"]:
        end = log.same_attempt("MapFinish", start) or log.same_attempt("ReduceFinish", start)
        if end is None or end.interval[0] - start.interval[1] >= window:
            continue
        values = list(log.near("Cpu", start, window))
        for busy in values:
            for idle in values:
                if float(busy.row["value"]) > 0.95 and float(idle.row["value"]) <= 0.7:
                    yield start, busy, end, idle


def _shuffle_floods_network(log: Log, window: int) -> Iterator[Candidate]:
    for fetch in log.of["Fetch"]:
        end = log.same_attempt("ShuffleEnd", fetch)
        if (
            end is None
            or int(fetch.row["bytes"]) < 2_000_000
            or fetch.row["sourceNode"] == fetch.row["nodeId"]
        ):
            continue
        for peak in log.near("Network", fetch, window):
            if float(peak.row["value"]) > 1e8:
                yield fetch, peak, end


def _merge_loads_cpu(log: Log, window: int) -> Iterator[Candidate]:
    for begin in log.of["MergeStart"]:
        end = log.same_attempt("MergeEnd", begin)
        if end is None:
            continue
        values = list(log.near("Cpu", begin, window))
        for idle in values:
            for busy in values:
                if float(idle.row["value"]) <= 0.5 and float(busy.row["value"]) > 0.8:
                    yield idle, begin, busy, end


def _memory_failure(log: Log, window: int) -> Iterator[Candidate]:
    for failed in log.of["TaskFailed"]:
        following = (str(failed.row["taskId"]), int(failed.row["attempt"]) + 1)
        retried = log.ended["TaskStart"].get(following)
        if retried is None or retried.row["nodeId"] == failed.row["nodeId"]:
            continue
        for full in log.near("Memory", failed, window):
            if float(full.row["value"]) > 0.8:
                yield full, failed, retried


@dataclass(frozen=True, slots=True)
class Case:
    """A query: its window (ms), its candidates, its variables, and how many matches it has."""

    window: int
    candidates: Callable[[Log, int], Iterator[Candidate]]
    variables: str
    total: int


CASES = {
    "cpu_max_out": Case(30_000, _cpu_max_out, "abcd", 1829),
    "shuffle_floods_network": Case(30_000, _shuffle_floods_network, "abc", 17_564),
    "merge_loads_cpu": Case(45_000, _merge_loads_cpu, "abcd", 217),
    "memory_failure": Case(30_000, _memory_failure, "abc", 159),
}


@pytest.fixture(scope="module")
def cluster() -> ClusterTrace:
    return cluster_trace()


@pytest.fixture(scope="module")
def log(cluster: ClusterTrace) -> Log:
    return Log(cluster)


@pytest.fixture(scope="module")
def trace(cluster: ClusterTrace, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    folder = tmp_path_factory.mktemp("cluster") / "hour"
    write_cluster(folder, cluster)
    return read_traces([folder], load_schema(dataset("cluster", "schema.toml")))


def _given_offsets(candidate: Candidate) -> Ints:
    """Return bounds of the times, (l, 2, n), for each offset of the clock that stamped several events."""
    bounds = np.array([event.interval for event in candidate])[:, :, np.newaxis]
    clocks = [event.clock for event in candidate]
    shared = [event for event in candidate if event.clock is not None and clocks.count(event.clock) > 1]
    if not shared:
        return bounds
    offsets = np.arange(shared[0].interval[0], shared[0].interval[1] + 1) - shared[0].stamp
    bounds = np.repeat(bounds, len(offsets), axis=2)
    for event in shared:
        bounds[candidate.index(event)] = event.stamp + offsets
    return bounds


def _range(candidate: Candidate, window: int) -> Interval | None:
    """Return the tightest range of times over all offsets; None if the events match for none of them."""
    lower, upper = _given_offsets(candidate).swapaxes(0, 1)
    for _ in range(len(candidate)):
        lower[0] = np.maximum(lower[0], lower[-1] - window + 1)
        upper[-1] = np.minimum(upper[-1], upper[0] + window - 1)
        for place in range(1, len(lower)):
            lower[place] = np.maximum(lower[place], lower[place - 1] + 1)
            upper[-place - 1] = np.minimum(upper[-place - 1], upper[-place] - 1)
    possible = (lower <= upper).all(axis=0)
    if not possible.any():
        return None
    return int(lower[0, possible].min()), int(upper[-1, possible].max())


def _confidence(candidate: Candidate, window: int) -> float:
    total = Fraction(0)
    worlds = _given_offsets(candidate).transpose(2, 0, 1).tolist()
    for intervals in worlds:
        begins_short = intervals[0][1] - intervals[0][0] < intervals[-1][1] - intervals[-1][0]
        answer = (chain if begins_short else mirrored)(intervals, window)
        total += answer.confidence if answer is not None else 0
    return float(total / len(worlds))


def _text(name: str) -> str:
    return dataset("cluster", f"{name}.query").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_all_matches_of_a_query(trace: pa.Table, log: Log, name: str) -> None:
    case = CASES[name]
    expected: dict[tuple[int, ...], tuple[Candidate, Interval]] = {}
    truly = set()
    for candidate in case.candidates(log, case.window):
        alone = tight([event.interval for event in candidate], case.window)
        bounds = None if alone is None else _range(candidate, case.window)
        ids = tuple(int(event.row["id"]) for event in candidate)
        if bounds is not None:
            expected[ids] = candidate, bounds
        times = [event.truth for event in candidate]
        if times == sorted(set(times)) and times[-1] - times[0] < case.window:
            truly.add(ids)

    everything = replace(uc.parse(_text(name)), min_confidence=None, order_by_confidence=False, limit=None)
    matches = uc.match(trace, everything)
    signatures = list(zip(*(matches[variable].to_pylist() for variable in case.variables), strict=True))
    assert len(signatures) == len(expected) == case.total
    assert set(signatures) == expected.keys()
    assert truly
    assert truly <= expected.keys()

    ranges = zip(
        epoch_milliseconds(matches["range_lower"]), epoch_milliseconds(matches["range_upper"]), strict=True
    )
    assert list(ranges) == [expected[signature][1] for signature in signatures]
    confidences = matches["confidence"].to_pylist()
    for place in range(0, len(signatures), len(signatures) // 8):
        candidate, _ = expected[signatures[place]]
        assert confidences[place] == pytest.approx(_confidence(candidate, case.window), rel=1e-9, abs=0)


@pytest.mark.parametrize("name", CASES)
def test_a_query_as_committed_keeps_the_best(trace: pa.Table, name: str) -> None:
    query = uc.parse(_text(name))
    everything = uc.match(trace, replace(query, min_confidence=None, order_by_confidence=False, limit=None))[
        "confidence"
    ].to_pylist()
    kept = sorted(uc.match(trace, query)["confidence"].to_pylist(), reverse=True)
    assert query.min_confidence is not None
    good = sorted((value for value in everything if value >= query.min_confidence), reverse=True)
    assert kept == good[: query.limit]
    assert 0 < len(good) < len(everything)
