"""The figures of the default stream that the paper's framework is held to."""

from __future__ import annotations

from functools import partial
from typing import Final

import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, Target, at_least, exactly
from benchmarks.paper_measuring import MOST_EVENTS
from benchmarks.paper_options import PaperOptions
from benchmarks.timing import pin_to_one_core, take_turns
from benchmarks.workload import EXPECTED_MATCHES, THREE, Stream, sequence_query

__all__ = ["measure"]

_QUICK: Final = 10
_TARGETS: Final[dict[tuple[int, str], Target | None]] = {
    (5, "next"): at_least(0.5),
    (0, "any"): at_least(5.0),
    (0, "next"): at_least(3.0),
}
"""Half interval and strategy -> million events a second (the paper: skip till next, 0.001 to 0.002)."""


def measure(options: Options, paper: PaperOptions) -> Results:
    """Measure ``auto`` with exact confidences: skip till next at d = 5, both strategies at certain times."""
    pin_to_one_core(options.core)
    results = Results()
    n = options.events(MOST_EVENTS // (_QUICK if paper.quick else 1))
    queries = {"any": sequence_query(THREE), "next": sequence_query(THREE, next_match=True)}

    def matcher(half: int, strategy: str) -> pa.Table:
        return uc.match(streams[half], queries[strategy])

    streams = {half: Stream(n, half).table() for half, _ in _TARGETS}
    timings = take_turns(
        {f"{half} {strategy}": partial(matcher, half, strategy) for half, strategy in _TARGETS},
        options.rounds,
    )
    for (half, strategy), target in _TARGETS.items():
        timing = timings[f"{half} {strategy}"]
        results.add(
            f"d={half}, skip till {strategy}, auto, with confidence",
            n / timing.seconds(options.clock) / 1e6,
            "M events/s",
            target,
            timing.rounds(options.clock),
            f"{timing.rows:,} matches of {n:,} events",
        )
    if n == MOST_EVENTS:
        rows = timings["0 any"].rows
        results.add("d=0, skip till any, number of matches", rows, "matches", exactly(EXPECTED_MATCHES[0]))
    return results
