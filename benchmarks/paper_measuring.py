"""One point of a figure: events a second of each method, over as many events as its speed allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.figures import Options
from benchmarks.paper_options import PaperOptions
from benchmarks.timing import Timing, take_turns

__all__ = ["MOST_EVENTS", "Point", "measure_point"]

MOST_EVENTS: Final = 1_000_000
_GROWTH: Final = 5.0
"""Most by which the number of events grows from trial to trial: a short stream says little of a long one."""
_PATIENCE: Final = 5.0
"""A trial that takes longer, in multiples of the seconds a round should take, is the only round."""

Matcher = Callable[[int], Sized]


@dataclass(frozen=True, slots=True)
class Point:
    """The measurement of one method at one place of the horizontal axis.

    Attributes
    ----------
    events : int
        Number of events of the stream it was measured on.
    timing : Timing
    """

    events: int
    timing: Timing


def measure_point(methods: Mapping[str, Matcher], options: Options, paper: PaperOptions) -> dict[str, Point]:
    """Find for each method a number of events that takes it about a round, then measure all in turns.

    Parameters
    ----------
    methods : mapping of str to callable
        Name -> function from a number of events to the matches among them.
    options : Options
    paper : PaperOptions

    Returns
    -------
    dict of str to Point
        A method that takes several rounds' time on very few events is measured once.
    """
    sizes: dict[str, int] = {}
    alone: dict[str, Point] = {}
    for name, method in methods.items():
        # Kernels are compiled, or read from the disk, at their first call.
        method(paper.fewest_events)
        events, largest = paper.fewest_events, options.events(MOST_EVENTS)
        trial = _once(method, events)
        while trial.wall[0] < paper.seconds / 2 and events < largest:
            growth = min(_GROWTH, paper.seconds / trial.wall[0])
            events = min(int(events * growth), largest)
            trial = _once(method, events)
        if trial.wall[0] > _PATIENCE * paper.seconds:
            alone[name] = Point(events, trial)
        else:
            sizes[name] = events
    timings = take_turns(
        {name: partial(methods[name], sizes[name]) for name in sizes},
        options.rounds,
    )
    points = {name: Point(sizes[name], timing) for name, timing in timings.items()} | alone
    return {name: points[name] for name in methods}


def _once(method: Matcher, events: int) -> Timing:
    started, ran = time.perf_counter(), time.process_time()
    matches = method(events)
    ran, elapsed = time.process_time() - ran, time.perf_counter() - started
    return Timing(len(matches), (elapsed,), (ran,))
