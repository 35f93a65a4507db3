"""One thread beside one for each core, and how much of the work is left to one."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Connection
from statistics import median
from threading import current_thread, get_ident
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, at_least, at_most
from benchmarks.readers import measure_cores
from benchmarks.timing import take_turns
from benchmarks.workload import THREE, Stream, sequence_query
from uncertain_cep.running.threads import _TaskQueue, available_cores, side_by_side

__all__ = ["measure"]

_STREAMS: Final = {
    "1M events, d=5": (Stream(1_000_000, half_interval=5), THREE, False, 1.7),
    "10M events, d=5": (Stream(10_000_000, half_interval=5), THREE, False, 1.7),
    "300,000 events, d=50": (Stream(300_000, half_interval=50), THREE, False, 1.8),
    "300,000 events, d=5, skip till next": (Stream(300_000, half_interval=5), THREE, True, None),
}
_MANY: Final = 16
_ITEM: Final = 0.004
"""Seconds that a fast thread takes for an item."""
_ITEMS: Final = 50


def _count(events: pa.Table, query: str, threads: int) -> int:
    return sum(batch.num_rows for batch in uc.iter_matches(events, query, threads=threads))


def _serial_share(events: pa.Table, query: str, threads: int) -> float:
    """Return the share of processor time for work that only the caller's thread can do."""
    caller, making = current_thread(), 0.0
    make = _TaskQueue.make

    def timed(queue: _TaskQueue[Any]) -> None:
        nonlocal making
        began = time.thread_time()
        make(queue)
        if current_thread() is caller:
            making += time.thread_time() - began

    with patch.object(_TaskQueue, "make", timed):
        ran, own_began = time.process_time(), time.thread_time()
        _count(events, query, threads)
        return (time.thread_time() - own_began - making) / (time.process_time() - ran)


def _answer(connection: Connection, stream: Stream, query: str) -> None:
    """Count matches with one thread whenever asked to, until nothing is asked."""
    events = stream.table()
    _count(events, query, 1)
    while connection.recv():
        connection.send(_count(events, query, 1))


class _Processes:
    """Processes that share nothing and count the matches of a stream at the same time."""

    def __init__(self, stream: Stream, query: str, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        pipes = [context.Pipe() for _ in range(count)]
        self._connections = [ours for ours, _ in pipes]
        self._processes = [
            context.Process(target=_answer, args=(theirs, stream, query), daemon=True) for _, theirs in pipes
        ]

    def __enter__(self) -> _Processes:
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *_: object) -> None:
        for connection, process in zip(self._connections, self._processes, strict=True):
            connection.send(False)
            process.join()

    def count(self) -> int:
        """Return how many matches one of them finds, when all have found theirs."""
        for connection in self._connections:
            connection.send(True)
        return max(int(connection.recv()) for connection in self._connections)


def _share_of_uneven_cores(slowness: float, is_caller_slow: bool) -> float:
    """Return how much two threads get done, one of them slower, as a share of what their speeds allow.

    Threads sleep instead of computing, as no core can be told how fast to be.
    """
    caller = get_ident()

    def queue() -> Iterator[None]:
        for _ in range(_ITEMS):
            time.sleep(_ITEM * (slowness if (get_ident() == caller) == is_caller_slow else 1.0))
            yield

    began = time.perf_counter()
    items = sum(1 for _ in side_by_side(2, [queue, queue]))
    return items * _ITEM / (1.0 + 1.0 / slowness) / (time.perf_counter() - began)


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
        with _Processes(scaled, query, cores) as processes:
            timings = take_turns(
                {
                    "one": partial(_count, events, query, 1),
                    "all": partial(_count, events, query, cores),
                    "apart": processes.count,
                },
                options.rounds,
                settled=True,
            )
        # Time on the processor does not tell what two cores do at once.
        one, all_cores, apart = (timings[name].seconds("wall") for name in ("one", "all", "apart"))
        results.add(
            f"{name}: one thread to {cores}", one / all_cores, "x",
            None if target is None or cores != 2 else at_least(target), (),
            f"{one:.3f} s and {all_cores:.3f} s: {apart / cores / all_cores:.2f} of what processes reach",
        )  # fmt: skip
        results.add(
            f"{name}: {cores} processes, each for itself", cores * one / apart, "x", None, (),
            "what the machine allows: they share no interpreter",
        )  # fmt: skip
        share = median(_serial_share(events, query, cores) for _ in range(options.rounds))
        amdahl = 1.0 / (share + (1.0 - share) / _MANY)
        results.add(
            f"{name}: share of the caller's thread", share, "", at_most(0.15), (),
            f"at most {amdahl:.1f} times as fast on {_MANY} cores by Amdahl's law",
        )  # fmt: skip
    for slowness, target in ((1.5, 0.85), (2.0, 0.75)):
        shares = [
            median(_share_of_uneven_cores(slowness, is_caller_slow) for _ in range(options.rounds))
            for is_caller_slow in (False, True)
        ]
        results.add(
            f"two threads, one {slowness:g} times as slow: share of what both could do", min(shares), "",
            at_least(target), (), f"{shares[0]:.2f}, and {shares[1]:.2f} if it is the caller's",
        )  # fmt: skip
    measure_cores(results, options, cores)
    return results
