"""Local times that clocks showed twice: the order of rows tells which is meant, else both are possible."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.traces.files import put, schema_of
from uncertain_cep.errors import OptionError, TraceError, UncertainCepWarning
from uncertain_cep.traces import both_readings
from uncertain_cep.traces.local_times import in_utc, repeats_hours

BERLIN = ZoneInfo("Europe/Berlin")
BACK = datetime(2026, 10, 25, 1, 0, tzinfo=UTC)
"""Clocks are set back from 3:00 to 2:00."""
HOUR = timedelta(hours=1)


def rule(text: str = '{ kind = "exact" }', keys: str = "", tick: str = "1min") -> str:
    return (
        f'tick = "{tick}"\n[[events]]\ntype_column = "what"\ntime = "at"\ntime_zone = "Europe/Berlin"\n'
        f"{keys}\nattributes = []\nuncertainty = {text}\n"
    )


def read(
    folder: Path, rows: list[tuple[str, str]], schema: str, kind: str = "csv", day: str = "2026-10-25"
) -> pa.Table:
    """Read rows of a type and a local time of a day, in a file of some format."""
    names, times = [name for name, _ in rows], [f"{day} {at}:00" for _, at in rows]
    pairs = list(zip(names, times, strict=True))
    if kind == "csv":
        path = put(folder / "t.csv", "what,at\n" + "".join(f"{n},{t}\n" for n, t in pairs))
    elif kind == "json":
        lines = [f'{{"what": "{n}", "at": "{t}"}}\n' for n, t in pairs]
        path = put(folder / "t.jsonl", "".join(lines))
    elif kind == "parquet":
        stamps = pa.array([datetime.fromisoformat(t) for t in times], pa.timestamp("s"))
        path = folder / "t.parquet"
        pq.write_table(pa.table({"what": names, "at": stamps}), path)
    else:
        path = put(folder / "t.log", "".join(f"{t} {n}\n" for n, t in pairs))
        schema = schema.replace(
            "[[events]]", "[extract]\nline = '^(?P<at>\\S+ \\S+) (?P<what>\\S+)'\n[[events]]"
        )
    return uc.read_traces(path, schema_of(folder, schema))


def minutes(events: pa.Table, name: str = "lower") -> list[int]:
    """Return the times of events in minutes since 1:00 in UTC."""
    stamps = events.column(name).cast(pa.timestamp("s")).cast(pa.int64()).to_pylist()
    return [(stamp - int(BACK.timestamp())) // 60 for stamp in stamps]


KINDS = ["csv", "json", "parquet", "log"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_rows_tells_which_hour_is_meant(tmp_path: Path, kind: str) -> None:
    rows = [("A", "02:15"), ("B", "02:45"), ("C", "02:10"), ("D", "03:05")]
    with pytest.warns(
        UncertainCepWarning, match="3 stamps of at .* Europe/Berlin .*: the order of the rows tells"
    ):
        events = read(tmp_path, rows, rule(), kind)
    assert "pmf" not in events.column_names
    assert minutes(events) == minutes(events, "upper") == [-45, -15, 10, 65]
    matches = uc.match(events, "PATTERN SEQ(B b, C c) WITHIN 3 hours")
    assert matches.column("confidence").to_pylist() == [1.0]
    assert uc.match(events, "PATTERN SEQ(C c, B b) WITHIN 3 hours").num_rows == 0


@pytest.mark.parametrize("kind", KINDS)
def test_lines_of_a_log_stand_in_order(tmp_path: Path, kind: str) -> None:
    """Rows of another file might as well stand with the last one first."""
    with pytest.warns(UncertainCepWarning, match="2 stamps of at"):
        events = read(tmp_path, [("A", "02:45"), ("B", "02:10")], rule(), kind)
    backward = uc.match(events, "PATTERN SEQ(B b, A a) WITHIN 3 hours")
    if kind == "log":
        assert minutes(events) == minutes(events, "upper") == [-15, 10]
        assert backward.num_rows == 0
    else:
        assert minutes(events) == [-15, -50]
        assert minutes(events, "upper") == [45, 10]
        # The first 2:10 is before both 2:45; the second one is before the second 2:45.
        assert backward.column("confidence").to_pylist() == pytest.approx([0.75])
    with pytest.warns(UncertainCepWarning, match="the order of the rows tells which"):
        ordered = read(tmp_path, [("A", "02:45"), ("B", "02:10")], rule(keys="ordered = true"), kind)
    assert minutes(ordered) == minutes(ordered, "upper") == [-15, 10]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_not_in_order_tell_nothing(tmp_path: Path, kind: str) -> None:
    rows = [("D", "12:00"), ("A", "02:45"), ("B", "02:10"), ("C", "00:30")]
    with pytest.warns(UncertainCepWarning, match="2 stamps of at .*: each has both times, equally likely"):
        events = read(tmp_path, rows, rule(), kind)
    assert minutes(events, "lower")[1:3] == [-15, -50]
    assert minutes(events, "upper")[1:3] == [45, 10]
    assert events.column("pmf").to_pylist()[1] == [0.5, *[0.0] * 59, 0.5]
    assert events.column("pmf").to_pylist()[0] is None


RULES: list[tuple[str, int, int]] = [
    ('{ kind = "exact" }', 0, 0),
    ('{ kind = "plus_minus", by = "5min" }', -5, 5),
    ('{ kind = "granularity", of = "10min" }', 0, 9),
    ('{ kind = "window", length = "15min" }', -14, 0),
    ('{ kind = "granularity", of = "2h" }', 0, 119),
]


@pytest.mark.parametrize(("uncertainty", "low", "high"), RULES)
def test_every_rule_has_the_intervals_of_both_readings(
    tmp_path: Path, uncertainty: str, low: int, high: int
) -> None:
    with pytest.warns(UncertainCepWarning, match="1 stamps of at"):
        events = read(tmp_path, [("A", "02:30"), ("B", "12:00")], rule(uncertainty))
    ticks = high - low + 1
    expected = np.zeros(60 + ticks)
    expected[:ticks] += 0.5 / ticks
    expected[60:] += 0.5 / ticks
    assert minutes(events)[0] == -30 + low
    assert minutes(events, "upper")[0] == 30 + high
    assert events.column("pmf")[0].as_py() == pytest.approx(expected.tolist())


def test_bounds_and_histograms_of_both_readings(tmp_path: Path) -> None:
    stamps = pa.array([datetime(2026, 10, 25, 2, 30), datetime(2026, 10, 25, 12, 0)], pa.timestamp("s"))
    later = pa.array([datetime(2026, 10, 25, 2, 10), datetime(2026, 10, 25, 12, 5)], pa.timestamp("s"))
    raw = pa.table({"what": ["A", "B"], "at": stamps, "until": later, "p": [[0.25, 0.75], [1.0]]})
    pq.write_table(raw, tmp_path / "t.parquet")
    bounds = schema_of(tmp_path, rule('{ kind = "columns", lower = "at", upper = "until" }'))
    with pytest.warns(UncertainCepWarning, match="equally likely"):
        events = uc.read_traces(tmp_path / "t.parquet", bounds)
    assert (minutes(events)[0], minutes(events, "upper")[0]) == (-30, 10)
    assert "pmf" not in events.column_names
    histogram = schema_of(tmp_path, rule('{ kind = "histogram", pmf = "p" }'))
    with pytest.warns(UncertainCepWarning, match="equally likely"):
        events = uc.read_traces(tmp_path / "t.parquet", histogram)
    expected = [0.125, 0.375, *[0.0] * 58, 0.125, 0.375]
    assert events.column("pmf").to_pylist() == [expected, [1.0]]
    assert (minutes(events)[0], minutes(events, "upper")[0]) == (-30, 31)


@pytest.mark.parametrize("shared", [True, False])
def test_clock_offsets_of_both_readings(tmp_path: Path, shared: bool) -> None:
    put(tmp_path / "o.csv", "host,lo,hi\nA,-60000,120000\nB,0,0\n")
    text = (
        '{ kind = "clock_offset", table = "o.csv", key = "what", lower = "lo", upper = "hi"'
        f"{', shared = true' if shared else ''} }}"
    )
    with pytest.warns(UncertainCepWarning, match="2 stamps of at"):
        events = read(tmp_path, [("A", "02:30"), ("B", "02:20")], rule(text))
    assert (minutes(events)[0], minutes(events, "upper")[0]) == (-31, 32)
    hour_pmf = [0.5, *[0.0] * 59, 0.5]
    both = [1 / 8] * 4 + [0.0] * 56 + [1 / 8] * 4
    assert events.column("pmf").to_pylist() == [hour_pmf if shared else both, hour_pmf]
    matches = uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 3 hours")
    assert matches.column("confidence").to_pylist() == pytest.approx([0.25])


def test_epochs_of_a_clock_that_tell_the_readings_apart_are_refused(tmp_path: Path) -> None:
    put(
        tmp_path / "o.csv",
        "host,lo,hi,from,until\nA,0,0,,2026-10-25T01:00:00\nA,0,60000,2026-10-25T01:00:00,\n",
    )
    text = (
        '{ kind = "clock_offset", table = "o.csv", key = "what", lower = "lo", upper = "hi", shared = true, '
        'epoch = ["from", "until"] }'
    )
    with (
        pytest.warns(UncertainCepWarning, match="1 stamps of at"),
        pytest.raises(TraceError, match=r"t.csv, row 1.*two readings.*in two epochs of its clock"),
    ):
        read(tmp_path, [("A", "02:30")], rule(text))


def test_rules_by_value_see_all_rows(tmp_path: Path) -> None:
    by = '[events.uncertainty_by.what]\nA = { kind = "exact" }\n"*" = { kind = "plus_minus", by = "1min" }\n'
    schema = rule().replace('uncertainty = { kind = "exact" }\n', by)
    rows = [("A", "02:15"), ("B", "02:45"), ("A", "02:10"), ("C", "03:05")]
    with pytest.warns(
        UncertainCepWarning, match="3 stamps of at .*: the order of the rows tells which"
    ) as said:
        events = read(tmp_path, rows, schema)
    assert len(said) == 1
    assert minutes(events) == [-45, -16, 10, 64]
    # So for days that are not told: the first row of each rule need not be of the first day.
    path = put(tmp_path / "d.csv", "what,at\nA,23:00\nB,01:00\n")
    day = 'time_format = "%H:%M"\ndate = 2026-05-31'
    with pytest.warns(UncertainCepWarning, match="at: the day changes 1 time") as said:
        events = uc.read_traces(path, schema_of(tmp_path, schema.replace('time_zone = "Europe/Berlin"', day)))
    assert len(said) == 1
    stamps = events.column("lower").cast(pa.timestamp("s")).cast(pa.string()).to_pylist()
    assert stamps == ["2026-05-31 23:00:00", "2026-06-01 00:59:00"]


def test_too_many_ticks_become_one_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(both_readings, "MOST_TICKS_OF_READINGS", 60)
    with pytest.warns(UncertainCepWarning) as said:
        events = read(tmp_path, [("A", "02:30")], rule())
    assert "1 events with two possible times would have 61 probabilities" in str(said[1].message)
    assert (minutes(events), minutes(events, "upper")) == ([-30], [30])
    assert "pmf" not in events.column_names


def test_an_offset_tells_and_so_does_any_other_hour(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = put(tmp_path / "t.csv", "what,at\nA,2026-10-25 02:30:00+01:00\nB,2026-10-25 02:30:00+02:00\n")
        events = uc.read_traces(path, schema_of(tmp_path, rule()))
        assert minutes(events) == [30, -30]
        assert minutes(read(tmp_path, [("A", "01:59"), ("B", "03:00")], rule())) == [-61, 60]


@pytest.mark.parametrize("kind", KINDS)
def test_times_that_were_skipped_are_refused_with_their_rows(tmp_path: Path, kind: str) -> None:
    rows = [("A", "01:00"), ("B", "02:30"), ("C", "03:00"), ("D", "02:59")]
    with pytest.raises(TraceError, match="clocks of Europe/Berlin never showed it") as error:
        read(tmp_path, rows, rule(), kind, "2026-03-29")
    assert [(fault.row, fault.column) for fault in error.value.faults] == [(2, "at"), (4, "at")]


@pytest.mark.parametrize(
    ("zone", "may"),
    [("Europe/Berlin", True), ("+02:00", False), ("UTC", False), (None, False), ("-0330", False)],
)
def test_zones_of_a_fixed_offset_show_no_hour_twice(zone: str | None, may: bool) -> None:
    assert repeats_hours(zone) == may


_TIMES = st.integers(-90, 90).map(lambda minute: BACK + timedelta(minutes=minute))


def readings(local: datetime) -> list[datetime]:
    both = {local.replace(tzinfo=BERLIN, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(both)


@given(st.lists(_TIMES, min_size=1, max_size=7), st.booleans(), st.sampled_from([True, False, None]))
def test_readings_are_those_by_which_rows_stand_in_order(
    times: list[datetime], is_sorted: bool, in_order: bool | None
) -> None:
    """Against all choices of readings; the clock is that of Python."""
    true = sorted(times) if is_sorted else times
    local = [time.astimezone(BERLIN).replace(tzinfo=None) for time in true]
    options = [readings(each) for each in local]

    def ways(rows: list[list[datetime]]) -> list[tuple[datetime, ...]]:
        certain = [row[0] for row in rows if len(row) == 1]
        slack = max(
            (early - late for early, late in itertools.combinations(certain, 2)), default=timedelta(0)
        )
        slack = max(slack, timedelta(0))
        if slack > HOUR / 2:
            return []
        return [
            way
            for way in itertools.product(*rows)
            if all(after >= before - slack for before, after in itertools.combinations(way, 2))
        ]

    possible = ways(options) if in_order is not None else []
    if in_order is False and ways(options[::-1]):
        possible = []
    first = [min(way[row] for way in possible) if possible else options[row][0] for row in range(len(true))]
    last = [max(way[row] for way in possible) if possible else options[row][-1] for row in range(len(true))]
    counts = np.array([np.datetime64(each, "ns").astype(np.int64) for each in local])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        earliest, again = in_utc(
            counts,
            np.ones(len(true), np.bool_),
            "Europe/Berlin",
            column="c",
            values=counts,
            in_order=in_order,
        )

    def as_counts(moments: list[datetime]) -> list[int]:
        return [int(np.datetime64(each.replace(tzinfo=None), "ns").astype(np.int64)) for each in moments]

    assert earliest.tolist() == as_counts(first)
    assert (earliest + again).tolist() == as_counts(last)
    if is_sorted and in_order is not None:
        # What is true is never ruled out.
        assert all(low <= time <= high for low, time, high in zip(first, true, last, strict=True))


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("kind", ["timestamp", "text"])
def test_frames_of_local_times(make: Callable[..., Any], kind: str) -> None:
    local = ["2026-10-25T02:30:00", "2026-10-25T12:00:00", "2026-10-25T01:00:00"]
    at = local if kind == "text" else [datetime.fromisoformat(each) for each in local]
    raw = make({"type": ["A", "B", "C"], "id": [1, 2, 3], "at": at})
    options: dict[str, Any] = {"time": "at", "uncertainty": uc.exact(), "tick": "1min"}
    with pytest.warns(UncertainCepWarning, match="1 stamps of at .* Europe/Berlin .*each has both times"):
        events = uc.to_intervals(raw, time_zone="Europe/Berlin", **options)
    assert type(events) is type(raw)
    matches = uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 10 h")
    assert list(map(float, matches["confidence"])) == [0.5]
    with pytest.raises(OptionError, match="time_zone='Nowhere' is unknown"):
        uc.to_intervals(raw, time_zone="Nowhere", **options)
    # An offset has no such hour.
    fixed = uc.to_intervals(raw, time_zone="+02:00", **options)
    matches = uc.match(fixed, "PATTERN SEQ(A a, B b) WITHIN 10 h")
    assert list(map(float, matches["confidence"])) == [1.0]
