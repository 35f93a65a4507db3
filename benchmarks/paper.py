"""The figures of section 5 and appendix E of Zhang, Diao, Immerman (PVLDB 3(1), 2010)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import uncertain_cep as uc
from benchmarks import paper_cluster, paper_targets
from benchmarks.figures import Options, Results
from benchmarks.paper_measuring import Point, measure_point
from benchmarks.paper_options import PaperOptions
from benchmarks.paper_plots import plot_lines
from benchmarks.paper_shapes import (
    ANY,
    POINT,
    SELECTIVITY,
    SORTED,
    Claim,
    Series,
    best,
    between,
    falls,
    falls_alike,
    falls_little,
    falls_more,
    faster,
    judged,
)
from benchmarks.timing import pin_to_one_core
from benchmarks.workload import THREE, WINDOW, Stream, sequence_query
from uncertain_cep.errors import OptionError

__all__ = ["measure"]

_HALF_INTERVALS: Final = (1, 5, 10, 20, 30, 50)
_WINDOWS: Final = (10, 25, 50, 100, 150, 200)
_LENGTHS: Final = ((4, 5), (10, 11, 13), (14, 15, 17, 19), (17, 19, 20, 21, 23), (17, 19, 20, 21, 23, 29))
"""Divisors that make about as many matches an event whatever the length of the pattern."""
_SKEWED: Final = ((10, 11, 13), (8, 11, 17), (6, 11, 23), (5, 11, 26), (4, 11, 31), (3, 11, 43), (2, 11, 65))
"""Ever more events for the first component and fewer for the last, at about the same product."""
_DEFAULT_HALF: Final = 5

DISJOINT: Final = "query_order, no event for two components"


@dataclass(frozen=True, slots=True)
class _Setting:
    """A place on the horizontal axis: the parameters of the stream and of the query there."""

    half_interval: int = _DEFAULT_HALF
    divisors: tuple[int, ...] = THREE
    window: int = WINDOW
    next_match: bool = False

    @property
    def query(self) -> str:
        """The query's text."""
        return sequence_query(self.divisors, self.window, next_match=self.next_match)

    def events(self, n: int) -> pa.Table:
        """Return the first n events of the stream."""
        return Stream(n, self.half_interval).table()

    def disjoint_events(self, n: int) -> pa.Table:
        """Return n events without those that fit several components."""
        # No more than a tenth of the values fits several of the divisors used here.
        stream = self.events(n + n // 9 + 10)
        value = np.asarray(stream["value"])
        fits = np.sum([value % divisor == 0 for divisor in self.divisors], axis=0)
        return stream.filter(pa.array(fits <= 1)).slice(0, n)


@dataclass(frozen=True, slots=True)
class _Sweep:
    """A figure: what varies, the methods compared and the shape that the paper found.

    Attributes
    ----------
    title, axis : str
    settings : mapping of float to _Setting
    methods : tuple of str
    claims : tuple of Claim
    """

    title: str
    axis: str
    settings: Mapping[float, _Setting]
    methods: tuple[str, ...]
    claims: tuple[Claim, ...]


def _by_half_interval(*, next_match: bool = False) -> dict[float, _Setting]:
    return {half: _Setting(half_interval=half, next_match=next_match) for half in _HALF_INTERVALS}


def _by_length(*, next_match: bool = False) -> dict[float, _Setting]:
    return {len(divisors): _Setting(divisors=divisors, next_match=next_match) for divisors in _LENGTHS}


def _last_two_alike(series: Series) -> bool:
    last = list(series[SORTED])[-2:]
    speeds = [[series[method][place] for method in (ANY, SELECTIVITY, SORTED)] for place in last]
    return all(max(speed) <= 1.3 * min(speed) for speed in speeds)


_MORE_MATCHES: Final = (
    "the number of matches an event grows with d (see the table), and each is written with its confidence; "
    "the time of a match does not grow"
)
_NO_DEAD_ENDS: Final = (
    "the sorted join starts at the component whose event ends first, not at the first component, and follows "
    "only runs that can be completed: frequent events of the first component start nothing"
)
_NOTHING_WAITS: Final = (
    "ours feeds what waits as soon as every component has an event in reach, so that no match is late; "
    "within W = 100 each nearly always has one, so hardly anything is out of date before it is fed"
)
_MATCHES_COST: Final = (
    "the divisors keep the matches of an event about the same along l, and with them what it costs to write "
    "them; what is left of the difference is the confidence, whose cost grows with l in all methods"
)
_MORE_AT_TWO: Final = "at l = 2 there are nearly three times the matches of an event (see the table)"
_EXACT_COUPLING: Final = (
    "the paper does not state its divisors; with ours there are tens of matches an event at d = 50, and an "
    "event that fits two components couples gaps, whose exact confidence costs most of the time"
)

_SWEEPS: Final = {
    "4a": _Sweep(
        "4(a) half interval, skip till any: point against event based",
        "half interval d, ticks",
        _by_half_interval(),
        (POINT, ANY, SORTED),
        (
            Claim("event based is faster than point based at every d", faster(ANY, POINT)),
            Claim("point based loses fast with d, event based far less", falls_more(POINT, ANY, 3.0)),
            Claim("event based (any state) is not sensitive to d", falls_little(ANY), _MORE_MATCHES),
        ),
    ),
    "4b": _Sweep(
        "4(b) half interval, skip till any: optimizations",
        "half interval d, ticks",
        _by_half_interval(),
        (ANY, SELECTIVITY, SORTED),
        (
            Claim("any state loses with d, as there are more matches and longer runs", falls(ANY, 1.5)),
            Claim("sorting is the best at every d", best(SORTED)),
            Claim(
                "selectivity order lies between any state and sorting",
                between(SELECTIVITY, ANY, SORTED),
                _NOTHING_WAITS,
            ),
        ),
    ),
    "4c": _Sweep(
        "4(c) pattern length, skip till any: optimizations",
        "pattern length l",
        _by_length(),
        (ANY, SELECTIVITY, SORTED),
        (
            Claim("any state loses quickly with l", falls(ANY, 3.0)),
            Claim("sorting is the best at every l", best(SORTED)),
            Claim("sorting loses less than any state", falls_more(ANY, SORTED, 1.2), _MATCHES_COST),
            Claim("selectivity order loses like any state", falls_alike(SELECTIVITY, ANY)),
        ),
    ),
    "4d": _Sweep(
        "4(d) event frequencies, skip till any: optimizations",
        "events of the first component, %",
        {100 / divisors[0]: _Setting(divisors=divisors) for divisors in _SKEWED},
        (ANY, SELECTIVITY, SORTED),
        (
            Claim(
                "sorting is only slightly better than any state when the first component is frequent",
                lambda series: 1 < list(series[SORTED].values())[-1] / list(series[ANY].values())[-1] < 1.5,
                _NO_DEAD_ENDS,
            ),
            Claim(
                "selectivity order improves over any state at every place",
                faster(SELECTIVITY, ANY),
                _NOTHING_WAITS,
            ),
            Claim("selectivity order is the best at every place", best(SELECTIVITY), _NO_DEAD_ENDS),
        ),
    ),
    "4e": _Sweep(
        "4(e) half interval, skip till next",
        "half interval d, ticks",
        _by_half_interval(next_match=True),
        (POINT, ANY, SELECTIVITY, SORTED, DISJOINT),
        (
            Claim(
                "event based is faster than point based at every d",
                lambda series: all(faster(method, POINT)(series) for method in (ANY, SELECTIVITY, SORTED)),
                "at large d the confidences, the same computation for all, take nearly all the time",
            ),
            Claim("event based loses too, as matches and the cost of a confidence grow", falls(SORTED, 5.0)),
            Claim("where d > 30 the confidences dominate: event-based methods are alike", _last_two_alike),
            Claim(
                "event based keeps 1,000 events a second at d = 50",
                lambda series: series[SORTED][_HALF_INTERVALS[-1]] >= 1000,
                _EXACT_COUPLING,
            ),
        ),
    ),
    "5a": _Sweep(
        "5(a) window, skip till any: point against event based",
        "window W, ticks",
        {window: _Setting(window=window) for window in _WINDOWS},
        (POINT, ANY, SORTED),
        (
            Claim("event based is faster than point based at every W", faster(ANY, POINT)),
            Claim("point based loses with W", falls(POINT, 1.5)),
        ),
    ),
    "5b": _Sweep(
        "5(b) pattern length, skip till any: point against event based",
        "pattern length l",
        _by_length(),
        (POINT, ANY, SORTED),
        (
            Claim("event based is faster than point based at every l", faster(ANY, POINT)),
            Claim(
                "both are sensitive to l",
                lambda series: falls(POINT, 2.0)(series) and falls(ANY, 2.0)(series),
            ),
            Claim("point based suffers the more severe penalty", falls_more(POINT, ANY, 1.2), _MATCHES_COST),
        ),
    ),
    "5c": _Sweep(
        "5(c) pattern length, skip till next",
        "pattern length l",
        _by_length(next_match=True),
        (POINT, ANY, SELECTIVITY, SORTED),
        (
            Claim(
                "event based is faster than point based at every l",
                lambda series: all(faster(method, POINT)(series) for method in (ANY, SELECTIVITY, SORTED)),
            ),
            Claim("event based loses as confidences get dearer with l", falls(SORTED, 2.0), _MORE_AT_TWO),
        ),
    ),
}  # fmt: skip


def measure(options: Options, paper: PaperOptions, name: str) -> Results:
    """Measure one of the figures and draw it."""
    Path(paper.folder).mkdir(parents=True, exist_ok=True)
    measurements: dict[str, Callable[[Options, PaperOptions], Results]] = {
        "4f": paper_cluster.measure_methods,
        "spark": paper_cluster.measure_spark,
        "targets": paper_targets.measure,
    }
    if name in measurements:
        return measurements[name](options, paper)
    pin_to_one_core(options.core)
    return _measure_sweep(_SWEEPS[name], options, paper, name)


def _measure_sweep(sweep: _Sweep, options: Options, paper: PaperOptions, name: str) -> Results:
    results = Results()
    series: dict[str, dict[float, float]] = {}
    throughput: list[dict[str, Any]] = []
    sizes: list[dict[str, Any]] = []
    for place, setting in sweep.settings.items():
        methods = {}
        for method in sweep.methods:
            refusal = _refusal(setting, method)
            if refusal is None:
                methods[method] = _matcher(setting, method)
            else:
                results.failures.append(f"{sweep.axis} {place:.3g}, {method}: {refusal}")
        points = measure_point(methods, options, paper)
        for method, point in points.items():
            speed = point.events / point.timing.seconds(options.clock)
            series.setdefault(method, {})[place] = speed
            results.add(
                f"{sweep.axis} {place:.3g}, {method}",
                speed / 1e3,
                "k events/s",
                None,
                point.timing.rounds(options.clock),
                f"{point.timing.rows:,} matches of {point.events:,} events",
            )
        shown = {sweep.axis: f"{place:.3g}"}
        throughput.append(shown | {method: series[method][place] / 1e3 for method in points})
        sizes.append(shown | _sizes(points))
    results.breakdowns[f"{sweep.title}: k events/s"] = throughput
    results.breakdowns[f"{name}: events measured, and matches an event on the longest stream"] = sizes
    results.breakdowns[f"{name}: the paper's shape"] = judged(sweep.claims, series)
    plot_lines(Path(paper.folder, f"{name}.png"), sweep.title, sweep.axis, series)
    return results


def _matcher(setting: _Setting, method: str) -> Callable[[int], pa.Table]:
    """Return a function that matches a number of events, made beforehand."""
    made: dict[int, pa.Table] = {}
    query = uc.parse(setting.query)
    evaluation = SORTED if method == DISJOINT else method

    def run(events: int) -> pa.Table:
        if events not in made:
            made.clear()
            made[events] = (setting.disjoint_events if method == DISJOINT else setting.events)(events)
        return uc.match(made[events], query, evaluation=evaluation, max_matches=None)

    return run


def _refusal(setting: _Setting, method: str) -> str | None:
    """Return why a method does not answer a query, if it does not."""
    try:
        _matcher(setting, method)(0)
    except OptionError as error:
        return str(error)
    return None


def _sizes(points: Mapping[str, Point]) -> dict[str, Any]:
    longest = max(points.values(), key=lambda point: point.events)
    sizes: dict[str, Any] = {method: point.events for method, point in points.items()}
    return sizes | {"matches an event": longest.timing.rows / longest.events}
