"""Single components of sets joined along any tree, and planners named for the branches of OR."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.joins import trees
from tests.cases.nested import NestedCase, nested_cases
from tests.operators.test_language_trees import in_pieces
from uncertain_cep.operators.join_conditions import distances
from uncertain_cep.plan import PLANNERS
from uncertain_cep.plan.trees import format_tree


@given(nested_cases("AAS"), st.data())
def test_every_tree_is_the_oracle(case: NestedCase, data: st.DataObject) -> None:
    note(case.text())
    variables = [found.variable for found in case.positives if not found.kleene]
    planner = "trivial"
    if len(variables) > 1:
        planner = format_tree(data.draw(trees(range(len(variables)))), variables)
    note(planner)
    with in_pieces(data.draw(st.sampled_from([1, 2, 8192]))):
        case.check(planner=planner)


@given(nested_cases("AOS"), st.sampled_from(PLANNERS))
def test_every_planner_is_the_oracle(case: NestedCase, planner: str) -> None:
    note(case.text())
    case.check(planner=planner)


@pytest.mark.compiled
@pytest.mark.parametrize("planner", ["auto", "((c a) d)", "(a (c d))"])
def test_a_longer_trace(planner: str) -> None:
    rng = np.random.default_rng(5)
    n = 1200
    lower = np.sort(rng.integers(0, 3 * n, n))
    table = pa.table(
        {
            "type": rng.choice(["A", "B", "C", "D"], n),
            "id": np.arange(n),
            "lower": lower,
            "upper": lower + rng.integers(0, 6, n),
            "k": rng.integers(0, 9, n),
            "v": rng.integers(0, 100, n),
        }
    )
    text = "PATTERN SEQ(AND(A a, B+ b[], C c), D d) WHERE a.k = d.k AND c.k = d.k AND b[i].v < a.v WITHIN 40 "
    expected = uc.match(table, text, evaluation="query_order").to_pylist()
    assert len(expected) > 50
    found = uc.match(table, text, planner=planner).to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_the_distances_of_a_partial_order() -> None:
    """Of a sequence the longest paths are known; a window too short for it has none."""
    for length, window in ((1, 1), (3, 3), (4, 9)):
        before = [(1 << j) - 1 for j in range(length)]
        found, known = distances(length, window, before), distances(length, window)
        assert found is not None
        assert known is not None
        assert np.array_equal(found, known)
    assert distances(3, 2) is None
    assert distances(3, 2, [0, 1, 3]) is None
    # Of two events in any order each is less than a window from the other.
    anyhow = distances(2, 5, [0, 0])
    assert anyhow is not None
    assert anyhow.tolist() == [[0, -4], [-4, 0]]
