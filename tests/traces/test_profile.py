"""The profile of a sound trace, against its rows one by one."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from uncertain_cep.timeline.domain import with_noted_tick
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS
from uncertain_cep.traces.profile import profile_lines, profile_of, sound_part
from uncertain_cep.traces.stamp_columns import UNITS

_events = st.lists(
    st.tuples(
        st.sampled_from("ABc"), st.integers(0, 10**6), st.integers(0, 500), st.none() | st.integers(0, 3)
    ),
    min_size=1,
    max_size=20,
)


@given(_events, st.sampled_from(["tick", "ms", "s"]), st.sampled_from([1, 60, 1000]))
def test_every_number_is_that_of_the_rows(
    rows: list[tuple[str, int, int, int | None]], unit: str, by: int
) -> None:
    lower = [row[1] * by for row in rows]
    upper = [begin + row[2] * by for begin, row in zip(lower, rows, strict=True)]
    kind = pa.int64() if unit == "tick" else pa.timestamp(unit)
    columns: dict[str, Any] = {
        "type": [row[0] for row in rows],
        "id": range(len(rows)),
        "lower": pa.array(lower).cast(kind),
        "upper": pa.array(upper).cast(kind),
        "x": pa.array([row[3] for row in rows], pa.int64()),
    }
    metadata = None if unit == "tick" else {"uncertain_cep.tick": f"1{unit}"}
    profile = profile_of(pa.table(columns).replace_schema_metadata(metadata))
    per_unit = 1 if unit == "tick" else UNIT_NANOSECONDS[unit] // (profile.domain.tick_nanoseconds or 1)
    assert {type_profile.type: type_profile.events for type_profile in profile.types} == dict(
        Counter(columns["type"])
    )
    for type_profile in profile.types:
        numbers_of_type = [number for number, row in enumerate(rows) if row[0] == type_profile.type]
        lengths = [(upper[number] - lower[number]) * per_unit + 1 for number in numbers_of_type]
        assert type_profile.first == min(lower[number] for number in numbers_of_type) * per_unit
        assert type_profile.last == max(upper[number] for number in numbers_of_type) * per_unit
        assert type_profile.lengths == (min(lengths), int(statistics.median(lengths)), max(lengths))
        if unit != "tick":
            step = UNIT_NANOSECONDS[unit]
            nanoseconds = UNIT_NANOSECONDS[type_profile.resolution.removeprefix("1")]
            longer = UNITS[: UNITS.index(type_profile.resolution.removeprefix("1"))]
            assert any(
                all(bound[number] * step % nanoseconds == 0 for number in numbers_of_type)
                for bound in (lower, upper)
            ) or all((upper[number] * per_unit + 1) % nanoseconds == 0 for number in numbers_of_type)
            for name in longer:
                assert any(lower[number] * step % UNIT_NANOSECONDS[name] for number in numbers_of_type)
    share = sum(row[3] is None for row in rows) / len(rows)
    assert dict(profile.nulls) == ({"x": share} if share else {})
    assert all(line for line in profile_lines(profile))


def test_points_have_no_begin_to_miss() -> None:
    """Beside events that last, points have nulls for begin and end: these are no attributes."""
    ends = {
        f"{end}_{side}": [tick, None]
        for end, tick in (("begin", 0), ("end", 5))
        for side in ("lower", "upper")
    }
    events = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 3], "upper": [5, 4], **ends})
    assert profile_of(events).nulls == ()


def table(**columns: Any) -> pa.Table:
    size = len(next(iter(columns.values())))
    stamps = pa.array([1_700_000_000_000_000 + 1_000_001 * n for n in range(size)]).cast(pa.timestamp("us"))
    columns_by_name = {"type": ["A"] * size, "id": range(size), "lower": stamps, "upper": stamps}
    return pa.table({**columns_by_name, **columns})


MOMENT = 1_700_000_000


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"x": ["a", "b"]}, None),
        (
            {"lower": [MOMENT + n for n in range(200)] + [MOMENT * 2]},
            "1 events are far from all others in time",
        ),
        ({"lower": list(range(9))}, "9 events are before 1980 or after 2100"),
        ({"lower": [4_000_000_000 + n for n in range(9)]}, "9 events are still to come"),
        ({"lower": [MOMENT + n for n in range(9)]}, "all times of A are whole multiples of 1s, but certain"),
        ({"type": ["A", "a "], "x": [1, 2]}, "the types 'A' and 'a ' differ in capitals or spaces alone"),
        ({"x": pa.nulls(3)}, "x holds nothing"),
        ({"x": ["1", "-", "3"]}, "x holds texts such as NA, null or -"),
        ({"lower": [MOMENT] * 2}, "1 events differ from another in nothing but the id"),
        ({"upper": [MOMENT + 9, MOMENT + 10, MOMENT * 2]}, "times as long as the middle one"),
        ({"x": []}, None),
    ],
)
def test_what_looks_odd(columns: dict[str, Any], said: str | None) -> None:
    times = {name: values for name, values in columns.items() if name in ("lower", "upper")}
    attributes = {name: values for name, values in columns.items() if name not in times}
    for name, values in times.items():
        stamps = pa.array([value * 10**6 for value in values]).cast(pa.timestamp("us"))
        attributes |= {"lower": stamps, "upper": stamps} if name == "lower" else {"upper": stamps}
    if "upper" in times:
        attributes["lower"] = pa.array([(MOMENT + n) * 10**6 for n in range(3)]).cast(pa.timestamp("us"))
    oddities = profile_of(table(**attributes)).odd
    assert any(said in line for line in oddities) if said else not oddities, oddities


def test_hosts_are_named() -> None:
    profile = profile_of(table(host=[f"n{n}" for n in (7, 1, 3, 2, 5, 4, 6, 1)], load=["x"] * 8))
    assert profile.places == (("host", 7, ("n1", "n2", "n3", "n4", "n5")),)
    assert "host: n1, n2, n3, n4, n5 and 2 more" in profile_lines(profile)


def test_of_faulty_events_the_sound_ones_count() -> None:
    faulty = table(x=[1, 2, 3, 4])
    lower = faulty.column("lower").to_pylist()
    faulty = faulty.set_column(0, "type", pa.array(["A", None, "A", "A"]))
    faulty = faulty.set_column(
        3, "upper", pa.array([lower[0], lower[1], None, lower[2]], faulty.schema[3].type)
    )
    sound = sound_part(faulty)
    assert sound is not None
    assert sound.column("x").to_pylist() == [1]
    assert sound_part(faulty.set_column(2, "lower", pa.array(["a"] * 4))) is None


@pytest.mark.parametrize(
    ("rule", "tick", "said"),
    [
        (uc.plus_minus("2s"), "1s", "4 s"),
        (uc.plus_minus("2s"), "1ms", "4 s"),
        (uc.plus_minus("250ms"), "1us", "500 ms"),
        (uc.granularity("1min"), "1s", "59 s"),
        (uc.granularity("1min"), "1us", "1 min"),
        (uc.granularity("1s"), "1ns", "1 s"),
        (uc.exact(), "1s", "certain"),
    ],
)
def test_an_interval_is_as_wide_as_its_ends_are_apart(rule: Any, tick: str, said: str) -> None:
    """2 s before and behind are 5 ticks of a second, and not 5 s."""
    at = pa.array([1_700_000_000, 1_700_000_100], pa.timestamp("s"))
    raw = pa.table({"type": ["A", "A"], "id": [1, 2], "at": at})
    events = uc.to_intervals(raw, time="at", uncertainty=rule, tick=tick)
    row = list(profile_lines(profile_of(events)))[1]
    assert row.split("  ")[-1].strip() == said


def test_times_are_shown_to_the_nanosecond() -> None:
    at = pa.array([1_700_000_000_000_000_001, 1_700_000_000_000_000_007], pa.timestamp("ns"))
    raw = pa.table({"type": ["A", "A"], "id": [1, 2], "lower": at, "upper": at, "tick": ["1ns", "1ns"]})
    row = list(profile_lines(profile_of(with_noted_tick(raw))))[1]
    assert "2023-11-14 22:13:20.000000001  2023-11-14 22:13:20.000000007" in row
