"""Values of the option ``planner``, and the errors of others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.plan import PLANNERS, EvaluationPlan, make_plan
from uncertain_cep.plan.trees import Join, Leaf, format_tree, parse_tree

SCHEMA = pa.schema([("type", pa.string()), ("id", pa.int64()), ("lower", pa.int64()), ("upper", pa.int64())])
SEQUENCE = "PATTERN SEQ(A a, B b, C c) WITHIN 10"


def plan_of(text: str, **options: Any) -> EvaluationPlan:
    return make_plan(uc.parse(text), SCHEMA, **options)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("((c a) b)", Join(Join(Leaf(2), Leaf(0)), Leaf(1))),
        (" ( b(a   c) )", Join(Leaf(1), Join(Leaf(0), Leaf(2)))),
    ],
)
def test_a_tree_is_read_as_it_is_written(text: str, tree: Join) -> None:
    assert parse_tree(text, "abc") == tree
    assert parse_tree(format_tree(tree, "abc"), "abc") == tree
    plan = plan_of(SEQUENCE, planner=text)
    assert (plan.planner, plan.tree) == ("given", tree)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("(a b)", "c is missing"),
        ("(a a)", "a stands in it 2 times"),
        ("((a b) x)", "x is no variable"),
        ("(a b c)", "some here hold 3"),
        ("((a) (b c))", "some here hold 1"),
        ("(a (b c)", "a bracket is not closed"),
        ("(a (b c)))", "closed that was not opened"),
        ("(a b) c", "2 trees, not one"),
        ("(" * 5000, "not closed"),
    ],
)
def test_what_is_wrong_with_a_tree_is_said_with_one_that_is_right(text: str, wrong: str) -> None:
    with pytest.raises(uc.OptionError, match=r"for example, \(\(a b\) c\)") as caught:
        plan_of(SEQUENCE, planner=text)
    assert wrong in str(caught.value)


@pytest.mark.parametrize("planner", PLANNERS)
def test_names_are_taken_for_a_pattern_and_for_each_branch(planner: str) -> None:
    assert plan_of(SEQUENCE, planner=planner).planner == planner
    either = plan_of("PATTERN OR(SEQ(A a, B b), SEQ(A c, C d)) WITHIN 10", planner=planner)
    assert [branch.planner for branch in either.branches] == [planner] * 2
    counted = plan_of(f"{SEQUENCE} RETURN EXPECTED COUNT", planner=planner).counted
    assert counted is not None
    assert counted.planner == planner


def test_an_evaluation_that_is_named_is_not_planned() -> None:
    assert plan_of(SEQUENCE).planner == "auto"
    assert plan_of(SEQUENCE, evaluation="query_order").planner == "none"


def test_latency_is_weighed_for_a_pattern_each_branch_and_what_is_counted() -> None:
    assert plan_of(SEQUENCE).latency_weight == 0.0
    assert plan_of(SEQUENCE, latency_weight=2, planner="greedy").latency_weight == 2.0
    either = plan_of("PATTERN OR(SEQ(A a, B b), SEQ(A c, C d)) WITHIN 10", latency_weight=0.5)
    assert [branch.latency_weight for branch in either.branches] == [0.5] * 2
    counted = plan_of(f"{SEQUENCE} RETURN EXPECTED COUNT", latency_weight=0.5).counted
    assert counted is not None
    assert counted.latency_weight == 0.5


@pytest.mark.parametrize("weight", [-1, float("inf"), float("nan"), True, "2", None, 10**400])
def test_what_is_no_weight_of_latency_is_refused(weight: Any) -> None:
    with pytest.raises(uc.OptionError, match="it must be a finite number, at least 0"):
        plan_of(SEQUENCE, latency_weight=weight)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (SEQUENCE, {"planner": "best"}, "planner='best' is unknown: use one of auto, trivial"),
        (SEQUENCE, {"planner": "greedy", "evaluation": "query_order"}, "does not go with evaluation="),
        (
            SEQUENCE,
            {"latency_weight": 1.0, "evaluation": "any_state"},
            "evaluation='any_state' has an order of its own",
        ),
        (SEQUENCE, {"latency_weight": 1.0, "planner": "((a b) c)"}, "leaves nothing to choose"),
        ("PATTERN OR(SEQ(A a, B b), C c) WITHIN 5", {"planner": "(a b)"}, "stand for several"),
        ("PATTERN SEQ(A a, B+ b[]) WITHIN 5", {"planner": "(a b)"}, "this pattern has 1 of them"),
        (
            "PATTERN SEQ(A a, B+ b[], C c) WITHIN 5",
            {"planner": "((a b) c)"},
            "b is no variable of a component",
        ),
    ],
)
def test_what_planning_does_not_go_with_is_refused(text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(uc.OptionError) as caught:
        plan_of(text, **options)
    assert message in str(caught.value)
