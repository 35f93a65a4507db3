"""Fewer events in place of repeated and optional ones, where the probability of a match is the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.existence import doubtful
from tests.cases.grouped import Grouping, assert_probabilities, groupings, rows_of
from tests.cases.language import language_cases
from tests.cases.options import option_cases, timed_option_cases
from uncertain_cep.plan import planning
from uncertain_cep.query import parse
from uncertain_cep.query.fewest_events import fewest_events
from uncertain_cep.query.walks import components_of

ANY = language_cases("skip_till_any_match", most=5)


@given(st.one_of(ANY, doubtful(ANY), option_cases(most=4), timed_option_cases(4)), st.data())
def test_both_readings_have_the_answer_of_all_worlds(case: Any, data: st.DataObject) -> None:
    grouping: Grouping = data.draw(groupings(case.query()))
    text = case.text(grouping.clause)
    note(text)
    table = case.trace.table()
    rows = uc.match(table, text)
    assert_probabilities(rows, grouping.answer(case), grouping)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "fewest_events", lambda query: query)
        # Plans are remembered by query and schema.
        as_written = uc.match(table.append_column("more", pa.nulls(table.num_rows)), text)
    assert rows_of(as_written, grouping) == pytest.approx(rows_of(rows, grouping), rel=1e-9)


@pytest.mark.parametrize(
    ("pattern", "where", "returns", "read"),
    [
        ("SEQ(A a, B+ b[], C c)", "b[i].x = a.x", "", "a, b, c | b.x = a.x"),
        ("SEQ(A a, B+ b[])", "b.x = a.x", "EVERY 4", "a, b | b.x = a.x"),
        ("SEQ(A a, B{2,} b[])", "b[i].x = 3", "", "a, b 2 | b[i].x = 3"),
        ("SEQ(A a, B* b[], C c)", "b[i].x = 3 AND c.x = 1", "", "a, c | c.x = 1"),
        ("SEQ(A a, B? b)", "b.x = 3", "BY a", "a | "),
        ("SEQ(A a, B? b)", "b.x = 3", "EVERY 4", None),
        ("SEQ(A a, B? b)", "b.x = 3", "BY b", None),
        ("SEQ(A a, B? b)", "b.x = 3", "BY b.x", None),
        ("SEQ(A? a, B? b)", "b.x = 3", "", None),
        ("SEQ(A a, B+ b[])", "b[i].x > b[i-1].x", "", None),
        ("SEQ(A a, B+ b[])", "b[1].x > 1", "", None),
        ("SEQ(A a, B+ b[])", "count(b[]) > 2", "", None),
        ("SEQ(A a, B+ b[], !N n, C c)", "b[i].x = a.x", "", None),
        ("SEQ(A a, B b)", "b.x = a.x", "", None),
    ],
)
def test_which_queries_are_read_so(pattern: str, where: str, returns: str, read: str | None) -> None:
    query = parse(f"PATTERN {pattern} WHERE {where} WITHIN 9 RETURN PROBABILITY {returns}")
    fewer = fewest_events(query)
    if read is None:
        assert fewer is query
        return
    parts = [f"{part.variable} {part.times}".strip() for part in components_of(fewer.pattern)]
    conditions = [f"{condition}" for condition in map(str, fewer.where)]
    assert len(conditions) == len([part for part in read.split("|")[1].split("AND") if part.strip()])
    assert ", ".join(parts) == read.split(" |")[0]


def test_two_hundred_events_are_no_two_to_the_two_hundred() -> None:
    count = 200
    rows = {
        "type": ["A"] + ["B"] * count,
        "id": list(range(count + 1)),
        "lower": [0] + [5] * count,
        "upper": [10] + [12] * count,
    }
    text = "PATTERN SEQ(A a, B+ b[]) WITHIN 100 RETURN PROBABILITY"
    (row,) = uc.match(pa.table(rows), text).to_pylist()
    # Given a, that any of the others is behind it.
    none = sum(max(min((tick - 4) / 8, 1), 0) ** count for tick in range(11)) / 11
    assert row["probability"] == pytest.approx(1 - none, rel=1e-9)
    assert "as few as may be" in uc.explain(text, pa.table(rows))
