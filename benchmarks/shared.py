"""Clocks that events share: a stream beside independent times, and confidences by the clocks of a match."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, Target, at_least, at_most
from benchmarks.timing import pin_to_one_core, take_turns
from benchmarks.workload import THREE, Stream, sequence_query
from confidence.shared.held import Offsets, OwnTimes, weigh_held
from confidence.shared.weighing import RigidEvents, RigidMatches

__all__ = ["measure"]

_EVENTS: Final = 1_000_000
_MATCHES: Final = 20_000

_RIGID: Final[tuple[tuple[str, Target], ...]] = (
    ("AAA", at_most(0.05)),
    ("AAAAAA", at_most(0.05)),
    ("ABA", at_most(0.08)),
    ("ABABAB", at_most(0.08)),
    ("ABCABC", at_most(0.5)),
    ("ABACBC", at_most(0.5)),
)
"""The clocks of a match's events, certain by them."""

_HELD: Final[tuple[tuple[str, Target], ...]] = (("A.A", at_most(5.0)), ("A.A.A", at_most(30.0)))
"""The same of events uncertain by their clocks; a dot is an event without."""


def measure(options: Options) -> Results:
    """Time a stream of four clocks, and confidences for few and many ticks."""
    pin_to_one_core(options.core)
    results = Results()
    n = options.events(_EVENTS)
    alone = Stream(n, half_interval=5).table()
    names = pa.array(np.arange(n) * 7919 % 4).cast(pa.string())
    table = alone.append_column("source", names)
    for name, bound in (("offset_lower", -5), ("offset_upper", 5)):
        table = table.append_column(name, pa.array(np.full(n, bound)))
    query = sequence_query(THREE)
    timings = take_turns(
        {"none": partial(uc.match, alone, query), "shared": partial(uc.match, table, query)}, options.rounds
    )
    ratio = timings["none"].seconds(options.clock) / timings["shared"].seconds(options.clock)
    note = f"{timings['shared'].rows:,} matches against {timings['none'].rows:,}"
    rounds = timings["shared"].rounds(options.clock)
    results.add("d=5, four clocks, throughput against none", ratio, "x", at_least(0.5), rounds, note)
    for ticks in (100, 1_000_000):
        for clocks, target in (*_RIGID, *_HELD):
            own_ticks = 0 if (clocks, target) in _RIGID else ticks // 2
            case = _matches(clocks, ticks, own_ticks)
            weighed = partial(_held, case) if own_ticks else partial(_certain, case, _rigid(case))
            timing = take_turns({"": weighed}, options.rounds)[""]
            each = timing.seconds(options.clock) / _MATCHES * 1e6
            what = f"confidence, clocks {clocks}, {ticks:,} ticks" + (", own intervals" if own_ticks else "")
            results.add(what, each, "us", target, timing.rounds(options.clock), "")
    return results


_Case = tuple[OwnTimes, Offsets, np.ndarray, int]


def _matches(clocks: str, ticks: int, own_ticks: int) -> _Case:
    """Return matches whose events follow each other by a third of a clock's bounds or so."""
    length, random = len(clocks), np.random.default_rng(1)
    named = [-1 if name == "." else ord(name) - ord("A") for name in clocks]
    apart = np.arange(length) * max(ticks // 3, 2) + random.integers(0, 2, (_MATCHES, length))
    reading = (random.integers(0, 10**6, _MATCHES)[:, None] + apart).ravel()
    clock = np.tile(named, _MATCHES)
    upper = reading + np.where(clock < 0, ticks, own_ticks)
    none = np.full(len(reading), -1)
    clock_numbers = np.arange(max(named) + 1)
    offsets = Offsets(
        np.full_like(clock_numbers, -(ticks // 2)),
        np.full_like(clock_numbers, ticks // 2),
        none[: len(clock_numbers)],
    )
    events = np.arange(len(reading)).reshape(_MATCHES, length).T.copy()
    return OwnTimes(clock, reading, upper, none), offsets, events, 20 * ticks


def _rigid(case: _Case) -> RigidEvents:
    """Return the events as they are once for all matches."""
    times, offsets, _, _ = case
    low, high = times.lower + offsets.lower[times.clock], times.lower + offsets.upper[times.clock]
    return RigidEvents(times.clock, low, high)


def _certain(case: _Case, rigid: RigidEvents) -> pa.Table:
    """Weigh matches that are certain by clocks; return a table with a row for each."""
    _, _, events, window = case
    first, last, confidence = np.empty(_MATCHES, np.int64), np.empty(_MATCHES, np.int64), np.zeros(_MATCHES)
    RigidMatches(events, window, rigid, first, last, confidence).weigh((0, _MATCHES), True)
    return pa.table({"confidence": confidence})


def _held(case: _Case) -> pa.Table:
    """Weigh matches that are uncertain by clocks as well; return a table with a row for each."""
    times, offsets, events, window = case
    first, last, confidence = np.empty(_MATCHES, np.int64), np.empty(_MATCHES, np.int64), np.zeros(_MATCHES)
    done, limits = 0, (10**6, 10**6)
    while done < _MATCHES:
        done = weigh_held(
            events, times, offsets, np.zeros(0), window, True, limits, done, first, last, confidence
        )
    return pa.table({"confidence": confidence})
