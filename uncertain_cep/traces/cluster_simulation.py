"""The tasks of a simulated Hadoop-like cluster: when each attempt ran, and where, in true time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from confidence.flat_lists import counting

__all__ = [
    "CELL",
    "METRIC_WINDOW",
    "Attempts",
    "Fetches",
    "Jobs",
    "Metrics",
    "measure",
    "schedule_maps",
    "schedule_reduces",
    "submit_jobs",
]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SECOND: Final = 1_000
MAP_SLOTS: Final = 8
REDUCE_SLOTS: Final = 4
MEAN_SUBMISSION_GAP: Final = 1_000 * SECOND
"""Mean time between two jobs on a cluster of one node; the rate grows with the number of nodes."""
MAPS_OF_A_JOB: Final = (80, 320)
REDUCES_OF_A_JOB: Final = (8, 32)
MEDIAN_MAP: Final = 12 * SECOND
FAILURE_RATE: Final = 0.02
MOST_FAILURES: Final = 3
SLOW_START: Final = 0.05
"""Share of a job's maps that must have finished before its reduces are given slots."""
MEAN_FETCH_WAIT: Final = 1.5 * SECOND
MEDIAN_FETCH_BYTES: Final = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs in order of submission: when (ms), and how many map and reduce tasks; each ``(jobs,)``."""

    submitted: Ints
    maps: Ints
    reduces: Ints


@dataclass(frozen=True, slots=True)
class Attempts:
    """One task attempt per element; times in ms since the start, true time.

    ``merge``, the moment a reduce had all its input, and ``reduce``, the moment it had merged it, are
    equal to ``end`` for maps.
    """

    job: Ints
    task: Ints
    number: Ints
    node: Ints
    start: Ints
    merge: Ints
    reduce: Ints
    end: Ints
    failed: Bools


@dataclass(frozen=True, slots=True)
class Fetches:
    """One map output copied by a reduce per element: which reduce (row of its Attempts), from where, when."""

    attempt: Ints
    source: Ints
    end: Ints
    bytes: Ints


def _lognormal(rng: np.random.Generator, median: float, sigma: float, size: int) -> Ints:
    return np.maximum(1, rng.lognormal(np.log(median), sigma, size)).astype(np.int64)


def submit_jobs(rng: np.random.Generator, duration: int, nodes: int) -> Jobs:
    """Return the jobs submitted in `duration` ms: a Poisson stream whose first job comes at once."""
    mean = MEAN_SUBMISSION_GAP / nodes
    gaps = rng.exponential(mean, size=10 + int(duration / mean * 1.5 + 10 * np.sqrt(duration / mean)))
    gaps[0] = 0
    submitted = np.cumsum(gaps).astype(np.int64)
    submitted = submitted[submitted < duration]
    count = len(submitted)
    return Jobs(
        submitted,
        rng.integers(*MAPS_OF_A_JOB, size=count, endpoint=True),
        rng.integers(*REDUCES_OF_A_JOB, size=count, endpoint=True),
    )


def _take_slot(slots: list[tuple[int, int]], avoid: int, per_node: int) -> tuple[int, int]:
    """Pop the slot that is free first, if possible one of another node than `avoid`."""
    passed = []
    chosen = heapq.heappop(slots)
    while slots and chosen[1] // per_node == avoid:
        passed.append(chosen)
        chosen = heapq.heappop(slots)
    for slot in passed:
        heapq.heappush(slots, slot)
    return chosen


def _free_slots(nodes: int, per_node: int) -> list[tuple[int, int]]:
    slots = [(0, slot) for slot in range(nodes * per_node)]
    heapq.heapify(slots)
    return slots


def schedule_maps(rng: np.random.Generator, jobs: Jobs, nodes: int) -> Attempts:
    """Run the map tasks: first ready, first served; a failed attempt is tried again on another node.

    The last attempt of a task succeeds, after at most MOST_FAILURES that failed.
    """
    job_of_task = np.repeat(np.arange(len(jobs.maps)), jobs.maps)
    task_in_job = counting(jobs.maps)
    failures = np.minimum(rng.geometric(1 - FAILURE_RATE, len(job_of_task)) - 1, MOST_FAILURES)
    number = counting(failures + 1)
    count = len(number)
    failed = number < np.repeat(failures, failures + 1)
    length = _lognormal(rng, MEDIAN_MAP, 0.5, count)
    assignment_delay = rng.integers(50, 1_500, count)
    retry_delay = rng.integers(1 * SECOND, 5 * SECOND, count)

    slots = _free_slots(nodes, MAP_SLOTS)
    ready = [
        (submitted, attempt, -1)
        for submitted, attempt in zip(
            jobs.submitted[job_of_task].tolist(), np.flatnonzero(number == 0).tolist(), strict=True
        )
    ]
    heapq.heapify(ready)
    node = np.empty(count, np.int64)
    start = np.empty(count, np.int64)
    while ready:
        since, attempt, avoid = heapq.heappop(ready)
        free, slot = _take_slot(slots, avoid, MAP_SLOTS)
        node[attempt] = slot // MAP_SLOTS
        start[attempt] = max(free, since) + int(assignment_delay[attempt])
        end = int(start[attempt] + length[attempt])
        heapq.heappush(slots, (end, slot))
        if failed[attempt]:
            heapq.heappush(ready, (end + int(retry_delay[attempt]), attempt + 1, slot // MAP_SLOTS))
    end_of = start + length
    return Attempts(
        job=np.repeat(job_of_task, failures + 1),
        task=np.repeat(task_in_job, failures + 1),
        number=number,
        node=node,
        start=start,
        merge=end_of,
        reduce=end_of,
        end=end_of,
        failed=failed,
    )


def schedule_reduces(
    rng: np.random.Generator, jobs: Jobs, maps: Attempts, nodes: int
) -> tuple[Attempts, Fetches]:
    """Run the reduce tasks: each copies the output of every map of its job, then merges, then reduces.

    A copy ends some time after both the reduce has started and the map has finished, so that the end of
    the shuffle is caused by the last map.
    """
    count = int(jobs.reduces.sum())
    job = np.repeat(np.arange(len(jobs.reduces)), jobs.reduces)
    node = np.empty(count, np.int64)
    start = np.empty(count, np.int64)
    shuffled = np.empty(count, np.int64)
    delay = rng.integers(50, 1_500, count)
    merging = _lognormal(rng, 4 * SECOND, 0.5, count)
    reducing = _lognormal(rng, 6 * SECOND, 0.5, count)

    succeeded = np.flatnonzero(~maps.failed)
    outputs = np.split(succeeded, np.searchsorted(maps.job[succeeded], np.arange(1, len(jobs.maps))))
    slots = _free_slots(nodes, REDUCE_SLOTS)
    sources: list[Ints] = []
    ends: list[Ints] = []
    row = 0
    for number, output in enumerate(outputs):
        finished = maps.end[output]
        ready = int(np.quantile(finished, SLOW_START))
        for _ in range(int(jobs.reduces[number])):
            free, slot = heapq.heappop(slots)
            node[row] = slot // REDUCE_SLOTS
            start[row] = max(free, ready) + int(delay[row])
            wait = rng.exponential(MEAN_FETCH_WAIT, len(output)).astype(np.int64)
            copied = np.maximum(finished, start[row] + 20) + 10 + wait
            shuffled[row] = copied.max() + 15
            heapq.heappush(slots, (int(shuffled[row] + merging[row] + reducing[row]), slot))
            sources.append(maps.node[output])
            ends.append(copied)
            row += 1
    reduces = Attempts(
        job=job,
        task=counting(jobs.reduces),
        number=np.zeros(count, np.int64),
        node=node,
        start=start,
        merge=shuffled,
        reduce=shuffled + merging,
        end=shuffled + merging + reducing,
        failed=np.zeros(count, np.bool_),
    )
    fetched = np.concatenate(ends)
    return reduces, Fetches(
        attempt=np.repeat(np.arange(count), jobs.maps[job]),
        source=np.concatenate(sources),
        end=fetched,
        bytes=_lognormal(rng, MEDIAN_FETCH_BYTES, 1.0, len(fetched)),
    )


Floats = npt.NDArray[np.float64]

CELL: Final = 100
"""Milliseconds for which the load of a node is taken as constant; cell c is the time (c, c+1] * CELL."""
METRIC_WINDOW: Final = 15 * SECOND
METRICS: Final = ("Cpu", "LoadAvg", "Memory", "Network")
CORES: Final = 8
MEMORY_LEAK: Final = 4 * SECOND
"""How long before its end an attempt that is going to fail starts to fill the memory."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """One metric value per element; ``time`` is the end of its window, ``peak`` the hidden moment, in ms."""

    name: npt.NDArray[np.str_]
    node: Ints
    time: Ints
    peak: Ints
    value: Floats


class _Load:
    """The sum of demands on each node over time, kept as its changes from cell to cell."""

    def __init__(self, nodes: int, cells: int) -> None:
        self._changes = np.zeros((nodes, cells + 1))

    def add(self, node: Ints, start: Ints, end: Ints, demand: Floats | float) -> None:
        """Add a demand on a node from one time to another (ms), for each element."""
        last = self._changes.shape[1] - 1
        np.add.at(self._changes, (node, np.clip(start // CELL, 0, last)), demand)
        np.subtract.at(self._changes, (node, np.clip(end // CELL, 0, last)), demand)

    def per_cell(self) -> Floats:
        """Return the load, ``(nodes, cells)``."""
        return np.cumsum(self._changes[:, :-1], axis=1)


def _trailing_mean(series: Floats, cells: int) -> Floats:
    """Return the mean of the last `cells` cells (fewer at the start) at each cell, row by row."""
    total = np.cumsum(series, axis=1)
    mean = total.copy()
    mean[:, cells:] -= total[:, :-cells]
    return mean / np.minimum(np.arange(1, series.shape[1] + 1), cells)


def _saturate(demand: Floats) -> Floats:
    """Return demand as a share of what there is: nearly all of it below 80%, never quite 1."""
    return demand / (1 + demand**8) ** (1 / 8)


def _load_of_nodes(
    rng: np.random.Generator, maps: Attempts, reduces: Attempts, fetches: Fetches, nodes: int, cells: int
) -> dict[str, Floats]:
    def noise(scale: float) -> Floats:
        # The slow part is what a node does besides tasks; the fast part keeps two cells from tying.
        white = rng.standard_normal((nodes, cells))
        return scale * (4 * _trailing_mean(white, 20) + 0.2 * white)

    cores = _Load(nodes, cells)
    cores.add(maps.node, maps.start, maps.end, rng.uniform(0.7, 1.2, len(maps.node)))
    cores.add(reduces.node, reduces.start, reduces.merge, 0.2)
    cores.add(reduces.node, reduces.merge, reduces.reduce, 2.0)
    cores.add(reduces.node, reduces.reduce, reduces.end, 0.9)
    busy = cores.per_cell()

    memory = _Load(nodes, cells)
    memory.add(maps.node, maps.start, maps.end, 0.04)
    memory.add(reduces.node, reduces.start, reduces.end, 0.05)
    memory.add(reduces.node, reduces.merge, reduces.reduce, 0.05)
    leaking = maps.failed
    leak_start = np.maximum(maps.start, maps.end - MEMORY_LEAK)[leaking]
    memory.add(maps.node[leaking], leak_start, maps.end[leaking], 0.5)

    traffic = _Load(nodes, cells)
    receiver = reduces.node[fetches.attempt]
    rate = fetches.bytes / (CELL / SECOND)
    for side in (receiver, fetches.source):
        remote = receiver != fetches.source
        traffic.add(side[remote], fetches.end[remote] - CELL, fetches.end[remote], rate[remote])

    return {
        "Cpu": _saturate(np.maximum(0.01, 0.06 + busy / CORES + noise(0.02))),
        "LoadAvg": np.maximum(0.0, _trailing_mean(busy, 60 * SECOND // CELL) + noise(0.05)),
        "Memory": _saturate(np.maximum(0.01, 0.15 + memory.per_cell() + noise(0.005))),
        "Network": np.maximum(0.0, _trailing_mean(traffic.per_cell(), SECOND // CELL) + noise(2e4) + 1e5),
    }


def measure(
    rng: np.random.Generator, maps: Attempts, reduces: Attempts, fetches: Fetches, nodes: int, duration: int
) -> Metrics:
    """Return the metrics as a monitor reports them: the maximum over each window of each node.

    A node's windows follow each other without a gap, from a phase of its own (whole seconds).
    """
    cells = duration // CELL
    of_window = METRIC_WINDOW // CELL
    load = _load_of_nodes(rng, maps, reduces, fetches, nodes, cells)
    phase = rng.integers(0, METRIC_WINDOW // SECOND, nodes) * SECOND
    windows = (duration - phase) // METRIC_WINDOW
    node = np.repeat(np.arange(nodes), windows)
    index = counting(windows)
    begin = phase[node] + index * METRIC_WINDOW
    window_cells = (begin // CELL)[:, np.newaxis] + np.arange(of_window)

    peaks, values = [], []
    for name in METRICS:
        of_metric = load[name][node[:, np.newaxis], window_cells]
        highest = of_metric.argmax(axis=1)
        values.append(of_metric[np.arange(len(node)), highest])
        peaks.append(begin + highest * CELL + rng.integers(1, CELL, len(node), endpoint=True))
    return Metrics(
        name=np.repeat(np.array(METRICS), len(node)),
        node=np.tile(node, len(METRICS)),
        time=np.tile(begin + METRIC_WINDOW, len(METRICS)),
        peak=np.concatenate(peaks),
        value=np.concatenate(values).round(4),
    )
