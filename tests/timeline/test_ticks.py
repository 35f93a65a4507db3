"""How long a tick is: the column that says it, the default, and what a tick takes from the times."""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.traces.files import put, validation_report
from uncertain_cep.timeline.domain import Names, TimeDomain, with_noted_tick
from uncertain_cep.traces import (
    TraceSchema,
    by_value,
    clock_offset,
    columns,
    exact,
    intervals_of,
    plus_minus,
    read_traces,
)
from uncertain_cep.traces.intervals import Rounding, merged_times

HOUR = dt.timedelta(hours=1)
START = dt.datetime(2024, 5, 1)


def stamps(*times: dt.datetime, unit: str = "us") -> pa.Table:
    """Return rows of the types A, B, A, ... at some times."""
    kinds = ["AB"[row % 2] for row in range(len(times))]
    return pa.table({"type": kinds, "id": range(len(times)), "at": pa.array(times, pa.timestamp(unit))})


def confidences(events: Any, within: str, **options: Any) -> list[float]:
    matches = uc.match(events, f"PATTERN SEQ(A a, B b) WITHIN {within}", **options)
    return [float(value) for value in matches["confidence"].to_numpy()]


def coarse() -> pa.Table:
    """Return events whose confidence within 25 hours is 2/3 in ticks of an hour, 7/8 without a tick."""
    raw = stamps(START, START + 24 * HOUR)
    return uc.to_intervals(raw, time="at", uncertainty=plus_minus("1h"), tick="1h")


def test_the_kind_of_frame_does_not_change_the_answer() -> None:
    events = coarse()
    assert events.column("tick").to_pylist() == ["1h", "1h"]
    other = pa.table({"id": [0, 1], "colour": ["red", "blue"]})
    pandas, polars = events.to_pandas(), pl.DataFrame(events)
    frames = [events, events.replace_schema_metadata(None), events.join(other, "id"), pandas, polars]
    frames += [pandas.merge(other.to_pandas(), on="id"), polars.join(pl.DataFrame(other), on="id")]
    frames += [pd.concat([pandas, pandas.iloc[:0]]), pa.RecordBatchReader.from_batches(
        events.schema, events.to_batches()
    )]  # fmt: skip
    for frame in frames:
        assert confidences(frame, "25 h") == pytest.approx([2 / 3], rel=1e-9)
    assert confidences(pandas, "25 h", tick="1h") == pytest.approx([2 / 3], rel=1e-9)
    with pytest.raises(uc.QueryError, match="90min is not a whole number of ticks of 1h"):
        uc.match(polars, "PATTERN SEQ(A a, B b) WITHIN 1.5 h")
    for tick in ("30min", "1us", "2h"):
        with pytest.raises(uc.OptionError, match=rf"tick='{tick}': .* made with ticks of 1h"):
            uc.match(polars, "PATTERN SEQ(A a, B b) WITHIN 26 h", tick=tick)


def test_one_more_row_with_a_fraction_changes_no_confidence() -> None:
    second = dt.timedelta(seconds=1)
    confidence_lists = []
    for more in ([], [START + 3600 * second + second / 4]):
        for unit in ("s", "ms", "us", "ns"):
            if more and unit == "s":
                continue
            raw = stamps(START, START + second, *more, unit=unit)
            events = uc.to_intervals(raw, time="at", uncertainty=plus_minus("500ms"))
            confidence_lists.append(confidences(events, "10 s"))
    # All but the one pair of ticks of 1,000,001 by 1,000,001 in which both are at the same time.
    assert confidence_lists == [pytest.approx([1 - 1 / 1_000_001**2], rel=1e-12)] * 7


@pytest.mark.parametrize(("text", "long"), [("1h", "60min"), ("1s", "1000 ms")])
def test_spellings_of_one_tick_are_one_tick(text: str, long: str) -> None:
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 4], "upper": [1, 5]})
    for ticks in ([text, long], pa.array([long, text]).dictionary_encode()):
        noted = with_noted_tick(table.append_column("tick", pa.array(ticks)))
        assert TimeDomain.of(noted.schema).describe() == text


@pytest.mark.parametrize(
    ("ticks", "message"),
    [
        (["1s", "1ms"], "made with several ticks, such as 1s and 1ms: make the intervals of all with one"),
        (["1s", None], "some events have no tick, and others 1s: fill it in"),
        (["loud", "loud"], "value loud: it says how long a tick is, such as 100ms, .*names="),
        (["0s", "0s"], "value 0s: it says how long a tick is"),
        ([5, 5], "its type is int64, but it says how long a tick is, as text such as 100ms: an attribute"),
        ([dt.timedelta(seconds=1)] * 2, "its type is duration"),
    ],
)
@pytest.mark.parametrize("times", [[0, 4], [START, START + HOUR]])
def test_a_column_that_is_not_one_tick_is_an_error(ticks: list[Any], message: str, times: list[Any]) -> None:
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": times, "upper": times, "tick": ticks})
    query = "PATTERN SEQ(A a, B b) WITHIN 5" + (" s" if times[0] else "")
    for frame in (table, pl.DataFrame(table)):
        with pytest.raises(uc.TraceError, match=f"column 'tick'.*{message}"):
            uc.match(frame, query)
        with pytest.raises(uc.TraceError, match=f"column 'tick'.*{message}"):
            uc.explain(query, frame)
    if message.startswith("its type"):
        with pytest.raises(uc.TraceError, match=message):
            uc.IncrementalMatcher(query, table.schema)
    else:
        matcher = uc.IncrementalMatcher(query, table.schema)
        with pytest.raises(uc.TraceError, match=message):
            matcher.push(table)
    # It is an attribute as any other where the tick is called otherwise.
    assert len(uc.match(table, query, names={"tick": "length"})) == (1 if times[0] == 0 else 0)


def test_the_tick_is_no_attribute_unless_it_is_called_otherwise() -> None:
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 4], "upper": [0, 4], "tick": ["1s"] * 2})
    for where in ("[tick]", "a.tick = '1s'"):
        with pytest.raises(uc.QueryError, match=r'tick says how long a tick .*names=."tick"'):
            uc.match(table, f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 5")
        matches = uc.match(table, f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 5", names={"tick": "none"})
        assert matches.num_rows == 1
    intervals = uc.to_intervals(
        stamps(START, START + HOUR).append_column("tick", pa.array([7, 8])),
        time="at",
        uncertainty=exact(),
        names=Names(tick="length of a tick"),
    )
    matches = uc.match(
        intervals, "PATTERN SEQ(A a, B b) WHERE b.tick = 8 WITHIN 2 h", names={"tick": "length of a tick"}
    )
    assert matches.num_rows == 1
    with pytest.raises(uc.TraceError, match="column 'tick': there is such a column already"):
        uc.to_intervals(intervals, time="at", uncertainty=exact(), names=Names(lower="from", upper="to"))


def test_nobody_knows_the_tick_of_events_that_name_none() -> None:
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 4], "upper": [0, 4]})
    for unknown in (
        table,
        table.append_column("tick", pa.nulls(2)),
        table.append_column("tick", pa.nulls(2, pa.string())),
    ):
        assert uc.match(unknown, "PATTERN SEQ(A a, B b) WITHIN 5").num_rows == 1
        with pytest.raises(uc.QueryError, match="plain ticks of unknown length"):
            uc.match(unknown, "PATTERN SEQ(A a, B b) WITHIN 5 s")
    plain = uc.to_intervals(pa.table({"at": [1, 2]}), time="at", uncertainty=plus_minus(1))
    assert plain.column_names == ["at", "lower", "upper"]
    named = uc.to_intervals(pa.table({"at": [1, 2]}), time="at", uncertainty=plus_minus(1), tick="1s")
    assert named.column("tick").to_pylist() == ["1s", "1s"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_intervals_in_any_unit_have_ticks_of_a_microsecond(unit: str) -> None:
    times = pa.array([START, START + dt.timedelta(seconds=2)], pa.timestamp(unit))
    later = pa.array([START + dt.timedelta(seconds=1), START + dt.timedelta(seconds=2)], pa.timestamp(unit))
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": times, "upper": later})
    matches = uc.match(table, "PATTERN SEQ(A a, B b) WITHIN 1500 ms")
    assert matches.schema.field("range_lower").type == pa.timestamp("us" if unit in ("s", "ms") else unit)
    # A has to happen in the last half second: W consecutive ticks end with the one of B.
    assert matches.column("confidence").to_pylist() == pytest.approx([500_000 / 1_000_001], rel=1e-12)
    assert matches.column("range_lower").to_pylist()[0] == pd.Timestamp(START) + pd.Timedelta(
        microseconds=500_001
    )
    matcher = uc.IncrementalMatcher("PATTERN SEQ(A a, B b) WITHIN 1500 ms", table.schema)
    rows = matcher.push(table).to_pylist() + matcher.close().to_pylist()
    assert rows == matches.to_pylist()
    assert uc.match(table, "PATTERN SEQ(A a, B b) WITHIN 2 s", tick="1s").column(
        "confidence"
    ).to_pylist() == [0.5]
    if unit != "s":
        return
    with pytest.raises(uc.OptionError, match="tick 1500ms is neither a multiple nor a part"):
        uc.match(table, "PATTERN SEQ(A a, B b) WITHIN 3 s", tick="1500ms")


def test_times_finer_than_a_microsecond_ask_for_a_tick() -> None:
    times = pa.array([1_000, 2_001], pa.timestamp("ns"))
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": times, "upper": times})
    with pytest.raises(uc.TraceError, match=r'row 2, column .lower.*finer than a tick of 1us.*tick="1ns"'):
        uc.match(table, "PATTERN SEQ(A a, B b) WITHIN 1 s")
    assert uc.match(table, "PATTERN SEQ(A a, B b) WITHIN 1 s", tick="1ns").num_rows == 1
    raw = pa.table({"type": ["A", "B"], "id": [1, 2], "at": times})
    with pytest.raises(uc.TraceError, match=r'row 2, column .at.*finer than 1us, the default.*tick="1ns"'):
        uc.to_intervals(raw, time="at", uncertainty=plus_minus("1ms"))
    halves = pa.table({"at": pa.array([0, 43_200_000]).cast(pa.date64(), safe=False)})
    with pytest.raises(uc.TraceError, match=r'row 2, .*finer than 1d, the default tick.*tick="1h"'):
        uc.to_intervals(halves, time="at", uncertainty=exact())
    # Beyond the years that Python's dates have.
    later = pa.table({"at": pa.array([2**61]).view(pa.date64())})
    with pytest.raises(uc.TraceError, match=f"row 1, column .at., value {2**61} ms: finer than 1d"):
        uc.to_intervals(later, time="at", uncertainty=exact())


def test_ticks_that_nobody_chose_are_not_counted() -> None:
    raw = stamps(START, START + HOUR).append_column("p", pa.array([[0.5, 0.5]] * 2))
    raw = raw.append_column("host", pa.array(["h", "h"]))
    rules: list[Any] = [plus_minus(5), uc.granularity(5), uc.window(5), uc.histogram("p")]
    rules.append(clock_offset({"h": (-1, 1)}, unit="tick"))
    for rule in rules:
        with pytest.raises(uc.OptionError, match="no tick is given: give a length of time, or tick="):
            uc.to_intervals(raw, time="at", uncertainty=rule)
        uc.to_intervals(raw, time="at", uncertainty=rule, tick="1s")
    events = uc.to_intervals(raw, time="at", uncertainty=plus_minus("5s"))
    with pytest.warns(uc.UncertainCepWarning, match="EVERY 5 counts ticks of 1us here, which is 5us"):
        uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 2 h RETURN EXPECTED COUNT EVERY 5")


@pytest.mark.parametrize(
    ("rule", "tick"),
    [
        (exact(), "1d"),
        (plus_minus("1d"), "1d"),
        (plus_minus(2), "1d"),
        (uc.granularity("1w"), "1d"),
        (plus_minus("36h"), "1us"),
        (uc.window("12h"), "1us"),
        (clock_offset({"h": (-1, 1)}, unit="d"), "1d"),
        (clock_offset({"h": (-24, 1)}, unit="h"), "1us"),
        (by_value("host", {"h": exact()}, plus_minus("1h")), "1us"),
        (columns("at", "at + slack"), "1us"),
    ],
)
def test_dates_have_ticks_of_a_day_unless_a_length_is_not_whole_days(rule: Any, tick: str) -> None:
    table = pa.table({"at": [START.date()], "host": ["h"], "slack": [dt.timedelta(days=1)]})
    for part in (table, table.slice(0, 0)):
        made = intervals_of(part, time="at", uncertainty=rule)
        assert TimeDomain.of(made.schema).describe() == tick


def test_dates_in_files_are_dates_whatever_the_format(tmp_path: Path) -> None:
    flags = TraceSchema.from_flags(time="at", uncertainty="granularity:1d")
    csv = put(tmp_path / "a.csv", "type,id,at\nA,1,2024-05-01\nB,2,2024-05-01\n")
    lines = put(
        tmp_path / "b.jsonl",
        '{"type": "A", "id": 1, "at": "2024-05-01"}\n{"type": "B", "id": 2, "at": "2024-05-01"}\n',
    )
    for path in (csv, lines):
        events = read_traces(path, flags)
        assert set(events.column("tick").to_pylist()) == {"1d"}
        assert confidences(events, "2 d") == []
    midnights = put(tmp_path / "c.jsonl", '{"type": "A", "id": 1, "at": "2024-05-01 00:00:00"}\n')
    assert read_traces(midnights, flags).column("tick").to_pylist() == ["1us"]
    # Beside a file with times, days are not ticks.
    both = read_traces([csv, midnights], flags)
    assert set(both.column("tick").to_pylist()) == {"1us"}


def test_exact_stamps_that_a_tick_merges_are_counted_and_said(tmp_path: Path) -> None:
    ms = dt.timedelta(milliseconds=1)
    times = [START + part * ms for part in (0, 40, 100, 100, 250, 260, 299)]
    said = "5 certain times share a tick of 100ms with different ones: none of these is before the other"
    raw = stamps(*times)
    for frame in (raw, raw.to_batches()[0], raw.to_pandas(), pl.DataFrame(raw)):
        with pytest.warns(uc.UncertainCepWarning, match=said):
            uc.to_intervals(frame, time="at", uncertainty=exact(), tick="100ms")
    path = tmp_path / "raw.csv"
    path.write_text("".join(["type,id,at\n", *(f"A,{row},{at}\n" for row, at in enumerate(times))]))
    flags = TraceSchema.from_flags(time="at", uncertainty="exact", tick="100ms")
    with pytest.warns(uc.UncertainCepWarning, match=said):
        read_traces(path, flags)
    report = validation_report(path, flags)
    assert (report.merged, report.floored, report.tick) == (5, 0, "100ms")
    # Across files, too.
    first = put(tmp_path / "a.csv", "type,id,at\nA,1,2024-05-01 00:00:00\n")
    second = put(tmp_path / "b.csv", "type,id,at\nB,2,2024-05-01 00:00:00.040\n")
    assert validation_report([first, second], flags).merged == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        uc.to_intervals(raw, time="at", uncertainty=exact(), tick="1ms")
        uc.to_intervals(raw, time="at", uncertainty=exact())
        uc.to_intervals(raw, time="at", uncertainty=plus_minus("100ms"), tick="100ms")


def test_offsets_and_lengths_of_rows_are_rounded_down_and_counted(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "type,id,at,host,slack\nA,1,1000,h,3\nA,2,1000,g,10\nA,3,1000,h,15\n")
    put(tmp_path / "offsets.csv", "host,offset_lo,offset_hi\nh,-5,10\ng,-10,20\n")
    offsets = TraceSchema.from_flags(
        time="at", unit="ms", uncertainty=f"clock_offset:{tmp_path}/offsets.csv:host", tick="10ms"
    )
    assert validation_report(path, offsets).floored == 2
    slacks = TraceSchema.from_flags(unit="ms", uncertainty="columns:at,at + slack", tick="10ms")
    assert validation_report(path, slacks).floored == 2
    rows = read_traces(path, slacks).column("upper").cast(pa.int64()).to_pylist()
    assert rows == [1000, 1010, 1010]


@given(st.lists(st.integers(-30, 30), max_size=30), st.integers(1, 12), st.data())
def test_merged_times_are_those_with_another_in_their_tick(
    times: list[int], tick: int, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(times)))
    expected = sum(any(one // tick == other // tick and one != other for other in times) for one in times)
    parts = []
    for part in (times[:cut], times[cut:]):
        lower = np.array(part, np.int64)
        rests = lower % tick
        parts.append(Rounding.of(lower // tick, lower // tick, rests if rests.any() else None, None, 0))
    assert merged_times(parts) == expected


def test_explain_shows_the_tick() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 25 h"

    def row(label: str, events: pa.Table, text: str = query, **options: Any) -> str:
        lines = [line.split(maxsplit=1) for line in uc.explain(text, events, **options).splitlines()]
        return next(text for first, text in lines if first == label)

    assert row("tick", coarse()) == "1h"
    assert row("window", coarse()) == "25h: 25 ticks of 1h"
    default = uc.to_intervals(stamps(START, START + HOUR), time="at", uncertainty=plus_minus("1h"))
    assert row("tick", default) == "1us, the default"
    assert row("tick", default, tick="1us") == "1us"
    plain = pa.table({"type": ["A"], "id": [1], "lower": [0], "upper": [0]})
    count = "PATTERN SEQ(A a, B b) WITHIN 5"
    assert row("tick", plain, count) == "of no named length: times are whole numbers"
    assert row("window", plain, count) == "5 ticks"
    assert '"tick": "1h"' in uc.explain(query, coarse(), format="json")


def test_limits_of_ticks_say_to_give_a_longer_one() -> None:
    raw = stamps(START, START + HOUR)
    events = uc.to_intervals(raw, time="at", uncertainty=plus_minus("1h"))
    with pytest.raises(uc.OptionError, match='give a longer tick, such as tick="1ms"'):
        uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 2 h", evaluation="point")
    minute = dt.timedelta(minutes=1)
    near = stamps(*(START + n * minute for n in range(5)))
    fine = uc.to_intervals(near, time="at", uncertainty=plus_minus("2min"))
    coarser = uc.to_intervals(near, time="at", uncertainty=plus_minus("2min"), tick="1s")
    negated = "PATTERN SEQ(A a, !B n, A b, A c) WITHIN 9 min"
    with pytest.raises(uc.ConfidenceCostError, match=r'takes about.* a longer tick, such as tick="1s" where'):
        uc.match(fine, negated)
    assert uc.match(coarser, negated).num_rows == 3
    second = pa.array([START, START + dt.timedelta(seconds=1)])
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": second, "upper": second, "pmf": [[1.0]] * 2})
    assert confidences(table, "10 s") == [1.0]
    wide = table.set_column(3, "upper", pa.array([START + HOUR] * 2))
    with pytest.raises(
        uc.TraceError, match='ticks of 1us: give one for each tick, or say how long a tick is, tick="1s"'
    ):
        uc.match(wide, "PATTERN SEQ(A a, B b) WITHIN 10 s")
    hours = wide.set_column(2, "lower", pa.array([START] * 2))
    hours = hours.set_column(4, "pmf", pa.array([[0.5, 0.5]] * 2))
    assert confidences(hours, "2 h", tick="1h") == [0.25]


def test_streams_hold_their_events_to_one_tick() -> None:
    events = coarse()
    query = "PATTERN SEQ(A a, B b) WITHIN 25 h"
    for schema, options in ((events.schema, {}), (events.schema.remove_metadata(), {"tick": "1h"})):
        matcher = uc.IncrementalMatcher(query, schema, **options)  # type: ignore[arg-type]
        rows = pa.Table.from_batches([matcher.push(events), matcher.close()])
        assert rows.column("confidence").to_pylist() == pytest.approx([2 / 3], rel=1e-9)
    matcher = uc.IncrementalMatcher(query, events.schema.remove_metadata())
    with pytest.raises(
        uc.TraceError, match='ticks of 1h, but a tick is 1us here: give the matcher tick="1h"'
    ):
        matcher.push(events)
    plain = pa.table({"type": ["A"], "id": [1], "lower": [0], "upper": [0], "tick": ["1s"]})
    ticks = uc.IncrementalMatcher("PATTERN SEQ(A a, B b) WITHIN 5", plain.schema)
    ticks.push(plain)
    ticks.push({"type": "B", "id": 2, "lower": 3, "upper": 3})
    with pytest.raises(uc.TraceError, match="ticks of 1min, but a tick is 1s here"):
        ticks.push({"type": "B", "id": 3, "lower": 4, "upper": 4, "tick": "1min"})


def test_matches_as_events_keep_the_tick() -> None:
    for frame in (coarse(), coarse().to_pandas(), pl.DataFrame(coarse())):
        matches = uc.match(frame, "PATTERN SEQ(A a, B b) WITHIN 25 h")
        joined = uc.with_matches(frame, matches, "X")
        assert set(joined["tick"].to_pylist() if isinstance(joined, pa.Table) else joined["tick"]) == {"1h"}
        assert len(uc.match(joined, "PATTERN SEQ(A a, X x) WITHIN 25 h")) == 1
        alone = uc.to_events(matches, "X", tick="60min")
        assert list(alone["tick"].to_pylist() if isinstance(alone, pa.Table) else alone["tick"]) == ["1h"]


@given(
    whole=st.integers(-(10**10), 10**10),
    digits=st.integers(0, 9),
    fraction=st.integers(0, 10**9 - 1),
    unit=st.sampled_from(["s", "ms", "us", "ns", "min"]),
)
def test_float_stamps_and_lengths_are_what_their_shortest_text_says(
    whole: int, digits: int, fraction: int, unit: str
) -> None:
    nanoseconds = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}[unit]
    # As many digits as a double holds, and none beyond a nanosecond.
    digits = min(digits, 15 - len(str(abs(whole))), len(str(nanoseconds)) - 1)
    text = f"{whole}.{fraction % 10 ** max(digits, 0):0{max(digits, 1)}d}"
    exactly = Decimal(text) * nanoseconds
    if not abs(exactly) < 2**62:
        return
    raw = pa.table({"type": ["A"], "id": [1], "at": [float(text)], "none": [0.0]})
    options: dict[str, Any] = {"uncertainty": exact(), "unit": unit, "tick": "1ns"}
    for time in ("at", "none + at"):
        events = uc.to_intervals(raw, time=time, **options)
        assert events.column("lower").cast(pa.int64()).to_pylist() == [int(exactly)]


def test_float_stamps_of_today_are_exact_to_a_microsecond() -> None:
    for unit, value in (("s", 1767600000.123456), ("ms", 1767600000123.456), ("us", 1767600000123456.0)):
        raw = pa.table({"type": ["A"], "id": [1], "at": [value]})
        events = uc.to_intervals(raw, time="at", uncertainty=exact(), unit=unit, tick="1ns")
        assert events.column("lower").cast(pa.int64()).to_pylist() == [1767600000123456000]


def test_float_stamps_between_two_default_ticks_are_refused(tmp_path: Path) -> None:
    lines = '{"type": "B", "id": 1, "at": 1000.123}\n{"type": "A", "id": 2, "at": 1000.456}\n'
    file = put(tmp_path / "a.jsonl", lines)
    schema = TraceSchema.from_flags(time="at", unit="us", uncertainty="exact")
    with pytest.raises(
        uc.TraceError, match=r'finer than 1us, the default tick: give a shorter one.*tick="1ns"'
    ):
        read_traces([file], schema)
    events = read_traces([file], schema, tick="1ns")
    matches = uc.match(events, "PATTERN SEQ(B a, A b) WITHIN 10 us")
    assert matches.column("range_lower").cast(pa.int64()).to_pylist() == [1000123]
    assert matches.column("range_upper").cast(pa.int64()).to_pylist() == [1000456]
    assert uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 10 us").num_rows == 0


@given(
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.sampled_from(["1ns", "1us", "3us", "1ms", "7ms", "1s", "1500ms"]),
    st.lists(st.none() | st.integers(-(10**6), 10**6)),
)
def test_lengths_of_any_unit_are_ticks_rounded_down(unit: str, tick: str, lengths: list[int | None]) -> None:
    schema = pa.schema([(name, pa.timestamp("ns")) for name in ("lower", "upper")])
    domain = TimeDomain.of(schema, Names(), tick)
    nanoseconds = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[unit]
    expected = [(length or 0) * nanoseconds // (domain.tick_nanoseconds or 1) for length in lengths]
    column = pa.chunked_array([pa.array(lengths, pa.int64()).cast(pa.duration(unit))])
    assert domain.lengths(column).tolist() == expected
