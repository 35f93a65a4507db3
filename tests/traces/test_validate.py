"""Checks of the model: every kind of fault by row, column and value, and none where there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from uncertain_cep.config.limits import MAX_TICK
from uncertain_cep.config.tolerances import PMF_TOLERANCE
from uncertain_cep.errors import TraceFault
from uncertain_cep.timeline.domain import Names, TimeDomain
from uncertain_cep.traces.checks import (
    RowOrigin,
    check_columns,
    check_ids,
    check_intervals,
    check_nulls,
    check_pmfs,
    check_probabilities,
)

NAMES = Names()
TICKS = TimeDomain("tick", 1, None)


def events(**columns: Any) -> pa.Table:
    size = len(next(iter(columns.values())))
    basis: dict[str, Any] = {
        "type": ["A"] * size,
        "id": list(range(size)),
        "lower": [5] * size,
        "upper": [7] * size,
    }
    return pa.table({**basis, **columns})


def check_events(
    table: pa.Table, names: Names, domain: TimeDomain, *, partition: Sequence[str] = (), limit: int = 20
) -> list[TraceFault]:
    """Return every fault of a table of events."""
    return [
        *check_columns(table.schema, names),
        *check_nulls(table, names, limit=limit),
        *check_intervals(table, names, domain, limit=limit),
        *check_pmfs(table, names, domain, limit=limit),
        *check_ids(table, names, partition=partition, limit=limit),
    ]


def where(faults: list[TraceFault]) -> list[tuple[int | None, str | None, str | None]]:
    return [(fault.row, fault.column, fault.value) for fault in faults]


def test_a_sound_table_has_no_fault() -> None:
    table = events(id=["x", "y"], lower=[9, 1], upper=[9, 2], pmf=[[1.0], None])
    assert check_events(table, NAMES, TICKS) == []
    assert check_events(table.slice(0, 0), NAMES, TICKS) == []
    assert check_events(table.slice(1), NAMES, TICKS) == []


def test_columns_that_are_missing_or_of_another_type() -> None:
    schema = pa.schema({"type": pa.int64(), "id": pa.float64(), "lower": pa.int64(), "pmf": pa.string()})
    assert where(check_columns(schema, NAMES)) == [
        (None, "upper", None),
        (None, "type", None),
        (None, "id", None),
        (None, "pmf", None),
    ]
    swapped = pa.schema(
        {
            "k": pa.dictionary(pa.int8(), pa.string()),
            "n": pa.large_string(),
            "a": pa.int64(),
            "b": pa.int64(),
            "p": pa.list_(pa.float32()),
        }
    )
    assert check_columns(swapped, Names("k", "n", "a", "b", "p")) == []


def test_nulls() -> None:
    table = events(type=["A", None, "A"], id=[1, 2, None], lower=[None, 1, 1], upper=[1, 1, None])
    assert where(check_nulls(table, NAMES)) == [
        (2, "type", "null"),
        (3, "id", "null"),
        (1, "lower", "null"),
        (3, "upper", "null"),
    ]
    # A null is one fault, not a reversed interval besides.
    assert len(check_events(table, NAMES, TICKS)) == 4


def test_a_null_among_the_values_of_a_dictionary() -> None:
    dictionary = pa.array(["A", None, "B"])
    types = pa.chunked_array(
        [
            pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), dictionary),
            pa.DictionaryArray.from_arrays(pa.array([None, 2]), dictionary),
            pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["A", None])),
        ]
    )
    table = events(type=types, id=list("abcdefg"), lower=[0] * 7, upper=[1] * 7)
    faults = check_nulls(table, NAMES)
    assert where(faults) == [(2, "type", "null"), (4, "type", "null"), (6, "type", "null")]
    plain = events(type=types.cast(pa.string()), id=list("abcdefg"), lower=[0] * 7, upper=[1] * 7)
    assert faults == check_nulls(plain, NAMES)
    for query in ("PATTERN SEQ(A a) WITHIN 2", "PATTERN SEQ(B b, !A a) WITHIN 2"):
        for frame in (table, plain):
            with pytest.raises(uc.TraceError, match="an event needs a type"):
                uc.match(frame, query)
            with pytest.raises(uc.TraceError, match="an event needs a type"):
                uc.IncrementalMatcher(query, frame.schema).push(frame)


def test_a_null_among_values_that_no_event_has_is_none() -> None:
    types = pa.DictionaryArray.from_arrays(pa.array([0, 2]), pa.array(["A", None, "B"]))
    assert check_nulls(events(type=types, id=[1, 2], lower=[0, 1], upper=[0, 1]), NAMES) == []


def test_a_null_among_the_ids_of_a_dictionary() -> None:
    ids = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", None]))
    table = events(type=["A", "A"], id=ids, lower=[0, 1], upper=[0, 1])
    assert where(check_nulls(table, NAMES)) == [(2, "id", "null")]


def test_null_types_of_categories() -> None:
    plain = {"id": [1, 2], "lower": [0, 1], "upper": [0, 1]}
    for frame in (
        pd.DataFrame({"type": pd.Categorical(["A", None]), **plain}),
        pl.DataFrame({"type": pl.Series(["A", None], dtype=pl.Categorical), **plain}),
        pl.DataFrame({"type": pl.Series(["A", None], dtype=pl.Enum(["A", "B"])), **plain}),
    ):
        with pytest.raises(uc.TraceError, match="row 2, column 'type', value null: an event needs a type"):
            uc.match(frame, "PATTERN SEQ(A a) WITHIN 2")


def test_intervals_that_end_before_they_begin() -> None:
    table = events(lower=[5, 8, 5], upper=[5, 7, 4])
    assert where(check_intervals(table, NAMES, TICKS)) == [(2, "lower", "8"), (3, "lower", "5")]
    stamps = pa.table({name: table.column(name).cast(pa.timestamp("ms")) for name in ("lower", "upper")})
    fault, _ = check_intervals(stamps, NAMES, TimeDomain.of(stamps.schema))
    assert fault.value == "1970-01-01 00:00:00.008"
    assert fault.message == "the interval ends before it begins: upper is 1970-01-01 00:00:00.007"


def test_times_too_far_for_the_arithmetic() -> None:
    table = events(lower=[-MAX_TICK, -MAX_TICK - 1, 0], upper=[0, 0, 2**63 - 1])
    assert where(check_intervals(table, NAMES, TICKS)) == [
        (2, "lower", str(-MAX_TICK - 1)),
        (3, "upper", str(2**63 - 1)),
    ]


def test_times_that_are_no_whole_ticks() -> None:
    table = pa.table({"lower": [100, 150], "upper": [200, 300]})
    stamps = pa.table({name: table.column(name).cast(pa.timestamp("ms")) for name in table.column_names})
    domain = TimeDomain.of(stamps.schema, tick="100ms")
    (fault,) = check_intervals(stamps, NAMES, domain)
    assert (fault.row, fault.column) == (2, "lower")
    assert fault.message.startswith("not a whole number of ticks of 100ms")


def test_pmfs() -> None:
    nan = float("nan")
    pmfs = [
        [0.5, 0.25, 0.25],
        [0.5, 0.5],
        [0.5, 0.6, -0.1],
        [0.5, nan, 0.5],
        [0.2, 0.2, 0.2],
        None,
        [],
        [1 / 3, 1 / 3, 1 / 3 + PMF_TOLERANCE / 2],
        [1 / 3, 1 / 3, 1 / 3 + PMF_TOLERANCE * 2],
        [0.5, None, 0.5],
    ]
    faults = check_pmfs(events(pmf=pmfs), NAMES, TICKS)
    assert [(fault.row, fault.message.partition(":")[0]) for fault in faults] == [
        (2, "the pmf has 2 probabilities for an interval of 3 ticks"),
        (7, "the pmf has 0 probabilities for an interval of 3 ticks"),
        (3, "a probability must be a number of at least 0"),
        (4, "a probability must be a number of at least 0"),
        (10, "a probability must be a number of at least 0"),
        (5, "the pmf sums to 0.6 instead of 1"),
        (7, "the pmf sums to 0 instead of 1"),
        (9, "the pmf sums to 1.000000002 instead of 1"),
    ]
    assert {fault.column for fault in faults} == {"pmf"}


def test_probabilities() -> None:
    probabilities = [0.0, 1.0, None, 0.5, 1.0 + 1e-12, -0.25, float("nan"), float("inf")]
    faults = check_probabilities(events(probability=probabilities), NAMES)
    assert [(fault.row, fault.column, fault.value) for fault in faults] == [
        (5, "probability", "1.000000000001"),
        (6, "probability", "-0.25"),
        (7, "probability", "nan"),
        (8, "probability", "inf"),
    ]
    assert check_probabilities(events(probability=[1, 0]), NAMES) == []
    assert check_probabilities(events(probability=pa.nulls(3)), NAMES) == []
    (fault,) = check_columns(events(probability=["0.5"]).schema, NAMES)
    assert "its type is string" in fault.message
    assert 'names={"probability": "..."}' in fault.message
    other = Names(probability="score")
    assert check_columns(events(probability=["0.5"]).schema, other) == []
    assert len(check_probabilities(events(score=[2.0]), other)) == 1
    assert len(uc.validate(events(probability=[0.5, 1.5]))) == 1


def test_pmfs_count_ticks_not_units() -> None:
    table = pa.table({"lower": pa.array([0]), "upper": pa.array([200])})
    stamps = pa.table({name: table.column(name).cast(pa.timestamp("ms")) for name in table.column_names})
    stamps = stamps.append_column("pmf", pa.array([[0.25, 0.25, 0.5]]))
    assert check_pmfs(stamps, NAMES, TimeDomain.of(stamps.schema, tick="100ms")) == []
    assert len(check_pmfs(stamps, NAMES, TimeDomain.of(stamps.schema))) == 1


def test_pmfs_of_other_layouts_and_in_slices() -> None:
    table = events(
        lower=[1, 1, 1],
        upper=[2, 2, 2],
        pmf=pa.array([[0.5, 0.5], [0.5, 0.6], [0.25, 0.75]], pa.list_(pa.float32(), 2)),
    )
    assert [fault.row for fault in check_pmfs(table, NAMES, TICKS)] == [2]
    chunked = pa.concat_tables([table.slice(2), table.slice(1, 1), table.slice(0, 1)])
    assert [fault.row for fault in check_pmfs(chunked, NAMES, TICKS)] == [2]
    assert check_pmfs(events(pmf=pa.nulls(2)), NAMES, TICKS) == []


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([4, 9, 4, 5, 9, 4]),
        pa.array([4, 9, 4, 5, 9, 4], pa.uint8()),
        pa.array(["d", "i", "d", "e", "i", "d"]),
        pa.array(["d", "i", "d", "e", "i", "d"]).dictionary_encode(),
        pa.array(["d", "i", "d", "e", "i", "d"], pa.large_string()),
    ],
)
def test_ids_used_twice(ids: pa.Array) -> None:
    faults = check_ids(events(id=ids), NAMES)
    assert [fault.row for fault in faults] == [3, 5, 6]
    assert [fault.value for fault in faults] == [
        repr(value) for value in (ids[2].as_py(), ids[4].as_py(), ids[5].as_py())
    ]


def test_ids_need_be_unique_in_their_partition_only() -> None:
    table = events(id=[1, 1, 1, 1, None, None], job=["x", "y", "x", None, "x", "x"], task=[1, 1, 2, 1, 1, 1])
    assert [fault.row for fault in check_ids(table, NAMES)] == [2, 3, 4]
    assert [fault.row for fault in check_ids(table, NAMES, partition=["job"])] == [3]
    assert check_ids(table, NAMES, partition=["job", "task"]) == []
    (fault,) = check_events(table.slice(0, 4), NAMES, TICKS, partition=["job"])
    assert fault.message == "an earlier event with the same job has this id: give each event one of its own"


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["a", "b", None]), st.integers(0, 1))))
def test_ids_used_twice_are_those_that_counting_finds(rows: list[tuple[int, str | None, int]]) -> None:
    table = pa.table(
        {
            "id": pa.array([row[0] for row in rows], pa.int64()),
            "p": pa.array([row[1] for row in rows], pa.string()),
            "q": pa.array([row[2] for row in rows], pa.int64()),
        }
    )
    for partition in ([], ["p"], ["q"], ["p", "q"], ["q", "p"]):
        seen: Counter[tuple[object, ...]] = Counter()
        expected_rows = []
        for number, row in enumerate(table.to_pylist(), 1):
            key = (row["id"], *(row[name] for name in partition))
            seen[key] += None not in key
            if seen[key] > 1:
                expected_rows.append(number)
        faults = check_ids(table, NAMES, partition=partition, limit=100)
        assert [fault.row for fault in faults] == expected_rows


def test_many_faults_are_counted_not_listed() -> None:
    table = events(lower=[9] * 100, id=[1] * 100, type=[None] * 100, pmf=[[0.5]] * 100)
    faults = check_events(
        table.cast(table.schema.set(0, pa.field("type", pa.string()))), NAMES, TICKS, limit=3
    )
    assert len(faults) == 4 * 4
    assert [str(fault) for fault in faults if fault.row is None] == [
        "column 'type': the same in 97 more rows: an event needs a type: fill it in, or leave the row out",
        "column 'lower': 97 more intervals end before they begin",
        "column 'pmf': 97 more pmfs do not sum to 1",
        "column 'id': the same in 96 more rows: an earlier event has this id: give each event one of its own",
    ]


def test_faults_name_the_file_and_the_row_in_it() -> None:
    table = events(lower=[9, 5, 9, 5, 9])
    faults = check_events(table, NAMES, TICKS)
    whole = RowOrigin(("t.csv",), (5,), (None,))
    assert [(fault.file, fault.row) for fault in map(whole.placed, faults)] == [
        ("t.csv", 1), ("t.csv", 3), ("t.csv", 5),
    ]  # fmt: skip
    origin = RowOrigin(("a", "b", "c"), (2, 0, 3), (None, None, np.array([4, 7, 9])))
    assert [(fault.file, fault.row) for fault in map(origin.placed, faults)] == [
        ("a", 1), ("c", 5), ("c", 10),
    ]  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.integers(-3, 3),
            st.integers(-3, 3),
            st.one_of(st.none(), st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, -0.25]), max_size=4)),
        ),
        max_size=8,
    )
)
def test_the_rows_at_fault_are_those_that_exact_arithmetic_finds(
    rows: list[tuple[int, int, list[float] | None]],
) -> None:
    table = pa.table(
        {
            "type": pa.array(["A"] * len(rows), pa.string()),
            "id": pa.array(range(len(rows)), pa.int64()),
            "lower": pa.array([row[0] for row in rows], pa.int64()),
            "upper": pa.array([row[1] for row in rows], pa.int64()),
            "pmf": pa.array([row[2] for row in rows], pa.list_(pa.float64())),
        }
    )
    expected_rows = {
        number
        for number, (lower, upper, pmf) in enumerate(rows, 1)
        if lower > upper
        or (
            pmf is not None
            and (len(pmf) != upper - lower + 1 or min(pmf) < 0 or sum(map(Fraction, pmf)) != 1)
        )
    }
    assert {fault.row for fault in check_events(table, NAMES, TICKS, limit=100)} == expected_rows
