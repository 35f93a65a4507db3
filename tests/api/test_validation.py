"""``validate``: the same faults of files and of frames, ids within partitions, and what is doubtful."""

from __future__ import annotations

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
    wanted = {(row, "id") for row in again}
    wanted |= {(row, "id") for row, one in enumerate(ids, 1) if one is None}
    wanted |= {(row, "lower") for row, one in enumerate(lower, 1) if one is None or one > 2 * row - 1}
    assert set(rows_of(of_frame)) == wanted


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
