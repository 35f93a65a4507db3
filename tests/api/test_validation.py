"""``validate``: the same faults of files and of frames, ids within partitions, and what is doubtful."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.model_files import PARTS, trace
from uncertain_cep.timeline.domain import MODEL_COLUMNS

KEYED = "PATTERN SEQ(A a, B b) WHERE [job] WITHIN 9"
PLAIN = "PATTERN SEQ(A a, B b) WITHIN 9"


def events(**columns: Any) -> pa.Table:
    basis: dict[str, Any] = {
        "type": ["A", "B", "A", "B"],
        "id": [1, 2, 3, 4],
        "lower": [0, 2, 4, 6],
        "upper": [1, 3, 5, 7],
        "job": ["x", "x", "y", "y"],
    }
    return pa.table({**basis, **columns})


def rows_of(faults: list[uc.TraceFault]) -> list[tuple[int | None, str | None]]:
    return [(fault.row, fault.column) for fault in faults]


def test_a_sound_trace_has_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(events(), file)
    table = events()
    for given_ in (
        table,
        table.to_pandas(),
        pl.from_arrow(table),
        table.to_reader(),
        file,
        str(file),
        [file],
    ):
        assert uc.validate(given_) == []
        if not isinstance(given_, pa.RecordBatchReader):
            assert uc.validate(given_, query=KEYED) == uc.validate(given_, query=uc.parse(PLAIN)) == []
            assert uc.validate(given_, query=uc.parse(PLAIN)) == []


@given(
    lower=st.lists(st.none() | st.integers(0, 7), min_size=4, max_size=4),
    ids=st.lists(st.none() | st.integers(0, 3), min_size=4, max_size=4),
    query=st.sampled_from([None, KEYED, PLAIN]),
)
def test_frames_and_files_have_the_same_faults(
    tmp_path_factory: pytest.TempPathFactory,
    lower: list[int | None],
    ids: list[int | None],
    query: str | None,
) -> None:
    table = events(lower=pa.array(lower, pa.int64()), id=pa.array(ids, pa.int64()))
    file = tmp_path_factory.mktemp("trace") / "t.parquet"
    pq.write_table(table, file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        of_frame, of_file = uc.validate(table, query=query), uc.validate(file, query=query)
    assert {fault.file for fault in of_file} <= {str(file)}
    assert [str(fault).partition("row")[2] for fault in of_file] == [
        str(fault).partition("row")[2] for fault in of_frame
    ]
    seen: set[tuple[object, ...]] = set()
    again = []
    for number, (job, one) in enumerate(zip(["x", "x", "y", "y"], ids, strict=True), 1):
        key = (one, job if query == KEYED else None)
        again += [number] if one is not None and key in seen else []
        seen.add(key)
    expected_faults = {(row, "id") for row in again}
    expected_faults |= {(row, "id") for row, one in enumerate(ids, 1) if one is None}
    expected_faults |= {
        (row, "lower") for row, one in enumerate(lower, 1) if one is None or one > 2 * row - 1
    }
    assert set(rows_of(of_frame)) == expected_faults


def test_ids_are_looked_for_in_the_partitions_of_a_query_beside_other_faults() -> None:
    table = events(id=[1, 2, 1, 2])
    assert rows_of(uc.validate(table)) == rows_of(uc.validate(table, query=PLAIN)) == [(3, "id"), (4, "id")]
    assert uc.validate(table, query=KEYED) == []
    table = events(id=[1, 2, 1, 1], lower=[0, 9, 4, 6])
    assert rows_of(uc.validate(table, query=KEYED)) == [(2, "lower"), (4, "id")]


def test_where_faults_forbid_a_plan_ids_are_left(tmp_path: Path) -> None:
    table = events(id=[1, 2, 1, 2], lower=[0, 9, 4, 6]).drop_columns(["job"])
    assert rows_of(uc.validate(table, query=KEYED)) == [(2, "lower")]
    with pytest.raises(uc.QueryError, match="job"):
        uc.validate(table.slice(2), query=KEYED)
    with pytest.raises(uc.QuerySyntaxError):
        uc.validate(tmp_path / "missing.csv", query="PATTERN SEQ(A a")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (events().drop_columns(["lower"]), "column 'lower': there is no such column"),
        (events(id=[0.5, 1.5, 2.5, 3.5]), "column 'id': its type is double"),
        (events(tick=["1s", "1ms", "1s", "1s"]), "tick"),
        (events(lower=["a", "b", "c", "d"]), "lower"),
    ],
)
@pytest.mark.parametrize("query", [None, KEYED])
def test_columns_at_fault_are_faults_of_a_frame(table: pa.Table, said: str, query: str | None) -> None:
    (fault,) = uc.validate(table, query=query)
    assert said in str(fault)


def test_mixed_values_are_a_fault_of_a_frame() -> None:
    (fault,) = uc.validate(pd.DataFrame({"type": ["A", 3], "id": [1, 2], "lower": [1, 2], "upper": [1, 2]}))
    assert "values of different types" in fault.message


def test_ticks() -> None:
    stamps = events(
        lower=pa.array([0, 2_000, 4_001, 6_000], pa.timestamp("ns")),
        upper=pa.array([1_000, 3_000, 5_000, 7_000], pa.timestamp("ns")),
    )
    assert rows_of(uc.validate(stamps)) == [(3, "lower")]
    assert uc.validate(stamps, tick="1ns") == []


def test_what_may_not_be_meant_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(uc.UncertainCepWarning, match="no event of type AA; did you mean A"):
        assert uc.validate(events(), query="PATTERN SEQ(AA a, B b) WITHIN 9") == []
    file = tmp_path / "t.parquet"
    pq.write_table(events().slice(0, 0), file)
    for query in (None, KEYED):
        for nothing in (file, events().slice(0, 0)):
            with pytest.warns(uc.UncertainCepWarning, match="the trace has no events") as caught:
                assert uc.validate(nothing, query=query) == []
            assert len(caught) == 1
            assert caught[0].filename == __file__


WHOLE = ("id", "lower", "upper", "offset_lower", "offset_upper", "sequence")


@pytest.mark.parametrize("column", WHOLE)
def test_whole_numbers_that_pandas_made_floats(column: str) -> None:
    """One missing value makes floats of a column; the error names the type that does not."""
    frame = trace(3, PARTS["sequence"]).to_pandas().astype(dict.fromkeys(WHOLE, "Int64"))
    assert uc.validate(frame) == []
    frame[column] = frame[column].astype(float)
    said = f'frame\\[.{column}.\\].astype\\("Int64"\\) keeps them whole'
    with pytest.raises(uc.TraceError, match=said):
        uc.match(frame, ANY)
    (fault,) = uc.validate(frame)
    assert re.search(said, str(fault))


def put(table: pa.Table, **columns: Any) -> pa.Table:
    for name, values in columns.items():
        table = table.drop_columns([name]) if name in table.column_names else table
        table = table.append_column(name, pa.array(values))
    return table


ORDERED = pa.table(
    {"type": ["A", "B", "A"], "id": [1, 2, 3], "lower": [5, 9, 2], "upper": [5, 9, 2], "source": ["s"] * 3,
     "sequence": [0, 1, 2], "ordered": [True] * 3}
)  # fmt: skip


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (ORDERED, "row 2, column 'sequence': by the order of the source row 3 comes later"),
        # The first of two records is at 9 for certain, whatever its interval, and the second at 5.
        (
            put(ORDERED.slice(1), lower=[5, 5], upper=[9, 9], pmf=[[0.0] * 4 + [1.0], [1.0] + [0.0] * 4]),
            "row 1, column 'sequence': by the order of the source row 2 comes later",
        ),
        # Within the bounds there are times in order, but none that both laws allow.
        (
            put(ORDERED.slice(1), lower=[5, 5], upper=[7, 7], pmf=[[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]]),
            "row 1, column 'sequence': by the order of the source row 2 comes later",
        ),
        (ORDERED.drop_columns(["sequence"]).append_column("offset_lower", [[0] * 3]).append_column(
            "offset_upper", [[0] * 3]), "column 'ordered': it says that events of a source are in the order"),
        (
            put(ORDERED, sequence=pa.array([0, 1, 2**63], pa.uint64())),
            "row 3, column 'sequence', value 9223372036854775808: a sequence is",
        ),
    ],
)  # fmt: skip
def test_orders_that_no_world_has(table: pa.Table, said: str, tmp_path: Path) -> None:
    with pytest.raises(uc.TraceError, match=re.escape(said)):
        uc.match(table, ANY)
    assert [str(fault).startswith(said) for fault in uc.validate(table)] == [True]
    assert uc.validate(table, query=ANY) == uc.validate(table)
    pq.write_table(table, tmp_path / "t.parquet")
    (fault,) = uc.validate(tmp_path / "t.parquet")
    assert str(fault).startswith(f"{tmp_path / 't.parquet'}, {said}")


def test_both_rows_of_a_fault_are_those_of_their_files(tmp_path: Path) -> None:
    one, other = tmp_path / "one.parquet", tmp_path / "other.parquet"
    pq.write_table(ORDERED.slice(0, 2), one)
    pq.write_table(ORDERED.slice(2), other)
    (fault,) = uc.validate([one, other])
    assert str(fault).startswith(
        f"{one}, row 2, column 'sequence': by the order of the source row 1 of {other} comes"
    )
    offsets = put(ORDERED.drop_columns(["ordered"]), offset_lower=[0, 0, -1], offset_upper=[0, 0, -1])
    pq.write_table(offsets.slice(0, 2), one)
    pq.write_table(offsets.slice(2), other)
    (fault,) = uc.validate([one, other])
    assert f"{other}, row 1, column 'source', value 's': the clock has other bounds in row 1 of {one}" in str(
        fault
    )


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_a_clock_that_was_set_back_is_told(unit: str) -> None:
    table = ORDERED.drop_columns(["ordered"])
    with pytest.warns(
        uc.UncertainCepWarning, match="the clock of s was set back between the event 2 .lower 9. and"
    ):
        assert uc.validate(table) == []
    stamps = table
    for name in ("lower", "upper"):
        times = table.column(name).cast(pa.timestamp(unit))
        stamps = stamps.set_column(stamps.column_names.index(name), name, times)
    with pytest.warns(
        uc.UncertainCepWarning,
        match="set back between the event 2 .lower 1970-01-01 00:00:0.* and the event 3",
    ):
        assert uc.validate(stamps, tick=f"1{unit}") == []
    # Where times by the clock overlap, they contradict nothing.
    wide = put(table, lower=[0, 0, 0], upper=[9, 9, 9])
    several = put(table, sequence=[2, 3, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert uc.validate(wide) == uc.validate(several) == []
        # Offsets of the clock move all of its events.
        assert (
            uc.validate(
                put(wide, lower=[0, 3, 9], upper=[4, 7, 13], offset_lower=[0] * 3, offset_upper=[4] * 3)
            )
            == []
        )
    clocks_set_back = pa.concat_tables(
        [put(table, source=[str(number)] * 3, id=range(3 * number, 3 * number + 3)) for number in range(7)]
    )
    with pytest.warns(uc.UncertainCepWarning) as warned:
        assert uc.validate(clocks_set_back) == []
    assert len(warned) == 6
    assert "2 more sources" in str(warned[-1].message)


def test_options_that_are_not_for_frames() -> None:
    with pytest.raises(uc.OptionError, match="schema= says how files are read"):
        uc.validate(events(), "schema.toml")
    with pytest.raises(uc.OptionError, match="format= says how files are read"):
        uc.validate(events(), format="csv")
    with pytest.raises(uc.OptionError, match="a int is no frame of rows"):
        uc.validate(3)


def test_no_file_is_a_fault(tmp_path: Path) -> None:
    assert ["no file is given" in str(fault) for fault in uc.validate([])] == [True]
    assert ["there is no such file" in str(fault) for fault in uc.validate(tmp_path / "x.csv")] == [True]


ANY = "PATTERN SEQ(ANY a, ANY b) WITHIN 9"
SPOILING: dict[str, tuple[Any, ...]] = {
    "type": (None, 3, "A"), "id": (None, 1, "x", 2**63, 0.5), "lower": (None, 9, 2**62, -(2**63), "a"),
    "upper": (None, -9, 2**62, 2**64 - 1), "source": (None, "g", "new", 3, b"g"),
    "offset_lower": (None, 0, 1, -(2**62), 0.5, "0"), "offset_upper": (None, 0, -3, 2**63 - 1),
    "sequence": (None, 0, 70, -1, 2**63, 0.5, "x"), "ordered": (None, True, False, 1, "true"),
    "offset_pmf": (None, [], [1.0], [0.0, 0.0, 0.0, 1.0], [-1.0, 2.0, 0.0, 0.0], [None, 1.0], ["a"], 1.0),
    "probability": (None, 0, 1.5, -1, float("nan"), "x", True), "tick": (None, "2s", "x", 3, "0s"),
    "pmf": (None, [], [1.0], [0.5, 0.5], [0.0, 0.0, 1.0], [float("nan")], ["a"], 0.5),
}  # fmt: skip


def spoilt(
    table: pa.Table, column: str, row: int | None, value: Any, dtype: pa.DataType | None
) -> pa.Table | None:
    """Return a table with another value in a row, or without a column; None if Arrow cannot hold it."""
    if value is ...:
        return table.drop_columns([column])
    try:
        values = table.column(column).to_pylist()
        for place in range(len(values)) if row is None else [row % len(values)]:
            values[place] = value
        made = pa.array(values) if dtype is None else pa.array(values, dtype)
    except (pa.ArrowException, OverflowError):
        return None
    return table.set_column(table.column_names.index(column), column, made)


def is_refused(table: pa.Table) -> bool:
    try:
        uc.match(table, ANY)
    except uc.TraceError:
        return True
    return False


@given(
    seed=st.integers(0, 99),
    part=st.sampled_from(list(PARTS)),
    spoiled=st.lists(
        st.tuples(st.integers(0, 12), st.none() | st.integers(0, 7), st.integers(0, 9)), max_size=2
    ),
    dtype=st.sampled_from(
        [None, pa.int32(), pa.uint64(), pa.float32(), pa.decimal128(38, 0), pa.duration("s")]
    ),
)
def test_what_match_refuses_in_a_trace_is_a_fault(
    seed: int, part: str, spoiled: list[tuple[int, int | None, int]], dtype: pa.DataType | None
) -> None:
    table = trace(seed, PARTS[part])
    for at, row, chosen in spoiled:
        column = MODEL_COLUMNS[at]
        if column not in table.column_names:
            continue
        values = (..., *SPOILING[column])
        changed = spoilt(table, column, row, values[chosen % len(values)], dtype)
        table = table if changed is None else changed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        assert bool(uc.validate(table)) == bool(uc.validate(table, query=ANY)) == is_refused(table)
