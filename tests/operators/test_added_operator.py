"""An operator is a class that finds choices and a row of the table: what a recipe of CONTRIBUTING says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note

import uncertain_cep as uc
from eventbased.search.state import FoundMatches
from tests.cases.language import LanguageCase
from tests.cases.times import timed_sequences
from uncertain_cep.operators import table
from uncertain_cep.operators.backtracking import searched
from uncertain_cep.operators.series import event_by_event
from uncertain_cep.operators.table import Operator
from uncertain_cep.operators.timed_choices import Choices
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.typed import columns_in


class NestedLoops(Choices):
    """Tries every choice of one candidate of each component."""

    def found(self) -> Iterator[FoundMatches]:
        first = self._laid.first
        pools = [range(first[j], first[j + 1]) for j in range(len(first) - 1)]
        chosen = np.array(list(product(*pools)), dtype=np.int64).reshape(-1, len(pools)).T
        events = np.sort(self._rows[chosen], axis=0)
        # No event stands for two variables.
        chosen = chosen[:, (events[1:] != events[:-1]).all(axis=0)]
        if chosen.shape[1]:
            yield event_by_event(np.ascontiguousarray(chosen))


def _takes(plan: EvaluationPlan) -> bool:
    """Return whether every choice of single events that their times allow is a match."""
    asked = {column.name for predicate in plan.joined for column in columns_in(predicate)}
    single = not any(component.kleene for component in plan.components)
    alone = single and plan.order is None and not plan.keys
    return bool(plan.bound.times) and alone and asked <= {"lower", "upper"}


LOOPS = Operator(
    "nested loops",
    "every choice is tried",
    _takes,
    lambda context: searched(NestedLoops, context),
    "backtracking searches",
)


@given(timed_sequences())
def test_an_operator_that_tries_all_is_the_oracle(case: LanguageCase) -> None:
    note(case.text())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(table, "OPERATORS", (LOOPS, *table.OPERATORS))
        case.check()


def test_it_takes_its_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "OPERATORS", (LOOPS, *table.OPERATORS))
    events = pa.table({"type": ["A", "B", "B"], "id": [1, 2, 3], "lower": [0, 1, 9], "upper": [2, 3, 9]})
    query = "PATTERN SEQ(A a, B b) WHERE TIME(b) - TIME(a) BETWEEN 2 AND 5 WITHIN 9"
    assert "nested loops: every choice is tried" in uc.explain(query, events)
    (row,) = uc.match(events, query).to_pylist()
    assert (row["a"], row["b"], row["confidence"]) == (1, 2, pytest.approx(3 / 9))
