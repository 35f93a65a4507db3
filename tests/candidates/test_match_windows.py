"""Candidates without company are dropped before the join; the answer is the oracle's, with all strategies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice, product
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from benchmarks.pruning import pruned
from tests.cases.cases import Case, cases
from tests.cases.comparison import assert_answer, assert_same, rows_of
from tests.cases.language import STRATEGIES as ALL_STRATEGIES
from tests.cases.language import LanguageCase, language_cases
from tests.cases.naive import feasible as is_feasible
from tests.cases.nested import NestedCase, nested_cases
from tests.cases.sampling import FEWER
from tests.cases.strategies import STRATEGIES, answer_of, text_of
from tests.cases.times import distant_cases
from tests.operators.test_medium import medium_case
from uncertain_cep.candidates import match_windows as windows
from uncertain_cep.candidates.match_windows import feasible
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.executor import candidates, execute
from uncertain_cep.plan import EVALUATIONS, EvaluationPlan, make_plan
from uncertain_cep.results.order import finished
from uncertain_cep.testing.model import Strategy

_MANY = 5000


@contextmanager
def always() -> Iterator[None]:
    """Look for candidates to drop even where the sample says that there are few."""
    with patch.object(windows, "WORTH_DROPPING", 0.0), patch.object(windows, "WORTH_A_LOOK", 0):
        yield


@STRATEGIES
@FEWER
@given(case=cases(), evaluation=st.sampled_from(EVALUATIONS))
def test_sequences(strategy: Strategy, case: Case, evaluation: str) -> None:
    note(case.script())
    with always():
        matches = uc.match(case.trace.table(), text_of(case, strategy), evaluation=evaluation)
    assert_answer(rows_of(matches, case), answer_of(case, strategy))


@pytest.mark.parametrize("strategy", ALL_STRATEGIES)
@FEWER
@given(data=st.data())
def test_kleene_negation_and_contiguity(strategy: Strategy, data: st.DataObject) -> None:
    case: LanguageCase = data.draw(language_cases(strategy))
    note(case.text())
    with always():
        case.check()


@FEWER
@given(distant_cases())
def test_sequences_with_distances(case: LanguageCase) -> None:
    note(case.text())
    with always():
        case.check()


@given(nested_cases("OAS"))
def test_sets_and_branches(case: NestedCase) -> None:
    note(case.text())
    with always():
        case.check()


def _without(plan: EvaluationPlan) -> EvaluationPlan:
    branches = tuple(map(_without, plan.branches))
    counted = None if plan.counted is None else _without(plan.counted)
    return replace(plan, match_windows=False, branches=branches, counted=counted)


@given(st.integers(0, 2**32))
def test_larger_traces(seed: int) -> None:
    case = medium_case(seed)
    note(case.text())
    table = case.trace.table()
    plan = make_plan(uc.parse(case.text()), table.schema, confidence=False)
    size = sum(batch.num_rows for batch in islice(execute(_without(plan), table, batch_rows=_MANY), 2))
    assume(size < _MANY)
    with always():
        matches = pa.Table.from_batches(execute(plan, table), plan.batch_schema)
    expected = pa.Table.from_batches(execute(_without(plan), table), plan.batch_schema)
    assert_same(rows_of(matches, case), rows_of(expected, case))


def _selected(plan: EvaluationPlan, table: pa.Table) -> tuple[Selection, Selection]:
    selection = candidates(plan, table)
    with always():
        return selection, feasible(plan, selection)


def _chosen(selection: Selection) -> Iterator[tuple[tuple[int, ...], list[tuple[int, int]]]]:
    """Yield the choices of one candidate each of one partition: their rows and their intervals."""
    partition = selection.partition or tuple(np.zeros(len(rows), np.int64) for rows in selection.rows)
    columns = zip(selection.rows, selection.lower, selection.upper, partition, strict=True)
    for chosen in product(*(zip(*map(np.ndarray.tolist, part), strict=True) for part in columns)):
        if len({candidate[3] for candidate in chosen}) == 1:
            yield tuple(candidate[0] for candidate in chosen), [candidate[1:3] for candidate in chosen]


@given(cases(max_components=3))
def test_what_is_kept(case: Case) -> None:
    """All that some feasible choice holds; and nothing without something of each other component in reach."""
    note(case.script())
    table = case.trace.table()
    plan = make_plan(uc.parse(case.text()), table.schema)
    selection, kept = _selected(plan, table)
    if selection.empty or len(plan.components) < 2:
        assert kept is selection
        return
    for rows, intervals in _chosen(selection):
        if is_feasible(intervals, plan.window):
            assert all(row in rows_kept for row, rows_kept in zip(rows, kept.rows, strict=True))
    for j, places in enumerate(kept.rows):
        for n, row in enumerate(places.tolist()):
            assert row in selection.rows[j]
            for i, (lower, upper) in enumerate(zip(selection.lower, selection.upper, strict=True)):
                behind, ahead = (upper - kept.lower[j][n], kept.upper[j][n] - lower)
                if i < j:
                    possible = (ahead >= j - i) & (-behind <= plan.window - 1)
                elif i > j:
                    possible = (behind >= i - j) & (-ahead <= plan.window - 1)
                else:
                    continue
                if selection.partition is not None and kept.partition is not None:
                    possible &= selection.partition[i] == kept.partition[j][n]
                assert possible.any()


@given(nested_cases("AAS"))
def test_counts_are_the_same(case: NestedCase) -> None:
    by = case.query().partition
    clause = f"RETURN EXPECTED COUNT{' BY ' + ', '.join(by) if by else ''}"
    note(case.text(clause))
    table = case.trace.table()
    plan = make_plan(uc.parse(case.text(clause)), table.schema)
    with always():
        matches = uc.match(table, case.text(clause)).to_pylist()
    assert _rounded(matches) == _rounded(finished(plan, execute(_without(plan), table)).to_pylist())


def _rounded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"expected_count": round(row["expected_count"], 9)} for row in rows]


def _trace(gap: int, kinds: Callable[[int], str]) -> pa.Table:
    lower = np.arange(2000) * gap
    types = [kinds(number) for number in range(2000)]
    return pa.table({"type": types, "id": np.arange(2000), "lower": lower, "upper": lower + 3})


def test_only_what_is_near_the_rare_ones_is_kept() -> None:
    table = _trace(2, lambda number: "C" if number % 500 == 499 else "AB"[number % 2])
    plan = make_plan(uc.parse("PATTERN SEQ(A a, B b, C c) WITHIN 20"), table.schema)
    kept = feasible(plan, candidates(plan, table))
    for rows in kept.rows[:2]:
        assert 0 < len(rows) <= 50
        assert all(row % 500 in range(485, 500) or row % 500 == 0 for row in rows.tolist())
    assert len(kept.rows[2]) == 4


def test_dense_candidates_are_left_alone() -> None:
    table = _trace(2, lambda number: "ABC"[number % 3])
    plan = make_plan(uc.parse("PATTERN SEQ(A a, B b, C c) WITHIN 20"), table.schema)
    selection = candidates(plan, table)
    assert feasible(plan, selection) is selection


def test_few_candidates_are_left_alone() -> None:
    table = _trace(2, lambda number: "AB"[number > 1000]).slice(500, 900)
    plan = make_plan(uc.parse("PATTERN SEQ(A a, B b) WITHIN 20"), table.schema)
    selection = candidates(plan, table)
    assert feasible(plan, selection) is selection
    with always():
        assert [len(rows) for rows in feasible(plan, selection).rows] == [11, 11]


def test_order_counts_not_only_reach() -> None:
    table = _trace(50, lambda number: "AAACCCBBB"[number % 9])
    plan = make_plan(uc.parse("PATTERN SEQ(A a, B b, C c) WITHIN 250"), table.schema)
    kept = feasible(plan, candidates(plan, table))
    assert all(len(rows) == 0 for rows in kept.rows)
    plan = make_plan(uc.parse("PATTERN AND(A a, B b, C c) WITHIN 250"), table.schema)
    assert not feasible(plan, candidates(plan, table)).empty


@STRATEGIES
@FEWER
@given(case=cases(), on=st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_each_way_to_prune_alone(strategy: Strategy, case: Case, on: tuple[bool, bool, bool]) -> None:
    note(case.script())
    # Without filters, events that are no candidates need ids of their own too.
    events = tuple(replace(event, id=n) for n, event in enumerate(case.trace.events))
    assume(len(case.components) > 1 and not any("id" in part.text() for part in case.conditions))
    case = replace(
        case, trace=replace(case.trace, events=events, types={**case.trace.types, "id": pa.int64()})
    )
    table = case.trace.table()
    plan = make_plan(uc.parse(text_of(case, strategy)), table.schema)
    plan = pruned(plan, table.schema, filter=on[0], partition=on[1], conditions=on[2])
    matches = pa.Table.from_batches(execute(plan, table), plan.batch_schema)
    assert_answer(rows_of(matches, case), answer_of(case, strategy))


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match"])
def test_the_join_may_compare_what_one_event_has(strategy: str) -> None:
    table = pa.table({"type": ["A", "B"] * 4, "id": range(8), "lower": range(8), "upper": range(8),
                      "x": [0, 5, 1, 2, 3, 9, 4, 1], "y": [3] * 8})  # fmt: skip
    query = f"PATTERN SEQ(A a, B b) WHERE {strategy}(a, b) {{ b.x > b.y }} WITHIN 9"
    plan = pruned(
        make_plan(uc.parse(query), table.schema), table.schema, filter=False, partition=True, conditions=True
    )
    matches = pa.Table.from_batches(execute(plan, table), plan.batch_schema)
    expected = uc.match(table, query)
    assert sorted(zip(*matches.select(["a", "b"]).to_pydict().values(), strict=True)) == sorted(
        zip(*expected.select(["a", "b"]).to_pydict().values(), strict=True)
    )
    assert expected.num_rows >= 3


def test_other_patterns_cannot_do_without_filters() -> None:
    table = _trace(1, lambda number: "A")
    plan = make_plan(uc.parse("PATTERN SEQ(A+ a[], B b) WITHIN 20"), table.schema)
    with pytest.raises(ValueError, match="single events"):
        pruned(plan, table.schema, filter=False, partition=True, conditions=True)
