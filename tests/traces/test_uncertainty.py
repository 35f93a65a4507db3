"""Each rule against intervals worked out by hand, and against plain integer arithmetic on random stamps."""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.traces import (
    by_value,
    clock_offset,
    columns,
    exact,
    granularity,
    histogram,
    intervals_of,
    plus_minus,
    window,
)
from uncertain_cep.traces.uncertain_stamps import Uncertainty

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def bounds(table: pa.Table) -> list[tuple[int, int]]:
    lower, upper = (table.column(name).cast(pa.int64()).to_pylist() for name in ("lower", "upper"))
    return list(zip(lower, upper, strict=True))


def test_certain_stamps() -> None:
    table = intervals_of(pa.table({"t": [3, 7]}), time="t", uncertainty=exact())
    assert bounds(table) == [(3, 3), (7, 7)]
    assert table.schema.metadata is None


def test_plus_minus_of_plain_ticks() -> None:
    table = intervals_of(pa.table({"t": [100, -3]}), time="t", uncertainty=plus_minus(5))
    assert bounds(table) == [(95, 105), (-8, 2)]


def test_plus_minus_floors_both_ends() -> None:
    # 12.3 s +- 1 s in ticks of a second: 11.3 .. 13.3 falls into the ticks 11 to 13.
    raw = pa.table({"t": pa.array([12_300]).cast(pa.timestamp("ms"))})
    table = intervals_of(raw, time="t", uncertainty=plus_minus("1s"), tick="1s")
    assert bounds(table) == [(11, 13)]
    assert table.schema.field("lower").type == pa.timestamp("s")


def test_granularity_covers_the_truncated_part() -> None:
    raw = pa.table({"t": pa.array([dt.datetime(2024, 5, 31, 23, 59)], pa.timestamp("s"))})
    table = intervals_of(raw, time="t", uncertainty=granularity("1min"), tick="1ms")
    assert table.column("lower").cast(pa.string()).to_pylist() == ["2024-05-31 23:59:00.000"]
    assert table.column("upper").cast(pa.string()).to_pylist() == ["2024-05-31 23:59:59.999"]


def test_window_ends_at_the_stamp_and_leaves_its_start_out() -> None:
    table = intervals_of(pa.table({"t": [60]}), time="t", uncertainty=window("15s"), unit="s")
    assert bounds(table) == [(45_000_001, 60_000_000)]
    coarse = intervals_of(pa.table({"t": [60]}), time="t", uncertainty=window("15s"), unit="s", tick="1s")
    assert bounds(coarse) == [(46, 60)]


def test_days() -> None:
    raw = pa.table({"t": pa.array([dt.date(1970, 1, 3), dt.date(1969, 12, 31)])})
    table = intervals_of(raw, time="t", uncertainty=granularity("1d"))
    assert bounds(table) == [(2 * 86400, 2 * 86400), (-86400, -86400)]
    assert table.schema.metadata == {b"uncertain_cep.tick": b"1d"}
    finer = intervals_of(raw, time="t", uncertainty=granularity("1d"), tick="1h")
    assert bounds(finer)[0] == (2 * 86400, 2 * 86400 + 23 * 3600)


EPOCHS = pa.table(
    {
        "host": ["a", "b", "a", "a", None],
        "from": [None, None, 30, 10, 0],
        "until": [10, None, None, 20, 9],
        "offset_lo": [0, 100, 300, 50, 7],
        "offset_hi": [1, 100, 301, 51, 8],
    }
)


def test_clock_offsets_by_host_and_epoch() -> None:
    rule = clock_offset(EPOCHS, unit="tick", epoch=("from", "until"))
    raw = pa.table({"t": [-5, 9, 10, 19, 20, 30, 99, 5, 5], "host": [*"aaaaaaab", None]})
    with pytest.raises(TraceError, match="no clock offset for this host at this time") as caught:
        intervals_of(raw, time="t", uncertainty=rule)
    assert [fault.row for fault in caught.value.faults] == [5, 9]
    intervals = intervals_of(raw, time="t", uncertainty=rule, missing="drop")
    assert bounds(intervals) == [(-5, -4), (9, 10), (60, 61), (69, 70), (330, 331), (399, 400), (105, 105)]
    nothing = clock_offset(EPOCHS.slice(0, 0), unit="tick", epoch=("from", "until"))
    assert intervals_of(raw, time="t", uncertainty=nothing, missing="drop").num_rows == 0


@st.composite
def offset_tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Bounds of two hosts in epochs that do not overlap, some without bounds, with and without gaps."""
    rows = []
    for host in draw(st.sampled_from(("", "g", "gh"))):
        edges = draw(st.lists(st.integers(0, 12), unique=True, min_size=2, max_size=5).map(sorted))
        for begin, end in itertools.pairwise(edges):
            if not draw(st.booleans()):
                continue
            low = draw(st.none() | st.integers(-9, 9))
            row = {"host": host, "from": begin, "until": end, "offset_lo": low}
            row["offset_hi"] = None if low is None else low + draw(st.integers(0, 3))
            row["from"] = draw(st.sampled_from((begin, None))) if begin == edges[0] else begin
            row["until"] = draw(st.sampled_from((end, None))) if end == edges[-1] else end
            rows.append(row)
    return rows


OFFSETS = pa.schema(
    [("host", pa.string()), *((name, pa.int64()) for name in ("from", "until", "offset_lo", "offset_hi"))]
)


@given(
    offset_tables(),
    st.lists(st.tuples(st.integers(-2, 14), st.sampled_from(("g", "h", "u", None))), min_size=1, max_size=8),
    st.booleans(),
)
def test_hosts_without_bounds_have_a_default(
    rows: list[dict[str, Any]], stamps: list[tuple[int, str | None]], shared: bool
) -> None:
    """Times between epochs are epochs of their own: no two of them share an offset."""

    def is_of(row: dict[str, Any], at: int, host: str | None) -> bool:
        within = (row["from"] is None or row["from"] <= at) and (row["until"] is None or at < row["until"])
        return row["host"] == host and within and row["offset_lo"] is not None

    rule = clock_offset(
        pa.Table.from_pylist(rows, OFFSETS), unit="tick", epoch=("from", "until"), shared=shared, default=4
    )
    raw = pa.table(
        {"t": [at for at, _ in stamps], "host": pa.array([host for _, host in stamps], pa.string())}
    )
    made = intervals_of(raw, time="t", uncertainty=rule, missing="drop")
    expected, clocks = [], []
    for at, host in stamps:
        if host is None:
            continue
        of_row = [row for row in rows if is_of(row, at, host)]
        low, high = (of_row[0]["offset_lo"], of_row[0]["offset_hi"]) if of_row else (-4, 4)
        expected.append((at + low, at + high))
        # The same gap: no epoch of the host between the two times.
        edges = {row[key] for row in rows if row["host"] == host and row["offset_lo"] is not None
                 for key in ("from", "until") if row[key] is not None and row[key] <= at}  # fmt: skip
        clocks.append((host, max(edges, default=None)))
    assert bounds(made) == expected
    if shared:
        names = made["source"].to_pylist()
        for one, other in itertools.combinations(range(len(names)), 2):
            assert (names[one] == names[other]) == (clocks[one] == clocks[other])


def test_defaults_have_the_unit_of_the_table() -> None:
    raw = pa.table({"t": [1000, 1000], "host": ["a", "b"]})
    default: Any
    for default in ("5s", dt.timedelta(seconds=5), "4 s + 1000 ms"):
        rule = clock_offset({"a": (-1, 2)}, default=default)
        assert bounds(intervals_of(raw, time="t", uncertainty=rule, unit="ms", tick="1ms")) == [
            (999, 1002),
            (-4000, 6000),
        ]
    begin = pa.array([10, None], pa.int64()).cast(pa.timestamp("s"))
    end = pa.array([None, None])
    table = pa.table(
        {"host": ["a", "b"], "from": begin, "until": end, "offset_lo": [0, 0], "offset_hi": [0, 0]}
    )
    rule = clock_offset(table, epoch=("from", "until"), default="1s", shared=True)
    made = intervals_of(raw, time="t", uncertainty=rule, unit="ms", tick="1ms")
    assert bounds(made) == [(0, 2000), (1000, 1000)]
    assert made["source"].to_pylist() == ["a (until 1970-01-01T00:00:10)", "b (always)"]
    for default, unit, said in (
        (5, "ms", "give a length of time"),
        ("5s", "tick", "give a number"),
        (-1, "tick", "at least 0"),
        (True, "tick", "give a number"),
    ):
        with pytest.raises(OptionError, match=said):
            clock_offset({}, unit=unit, default=default)
    days = pa.table({"t": pa.array([dt.date(1970, 1, 2)]), "host": ["x"]})
    hours = intervals_of(days, time="t", uncertainty=clock_offset({}, default="1h"))
    assert bounds(hours) == [(23 * 3_600_000_000, 25 * 3_600_000_000)]


def test_epochs_are_stamps_of_any_unit() -> None:
    begin = pa.array([None, 2], pa.int64()).cast(pa.timestamp("s"))
    end = pa.array([2, None], pa.int64()).cast(pa.timestamp("s"))
    table = pa.table(
        {"host": ["a", "a"], "from": begin, "until": end, "offset_lo": [0, 5], "offset_hi": [0, 5]}
    )
    rule = clock_offset(table, epoch=("from", "until"))
    raw = pa.table({"t": [1999, 2000], "host": ["a", "a"]})
    intervals = intervals_of(raw, time="t", uncertainty=rule, unit="ms", tick="1ms")
    assert bounds(intervals) == [(1999, 1999), (2005, 2005)]
    with pytest.raises(OptionError, match="must both be times, or both plain numbers"):
        intervals_of(raw, time="t", uncertainty=rule, tick="1ms")


@pytest.mark.parametrize(
    ("begin", "end", "said"),
    [
        ([0, 5], [6, 9], "row 2.*overlaps another"),
        ([None, None], [6, 9], "overlaps another"),
        ([5, 9], [5, 10], "row 1.*ends before it begins"),
    ],
)
def test_wrong_epochs(begin: list[int | None], end: list[int | None], said: str) -> None:
    table = pa.table(
        {
            "host": ["a", "a"],
            "from": pa.array(begin, pa.int64()),
            "until": pa.array(end, pa.int64()),
            "offset_lo": [0, 0],
            "offset_hi": [0, 0],
        }
    )
    with pytest.raises(TraceError, match=said):
        clock_offset(table, epoch=("from", "until"))
    with pytest.raises(TraceError, match="no such column"):
        clock_offset(table, epoch=("from", "to"))
    with pytest.raises(OptionError, match="a pair of columns"):
        clock_offset(table, epoch="from")


@pytest.mark.parametrize("offsets", ["mapping", "table", "floats", "durations"])
def test_clock_offsets_by_host(offsets: str) -> None:
    raw = pa.table({"t": [1000, 1000, 2000], "node": ["a", "b", "a"]})
    pairs = {"a": (-53, -44), "b": (2, 9)}
    if offsets == "mapping":
        rule: Uncertainty = clock_offset(pairs, key="node")
    else:
        types = {"table": pa.int32(), "floats": pa.float64(), "durations": pa.duration("ms")}
        low = pa.array([-53, 2]).cast(types[offsets])
        high = pa.array([-44, 9]).cast(types[offsets])
        table = pa.table({"host": ["a", "b"], "offset_lo": low, "offset_hi": high})
        rule = clock_offset(table, key="node")
    events = intervals_of(raw, time="t", uncertainty=rule, unit="ms", tick="1ms")
    assert bounds(events) == [(947, 956), (1002, 1009), (1947, 1956)]


def test_fractions_of_an_offset_count() -> None:
    rule = clock_offset({"a": (0.18, 0.51)}, key="host")
    raw = pa.table({"t": [1000], "host": ["a"]})
    assert bounds(intervals_of(raw, time="t", uncertainty=rule, unit="ms", tick="10us")) == [
        (1_000_180, 1_000_510)
    ]


def test_offsets_in_ticks_suit_plain_ticks() -> None:
    raw = pa.table({"t": [1000], "host": ["a"]})
    rule = clock_offset({"a": (-1, 4)}, unit="tick")
    assert bounds(intervals_of(raw, time="t", uncertainty=rule)) == [(999, 1004)]
    with pytest.raises(OptionError, match="say what a tick is"):
        intervals_of(raw, time="t", uncertainty=clock_offset({"a": (-1, 4)}))


def test_a_host_without_offset_is_an_error_or_dropped() -> None:
    offsets = pa.table({"host": ["a", "b"], "offset_lo": [1, None], "offset_hi": [2, 3]})
    raw = pa.table({"t": [10, 20, 30], "host": ["a", "b", "c"]})
    rule = clock_offset(offsets)
    with pytest.raises(TraceError) as caught:
        intervals_of(raw, time="t", uncertainty=rule, unit="ms")
    assert [(fault.row, fault.column, fault.value) for fault in caught.value.faults] == [
        (2, "host", "'b'"),
        (3, "host", "'c'"),
    ]
    kept = intervals_of(raw, time="t", uncertainty=rule, unit="ms", missing="drop", tick="1ms")
    assert bounds(kept) == [(11, 12)]
    assert kept.column("host").to_pylist() == ["a"]


def test_a_table_of_offsets_is_checked() -> None:
    table = pa.table({"host": ["a", "a", "b"], "offset_lo": [1, 1, 5], "offset_hi": [2, 2, 3]})
    with pytest.raises(TraceError) as caught:
        clock_offset(table)
    assert [(fault.row, fault.column) for fault in caught.value.faults] == [(3, "offset_lo"), (2, "host")]
    with pytest.raises(TraceError, match="it has host, offset_lo, offset_hi"):
        clock_offset(table, host="node")
    with pytest.raises(OptionError, match="unit 'parsec' is not known"):
        clock_offset({}, unit="parsec")
    with pytest.raises(TraceError, match="a length of time is a number"):
        clock_offset(pa.table({"host": ["a"], "offset_lo": ["x"], "offset_hi": [1]}))


def test_bounds_from_two_columns() -> None:
    raw = pa.table({"lo": [1.5, 3.25], "hi": [2, 4]})
    table = intervals_of(raw, time=None, uncertainty=columns("lo", "hi"), unit="s", tick="500ms")
    assert bounds(table) == [(1500, 2000), (3000, 4000)]


def test_bounds_as_sums_of_columns() -> None:
    raw = pa.table({"launch": [1000, 2000], "finish": [1500, 2600], "slack": [80, None]})
    rule = columns("finish - slack", "finish")
    assert rule.reads(None) == ("finish", "slack")
    table = intervals_of(raw, time=None, uncertainty=rule, unit="ms", missing="drop")
    assert bounds(table) == [(1_420_000, 1_500_000)]
    ticks = intervals_of(raw, time=None, uncertainty=columns("launch", "launch + slack"), missing="drop")
    assert bounds(ticks) == [(1000, 1080)]
    far = pa.table({"at": [0], "a": [2**33], "b": [2**33]})
    with pytest.raises(TraceError, match="adds up to more than 292 years"):
        intervals_of(far, time=None, uncertainty=columns("at", "at + a + b"), unit="s")
    with pytest.raises(TraceError, match="a length of time is beyond 292 years"):
        intervals_of(far, time=None, uncertainty=columns("at", "at + a"), unit="min")
    stamps = pa.table({"at": pa.array([1000]).cast(pa.timestamp("ms")), "slack": [80]})
    with pytest.raises(OptionError, match="say their unit"):
        intervals_of(stamps, time=None, uncertainty=columns("at", "at + slack"))


@pytest.mark.parametrize(
    "dtype", [pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.float64(), 2)]
)
def test_histograms(dtype: pa.DataType) -> None:
    raw = pa.table({"lower": [10, 20], "pmf": pa.array([[0.5, 0.5], [0.25, 0.75]], dtype)})
    table = intervals_of(raw, time=None, uncertainty=histogram("pmf", lower="lower"))
    assert bounds(table) == [(10, 11), (20, 21)]
    assert table.schema.field("pmf").type == pa.list_(pa.float64())
    assert table.column("pmf").to_pylist() == [[0.5, 0.5], [0.25, 0.75]]


def test_a_histogram_of_the_time_column_gets_a_column_of_its_own() -> None:
    raw = pa.table({"at": [10, 20], "bins": [[1.0], []]})
    with pytest.raises(TraceError, match=r"row 2, column 'bins', value \[\]: there is no probability"):
        intervals_of(raw, time="at", uncertainty=histogram("bins"))
    table = intervals_of(raw, time="at", uncertainty=histogram("bins"), missing="drop")
    assert table.column_names == ["at", "bins", "lower", "upper", "pmf"]
    with pytest.raises(TraceError, match="a histogram is a list of numbers"):
        intervals_of(pa.table({"at": [1], "bins": [1.0]}), time="at", uncertainty=histogram("bins"))


def test_rules_by_the_value_of_a_column() -> None:
    raw = pa.table(
        {
            "t": [100, 200, 300, None],
            "source": ["ganglia", "log", "sensor", "log"],
            "p": [None, None, [0.5, 0.5], None],
        }
    )
    rules: dict[str, Uncertainty] = {"ganglia": window(15), "sensor": histogram("p")}
    table = intervals_of(
        raw, time="t", uncertainty=by_value("source", rules, otherwise=plus_minus(2)), missing="drop"
    )
    assert bounds(table) == [(86, 100), (198, 202), (300, 301)]
    assert table.column("pmf").to_pylist() == [None, None, [0.5, 0.5]]
    with pytest.raises(TraceError) as caught:
        intervals_of(raw, time="t", uncertainty=by_value("source", rules))
    assert {(fault.row, fault.column) for fault in caught.value.faults} == {(2, "source"), (4, "source")}


def test_a_rule_by_value_for_rows_without_one() -> None:
    raw = pa.table({"t": [100, 200], "source": ["log", None]})
    rules: Any = {None: plus_minus(2)}
    table = intervals_of(raw, time="t", uncertainty=by_value("source", rules, otherwise=exact()))
    assert bounds(table) == [(100, 100), (198, 202)]


def test_faults_of_a_rule_for_some_rows_keep_their_rows() -> None:
    raw = pa.table({"t": ["2024-01-01", "noon", "2024-01-02", "later"], "k": ["a", "b", "a", "b"]})
    rule = by_value("k", {"a": exact(), "b": plus_minus("1s")})
    with pytest.raises(TraceError) as caught:
        intervals_of(raw.slice(0, 2), time="t", uncertainty=rule)
    assert [(fault.row, fault.value) for fault in caught.value.faults] == [(2, "'noon'")]


@pytest.mark.parametrize(
    "make",
    [
        lambda: plus_minus("half a day"),
        lambda: plus_minus(-1),
        lambda: granularity(0),
        lambda: granularity("0s"),
        lambda: window("15 parsecs"),
    ],
)
def test_lengths_are_checked_at_once(make: Callable[[], Uncertainty]) -> None:
    with pytest.raises(OptionError):
        make()


def test_truncation_and_windows_take_whole_ticks() -> None:
    raw = pa.table({"t": [100]})
    with pytest.raises(OptionError, match="granularity 7ms must be one or more whole ticks of 2ms"):
        intervals_of(raw, time="t", uncertainty=granularity("7ms"), unit="ms", tick="2ms")
    with pytest.raises(OptionError, match="window 1ms must be one or more whole ticks of 1s"):
        intervals_of(raw, time="t", uncertainty=window("1ms"), unit="s", tick="1s")
    with pytest.raises(OptionError, match="plus_minus 500ms must be whole ticks of 1s: give a tick= that"):
        intervals_of(raw, time="t", uncertainty=plus_minus("500ms"), unit="s", tick="1s")
    with pytest.raises(OptionError, match="plus_minus 500ns must be whole ticks of 1us, the default: give"):
        intervals_of(raw, time="t", uncertainty=plus_minus("500ns"), unit="s")
    with pytest.raises(OptionError, match="is a length of time, but the times are plain whole numbers"):
        intervals_of(raw, time="t", uncertainty=window("1ms"))
    named = intervals_of(raw, time="t", uncertainty=window("5ms"), tick="1ms")
    assert bounds(named) == [(96, 100)]
    assert named.schema.metadata == {b"uncertain_cep.tick": b"1ms"}


def test_a_rule_that_needs_a_time_column_says_so() -> None:
    for rule in (exact(), clock_offset({}), histogram("p")):
        with pytest.raises(OptionError, match="say time="):
            intervals_of(pa.table({"t": [1], "p": [[1.0]]}), time=None, uncertainty=rule)


def test_rules_travel_to_other_processes() -> None:
    rule = by_value(
        "host",
        {
            "a": clock_offset({"a": (1, 2)}),
            "b": columns("lo", "hi + x"),
            "c": histogram("p"),
            "d": exact(),
            "e": window("15s"),
        },
        granularity("1min"),
    )
    assert pickle.loads(pickle.dumps(rule)) == rule


STAMPS = st.lists(st.one_of(st.none(), st.integers(-(10**9), 10**9)), max_size=20)
TICKS = st.sampled_from([1, 7, 1000, 10**6, 25 * 10**5, 10**7, 10**9, 15 * 10**9, 60 * 10**9])
LENGTHS = st.integers(0, 10**11)


def expected(stamps: list[int | None], unit: str, tick: int, low: int, high: int) -> list[tuple[int, int]]:
    # Python's // floors, as the definition asks.
    scale = NANOSECONDS[unit]
    return [
        ((stamp * scale + low) // tick, (stamp * scale + high) // tick)
        for stamp in stamps
        if stamp is not None
    ]


def in_ticks(table: pa.Table, tick: int) -> list[tuple[int, int]]:
    unit = NANOSECONDS[table.schema.field("lower").type.unit]
    assert tick % unit == 0
    bounds_in_ticks = []
    for low, high in bounds(table):
        assert low * unit % tick == 0
        assert high * unit % tick == 0
        bounds_in_ticks.append((low * unit // tick, high * unit // tick))
    return bounds_in_ticks


@given(STAMPS, st.sampled_from(list(NANOSECONDS)), st.booleans(), TICKS, st.integers(0, 100))
def test_plus_minus_is_the_floor_of_both_ends(
    stamps: list[int | None], unit: str, as_timestamps: bool, tick: int, by: int
) -> None:
    numbers = pa.array(stamps, pa.int64())
    raw = pa.table({"t": numbers.cast(pa.timestamp(unit)) if as_timestamps else numbers})
    table = intervals_of(
        raw, time="t", uncertainty=plus_minus(f"{by * tick}ns"), tick=f"{tick}ns", unit=unit, missing="drop"
    )
    assert in_ticks(table, tick) == expected(stamps, unit, tick, -by * tick, by * tick)


@given(STAMPS, st.sampled_from(list(NANOSECONDS)), TICKS, st.integers(1, 100))
def test_truncation_and_windows_have_whole_lengths(
    stamps: list[int | None], unit: str, tick: int, count: int
) -> None:
    raw = pa.table({"t": pa.array(stamps, pa.int64())})
    length = f"{tick * count}ns"
    options = {"time": "t", "tick": f"{tick}ns", "unit": unit, "missing": "drop"}
    after = intervals_of(raw, uncertainty=granularity(length), **options)
    assert in_ticks(after, tick) == expected(stamps, unit, tick, 0, (count - 1) * tick)
    before = intervals_of(raw, uncertainty=window(length), **options)
    assert in_ticks(before, tick) == expected(stamps, unit, tick, (1 - count) * tick, 0)


@given(
    st.lists(st.tuples(st.integers(-(10**9), 10**9), st.sampled_from("abcd")), max_size=20),
    st.dictionaries(st.sampled_from("abc"), st.tuples(LENGTHS, LENGTHS)),
    TICKS,
)
def test_clock_offsets_are_the_floor_of_both_ends(
    rows: list[tuple[int, str]], offsets: dict[str, tuple[int, int]], tick: int
) -> None:
    pairs = {host: (-low, high) for host, (low, high) in offsets.items()}
    raw = pa.table(
        {"t": pa.array([t for t, _ in rows], pa.int64()), "host": pa.array([h for _, h in rows], pa.string())}
    )
    rule = clock_offset(pairs, unit="ns")
    table = intervals_of(raw, time="t", uncertainty=rule, tick=f"{tick}ns", unit="us", missing="drop")
    floors = [
        ((t * 1000 + pairs[host][0]) // tick, (t * 1000 + pairs[host][1]) // tick)
        for t, host in rows
        if host in pairs
    ]
    assert in_ticks(table, tick) == floors
