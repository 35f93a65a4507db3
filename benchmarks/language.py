"""Events a second of Kleene components, negation and contiguity, with confidence, batch by batch."""

from __future__ import annotations

from functools import partial
from typing import Final

from benchmarks.figures import Options, Results
from benchmarks.throughput import consume
from benchmarks.timing import pin_to_one_core, take_turns
from benchmarks.workload import WINDOW, Stream

__all__ = ["measure"]

_EVENTS: Final = 1_000_000

_SERIES: Final = "a.value % 40 = 0 AND b[i].value % 44 = 0 AND c.value % 52 = 0"

_QUERIES: Final = {
    "Kleene, skip till any": f"PATTERN SEQ(E a, E+ b[], E c) WHERE {_SERIES} WITHIN {WINDOW}",
    "Kleene and negation, skip till any": (
        f"PATTERN SEQ(E a, E+ b[], !E n, E c) WHERE {_SERIES} AND b[i].value > b[i-1].value "
        f"AND n.value % 52 = 1 WITHIN {WINDOW}"
    ),
    "Kleene, skip till next": (
        f"PATTERN SEQ(E a, E+ b[], E c) WHERE skip_till_next_match(a, b[], c) {{ {_SERIES} }} WITHIN {WINDOW}"
    ),
    "negation": (
        "PATTERN SEQ(E a, !E n, E b) WHERE a.value % 20 = 0 AND n.value % 26 = 0 AND b.value % 22 = 0 "
        f"WITHIN {WINDOW}"
    ),
    "strict contiguity": (
        "PATTERN SEQ(E a, E b) WHERE strict_contiguity(a, b) { a.value % 20 = 0 AND b.value % 22 = 0 } "
        f"WITHIN {WINDOW}"
    ),
}


def measure(options: Options) -> Results:
    """Measure each construct on the stream of the main job, d = 5."""
    pin_to_one_core(options.core)
    results = Results()
    n = options.events(_EVENTS)
    events = Stream(n, half_interval=5).table()
    timings = take_turns(
        {name: partial(consume, events, query, confidence=True) for name, query in _QUERIES.items()},
        options.rounds,
    )
    for name, timing in timings.items():
        results.add(
            f"d=5, {name}",
            n / timing.seconds(options.clock) / 1e6,
            "M events/s",
            None,
            timing.rounds(options.clock),
            f"{timing.rows:,} matches of {n:,} events",
        )
    return results
