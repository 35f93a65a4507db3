"""Matches of events that share clocks, against every choice of offsets and times."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.oracle import Clock, Event, Query, answer, one, seq
from uncertain_cep.cli import main

NAMES = "hgf"


@st.composite
def traces(draw: st.DrawFn) -> list[Event]:
    """Draw events by three clocks and without, certain by their clocks."""
    clocks = []
    for _ in NAMES:
        lower = draw(st.integers(-2, 1))
        clocks.append(Clock(lower, lower + draw(st.integers(0, 4))))
    events = []
    for id in range(draw(st.integers(2, 7))):
        clock = draw(st.sampled_from([None, *clocks, *clocks]))
        own = draw(st.integers(0, 8))
        lower, upper = own, own + draw(st.integers(0, 3))
        if clock is not None:
            lower, upper = own + clock.lower, own + clock.upper
        events.append(Event(draw(st.sampled_from("AB")), id, lower, upper, clock=clock))
    return events


def table_of(events: list[Event]) -> pa.Table:
    clocks = list(dict.fromkeys(event.clock for event in events if event.clock is not None))
    rows = [
        {
            "type": event.type,
            "id": event.id,
            "lower": event.lower,
            "upper": event.upper,
            "source": None if event.clock is None else NAMES[clocks.index(event.clock)],
            "offset_lower": event.clock and event.clock.lower,
            "offset_upper": event.clock and event.clock.upper,
        }
        for event in events
    ]
    texts = ("type", "source")
    names = ("type", "id", "lower", "upper", "source", "offset_lower", "offset_upper")
    schema = pa.schema([(name, pa.string() if name in texts else pa.int64()) for name in names])
    return pa.Table.from_pylist(rows, schema)


def expected(types: str, window: int, events: list[Event]) -> dict[Any, Any]:
    pattern = seq(*(one(type, f"v{place}") for place, type in enumerate(types)))
    return {
        match.ids: (match.range_lower, match.range_upper, match.confidence)
        for match in answer(Query(pattern, window), events)
    }


def text(types: str, window: int, controls: str = "") -> str:
    components = ", ".join(f"{type} v{place}" for place, type in enumerate(types))
    return f"PATTERN SEQ({components}) WITHIN {window} {controls}"


def found(types: str, window: int, events: list[Event], controls: str = "", **options: Any) -> dict[Any, Any]:
    matches = uc.match(table_of(events), text(types, window, controls), threads=1, **options)
    return {
        tuple(row[f"v{place}"] for place in range(len(types))): (
            row["range_lower"],
            row["range_upper"],
            row.get("confidence"),
        )
        for row in matches.to_pylist()
    }


TYPES = st.sampled_from(["AB", "ABA", "AAB", "ABAB", "AABB", "ABABA"])


@given(TYPES, st.integers(1, 14), traces(), st.sampled_from(["auto", "any_state", "selectivity", "point"]))
def test_matches_are_those_of_all_worlds(
    types: str, window: int, events: list[Event], evaluation: str
) -> None:
    wanted = expected(types, window, events)
    got = found(types, window, events, evaluation=evaluation)
    assert got.keys() == wanted.keys()
    for ids, (lower, upper, confidence) in wanted.items():
        assert got[ids] == (lower, upper, pytest.approx(float(confidence), rel=1e-9))
    without = found(types, window, events, confidence=False)
    assert {ids: row[:2] for ids, row in without.items()} == {ids: row[:2] for ids, row in wanted.items()}


@given(TYPES, st.integers(2, 14), traces(), st.sampled_from([0.25, 0.5, 1.0]), st.integers(1, 3))
def test_output_controls_speak_of_the_confidences_with_clocks(
    types: str, window: int, events: list[Event], least: float, limit: int
) -> None:
    wanted = expected(types, window, events)
    kept = {ids for ids, (_, _, confidence) in wanted.items() if confidence >= Fraction(least)}
    assert found(types, window, events, f"HAVING CONFIDENCE >= {least}").keys() == kept
    best = sorted((-confidence, ids) for ids, (_, _, confidence) in wanted.items())[:limit]
    got = found(types, window, events, f"ORDER BY CONFIDENCE DESC LIMIT {limit}")
    assert list(got) == [ids for _, ids in best]
    assert len(found(types, window, events, f"LIMIT {limit}")) == min(limit, len(wanted))


@given(TYPES, st.integers(1, 14), traces())
def test_without_sources_times_are_independent(types: str, window: int, events: list[Event]) -> None:
    apart = [replace(event, clock=None) for event in events]
    got = found(types, window, events, sources=False)
    wanted = expected(types, window, apart)
    assert got.keys() == wanted.keys()
    for ids, (lower, upper, confidence) in wanted.items():
        assert got[ids] == (lower, upper, pytest.approx(float(confidence), rel=1e-9))


@given(st.integers(1, 14), traces())
def test_branches_of_or_have_clocks_too(window: int, events: list[Event]) -> None:
    """A signature tells its branch, so the answer is that of both."""
    matches = uc.match(table_of(events), f"PATTERN OR(SEQ(A a, B b), SEQ(B c, A d, B e)) WITHIN {window}")
    got = {tuple(row[name] for name in "abcde"): row for row in matches.to_pylist()}
    wanted = {(*ids, None, None, None): row for ids, row in expected("AB", window, events).items()}
    wanted |= {(None, None, *ids): row for ids, row in expected("BAB", window, events).items()}
    assert got.keys() == wanted.keys()
    for ids, (lower, upper, confidence) in wanted.items():
        assert (got[ids]["range_lower"], got[ids]["range_upper"]) == (lower, upper)
        assert got[ids]["confidence"] == pytest.approx(float(confidence), rel=1e-9)


def test_stamps_of_hosts_become_events_of_clocks() -> None:
    table = pa.table({"host": ["g", "h", "h"], "from": [None, None, 30], "until": [None, 30, None],
                      "offset_lo": [0, -3, 7], "offset_hi": [2, 4, 9]})  # fmt: skip
    rule = uc.clock_offset(table, unit="tick", epoch=("from", "until"), shared=True)
    log = pa.table({"type": [*"ABAB"], "id": [1, 2, 3, 4], "host": [*"hhhg"], "at": [10, 12, 30, 12]})
    events = uc.to_intervals(log, time="at", uncertainty=rule)
    assert events.column("source").to_pylist() == ["h (1)", "h (1)", "h (2)", "g (1)"]
    assert events.column("lower").to_pylist() == [7, 9, 37, 12]
    assert events.column("upper").to_pylist() == [14, 16, 39, 14]
    assert events.column("offset_upper").to_pylist() == [4, 4, 9, 2]
    found = uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 9 ORDER BY CONFIDENCE DESC")
    assert found.select(["a", "b", "confidence"]).to_pylist()[0] == {"a": 1, "b": 2, "confidence": 1.0}
    by_kind = uc.by_value("type", {"A": rule}, otherwise=uc.exact())
    mixed = uc.to_intervals(log, time="at", uncertainty=by_kind)
    assert mixed.column("source").to_pylist() == ["h (1)", None, "h (2)", None]
    assert mixed.column("offset_lower").to_pylist() == [-3, None, 7, None]


def test_offsets_are_widened_to_whole_ticks_and_are_durations() -> None:
    rule = uc.clock_offset({"h": (-0.5, 1.5)}, unit="s", shared=True)
    log = pa.table({"host": ["h"], "at": pa.array([20], pa.timestamp("s"))})
    (row,) = uc.to_intervals(log, time="at", uncertainty=rule, tick="1s").to_pylist()
    assert (row["lower"].second, row["upper"].second) == (19, 22)
    assert (row["offset_lower"].total_seconds(), row["offset_upper"].total_seconds()) == (-1, 2)


def test_clocks_in_a_schema_file_and_in_plain_files(tmp_path: Path) -> None:
    (tmp_path / "offsets.csv").write_text("host,offset_lo,offset_hi\nh,-5,5\n")
    (tmp_path / "log.csv").write_text("type,host,at\nA,h,10\nB,h,12\n")
    (tmp_path / "schema.toml").write_text(
        "tick = '1ms'\n[[events]]\ntype_column = 'type'\ntime = 'at'\nunit = 'ms'\n"
        "uncertainty = { kind = 'clock_offset', table = 'offsets.csv', key = 'host', shared = true }\n"
    )
    events = uc.read_traces([tmp_path / "log.csv"], tmp_path / "schema.toml")
    (row,) = uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 5").to_pylist()
    assert row["confidence"] == 1.0
    (tmp_path / "events.csv").write_text(
        "type,id,lower,upper,source,offset_lower,offset_upper\nA,1,5,15,h,-5,5\nB,2,7,17,h,-5,5\n"
    )
    arguments = ["match", "PATTERN SEQ(A a, B b) WITHIN 5", str(tmp_path / "events.csv")]
    shown = CliRunner().invoke(main, arguments)
    assert shown.stdout.splitlines()[-1].endswith("17,1")
    apart = CliRunner().invoke(main, [*arguments, "--no-sources"])
    assert "0.33" in apart.stdout
    (tmp_path / "events.csv").write_text(
        "type,id,lower,upper,source,offset_lower,offset_upper\nA,1,5,15,h,-5,5\nB,2,7,17,h,-5,4\n"
    )
    (fault,) = uc.validate(tmp_path / "events.csv")
    assert (fault.row, fault.column) == (2, "source")


def trace(**columns: list[Any]) -> pa.Table:
    given: dict[str, list[Any]] = {
        "type": ["A", "B"],
        "id": [1, 2],
        "lower": [0, 2],
        "upper": [10, 12],
        "source": ["h", "h"],
        "offset_lower": [-5, -5],
        "offset_upper": [5, 5],
    }
    return pa.table({**given, **columns})


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"offset_upper": [5, 6], "upper": [10, 13]}, "row 2.*other bounds in row 1"),
        ({"offset_lower": [-5, None]}, "row 2.*is missing"),
        ({"lower": [1, 2]}, "row 1.*no time by the clock is left"),
        ({"lower": [-1, 2]}, "row 1.*uncertain by their own clock are not supported"),
        ({"offset_lower": ["a", "b"]}, "an offset is a duration"),
        ({"pmf": [[1 / 11] * 11, None]}, "row 1.*probabilities of ticks are not supported"),
    ],
)
def test_what_is_not_known_of_clocks(columns: dict[str, list[Any]], said: str) -> None:
    with pytest.raises(uc.TraceError, match=said):
        uc.match(trace(**columns), "PATTERN SEQ(A a, B b) WITHIN 9")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("PATTERN SEQ(A a, !A n, B b) WITHIN 9", "negation"),
        ("PATTERN SEQ(A a, B+ b[]) WITHIN 9", "Kleene"),
        ("PATTERN AND(A a, B b) WITHIN 9", "AND"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 9", "skip_till_next_match"),
        ("PATTERN SEQ(A a, B b) WHERE TIME(b) - TIME(a) <= 5 WITHIN 9", "TIME"),
        ("PATTERN SEQ(A a, B b) WITHIN 9 RETURN EXPECTED COUNT", "EXPECTED COUNT"),
    ],
)
def test_what_clocks_do_not_support_yet_is_refused(query: str, said: str) -> None:
    for evaluation in ("auto", *(() if "COUNT" in query else ("point",))):
        with pytest.raises(uc.OptionError, match=f"{said}.* does not support that yet"):
            uc.match(trace(), query, evaluation=evaluation)
    uc.match(trace(), query, sources=False)
    assert "clocks" not in uc.explain(query, trace(), sources=False)


def test_no_event_may_name_a_clock() -> None:
    columns = [pa.array([None, None], kind) for kind in (pa.string(), pa.null(), pa.duration("ms"))]
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [1, 3], "upper": [2, 4]})
    for name, column in zip(("source", "offset_lower", "offset_upper"), columns, strict=True):
        table = table.append_column(name, column)
    assert uc.match(table, "PATTERN SEQ(A a, B b) WITHIN 9")["confidence"].to_pylist() == [1.0]


def test_explain_says_that_events_of_one_clock_move_together() -> None:
    query = "PATTERN SEQ(A a, B b, A c) WITHIN 9"
    rows = [
        {
            "type": type,
            "id": id,
            "lower": 5,
            "upper": 9,
            "source": source,
            "offset_lower": 0,
            "offset_upper": 4,
        }
        for id, (type, source) in enumerate([("A", "h"), ("A", "g"), ("B", "g"), ("B", "f"), ("C", "h")])
    ]
    events = pa.Table.from_pylist(rows)
    shown = uc.explain(query, events)
    assert "events of one source move together" in shown
    assert "in common: a and b 1 clock, a and c 2 clocks, b and c 1 clock; rigid" in shown
    facts = json.loads(uc.explain(query, events, format="json"))["clocks"]
    assert facts["kernel"] == "rigid"
    assert facts["in_common"][1] == {"variables": ["a", "c"], "clocks": 2}
    apart = uc.explain("PATTERN SEQ(B a, C b) WITHIN 9", events)
    assert "no two components have a clock in common" in apart
    assert "events of one source move together" in uc.explain("PATTERN SEQ(A a, B b) WITHIN 9", trace())
