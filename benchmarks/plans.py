"""Match windows and join orders: each method and planner on patterns of skewed rates."""

from __future__ import annotations

import math
import time
from functools import partial
from itertools import product
from statistics import median
from typing import Any, Final

import numpy as np
import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, at_least, at_most
from benchmarks.isolated import ONE_THREAD, IsolatedError, run_isolated
from benchmarks.plan_patterns import CLUSTER, KEYED, cluster_events, real_events
from benchmarks.pruning import pruned
from benchmarks.timing import pin_to_one_core, take_turns
from uncertain_cep.executor import candidates, execute
from uncertain_cep.optimizer.choice import CHOICES, choose
from uncertain_cep.optimizer.memory import MEMORY
from uncertain_cep.plan import EvaluationPlan, make_plan

__all__ = ["measure"]

_PLANNERS: Final = (
    "trivial", "frequency", "greedy", "ii_random", "ii_greedy", "dp_left_deep", "dp_bushy", "zstream",
    "zstream_greedy",
)  # fmt: skip
_LONGEST: Final = 10.0
"""Seconds after which a method that is tried once, in a process of its own, is given up."""
_LONGEST_BRIEF: Final = 4.0
_FEW: Final = 2000
_EVENTS: Final = 200_000
_KEYS: Final = 200
_SHARES: Final = (0.5, 0.49, 0.01)

FIXED: Final = "query_order"
_RUNS: Final = ("any_state", "selectivity")
AUTO: Final = "auto"


def _count(plan: EvaluationPlan, events: pa.Table) -> int:
    return sum(batch.num_rows for batch in execute(plan, events))


def _planned(query: str, events: pa.Table, method: str) -> EvaluationPlan:
    options: dict[str, Any] = {"planner": method} if method in (*_PLANNERS, AUTO) else {"evaluation": method}
    return make_plan(uc.parse(query), events.schema, confidence=False, **options)


def measure(options: Options) -> Results:
    """Compare every way to evaluate patterns over the simulated cluster and over real traces."""
    pin_to_one_core(options.core)
    results = Results()
    events = cluster_events(options)
    factors, worst, planning, again = [], [], [], []
    for name, query in CLUSTER.items():
        seconds = _methods(name, events, query, options, results)
        factors.append(min(seconds[FIXED], _longest(options)) / seconds[AUTO])
        worst.append(seconds[AUTO] / min(value for method, value in seconds.items() if method != AUTO))
        planning.append(_planning(query, events, options, remembered=False))
        again.append(_planning(query, events, options, remembered=True))
    for name, real_trace, query in () if options.brief else real_events():
        _methods(name, real_trace, query, options, results)
    results.add(
        "cluster, fixed order to auto, median", median(factors), "x", at_least(3.0), (),
        f"{min(factors):,.1f} to {max(factors):,.1f} over {len(factors)} patterns",
    )  # fmt: skip
    results.add("cluster, auto to the best single method, worst", max(worst), "x", at_most(1.1))
    results.add("planning with its statistics, slowest pattern", max(planning) * 1e3, "ms", at_most(50.0))
    results.add(
        "planning for events planned for before, slowest pattern", max(again) * 1e3, "ms", at_most(5.0)
    )
    _match_windows("a rare type, 200 keys", *_skewed(options), (False, True), options, results)
    for name, query in KEYED.items():
        # Without a filter by types, all events of a window would be tried in all places.
        _match_windows(name, events, query, (True,), options, results)
    return results


def _methods(name: str, events: pa.Table, query: str, options: Options, results: Results) -> dict[str, float]:
    """Add a table row for each method and return its seconds; infinite for those given up."""
    methods = (AUTO, *_PLANNERS)
    plans = {method: _planned(query, events, method) for method in methods}
    # What runs the same plan differs by chance alone, so its rounds are taken together.
    trees = {method: choose(plan, events, candidates(plan, events)).tree for method, plan in plans.items()}
    first_of = {tree: method for method, tree in reversed(trees.items())}
    run = first_of.values() if options.brief else methods
    timings = take_turns({method: partial(_count, plans[method], events) for method in run}, options.rounds)
    counts = {timing.rows for timing in timings.values()}
    if len(counts) > 1:
        results.failures.append(f"{name}: methods find {sorted(counts)} matches")
    rounds: dict[Any, list[float]] = {}
    for method, timing in timings.items():
        rounds.setdefault(trees[method], []).extend(timing.rounds(options.clock))
    seconds = {method: median(rounds[trees[method]]) for method in methods}
    for method in (FIXED, *_RUNS):
        is_run = method == FIXED or not options.brief
        seconds[method] = (is_run and _within_limit(query, events, method, options)) or math.inf
    fixed = min(seconds[FIXED], _longest(options))
    rows = results.breakdowns.setdefault("seconds, and how many times faster than the fixed order", [])
    row = {"pattern": name, "matches": f"{min(counts):,}"}
    for method in (FIXED, *methods, *_RUNS):
        one = seconds[method]
        missing = "" if options.brief and method in _RUNS else f"over {_longest(options):g}"
        row[method] = missing if one == math.inf else f"{one:.3f} ({fixed / one:,.1f}x)"
    rows.append(row)
    return seconds


def _once(query: str, events: pa.Table, method: str) -> float:
    """Return the seconds that a method takes, kernels compiled."""
    plan = _planned(query, events, method)
    _count(plan, events.slice(0, _FEW))
    started = time.perf_counter()
    _count(plan, events)
    return time.perf_counter() - started


def _longest(options: Options) -> float:
    return _LONGEST_BRIEF if options.brief else _LONGEST


def _within_limit(query: str, events: pa.Table, method: str, options: Options) -> float | None:
    """Return the seconds that a method takes in a process of its own; None if it is given up."""
    try:
        return run_isolated(_once, query, events, method, environment=ONE_THREAD, seconds=_longest(options))
    except IsolatedError:
        return None


def _planning(query: str, events: pa.Table, options: Options, *, remembered: bool) -> float:
    """Return the seconds that choosing takes: the median of several rounds.

    Statistics are measured in each round, unless the choice for the same events is ``remembered``.
    """
    plan = _planned(query, events, AUTO)
    selection = candidates(plan, events)
    spent = []
    for _ in range(options.rounds + 1):
        if not remembered:
            MEMORY.clear()
            CHOICES.clear()
        started = time.perf_counter() if options.clock == "wall" else time.process_time()
        choose(plan, events, selection)
        now = time.perf_counter() if options.clock == "wall" else time.process_time()
        spent.append(now - started)
    return median(spent[1:])


def _skewed(options: Options) -> tuple[pa.Table, str]:
    """Return events of three types, one of them rare, among many keys, and a query by key."""
    n = options.events(_EVENTS)
    rng = np.random.default_rng(7)
    events = pa.table(
        {
            "type": pa.array(rng.choice(["A", "B", "C"], n, p=_SHARES)),
            "id": np.arange(n),
            "lower": np.arange(n) - 5,
            "upper": np.arange(n) + 5,
            "k": rng.integers(0, _KEYS, n),
            "value": rng.integers(0, 100, n),
        }
    )
    return events, "PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.value < 50 WITHIN 600"


def _match_windows(
    name: str, events: pa.Table, query: str, filtering: tuple[bool, ...], options: Options, results: Results
) -> None:
    """Add a row with what filter, partition and conditions bring, one by one, and then planning."""
    fixed, schema = _planned(query, events, FIXED), events.schema
    plans = {
        "".join(letter for letter, is_on in zip("fpc", on, strict=True) if is_on) or "none": pruned(
            fixed, schema, filter=on[0], partition=on[1], conditions=on[2]
        )
        for on in product(filtering, (False, True), (False, True))
    }
    plans["fpc, auto"] = _planned(query, events, AUTO)
    timings = take_turns(
        {step: partial(_count, plan, events) for step, plan in plans.items()}, options.rounds
    )
    if len({timing.rows for timing in timings.values()}) > 1:
        results.failures.append(f"{name}: steps find different matches")
    first = next(iter(timings.values()))
    row = {"pattern": name, "matches": f"{first.rows:,}"}
    for step, timing in timings.items():
        seconds = timing.seconds(options.clock)
        row[step] = f"{seconds:.3f} s ({first.seconds(options.clock) / seconds:,.1f}x)"
    kept = "" if len(filtering) > 1 else ", filtered"
    title = f"(f)ilter, (p)artition, (c)onditions of match windows, one by one: fixed order{kept}"
    results.breakdowns.setdefault(title, []).append(row)
