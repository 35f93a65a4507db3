"""The formats, what tells them apart, and how each becomes a table."""

from __future__ import annotations

import gc
import io
import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, BinaryIO, Final

import pyarrow as pa

from uncertain_cep.errors import TraceError
from uncertain_cep.running.compiling import compiled_for_reading, spent_reading
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import parse_duration
from uncertain_cep.traces.readers import influx
from uncertain_cep.traces.readers.event_columns import TIMES
from uncertain_cep.traces.readers.plug_ins import PlugIn, plug_in
from uncertain_cep.traces.readers.source import Source
from uncertain_cep.traces.table_formats import FILE_FORMATS
from uncertain_cep.traces.unpacking import FIRST_BYTES

__all__ = ["READERS", "Reader", "event_blocks", "finest_tick", "read_events", "recognised"]

_TAKEN: Final = frozenset((Names().pmf, Names().tick, Names().probability))


@dataclass(frozen=True, slots=True)
class Reader:
    """A format.

    The module ``uncertain_cep.traces.readers.<module>`` has two names. ``ATTRIBUTES`` is a pyarrow.Schema of
    the attributes. ``events`` takes a `Source` and yields batches: the columns type, id, lower and upper
    (both inclusive, whole ``unit``s since 1970), the attributes in their order, and further ones;
    `in_batches` makes them of tuples. It raises a TraceError with the row of what it cannot read.
    """

    what: str
    """The format in words."""
    module: str
    unit: str
    """Of the stamps: ``s``, ``ms``, ``us`` or ``ns``."""
    tick: str
    """Length of a tick, unless another is named."""
    begins: str
    """What a file of this format alone begins with, as a regular expression."""
    by_columns: bool = False
    """Whether kernels make columns of many records."""
    spans: bool = False
    """Whether ids of begins and ends, ``X:start`` and ``X:end``, tell which belong together."""
    plug_in: PlugIn | None = None
    """The reader of another package, in place of the module."""

    def content(self) -> Any:
        """Return the module or the plug-in, which has ``ATTRIBUTES`` and ``events``."""
        return self.plug_in or import_module(f"uncertain_cep.traces.readers.{self.module}")


class _Readers(dict[str, Reader]):
    """The formats of this package, and, asked for by name, those of other packages.

    These are neither listed nor recognised: to look for all takes as long as to import this package.
    """

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self._plugged(name) is not None

    def __missing__(self, name: str) -> Reader:
        plugged = self._plugged(name)
        if plugged is None:
            raise KeyError(name)
        return Reader(name, "", plugged.unit, plugged.tick, r"(?!)", plug_in=plugged)

    def _plugged(self, name: object) -> PlugIn | None:
        is_name = isinstance(name, str) and name not in ("", *FILE_FORMATS)
        return plug_in(str(name)) if is_name else None


_COMMENTS: Final = r"(?>(?:<!--.*?-->\s*)*)"
_XML: Final = rf"(?:<\?xml[^>]*\?>\s*)?{_COMMENTS}(?:<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>\s*)?{_COMMENTS}<"
_RUMEN: Final = r'\{\s*"priority"\s*:\s*"\w+"\s*,\s*"jobID"\s*:'

READERS: Final = _Readers({
    "spark-eventlog": Reader(
        "Spark event log", "spark_eventlog", "ms", "1ms",
        r'\{"Event":"(?:org\.apache\.spark\.|SparkListener)',
        by_columns=True,
        spans=True,
    ),
    "hadoop-jhist": Reader(
        "Hadoop job history, .jhist", "hadoop_jhist", "ms", "1ms", r"Avro-(?:Json|Binary)\r?\n",
        by_columns=True,
        spans=True,
    ),
    "hadoop-rumen": Reader("Rumen trace", "hadoop_rumen", "ms", "1ms", _RUMEN, spans=True),
    "hadoop-history": Reader(
        "Hadoop 0.20 job history", "hadoop_history", "ms", "1ms", r'Meta VERSION="|!!FILE=|Job JOBID="',
        spans=True,
    ),
    "ganglia": Reader("XML of Ganglia's gmond and gmetad", "ganglia", "s", "1s", _XML + "GANGLIA_XML\\b"),
    "rrd": Reader("XML of rrdtool dump", "rrd_dump", "s", "1s", _XML + r"rrd\b"),
    "prometheus": Reader(
        "answer or export of Prometheus as JSON", "prometheus", "ms", "1ms",
        r'\{\s*(?:"status"\s*:\s*"success"\s*,\s*"data"\s*:\s*\{\s*"resultType"|"metric"\s*:\s*\{\s*"__name__")',
    ),
    "openmetrics": Reader(
        "text of OpenMetrics and Prometheus", "openmetrics", "ms", "1ms",
        r"# (?:HELP|TYPE|UNIT) [a-zA-Z_:][a-zA-Z0-9_:]* ",
    ),
    "cloudwatch": Reader(
        "JSON of AWS CloudWatch", "cloudwatch", "s", "1s",
        r'\{\s*"(?:MetricDataResults"\s*:|Label"\s*:\s*"[^"]*"\s*,\s*"Datapoints"\s*:|Datapoints"\s*:)',
    ),
    "otlp": Reader(
        "spans of OpenTelemetry as JSON", "otlp", "ns", "1us", r'\{\s*"resourceSpans"\s*:',
        by_columns=True,
        spans=True,
    ),
    "otlp-metrics": Reader(
        "metrics of OpenTelemetry as JSON", "otlp_metrics", "ns", "1ms", r'\{\s*"resourceMetrics"\s*:'
    ),
    "influx": Reader("line protocol of InfluxDB", "influx", "ns", "1ms", influx.BEGINS),
    "jaeger": Reader(
        "spans of Jaeger as JSON", "jaeger", "us", "1us", r'\{\s*"data"\s*:\s*\[\s*\{\s*"traceID"\s*:',
        spans=True,
    ),
    "zipkin": Reader(
        "spans of Zipkin as JSON", "zipkin", "us", "1us", r'\[\s*(?:\[\s*)?\{\s*"traceId"\s*:', spans=True
    ),
    "xes": Reader("process log, XES", "xes", "ms", "1ms", _XML + r"log\b[^>]*\bxes\."),
})  # fmt: skip
"""The formats by the names that a caller gives."""


def recognised(beginning: bytes) -> str | None:
    """Return the name of the format that decompressed bytes begin as, or None."""
    text = beginning[:FIRST_BYTES].decode("utf-8", "replace").lstrip("\ufeff").lstrip()
    names = (name for name, reader in READERS.items() if re.match(reader.begins, text, re.DOTALL))
    return next(names, None)


def finest_tick(names: Iterable[str]) -> str | None:
    """Return the shortest of the ticks of some formats; None if there are none."""
    ticks = [READERS[name].tick for name in names]
    return min(ticks, key=parse_duration, default=None)


def event_blocks(
    name: str, stream: BinaryIO, path: str, columns: Collection[str] | None = None
) -> Iterator[pa.Table]:
    """Yield the events of a file, some at a time; at least one table, without rows if there are no events.

    Parameters
    ----------
    name : str
        The format, a key of ``READERS``.
    stream : binary file
        The decompressed bytes.
    path : str
        Where the file is, for attributes that its name tells.
    columns : collection of str or None
        What else is of use: fields of the format by their paths, such as ``Task Info.Launch Time``. None: all
        that some formats hold without a fixed name, such as labels.

    Yields
    ------
    pyarrow.Table
        ``type`` and ``id`` string, ``lower`` and ``upper`` timestamp, the attributes of the format, and those
        of ``columns`` that the block has; one with a name of the others has ``_`` behind its own.

    Raises
    ------
    TraceError
        Without the file's name.
    """
    reader, schema = READERS[name], _schema(name)
    module = reader.content()
    further_columns = None if columns is None else frozenset(columns).difference(schema.names)
    # What Arrow opens has no lines, and no look ahead.
    buffered: Any = io.BufferedReader(stream, 1 << 20)
    if not buffered.peek(1):
        raise TraceError(f"the file is empty: {reader.what} is expected")
    nothing = True
    batches = module.events(Source(buffered, path, further_columns))
    while True:
        begun = time.perf_counter()
        with _collecting_no_garbage():
            batch = next(batches, None)
        if reader.by_columns and not compiled_for_reading():
            spent_reading(time.perf_counter() - begun)
        if batch is None:
            break
        event_columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(batch.columns, schema, strict=False)
        ]
        further = {
            f"{name}_" if name in _TAKEN or name in schema.names else name: batch.column(place)
            for place, name in enumerate(batch.schema.names)
            if place >= len(schema) and not pa.types.is_null(batch.column(place).type)
        }
        nothing = False
        yield pa.Table.from_arrays([*event_columns, *further.values()], names=[*schema.names, *further])
    if nothing:
        yield schema.empty_table()


@contextmanager
def _collecting_no_garbage() -> Iterator[None]:
    """Keep Python from looking for cycles among the objects of a block: that takes as long as reading."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def read_events(
    name: str,
    stream: BinaryIO,
    path: str,
    columns: Collection[str] | None = None,
    kept: Collection[str] | None = None,
) -> pa.Table:
    """Return the events of a file as one table; what is of several types in its blocks becomes text.

    Parameters are those of `event_blocks`, and the columns to keep (None: all).
    """
    event_columns = [field.name for field in _schema(name) if kept is None or field.name in kept]
    tables = [
        table.select([column for column in table.column_names if kept is None or column in kept])
        for table in event_blocks(name, stream, path, columns)
    ]
    further = sorted({column for table in tables for column in table.column_names}.difference(event_columns))
    events = pa.concat_tables([table.select(event_columns) for table in tables])
    for column in further:
        pieces = [
            table.column(column) if column in table.column_names else pa.nulls(table.num_rows)
            for table in tables
        ]
        events = events.append_column(column, _joined(pieces))
    return events


def _schema(name: str) -> pa.Schema:
    """Return the columns of the events of a format."""
    reader = READERS[name]
    stamp = pa.timestamp(reader.unit)
    times = [field.with_type(stamp) if pa.types.is_int64(field.type) else field for field in TIMES]
    return pa.schema([*times, *reader.content().ATTRIBUTES])


def _joined(pieces: Sequence[pa.Array]) -> pa.ChunkedArray:
    tables = [pa.table({"": piece}) for piece in pieces]
    try:
        return pa.concat_tables(tables, promote_options="permissive").column(0)
    except MemoryError:
        raise
    except pa.ArrowException:
        return pa.chunked_array([piece.cast(pa.string()) for piece in pieces])
