"""Predicates alone: certain times, so that every pair of events in order tests the expression."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import ATTRIBUTES, Case, Trace
from tests.cases.comparison import assert_answer, rows_of
from tests.cases.expressions import Apply, Expression, Kind, conditions, values_of
from uncertain_cep.testing.model import Component, Event, Value

_TYPES: Final = {"x": pa.int64(), "y": pa.float64(), "s": pa.string(), "f": pa.bool_()}
_VALUES: Final[dict[str, list[Value]]] = {
    "x": [0, 1, 2, 3, 5, -1, -4, -7, 10, None],
    "y": [0.0, -0.0, 0.5, 1.5, -0.25, -2.75, 3.0, None],
    "s": ["u", "v", "", "it's", None],
    "f": [True, False, None],
}


_PLANNERS: Final = st.sampled_from(["auto", "dp_bushy", "trivial"])


@st.composite
def _events(draw: st.DrawFn) -> tuple[Event, ...]:
    # By hash of a seed rather than value by value: dense traces, which seldom fail by a single value.
    chance = draw(st.randoms(use_true_random=False))
    return tuple(
        Event(
            "A",
            number,
            number,
            number,
            None,
            {name: chance.choice(values) for name, values in _VALUES.items()},
        )
        for number in range(8)
    )


@st.composite
def _comparisons(draw: st.DrawFn, variables: tuple[str, ...]) -> Expression:
    """Draw a comparison of an operation with an expression."""
    kind: Kind = draw(st.sampled_from(["int", "float"]))
    operation = draw(st.sampled_from(["+", "-", "*", "%", "%"] + ["/"] * (kind == "float")))
    operands = tuple(draw(values_of(kind, variables, ATTRIBUTES, 1)) for _ in range(2))
    sign = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    right = draw(values_of(kind, variables, ATTRIBUTES, 1))
    return Apply(sign, (Apply(operation, operands, operation), right), sign)


@st.composite
def _of_each(draw: st.DrawFn, variables: tuple[str, ...]) -> Expression:
    """Draw a comparison of what one event gives with what another one does, of one kind or of two."""
    one, other = draw(st.permutations(variables))[:2]
    kinds: list[Kind] = draw(
        st.sampled_from([["int", "int"], ["float", "float"], ["int", "float"], ["string", "string"]])
    )
    left, right = (
        draw(values_of(kind, (variable,), ATTRIBUTES, 2 if kind != "string" else 0))
        for kind, variable in zip(kinds, (one, other), strict=True)
    )
    sign = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    return Apply(sign, (left, right), sign)


@st.composite
def _cases(draw: st.DrawFn, variables: tuple[str, ...]) -> Case:
    drawn = [_comparisons(variables), conditions(variables, ATTRIBUTES, 3)]
    several = [_of_each(variables)] if len(variables) > 1 else []
    condition = draw(st.one_of(*drawn, *several))
    also = draw(st.lists(st.one_of(*several), max_size=2)) if several else []
    components = tuple(Component(variable, ("A",)) for variable in variables)
    return Case(Trace(draw(_events()), _TYPES), components, (condition, *also), window=100)


@given(_cases(("a",)))
def test_predicates_of_one_event(case: Case) -> None:
    note(case.script())
    assert_answer(rows_of(uc.match(case.trace.table(), case.text()), case), case.answer())


@given(_cases(("a", "b")), _PLANNERS)
def test_predicates_across_two_events(case: Case, planner: str) -> None:
    note(case.script())
    matches = uc.match(case.trace.table(), case.text(), planner=planner)
    assert_answer(rows_of(matches, case), case.answer())


@given(_cases(("c", "a", "b")), _PLANNERS)
def test_predicates_across_three_events(case: Case, planner: str) -> None:
    note(case.script())
    matches = uc.match(case.trace.table(), case.text(), planner=planner)
    assert_answer(rows_of(matches, case), case.answer())
