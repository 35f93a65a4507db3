"""The tasks of a simulated Hadoop-like cluster: when each attempt ran, and where, in true time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["Attempts", "Fetches", "Jobs", "schedule_maps", "schedule_reduces", "submit_jobs"]

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

    Returns
    -------
    Attempts
        Every task has one attempt that succeeded, its last, and at most MOST_FAILURES that failed.
    """
    tasks = int(jobs.maps.sum())
    job_of_task = np.repeat(np.arange(len(jobs.maps)), jobs.maps)
    task_in_job = np.arange(tasks) - np.repeat(np.cumsum(jobs.maps) - jobs.maps, jobs.maps)
    failures = np.minimum(rng.geometric(1 - FAILURE_RATE, tasks) - 1, MOST_FAILURES)
    first_attempt = np.cumsum(failures + 1) - (failures + 1)
    count = tasks + int(failures.sum())
    number = np.arange(count) - np.repeat(first_attempt, failures + 1)
    failed = number < np.repeat(failures, failures + 1)
    length = _lognormal(rng, MEDIAN_MAP, 0.5, count)
    assignment_delay = rng.integers(50, 1_500, count)
    retry_delay = rng.integers(1 * SECOND, 5 * SECOND, count)

    slots = _free_slots(nodes, MAP_SLOTS)
    ready = [
        (submitted, attempt, -1)
        for submitted, attempt in zip(
            jobs.submitted[job_of_task].tolist(), first_attempt.tolist(), strict=True
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
        task=np.arange(count) - np.repeat(np.cumsum(jobs.reduces) - jobs.reduces, jobs.reduces),
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
