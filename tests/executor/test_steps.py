"""The steps of an evaluation: whatever their order, as long as it heeds what each has to come after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, cases
from tests.cases.clocks import by_clocks
from tests.cases.comparison import assert_answer, rows_of
from tests.cases.existence import doubtful
from tests.cases.language import LanguageCase
from tests.cases.strategies import answer_of, text_of
from tests.cases.times import timed_cases
from uncertain_cep.executor import execute
from uncertain_cep.executor.problem import Problem
from uncertain_cep.executor.steps import STEPS, Step
from uncertain_cep.plan import make_plan

Columns = dict[str, list[Any]]
BY_NAME: Final = {step.name: step for step in STEPS}


def legal_orders(steps: frozenset[str], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield every order of steps in which each comes behind those that it has to."""
    if not steps:
        yield before
    for name in sorted(steps):
        if not steps.intersection(BY_NAME[name].after):
            yield from legal_orders(steps - {name}, (*before, name))


ORDERS: Final = tuple(legal_orders(frozenset(BY_NAME)))


def in_order(names: Sequence[str], evaluate: Callable[[], Any]) -> Any:
    """Return the matches of an evaluation by steps in another order."""
    with patch("uncertain_cep.executor.steps.STEPS", tuple(BY_NAME[name] for name in names)):
        return evaluate()


def test_the_steps_are_in_a_legal_order_and_there_are_others() -> None:
    assert tuple(BY_NAME) in ORDERS
    assert len(set(ORDERS)) == len(ORDERS) > 100


class Worked(NamedTuple):
    """Events, a query, and the steps that have something to do."""

    query: str
    columns: Columns
    busy: frozenset[str]
    known_until: int | None = None


LOWER: Final = [0, 2, 3, 5, 8, 9, 12, 14]
EVENTS: Final[Columns] = {
    "type": ["A", "C", "B", "A", "B", "C", "A", "B"],
    "id": list(range(8)),
    "lower": LOWER,
    "upper": [begin + 4 for begin in LOWER],
}
DOUBTS: Final[Columns] = {"probability": [0.5, 0.75, 1.0, 0.25, 0.0, 0.5, 1.0, 0.9]}
CLOCK: Final[Columns] = {"source": ["h"] * 8, "offset_lower": [0] * 8, "offset_upper": [3] * 8}
CLOCKS: Final[Columns] = {"source": ["h", "g"] * 4, "offset_lower": [0] * 8, "offset_upper": [3, 2] * 4}
SEQUENCES: Final[Columns] = {"sequence": [0, 1, 2, 3, 4, 5, 6, 7]}
APART: Final = "SEQ(A a, B b) WHERE TIME(b) - TIME(a) >= 3 WITHIN 9"
BETWEEN: Final = "SEQ(A a, B b) WHERE TIME(b) - TIME(a) >= 3 AND TIME(b) - TIME(a) <= 6 WITHIN 9"

WORKED: Final = {
    "distances, one clock and doubts": Worked(
        APART, DOUBTS | CLOCK, frozenset({"happened", "one clock", "moved"})
    ),
    "distances with ends": Worked(BETWEEN, DOUBTS, frozenset({"happened", "moved"})),
    "distances, the best": Worked(f"{APART} ORDER BY CONFIDENCE DESC LIMIT 3", {}, frozenset({"moved"})),
    "distances, HAVING": Worked(
        f"{APART} HAVING CONFIDENCE >= 0.4", CLOCK, frozenset({"one clock", "moved"})
    ),
    "clocks and doubts": Worked(
        "SEQ(A a, B b) WITHIN 9", DOUBTS | CLOCKS, frozenset({"happened", "shared clocks"})
    ),
    "ordered events": Worked(
        "SEQ(A a, !C n, B b) WITHIN 9",
        DOUBTS | CLOCK | SEQUENCES,
        frozenset({"known order", "happened"}),
    ),
    "ties of sources": Worked(
        "SEQ(A a, !C n, B b) WITHIN 9",
        DOUBTS | CLOCKS | SEQUENCES | {"offset_upper": [1] * 8},
        frozenset({"known order", "happened"}),
    ),
    "an order behind the search": Worked(
        "SEQ(A a, B b) WITHIN 9", DOUBTS | CLOCK | SEQUENCES, frozenset({"known order", "happened"})
    ),
    "a known end": Worked(
        "SEQ(A a, B b, !C n) WITHIN 9",
        DOUBTS | CLOCK,
        frozenset({"known end", "happened", "one clock"}),
        23,
    ),
    "counts": Worked("SEQ(A a, B b) WITHIN 9 RETURN EXPECTED COUNT", DOUBTS, frozenset({"happened"})),
    "a set": Worked("AND(A a, B b) WITHIN 6", DOUBTS | CLOCK, frozenset({"happened", "one clock"})),
}


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def assert_equal(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> None:
    assert [row[:-1] for row in one] == [row[:-1] for row in other]
    assert [row[-1] for row in one] == pytest.approx([row[-1] for row in other], rel=1e-9)


@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
@pytest.mark.parametrize("name", WORKED)
def test_every_legal_order_has_the_same_answer(name: str) -> None:
    query, columns, busy, known_until = WORKED[name]
    table = pa.table(EVENTS | columns)
    busy_steps = set()

    def watched(step: Step) -> Step:
        def forward(problem: Problem) -> Problem | None:
            further = step.forward(problem)
            if further is not problem:
                busy_steps.add(step.name)
            return further

        return step._replace(forward=forward)

    def evaluate() -> pa.Table:
        return uc.match(table, f"PATTERN {query}", known_until=known_until)

    with patch("uncertain_cep.executor.steps.STEPS", tuple(map(watched, STEPS))):
        expected = rows(evaluate())
    assert expected
    assert busy <= busy_steps
    for order in ORDERS:
        assert_equal(rows(in_order(order, evaluate)), expected)


def test_every_legal_order_has_the_matches_that_a_slice_owns() -> None:
    table = pa.table(EVENTS | DOUBTS)
    plan = make_plan(uc.parse("PATTERN SEQ(A+ a[], !C n, B b) WITHIN 9"), table.schema)
    for first in (0, 3, 6):
        is_owned = np.arange(8) == first
        expected = [row for row in rows(uc.match(table, plan.query)) if row[0][0] == first]
        assert expected
        for order in ORDERS[::7]:
            batches = in_order(order, lambda owned=is_owned: list(execute(plan, table, owned=owned)))  # type: ignore[misc]
            assert_equal(rows(pa.Table.from_batches(batches)), expected)


@given(
    st.one_of(cases(), doubtful(cases()), by_clocks(cases()), doubtful(by_clocks(cases()))),
    st.sampled_from(ORDERS),
)
def test_any_legal_order_is_the_oracle(case: Case, order: tuple[str, ...]) -> None:
    note(case.script())
    result = in_order(order, lambda: uc.match(case.trace.table(), text_of(case, "skip_till_any_match")))
    assert_answer(rows_of(result, case), answer_of(case, "skip_till_any_match"))


@given(st.one_of(timed_cases(), doubtful(timed_cases())), st.sampled_from(ORDERS))
def test_any_legal_order_is_the_oracle_of_conditions_on_times(
    case: LanguageCase, order: tuple[str, ...]
) -> None:
    note(case.text())
    in_order(order, case.check)
