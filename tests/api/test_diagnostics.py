"""Diagnostics: sound queries that may not be meant so get one warning a call, and others none."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.remarks import REMARKS, STAMPS, TRACE, stamped
from uncertain_cep.candidates import diagnosed_events, diagnostics
from uncertain_cep.candidates.diagnosed_events import TYPE_ROWS
from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.executor import execute
from uncertain_cep.plan import make_plan

Ask = Callable[[Any, str], object]


def said(ask: Callable[..., object], *arguments: object, **options: object) -> list[str]:
    """Return the warnings of a call, line by line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask(*arguments, **options)
    assert all(
        warning.category is uc.UncertainCepWarning and warning.filename == __file__ for warning in caught
    )
    assert all("\n" not in str(warning.message) for warning in caught)
    return [str(warning.message) for warning in caught]


def _iterated(table: Any, query: str) -> object:
    return list(uc.iter_matches(table, query))


ASKS = pytest.mark.parametrize(
    "ask",
    [
        uc.match,
        _iterated,
        lambda table, query: uc.explain(query, table),
        lambda table, query: uc.explain(query, table, format="json"),
        lambda table, query: uc.explain(query, table, analyze=True),
    ],
    ids=["match", "iter_matches", "explain", "explain json", "explain analyze"],
)


@pytest.mark.parametrize(("stamps", "options", "messages"), STAMPS)
def test_stamps_that_may_not_be_meant_so(
    stamps: list[Any], options: dict[str, Any], messages: list[str]
) -> None:
    raw, options = stamped(stamps), {"time": "at", "uncertainty": uc.exact(), **options}
    for frame in (raw, raw.to_pandas(), pl.from_arrow(raw)):
        assert said(uc.to_intervals, frame, **options) == messages


@ASKS
@pytest.mark.parametrize(("query", "messages"), REMARKS)
def test_what_is_said(ask: Ask, query: str, messages: list[str]) -> None:
    assert said(ask, TRACE, f"PATTERN {query} WITHIN 20") == messages


@ASKS
def test_an_empty_trace(ask: Ask) -> None:
    query = "PATTERN SEQ(Start a, OR(CPU b, Stpo c)) WITHIN 20"
    assert said(ask, TRACE.slice(0, 0), query) == [diagnostics.EMPTY_TRACE]


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array([["Start", "CPU"], ["CPU", "Stop"]], pa.large_string()),
        pa.chunked_array([pa.array(["Start", "CPU"]).dictionary_encode()] * 2),
        # Values that a dictionary has and no event uses.
        pa.DictionaryArray.from_arrays([0, 1, 1, 2], ["Start", "CPU", "Stop", "Strat"]),
    ],
)
def test_types_of_every_layout(column: pa.Array) -> None:
    table = TRACE.set_column(0, "type", column)
    query = "PATTERN SEQ(Start a, OR(CPU b, Strat c)) WITHIN 20"
    assert said(uc.match, table, query) == ["no event of type Strat; did you mean Start?"]


def test_frames_of_other_libraries() -> None:
    query = "PATTERN SEQ(Strat a, CPU b) WITHIN 20"
    frame = TRACE.to_pandas()
    categorical = frame.assign(type=pd.Categorical(frame["type"], ["CPU", "Start", "Stop", "Strat"]))
    for given_frame in (frame, categorical, pl.from_arrow(TRACE)):
        assert said(uc.match, given_frame, query) == ["no event of type Strat; did you mean Start?"]


def test_many_types_that_are_missing_are_counted() -> None:
    types = "|".join(f"T{number}" for number in range(40))
    lines = said(uc.match, TRACE, f"PATTERN SEQ(({types}|Start) a, CPU b) WITHIN 20")
    assert len(lines) == 6
    assert lines[0] == "no event of type T0; the types are CPU, Start, Stop"
    assert lines[-1] == "no event of 35 more types that the pattern names"


def test_a_long_list_of_types_is_cut_short() -> None:
    types = "|".join(f"T{number}" for number in range(40))
    query = f"PATTERN SEQ(CPU a, ({types}|Stop) b) WHERE b.id > 99 WITHIN 20"
    last = said(uc.match, TRACE, query)[-1]
    assert last.startswith(
        "no event can be b: none of type T0 or T1 or T2 or T3 or T4 or T5 or T6 or T7 or 33 "
    )
    assert last.endswith(" more meets b.id > 99: check its type and conditions")


def test_the_types_there_are_some_of_many() -> None:
    table = pa.table(
        {"type": [f"t{n:03}" for n in range(50)], "id": range(50), "lower": range(50), "upper": range(50)}
    )
    assert said(uc.match, table, "PATTERN SEQ(Load a) WITHIN 2") == [
        "no event of type Load; there are 50 types, such as t000, t001, t002, t003, t004, t005, t006, t007"
    ]


def test_of_very_many_types_some_are_looked_at() -> None:
    numbers = range(2 * TYPE_ROWS + 1)
    table = pa.table({"type": [f"t{n}" for n in numbers], "id": numbers, "lower": numbers, "upper": numbers})
    last = f"t{numbers[-1]}"
    (message,) = said(uc.match, table, f"PATTERN SEQ(Load a, {last} b) WITHIN 2")
    assert message.startswith("no event of type Load; there are more than 2,000 types, such as t0, t1, ")
    many_types = "|".join(f"T{number}" for number in range(40))
    query = f"PATTERN SEQ(({many_types}|t7) a, ({many_types}|{last}) b) WITHIN 2"
    assert said(uc.match, table, query)[-1] == "no event of 35 more types that the pattern names"


def test_a_variable_is_spoken_of_once_whatever_the_branches() -> None:
    query = "PATTERN SEQ(CPU a, OR(Start b, Stop c, CPU d)) WHERE a.value > 1000 WITHIN 20"
    assert len(said(uc.match, TRACE, query)) == 1


def test_counts_and_the_best_and_compressed_matches_are_told_the_same() -> None:
    query = "PATTERN SEQ(CPU+ a[], Stop b) WHERE a[i].value > 1000 WITHIN 20"
    for clause in (
        "RETURN EXPECTED COUNT",
        "RETURN EXPECTED COUNT EVERY 2",
        "ORDER BY CONFIDENCE DESC LIMIT 1",
    ):
        assert len(said(uc.match, TRACE, f"{query} {clause}")) == 1
    assert len(said(uc.match, TRACE, query, kleene="compressed")) == 1


def test_a_limit_that_is_met_keeps_no_type_from_being_checked() -> None:
    query = "PATTERN OR(SEQ(Start a, CPU b), SEQ(Strat c, CPU d)) WITHIN 20 LIMIT 1"
    assert said(uc.match, TRACE, query) == ["no event of type Strat; did you mean Start?"]


def test_streams_wait_for_what_may_come() -> None:
    query = "PATTERN SEQ(Strat a, CPU b, !Nothing n) WHERE b.value > 1000 WITHIN 20"
    for evaluation in ("auto", "point", "sliced"):

        def ask(method: str) -> None:
            matcher = uc.IncrementalMatcher(query, TRACE.schema, evaluation=method)
            matcher.push(TRACE)
            matcher.close()

        assert said(ask, evaluation) == []


def test_faults_come_before_doubts() -> None:
    wrong = TRACE.set_column(2, "lower", pa.array([0, 1, 2, 100]))

    def ask() -> None:
        with pytest.raises(uc.TraceError):
            uc.match(wrong, "PATTERN SEQ(Strat a) WITHIN 20")

    assert said(ask) == []


def test_times_with_a_zone_compared_with_times_without() -> None:
    stamps = pa.array([0, 1, 2, 3], pa.timestamp("s"))
    table = (
        TRACE.drop_columns("seen")
        .append_column("at", stamps)
        .append_column("seen", stamps.cast(pa.timestamp("us", "UTC")))
    )
    query = "PATTERN SEQ(Start a, CPU b) WHERE a.at <= b.seen AND a.at < b.at WITHIN 20"
    assert said(uc.match, table, query) == [
        "no time zone in a.at, and UTC in b.seen: what has none is read as UTC; give all a zone, or none"
    ]


def test_a_large_table_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosed_events, "DIAGNOSED_ROWS", 10)
    n = 1000
    table = pa.table(
        {"type": ["A"] * n, "id": range(n), "lower": range(n), "upper": range(n), "v": np.linspace(0, 100, n)}
    )
    assert len(said(uc.match, table, "PATTERN SEQ(A a) WHERE a.v > 99% WITHIN 2")) == 1


@given(st.data(), st.lists(st.sampled_from(["A", "B", "C"]), max_size=12))
def test_a_candidate_is_found_wherever_it_is(data: st.DataObject, types: list[str]) -> None:
    """Diagnostics do not depend on how many rows are looked at first."""
    n = len(types)
    values = [data.draw(st.sampled_from([1, 2, None])) for _ in types]
    table = pa.table(
        {
            "type": pa.array(types, pa.string()),
            "id": pa.array(range(n), pa.int64()),
            "lower": pa.array(range(n), pa.int64()),
            "upper": pa.array(range(n), pa.int64()),
            "v": pa.array(values, pa.int64()),
        }
    )
    query = "PATTERN SEQ(A a, !B b, C c) WHERE a.v > 1 AND b.v > 1 WITHIN 20"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagnosed_events, "FIRST_ROWS", data.draw(st.sampled_from([1, 2, 4096])))
        patch.setattr(diagnosed_events, "FEW_ROWS", data.draw(st.sampled_from([0, 256])))
        lines = said(uc.match, table, query)
    if not types:
        assert lines == [diagnostics.EMPTY_TRACE]
        return
    can_be = {
        "a": [i for i in range(n) if types[i] == "A" and values[i] == 2],
        "b": [i for i in range(n) if types[i] == "B" and values[i] == 2],
        "c": [i for i in range(n) if types[i] == "C"],
    }
    missing = {name for name in "ABC" if name not in types}
    nobody = {
        name for name, has_candidates in can_be.items() if not has_candidates and name.upper() not in missing
    }
    assert {named[1] for line in lines if (named := re.match(r"no event of type (\w)", line))} == missing
    assert {named[1] for line in lines if (named := re.match(r"no event can be (\w)", line))} == nobody
    assert len(lines) == len(missing) + len(nobody)


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("SEQ(Start a, CPU b, !CPU n) WHERE b.value > 60", "candidates: a 1, b 1"),
        ("SEQ(Start a, OR(CPU b, Stop c))", "candidates: a 1, b 2, c 1"),
        (
            "SEQ(Start a, Start b) WHERE 1 = 2",
            "candidates: not looked for, as this is not true of any events: 1 = 2",
        ),
        ("SEQ(CPU a, CPU b, CPU c)", "candidates: a 2, b 2, c 2"),
    ],
)
def test_candidates_in_one_line(query: str, line: str) -> None:
    counted = Diagnostics()
    plan = make_plan(uc.parse(f"PATTERN {query} WITHIN 20"), TRACE.schema)
    for _ in execute(plan, TRACE, diagnostics=counted):
        pass
    assert counted.summary() == line


def test_a_window_that_is_too_short_for_the_pattern() -> None:
    counted = Diagnostics()
    plan = make_plan(uc.parse("PATTERN SEQ(Start a, CPU b, Stop c) WITHIN 2"), TRACE.schema)
    assert not list(execute(plan, TRACE, diagnostics=counted))
    assert counted.summary() == (
        "candidates: not looked for, as 3 events in a row take 3 ticks, more than WITHIN 2"
    )
