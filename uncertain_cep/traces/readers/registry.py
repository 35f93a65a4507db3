"""The formats, what tells them apart, and how each becomes a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any, BinaryIO, Final

import pyarrow as pa

from uncertain_cep.durations import parse_duration
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.source import Source

__all__ = ["LOOKED_AT", "READERS", "Reader", "finest_tick", "read_events", "recognised"]

LOOKED_AT: Final = 1 << 12
"""Bytes at the beginning of a file that tell its format."""

_BATCH: Final = 1 << 15
"""Events that are made into columns at once."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A format.

    The module ``uncertain_cep.traces.readers.<module>`` has two names. ``ATTRIBUTES`` is a pyarrow.Schema of
    the attributes. ``events`` takes a `Source` and yields one tuple an event: type, id, lower and upper (both
    inclusive, whole ``unit``s since 1970), the attributes, and the values of ``Source.fields``, in their
    orders. It raises a TraceError with the row of what it cannot read.
    """

    what: str
    """The format in words."""
    module: str
    unit: str
    """Of the stamps: ``s``, ``ms``, ``us`` or ``ns``."""
    tick: str
    """Length of a tick, unless another is named."""
    begins: str | None = None
    """What a file of this format alone begins with, as a regular expression; None: it is not recognised."""


READERS: Final[dict[str, Reader]] = {
    "spark-eventlog": Reader(
        "Spark event log", "spark_eventlog", "ms", "1ms", r'\{"Event":"(?:org\.apache\.spark\.|SparkListener)'
    ),
}
"""The formats by the names that a caller gives."""


def recognised(beginning: bytes) -> str | None:
    """Return the name of the format that decompressed bytes begin as, or None."""
    text = beginning[:LOOKED_AT].decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    return next(
        (name for name, reader in READERS.items() if reader.begins and re.match(reader.begins, text)), None
    )


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
        What else is of use: fields of the format by their paths, such as ``Task Info.Launch Time``.

    Returns
    -------
    pyarrow.Table
        ``type`` and ``id`` string, ``lower`` and ``upper`` timestamp, the attributes of the format, and those
        of ``columns`` that the file has.

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
    fields = tuple(sorted(set(columns or ()).difference(schema.names)))
    rows = module.events(Source(stream, path, fields))
    batches = list(_batches(rows, schema, fields))
    if not batches:
        return schema.empty_table()
    known = [pa.record_batch(batch[: len(schema)], schema=schema) for batch in batches]
    table = pa.Table.from_batches(known)
    for place, field in enumerate(fields, len(schema)):
        column = _column([batch[place] for batch in batches], field)
        if not pa.types.is_null(column.type):
            table = table.append_column(field, column)
    return table


def _batches(
    rows: Iterator[tuple[Any, ...]], schema: pa.Schema, fields: tuple[str, ...]
) -> Iterator[list[pa.Array]]:
    types: list[Callable[[Any], pa.Array]] = [_typed(field) for field in schema]
    types += [_guessed] * len(fields)
    while chunk := list(islice(rows, _BATCH)):
        yield [made(values) for made, values in zip(types, zip(*chunk, strict=True), strict=True)]


def _typed(field: pa.Field) -> Callable[[Any], pa.Array]:
    def made(values: Any) -> pa.Array:
        try:
            return pa.array(values, field.type)
        except (pa.ArrowException, OverflowError) as error:
            raise TraceError(TraceFault(f"a value cannot be kept: {error}", column=field.name)) from None

    return made


def _guessed(values: Any) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])


def _column(pieces: list[pa.Array], name: str) -> pa.ChunkedArray:
    tables = [pa.table({name: piece}) for piece in pieces]
    try:
        return pa.concat_tables(tables, promote_options="permissive").column(name)
    except pa.ArrowException:
        return pa.chunked_array([piece.cast(pa.string()) for piece in pieces])
