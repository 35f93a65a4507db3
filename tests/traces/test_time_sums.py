"""Times of schemas as sums, against plain integer arithmetic: every unit, zones, nulls, and overflow."""

from __future__ import annotations

import datetime as dt
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.traces.test_uncertainty import bounds
from uncertain_cep.errors import OptionError, TraceError, UncertainCepWarning
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS, parse_duration
from uncertain_cep.traces import columns, exact, granularity, intervals_of, plus_minus
from uncertain_cep.traces.time_sums import TimeSum, added_to, named_column, parse_sum

UNITS = ("ns", "us", "ms", "s")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("at", TimeSum("at")),
        (" Time Stamp ", TimeSum("Time Stamp")),
        ("at - 60 s", TimeSum("at", nanoseconds=-60 * 10**9)),
        ("at  -  1min 30s  +  2 ms", TimeSum("at", nanoseconds=-89_998_000_000)),
        ("at + slack", TimeSum("at", ((1, "slack"),))),
        ("at - 2 * slack + 3 * 4 * 1 us", TimeSum("at", ((-2, "slack"),), 12_000)),
        ("at + slack * 3 - 5", TimeSum("at", ((3, "slack"),), 0, -5)),
        ("req-time + 1.5 s", TimeSum("req-time", nanoseconds=1_500_000_000)),
        ("`a - b` - `60 s`", TimeSum("a - b", ((-1, "60 s"),))),
        ("60 s", TimeSum("60 s")),
        ("2024", TimeSum("2024")),
        ("at + `95th`", TimeSum("at", ((1, "95th"),))),
    ],
)
def test_sums(text: str, made: TimeSum) -> None:
    assert parse_sum(text) == made
    assert parse_sum(named_column(made.column) + added_to(text)) == made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("at - 60 sek", "character 6: length '60 sek' is not a length of time"),
        ("at + 95th", "a column of this name is written `95th`"),
        ("at - 5 s 6", "character 6: length '5 s 6' is not a length of time"),
        ("at -60 s", "character 1, 'at -60 s': write spaces around -"),
        ("at-60s", "write spaces around -, or `at-60s`"),
        ("at + b - 60s -1 ms", r"character 10, '60s -1 ms': write spaces around -"),
        ("at -", "character 4: nothing stands behind -"),
        ("at +  + b", r"nothing stands behind \+"),
        ("- 60 s", "a sum begins with the column of the stamps"),
        ("60 s + at", "character 1, '60 s': a sum begins with the column of the stamps"),
        ("at * 2", "character 6, '2': only lengths can be multiplied, not the stamps"),
        ("at + 1.5", "character 6, '1.5': write a unit"),
        ("at + a * b", "character 10, 'b': lengths are multiplied by whole numbers alone"),
        ("at + 300000 d", "it must be at least 0 and less than 292 years"),
        ("at + 20000 d * 9", "adds up to more than 292 years"),
    ],
)
def test_sums_that_cannot_be_read(text: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        parse_sum(text)
    with pytest.raises(OptionError):
        columns("at", text)


@given(
    st.text(st.sampled_from("ab 1s+-*"), min_size=1, max_size=12).filter(lambda name: name == name.strip())
)
def test_a_named_column_is_that_column(name: str) -> None:
    assert parse_sum(named_column(name)) == TimeSum(name)


@st.composite
def lengths(draw: st.DrawFn) -> tuple[str, int]:
    unit = draw(st.sampled_from(("ns", "us", "ms", "s", "min", "h", "d")))
    number = draw(st.integers(0, 2_000))
    return f"{number}{draw(st.sampled_from(('', ' ')))}{unit}", number * UNIT_NANOSECONDS[unit]


@given(st.data())
def test_sums_of_lengths_and_columns_are_exact(data: st.DataObject) -> None:
    """Any unit of stamps, zone, tick, lengths and columns of lengths, with nulls: floor of the exact sum."""
    unit = data.draw(st.sampled_from(UNITS))
    zone = data.draw(st.sampled_from((None, "UTC", "Europe/Prague", "+05:30")))
    length_unit = data.draw(st.sampled_from(UNITS))
    tick, tick_length = data.draw(
        st.sampled_from((("1ns", 1), ("7us", 7_000), ("1s", 10**9), ("3min", 18 * 10**10)))
    )
    count = data.draw(st.integers(1, 5))
    numbers = st.one_of(st.none(), st.integers(-(10**9), 10**9))
    stamps, slack, durations = (
        data.draw(st.lists(numbers, min_size=count, max_size=count)) for _ in range(3)
    )
    raw = pa.table(
        {
            "at": pa.array(stamps, pa.int64()).cast(pa.timestamp(unit, zone)),
            "slack": pa.array(slack, pa.int64()),
            "took": pa.array(durations, pa.int64()).cast(pa.duration("us")),
        }
    )
    text, scale = "at", UNIT_NANOSECONDS[length_unit]
    sums = [None if stamp is None else stamp * UNIT_NANOSECONDS[unit] for stamp in stamps]
    for _ in range(data.draw(st.integers(0, 3))):
        sign = data.draw(st.sampled_from("+-"))
        term, values = data.draw(
            st.one_of(
                lengths().map(lambda pair: (pair[0], [pair[1]] * count)),
                st.integers(0, 5).map(
                    lambda k: (f"{k} * slack", [None if one is None else k * scale * one for one in slack])
                ),
                st.just(("took", [None if one is None else 1000 * one for one in durations])),
            )
        )
        text += f" {sign} {term}"
        factor = 1 if sign == "+" else -1
        sums = [a if a is None or b is None else a + factor * b for a, b in zip(sums, values, strict=True)]
        sums = [None if b is None else a for a, b in zip(sums, values, strict=True)]
    rule = data.draw(st.sampled_from((exact(), columns(text, text))))
    made = intervals_of(raw, time=text, uncertainty=rule, unit=length_unit, tick=tick, missing="drop")
    per_tick = UNIT_NANOSECONDS[made.schema.field("lower").type.unit]
    expected = [one // tick_length * tick_length // per_tick for one in sums if one is not None]
    assert bounds(made) == [(one, one) for one in expected]
    assert made.schema.field("lower").type.tz == zone


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=5),
    st.integers(-500, 500),
    st.integers(0, 9),
)
def test_sums_of_plain_ticks(stamps: list[int], moved: int, by: int) -> None:
    raw = pa.table({"t": stamps})
    text = f"t {'-' if moved < 0 else '+'} {abs(moved)}"
    made = intervals_of(raw, time=text, uncertainty=plus_minus(by))
    assert bounds(made) == [(stamp + moved - by, stamp + moved + by) for stamp in stamps]


@pytest.mark.parametrize("by", [("1 s + 200 ms", 1_200), ("2s - 1999 ms", 1), ("1 h - 59 min - 59 s", 1_000)])
def test_lengths_may_be_sums(by: tuple[str, int]) -> None:
    text, milliseconds = by
    assert parse_duration(text) == milliseconds * 10**6
    made = intervals_of(
        pa.table({"t": [5_000]}), time="t", uncertainty=granularity(text), unit="ms", tick="1ms"
    )
    assert bounds(made) == [(5_000, 5_000 + milliseconds - 1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 s - 2 s", "at least 0"),
        ("1 s + 2 parsec", "'2 parsec' is not a length"),
        ("1 s + ", "is not a length"),
    ],
)
def test_sums_of_lengths_that_are_none(text: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        granularity(text)


def test_times_beyond_64_bits_are_refused_with_their_row() -> None:
    far = pa.table({"t": pa.array([0, 2**63 - 5], pa.int64()).cast(pa.timestamp("ns"))})
    with pytest.raises(TraceError, match=r"row 2, .*does not fit into 64 bits"):
        intervals_of(far, time="t + 5 ns", uncertainty=exact(), tick="1ns")
    assert len(intervals_of(far, time="t + 4 ns", uncertainty=exact(), tick="1ns")) == 2
    rows = pa.table({"t": [0], "d": [2**62]})
    with pytest.raises(TraceError, match="adds up to more than 292 years"):
        intervals_of(rows, time="t + 2 * d", uncertainty=exact(), tick="1ns", unit="ns")
    with pytest.raises(TraceError, match="adds up to more than 292 years"):
        intervals_of(rows, time="t + d", uncertainty=plus_minus("200 d + 70000 d"), tick="1ns", unit="ns")


def test_what_a_number_counts_is_never_guessed() -> None:
    rows = pa.table({"t": [1_000]})
    with pytest.raises(
        OptionError, match="200 may be a number of ms or of ticks: write a unit, such as 200 ms"
    ):
        intervals_of(rows, time="t - 200", uncertainty=exact(), unit="ms", tick="1s")
    with pytest.raises(OptionError, match="1min is a length of time, but the times are plain whole numbers"):
        intervals_of(rows, time="t - 60 s", uncertainty=exact())
    with pytest.raises(OptionError, match="1ns must be whole ticks of 1us"):
        intervals_of(rows, time="t - 1 ns", uncertainty=exact(), unit="ms")
    took = pa.table({"t": [1_000], "took": pa.array([1], pa.duration("s"))})
    with pytest.raises(OptionError, match="column 'took' is a length of time, but the times are plain"):
        intervals_of(took, time="t + took", uncertainty=exact())


def test_dates_moved_by_less_than_a_day_have_no_ticks_of_a_day() -> None:
    days = pa.table({"t": pa.array([dt.date(1970, 1, 2)])})
    assert bounds(intervals_of(days, time="t - 1 d", uncertainty=granularity("1d"))) == [(0, 0)]
    moved = intervals_of(days, time="t - 1 h", uncertainty=exact())
    assert bounds(moved) == [(23 * 3600 * 10**6,) * 2]
    bound = intervals_of(days, time=None, uncertainty=columns("t - 1 h", "t"))
    assert bounds(bound) == [(23 * 3600 * 10**6, 24 * 3600 * 10**6)]


def test_frames_of_all_kinds_are_moved_alike() -> None:
    raw = pa.table({"at": pa.array([60_000, 61_500]).cast(pa.timestamp("ms")), "type": ["A", "B"]})
    options: dict[str, Any] = {
        "time": "at - 60 s",
        "uncertainty": "columns:at - 60 s,at + 500 ms",
        "tick": "1ms",
    }
    expected = [(0, 60_500), (1_500, 62_000)]
    assert bounds(uc.to_intervals(raw, **options)) == expected
    for frame in (raw.to_pandas(), pl.from_arrow(raw)):
        made = uc.to_intervals(frame, **options)
        table = pa.Table.from_pandas(made) if isinstance(made, pd.DataFrame) else made.to_arrow()
        times = [table.column(name).cast(pa.timestamp("ms")).cast(pa.int64()) for name in ("lower", "upper")]
        assert list(zip(*(one.to_pylist() for one in times), strict=True)) == expected


AVERAGES = """
tick = "1s"

[[events]]
type = "CpuBegin"
id = "{n}:begin"
time = TIME_BEGIN
time_format = "%d.%m.%Y %H:%M:%S"
time_zone = "Europe/Prague"
uncertainty = { kind = "exact" }

[[events]]
type = "CpuEnd"
id = "{n}:end"
time = ["Day", "Time"]
time_format = "%d.%m.%Y %H:%M:%S"
time_zone = "Europe/Prague"
uncertainty = { kind = "exact" }
"""


def test_a_period_of_one_row_is_two_events(tmp_path: Path) -> None:
    """The hour that Prague's clocks skip lies between the two ends of the first row."""
    (tmp_path / "cpu.csv").write_text(
        "n,Day,Time,load\n1,31.03.2024,03:00:30,0.5\n2,31.03.2024,03:01:30,0.7\n"
    )
    schema = tmp_path / "schema.toml"
    schema.write_text(AVERAGES.replace("TIME_BEGIN", '["Day", "Time - 60 s"]'))
    events = uc.read_traces(tmp_path / "cpu.csv", schema)
    lower = {key: str(value) for key, value in zip(events["id"].to_pylist(), events["lower"], strict=True)}
    assert lower == {
        "1:begin": "2024-03-31 00:59:30",
        "2:begin": "2024-03-31 01:00:30",
        "1:end": "2024-03-31 01:00:30",
        "2:end": "2024-03-31 01:01:30",
    }
    query = """PATTERN SEQ(CpuBegin b, CpuEnd e) WHERE b.n = e.n AND b.load > 0.6
               AND TIME(e) - TIME(b) = 60 s WITHIN 100 s"""
    assert uc.match(events, query)["confidence"].to_pylist() == [1.0]


def test_mistakes_of_a_schema_name_their_key(tmp_path: Path) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text(
        AVERAGES.replace("TIME_BEGIN", '"Time -60 s"').replace(
            '{ kind = "exact" }', '{ kind = "columns", lower = "at - 5 sek", upper = "at" }', 1
        )
    )
    with pytest.raises(TraceError) as caught:
        uc.load_schema(schema)
    said = str(caught.value)
    for part in (
        "events[1].time", "write spaces around -",
        "events[1].uncertainty.lower", "'5 sek' is not a length of time",
    ):  # fmt: skip
        assert part in said


def test_the_repeated_hour_is_decided_before_lengths_are_taken_off() -> None:
    """A minute before 02:00:30 there may be 01:59:30, or 02:59:30 by clocks not yet set back."""
    raw = pa.table({"at": ["2024-10-27 02:00:30"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncertainCepWarning)
        made = uc.to_intervals(
            raw, time="at - 60 s", uncertainty=exact(), tick="30s", time_zone="Europe/Prague"
        )
    first, last = (dt.datetime(2024, 10, 26, 23, 59, 30), dt.datetime(2024, 10, 27, 0, 59, 30))
    assert [str(made[name][0])[:19] for name in ("lower", "upper")] == [str(first), str(last)]
    pmf = made["pmf"][0].as_py()
    assert (len(pmf), pmf[0], pmf[-1], sum(pmf)) == (121, 0.5, 0.5, 1.0)
