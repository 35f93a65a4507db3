"""Events that last, of raw stamps: their bounds hold every begin and end that the stamps leave open."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.traces.files import put, schema_of
from uncertain_cep.errors import OptionError, TraceError

START = dt.datetime(2026, 1, 5, 10)
CELL = 2_000
"""Stamps are cut to 2 s, ticks are 1 s."""


def at(milliseconds: int) -> dt.datetime:
    return START + dt.timedelta(milliseconds=milliseconds)


def seconds(value: dt.datetime | dt.timedelta | None) -> int | None:
    if value is None:
        return None
    length = value if isinstance(value, dt.timedelta) else value - START
    return round(length.total_seconds())


def admissible(row: Mapping[str, Any], reach: int = 20) -> set[tuple[int, int]]:
    """Return all ticks of begin and end that meet the bounds of a row."""
    sides = {name: (seconds(row.get(f"{name}_lower")), seconds(row.get(f"{name}_upper")))
             for name in ("begin", "end", "length")}  # fmt: skip

    def within(value: int, name: str) -> bool:
        low, high = sides[name]
        return (low is None or low <= value) and (high is None or value <= high)

    ticks = range(-reach, reach)
    return {
        (begin, end)
        for begin in ticks
        for end in range(begin, reach)
        if within(begin, "begin") and within(end, "end") and within(end - begin, "length")
    }


def possible(begin: int, length: int, columns: tuple[str, ...]) -> set[tuple[int, int]]:
    """Return all ticks of begin and end that agree with what some columns tell, in steps of 100 ms."""
    end = begin + length
    steps = range(-20_000, 20_000, 100)

    def agrees(one: int, other: int) -> bool:
        return (
            ("begin" not in columns or one // CELL == begin // CELL)
            and ("end" not in columns or other // CELL == end // CELL)
            and ("duration" not in columns or other - one == length)
        )

    near = [step for step in steps if abs(step - begin) < 2 * CELL + length]
    lengths = [length] if "duration" in columns else range(0, length + 2 * CELL, 100)
    return {
        (one // 1000, (one + took) // 1000) for one in near for took in lengths if agrees(one, one + took)
    }


TOLD = (("begin", "end"), ("begin", "duration"), ("end", "duration"), ("begin", "end", "duration"))


@given(
    st.integers(-30, 30).map(lambda tenths: 100 * tenths),
    st.integers(0, 40).map(lambda tenths: 100 * tenths),
    st.sampled_from(TOLD),
)
def test_bounds_are_what_the_stamps_leave_open(begin: int, length: int, columns: tuple[str, ...]) -> None:
    cut = {"begin": begin // CELL * CELL, "end": (begin + length) // CELL * CELL}
    raw = pa.table({"begin": [at(cut["begin"])], "end": [at(cut["end"])], "duration": [length]})
    options: dict[str, Any] = {name: name for name in columns}
    if "duration" in columns:
        options["unit"] = "ms"
    made = uc.to_intervals(raw, uncertainty=uc.granularity("2s"), tick="1s", **options)
    (row,) = made.to_pylist()
    expected = possible(begin, length, columns)
    pairs = admissible(row)
    assert expected <= pairs
    if length % 1000 == 0 or "duration" not in columns:
        assert expected == pairs
    assert seconds(row["lower"]) == min(one for one, _ in pairs) or len(columns) == 3
    assert seconds(row["upper"]) == max(other for _, other in pairs) or len(columns) == 3


RAW = pa.table(
    {
        "type": ["T", "T"],
        "id": [1, 2],
        "start": [at(300), at(5_000)],
        "stop": [at(2_000), at(5_040)],
        "took": [1_700, 40],
        "host": ["h", "g"],
    }
)


def test_frames_of_every_kind() -> None:
    options: dict[str, Any] = {
        "begin": "start", "end": "stop", "duration": "took", "unit": "ms", "tick": "1ms",
        "uncertainty": uc.plus_minus("5ms"),
    }  # fmt: skip
    made = uc.to_intervals(RAW, **options)
    assert made["length_lower"].to_pylist() == [dt.timedelta(milliseconds=ms) for ms in (1_700, 40)]
    for frame in (RAW.to_pandas(), pl.from_arrow(RAW)):
        again = pa.table(uc.to_intervals(frame, **options))
        assert again.select(made.column_names).to_pylist() == made.to_pylist()


PAIRS = ("begin_lower", "begin_upper", "end_lower", "end_upper")


def test_a_clock_moves_both_ends() -> None:
    table = pa.table({"host": ["h", "g"], "offset_lo": [-3, 0], "offset_hi": [7, 2]})
    rule = uc.clock_offset(table, key="host", unit="ms", shared=True)
    made = uc.to_intervals(RAW, begin="start", end="stop", uncertainty=rule, tick="1ms").to_pylist()
    assert [[row[name] for name in PAIRS] for row in made] == [
        [at(297), at(307), at(1_997), at(2_007)],
        [at(5_000), at(5_002), at(5_040), at(5_042)],
    ]
    assert [row["source"] for row in made] == ["h", "g"]


def test_a_period_is_all_of_its_time() -> None:
    load = pa.table({"type": ["L"], "id": [1], "at": [at(60_000)]})
    period = uc.to_intervals(load, time="at", uncertainty=uc.period("60s"), tick="1s")
    ask = pa.table({"type": ["R"], "id": [2], "start": [at(20_000)], "stop": [at(25_000)]})
    request = uc.to_intervals(ask, begin="start", end="stop", uncertainty=uc.exact(), tick="1s")
    events = pa.concat_tables([period, request], promote_options="default")
    query = "PATTERN AND(L l, R r) WHERE {} WITHIN 100"
    for relation in ("l OVERLAPS r", "l CONTAINS r", "DURATION(l) = 59"):
        rows = uc.match(events, query.format(relation)).to_pylist()
        assert [(row["l"], row["r"], row["confidence"]) for row in rows] == [(1, 2, 1.0)], relation
    assert uc.match(events, query.format("l DURING r")).num_rows == 0


def test_uncertain_periods_keep_their_length() -> None:
    load = pa.table({"at": [at(60_000)]})
    made = uc.to_intervals(load, time="at", uncertainty=[uc.period("60s"), uc.plus_minus("1s")], tick="1s")
    (row,) = made.to_pylist()
    assert admissible({name: value for name, value in row.items() if name != "at"}, 70) == {
        (0, 59), (1, 60), (2, 61)
    }  # fmt: skip


def test_schemas_have_events_that_last_and_points(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "kind,start,stop,took\nload,2026-01-05 10:00:00,,\n"
               "task,2026-01-05 10:00:01,2026-01-05 10:00:03,2000\n")  # fmt: skip
    text = """
tick = "1s"
[[events]]
type = "Load"
where = "kind = 'load'"
time = "start"
uncertainty_by.kind.load = { kind = "period", length = "5s" }
uncertainty_by.kind."*" = { kind = "exact" }
[[events]]
type = "Task"
where = "kind = 'task'"
begin = "start"
end = "stop - 1 s"
uncertainty = { kind = "granularity", of = "1s" }
[[events]]
type = "Short"
where = "kind = 'task'"
begin = "start"
duration = "took"
unit = "ms"
uncertainty = { kind = "plus_minus", by = "1s" }
[[events]]
type = "Point"
where = "kind = 'task'"
time = "stop"
uncertainty = { kind = "exact" }
"""
    rows = uc.read_traces(path, schema_of(tmp_path, text)).to_pylist()
    names = (*PAIRS, "length_lower", "length_upper")
    assert {row["type"]: [seconds(row[name]) for name in names] for row in rows} == {
        "Load": [-4, -4, 0, 0, 4, 4],
        "Task": [1, 1, 2, 2, None, None],
        "Short": [0, 2, None, None, 2, 2],
        "Point": [None] * 6,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"begin": "start"}, "needs two of begin, end and duration"),
        ({"begin": "start", "end": "stop", "time": "start"}, "no single time"),
        ({"begin": "start", "end": "stop", "uncertainty": uc.columns("start", "stop")}, "of one time"),
        ({"begin": "start", "end": "stop", "uncertainty": uc.period("1s")}, "a period has one stamp"),
        ({"begin": "stop", "end": "start"}, "ends before it begins"),
        (
            {"begin": "start", "end": "stop", "duration": "id", "unit": "s"},
            "its begin by its length",
        ),
        ({"begin": "start", "duration": "took"}, "say their unit"),
        ({"begin": "start", "duration": "host", "unit": "s"}, "a length of time is a number"),
        ({"begin": "start", "end": "nosuch"}, "nosuch"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((OptionError, TraceError), match=message):
        uc.to_intervals(RAW, **{"uncertainty": uc.exact(), "tick": "1ms", **options})


def test_negative_lengths_are_refused() -> None:
    raw = RAW.set_column(RAW.schema.get_field_index("took"), "took", pa.array([5, -1]))
    with pytest.raises(TraceError, match="not negative"):
        uc.to_intervals(raw, begin="start", duration="took", unit="ms", uncertainty=uc.exact())


def test_events_that_have_not_ended_are_missing() -> None:
    raw = RAW.set_column(RAW.schema.get_field_index("stop"), "stop", pa.array([None, at(5_040)]))
    options: dict[str, Any] = {"begin": "start", "end": "stop", "uncertainty": uc.exact()}
    with pytest.raises(TraceError, match="there is no time"):
        uc.to_intervals(raw, **options)
    assert uc.to_intervals(raw, missing="drop", **options)["id"].to_pylist() == [2]


@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
def test_an_hour_that_clocks_showed_twice_is_no_end() -> None:
    twice = pa.table({"start": [dt.datetime(2025, 10, 26, 2, 30)], "stop": [dt.datetime(2025, 10, 26, 4)]})
    with pytest.raises(TraceError, match="showed the hour of its stamp twice"):
        uc.to_intervals(twice, begin="start", end="stop", uncertainty=uc.exact(), time_zone="Europe/Berlin")


@pytest.mark.parametrize("clocks", [False, True])
def test_events_shorter_than_their_unit_are_told(clocks: bool) -> None:
    rule: Any = uc.granularity("1s")
    if clocks:
        offsets = pa.table({"host": ["h"], "offset_lo": [-5_000], "offset_hi": [5_000]})
        rule = uc.clock_offset(offsets, key="host", unit="ms", shared=True, own=rule)
    raw = pa.table({"type": ["T"] * 3, "id": [1, 2, 3], "start": [at(0), at(0), at(0)], "host": ["h"] * 3,
                    "stop": [at(0), at(1_000), at(9_000)], "took": [50, 900, 8_500]})  # fmt: skip
    options: dict[str, Any] = {"begin": "start", "end": "stop", "uncertainty": rule, "tick": "1ms"}
    with pytest.warns(
        uc.UncertainCepWarning, match="^1 of 3 events that last may begin and end at one moment"
    ):
        assert uc.validate(uc.to_intervals(raw, **options)) == []
    # A warning would be an error.
    assert uc.validate(uc.to_intervals(raw, duration="took", unit="ms", **options)) == []
    assert uc.validate(uc.to_intervals(raw.slice(1), **options)) == []
    points = uc.to_intervals(raw.slice(1), time="start", uncertainty=rule, tick="1ms")
    assert uc.validate(points) == []
