"""One thread beside one for each core, and how much of the work is left to one."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import median
from typing import Any, Final

import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, at_least, at_most
from benchmarks.timing import take_turns
from benchmarks.workload import THREE, Stream, sequence_query
from uncertain_cep.threads import available_cores

__all__ = ["measure"]

_STREAMS: Final = {
    "1M events, d=5": (Stream(1_000_000, half_interval=5), THREE, False, 1.7),
    "10M events, d=5": (Stream(10_000_000, half_interval=5), THREE, False, 1.7),
    "300,000 events, d=50": (Stream(300_000, half_interval=50), THREE, False, 1.8),
    "300,000 events, d=5, skip till next": (Stream(300_000, half_interval=5), THREE, True, None),
}
_MANY: Final = 16


def _count(events: pa.Table, query: str, threads: int) -> int:
    return sum(batch.num_rows for batch in uc.iter_matches(events, query, threads=threads))


def _serial_share(events: pa.Table, query: str, threads: int) -> float:
    """Return which share of the processor time the thread of the caller takes, while others compute."""
    ran, own = time.process_time(), time.thread_time()
    _count(events, query, threads)
    return (time.thread_time() - own) / (time.process_time() - ran)


_all_there: Any = None
"""Where processes wait for each other before each round."""


def _meet_at(barrier: Any) -> None:
    global _all_there
    _all_there = barrier


def _alone(stream: Stream, query: str, rounds: int) -> float:
    """Return the seconds that this process takes with one thread, while others do the same."""
    events, seconds = stream.table(), []
    _count(events, query, 1)
    for _ in range(rounds):
        _all_there.wait()
        began = time.perf_counter()
        _count(events, query, 1)
        seconds.append(time.perf_counter() - began)
    return median(seconds)


def _seconds_beside(stream: Stream, query: str, processes: int, rounds: int) -> float:
    """Return the seconds of a process beside others that share nothing with it."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes)
    with ProcessPoolExecutor(processes, context, _meet_at, (barrier,)) as pool:
        tasks = [pool.submit(_alone, stream, query, rounds) for _ in range(processes)]
        return median(task.result() for task in tasks)


def measure(options: Options) -> Results:
    """Compare one thread with as many as there are cores, confidences included, batch by batch."""
    results = Results()
    cores = available_cores()
    if cores < 2:
        results.failures.append("this process may run on one core only")
        return results
    for name, (stream, divisors, next_match, target) in _STREAMS.items():
        scaled = Stream(options.events(stream.events), stream.half_interval)
        events, query = scaled.table(), sequence_query(divisors, next_match=next_match)
        timings = take_turns(
            {str(threads): partial(_count, events, query, threads) for threads in (1, cores)},
            options.rounds,
            # As processes are, one round of which follows the other.
            settled=True,
        )
        # Time on the processor does not tell what two cores do at once.
        one, all_cores = timings["1"].seconds("wall"), timings[str(cores)].seconds("wall")
        results.add(
            f"{name}: one thread to {cores}", one / all_cores, "x",
            None if target is None or cores != 2 else at_least(target), (),
            f"{one:.3f} s and {all_cores:.3f} s",
        )  # fmt: skip
        beside = _seconds_beside(scaled, query, cores, options.rounds)
        results.add(
            f"{name}: {cores} processes, each for itself", cores * one / beside, "x", None, (),
            "what the machine allows: they share no interpreter",
        )  # fmt: skip
        share = median(_serial_share(events, query, cores) for _ in range(options.rounds))
        amdahl = 1.0 / (share + (1.0 - share) / _MANY)
        results.add(
            f"{name}: share of the caller's thread", share, "", at_most(0.15), (),
            f"at most {amdahl:.1f} times as fast on {_MANY} cores by Amdahl's law",
        )  # fmt: skip
    return results
