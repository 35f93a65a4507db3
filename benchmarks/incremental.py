"""Events a second through the incremental matcher, with exact confidences, and the state it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, at_least, at_most, exactly
from benchmarks.timing import pin_to_one_core, take_turns
from benchmarks.workload import EXPECTED_MATCHES, THREE, Stream, sequence_query

__all__ = ["measure"]

_EVENTS: Final = 1_000_000
_BATCH: Final = 10_000
_SMALL_BATCHES: Final = (1, 100, 1000)
_CALLS: Final = 2_000
_METHODS: Final = ("any_state", "selectivity", "query_order", "sliced")
_AIMED_AT: Final = ("any_state", "selectivity")
_TARGET: Final = 0.2


@dataclass(slots=True)
class _Run:
    """A stream pushed batch by batch; how large the state was after each."""

    events: pa.Table
    evaluation: str
    batch: int
    sizes: list[int] = field(default_factory=list)

    def __call__(self) -> int:
        query, d = sequence_query(THREE), 5
        matcher = uc.IncrementalMatcher(
            query, self.events.schema, evaluation=self.evaluation, largest_interval=2 * d
        )
        matches = 0
        self.sizes.clear()
        for start in range(0, self.events.num_rows, self.batch):
            matches += matcher.push(self.events.slice(start, self.batch)).num_rows
            self.sizes.append(matcher.state_size)
        return matches + int(matcher.close().num_rows)


def measure(options: Options) -> Results:
    """Measure d = 5, W = 100, v = (10, 11, 13) in batches of 10,000 events and fewer."""
    pin_to_one_core(options.core)
    results = Results()
    n = options.events(_EVENTS)
    events = Stream(n, half_interval=5).table()
    runs = {name: _Run(events, name, _BATCH) for name in _METHODS}
    timings = take_turns(runs, options.rounds)
    for name, timing in timings.items():
        results.add(
            f"{name}, batches of {_BATCH:,}, with confidence",
            n / timing.seconds(options.clock) / 1e6,
            "M events/s",
            at_least(_TARGET) if name in _AIMED_AT else None,
            timing.rounds(options.clock),
            f"{timing.rows:,} matches of {n:,} events",
        )
        expected = exactly(EXPECTED_MATCHES[5]) if n == _EVENTS else None
        results.add(f"{name}, number of matches", timing.rows, "matches", expected)
        sizes = runs[name].sizes
        half = len(sizes) // 2
        results.add(
            f"{name}, largest state between calls, second half to first",
            max(sizes[half:]) / max(sizes[:half]),
            "x",
            at_most(1.1),
            note=f"at most {max(sizes):,} candidates, runs and events; within a call also the call's own",
        )
    for size in _SMALL_BATCHES:
        few = events.slice(0, min(_CALLS * size, n))
        timings = take_turns({name: _Run(few, name, size) for name in _METHODS}, options.rounds)
        for name, timing in timings.items():
            results.add(
                f"{name}, batches of {size}, with confidence",
                few.num_rows / timing.seconds(options.clock) / 1e6,
                "M events/s",
                None,
                timing.rounds(options.clock),
                f"{timing.rows:,} matches of {few.num_rows:,} events",
            )
    return results
