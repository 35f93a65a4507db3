"""Skip till next match beside skip till any match, where their probabilities are the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.existence import doubtful
from tests.cases.grouped import Grouping, assert_probabilities, rows_of
from tests.cases.language import language_cases
from tests.cases.times import timed_cases
from uncertain_cep.plan import planning
from uncertain_cep.query import parse
from uncertain_cep.query.next_as_any import next_as_any

NEXT = language_cases("skip_till_next_match", most=5)


@given(st.one_of(NEXT, doubtful(NEXT), timed_cases(most=5)), st.sampled_from([None, 2]), st.booleans())
def test_both_readings_have_the_answer_of_all_worlds(case: Any, every: int | None, is_by_first: bool) -> None:
    first = case.positives[0]
    grouping = Grouping((first.variable,) if is_by_first and not first.kleene else (), every)
    text = case.text(grouping.clause)
    note(text)
    table, expected = case.trace.table(), grouping.answer(case)
    assert_probabilities(uc.match(table, text), expected, grouping)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "next_as_any", lambda query: query)
        # Plans are remembered by query and schema.
        as_written = uc.match(table.append_column("more", pa.nulls(table.num_rows)), text)
    assert rows_of(as_written, grouping) == pytest.approx(rows_of(uc.match(table, text), grouping), rel=1e-9)


@pytest.mark.parametrize(
    ("pattern", "where", "returns", "is_read"),
    [
        ("SEQ(A a, B b, C c)", "[k]", "RETURN PROBABILITY BY a", True),
        (
            "SEQ(A a, B b, C c)",
            "a.x < b.x AND a.x < c.x AND c.y = 3",
            "RETURN PROBABILITY BY a.k EVERY 5",
            True,
        ),
        ("SEQ(A a, B b, C c)", "[k] AND TIME(c) - TIME(a) <= 4", "RETURN PROBABILITY BY k", True),
        ("SEQ(A a, B b, C c)", "b.x < c.x", "RETURN PROBABILITY BY a", False),
        ("SEQ(A a, B b, C c)", "a.x < b.x OR c.x = 1", "RETURN PROBABILITY BY a", False),
        ("SEQ(A a, B b, C c)", "TIME(c) - TIME(b) <= 4", "RETURN PROBABILITY BY a", False),
        ("SEQ(A a, B b, C c)", "[k]", "RETURN PROBABILITY BY b", False),
        ("SEQ(A a, B b, C c)", "[k]", "RETURN PROBABILITY BY c.x", False),
        ("SEQ(A a, B b, C c)", "[k]", "RETURN PROBABILITY OF AT LEAST 2 MATCHES", False),
        ("SEQ(A a, B b, C c)", "[k]", "", False),
        ("SEQ(A a, !N n, B b)", "[k]", "RETURN PROBABILITY BY a", False),
        ("SEQ(A a, B+ b[])", "[k]", "RETURN PROBABILITY BY a", False),
        ("SEQ(A a, B? b, C c)", "[k]", "RETURN PROBABILITY BY a", False),
    ],
)
def test_which_queries_are_read_so(pattern: str, where: str, returns: str, is_read: bool) -> None:
    names = [name for name in ("a", "b", "b[]", "c") if f" {name}" in pattern]
    if "b[]" in names:
        names.remove("b")
    query = parse(
        f"PATTERN {pattern} WHERE skip_till_next_match({', '.join(names)}) {{ {where} }} WITHIN 9 {returns}"
    )
    read = next_as_any(query)
    assert (read.strategy == "skip_till_any_match") is is_read
    assert (read is query) is not is_read


def test_explain_says_so() -> None:
    """Not where ties are broken by sequences, or the strategy is asked up to when events are known."""
    schema = {"type": ["A", "B"], "id": [1, 2], "lower": [0, 1], "upper": [3, 4]}
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 9 RETURN PROBABILITY"
    said = "skip till next match has the same one as skip till any match"
    events = pa.table(schema)
    assert said in uc.explain(text, events)
    assert said not in uc.explain(text, events, known_until=9)
    clocks = {"source": ["s", "s"], "offset_lower": [0, 0], "offset_upper": [0, 0], "sequence": [1, 2]}
    assert said not in uc.explain(text, pa.table(schema | clocks))
