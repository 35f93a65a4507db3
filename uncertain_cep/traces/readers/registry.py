"""The formats, what tells them apart, and how each becomes a table."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from operator import itemgetter
from typing import Any, BinaryIO, Final

import pyarrow as pa

from uncertain_cep.durations import parse_duration
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.timedomain import Names
from uncertain_cep.traces.readers.source import Source

__all__ = ["LOOKED_AT", "READERS", "Reader", "finest_tick", "read_events", "recognised"]

LOOKED_AT: Final = 1 << 14
"""Bytes at the beginning of a file that tell its format."""

_BATCH: Final = 1 << 11
"""Events that are made into columns at once."""


_MOST_FURTHER: Final = 1000
"""Attributes besides those of the format that are read without being asked for."""

_TAKEN: Final = frozenset((Names().pmf, Names().tick))


@dataclass(frozen=True, slots=True)
class Reader:
    """A format.

    The module ``uncertain_cep.traces.readers.<module>`` has two names. ``ATTRIBUTES`` is a pyarrow.Schema of
    the attributes. ``events`` takes a `Source` and yields one tuple an event: type, id, lower and upper (both
    inclusive, whole ``unit``s since 1970), the attributes in their order, and a dict of further ones. It
    raises a TraceError with the row of what it cannot read.
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


_COMMENTS: Final = r"(?>(?:<!--.*?-->\s*)*)"
_XML: Final = rf"(?:<\?xml[^>]*\?>\s*)?{_COMMENTS}(?:<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>\s*)?{_COMMENTS}<"
_RUMEN: Final = r'\{\s*"priority"\s*:\s*"\w+"\s*,\s*"jobID"\s*:'

READERS: Final[dict[str, Reader]] = {
    "spark-eventlog": Reader(
        "Spark event log", "spark_eventlog", "ms", "1ms", r'\{"Event":"(?:org\.apache\.spark\.|SparkListener)'
    ),
    "hadoop-jhist": Reader("Hadoop job history, .jhist", "hadoop_jhist", "ms", "1ms", r"Avro-Json\r?\n"),
    "hadoop-rumen": Reader("Rumen trace", "hadoop_rumen", "ms", "1ms", _RUMEN),
    "hadoop-history": Reader(
        "Hadoop 0.20 job history", "hadoop_history", "ms", "1ms", r'Meta VERSION="|!!FILE=|Job JOBID="'
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
    "otlp": Reader("spans of OpenTelemetry as JSON", "otlp", "ns", "1us", r'\{\s*"resourceSpans"\s*:'),
    "jaeger": Reader(
        "spans of Jaeger as JSON", "jaeger", "us", "1us", r'\{\s*"data"\s*:\s*\[\s*\{\s*"traceID"\s*:'
    ),
    "zipkin": Reader("spans of Zipkin as JSON", "zipkin", "us", "1us", r'\[\s*(?:\[\s*)?\{\s*"traceId"\s*:'),
    "xes": Reader("process log, XES", "xes", "ms", "1ms", _XML + r"log\b[^>]*\bxes\."),
}  # fmt: skip
"""The formats by the names that a caller gives."""


def recognised(beginning: bytes) -> str | None:
    """Return the name of the format that decompressed bytes begin as, or None."""
    text = beginning[:LOOKED_AT].decode("utf-8", "replace").lstrip("\ufeff").lstrip()
    found = (name for name, reader in READERS.items() if re.match(reader.begins, text, re.DOTALL))
    return next(found, None)


def finest_tick(names: Iterable[str]) -> str | None:
    """Return the shortest of the ticks of some formats; None if there are none."""
    ticks = [READERS[name].tick for name in names]
    return min(ticks, key=parse_duration, default=None)


def read_events(name: str, stream: BinaryIO, path: str, columns: Collection[str] | None = None) -> pa.Table:
    """Return the events of a file.

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

    Returns
    -------
    pyarrow.Table
        ``type`` and ``id`` string, ``lower`` and ``upper`` timestamp, the attributes of the format, and those
        of ``columns`` that the file has; one with a name of the others has ``_`` behind its own.

    Raises
    ------
    TraceError
        Without the file's name.
    """
    reader = READERS[name]
    module = import_module(f"uncertain_cep.traces.readers.{reader.module}")
    stamp = pa.timestamp(reader.unit)
    schema = pa.schema(
        [("type", pa.string()), ("id", pa.string()), ("lower", stamp), ("upper", stamp), *module.ATTRIBUTES]
    )
    asked = None if columns is None else frozenset(columns).difference(schema.names)
    # What Arrow opens has no lines, and no look ahead.
    buffered: Any = io.BufferedReader(stream, 1 << 20)
    if not buffered.peek(1):
        raise TraceError(f"the file is empty: {reader.what} is expected")
    rows = module.events(Source(buffered, path, tuple(sorted(asked or ()))))
    known: list[pa.RecordBatch] = []
    further: list[dict[str, pa.Array]] = []
    while chunk := list(islice(rows, _BATCH)):
        # Faster than zip(*chunk), which has as many arguments.
        values = (list(map(itemgetter(place), chunk)) for place in range(len(schema)))
        arrays = [_typed(column, field) for column, field in zip(values, schema, strict=True)]
        known.append(pa.record_batch(arrays, schema=schema))
        further.append(_further([row[-1] for row in chunk], asked))
    if not known:
        return schema.empty_table()
    table = pa.Table.from_batches(known).combine_chunks()
    for name in sorted(set().union(*further)):
        pieces = [batch.get(name) for batch in further]
        lengths = [batch.num_rows for batch in known]
        column = _joined(
            [pa.nulls(rows) if piece is None else piece for piece, rows in zip(pieces, lengths, strict=True)]
        )
        if not pa.types.is_null(column.type):
            table = table.append_column(
                f"{name}_" if name in _TAKEN or name in schema.names else name, column
            )
    return table


def _further(others: Sequence[Mapping[str, Any]], asked: Collection[str] | None) -> dict[str, pa.Array]:
    """Return the further attributes of some events as columns."""
    names: set[str] = set().union(*filter(None, others))
    if asked is not None:
        names = {name for name in names if name in asked or f"{name}_" in asked}
    if len(names) > _MOST_FURTHER:
        message = (
            f"its events have more than {_MOST_FURTHER:,} different attributes: say in a schema which to read"
        )
        raise TraceError(message)
    return {name: _guessed([given.get(name) for given in others]) for name in names}


def _typed(values: Sequence[Any], field: pa.Field) -> pa.Array:
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise TraceError(TraceFault(f"a value cannot be kept: {error}", column=field.name)) from None


def _guessed(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])


def _joined(pieces: Sequence[pa.Array]) -> pa.ChunkedArray:
    tables = [pa.table({"": piece}) for piece in pieces]
    try:
        return pa.concat_tables(tables, promote_options="permissive").column(0)
    except pa.ArrowException:
        return pa.chunked_array([piece.cast(pa.string()) for piece in pieces])
