"""Results are complete or not there at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow.csv import write_csv
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.spark.traces import KEYED, as_rows, random_trace, to_spark
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.spark import match, match_to_parquet, read_traces, write_matches

TWICE = pa.table({"type": ["A", "B", "A"], "id": [7, 8, 7], "lower": [1, 2, 3], "upper": [1, 2, 3]})
PAIR = "PATTERN SEQ(A a, B b) WITHIN 5"


@pytest.mark.parametrize("format_name", ["parquet", "csv", "json"])
def test_formats(spark: SparkSession, tmp_path: Path, format_name: str) -> None:
    table = random_trace(1, 300, keys=5)
    folder = tmp_path / "deep" / "matches of today"
    write_matches(match(to_spark(spark, table), KEYED), folder, format_name)  # type: ignore[arg-type]
    expected = uc.match(table, KEYED)
    output = ds.dataset(folder, format=format_name).to_table()
    assert as_rows(output.select(expected.column_names).cast(expected.schema)) == as_rows(expected)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize("clause", ["", "HAVING CONFIDENCE >= 0.3", "ORDER BY CONFIDENCE DESC LIMIT 4"])
def test_parquet_by_the_workers(spark: SparkSession, tmp_path: Path, clause: str) -> None:
    table = random_trace(2, 300, keys=5)
    query = f"{KEYED} {clause}"
    expected = uc.match(table, query)
    folder = (tmp_path / "matches").as_uri()
    count = match_to_parquet(to_spark(spark, table), query, folder, partitions=3, slice_length=20)
    assert count == expected.num_rows
    output = pq.read_table(tmp_path / "matches")
    assert output.schema.names == expected.schema.names
    assert as_rows(output) == as_rows(expected)
    assert as_rows(spark.read.parquet(folder).toArrow()) == as_rows(expected)


def test_no_matches_leave_an_empty_file(spark: SparkSession, tmp_path: Path) -> None:
    frame = to_spark(spark, random_trace(3, 50))
    for query in (PAIR.replace("B", "Unknown"), PAIR.replace("A a", "Unknown a")):
        assert match_to_parquet(frame, query, tmp_path / "none", overwrite=True) == 0
        output = pq.read_table(tmp_path / "none")
        assert output.num_rows == 0
        assert output.column_names[-1] == "confidence"


def test_nothing_is_overwritten_unless_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    frame = to_spark(spark, random_trace(4, 50))
    folder = tmp_path / "matches"
    folder.mkdir()
    (folder / "precious").write_text("kept")
    with pytest.raises(OptionError, match="is there already"):
        match_to_parquet(frame, PAIR, folder)
    with pytest.raises(OptionError, match="is there already"):
        write_matches(match(frame, PAIR), folder)
    assert (folder / "precious").read_text() == "kept"
    match_to_parquet(frame, PAIR, folder, overwrite=True)
    write_matches(match(frame, PAIR), folder, overwrite=True)
    assert not (folder / "precious").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["matches"]


def test_a_failure_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(TWICE)
    with pytest.raises(TraceError, match="has this id"):
        match_to_parquet(frame, PAIR, tmp_path / "matches")
    with pytest.raises(TraceError, match="has this id"):
        write_matches(match(frame, PAIR), tmp_path / "matches")
    assert list(tmp_path.iterdir()) == []


def test_unknown_format(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="parquet, csv or json"):
        write_matches(spark.range(1), tmp_path / "x", "orc")  # type: ignore[arg-type]


@pytest.mark.parametrize("by", ["workers", "Spark"])
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_what_a_frame_is_made_of_is_not_overwritten(
    spark: SparkSession, tmp_path: Path, suffix: str, by: str
) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    file = folder / f"events.{suffix}"
    if suffix == "csv":
        write_csv(TWICE, file)
    else:
        pq.write_table(TWICE, file)
    before = file.read_bytes()
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    frame = read_traces(spark, file).filter("lower >= 0")

    def write(place: str | Path) -> None:
        if by == "workers":
            match_to_parquet(frame, PAIR, place, overwrite=True)
        else:
            write_matches(match(frame, PAIR), place, overwrite=True)

    for place in (folder, tmp_path, tmp_path / "link", folder.as_uri()):
        with pytest.raises(OptionError, match="name another place"):
            write(place)
    assert file.read_bytes() == before
    match_to_parquet(frame, "PATTERN SEQ(B b) WITHIN 1", folder / "matches", overwrite=True)


def test_only_texts_are_written_with_dictionaries(spark: SparkSession, tmp_path: Path) -> None:
    table = random_trace(6, 300, keys=5)
    query = (
        KEYED.replace("[key]", "[key] AND a.name = a.name")
        + " RETURN a.name AS named, b.weight AS `per cent`"
    )
    write_matches(match(to_spark(spark, table), query), tmp_path / "matches")
    part = next(path for path in (tmp_path / "matches").glob("*.parquet") if pq.read_metadata(path).num_rows)
    group = pq.read_metadata(part).row_group(0)
    encoded = {
        column.path_in_schema: any("DICTIONARY" in encoding for encoding in column.encodings)
        for column in map(group.column, range(group.num_columns))
    }
    assert encoded.pop("named")
    assert encoded["per cent"] is False
    assert not any(encoded.values())
