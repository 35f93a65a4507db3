"""Topics of Kafka as a data source over confluent-kafka, with its offsets in Spark's checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from uncertain_cep.config.tuning import KAFKA_ROWS
from uncertain_cep.errors import RuntimeEnvironmentError

__all__ = ["COLUMNS", "KafkaMessages", "first_messages"]

COLUMNS: Final = "key binary, value binary, partition int, offset long, timestamp long"
"""The columns of a message; its time is milliseconds since 1970, -1 if it has none."""

_SCHEMA: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
    ]
)

_KAFKA_POLL_SECONDS: Final = 0.5
"""How long to wait for as many messages of Kafka as are asked for at once."""

_KAFKA_SECONDS: Final = 30.0
"""Longest time that Kafka may take to answer."""


@dataclass(frozen=True, slots=True)
class _OffsetRange(InputPartition):
    """The messages of a partition from a first offset up to, but without, a last one."""

    partition: int
    start: int
    end: int


class KafkaMessages(DataSource):
    """The messages of a topic, each once."""

    @classmethod
    def name(cls) -> str:  # noqa: D102
        return "uncertain_cep_kafka"

    def schema(self) -> str:  # noqa: D102
        return COLUMNS

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002, D102, N802
        return _Reader(self.options)


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Asks the brokers for offsets; each task reads a range of one partition."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._servers, self._topic = options["servers"], options["topic"]
        self._most = int(options["most"]) if "most" in options else None
        self._last: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {str(number): low for number, (low, _) in self._bounds().items()}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        ends = self._last or {str(number): high for number, (_, high) in self._bounds().items()}
        # A partition that is added after the stream began is read from its first message.
        new = {number: max(end, start.get(number, 0)) for number, end in ends.items()}
        if not isinstance(limit, ReadMaxRows):
            return new
        waiting = {number: end - start.get(number, 0) for number, end in new.items()}
        share = max(_share(waiting.values(), limit.max_rows), 1)
        return {number: start.get(number, 0) + min(count, share) for number, count in waiting.items()}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self._most is None else ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = {str(number): high for number, (_, high) in self._bounds().items()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        ranges = (_OffsetRange(int(number), start.get(number, 0), stop) for number, stop in end.items())
        return [offsets for offsets in ranges if offsets.start < offsets.end]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _OffsetRange)
        yield from _read(self._servers, self._topic, partition)

    def _bounds(self) -> dict[int, tuple[int, int]]:
        """Return the first offset of each partition, and the one behind the last message."""
        return _bounds(self._servers, self._topic)


def _share(waiting: Iterable[int], total: int) -> int:
    """Return how many messages each partition may give, for at most so many in all.

    The number is the same for all. A partition that gave fewer in each batch would fall behind, and its
    events would be late.
    """
    sizes = sorted(waiting)
    for place, size in enumerate(sizes):
        share = total // (len(sizes) - place)
        if share < size:
            return share
        # The others may use what one partition leaves.
        total -= size
    return max(sizes)


def _consumer(servers: str) -> Consumer:
    settings = {
        "bootstrap.servers": servers,
        "group.id": "uncertain-cep",
        "enable.auto.commit": False,
        # Messages that retention has removed are an error, and not left out.
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        # Errors are exceptions, and not lines on stderr.
        "log_level": 0,
    }
    return Consumer(settings)


def _bounds(servers: str, topic: str) -> dict[int, tuple[int, int]]:
    consumer = _consumer(servers)
    try:
        topic_metadata = consumer.list_topics(topic, timeout=_KAFKA_SECONDS).topics[topic]
        if topic_metadata.error is not None or not topic_metadata.partitions:
            raise RuntimeEnvironmentError(f"Kafka at {servers} has no topic {topic}")
        return {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=_KAFKA_SECONDS)
            for number in sorted(topic_metadata.partitions)
        }
    except KafkaException as error:
        raise _unreachable(servers, error) from error
    finally:
        consumer.close()


def first_messages(servers: str, topic: str, count: int) -> pa.Table:
    """Return the first messages of a topic, about so many at most, to infer columns from."""
    bounds = _bounds(servers, topic)
    each = -(-count // len(bounds))
    batches = [
        batch
        for number, (low, high) in bounds.items()
        if low < high
        for batch in _read(servers, topic, _OffsetRange(number, low, min(high, low + each)))
    ]
    return pa.Table.from_batches(batches, _SCHEMA)


def _read(servers: str, topic: str, offsets: _OffsetRange) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a range. Some offsets have none: transaction markers, compacted messages."""
    consumer = _consumer(servers)
    try:
        consumer.assign([TopicPartition(topic, offsets.partition, offsets.start)])
        behind = offsets.start
        # Counted by polls, not by a clock, which goes on while the machine is suspended.
        waited = 0.0
        while behind < offsets.end:
            # A poll waits for as many messages as it is asked for, and the last offsets may have none.
            received = consumer.consume(min(KAFKA_ROWS, offsets.end - behind), timeout=_KAFKA_POLL_SECONDS)
            waited = 0.0 if received else waited + _KAFKA_POLL_SECONDS
            if waited > _KAFKA_SECONDS:
                raise RuntimeEnvironmentError(
                    f"Kafka at {servers} gave no message of {topic}, partition {offsets.partition}, from "
                    f"offset {behind} within {_KAFKA_SECONDS:g} s"
                )
            messages = []
            for message in received:
                error = message.error()
                if error is None:
                    behind = int(message.offset() or 0) + 1
                    messages.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    behind = offsets.end
                else:
                    raise RuntimeEnvironmentError(
                        f"Kafka at {servers}, topic {topic}, partition {offsets.partition}, offset {behind}: "
                        f"{error.str()}"
                    )
            yield _batch([message for message in messages if (message.offset() or 0) < offsets.end])
    except KafkaException as error:
        raise _unreachable(servers, error) from error
    finally:
        consumer.close()


def _batch(messages: Sequence[Message]) -> pa.RecordBatch:
    rows = [
        {
            "key": message.key(),
            "value": message.value(),
            "partition": message.partition(),
            "offset": message.offset(),
            "timestamp": message.timestamp()[1],
        }
        for message in messages
    ]
    return pa.RecordBatch.from_pylist(rows, _SCHEMA)


def _unreachable(servers: str, error: KafkaException) -> RuntimeEnvironmentError:
    return RuntimeEnvironmentError(f"Kafka at {servers}: {error.args[0].str() if error.args else error}")
