"""Confidence does not depend on the unit of time, nor much on the length of an interval."""

from __future__ import annotations

from typing import Final

import uncertain_cep as uc
from benchmarks.figures import Options, Results, at_most
from benchmarks.timing import pin_to_one_core, take_turns
from benchmarks.workload import THREE, WINDOW, Stream, sequence_query

__all__ = ["measure"]

_EVENTS: Final = 1_000_000
_LONG_EVENTS: Final = 200_000
_STRETCH: Final = 100


def measure(options: Options) -> Results:
    """Compare the paper's stream with the same one in a hundredth of its tick; then d = 50."""
    pin_to_one_core(options.core)
    results = Results()
    n = options.events(_EVENTS)
    clock = options.clock
    plain = Stream(n, 5).table()
    stretched = Stream(n, 5 * _STRETCH, spacing=_STRETCH).table()
    long = Stream(options.events(_LONG_EVENTS), 50).table()
    short_query = sequence_query(THREE)
    stretched_query = sequence_query(THREE, WINDOW * _STRETCH)
    timings = take_turns(
        {
            "plain": lambda: uc.match(plain, short_query),
            "stretched": lambda: uc.match(stretched, stretched_query),
            "long": lambda: uc.match(long, short_query),
        },
        options.rounds,
    )
    cost = {name: timing.seconds(clock) / timing.rows * 1e9 for name, timing in timings.items()}
    names = {
        "plain": "d=5, W=100",
        "stretched": "spacing, d and W times 100",
        "long": "d=50, W=100, most windows bind",
    }
    for name, shown in names.items():
        timing = timings[name]
        results.add(
            f"{shown}, whole call",
            cost[name],
            "ns a match",
            at_most(250.0) if name == "long" else None,
            timing.rounds(clock),
            f"{timing.rows:,} matches, with confidence",
        )
    results.add("cost of a match, stretched to plain", cost["stretched"] / cost["plain"], "x", at_most(1.2))
    return results
