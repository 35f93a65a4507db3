"""Confidences of dense data: chains side by side against the general kernel, one chain at a time."""

from __future__ import annotations

from functools import partial
from typing import Final
from unittest.mock import patch

import pyarrow as pa

from benchmarks.figures import Options, Results, Target, at_least
from benchmarks.throughput import consume
from benchmarks.timing import pin_to_one_core, take_turns
from benchmarks.workload import FIVE, THREE, Stream, sequence_query
from uncertain_cep.operators import description, next_match

__all__ = ["measure"]

_SIX: Final = (*FIVE, 23)
_CASES: Final[tuple[tuple[tuple[int, ...], bool, int, int, Target | None], ...]] = (
    (THREE, False, 5, 300_000, None),
    (THREE, False, 50, 60_000, None),
    (FIVE[:4], False, 50, 10_000, at_least(5.0)),
    (FIVE, False, 5, 60_000, at_least(1.9)),
    (FIVE, False, 50, 4_000, at_least(5.0)),
    (_SIX, False, 50, 1_500, at_least(5.0)),
    (THREE, True, 5, 300_000, None),
)
"""Components, skip till next match or any, half interval and number of events; how many times as fast."""


def _general(events: pa.Table, query: str) -> int:
    """Return the number of matches, whose confidences the kernels for one match at a time computed."""
    with (
        patch.object(description, "new_chains", lambda *_: None),
        patch.object(next_match, "FewForbidden", lambda *_: None),
    ):
        return consume(events, query, confidence=True)


def measure(options: Options) -> Results:
    """Measure both ways, and what a match costs without confidence, batch by batch."""
    pin_to_one_core(options.core)
    results = Results()
    for divisors, is_next, half_interval, count, target in _CASES:
        events = Stream(options.events(count), half_interval).table()
        query = sequence_query(divisors, next_match=is_next)
        timings = take_turns(
            {
                "general": partial(_general, events, query),
                "side by side": partial(consume, events, query, confidence=True),
                "none": partial(consume, events, query, confidence=False),
            },
            options.rounds,
        )
        seconds = {name: timing.seconds(options.clock) for name, timing in timings.items()}
        rows = timings["none"].rows
        name = f"d={half_interval}, {len(divisors)} components" + (", skip till next" if is_next else "")
        results.add(
            f"{name}, general kernel to side by side",
            seconds["general"] / seconds["side by side"],
            "x",
            target,
            timings["side by side"].rounds(options.clock),
            f"{rows:,} matches, whole call",
        )
        results.add(
            f"{name}, confidence",
            (seconds["side by side"] - seconds["none"]) / rows * 1e9,
            "ns a match",
            note=f"{(seconds['general'] - seconds['none']) / rows * 1e9:.0f} ns with the general kernel",
        )
    return results
