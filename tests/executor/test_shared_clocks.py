"""Matches of events that share clocks, against every choice of offsets and times."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.oracle import Clock, Event, Match, Query, answer, one, seq
from uncertain_cep.cli import main
from uncertain_cep.executor import rewrites
from uncertain_cep.operators import shared_clocks

NAMES = "hgf"


@st.composite
def laws(draw: st.DrawFn, size: int) -> tuple[Fraction, ...] | None:
    """Draw probabilities of so many ticks, or none; ticks within may have none."""
    if not draw(st.booleans()):
        return None
    shares = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any))
    return tuple(Fraction(share, sum(shares)) for share in shares)


@st.composite
def traces(
    draw: st.DrawFn, *, loose: bool = False, weighed: bool = False, doubtful: bool = False
) -> list[Event]:
    """Draw events by three clocks and without.

    If ``loose`` they may be uncertain by their own clock, if ``weighed`` offsets be not equally likely, and
    if ``doubtful`` events may not have happened.
    """
    happened = [Fraction(1)]
    if doubtful and draw(st.booleans()):
        happened += [Fraction(1), Fraction(1, 2), Fraction(0)]
    clocks = []
    jitter, explicit = draw(st.sampled_from([(0, False), (3, False), (2, True)])) if loose else (0, False)
    for _ in NAMES:
        lower = draw(st.integers(-2, 1))
        size = draw(st.integers(1, 5))
        clocks.append(Clock(lower, lower + size - 1, draw(laws(size)) if weighed else None))
    events = []
    for id in range(draw(st.integers(2, 7))):
        clock = draw(st.sampled_from([None, *clocks, *clocks]))
        own = draw(st.integers(0, 8))
        width = draw(st.integers(0, 3 if clock is None else jitter))
        pmf = draw(laws(width + 1)) if explicit else None
        lower, upper = own, own + width
        if clock is not None:
            lower, upper = lower + clock.lower, upper + clock.upper
        type, chance = draw(st.sampled_from("AB")), draw(st.sampled_from(happened))
        events.append(Event(type, id, lower, upper, pmf, clock=clock, probability=chance))
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
            "pmf": event.pmf and [float(part) for part in event.pmf],
            "offset_pmf": event.clock and event.clock.pmf and [float(part) for part in event.clock.pmf],
            "probability": float(event.probability),
        }
        for event in events
    ]
    listed = pa.list_(pa.float64())
    types = {"type": pa.string(), "source": pa.string(), "pmf": listed, "offset_pmf": listed}
    types["probability"] = pa.float64()
    names: tuple[str, ...] = ("type", "id", "lower", "upper", "source", "offset_lower", "offset_upper", "pmf")
    names += ("offset_pmf",) if any(clock.pmf for clock in clocks) else ()
    names += ("probability",) if any(event.probability < 1 for event in events) else ()
    schema = pa.schema([(name, types.get(name, pa.int64())) for name in names])
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
    return rows_of(uc.match(table_of(events), text(types, window, controls), threads=1, **options), types)


def rows_of(matches: pa.Table, types: str) -> dict[Any, Any]:
    return {
        tuple(row[f"v{place}"] for place in range(len(types))): (
            row["range_lower"],
            row["range_upper"],
            row.get("confidence"),
        )
        for row in matches.to_pylist()
    }


TYPES = st.sampled_from(["AB", "ABA", "AAB", "ABAB", "AABB", "ABABA"])


@given(
    TYPES,
    st.integers(1, 14),
    traces(loose=True, weighed=True, doubtful=True),
    st.sampled_from(["auto", "any_state", "selectivity", "point"]),
)
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


@FEWER
@given(
    TYPES,
    st.integers(1, 14),
    traces(loose=True, weighed=True, doubtful=True),
    st.sampled_from(["auto", "sliced", "point"]),
)
def test_streams_find_the_same(types: str, window: int, events: list[Event], evaluation: str) -> None:
    # None arrives when it is late.
    table = table_of(sorted(events, key=lambda event: event.lower))
    matcher = uc.IncrementalMatcher(text(types, window), table.schema, evaluation=evaluation)
    got = rows_of(pa.Table.from_batches([matcher.push(table), matcher.close()]), types)
    wanted = found(types, window, events)
    assert got.keys() == wanted.keys()
    for ids, (lower, upper, confidence) in wanted.items():
        assert got[ids] == (lower, upper, pytest.approx(confidence, rel=1e-9))


@given(traces(), st.sampled_from([pa.int64(), pa.uint8(), pa.dictionary(pa.int8(), pa.string())]))
def test_clocks_may_be_called_by_numbers_or_by_values_of_a_dictionary(
    events: list[Event], dtype: pa.DataType
) -> None:
    table = table_of(events)
    numbers = [None if name is None else 7 * NAMES.index(name) for name in table.column("source").to_pylist()]
    source = pa.array(numbers, dtype) if pa.types.is_integer(dtype) else table.column("source").cast(dtype)
    other = table.set_column(table.column_names.index("source"), "source", source)
    query = text("AB", 4)
    assert uc.match(other, query).equals(uc.match(table, query))


@given(TYPES, st.integers(2, 14), traces(loose=True), st.sampled_from([0.25, 0.5, 1.0]), st.integers(1, 3))
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


@given(TYPES, st.integers(1, 14), traces(loose=True))
def test_without_sources_times_are_independent(types: str, window: int, events: list[Event]) -> None:
    # Of own times, which are others' where they are all that is uncertain.
    events = [event if event.clock is None else replace(event, pmf=None) for event in events]
    apart = [replace(event, clock=None) for event in events]
    got = found(types, window, events, sources=False)
    wanted = expected(types, window, apart)
    assert got.keys() == wanted.keys()
    for ids, (lower, upper, confidence) in wanted.items():
        assert got[ids] == (lower, upper, pytest.approx(float(confidence), rel=1e-9))


@given(st.integers(1, 14), traces(loose=True))
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
    assert events.column("source").to_pylist() == [
        "h (until 30)", "h (until 30)", "h (from 30)", "g (always)"
    ]  # fmt: skip
    assert events.column("lower").to_pylist() == [7, 9, 37, 12]
    assert events.column("upper").to_pylist() == [14, 16, 39, 14]
    assert events.column("offset_upper").to_pylist() == [4, 4, 9, 2]
    found = uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 9 ORDER BY CONFIDENCE DESC")
    assert found.select(["a", "b", "confidence"]).to_pylist()[0] == {"a": 1, "b": 2, "confidence": 1.0}
    by_kind = uc.by_value("type", {"A": rule}, otherwise=uc.exact())
    mixed = uc.to_intervals(log, time="at", uncertainty=by_kind)
    assert mixed.column("source").to_pylist() == ["h (until 30)", None, "h (from 30)", None]
    assert mixed.column("offset_lower").to_pylist() == [-3, None, 7, None]


def test_epochs_of_several_tables_are_told_apart() -> None:
    """Each day has a table of its own; the epoch that both know is one source."""
    morning, noon, night = (datetime(2026, 1, day, hour) for day, hour in ((5, 6), (5, 12), (6, 0)))
    epochs = {"host": ["h"] * 3, "from": [morning, noon, night], "until": [noon, night, None],
              "offset_lo": [0, 3, 1], "offset_hi": [2, 4, 1]}  # fmt: skip
    of_all = pa.table(epochs)
    parts = []
    for id, (rows, at) in enumerate([((0, 2), noon - timedelta(hours=1)), ((1, 2), noon), ((2, 1), night)]):
        rule = uc.clock_offset(of_all.slice(*rows), unit="s", epoch=("from", "until"), shared=True)
        stamped = pa.table({"type": ["AAB"[id]], "id": [id], "host": ["h"], "at": [at]})
        parts.append(uc.to_intervals(stamped, time="at", uncertainty=rule, tick="1s"))
    events = pa.concat_tables(parts)
    days = ["05T06:00:00", "05T12:00:00", "06T00:00:00"]
    assert events["source"].to_pylist() == [f"h (from 2026-01-{day})" for day in days]
    assert uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 20 hours").num_rows == 2
    rule = uc.clock_offset(of_all, unit="s", epoch=("from", "until"), shared=True)
    stamped = pa.table({"type": ["A"], "id": [3], "host": ["h"], "at": [noon]})
    again = uc.to_intervals(stamped, time="at", uncertainty=rule, tick="1s")
    assert again["source"].to_pylist() == events["source"].to_pylist()[1:2]


def test_offsets_are_widened_to_whole_ticks_and_are_durations() -> None:
    rule = uc.clock_offset({"h": (-0.5, 1.5)}, unit="s", shared=True)
    log = pa.table({"host": ["h"], "at": pa.array([20], pa.timestamp("s"))})
    (row,) = uc.to_intervals(log, time="at", uncertainty=rule, tick="1s").to_pylist()
    assert (row["lower"].second, row["upper"].second) == (19, 22)
    assert (row["offset_lower"].total_seconds(), row["offset_upper"].total_seconds()) == (-1, 2)


def test_stamps_can_be_uncertain_by_the_clock_besides() -> None:
    """Two stamps cut to tens: 10..19 and 20..29 are in order, by however much the clock is off."""
    bounds = {"h": (-50, 50)}
    log = pa.table({"type": [*"ABA"], "id": [1, 2, 3], "host": ["h"] * 3, "at": [10, 20, 20]})
    rule = uc.clock_offset(bounds, unit="tick", shared=True, own=uc.granularity(10))
    events = uc.to_intervals(log, time="at", uncertainty=rule)
    assert events.column("lower").to_pylist() == [-40, -30, -30]
    assert events.column("upper").to_pylist() == [69, 79, 79]
    found = uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 200").to_pylist()
    assert {row["a"]: row["confidence"] for row in found} == pytest.approx({1: 1.0, 3: 0.45})
    for wrong, said in (
        ({"own": uc.granularity(10)}, "goes with shared"),
        ({"own": 5, "shared": True}, "own=5"),
    ):
        with pytest.raises(uc.OptionError, match=said):
            uc.clock_offset(bounds, unit="tick", **wrong)


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
        ({"offset_lower": ["a", "b"]}, "an offset is a duration"),
        ({"pmf": [[1 / 11] * 11, None]}, "row 1.*11 probabilities for an interval of 1 ticks"),
        ({"offset_pmf": [[1.0], [1.0]]}, "offset_pmf.*1 probabilities for an interval of 11 ticks"),
        ({"offset_pmf": [[0.2] + [0.08] * 10] * 2, "source": ["h", None]}, None),
        ({"offset_pmf": [[0.2] + [0.08] * 10, [0.08] * 10 + [0.2]]}, "row 2.*another pmf in row 1"),
        ({"offset_pmf": [[0.2] + [0.08] * 10, None]}, "another pmf in row"),
        ({"offset_pmf": ["a", "b"]}, "the pmf of an offset is a list of numbers"),
    ],
)
def test_what_is_not_known_of_clocks(columns: dict[str, list[Any]], said: str | None) -> None:
    if said is None:
        uc.match(trace(**columns), "PATTERN SEQ(A a, B b) WITHIN 9")
        return
    with pytest.raises(uc.TraceError, match=said):
        uc.match(trace(**columns), "PATTERN SEQ(A a, B b) WITHIN 9")


@pytest.mark.parametrize(
    ("query", "options", "said"),
    [
        ("PATTERN SEQ(A a, !A n, B b) WITHIN 9", {"evaluation": "point"}, "negation with events that share"),
        ("PATTERN SEQ(A a, B+ b[]) WITHIN 9", {"evaluation": "point"}, "Kleene components with events that"),
        (
            "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 9",
            {"evaluation": "any_state"},
            "skip_till_next_match with events that share clocks",
        ),
    ],
)
def test_what_clocks_do_not_support_yet_is_refused(query: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(uc.OptionError, match=said):
        uc.match(trace(), query, **options)
    uc.match(trace(), query, **options, sources=False)
    assert "clocks" not in uc.explain(query, trace(), sources=False)


def test_no_event_may_name_a_clock() -> None:
    columns = [pa.array([None, None], kind) for kind in (pa.string(), pa.null(), pa.duration("ms"))]
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [1, 3], "upper": [2, 4]})
    for name, column in zip(("source", "offset_lower", "offset_upper"), columns, strict=True):
        table = table.append_column(name, column)
    assert uc.match(table, "PATTERN SEQ(A a, B b) WITHIN 9")["confidence"].to_pylist() == [1.0]


@given(
    TYPES,
    st.integers(1, 14),
    traces(loose=True, weighed=True),
    st.sampled_from(["any", "next"]),
    st.integers(1, 4),
)
def test_expected_counts_add_up_confidences(
    types: str, window: int, events: list[Event], strategy: str, every: int
) -> None:
    query = text(types, window).replace(" WITHIN", f" WHERE {_strategy(types, strategy)} WITHIN")
    matches = answers(types, window, events, strategy)
    (counted,) = uc.match(table_of(events), f"{query} RETURN EXPECTED COUNT", threads=1).to_pylist()
    total = sum((match.confidence for match in matches), Fraction(0))
    assert counted["expected_count"] == pytest.approx(float(total), rel=1e-9)
    buckets: dict[int, Fraction] = {}
    for match in matches:
        for tick, mass in match.first_times.items():
            begin = tick // every * every
            buckets[begin] = buckets.get(begin, Fraction(0)) + mass
    found = uc.match(table_of(events), f"{query} RETURN EXPECTED COUNT EVERY {every}", threads=1).to_pylist()
    got = {row["bucket"]: row["expected_count"] for row in found if row["expected_count"] > 0}
    assert got == pytest.approx({begin: float(mass) for begin, mass in buckets.items()}, rel=1e-9)


def _strategy(types: str, strategy: str) -> str:
    return f"skip_till_{strategy}_match({', '.join(f'v{place}' for place in range(len(types)))})"


def answers(types: str, window: int, events: list[Event], strategy: str) -> list[Match]:
    chosen: Any = f"skip_till_{strategy}_match"
    pattern = seq(*(one(type, f"v{place}") for place, type in enumerate(types)))
    return answer(Query(pattern, window, strategy=chosen), events)


BY_ONE_CLOCK = (
    "PATTERN SEQ(A a, B b, A c) WHERE [{key}]",
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) AND [{key}]",
    "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) AND [{key}]",
    "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) AND [{key}]",
    "PATTERN SEQ(A a, !B n, A c) WHERE [{key}]",
    "PATTERN SEQ(A a, !B n, A c) WHERE a.{key} = c.{key}",
    "PATTERN SEQ(A a, B+ b[], A c) WHERE [{key}]",
    "PATTERN SEQ(B+ b[], A c) WHERE skip_till_next_match(b[], c) AND [{key}]",
    "PATTERN AND(A a, B b) WHERE [{key}]",
    "PATTERN SEQ(A a, B? b, A c) WHERE [{key}]",
    "PATTERN OR(SEQ(A a, B b), SEQ(B c, B d)) WHERE [{key}]",
    "PATTERN SEQ(A a, B b) WHERE [{key}] AND TIME(b) - TIME(a) <= 2",
    "PATTERN SEQ(A a, B b) WHERE [{key}] AND TIME(b) <= 5",
    "PATTERN SEQ(A a, !B n, A c) WHERE [{key}] AND TIME(n) - TIME(a) <= 2",
)


@given(
    st.sampled_from(BY_ONE_CLOCK), st.integers(1, 9), traces(loose=True, weighed=True),
    st.sampled_from(["source", "k"]),
    st.sampled_from(["", " HAVING CONFIDENCE >= 0.314159", " RETURN EXPECTED COUNT"]), st.data(),
)  # fmt: skip
def test_by_the_time_of_one_clock_or_by_true_times(
    query: str, window: int, events: list[Event], key: str, controls: str, data: st.DataObject
) -> None:
    """Where the events of a partition are of one clock, they can be matched by its times."""
    table = table_of(events)
    values = [data.draw(st.sampled_from([None, 1, 2])) for _ in range(4)]
    sources = table.column("source").to_pylist()
    mixed = data.draw(st.booleans())
    keys = [
        data.draw(st.integers(0, 1)) if mixed else values[3 if name is None else NAMES.index(name)]
        for name in sources
    ]
    table = table.append_column("k", pa.array(keys, pa.int64()))
    asked = f"{query.format(key=key)} WITHIN {window}{controls}"
    by_clock = uc.match(table, asked).to_pylist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewrites, "times_by_one_clock", lambda *_: None)
        by_true_times = uc.match(table, asked).to_pylist()

    def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        names = [name for name in rows[0] if name != "confidence"] if rows else []
        return sorted(rows, key=lambda row: [repr(row[name]) for name in names])

    assert len(by_clock) == len(by_true_times)
    for row, other in zip(in_order(by_clock), in_order(by_true_times), strict=True):
        assert row.keys() == other.keys()
        for name, value in row.items():
            close = isinstance(value, float)
            assert value == (pytest.approx(other[name], rel=1e-9) if close else other[name])


def test_far_offsets_of_one_clock_cost_nothing() -> None:
    """By true times each pair of events could be in order and in the window."""
    count, off = 4_000, 10**6
    table = pa.table({
        "type": ["A", "B"] * (count // 2), "id": np.arange(count), "lower": np.arange(count) - off,
        "upper": np.arange(count) + off, "source": ["h"] * count, "offset_lower": np.full(count, -off),
        "offset_upper": np.full(count, off),
    })  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_clocks, "RigidMatches", None)
        found = uc.match(table, "PATTERN SEQ(A a, B b) WITHIN 2")
    assert found.num_rows == count // 2
    assert set(found.column("confidence").to_pylist()) == {1.0}
    assert found.column("range_lower").to_pylist() == [2 * n - off for n in range(count // 2)]
    assert found.column("range_upper").to_pylist() == [2 * n + 1 + off for n in range(count // 2)]


def many_offsets() -> pa.Table:
    """Two clocks of a million ticks each, that come by turns."""
    rows = [("A", "h", 0, 9), ("B", "g", 5, 9), ("A", "h", 9, 13), ("B", "g", 11, 19)]
    return pa.table(
        {
            "type": [type for type, *_ in rows],
            "id": [1, 2, 3, 4],
            "lower": [low for *_, low, _ in rows],
            "upper": [high + 1_000_000 for *_, high in rows],
            "source": [source for _, source, *_ in rows],
            "offset_lower": [0, 0, 0, 0],
            "offset_upper": [1_000_000] * 4,
        }
    )


@pytest.mark.compiled
def test_too_many_offsets_name_the_clocks_and_can_be_estimated() -> None:
    query = "PATTERN SEQ(A a, B b, A c, !C n, B d) WITHIN 2000000"
    with pytest.raises(uc.ConfidenceCostError, match=r"clocks [gh], [gh].*1\.0e\+12 choices"):
        uc.match(many_offsets(), query)
    found = uc.match(many_offsets(), query, approximate=0.02).to_pylist()
    (row,) = [row for row in found if (row["a"], row["b"], row["c"], row["d"]) == (1, 2, 3, 4)]
    assert (row["exact"], 0 < row["std_error"] <= 0.02) == (False, True)
    plain = uc.match(many_offsets(), "PATTERN SEQ(A a, B b, A c, B d) WITHIN 2000000").to_pylist()
    (whole,) = [row for row in plain if (row["a"], row["b"], row["c"], row["d"]) == (1, 2, 3, 4)]
    assert row["confidence"] == pytest.approx(whole["confidence"], abs=0.1)
    assert found == uc.match(many_offsets(), query, approximate=0.02).to_pylist()


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
    by_source = query.replace("WITHIN", "WHERE [source] WITHIN")
    assert "matched by their times by the clock" in uc.explain(by_source, events)
    facts = json.loads(uc.explain(by_source, events, format="json"))["clocks"]
    assert facts["kernel"] == "times by the clock"
    apart = uc.explain("PATTERN SEQ(B a, C b) WITHIN 9", events)
    assert "no two components have a clock in common" in apart
    assert "events of one source move together" in uc.explain("PATTERN SEQ(A a, B b) WITHIN 9", trace())


def test_an_order_needs_sequences() -> None:
    table, query = trace(), "PATTERN SEQ(A a, B b) WITHIN 9"
    more = table.append_column("ordered", pa.nulls(table.num_rows))
    with pytest.raises(uc.TraceError, match="there is no column sequence: add it"):
        uc.match(more, query)
    assert uc.match(more, query, sources=False).num_rows == uc.match(table, query, sources=False).num_rows


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from([*NAMES, None]), st.sampled_from("AB")), max_size=6
    ),
    st.integers(1, 4),
    st.integers(1, 12),
)
def test_samplers_stamp_at_one_phase(
    stamped: list[tuple[int, str | None, str]], length: int, window: int
) -> None:
    """Stamps of one node are ends of windows, and happened equally long before."""
    phases = {name: Clock(1 - length, 0) for name in NAMES}
    events = [
        Event(type, id, at + 1 - length, at, clock=phases[node] if node else None)
        for id, (at, node, type) in enumerate(stamped)
    ]
    rows = [{"type": type, "id": id, "at": at, "node": node} for id, (at, node, type) in enumerate(stamped)]
    kinds = {"type": pa.string(), "id": pa.int64(), "at": pa.int64(), "node": pa.string()}
    table = pa.Table.from_pylist(rows, pa.schema(list(kinds.items())))
    sampled = uc.to_intervals(table, time="at", uncertainty=uc.window(length, source="node"))
    wanted = expected("AB", window, events)
    got = {(row["v0"], row["v1"]): row for row in uc.match(sampled, text("AB", window)).to_pylist()}
    assert got.keys() == wanted.keys()
    for ids, (lower, upper, confidence) in wanted.items():
        assert (got[ids]["range_lower"], got[ids]["range_upper"]) == (lower, upper)
        assert got[ids]["confidence"] == pytest.approx(float(confidence), rel=1e-9)


def test_a_sampler_in_a_schema_file(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("type,node,at\nA,h,10\nB,h,12\n")
    (tmp_path / "schema.toml").write_text(
        "[[events]]\ntype_column = 'type'\ntime = 'at'\n"
        "uncertainty = { kind = 'window', length = 5, source = 'node' }\n"
    )
    events = uc.read_traces(tmp_path / "log.csv", tmp_path / "schema.toml")
    (row,) = uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 5").to_pylist()
    assert (row["range_lower"], row["range_upper"], row["confidence"]) == (6, 12, 1.0)
    with pytest.raises(uc.OptionError, match="source= takes the name of a column, not int"):
        uc.window("15s", source=5)  # type: ignore[arg-type]


def _without_clock(event: Event) -> Event:
    """Return an event whose time, of the same law, depends on no other's."""
    if event.clock is None:
        return event
    own = event.lower - event.clock.lower, event.upper - event.clock.upper
    law: dict[int, Fraction] = {}
    widths = own[1] - own[0] + 1, event.clock.upper - event.clock.lower + 1
    parts = (event.pmf, event.clock.pmf)
    one, other = (pmf or (Fraction(1, width),) * width for pmf, width in zip(parts, widths, strict=True))
    for i, p in enumerate(one):
        for j, q in enumerate(other):
            law[i + j] = law.get(i + j, Fraction(0)) + p * q
    return replace(event, clock=None, pmf=tuple(law[tick] for tick in sorted(law)))


@given(traces(loose=True, weighed=True), st.sampled_from(["AB", "AAB", "BA"]), st.booleans())
def test_without_sources_times_have_their_own_laws(events: list[Event], types: str, stream: bool) -> None:
    """A pmf is by the clock: without sources the law of the time is that of its sum with the offset."""
    # A time without a pmf is any of its interval, where clocks are not looked at.
    events = [event for event in events if event.clock is None or event.pmf is not None]
    if len(events) < 2:
        return
    table = table_of(events)
    parts = [f"{type} {name}" for type, name in zip(types, "abc", strict=False)]
    query = f"PATTERN SEQ({', '.join(parts)}) WITHIN 6"
    if stream:
        table = table.take(pc.sort_indices(table["lower"]))
        matcher = uc.IncrementalMatcher(query, table.schema, sources=False)
        found = pa.Table.from_batches([matcher.push(table), matcher.close()])
    else:
        found = uc.match(table, query, sources=False)
    expected = uc.match(table_of([_without_clock(event) for event in events]), query)
    names = [*"abc"[: len(types)]]
    one, other = (rows.sort_by([(name, "ascending") for name in names]) for rows in (found, expected))
    columns = [*names, "range_lower", "range_upper"]
    assert one.select(columns).to_pylist() == other.select(columns).to_pylist()
    assert one["confidence"].to_pylist() == pytest.approx(other["confidence"].to_pylist())


CLOCKED = pa.table(
    {
        "type": ["A", "B"], "id": [1, 2], "lower": [0, 2], "upper": [3, 2], "pmf": [[0.5, 0.0, 0.5], None],
        "source": ["h", None], "offset_lower": [0, None], "offset_upper": [1, None],
    }
)  # fmt: skip


def test_a_clock_and_a_pmf_in_all_that_takes_matches() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 20"
    for sources in (True, False):
        matches = uc.match(CLOCKED, query, sources=sources)
        assert matches["confidence"].to_pylist() == [0.5]
        laws = uc.posteriors(matches, CLOCKED, query, sources=sources)
        assert laws["pmf"].to_pylist()[0] == pytest.approx([0.5, 0.5, 0.0, 0.0])
        assert str(uc.report(CLOCKED, query, sources=sources))
    for at, pmf in {"first": [0.5, 0.5], "last": [1.0], "a": [0.5, 0.5], "b": [1.0]}.items():
        (new,) = uc.with_matches(CLOCKED, matches, "AB", at=at, query=query).slice(2).to_pylist()
        assert new["pmf"] == pytest.approx(pmf)
        assert new["probability"] == 0.5


def test_pmfs_that_are_none_are_refused_without_sources_too() -> None:
    wrong = CLOCKED.set_column(4, "pmf", pa.array([[0.5, 0.5], None]))
    for sources in (True, False):
        with pytest.raises(uc.TraceError, match="the pmf has 2 probabilities"):
            uc.match(wrong, "PATTERN SEQ(A a, B b) WITHIN 20", sources=sources)
    negative = CLOCKED.set_column(4, "pmf", pa.array([[1.5, -1.0, 0.5], None]))
    with pytest.raises(uc.TraceError):
        uc.match(negative, "PATTERN SEQ(A a, B b) WITHIN 20", sources=False)
