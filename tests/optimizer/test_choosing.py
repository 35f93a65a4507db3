"""Choices of plans: queries and statistics in, plans out, and the reasons given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.optimizer.traces import selected, skewed
from uncertain_cep.optimizer.choice import PIVOT, Choice, choose, estimated, planned, regret
from uncertain_cep.optimizer.join_order import BY_NAME
from uncertain_cep.optimizer.measuring import measure
from uncertain_cep.optimizer.statistics import (
    ComponentStatistics,
    EqualityStatistics,
    KeyStatistics,
    LengthStatistics,
    PairStatistics,
    PredicateStatistics,
    Statistics,
)
from uncertain_cep.plan import PLANNERS, EvaluationPlan, make_plan
from uncertain_cep.plan.trees import format_tree

TICKS = 1e7
SCHEMA = pa.schema(
    [
        (name, pa.string() if name == "type" else pa.int64())
        for name in ("type", "id", "lower", "upper", "x", "y")
    ]
)


def statistics_of(
    plan: EvaluationPlan,
    candidates: Sequence[float],
    selectivity: Mapping[str, float],
    lengths: Sequence[float] = (),
) -> Statistics:
    """Return statistics of independent events on an even line.

    Parameters
    ----------
    plan : EvaluationPlan
    candidates : sequence of float
        Of each component.
    selectivity : mapping of str to float
        For pairs of variables, ``"ac"``: what their predicates let through, equalities where ``"a=c"``.
    lengths : sequence of float
        Mean interval lengths of the components; 0 unless given.
    """
    variables = "".join(component.variable for component in plan.components)
    lengths = lengths or [0.0] * len(variables)
    w = plan.window - len(variables)
    components = tuple(
        ComponentStatistics(v, n, n / TICKS, 0.1, (), LengthStatistics(u, u, u, u))
        for v, n, u in zip(variables, candidates, lengths, strict=True)
    )
    pairs = tuple(
        PairStatistics(
            i, j, (lengths[i] + lengths[j] + w + 1) / TICKS, selectivity.get(variables[i] + variables[j], 1.0)
        )
        for i, j in combinations(range(len(variables)), 2)
    )
    equalities = tuple(
        EqualityStatistics(variables.index(pair[0]), variables.index(pair[-1]), number, share, True)
        for number, (pair, share) in enumerate(selectivity.items())
        if "=" in pair
    )
    predicates = tuple(
        PredicateStatistics(tuple(variables.index(v) for v in pair.replace("=", "")), share, "=" in pair)
        for pair, share in selectivity.items()
    )
    keys = KeyStatistics(1, 1.0, 1.0, ((1.0,) * len(variables),))
    return Statistics(sum(candidates) * 2, TICKS, components, (), pairs, (), equalities, predicates, keys)


def plan_of(text: str, planner: str = "auto") -> EvaluationPlan:
    return make_plan(uc.parse(text), SCHEMA, planner=planner)


def shown(plan: EvaluationPlan, choice: Choice) -> str:
    variables = [component.variable for component in plan.components]
    return PIVOT if choice.tree is None else format_tree(choice.tree, variables)


THREE = "PATTERN SEQ(A a, B b, C c) WHERE {} WITHIN 1000"
FOUR = "PATTERN SEQ(A a, B b, C c, D d) WHERE {} WITHIN 1000"
ALL_TRUE = "a.x > 0"

GOLDENS = [
    # Nothing across components: no order has fewer dead ends than the one that has none.
    (THREE.format(ALL_TRUE), (1e6, 1e6, 1e6), {}, PIVOT),
    (FOUR.format(ALL_TRUE), (1e5, 1e5, 1e5, 1e5), {}, PIVOT),
    # Not worth binding the frequent one before the rare one.
    (THREE.format("a.y < c.y"), (1e6, 1e6, 1e2), {"ac": 0.01}, "((c a) b)"),
    # Fig. 3 of the source: equal rates, and a condition between the first and the last that few pass.
    (THREE.format("a.x = c.x"), (1e6, 1e6, 1e6), {"a=c": 1e-4}, "((a c) b)"),
    # Two pairs, each tied by an equality, and nothing between them: a bushy tree.
    (
        FOUR.format("a.x = b.x AND c.y = d.y"),
        (4e6, 4e6, 4e6, 4e6),
        {"a=b": 1e-4, "c=d": 1e-4},
        "((a b) (c d))",
    ),
    # A chain of equalities from the rarest on.
    (
        FOUR.format("a.x = d.x AND d.y = b.y"),
        (1e4, 1e6, 1e6, 1e5),
        {"a=d": 1e-3, "b=d": 1e-3},
        "(((a d) b) c)",
    ),
]


@pytest.mark.parametrize(("text", "candidates", "selectivity", "expected"), GOLDENS)
def test_the_choice_for_a_query_and_statistics(
    text: str, candidates: Sequence[float], selectivity: Mapping[str, float], expected: str
) -> None:
    plan = plan_of(text)
    choice = planned(plan, statistics_of(plan, candidates, selectivity))
    assert shown(plan, choice) == expected
    assert {*choice.costs} >= {PIVOT, "dp_bushy"}


@pytest.mark.parametrize(("near", "expected"), [(1.0, "(((a b) c) d)"), (0.01, "((a b) (c d))")])
def test_what_few_events_of_the_first_leaf_are_near_is_put_together_on_the_right(
    near: float, expected: str
) -> None:
    plan = plan_of(FOUR.format("a.x = b.x AND c.y = d.y"))
    statistics = statistics_of(plan, (3e5, 3e5, 4e6, 4e6), {"a=b": 1e-3, "c=d": 1e-3})
    pairs = [
        replace(pair, second_met=near if pair.first < 2 <= pair.second else 1.0) for pair in statistics.pairs
    ]
    assert shown(plan, planned(plan, replace(statistics, pairs=tuple(pairs)))) == expected


@pytest.mark.parametrize(
    ("planner", "expected"),
    [
        ("trivial", "(((a b) c) d)"),
        ("frequency", "(((d c) b) a)"),
        ("greedy", "(((d a) c) b)"),
        ("dp_left_deep", "(((d a) b) c)"),
        ("zstream", "(a (b (c d)))"),
        ("zstream_greedy", "(((d a) c) b)"),
    ],
)
def test_each_planner_on_the_same_statistics(planner: str, expected: str) -> None:
    plan = plan_of(FOUR.format("a.x = d.x AND b.y < d.y"), planner)
    statistics = statistics_of(plan, (4e5, 3e5, 2e5, 1e3), {"a=d": 1e-3, "bd": 0.5})
    choice = planned(plan, statistics)
    assert shown(plan, choice) == expected
    assert planner in choice.why


def test_the_reason_names_plan_and_factor_or_why_not() -> None:
    plan = plan_of(THREE.format("a.x = c.x"))
    assert (
        "((a c) b), the cheapest of all" in planned(plan, statistics_of(plan, (1e6,) * 3, {"a=c": 1e-4})).why
    )
    assert "no dead ends" in planned(plan, statistics_of(plan, (1e6,) * 3, {})).why


def test_what_there_is_nothing_to_choose_for_says_so() -> None:
    table = skewed(2000, (1, 1, 1), seed=1)
    for query, options, why in (
        ("PATTERN SEQ(A a, B b, C c) WITHIN 20", {"evaluation": "any_state"}, "an order of its own"),
        ("PATTERN SEQ(A a, B b, C c) WITHIN 20", {"planner": "((c a) b)"}, "the caller's tree"),
        ("PATTERN SEQ(A a, B+ b[], C c) WITHIN 20", {}, "single events"),
        ("PATTERN SEQ(A a) WITHIN 20", {}, "single events"),
        ("PATTERN SEQ(A a, Z b, C c) WITHIN 20", {}, "no candidate"),
        ("PATTERN SEQ(A a, B b) WHERE a.id < 500 AND b.id < 500 WITHIN 20", {}, "so few candidates"),
        ("PATTERN SEQ(A a, B b, C c) WITHIN 20", {}, "without a predicate across components"),
        (
            f"PATTERN SEQ({', '.join(f'A v{k}' for k in range(25))}) WHERE v0.x = v24.x WITHIN 200",
            {},
            "more than 24 components",
        ),
    ):
        plan = make_plan(uc.parse(query), table.schema, **options)  # type: ignore[arg-type]
        choice = choose(plan, table, uc_candidates(plan, table))
        assert why in choice.why
        assert (choice.statistics, choice.tree) == (None, plan.tree)


def uc_candidates(plan: EvaluationPlan, table: pa.Table):  # type: ignore[no-untyped-def]  # noqa: ANN201
    from uncertain_cep.executor import candidates

    return candidates(plan, table)


@pytest.mark.parametrize("planner", PLANNERS)
def test_every_planner_chooses_a_tree_on_data(planner: str) -> None:
    case = selected(
        "PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x WITHIN 20", skewed(900, (1, 3, 2), seed=2), planner
    )
    choice = choose(case.plan, case.table, case.selection)
    assert all(math.isfinite(cost) for cost in choice.costs.values())
    if planner in BY_NAME:
        model = estimated(case.plan, case.table, case.selection, choice).model
        assert model is not None
        assert choice.tree == BY_NAME[planner](model)


LATENCY_GOLDENS = [
    # Better to have a and b together when the rare c is there than to start from it.
    (THREE.format("a.x = b.x"), "dp_bushy", (1e4, 1e4, 1e3), {"a=b": 1e-2}, "((c a) b)", 10.0, "((a b) c)"),
    (
        FOUR.format("a.x = d.x AND d.y = b.y"),
        "auto",
        (1e4, 1e6, 1e6, 1e5),
        {"a=d": 1e-3, "b=d": 1e-3},
        "(((a d) b) c)",
        1e4,
        "(((a b) d) c)",
    ),
    # The pivot join meets only what can be completed, and so little waits.
    (THREE.format("a.y < c.y"), "auto", (1e6, 1e6, 1e2), {"ac": 0.01}, "((c a) b)", 20.0, PIVOT),
    (THREE.format("a.x = c.x"), "zstream", (1e6,) * 3, {"a=c": 1e-4}, "((a b) c)", 100.0, "(a (b c))"),
]


@pytest.mark.parametrize(
    ("text", "planner", "candidates", "selectivity", "without", "weight", "expected"), LATENCY_GOLDENS
)
def test_latency_changes_the_choice_as_its_weight_grows(
    text: str,
    planner: str,
    candidates: Sequence[float],
    selectivity: Mapping[str, float],
    without: str,
    weight: float,
    expected: str,
) -> None:
    plan = plan_of(text, planner)
    statistics = statistics_of(plan, candidates, selectivity)
    assert shown(plan, planned(plan, statistics)) == without
    weighed = replace(plan, latency_weight=weight)
    choice = planned(weighed, statistics)
    assert shown(weighed, choice) == expected
    assert "latency" in choice.why or planner != "auto"
    if choice.tree is not None and planner == "dp_bushy":
        assert choice.model is not None
        first = planned(plan, statistics).tree
        assert first is not None
        assert choice.model.latency(choice.tree) < choice.model.latency(first)


def test_with_latency_few_candidates_are_planned_for_too() -> None:
    case = selected("PATTERN SEQ(A a, B b, C c) WITHIN 9", skewed(60, (1, 1, 1), seed=2))
    assert choose(case.plan, case.table, case.selection).statistics is None
    weighed = replace(case.plan, latency_weight=1.0)
    assert choose(weighed, case.table, case.selection).statistics is not None


def replace_planner(plan: EvaluationPlan) -> EvaluationPlan:
    return replace(plan, planner="dp_left_deep")


def test_regret_grows_as_the_data_turn_against_a_plan() -> None:
    plan = replace_planner(plan_of(THREE.format("a.x < b.x AND b.x < c.x")))
    before = statistics_of(plan, (1e6, 1e6, 1e2), {"ab": 1e-3, "bc": 1e-3})
    tree = planned(plan, before).tree
    after = statistics_of(plan, (1e2, 1e6, 1e6), {"ab": 1e-3, "bc": 1e-3})
    assert regret(plan, tree, before) < 1.1
    assert regret(plan, tree, after) > 10.0
    assert regret(plan, planned(plan, after).tree, after) < 1.1


def test_statistics_of_the_same_table_choose_the_same() -> None:
    case = selected("PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x WITHIN 20", skewed(900, (1, 3, 2), seed=2))
    first, second = (choose(case.plan, case.table, case.selection) for _ in range(2))
    assert first == second
    assert first.statistics == measure(case.plan, case.table, case.selection)
