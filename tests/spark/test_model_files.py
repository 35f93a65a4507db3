"""The commands on Spark answer as those in process do, whatever columns of the model a file has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.cases.model_files import FORMATS, IMPOSSIBLE, PARTS, QUERY, rows_of, trace, written
from tests.spark.killed_streams import written as found_in
from tests.spark.streams import patiently
from uncertain_cep.cli import main
from uncertain_cep.spark.dataframes import from_arrow_schema
from uncertain_cep.spark.file_streams import events_of_file, reading_of
from uncertain_cep.timeline.domain import Names

OFTEN = (("all", "jsonl"), ("ordered", "csv"), ("right clocks", "parquet"))
"""What is tried each time: every reader, all columns, and clocks without bounds."""

CASES = [
    pytest.param(part, name, marks=() if (part, name) in OFTEN else pytest.mark.thorough)
    for part in PARTS
    for name in FORMATS
]


@pytest.fixture(autouse=True)
def one_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the commands use the session of the tests, leave it as it was, and compile nothing aside."""

    def nothing_aside() -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    monkeypatch.setattr(SparkSession, "stop", lambda _: None)
    monkeypatch.setattr("uncertain_cep.cli.spark_sessions.compiling_aside", nothing_aside)
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize(("part", "format_name"), CASES)
def test_match_on_spark(tmp_path: Path, part: str, format_name: str) -> None:
    lists = ("pmf", "offset_pmf") if format_name == "csv" else ()
    table = trace(3, [name for name in PARTS[part] if name not in lists])
    file = written(table, tmp_path, format_name, "")
    result = run("match", QUERY, file, "--engine", "spark", "--master", "local[2]", "--format", "json")
    assert result.exit_code == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    expected = rows_of(uc.match(table, QUERY).to_pylist())
    assert expected
    assert rows_of(rows) == expected


def test_an_order_that_leaves_no_time_on_spark(tmp_path: Path) -> None:
    file = written(IMPOSSIBLE, tmp_path, "jsonl", "")
    result = run("match", QUERY, file, "--engine", "spark", "--master", "local[2]")
    assert result.exit_code == 2
    assert "by the order of the source" in result.stderr


@pytest.mark.parametrize("part", PARTS)
def test_what_a_stream_reads(spark: SparkSession, tmp_path: Path, part: str) -> None:
    """Each file has the events that it has for a table; tests/spark/test_streams.py matches them."""
    table = trace(3, PARTS[part])
    file = written(table, tmp_path, "jsonl", ".gz")
    columns = from_arrow_schema(uc.read_traces(file).schema, Names())
    reading, schema = reading_of(spark, tmp_path, None, columns)
    read = pa.Table.from_batches(events_of_file(file, reading, schema))
    assert sorted(read.column_names) == sorted(table.column_names)
    assert rows_of(uc.match(read, QUERY).to_pylist()) == rows_of(uc.match(table, QUERY).to_pylist())


@pytest.mark.thorough
@pytest.mark.parametrize("part", PARTS)
def test_stream_once(tmp_path: Path, part: str) -> None:
    # Streams refuse records whose times depend on those to come.
    table = trace(3, [name for name in PARTS[part] if name != "ordered"])
    (tmp_path / "in").mkdir()
    written(table.sort_by("lower"), tmp_path / "in", "jsonl", "")
    where = ("--source", tmp_path / "in", "--checkpoint", tmp_path / "state", "-o", tmp_path / "out")
    length = ("--largest-interval", "20s" if "tick" in table.column_names else 20, "--trigger", "100ms")

    def streamed() -> None:
        result = run("stream", QUERY, *where, *length, "--close", "--master", "local[2]")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.stderr

    patiently(streamed)
    read = found_in(tmp_path / "out")
    assert read is not None
    rows = read.filter(pc.equal(read["kind"], "match")).to_pylist()
    expected = rows_of(uc.match(table, QUERY).to_pylist())
    assert expected
    assert rows_of(rows) == expected
