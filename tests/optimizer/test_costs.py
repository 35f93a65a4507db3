"""The cost model: exact where it claims to be, and in the order of the actual numbers elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from math import comb

import numpy as np
import pytest

from tests.optimizer.literal import Partial
from tests.optimizer.traces import Selected, selected, skewed
from tests.optimizer.trees import estimated_nodes, random_order, random_tree
from uncertain_cep.config.tuning import FINE_SAMPLE, PIVOT_PRICES, TREE_PRICES
from uncertain_cep.executor import execute
from uncertain_cep.operators.counters import Counters, Node
from uncertain_cep.optimizer.cardinality import mask_of
from uncertain_cep.optimizer.cost_model import Check, CostModel
from uncertain_cep.optimizer.measuring import measure
from uncertain_cep.optimizer.pivot_cost import pivot_cost
from uncertain_cep.optimizer.statistics import (
    ComponentStatistics,
    KeyStatistics,
    LengthStatistics,
    PairStatistics,
    PredicateStatistics,
    Statistics,
)
from uncertain_cep.plan.trees import Join, Leaf, Tree, components_of, left_deep

TICKS = 1e9


def even(rates: list[float], lengths: list[float], window: int, **changes: object) -> Statistics:
    """Return the statistics of independent events on a long line."""
    w = window - len(rates)
    components = tuple(
        ComponentStatistics(
            "abcdefgh"[j], rate * TICKS, rate, 1.0, (), LengthStatistics(length, length, length, length)
        )
        for j, (rate, length) in enumerate(zip(rates, lengths, strict=True))
    )
    pairs = tuple(
        PairStatistics(i, j, (lengths[i] + lengths[j] + w + 1) / TICKS, 1.0)
        for i in range(len(rates))
        for j in range(i + 1, len(rates))
    )
    keys = KeyStatistics(1, 1.0, 1.0, ((1.0,) * len(rates),))
    return replace(Statistics(TICKS, TICKS, components, (), pairs, (), (), (), keys), **changes)  # type: ignore[arg-type]


def placements(lengths: list[int], w: int) -> int:
    """Count, by the definition, how intervals can lie relative to the first one so that they fit in time."""
    reach = range(-w - max(lengths) - 1, w + max(lengths) + 2)
    count = 0
    for positions in product(reach, repeat=len(lengths) - 1):
        low = (0, *positions)
        high = [a + u for a, u in zip(low, lengths, strict=True)]
        fits = max(low) <= min(high) + w
        count += fits and all(low[i] <= high[j] for j in range(len(low)) for i in range(j))
    return count


@pytest.mark.parametrize(
    ("lengths", "w"), [([0, 0, 0], 5), ([3, 0, 1], 1), ([2, 5, 0], 4), ([0, 0, 7], 0), ([3, 0, 2, 3], 2)]
)
def test_sets_on_an_even_line_are_counted_exactly(lengths: list[int], w: int) -> None:
    rates = [0.3, 0.01, 0.2, 0.1][: len(lengths)]
    model = CostModel(even(rates, [float(u) for u in lengths], w + len(lengths)), w + len(lengths))
    expected = placements(lengths, w) * TICKS * float(np.prod(rates))
    assert model.partial_matches(range(len(lengths))) == pytest.approx(expected, rel=1e-6)


def test_certain_times_of_one_window_are_in_one_order_of_all() -> None:
    model = CostModel(even([1e-3] * 4, [0.0] * 4, 1004), 1004)
    assert model.partial_matches(range(4)) == pytest.approx(TICKS * 1e-12 * comb(1003, 3), rel=1e-4)


def test_predicates_count_where_all_that_they_speak_of_is_bound() -> None:
    statistics = even([0.1] * 3, [0.0] * 3, 20)
    pairs = (replace(statistics.pairs[0], joined=0.5), *statistics.pairs[1:])
    predicates = (PredicateStatistics((0, 1), 0.5), PredicateStatistics((0, 1, 2), 0.25))
    plain = CostModel(statistics, 20)
    model = CostModel(replace(statistics, pairs=pairs, predicates=predicates), 20)
    shares = {(0, 1): 0.5, (0, 2): 1.0, (1, 2): 1.0, (0, 1, 2): 0.125}
    for components, share in shares.items():
        assert model.partial_matches(components) == pytest.approx(share * plain.partial_matches(components))


def test_partitions_that_differ_in_size_meet_as_often_as_their_sizes_say() -> None:
    shares = ((0.7, 0.5, 0.1), (0.2, 0.3, 0.1), (0.1, 0.2, 0.8))
    keys = KeyStatistics(3, 0.4, 2.5, shares)
    plain = even([0.1] * 3, [0.0] * 3, 20)
    together = [sum(row[i] * row[j] for row in shares) for i, j in ((0, 1), (0, 2), (1, 2))]
    pairs = tuple(
        replace(p, in_time=p.in_time * share) for p, share in zip(plain.pairs, together, strict=True)
    )
    model = CostModel(replace(plain, keys=keys, pairs=pairs), 20)
    all_three = sum(float(np.prod(row)) for row in shares)
    expected = all_three * CostModel(plain, 20).partial_matches((0, 1, 2))
    assert model.partial_matches((0, 1, 2)) == pytest.approx(expected, rel=1e-6)


def test_a_kleene_component_stands_for_the_sets_of_its_events_and_stays_finite() -> None:
    statistics = even([1e-3, 0.1, 1e-3], [0.0] * 3, 103)
    model = CostModel(statistics, 103, kleene=(False, True, False))
    assert model.partial_matches([1]) == pytest.approx(TICKS / 100 * 2.0**10)
    repeated = CostModel(even([1e-3, 100.0, 1e-3], [0.0] * 3, 1003), 1003, kleene=(False, True, False))
    assert np.isfinite(repeated.cost(left_deep((0, 2, 1))))
    assert repeated.cost(left_deep((0, 2, 1))) <= repeated.cost(left_deep((1, 0, 2)))


def test_right_subtrees_count_as_far_as_they_are_near_the_first_leaf() -> None:
    statistics = even([0.1, 0.3, 0.01, 0.2], [0.0] * 4, 20)
    pairs = [replace(pair, first_met=0.25, second_met=0.5) for pair in statistics.pairs]
    plain, model = CostModel(statistics, 20), CostModel(replace(statistics, pairs=tuple(pairs)), 20)
    tree = Join(Join(Leaf(2), Leaf(0)), Join(Leaf(1), Leaf(3)))
    nodes, whole = estimated_nodes(model, tree), estimated_nodes(plain, tree)
    # A quarter of component 1's candidates are near some of component 2's, and half of component 3's.
    assert nodes[1, 3] == pytest.approx(0.375 * whole[1, 3])
    assert all(nodes[node] == whole[node] for node in nodes if node != (1, 3))
    spared = plain.cost(Join(Leaf(1), Leaf(3))) - plain.cost(Leaf(1)) + TREE_PRICES.sort * whole[1, 3]
    assert plain.cost(tree) - model.cost(tree) == pytest.approx(0.625 * spared)
    assert model.cost(left_deep((2, 0, 1, 3))) == plain.cost(left_deep((2, 0, 1, 3)))


def test_a_negation_costs_where_what_it_depends_on_is_first_bound() -> None:
    statistics = even([0.1, 0.01, 0.1], [0.0] * 3, 20)
    plain = CostModel(statistics, 20)
    model = CostModel(statistics, 20, checks=[Check(mask_of((0, 1)), 4.0)])
    step = TREE_PRICES.probe * 5.0
    for order, bound in (((0, 1, 2), (0, 1)), ((0, 2, 1), (0, 1, 2)), ((2, 1, 0), (0, 1, 2))):
        tree = left_deep(order)
        assert model.cost(tree) - plain.cost(tree) == pytest.approx(step * plain.partial_matches(bound), 1e-6)


def test_latency_counts_what_the_last_component_waits_for() -> None:
    statistics = even([0.1, 0.3, 0.01], [0.0] * 3, 20)
    plain, model = CostModel(statistics, 20), CostModel(statistics, 20, alpha=2.0)
    for order, waits in (((0, 1, 2), [(0, 1)]), ((2, 0, 1), [(0,), (1,)]), ((0, 2, 1), [(0,), (1,)])):
        tree = left_deep(order)
        expected = 2.0 * TREE_PRICES.probe * sum(plain.partial_matches(components) for components in waits)
        assert model.cost(tree) - plain.cost(tree) == pytest.approx(expected, rel=1e-6)


def test_of_certain_times_each_event_has_one_next() -> None:
    statistics = even([0.1, 0.3, 0.01], [0.0] * 3, 2000)
    model = CostModel(statistics, 2000, next_to=(1, 2))
    assert model.partial_matches((0, 1)) == pytest.approx(0.1 * TICKS, rel=0.01)
    assert model.partial_matches((1, 2)) == pytest.approx(0.3 * TICKS, rel=0.01)
    assert model.partial_matches((0, 2)) == pytest.approx(CostModel(statistics, 2000).partial_matches((0, 2)))


PATTERNS: tuple[Callable[[], Selected], ...] = (
    lambda: selected(
        "PATTERN SEQ(A a, B b, C c, D d) WHERE a.x = d.x AND b.y < c.y WITHIN 60",
        skewed(500, (1, 3, 9, 20), seed=1),
    ),
    lambda: selected(
        "PATTERN SEQ(A a, B b, C c, D d, E e) WHERE [k] AND a.y + e.y < 0.6 WITHIN 80",
        skewed(500, (10, 1, 5, 2, 20), seed=2),
    ),
    lambda: selected(
        "PATTERN SEQ(A a, B b, C c, D d) WHERE a.s = b.s AND b.x = d.x AND a.y + c.y < d.y WITHIN 100",
        skewed(500, (9, 3, 1, 5), seed=3, longest=60),
    ),
    lambda: selected(
        "PATTERN SEQ(A a, B b, C c, D d, E e) WHERE a.x = b.x AND c.x = e.x AND b.y < d.y WITHIN 50",
        skewed(400, (3, 3, 1, 9, 1), seed=4, bursts=True),
    ),
    lambda: selected(
        "PATTERN SEQ(A a, B b, C c, D d, A e) WHERE a.x = c.x AND c.x = d.x AND b.s = d.s WITHIN 90",
        skewed(400, (3, 5, 10, 2), seed=6, longest=30),
    ),
    lambda: selected(
        "PATTERN SEQ(A a, B b, C c, A d) WHERE [k] AND a.x = d.x WITHIN 70",
        skewed(400, (3, 5, 10), seed=5, bursts=True),
    ),
)


@cache
def counted(number: int) -> tuple[CostModel, Partial]:
    case = PATTERNS[number]()
    statistics = measure(case.plan, case.table, case.selection, sampled=FINE_SAMPLE)
    return CostModel.of(case.plan, statistics), Partial(case.plan, case.table, case.selection)


def rank_correlation(first: list[float], second: list[float]) -> float:
    ranks = np.array([np.argsort(np.argsort(values)) for values in (first, second)])
    return float(np.corrcoef(ranks)[0, 1])


@pytest.mark.parametrize("number", range(len(PATTERNS)))
def test_two_components_are_counted_exactly_where_all_candidates_are_in_the_sample(number: int) -> None:
    model, actual = counted(number)
    for i in range(model.length):
        for j in range(i + 1, model.length):
            if (count := actual.count((i, j))) > 1:
                assert model.partial_matches((i, j)) == pytest.approx(count, rel=0.3)


def run_counted(number: int, tree: Tree) -> dict[Node, int]:
    """Return the numbers of partial matches that the engine finds along a tree."""
    case = PATTERNS[number]()
    counters = Counters()
    # Match windows would take away what no partial match of all components has.
    plan = replace(case.plan, planner="given", tree=tree, match_windows=False)
    for _ in execute(plan, case.table, counters=counters):
        pass
    return counters.nodes


@pytest.mark.parametrize("number", range(len(PATTERNS)))
def test_the_engine_counts_what_there_is(number: int) -> None:
    model, actual = counted(number)
    rng = np.random.default_rng(number)
    counters = run_counted(number, random_order(rng, model.length))
    assert counters == {node: actual.count(node) for node in counters}
    # A right subtree begins with what is near some candidate of the tree's first leaf.
    for _ in range(5):
        tree = random_tree(rng, model.length)
        first = components_of(tree)[0]
        for node, count in run_counted(number, tree).items():
            if len(node) == 1 or first in node:
                assert count == actual.count(node)
            else:
                assert count <= actual.near(node, first, each=False)
                assert count >= actual.near(node, first, each=True)


@pytest.mark.parametrize("draw", [random_order, random_tree])
def test_estimated_costs_rank_plans_as_their_partial_matches_do(
    draw: Callable[[np.random.Generator, int], Tree],
) -> None:
    """Sixty random plans of one kind, as in Fig. 16 of Kolchinsky and Schuster, run by the engine."""
    rng = np.random.default_rng(16)
    estimates: list[float] = []
    counts: list[float] = []
    for number in range(len(PATTERNS)):
        model, _ = counted(number)
        for _ in range(60 // len(PATTERNS)):
            tree = draw(rng, model.length)
            estimates.append(sum(estimated_nodes(model, tree).values()))
            counts.append(float(sum(run_counted(number, tree).values())))
    assert len(estimates) == 60
    assert rank_correlation(estimates, counts) >= 0.8


def test_the_pivot_join_costs_no_less_than_its_candidates() -> None:
    for number in range(len(PATTERNS)):
        model, _ = counted(number)
        assert PIVOT_PRICES.candidate * model.candidates <= pivot_cost(model) < np.inf


@pytest.mark.parametrize(
    ("pattern", "longest"),
    [("AND(A a, B b, C c)", 1), ("AND(A a, B b, C c)", 6), ("SEQ(AND(A a, B b), C c)", 6)],
)
def test_events_of_a_set_are_counted_in_every_order(pattern: str, longest: int) -> None:
    case = selected(f"PATTERN {pattern} WITHIN 30", skewed(900, (1, 2, 3), seed=6, longest=longest))
    statistics = measure(case.plan, case.table, case.selection, sampled=FINE_SAMPLE)
    model = CostModel.of(case.plan, statistics)
    lower, upper = case.selection.lower, case.selection.upper
    near = (lower[0][:, None] - upper[1] < 30) & (lower[1] - upper[0][:, None] < 30)
    assert model.partial_matches((0, 1)) == pytest.approx(int(near.sum()), rel=0.1)
    matches = sum(batch.num_rows for batch in execute(case.plan, case.table))
    assert model.partial_matches((0, 1, 2)) == pytest.approx(matches, rel=0.25)
