"""Events a second of the public API, signatures and ranges, without and with confidence."""

from __future__ import annotations

import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, at_least, exactly
from benchmarks.timing import pin_to_one_core, take_turns
from benchmarks.workload import EXPECTED_MATCHES, THREE, Stream, sequence_query

__all__ = ["consume", "measure"]

_EVENTS = 1_000_000


def consume(events: pa.Table, query: str, *, confidence: bool) -> int:
    """Return the number of matches, read batch by batch and dropped."""
    return sum(batch.num_rows for batch in uc.iter_matches(events, query, confidence=confidence))


def measure(options: Options) -> Results:
    """Measure d = 5 through ``match`` and ``iter_matches``, and check the numbers of matches."""
    pin_to_one_core(options.core)
    results = Results()
    n = options.events(_EVENTS)
    query, next_query = sequence_query(THREE), sequence_query(THREE, next_match=True)
    events = Stream(n, half_interval=5).table()
    timings = take_turns(
        {
            "match, signatures and ranges": lambda: uc.match(events, query, confidence=False),
            "match, with confidence": lambda: uc.match(events, query),
            "iter_matches, signatures and ranges": lambda: consume(events, query, confidence=False),
            "iter_matches, with confidence": lambda: consume(events, query, confidence=True),
            "match, skip till next, with confidence": lambda: uc.match(events, next_query),
        },
        options.rounds,
    )
    targets = {
        "match, signatures and ranges": at_least(6.0),
        "match, with confidence": at_least(3.0),
        "match, skip till next, with confidence": at_least(2.0),
    }
    for name, timing in timings.items():
        results.add(
            f"d=5, {name}",
            n / timing.seconds(options.clock) / 1e6,
            "M events/s",
            targets.get(name),
            timing.rounds(options.clock),
            f"{timing.rows:,} matches of {n:,} events",
        )
    certain = Stream(n, half_interval=0).table()
    counts = {
        5: timings["match, signatures and ranges"].rows,
        0: consume(certain, query, confidence=False),
    }
    for half_interval, count in counts.items():
        expected = exactly(EXPECTED_MATCHES[half_interval]) if n == _EVENTS else None
        results.add(f"d={half_interval}, number of matches", count, "matches", expected)
    return results
