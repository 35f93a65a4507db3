"""The events of matches in long form: whatever the query, they are those whose ids the matches hold."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, note

import uncertain_cep as uc
from tests.cases.nested import NestedCase, nested_cases
from uncertain_cep.errors import OptionError

EVENTS = pa.table(
    {
        "type": ["A", "B", "B", "C"],
        "id": ["a1", "b1", "b2", "c1"],
        "lower": [0, 2, 3, 6],
        "upper": [1, 4, 4, 6],
        "host": ["h", "h", "h", "h"],
        "load": [1, 2, None, 4],
    }
)
QUERY = "PATTERN SEQ(A a, B+ b[], C c) WHERE [host] WITHIN 9 ORDER BY CONFIDENCE DESC LIMIT 1"


def held(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


@given(nested_cases("SAO"))
def test_events_are_those_of_the_ids(case: NestedCase) -> None:
    note(case.text())
    table = case.trace.table()
    matches = uc.match(table, case.text())
    events = [dict(row) for row in uc.events_of(matches, table, case.text()).to_pylist()]
    keys = case.query().partition
    found = []
    for number, record in enumerate(matches.to_pylist()):
        for component in case.positives:
            for place, id in enumerate(held(record[component.variable]), 1):
                found.append((number, component.variable, place, id, *(record[name] for name in keys)))
    shown = [
        (row["match"], row["variable"], row["position"], row["id"], *(row[name] for name in keys))
        for row in events
    ]
    assert shown == found
    whole = table.to_pylist()
    assert all({name: row[name] for name in table.column_names} in whole for row in events)


def test_every_kind_of_frame_gives_its_own() -> None:
    matches = uc.match(EVENTS, QUERY)
    expected = uc.events_of(matches, EVENTS, QUERY)
    assert expected.column_names == ["match", "variable", "position", *EVENTS.column_names]
    assert expected.column("id").to_pylist() == ["a1", "b1", "c1"]
    pandas, polars = EVENTS.to_pandas(), pl.from_arrow(EVENTS)
    assert isinstance(polars, pl.DataFrame)
    for frame in (pandas, polars):
        found = uc.events_of(uc.match(frame, QUERY), frame, QUERY)
        assert type(found) is type(frame)
        assert list(found.columns) == expected.column_names
        assert found["id"].to_list() == ["a1", "b1", "c1"]


def test_timestamps_and_mapped_names() -> None:
    times = pa.array([dt.datetime(2024, 5, 1, 12, 0, second) for second in (1, 2, 3, 4)])
    events = EVENTS.set_column(2, "from", times).set_column(3, "to", times)
    names = {"lower": "from", "upper": "to"}
    query = "PATTERN SEQ(A a, C c) WITHIN 10 seconds"
    found = uc.events_of(uc.match(events, query, names=names), events, query, names=names)
    assert found.column("from").to_pylist() == [times[0].as_py(), times[3].as_py()]


def test_some_rows_in_another_order_are_numbered_anew() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 9"
    matches = uc.match(EVENTS, query)
    assert matches.num_rows == 2
    turned = uc.events_of(matches.take([1, 0]), EVENTS, query)
    assert turned.column("match").to_pylist() == [0, 0, 1, 1]
    ids = matches.column("b").to_pylist()
    assert turned.column("id").to_pylist() == ["a1", ids[1], "a1", ids[0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda matches: matches.drop_columns("host"), "the matches have no column host"),
        (lambda matches: matches.drop_columns("b"), "the matches have no column b"),
        (
            lambda matches: matches.set_column(1, "a", pa.array(["zz"])),
            "no event that can be a has the id 'zz'",
        ),
        (lambda matches: matches.set_column(1, "a", pa.array(["b1"])), "no event that can be a"),
        (lambda matches: matches.set_column(0, "host", pa.array(["g"])), "no event that can be a"),
        (lambda matches: matches.set_column(2, "b", pa.array(["b1"])), "must hold lists of ids"),
        (lambda matches: matches.set_column(1, "a", pa.array([["a1"]])), "must hold one id a row"),
        (
            lambda matches: matches.set_column(1, "a", pa.array([None], pa.string())),
            "fit no branch",
        ),
    ],
)
def test_what_is_no_match_of_the_query_is_refused(change: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        uc.events_of(change(uc.match(EVENTS, QUERY)), EVENTS, QUERY)


def test_a_key_of_nothing_but_nulls() -> None:
    events = EVENTS.set_column(4, "host", pa.nulls(4))
    assert uc.events_of(uc.match(events, QUERY), events, QUERY).num_rows == 0


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_a_single_event_without_the_key_that_a_negation_must_share(nothing: float | None) -> None:
    events = pa.table(
        {"type": ["A", "A"], "id": [0, 1], "lower": [0, 0], "upper": [0, 0], "k": pa.array([nothing, 1.0])}
    )
    query = "PATTERN SEQ(!A a, A b) WHERE b.k = a.k WITHIN 2"
    matches = uc.match(events, query)
    assert sorted(matches.column("b").to_pylist()) == [0, 1]
    assert uc.events_of(matches, events, query).column("id") == matches.column("b")
    handed_on = uc.with_matches(events, matches, "M", at="first", query=query)
    assert handed_on.num_rows == 4


def test_ids_of_another_kind_are_refused() -> None:
    matches = uc.match(EVENTS, QUERY)
    events = EVENTS.set_column(1, "id", pa.array([1, 2, 3, 4]))
    with pytest.raises(OptionError, match="column a of the matches is of type string, and the events have"):
        uc.events_of(matches, events, QUERY)


def test_columns_that_the_result_adds_are_refused() -> None:
    events = EVENTS.rename_columns(["type", "id", "lower", "upper", "host", "position"])
    with pytest.raises(OptionError, match="the events have a column position"):
        uc.events_of(uc.match(events, QUERY), events, QUERY)


def test_expected_counts_are_no_matches() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 9 RETURN EXPECTED COUNT"
    with pytest.raises(OptionError, match="returns expected counts"):
        uc.events_of(uc.match(EVENTS, query), EVENTS, query)


def test_all_attributes() -> None:
    query = "PATTERN SEQ(A a, B+ b[], C c) WITHIN 9 RETURN a.*, b.*, c.load AS last"
    found = uc.match(EVENTS, query)
    assert found.column_names[3:8] == ["a.host", "a.load", "b.host", "b.load", "last"]
    assert found.schema.field("b.load").type == pa.list_(pa.int64())
    by_id = {tuple(row["b"]): row for row in found.to_pylist()}
    assert by_id["b1", "b2"]["b.load"] == [2, None]
    assert by_id["b1", "b2"]["b.host"] == ["h", "h"]
    assert by_id["b2",]["a.load"] == 1
    stream = uc.IncrementalMatcher(query, EVENTS.schema)
    batches = [stream.push(EVENTS), stream.close()]
    same = pa.Table.from_batches(batches)
    assert sorted(same.select(found.column_names).to_pylist(), key=repr) == sorted(
        found.to_pylist(), key=repr
    )


def test_all_attributes_of_a_branch_are_null_in_the_others() -> None:
    query = "PATTERN OR(SEQ(A a, B b), SEQ(B d, C c)) WITHIN 9 RETURN a.*"
    rows = uc.match(EVENTS, query).to_pylist()
    assert {(row["a"] is None, row["a.host"]) for row in rows} == {(True, None), (False, "h")}


def test_lists_and_other_columns_that_no_condition_can_use_are_returned() -> None:
    events = EVENTS.append_column("tags", pa.array([["x"], ["y", "z"], [], None]))
    found = uc.match(events, "PATTERN SEQ(A a, B+ b[]) WITHIN 9 RETURN a.*, b.* ORDER BY CONFIDENCE DESC")
    rows = {tuple(row["b"]): row for row in found.to_pylist()}
    assert rows["b1", "b2"]["b.tags"] == [["y", "z"], []]
    assert rows["b1",]["a.tags"] == ["x"]
