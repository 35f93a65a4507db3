"""Single components joined along any tree before Kleene ones are grown: the same answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.comparison import assert_same
from tests.cases.joins import trees
from tests.cases.language import LanguageCase, language_cases
from tests.cases.sampling import FEWER
from uncertain_cep.candidates.match_windows import feasible
from uncertain_cep.executor import candidates
from uncertain_cep.operators import backtracking, join_prefix
from uncertain_cep.operators.tree_enumeration import TreeSearch
from uncertain_cep.plan import PLANNERS, make_plan
from uncertain_cep.plan.trees import format_tree
from uncertain_cep.testing.model import Strategy

STRATEGIES = pytest.mark.parametrize("strategy", get_args(Strategy))


@contextmanager
def in_pieces(block_rows: int) -> Iterator[None]:
    """Have a few single components joined at a time."""
    with pytest.MonkeyPatch.context() as patch:
        small = partial(TreeSearch, block_rows=block_rows, materialised_rows=block_rows)
        patch.setattr(join_prefix, "TreeSearch", small)
        patch.setattr(backtracking, "BLOCK_ROWS", block_rows)
        yield


def singles(case: LanguageCase) -> list[str]:
    """Return the variables of the components that take one event."""
    return [part.variable for part in case.components if not part.kleene and not part.negated]


@STRATEGIES
@FEWER
@given(data=st.data())
def test_every_tree_is_the_oracle(strategy: Strategy, data: st.DataObject) -> None:
    case: LanguageCase = data.draw(language_cases(strategy, singles=data.draw(st.integers(2, 3))))
    variables = singles(case)
    tree = format_tree(data.draw(trees(range(len(variables)))), variables)
    note(case.text())
    note(tree)
    with in_pieces(data.draw(st.sampled_from([1, 2, 8192]))):
        case.check(planner=tree)


@STRATEGIES
@FEWER
@given(data=st.data(), planner=st.sampled_from(PLANNERS))
def test_every_planner_is_the_oracle(strategy: Strategy, data: st.DataObject, planner: str) -> None:
    case: LanguageCase = data.draw(language_cases(strategy, singles=2))
    note(case.text())
    case.check(planner=planner)


@given(
    language_cases("skip_till_any_match"), st.sampled_from([1, 2, 5]), st.sampled_from(["greedy", "zstream"])
)
def test_batches_hold_the_same_rows(case: LanguageCase, batch_rows: int, planner: str) -> None:
    note(case.text())
    table = case.trace.table()
    whole = uc.match(table, case.text(), evaluation="query_order")
    batches = list(uc.iter_matches(table, case.text(), batch_rows=batch_rows, planner=planner))
    assert all(batch.num_rows <= batch_rows for batch in batches)
    assert_same(case.rows(pa.Table.from_batches(batches, whole.schema)), case.rows(whole))


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("pattern", "conditions", "kleene"),
    [
        ("SEQ(A a, B+ b[], C c, D d)", "a.k = d.k AND b[i].v < c.v AND a.v < b[1].v", "matches"),
        ("SEQ(A a, B+ b[], C c, D d)", "a.k = d.k AND b[i].v < c.v", "compressed"),
        ("SEQ(A a, !B b, C c, D d)", "a.k = d.k AND c.v < a.v AND b.k = c.k", "matches"),
        ("SEQ(B+ b[], A a, !C x, D d)", "a.k = d.k AND sum(b[].v) < d.v", "matches"),
    ],
)
def test_a_longer_trace(pattern: str, conditions: str, kleene: str) -> None:
    rng = np.random.default_rng(3)
    n = 1500
    lower = np.sort(rng.integers(0, 3 * n, n))
    table = pa.table(
        {
            "type": rng.choice(["A", "B", "C", "D"], n, p=[0.35, 0.15, 0.15, 0.35]),
            "id": np.arange(n),
            "lower": lower,
            "upper": lower + rng.integers(0, 6, n),
            "k": rng.integers(0, 15, n),
            "v": rng.integers(0, 100, n),
        }
    )
    text = f"PATTERN {pattern} WHERE {conditions} WITHIN 40"
    expected = uc.match(table, text, evaluation="query_order", kleene=kleene)
    names = [name for name in expected.column_names if len(name) == 1]

    def in_order(found: pa.Table) -> list[dict[str, object]]:
        return sorted(found.to_pylist(), key=lambda row: str([row[name] for name in names]))

    assert expected.num_rows > 20
    for planner in ("auto", "trivial", "dp_bushy"):
        assert in_order(uc.match(table, text, planner=planner, kleene=kleene)) == in_order(expected)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("pattern", "strategy", "conditions", "joined"),
    [
        ("SEQ(A a, B+ b[], C c, D d)", "skip_till_next_match(a, b[], c, d)", "a.k = d.k AND c.v < d.v", True),
        ("SEQ(A a, !B b, C c, D d)", "skip_till_next_match(a, b, c, d)", "a.k = d.k AND b.v > 50", True),
        ("SEQ(A a, B+ b[], C c)", "strict_contiguity(a, b[], c)", "a.k = c.k", True),
        ("SEQ(A a, C c, D d)", "strict_contiguity(a, c, d)", "a.k = d.k", True),
        ("SEQ(A a, C c, D d)", "partition_contiguity(a, c, d)", "[g] AND a.k = d.k", None),
        # Few events can be next, and a predicate that many pairs satisfy makes joining them no better.
        ("SEQ(A a, !B b, C c)", "strict_contiguity(a, b, c)", "a.v < c.v", False),
    ],
)
def test_where_few_can_be_next_it_is_chosen_by_cost_and_the_answer_is_the_same(
    pattern: str, strategy: str, conditions: str, joined: bool | None
) -> None:
    rng = np.random.default_rng(8)
    n = 6000
    lower = np.sort(rng.integers(0, 3 * n, n))
    table = pa.table(
        {
            "type": rng.choice(["A", "B", "C", "D"], n),
            "id": np.arange(n),
            "lower": lower,
            "upper": lower + rng.integers(0, 6, n),
            "k": rng.integers(0, 150, n),
            "v": rng.integers(0, 100, n),
            "g": rng.integers(0, 2, n),
        }
    )
    text = f"PATTERN {pattern} WHERE {strategy} {{ {conditions} }} WITHIN 40"
    plan = make_plan(uc.parse(text), table.schema)
    choice = join_prefix.choice_of_singles(plan, table, feasible(plan, candidates(plan, table)))
    assert joined is None or (choice.tree is not None) == joined
    assert {"backtracking", "dp_bushy"} <= {*choice.costs}
    expected = sorted(map(str, uc.match(table, text, evaluation="query_order").to_pylist()))
    assert expected
    for planner in ("auto", "dp_left_deep"):
        assert sorted(map(str, uc.match(table, text, planner=planner).to_pylist())) == expected
