"""The answer is the same whether kernels are compiled or plain Python, even to the last bit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.kernel import NEVER_COMPILED
from tests.cases.cases import Case, cases
from tests.cases.joins import planned_cases
from tests.cases.kernels import WAYS, running
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from tests.cases.sampling import FEWER
from tests.cases.strategies import STRATEGIES, text_of
from tests.operators import test_language_compressed as compressed
from tests.results import test_counts_and_overlaps as outputs
from uncertain_cep.plan import EVALUATIONS
from uncertain_cep.testing.model import Strategy

pytestmark = pytest.mark.skipif(NEVER_COMPILED, reason="kernels are plain Python anyway")


def rows(table: pa.Table) -> list[str]:
    """Return rows as text, in an order of their own: NaN equals itself there."""
    return sorted(map(repr, table.to_pylist()))


def check(table: pa.Table, query: str, way: str, **options: Any) -> None:
    note(query)
    compiled = uc.match(table, query, **options)
    with running(way):
        assert rows(uc.match(table, query, **options)) == rows(compiled)


@STRATEGIES
@pytest.mark.parametrize("evaluation", EVALUATIONS)
@FEWER
@given(case=cases(), way=WAYS)
def test_sequences(evaluation: str, strategy: Strategy, case: Case, way: str) -> None:
    check(case.trace.table(), text_of(case, strategy), way, evaluation=evaluation)


@given(planned=planned_cases(), way=WAYS)
def test_trees(planned: tuple[Case, str], way: str) -> None:
    case, tree = planned
    check(case.trace.table(), case.text(), way, planner=tree)


@pytest.mark.parametrize("evaluation", ["auto", "point"])
@FEWER
@given(case=language_cases(), way=WAYS)
def test_kleene_negation_and_contiguity(evaluation: str, case: LanguageCase, way: str) -> None:
    check(case.trace.table(), case.text(), way, evaluation=evaluation)


@given(nested_cases("AAS"), WAYS, st.sampled_from(["", "HAVING CONFIDENCE >= 0.2", "OUTPUT NON OVERLAPPING"]))
def test_sets(case: NestedCase, way: str, clause: str) -> None:
    check(case.trace.table(), case.text(clause), way)


@given(compressed.compressed_cases(), WAYS)
def test_compressed_kleene(case: compressed.Case, way: str) -> None:
    table, query = case.trace.table(), case.text()
    check(table, query, way, kleene="compressed")


@given(st.data(), st.one_of(cases(), outputs.disjoint_cases()), st.sampled_from([None, 3]), WAYS)
def test_expected_counts(data: st.DataObject, case: Case, every: int | None, way: str) -> None:
    by = data.draw(outputs.groups(case))
    check(case.trace.table(), case.text("", outputs.clause_of(by, every)), way)
