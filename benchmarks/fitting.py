"""The price of each step of joins on this machine, fitted to runs of random patterns.

A cost is a sum of estimated numbers of steps times prices. Each pattern runs by the pivot join and along
random trees. The prices are those for which the squared relative errors of all costs are least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from statistics import median
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import uncertain_cep as uc
from benchmarks.figures import Options, Results
from benchmarks.timing import pin_to_one_core, take_turns
from uncertain_cep.config.tuning import FINE_SAMPLE, PIVOT_PRICES, TREE_PRICES, Prices
from uncertain_cep.executor import candidates, execute
from uncertain_cep.optimizer.cost_model import CostModel
from uncertain_cep.optimizer.memory import fingerprint, remembered
from uncertain_cep.optimizer.pivot_cost import pivot_cost
from uncertain_cep.plan import EvaluationPlan, make_plan
from uncertain_cep.plan.trees import Join, Leaf, Tree, format_tree

__all__ = ["fitted", "measure"]

Float = NDArray[np.float64]

_PATTERNS: Final = 40
_TREES: Final = 3
_EVENTS: Final = 100_000
_WORTH_MATCHES: Final = 100
_TOO_MANY: Final = 3_000_000
_KINDS: Final = tuple(field.name for field in fields(Prices))


def _only(kind: str) -> Prices:
    return Prices(**{name: float(name == kind) for name in _KINDS})


def _steps(cost: Callable[[Prices], float]) -> list[float]:
    """Return how many steps of each kind a cost counts."""
    return [cost(_only(kind)) for kind in _KINDS]


def fitted(steps: Float, nanoseconds: Float) -> Float:
    """Return the prices, none negative, for which squared relative errors are least.

    Parameters
    ----------
    steps : (n, k) float64
        Estimated numbers of steps of each kind in each run.
    nanoseconds : (n,) float64
        What the runs took.

    Returns
    -------
    (k,) float64
        ns; 0 for what no run does.

    Notes
    -----
    Lawson and Hanson's active set: kinds whose price would be negative leave the fit until it has none.
    """
    shares = steps / nanoseconds[:, None]
    size = np.where(shares.max(axis=0) > 0, shares.max(axis=0), 1.0)
    used = shares.max(axis=0) > 0
    while True:
        prices = np.zeros(steps.shape[1])
        prices[used] = np.linalg.lstsq(shares[:, used] / size[used], np.ones(len(steps)), rcond=None)[0]
        if (prices >= 0).all():
            return prices / size
        used &= prices > 0


def _stream(rng: np.random.Generator, n: int, length: int) -> pa.Table:
    """Return events of so many types, of very different frequency and uncertainty."""
    rates = 10.0 ** rng.uniform(-2.0, 0.0, length)
    kinds = rng.choice(length, n, p=rates / rates.sum())
    half = (10.0 ** rng.uniform(0.0, 2.0, length)).astype(np.int64)[kinds]
    return pa.table(
        {
            "type": pa.array([f"T{kind}" for kind in range(length)]).take(pa.array(kinds)),
            "id": np.arange(n),
            "lower": np.arange(n) - half,
            "upper": np.arange(n) + half,
            "k": rng.integers(0, int(rng.integers(5, 200)), n),
            "x": rng.random(n),
        }
    )


def _pattern(rng: np.random.Generator, length: int) -> str:
    conditions = []
    for j in range(1, length):
        other = int(rng.integers(0, j))
        share = 10.0 ** rng.uniform(-2.0, 0.0)
        conditions.append(
            f"v{other}.k = v{j}.k" if rng.random() < 0.5 else f"v{other}.x - v{j}.x > {1 - share:.3f}"
        )
    components = ", ".join(f"T{j} v{j}" for j in range(length))
    return (
        f"PATTERN SEQ({components}) WHERE {' AND '.join(conditions)} WITHIN {int(10 ** rng.uniform(2, 3.5))}"
    )


def _tree(rng: np.random.Generator, length: int) -> Tree:
    nodes: list[Tree] = [Leaf(j) for j in range(length)]
    while len(nodes) > 1:
        right, left = (nodes.pop(int(rng.integers(len(nodes)))) for _ in range(2))
        nodes.append(Join(left, right))
    return nodes[0]


def _count(plan: EvaluationPlan, events: pa.Table) -> int:
    return sum(batch.num_rows for batch in execute(plan, events))


def _runs(rng: np.random.Generator, options: Options) -> Iterator[tuple[str, list[float], float, float]]:
    """Yield the kind of join, the numbers of steps, what they cost by today's prices, and the ns of runs."""
    length = int(rng.integers(3, 6))
    events = _stream(rng, options.events(_EVENTS), length)
    query = uc.parse(_pattern(rng, length))
    plan = make_plan(query, events.schema, confidence=False, planner="dp_bushy")
    selection = candidates(plan, events)
    statistics = remembered(
        plan, events, selection, sampled=FINE_SAMPLE, key=fingerprint(plan, events, selection)
    )
    model = CostModel.of(plan, statistics)
    if not _WORTH_MATCHES <= model.partial_matches(range(length)) <= _TOO_MANY:
        return
    names = [component.variable for component in plan.components]
    trees = {format_tree(tree, names): tree for tree in (_tree(rng, length) for _ in range(_TREES))}
    cheap = {shown: tree for shown, tree in trees.items() if model.cost(tree) < 1e9}
    costs: dict[str, Callable[[Prices], float]] = {
        shown: partial(_tree_cost, plan, statistics, tree) for shown, tree in cheap.items()
    }
    plans = {shown: make_plan(query, events.schema, confidence=False, planner=shown) for shown in cheap}
    if pivot_cost(model) < 1e9:
        costs["pivot"] = partial(pivot_cost, model)
        plans["pivot"] = make_plan(query, events.schema, confidence=False, evaluation="query_order")
    if not plans:
        return
    timings = take_turns(
        {shown: partial(_count, one, events) for shown, one in plans.items()}, options.rounds
    )
    for shown, timing in timings.items():
        kind, today = ("pivot", PIVOT_PRICES) if shown == "pivot" else ("tree", TREE_PRICES)
        yield kind, _steps(costs[shown]), costs[shown](today), timing.seconds(options.clock) * 1e9


def _tree_cost(plan: EvaluationPlan, statistics: Any, tree: Tree, prices: Prices) -> float:
    return CostModel.of(plan, statistics, prices).cost(tree)


def measure(options: Options) -> Results:
    """Fit the prices of trees and of the pivot join, and show them beside those in use."""
    pin_to_one_core(options.core)
    results = Results()
    rng = np.random.default_rng(20180)
    runs = [run for _ in range(_PATTERNS) for run in _runs(rng, options)]
    for kind, today in (("tree", TREE_PRICES), ("pivot", PIVOT_PRICES)):
        runs_of_kind = [run for run in runs if run[0] == kind]
        steps, taken = np.array([run[1] for run in runs_of_kind]), np.array([run[3] for run in runs_of_kind])
        prices = fitted(steps, taken)
        rows = results.breakdowns.setdefault("prices of steps, ns", [])
        rows.append(
            {"join": kind, "runs": len(runs_of_kind), "": "in use"} | {k: getattr(today, k) for k in _KINDS}
        )
        now = {name: round(float(price), 1) for name, price in zip(_KINDS, prices, strict=True)}
        rows.append({"join": kind, "runs": len(runs_of_kind), "": "fitted"} | now)
        for what, expected in (
            ("in use", np.array([run[2] for run in runs_of_kind])),
            ("fitted", steps @ prices),
        ):
            off = [float(max(e / t, t / e)) for e, t in zip(expected, taken, strict=True)]
            results.add(f"{kind}, prices {what}: cost to time, or time to cost, median", median(off), "x")
    return results
