"""The best matches, and the likely ones, against all of them."""

from __future__ import annotations

from functools import partial
from typing import Final

import uncertain_cep as uc
from benchmarks.figures import Options, Results, Target, at_most
from benchmarks.timing import pin_to_one_core, take_turns
from benchmarks.workload import THREE, Stream, sequence_query

__all__ = ["measure"]

_BEST: Final = 20
_CASES: Final[tuple[tuple[str, int, int, bool, Target | None], ...]] = (
    ("d=5", 1_000_000, 5, False, at_most(1 / 3)),
    ("d=50", 200_000, 50, False, at_most(0.25)),
    ("d=5, skip till next", 1_000_000, 5, True, at_most(0.25)),
)

_LIKELY: Final[tuple[tuple[str, int, float, Target | None], ...]] = (
    ("d=50", 50, 0.1, None),
    ("d=50", 50, 0.3, at_most(0.5)),
    ("d=5", 5, 0.5, None),
)
"""Confidences that most matches have, and that few have."""


def measure(options: Options) -> Results:
    """Compare the top 20, and likely matches, with the full answer, all with exact confidences."""
    pin_to_one_core(options.core)
    results = Results()
    for name, count, half_interval, next_match, target in _CASES:
        n = options.events(count)
        events = Stream(n, half_interval=half_interval).table()
        query = sequence_query(THREE, next_match=next_match)
        best = f"{query}\nORDER BY CONFIDENCE DESC LIMIT {_BEST}"
        timings = take_turns(
            {"all": partial(uc.match, events, query), "best": partial(uc.match, events, best)}, options.rounds
        )
        everything, few = timings["all"].seconds(options.clock), timings["best"].seconds(options.clock)
        results.add(
            f"top {_BEST} to all matches, {name}",
            few / everything,
            "x",
            target,
            timings["best"].rounds(options.clock),
            f"{few:.3f} s against {everything:.3f} s for {timings['all'].rows:,} matches of {n:,} events",
        )
    for name, half_interval, least, target in _LIKELY:
        n = options.events(200_000)
        events = Stream(n, half_interval=half_interval).table()
        query = sequence_query(THREE)
        likely = f"{query}\nHAVING CONFIDENCE >= {least}"
        timings = take_turns(
            {"all": partial(uc.match, events, query), "likely": partial(uc.match, events, likely)},
            options.rounds,
        )
        everything, few = timings["all"].seconds(options.clock), timings["likely"].seconds(options.clock)
        results.add(
            f"HAVING CONFIDENCE >= {least} to all matches, {name}",
            few / everything,
            "x",
            target,
            timings["likely"].rounds(options.clock),
            f"{few:.3f} s for {timings['likely'].rows:,} against {everything:.3f} s for "
            f"{timings['all'].rows:,} matches of {n:,} events",
        )
    return results
