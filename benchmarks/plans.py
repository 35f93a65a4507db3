"""Match windows and join orders: each method and planner on patterns of skewed rates."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any, Final

import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, at_least, at_most
from benchmarks.isolated import ONE_THREAD, IsolatedError, run_isolated
from benchmarks.plan_patterns import CLUSTER, KEYED, cluster_events, real_events
from benchmarks.timing import pin_to_one_core, take_turns
from uncertain_cep.engine import candidates, run
from uncertain_cep.plan import EvaluationPlan, make_plan
from uncertain_cep.plan.choosing import choose
from uncertain_cep.query.typed import Apply, Column

__all__ = ["measure"]

_PLANNERS: Final = (
    "trivial", "frequency", "greedy", "ii_random", "ii_greedy", "dp_left_deep", "dp_bushy", "zstream",
    "zstream_greedy",
)  # fmt: skip
_RUNS: Final = ("any_state", "selectivity")
_LONGEST: Final = 30.0
"""Seconds after which a method that is tried once, in a process of its own, is given up."""
_FEW: Final = 2000

FIXED: Final = "query_order"
AUTO: Final = "auto"


def _count(plan: EvaluationPlan, events: pa.Table) -> int:
    return sum(batch.num_rows for batch in run(plan, events))


def _planned(query: str, events: pa.Table, method: str) -> EvaluationPlan:
    options: dict[str, Any] = {"planner": method} if method in (*_PLANNERS, AUTO) else {"evaluation": method}
    return make_plan(uc.parse(query), events.schema, confidence=False, **options)


def measure(options: Options) -> Results:
    """Compare every way to evaluate patterns over the simulated cluster and over real traces."""
    pin_to_one_core(options.core)
    results = Results()
    events = cluster_events(options)
    factors, worst, planning = [], [], []
    for name, query in CLUSTER.items():
        seconds = _methods(name, events, query, options, results)
        factors.append(seconds[FIXED] / seconds[AUTO])
        worst.append(seconds[AUTO] / min(value for method, value in seconds.items() if method != AUTO))
        planning.append(_planning(query, events, options))
    for name, found, query in real_events():
        _methods(name, found, query, options, results)
    results.add(
        "cluster, fixed order to auto, median", median(factors), "x", at_least(3.0), (),
        f"{min(factors):,.1f} to {max(factors):,.1f} over {len(factors)} patterns",
    )  # fmt: skip
    results.add("cluster, auto to the best single method, worst", max(worst), "x", at_most(1.1))
    results.add("planning with its statistics, slowest pattern", max(planning) * 1e3, "ms", at_most(50.0))
    for name, query in KEYED.items():
        _match_windows(name, events, query, options, results)
    return results


def _methods(name: str, events: pa.Table, query: str, options: Options, results: Results) -> dict[str, float]:
    """Add a table row for each method and return its seconds; those given up are left out."""
    methods = (AUTO, FIXED, *_PLANNERS)
    plans = {method: _planned(query, events, method) for method in methods}
    timings = take_turns(
        {method: partial(_count, plan, events) for method, plan in plans.items()}, options.rounds
    )
    counts = {timing.rows for timing in timings.values()}
    if len(counts) > 1:
        results.failures.append(f"{name}: methods find {sorted(counts)} matches")
    seconds = {method: timing.seconds(options.clock) for method, timing in timings.items()}
    for method in _RUNS:
        found = _within_limit(query, events, method)
        if found is not None:
            seconds[method] = found
    rows = results.breakdowns.setdefault("seconds, and how many times faster than the fixed order", [])
    row = {"pattern": name, "matches": f"{min(counts):,}"}
    for method in (*methods, *_RUNS):
        row[method] = (
            f"{seconds[method]:.3f} ({seconds[FIXED] / seconds[method]:,.1f}x)"
            if method in seconds
            else f"over {_LONGEST:.0f}"
        )
    rows.append(row)
    return seconds


def _once(query: str, events: pa.Table, method: str) -> float:
    """Return the seconds that a method takes, kernels compiled."""
    plan = _planned(query, events, method)
    _count(plan, events.slice(0, _FEW))
    started = time.perf_counter()
    _count(plan, events)
    return time.perf_counter() - started


def _within_limit(query: str, events: pa.Table, method: str) -> float | None:
    """Return the seconds that a method takes in a process of its own; None if it is given up."""
    try:
        return run_isolated(_once, query, events, method, environment=ONE_THREAD, seconds=_LONGEST)
    except IsolatedError:
        return None


def _planning(query: str, events: pa.Table, options: Options) -> float:
    """Return the seconds that choosing takes, statistics included: the median of several rounds."""
    plan = _planned(query, events, AUTO)
    selection = candidates(plan, events)
    spent = []
    for _ in range(options.rounds + 1):
        started = time.perf_counter() if options.clock == "wall" else time.process_time()
        choose(plan, events, selection)
        now = time.perf_counter() if options.clock == "wall" else time.process_time()
        spent.append(now - started)
    return median(spent[1:])


def _stripped(plan: EvaluationPlan, *, filtered: bool, partitioned: bool, windows: bool) -> EvaluationPlan:
    """Return a plan without some of what happens before events are joined, and its conditions joined."""
    joined = list(plan.joined)
    components = plan.components
    if not filtered:
        joined += [predicate for component in components for predicate in component.local]
        components = tuple(replace(component, local=()) for component in components)
    keys = plan.split_keys
    if not partitioned:
        variables = [component.variable for component in components]
        for key in keys:
            # All keys of these patterns are texts.
            columns = [Column(*found, "string") for found in zip(variables, key.columns, strict=True)]
            joined += [Apply("equal", pair, "bool") for pair in pairwise(columns)]
        keys = ()
    return replace(plan, components=components, split_keys=keys, joined=tuple(joined), match_windows=windows)


def _match_windows(name: str, events: pa.Table, query: str, options: Options, results: Results) -> None:
    """Add a row with what filter, partition and conditions bring, one after the other, then planning."""
    fixed, planned = _planned(query, events, FIXED), _planned(query, events, AUTO)
    steps = {
        "none": _stripped(fixed, filtered=False, partitioned=False, windows=False),
        "f": _stripped(fixed, filtered=True, partitioned=False, windows=False),
        "fp": _stripped(fixed, filtered=True, partitioned=True, windows=False),
        "fpc": fixed,
        "fpc, auto": planned,
    }
    timings = take_turns(
        {step: partial(_count, plan, events) for step, plan in steps.items()}, options.rounds
    )
    if len({timing.rows for timing in timings.values()}) > 1:
        results.failures.append(f"{name}: steps find different matches")
    slowest = timings["none"].seconds(options.clock)
    row = {"pattern": name, "matches": f"{timings['none'].rows:,}"}
    for step, timing in timings.items():
        row[step] = f"{timing.seconds(options.clock):.3f} s ({slowest / timing.seconds(options.clock):,.1f}x)"
    results.breakdowns.setdefault(
        "(f)ilter, (p)artition, (c)onditions of match windows, one by one: fixed order", []
    ).append(row)
