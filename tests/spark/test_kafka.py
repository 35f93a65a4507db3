"""Topics of Kafka, on a real broker, have the matches of a table of their messages, each once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

import uncertain_cep as uc
from tests.spark.kafka_broker import broker, make_topic, send
from tests.spark.killed_streams import QUERIES, closed, command, commits, started, trace, written
from tests.spark.streams import TOO_BUSY, counted, run
from tests.spark.traces import as_rows
from uncertain_cep.errors import OptionError, RuntimeEnvironmentError, TraceError
from uncertain_cep.spark import kafka_source, match
from uncertain_cep.spark.kafka_streams import columns_of_topic, stream_of_topic
from uncertain_cep.traces import load_schema

SCHEMA = """
[[events]]
type_column = "type"
id = "id"
uncertainty = { kind = "columns", lower = "from", upper = "until" }
attributes = ["key", "value", "partition", "offset", "timestamp"]
"""
PATIENCE = 3600


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the broker of these tests is."""
    with broker() as broker_address:
        yield broker_address


def messages(table: pa.Table) -> list[dict[str, object]]:
    """Return events as the objects that a producer sends."""
    rows = table.rename_columns({"lower": "from", "upper": "until"}).to_pylist()
    return [dict(row) for row in rows]


def test_the_offsets_and_messages_of_partitions(address: str) -> None:
    make_topic(address, "parts", 2)
    sent = messages(trace(7, 5))
    send(address, "parts", sent, 2)
    reader = kafka_source._Reader({"servers": address, "topic": "parts", "most": "4"})
    begin = reader.initialOffset()
    assert begin == {"0": 0, "1": 0}
    assert reader.latestOffset(begin, reader.getDefaultReadLimit()) == {"0": 2, "1": 2}
    reader.prepareForTriggerAvailableNow()
    end = reader.latestOffset(begin, ReadAllAvailable())
    assert end == {"0": 4, "1": 3}
    batches = [batch for part in reader.partitions(begin, end) for batch in reader.read(part)]
    rows = pa.Table.from_batches(batches).sort_by([("offset", "ascending"), ("partition", "ascending")])
    assert [json.loads(value) for value in rows["value"].to_pylist()] == sent
    assert rows["key"].to_pylist() == [f"k{number}".encode() for number in range(7)]
    assert reader.partitions(end, end) == []


@pytest.mark.thorough
def test_the_messages_of_a_topic(spark: SparkSession, address: str, tmp_path: Path) -> None:
    table = trace(600, 5)
    make_topic(address, "small", 2)
    send(address, "small", messages(table), 2)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    schema = load_schema(tmp_path / "schema.toml")
    columns = columns_of_topic(address, "small", schema)
    assert {"key", "partition", "offset", "timestamp"} < set(columns.names)
    events = stream_of_topic(spark, address, "small", schema, columns, 300)
    query = (
        QUERIES["plain"].replace("WHERE", "WHERE a.offset >= 0 AND a.partition < 2 AND") + " RETURN a.offset"
    )
    rows, done = run(match(events, query, largest_interval=7), tmp_path)
    assert counted(done)["events"] == 600
    assert counted(done)["late"] == 0
    assert len(done) == 2
    # Nothing has ended the stream: what is near its end is not final yet.
    expected = uc.match(table, QUERIES["plain"])
    final = expected.filter(pa.compute.less(expected.column("range_upper"), 600))
    names = final.column_names[:-1]
    assert 0 < final.num_rows <= rows.num_rows
    assert set(as_rows(final.select(names))) <= set(as_rows(rows.select(names)))
    offsets = dict(zip(rows.column("a").to_pylist(), rows.column("a.offset").to_pylist(), strict=True))
    assert all(offset == id // 2 for id, offset in offsets.items())


@pytest.mark.thorough
def test_a_kill_in_the_middle_of_many_messages(address: str, tmp_path: Path) -> None:
    table = trace(50_000, 6)
    make_topic(address, "many", 3)
    send(address, "many", messages(table), 3)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    arguments = command(tmp_path, QUERIES["next"], "--close", "--schema", str(tmp_path / "schema.toml"))
    arguments[arguments.index("--source") + 1] = f"kafka://{address}/many"
    arguments[arguments.index("--batch") + 1] = "5000"
    process = started(arguments, tmp_path / "log")
    until = time.monotonic() + PATIENCE
    while commits(tmp_path) < 4:
        if process.poll() is not None:
            assert TOO_BUSY in (said := (tmp_path / "log").read_text()), said
            process = started(arguments, tmp_path / "log")
        assert time.monotonic() < until, (tmp_path / "log").read_text()
        time.sleep(0.05)
    process.kill()
    process.wait()
    closed(arguments, tmp_path / "log")
    expected = uc.match(table, QUERIES["next"], max_matches=None)
    output = written(tmp_path / "out")
    assert output is not None
    assert as_rows(output.select(expected.column_names)) == as_rows(expected)
    assert expected.num_rows > 1000


def test_what_cannot_be_read(spark: SparkSession, address: str, tmp_path: Path) -> None:
    make_topic(address, "empty", 1)
    with pytest.raises(OptionError, match="the topic empty has no message yet"):
        columns_of_topic(address, "empty", None)
    with pytest.raises(RuntimeEnvironmentError, match="has no topic nowhere"):
        columns_of_topic(address, "nowhere", None)
    make_topic(address, "broken", 1)
    send(address, "broken", [{"type": "A", "id": 1, "lower": 1, "upper": 2}], 1)
    columns = columns_of_topic(address, "broken", None)
    send(address, "broken", ["no object"], 1)  # type: ignore[list-item]
    matches = match(
        stream_of_topic(spark, address, "broken", None, columns), "PATTERN SEQ(A a, B b) WITHIN 5",
        largest_interval=1,
    )  # fmt: skip
    with pytest.raises(TraceError, match="offset 1 of partition 0: it is no JSON object"):
        run(matches, tmp_path)


@pytest.mark.parametrize(
    ("starts", "ends", "most", "expected"),
    [
        # A partition that is always given one fewer falls behind, and its events are late.
        ([0, 0, 0], [900, 900, 900], 500, [166, 166, 166]),
        ([166, 166, 166], [900, 900, 900], 500, [332, 332, 332]),
        ([0, 0, 0], [900, 10, 900], 500, [245, 10, 245]),
        ([5, 5], [9, 5], 100, [9, 5]),
        ([0, 0, 0], [9, 9, 9], 2, [1, 1, 1]),
    ],
)
def test_partitions_give_the_same_share(
    starts: list[int], ends: list[int], most: int, expected: list[int]
) -> None:
    reader = kafka_source._Reader({"servers": "nowhere", "topic": "none"})
    reader._last = {str(number): end for number, end in enumerate(ends)}
    begins = {str(number): begin for number, begin in enumerate(starts)}
    assert [*reader.latestOffset(begins, ReadMaxRows(most)).values()] == expected
