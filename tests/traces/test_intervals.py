"""Stamps of every kind, and every kind of frame."""

from __future__ import annotations

import datetime as dt
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.intervals import to_intervals
from uncertain_cep.timeline.domain import TICK_METADATA, Names, TimeDomain
from uncertain_cep.traces import (
    by_value,
    clock_offset,
    columns,
    exact,
    histogram,
    intervals_of,
    plus_minus,
    window,
)


def lower(table: pa.Table) -> list[str]:
    return table.column("lower").cast(pa.string()).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("values", "unit", "dtype", "tick"),
    [
        (pa.array([5], pa.uint8()), None, pa.int64(), None),
        (pa.array([5.0, None]), "tick", pa.int64(), None),
        (pa.array([5]), "ms", pa.timestamp("us"), b"1us"),
        (pa.array([5.5]), "s", pa.timestamp("us"), b"1us"),
        (pa.array([5000]), "ns", pa.timestamp("us"), b"1us"),
        (pa.array([5], pa.timestamp("s", "Asia/Tokyo")), None, pa.timestamp("us", "Asia/Tokyo"), b"1us"),
        (pa.array([5000], pa.timestamp("ns")), None, pa.timestamp("us"), b"1us"),
        (pa.array([dt.date(2024, 1, 1)]), None, pa.timestamp("s"), b"1d"),
        (pa.array([0], pa.date64()), None, pa.timestamp("s"), b"1d"),
        (pa.array(["2024-01-01"]), None, pa.timestamp("us"), b"1us"),
        (pa.array(["2024-01-01"]).dictionary_encode(), None, pa.timestamp("us"), b"1us"),
        (pa.array(["2024-01-01"], pa.large_string()), None, pa.timestamp("us"), b"1us"),
        (pa.array([None], pa.null()), None, pa.timestamp("us"), b"1us"),
        (pa.array([None], pa.null()), "ms", pa.timestamp("us"), b"1us"),
    ],
)
def test_the_type_of_stamps_alone_tells_type_and_tick(
    values: pa.Array, unit: str | None, dtype: pa.DataType, tick: bytes | None
) -> None:
    raw = pa.table({"t": values})
    for part in (raw, raw.slice(0, 0)):
        made = intervals_of(part, time="t", uncertainty=exact(), unit=unit, missing="drop")
        assert made.schema.field("lower").type == made.schema.field("upper").type == dtype
        assert made.schema.metadata == (None if tick is None else {TICK_METADATA: tick})
        assert ("tick" in made.column_names) == (tick is not None)
        assert tick is None or set(made.column("tick").to_pylist()) <= {tick.decode()}


@pytest.mark.parametrize(
    ("tick", "unit"), [("1s", "s"), ("1500ms", "ms"), ("100us", "us"), ("7ns", "ns"), ("2min", "s")]
)
def test_times_have_the_coarsest_unit_in_which_the_tick_is_whole(tick: str, unit: str) -> None:
    made = intervals_of(pa.table({"t": [1]}), time="t", uncertainty=exact(), unit="us", tick=tick)
    assert made.schema.field("lower").type == pa.timestamp(unit)
    assert TimeDomain.of(made.schema).describe() == tick


def test_iso_text_with_and_without_zone() -> None:
    naive = [
        "2024-01-01",
        "2024-01-01 10:30",
        "2024-01-01T10:30:00.123456789",
        "1969-12-31T23:59:59.999999",
    ]
    zoned = ["2024-01-01T10:30:00Z", "2024-01-01T10:30:00.5+02:00", "2024-01-01 10:30:00-0130"]
    with pytest.raises(TraceError, match=r'row 3, .*finer than 1us, the default tick: .*tick="1ns"'):
        intervals_of(pa.table({"t": naive}), time="t", uncertainty=exact())
    assert lower(intervals_of(pa.table({"t": naive}), time="t", uncertainty=exact(), tick="1us")) == [
        "2024-01-01 00:00:00.000000",
        "2024-01-01 10:30:00.000000",
        "2024-01-01 10:30:00.123456",
        "1969-12-31 23:59:59.999999",
    ]
    assert lower(intervals_of(pa.table({"t": zoned}), time="t", uncertainty=exact())) == [
        "2024-01-01 10:30:00.000000",
        "2024-01-01 08:30:00.500000",
        "2024-01-01 12:00:00.000000",
    ]
    with pytest.raises(TraceError, match="no time zone, and other stamps of this column have one"):
        intervals_of(pa.table({"t": naive + zoned}), time="t", uncertainty=exact())


def test_every_bad_text_is_named() -> None:
    times = ["2024-01-01"] * 1000
    for row in (17, 500, 999):
        times[row] = "soon"
    with pytest.raises(TraceError) as caught:
        intervals_of(pa.table({"t": times}), time="t", uncertainty=exact())
    assert [fault.row for fault in caught.value.faults] == [18, 501, 1000]
    assert str(caught.value.faults[0]).startswith("row 18, column 't', value 'soon': no ISO 8601 time")


def test_many_bad_rows_are_counted_not_listed() -> None:
    with pytest.raises(TraceError) as caught:
        intervals_of(pa.table({"t": pa.nulls(1000, pa.int64())}), time="t", uncertainty=exact())
    assert len(caught.value.faults) == 21
    assert "the same in 980 more rows" in str(caught.value.faults[-1])


def test_decimal_seconds_do_not_slip_into_the_tick_before() -> None:
    stamps = [1661140279 + thousandth / 1000 for thousandth in range(1000)]
    made = intervals_of(pa.table({"t": stamps}), time="t", uncertainty=exact(), unit="s", tick="1ms")
    assert made.column("lower").cast(pa.int64()).to_pylist() == [1661140279000 + i for i in range(1000)]


@pytest.mark.parametrize(
    ("values", "unit", "tick", "message"),
    [
        (pa.array([1.5]), None, None, "row 1, column 't', value 1.5: times in plain ticks must be whole"),
        (pa.array([math.inf]), "s", None, "too large for a time"),
        (pa.array([1e300]), "s", None, "too large for a time"),
        (pa.array([2**63], pa.uint64()), "s", None, "beyond 64 bits"),
        (pa.array([0, 2**62]), "s", "1ms", "row 2, .*does not fit into 64 bits"),
        (pa.array([-(2**62)]), "s", "1ms", "row 1, .*does not fit into 64 bits"),
        (pa.array(["9999-12-31"]), None, None, "no ISO 8601 time from 1678 to 2262"),
        (pa.array([True]), None, None, "its type is bool, which is no time"),
        (pa.array([dt.time(12)]), None, None, "which is no time"),
        (pa.array([[1]]), None, None, "which is no time"),
    ],
)
def test_values_that_are_no_times(values: pa.Array, unit: str | None, tick: str | None, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        intervals_of(pa.table({"t": values}), time="t", uncertainty=exact(), unit=unit, tick=tick)


def test_options_that_cannot_be_used() -> None:
    raw = pa.table({"t": [1]})
    for options in ({"unit": "fortnight"}, {"tick": "soon"}, {"tick": "0s"}, {"missing": "ignore"}):
        with pytest.raises(OptionError):
            intervals_of(raw, time="t", uncertainty=exact(), **options)
    with pytest.raises(TraceError, match="column 'at': there is no such column; the trace has t"):
        intervals_of(raw, time="at", uncertainty=exact())
    mixed = pa.table({"a": [1], "b": pa.array([1], pa.timestamp("ms"))})
    with pytest.raises(TraceError, match="column 'a': it holds plain numbers, but column 'b' holds times"):
        intervals_of(mixed, time=None, uncertainty=columns("a", "b"))


def test_no_column_is_overwritten_unread() -> None:
    raw = pa.table({"t": [1], "lower": ["mine"]})
    with pytest.raises(TraceError, match="column 'lower': there is such a column already"):
        intervals_of(raw, time="t", uncertainty=exact())
    named = intervals_of(raw, time="t", uncertainty=exact(), names=Names(lower="from", upper="to"))
    assert named.column_names == ["t", "lower", "from", "to"]
    again = intervals_of(
        pa.table({"lower": [1.0], "upper": [2.0]}), time=None, uncertainty=columns("lower", "upper")
    )
    assert again.to_pylist() == [{"lower": 1, "upper": 2}]


@given(st.data())
def test_batch_by_batch_gives_what_the_whole_gives(data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 12))
    stamps = data.draw(
        st.lists(st.one_of(st.none(), st.integers(-(10**6), 10**6)), min_size=size, max_size=size)
    )
    hosts = data.draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=size, max_size=size))
    raw = pa.table(
        {
            "t": pa.array(stamps, pa.int64()),
            "host": pa.array(hosts, pa.string()),
            "p": pa.array([[0.5, 0.5]] * size, pa.list_(pa.float64())),
        }
    )
    rule = by_value("host", {"a": clock_offset({"a": (-5, 5)}), "b": histogram("p")}, otherwise=window("3ms"))
    options = {"time": "t", "uncertainty": rule, "unit": "ms", "missing": "drop", "tick": "2ms"}
    options["uncertainty"] = by_value(
        "host", {"a": clock_offset({"a": (-5, 5)}), "b": histogram("p")}, window("4ms")
    )
    whole = intervals_of(raw, **options)
    cut = data.draw(st.integers(0, size))
    parts = [intervals_of(part, **options) for part in (raw.slice(0, cut), raw.slice(cut))]
    assert pa.concat_tables(parts).combine_chunks() == whole.combine_chunks()
    assert whole.schema.equals(intervals_of(raw.slice(0, 0), **options).schema, check_metadata=True)


def test_record_batches() -> None:
    batch = pa.record_batch({"t": [1, 2]})
    made = to_intervals(batch, time="t", uncertainty=plus_minus(1))
    assert isinstance(made, pa.RecordBatch)
    assert made.to_pydict() == {"t": [1, 2], "lower": [0, 1], "upper": [2, 3]}
    assert to_intervals(batch.slice(0, 0), time="t", uncertainty=plus_minus(1)).num_rows == 0


def test_pandas_keeps_index_columns_and_tick() -> None:
    frame = pd.DataFrame(
        {
            "at": pd.to_datetime(["2024-01-01 00:00:10", None, "2024-01-01 00:01:00"]),
            "kind": pd.Categorical(["a", "b", "a"]),
            "mixed": [1, "x", None],
        },
        index=[7, 8, 9],
    )
    made = to_intervals(frame, time="at", uncertainty=window("15s"), tick="1s", missing="drop")
    assert isinstance(made, pd.DataFrame)
    assert made.index.tolist() == [7, 9]
    assert made["kind"].dtype == frame["kind"].dtype
    assert made["lower"].tolist() == [
        pd.Timestamp("2023-12-31 23:59:56"),
        pd.Timestamp("2024-01-01 00:00:46"),
    ]
    assert made["lower"].dtype == "datetime64[s]"
    assert made["tick"].tolist() == ["1s", "1s"]
    assert made.attrs == {}
    assert list(frame.columns) == ["at", "kind", "mixed"]


def test_pandas_whole_numbers_with_gaps() -> None:
    frame = pd.DataFrame({"at": [1, None, 3], "p": [[1.0], [1.0], [0.5, 0.5]]})
    made = to_intervals(frame, time="at", uncertainty=histogram("p"), missing="drop")
    assert made["upper"].tolist() == [1, 4]
    assert made["upper"].dtype == "int64"
    with pytest.raises(TraceError, match="row 2, column 'at', value null: there is no time"):
        to_intervals(frame, time="at", uncertainty=histogram("p"))
    with pytest.raises(TraceError, match="holds values of different types"):
        to_intervals(pd.DataFrame({"at": [1, "x"]}), time="at", uncertainty=exact())


def test_polars() -> None:
    frame = pl.DataFrame({"at": [1000, None, 3000], "host": ["a", "a", "b"]})
    made = to_intervals(frame, time="at", unit="ms", uncertainty=plus_minus("5ms"), missing="drop")
    assert isinstance(made, pl.DataFrame)
    assert made.columns == ["at", "host", "lower", "upper", "tick"]
    assert made["tick"].to_list() == ["1us", "1us"]
    assert made["lower"].to_list() == [
        dt.datetime(1970, 1, 1, 0, 0, 0, 995000),
        dt.datetime(1970, 1, 1, 0, 0, 2, 995000),
    ]
    lazy: Any = to_intervals(
        frame.lazy(), time="at", unit="ms", uncertainty=plus_minus("5ms"), missing="drop"
    )
    assert lazy.equals(made)


def test_other_objects_are_refused() -> None:
    with pytest.raises(OptionError, match="a dict is no frame"):
        to_intervals({"at": [1]}, time="at", uncertainty=exact())
    with pytest.raises(OptionError, match="a list is no frame of rows"):
        clock_offset([("a", 1, 2)])


def test_offsets_from_pandas_and_polars() -> None:
    raw = pa.table({"t": [10], "host": ["a"]})
    table = {"host": ["a"], "offset_lo": [-1], "offset_hi": [1]}
    for frame in (pd.DataFrame(table), pl.DataFrame(table), pa.record_batch(table)):
        made = intervals_of(raw, time="t", uncertainty=clock_offset(frame), unit="ms")
        assert made.column("upper").cast(pa.int64()).to_pylist() == [11_000]


def test_the_tick_survives_parquet(tmp_path: Path) -> None:
    made = intervals_of(pa.table({"t": [1, 2]}), time="t", uncertainty=exact(), unit="s", tick="500ms")
    pq.write_table(made, tmp_path / "t.parquet")
    again = pq.read_table(tmp_path / "t.parquet")
    assert TimeDomain.of(again.schema).describe() == "500ms"
    assert again.equals(made)


def test_no_frame_library_is_imported_that_is_not_used() -> None:
    code = (
        "import sys, uncertain_cep.traces; "
        "print(sorted({'pandas', 'polars', 'pyspark', 'numba', 'lark'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
