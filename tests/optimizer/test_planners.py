"""Planners: whoever looks at all plans of a kind finds the best of them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from tests.optimizer.trees import every_tree, every_tree_over
from uncertain_cep.optimizer.cost_model import Check, CostModel
from uncertain_cep.optimizer.join_order import BY_NAME
from uncertain_cep.optimizer.statistics import (
    ComponentStatistics,
    EqualityStatistics,
    KeyStatistics,
    LengthStatistics,
    PairStatistics,
    PredicateStatistics,
    Statistics,
)
from uncertain_cep.plan.trees import components_of, left_deep, order_of

WINDOW = 50


def random_model(seed: int, length: int) -> CostModel:
    rng = np.random.default_rng(seed)
    ticks = 1e5
    components = []
    for j in range(length):
        candidates = float(10.0 ** rng.uniform(0, 5))
        mean = float(rng.choice([0.0, 3.0, 200.0]))
        lengths = LengthStatistics(mean, mean, mean, mean)
        components.append(ComponentStatistics(f"v{j}", candidates, candidates / ticks, 0.1, (), lengths))
    pairs = tuple(
        PairStatistics(
            i,
            j,
            float(10.0 ** rng.uniform(-5, 0)),
            float(10.0 ** rng.uniform(-3, 0)) if rng.random() < 0.5 else 1.0,
            *(10.0 ** rng.uniform(-3, 0.5, size=2)).clip(max=1.0).tolist(),
        )
        for i in range(length)
        for j in range(i + 1, length)
    )
    equalities = tuple(
        EqualityStatistics(i, j, 0, float(10.0 ** rng.uniform(-3, 0)), j == i + 1)
        for i in range(1, length)
        for j in range(i + 1, length)
    )
    predicates = (PredicateStatistics((0, 1, 2), 0.01),) if length > 2 else ()
    shares = rng.dirichlet(np.ones(4), size=length).T * 0.8
    keys = KeyStatistics(20, 0.3, 8.0, tuple(map(tuple, shares.tolist())))
    statistics = Statistics(1e6, ticks, tuple(components), (), pairs, (), equalities, predicates, keys)
    return CostModel(
        statistics,
        WINDOW,
        kleene=[bool(rng.random() < 0.1) for _ in range(length)],
        next_to=[1] if length > 2 and rng.random() < 0.3 else [],
        checks=[Check(int(rng.integers(1, 1 << length)), 3.0)] if rng.random() < 0.3 else [],
        alpha=float(rng.choice([0.0, 1.0])),
    )


MODELS = [(seed, length) for length in (2, 3, 4, 5) for seed in range(4)]


@pytest.mark.parametrize(("seed", "length"), MODELS)
def test_dynamic_programming_finds_the_best_order_and_the_best_tree(seed: int, length: int) -> None:
    model = random_model(seed, length)
    orders = [model.cost(left_deep(order)) for order in permutations(range(length))]
    assert model.cost(BY_NAME["dp_left_deep"](model)) == pytest.approx(min(orders), rel=1e-9)
    trees = [model.cost(tree) for tree in every_tree(tuple(range(length)))]
    assert model.cost(BY_NAME["dp_bushy"](model)) == pytest.approx(min(trees), rel=1e-9)


@pytest.mark.parametrize(("seed", "length"), MODELS)
def test_zstream_finds_the_best_tree_over_its_leaves(seed: int, length: int) -> None:
    model = random_model(seed, length)
    for name, start in (("zstream", "trivial"), ("zstream_greedy", "greedy")):
        leaves = components_of(BY_NAME[start](model))
        tree = BY_NAME[name](model)
        assert components_of(tree) == leaves
        best = min(model.cost(tree) for tree in every_tree_over(leaves))
        assert model.cost(tree) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(("seed", "length"), MODELS)
def test_iterative_improvement_ends_where_no_swap_and_no_cycle_helps(seed: int, length: int) -> None:
    model = random_model(seed, length)
    for name in ("ii_random", "ii_greedy"):
        order = order_of(BY_NAME[name](model))
        assert order is not None
        cost = model.cost(left_deep(order))
        for other in permutations(order):
            if sum(a != b for a, b in zip(order, other, strict=True)) <= 3:
                assert cost <= model.cost(left_deep(other)) * (1 + 1e-9)


@pytest.mark.parametrize("length", [1, 2, 6, 15, 20])
def test_every_planner_puts_every_component_in_once_and_is_the_same_again(length: int) -> None:
    for name, planner in BY_NAME.items():
        if length > 12 and name.startswith("dp_"):
            continue
        tree = planner(random_model(7, length))
        assert sorted(components_of(tree)) == list(range(length))
        assert tree == planner(random_model(7, length))
        assert np.isfinite(random_model(7, length).cost(tree))


def test_frequency_goes_by_numbers_and_greedy_begins_with_the_rarest() -> None:
    model = random_model(3, 5)
    numbers = [model.partial_matches([j]) for j in range(5)]
    by_number = tuple(np.argsort(numbers, kind="stable").tolist())
    assert order_of(BY_NAME["frequency"](model)) == by_number
    assert components_of(BY_NAME["greedy"](model))[0] == by_number[0]


def test_few_and_many_components_are_estimated_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    masks = np.arange(1, 1 << 6)
    at_once = random_model(5, 6).numbers(masks)
    monkeypatch.setattr("uncertain_cep.optimizer.cardinality.MOST_TABLED", 3)
    one_by_one = random_model(5, 6).numbers(masks)
    for first, second in zip(at_once, one_by_one, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-9)
