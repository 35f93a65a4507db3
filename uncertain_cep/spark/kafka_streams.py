"""Topics of Kafka, whose messages are JSON objects, as streaming frames of events."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from uncertain_cep.config.tuning import KAFKA_ROWS
from uncertain_cep.errors import OptionError, RuntimeEnvironmentError, TraceError, TraceFault
from uncertain_cep.running.installation import needed
from uncertain_cep.spark.dataframes import from_arrow_schema, in_workers
from uncertain_cep.spark.file_streams import FolderReading, events_of_file, reading_of
from uncertain_cep.timeline.domain import Names
from uncertain_cep.traces import TraceSchema, read_traces

__all__ = ["check_kafka", "columns_of_topic", "stream_of_topic"]

_FILE: Final = "messages.jsonl"

_MESSAGES_LEARNED_FROM: Final = 1_000
"""Messages of a topic that are read beforehand, to learn the columns of a stream."""


def columns_of_topic(servers: str, topic: str, schema: TraceSchema | None) -> t.StructType:
    """Return the columns of the events of a topic, inferred from its first messages."""
    check_kafka()
    from uncertain_cep.spark.kafka_source import first_messages

    if schema is not None and any(events.id is None for events in schema.events):
        raise OptionError(
            'a stream needs ids: name a field of them, or id = "{partition}:{offset}", in the schema'
        )
    messages = first_messages(servers, topic, _MESSAGES_LEARNED_FROM)
    if not messages.num_rows:
        raise OptionError(f"the topic {topic} has no message yet to learn the columns from: send one first")
    with tempfile.TemporaryDirectory(prefix="uncertain-cep-") as folder:
        file = _written(Path(folder), messages)
        return from_arrow_schema(read_traces(file, schema).schema, Names())


def stream_of_topic(
    spark: SparkSession,
    servers: str,
    topic: str,
    schema: TraceSchema | None,
    columns: t.StructType,
    batch_limit: int | None = None,
) -> DataFrame:
    """Return the events of the messages of a topic, at most so many a batch, from the first one on.

    They are read by Spark's own connector if it is on the class path, else by confluent-kafka.
    """
    try:
        source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        source = source.option("subscribe", topic).option("startingOffsets", "earliest")
        if batch_limit is not None:
            source = source.option("maxOffsetsPerTrigger", batch_limit)
        records = source.load()
        messages = records.select(
            "key", "value", "partition", "offset", f.unix_millis("timestamp").alias("timestamp")
        )
    except AnalysisException:
        check_kafka()
        from uncertain_cep.spark.kafka_source import KafkaMessages

        spark.dataSource.register(KafkaMessages)
        plain = spark.readStream.format(KafkaMessages.name()).option("servers", servers)
        messages = (
            (plain if batch_limit is None else plain.option("most", batch_limit))
            .option("topic", topic)
            .load()
        )
    reading, event_schema = reading_of(spark, Path("/"), schema, columns)
    read = partial(_events_of_messages, reading=reading, schema=event_schema)
    return in_workers(messages, read, columns)


def check_kafka() -> None:
    """Raise an error if topics cannot be read for lack of what is to be installed."""
    needed("kafka")
    import pyspark

    if tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 2):
        raise RuntimeEnvironmentError(
            f"Kafka needs pyspark 4.2 or newer, or Spark's connector on the class path; this is "
            f"{pyspark.__version__}"
        )


def _events_of_messages(
    batches: Iterable[pa.RecordBatch], *, reading: FolderReading, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the events of messages, through a file that the reader of traces reads."""
    with tempfile.TemporaryDirectory(prefix="uncertain-cep-") as folder:
        for batch in batches:
            for start in range(0, batch.num_rows, KAFKA_ROWS):
                messages = pa.Table.from_batches([batch.slice(start, KAFKA_ROWS)])
                file = _written(Path(folder), messages)
                if file.stat().st_size:
                    yield from events_of_file(file, reading, schema)


def _written(folder: Path, messages: pa.Table) -> Path:
    """Write messages as JSON lines, each with Kafka's columns; its own fields take precedence."""
    file = folder / _FILE
    with file.open("w", encoding="utf-8") as sink:
        for row in messages.to_pylist():
            value = row.pop("value")
            if value is None:
                # A tombstone: the message of this key was deleted.
                continue
            key = row["key"]
            row["key"] = None if key is None else key.decode("utf-8", "replace")
            sink.write(json.dumps(row | _object(value, row)) + "\n")
    return file


def _object(value: bytes, message: dict[str, Any]) -> dict[str, Any]:
    try:
        value_read = json.loads(value)
    except ValueError as error:
        reason = f"it is no JSON: {error}"
    else:
        if isinstance(value_read, dict):
            return value_read
        reason = "it is no JSON object"
    where = f"the message at offset {message['offset']} of partition {message['partition']}: "
    raise TraceError(TraceFault(where + reason, value=value[:80].decode("utf-8", "replace")))
