"""Confidences of dense data: chains side by side against the general kernel, one chain at a time."""

from __future__ import annotations

from functools import partial
from typing import Final
from unittest.mock import patch

import pyarrow as pa

from benchmarks.figures import Options, Results, Target, at_least
from benchmarks.throughput import consume
from benchmarks.timing import pin_to_one_core, take_turns
from benchmarks.workload import FIVE, THREE, WINDOW, Stream, sequence_query
from eventbased.gaps import gap_confidences
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

_NEGATED: Final = (
    "PATTERN SEQ(E a, !E n, E b, E c)\n"
    "WHERE a.value % 10 = 0 AND n.value % 17 = 0 AND b.value % 11 = 0 AND c.value % 13 = 0\n"
    f"WITHIN {WINDOW}"
)
_FORBIDDEN: Final[tuple[tuple[int, int, Target | None], ...]] = (
    (5, 60_000, None),
    (20, 10_000, at_least(2.0)),
    (50, 3_000, at_least(3.0)),
)
"""Half interval, number of events; how many times as fast matches are that share what gaps survive."""


def _match_by_match(events: pa.Table) -> int:
    """Return the number of matches of a negation, for each of which its forbidden events were weighed."""
    with patch.object(gap_confidences, "LEAST_TABLED", 1 << 62):
        return consume(events, _NEGATED, confidence=True)


def _measure_forbidden(options: Options, results: Results) -> None:
    for half_interval, count, target in _FORBIDDEN:
        events = Stream(options.events(count), half_interval).table()
        timings = take_turns(
            {
                "apart": partial(_match_by_match, events),
                "shared": partial(consume, events, _NEGATED, confidence=True),
            },
            options.rounds,
        )
        seconds = {name: timing.seconds(options.clock) for name, timing in timings.items()}
        rows = timings["shared"].rows
        results.add(
            f"d={half_interval}, negation, match by match to shared gaps",
            seconds["apart"] / seconds["shared"],
            "x",
            target,
            timings["shared"].rounds(options.clock),
            f"{seconds['shared'] / rows * 1e6:.1f} and {seconds['apart'] / rows * 1e6:.1f} us a match",
        )


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
    _measure_forbidden(options, results)
    return results
