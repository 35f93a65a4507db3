"""Time grows as the trace does."""

from __future__ import annotations

from typing import Final

from benchmarks.figures import Options, Results, at_most
from benchmarks.throughput import consume
from benchmarks.timing import pin_to_one_core, take_turns
from benchmarks.workload import THREE, Stream, sequence_query

__all__ = ["measure"]

_EVENTS: Final = 1_000_000
_FACTOR: Final = 10


def measure(options: Options) -> Results:
    """Compare ten million events with one million, batch by batch."""
    pin_to_one_core(options.core)
    results = Results()
    n = options.events(_EVENTS)
    few, large_stream = Stream(n, 5).table(), Stream(n * _FACTOR, 5).table()
    query = sequence_query(THREE)
    timings = take_turns(
        {
            "few": lambda: consume(few, query, confidence=False),
            "many": lambda: consume(large_stream, query, confidence=False),
            "few, confidence": lambda: consume(few, query, confidence=True),
            "many, confidence": lambda: consume(large_stream, query, confidence=True),
        },
        options.rounds,
    )
    for kind, shown in {"": "signatures and ranges", ", confidence": "with confidence"}.items():
        one, ten = timings[f"few{kind}"], timings[f"many{kind}"]
        results.add(
            f"{n * _FACTOR:,} events to {n:,}, {shown}",
            ten.seconds(options.clock) / one.seconds(options.clock),
            "x",
            at_most(11.0),
            ten.rounds(options.clock),
            f"{one.rows:,} and {ten.rows:,} matches; rounds of the longer one",
        )
    return results
