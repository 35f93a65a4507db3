"""Iterating over the matches takes memory for a batch, however many matches there are."""

from __future__ import annotations

import gc
from statistics import median
from typing import Final

import pyarrow as pa

from benchmarks.figures import Options, Results, at_most
from benchmarks.isolated import ONE_THREAD, run_isolated
from benchmarks.resident import forget_peak, is_told, peak, resident
from benchmarks.throughput import consume
from benchmarks.timing import pin_to_one_core
from benchmarks.workload import THREE, Stream, sequence_query

__all__ = ["measure"]

_EVENTS: Final = 1_000_000
_WINDOWS: Final = {"1x": 100, "10x": 371}


def _peak(n: int, window: int, core: int | None, confidence: bool) -> tuple[int, int, int]:
    """Return the peak of resident memory and of Arrow's pool above the input, in bytes, and the matches."""
    pin_to_one_core(core)
    query = sequence_query(THREE, window)
    consume(Stream(1000, 5).table(), query, confidence=confidence)
    events = Stream(n, 5).table()
    gc.collect()
    pa.default_memory_pool().release_unused()
    pool, peak_of_pool, matches = pa.total_allocated_bytes(), 0, 0
    forget_peak()
    before = resident()
    import uncertain_cep as uc

    for batch in uc.iter_matches(events, query, confidence=confidence):
        matches += batch.num_rows
        peak_of_pool = max(peak_of_pool, pa.total_allocated_bytes())
    return peak() - before, max(peak_of_pool - pool, 0), matches


def measure(options: Options) -> Results:
    """Compare the peaks of a query and of one with ten times its matches, each in fresh processes."""
    results = Results()
    if not is_told():
        results.failures.append("peak memory: needs Linux' /proc")
        return results
    n = options.events(_EVENTS)
    peaks: dict[str, float] = {}
    for name, window in _WINDOWS.items():
        measured = [
            run_isolated(_peak, n, window, options.core, True, environment=ONE_THREAD)
            for _ in range(options.rounds)
        ]
        mebibytes = [peak_bytes / 2**20 for peak_bytes, _, _ in measured]
        peaks[name] = median(mebibytes)
        matches = measured[0][2]
        pool = median(pool for _, pool, _ in measured) / 2**20
        results.add_median(
            f"peak above the input, {name} matches (W={window})",
            mebibytes,
            "MiB",
            note=f"{matches:,} matches; of it in Arrow's pool, seen at each batch: {pool:.0f} MiB",
        )
    results.add("peak with 10x the matches to 1x", peaks["10x"] / peaks["1x"], "x", at_most(1.25))
    return results
