"""Every tree of joins gives the same answer: the oracle's, and that of the join in pattern order."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace
from tests.cases.comparison import assert_answer, assert_same, rows_of
from tests.cases.joins import compared_cases, in_pieces, planned_cases, trees
from tests.cases.sampling import FEWER
from tests.cases.strategies import STRATEGIES, answer_of, text_of
from tests.operators.test_medium import medium_case
from uncertain_cep import executor as engine
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.counters import Counters
from uncertain_cep.operators.tree_join import tree_join
from uncertain_cep.plan import PLANNERS, make_plan
from uncertain_cep.plan.trees import components_of, format_tree, joins_of, left_deep
from uncertain_cep.testing.model import Strategy


@STRATEGIES
@FEWER
@given(planned=planned_cases(), pieces=st.sampled_from([(8192, 2**20), (1, 1), (2, 3), (5, 2)]))
def test_every_tree_is_the_oracle(
    planned: tuple[Case, str], pieces: tuple[int, int], strategy: Strategy
) -> None:
    case, tree = planned
    note(case.script())
    note(tree)
    with in_pieces(*pieces):
        found = uc.match(case.trace.table(), text_of(case, strategy), planner=tree)
    assert_answer(rows_of(found, case), answer_of(case, strategy))


@STRATEGIES
@FEWER
@given(case=compared_cases())
def test_every_order_is_the_join_in_pattern_order(case: Case, strategy: Strategy) -> None:
    note(case.script())
    table, text = case.trace.table(), text_of(case, strategy)
    expected = rows_of(uc.match(table, text, evaluation="query_order"), case)
    for order in permutations(range(len(case.variables))):
        tree = format_tree(left_deep(order), case.variables)
        assert_same(rows_of(uc.match(table, text, planner=tree), case), expected)


@STRATEGIES
@FEWER
@given(case=compared_cases(), planner=st.sampled_from(PLANNERS))
def test_every_planner_is_the_oracle(case: Case, planner: str, strategy: Strategy) -> None:
    note(case.script())
    found = uc.match(case.trace.table(), text_of(case, strategy), planner=planner)
    assert_answer(rows_of(found, case), answer_of(case, strategy))


@given(planned_cases(), st.sampled_from([1, 2, 7]), st.booleans())
def test_batches_hold_the_same_rows(planned: tuple[Case, str], batch_rows: int, confidence: bool) -> None:
    case, tree = planned
    note(case.script())
    table = case.trace.table()
    whole = uc.match(table, case.text(), confidence=confidence, planner=tree)
    batches = list(
        uc.iter_matches(table, case.text(), batch_rows=batch_rows, confidence=confidence, planner=tree)
    )
    assert all(batch.num_rows <= batch_rows for batch in batches)
    joined = pa.Table.from_batches(batches, whole.schema)
    assert_same(rows_of(joined, case), rows_of(whole, case))


@STRATEGIES
@FEWER
@given(planned=planned_cases(), limit=st.integers(1, 4), percent=st.sampled_from([1, 30, 90]))
def test_output_controls_choose_from_the_same_matches(
    planned: tuple[Case, str], limit: int, percent: int, strategy: Strategy
) -> None:
    case, tree = planned
    note(case.script())
    table = case.trace.table()
    for control in (
        f"HAVING CONFIDENCE >= {percent}%",
        f"ORDER BY CONFIDENCE DESC LIMIT {limit}",
        "RETURN EXPECTED COUNT",
    ):
        text = f"{text_of(case, strategy)}\n{control}"
        expected = uc.match(table, text, evaluation="query_order")
        found = uc.match(table, text, planner=tree)
        if control.startswith("RETURN"):
            assert found["expected_count"].to_pylist() == pytest.approx(
                expected["expected_count"].to_pylist(), rel=1e-9
            )
        else:
            assert_same(rows_of(found, case), rows_of(expected, case))


@given(planned_cases(), st.data())
def test_partitions_far_apart(planned: tuple[Case, str], data: st.DataObject) -> None:
    """Partitions over which so much time goes by that they cannot all lie on one int64 time line."""
    case, tree = planned
    far = tuple(
        replace(event, lower=event.lower + shift, upper=event.upper + shift)
        for event in case.trace.events
        for shift in [data.draw(st.sampled_from([0, 0, 2**60, -(2**60)]))]
    )
    table, text = Trace(far, case.trace.types).table(), case.text()
    note(tree)
    with in_pieces(*data.draw(st.sampled_from([(8192, 2**20), (2, 1)]))):
        found = uc.match(table, text, planner=tree)
    assert_same(rows_of(found, case), rows_of(uc.match(table, text, evaluation="query_order"), case))


@given(st.integers(0, 2**32 - 1), st.data())
def test_trees_over_longer_traces(seed: int, data: st.DataObject) -> None:
    """Intervals of very different lengths, more components, more rows than a block."""
    case = medium_case(seed)
    note(case.text())
    tree = format_tree(data.draw(trees(range(len(case.variables)))), case.variables)
    note(tree)
    table = case.trace.table()
    expected = uc.match(table, case.text(), evaluation="query_order", max_matches=None, confidence=False)
    if expected.num_rows > 20_000:
        return
    with in_pieces(data.draw(st.sampled_from([16, 8192])), data.draw(st.sampled_from([10, 500, 2**20]))):
        found = uc.match(table, case.text(), planner=tree, confidence=False)
    assert_same(rows_of(found, case), rows_of(expected, case))


@pytest.mark.parametrize("materialised_rows", [1, 60, 2**20])
def test_partial_matches_are_counted_once(materialised_rows: int) -> None:
    """All times certain and in order: the partial matches of a node are the choices of its events."""
    n = 6
    table = pa.table(
        {
            "type": np.repeat(["A", "B", "C", "D"], n),
            "id": np.arange(4 * n),
            "lower": np.arange(4 * n),
            "upper": np.arange(4 * n),
        }
    )
    query = uc.parse("PATTERN SEQ(A a, B b, C c, D d) WITHIN 100")
    for text in ("((a b) (c d))", "((d b) (c a))", "(((c a) d) b)", "(a (b (c d)))"):
        plan = make_plan(query, table.schema, planner=text)
        assert plan.tree is not None
        counters = Counters()
        context = ExecutionContext(
            plan, table, engine.candidates(plan, table), (np.arange(4 * n), np.arange(4 * n)), None, None,
            False, 1000, counters=counters, tree=plan.tree,
        )  # fmt: skip
        chunks = tree_join(context, materialised_rows=materialised_rows)
        assert sum(len(chunk.lower) for chunk in chunks) == n**4
        assert counters.nodes[components_of(plan.tree)] == n**4
        assert all(counters.nodes[j,] == n for j in range(4))
        if materialised_rows > 60:
            for node in joins_of(plan.tree):
                components = components_of(node)
                assert counters.nodes[components] == n ** len(components)
