"""Expected numbers of matches, without the matches."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, at_least, at_most
from benchmarks.timing import pin_to_one_core, take_turns
from benchmarks.workload import WINDOW, Stream

__all__ = ["measure"]

_EVENTS: Final = 1_000_000
_FACTOR: Final = 10


def measure(options: Options) -> Results:
    """Measure counts over a stream of three types in turn, and how the window matters."""
    pin_to_one_core(options.core)
    results = Results()
    n = options.events(_EVENTS)
    events = Stream(n, half_interval=5).table()
    types = np.array(["A", "B", "C"])[np.arange(n) % 3]
    events = events.set_column(events.column_names.index("type"), "type", pa.array(types))
    windows = (WINDOW, WINDOW * _FACTOR)
    queries = {w: f"PATTERN SEQ(A a, B b, C c) WITHIN {w} RETURN EXPECTED COUNT" for w in windows}
    timings = take_turns(
        {str(w): partial(uc.match, events, query) for w, query in queries.items()}, options.rounds
    )
    counts = {w: uc.match(events, query).column("expected_count")[0].as_py() for w, query in queries.items()}
    short, long = (timings[str(w)] for w in windows)
    results.add(
        f"expected count, W={windows[0]}",
        n / short.seconds(options.clock) / 1e6,
        "M events/s",
        at_least(1.0),
        short.rounds(options.clock),
        f"{counts[windows[0]]:.4g} matches of {n:,} events expected",
    )
    results.add(
        f"W={windows[1]} to W={windows[0]}",
        long.seconds(options.clock) / short.seconds(options.clock),
        "x",
        at_most(1.2),
        long.rounds(options.clock),
        f"{counts[windows[1]]:.4g} matches expected; rounds of the longer window",
    )
    return results
