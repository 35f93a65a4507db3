"""The best matches, and the likely ones, against all of them."""

from __future__ import annotations

from functools import partial
from typing import Final

import uncertain_cep as uc
from benchmarks.figures import Options, Results, Target, at_most
from benchmarks.timing import pin_to_one_core, take_turns
from benchmarks.workload import THREE, Stream, sequence_query

__all__ = ["measure"]

_BEST: Final = "ORDER BY CONFIDENCE DESC LIMIT 20"
_LIKELY: Final = "HAVING CONFIDENCE >= {}"
_CASES: Final[tuple[tuple[str, str, int, int, bool, Target | None], ...]] = (
    ("top 20 to all matches, d=5", _BEST, 1_000_000, 5, False, at_most(1 / 3)),
    ("top 20 to all matches, d=50", _BEST, 200_000, 50, False, at_most(0.25)),
    ("top 20 to all matches, d=5, skip till next", _BEST, 1_000_000, 5, True, at_most(0.25)),
    # What most matches have, what many have, and what few have.
    (
        "HAVING CONFIDENCE >= 0.001 to all matches, d=50",
        _LIKELY.format(0.001),
        200_000,
        50,
        False,
        at_most(1.4),
    ),
    ("HAVING CONFIDENCE >= 0.1 to all matches, d=50", _LIKELY.format(0.1), 200_000, 50, False, at_most(1.2)),
    ("HAVING CONFIDENCE >= 0.3 to all matches, d=50", _LIKELY.format(0.3), 200_000, 50, False, at_most(0.5)),
    ("HAVING CONFIDENCE >= 0.5 to all matches, d=5", _LIKELY.format(0.5), 200_000, 5, False, None),
)


def measure(options: Options) -> Results:
    """Compare the top 20, and likely matches, with the full answer, all with exact confidences."""
    pin_to_one_core(options.core)
    results = Results()
    for name, clause, count, half_interval, next_match, target in _CASES:
        n = options.events(count)
        events = Stream(n, half_interval=half_interval).table()
        query = sequence_query(THREE, next_match=next_match)
        timings = take_turns(
            {
                "all": partial(uc.match, events, query),
                "some": partial(uc.match, events, f"{query}\n{clause}"),
            },
            options.rounds,
        )
        everything, few = timings["all"].seconds(options.clock), timings["some"].seconds(options.clock)
        results.add(
            name,
            few / everything,
            "x",
            target,
            timings["some"].rounds(options.clock),
            f"{few:.3f} s for {timings['some'].rows:,} against {everything:.3f} s for "
            f"{timings['all'].rows:,} matches of {n:,} events",
        )
    return results
