"""Events as columns: what readers yield, a piece of a file at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import islice
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.source import Source

__all__ = ["TIMES", "batch_of", "chunks", "guessed", "in_batches", "pivoted", "wanted_names"]

TIMES: Final = pa.schema(
    [("type", pa.string()), ("id", pa.string()), ("lower", pa.int64()), ("upper", pa.int64())]
)
"""The first columns of a batch; times are in the unit of the format."""

_BATCH: Final = 1 << 12
"""Records that are made into columns at once."""

_MOST_FURTHER: Final = 1000
"""Attributes besides those of the format that are read without being asked for."""


def batch_of(
    attributes: pa.Schema, columns: Sequence[Any], further: Mapping[str, pa.Array] | None = None
) -> pa.RecordBatch:
    """Return events of these columns: type, id, lower, upper, the attributes and, behind them, further ones.

    Columns are arrays of Arrow or NumPy, or lists. A TraceError says that a value cannot be kept.
    """
    further = further or {}
    fields = [*TIMES, *attributes]
    arrays = [_typed(column, field) for column, field in zip(columns, fields, strict=True)]
    names = [field.name for field in fields]
    return pa.RecordBatch.from_arrays([*arrays, *further.values()], names=[*names, *further])


def _typed(values: Any, field: pa.Field) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    try:
        return pa.array(values, field.type)
    except MemoryError:
        raise
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise TraceError(TraceFault(f"a value cannot be kept: {error}", column=field.name)) from None


def pivoted(attributes: Sequence[Mapping[str, Any]], columns: Collection[str] | None) -> dict[str, pa.Array]:
    """Return further attributes, a mapping a row, as columns: those asked for (None: all), by their names."""
    names = wanted_names(set().union(*filter(None, attributes)), columns)
    return {name: guessed([row.get(name) for row in attributes]) for name in names}


def wanted_names(names: Collection[str], columns: Collection[str] | None) -> list[str]:
    """Return the names of further attributes that are asked for (None: all), sorted.

    A TraceError says that they are too many.
    """
    if columns is not None:
        names = [name for name in names if name in columns or f"{name}_" in columns]
    if len(names) > _MOST_FURTHER:
        message = (
            f"its events have more than {_MOST_FURTHER:,} different attributes: say in a schema which to read"
        )
        raise TraceError(message)
    return sorted(names)


def guessed(values: Sequence[Any]) -> pa.Array:
    """Return values of one type, or as texts."""
    try:
        return pa.array(values)
    except MemoryError:
        raise
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])


def chunks(rows: Iterable[tuple[Any, ...]], width: int) -> Iterator[list[list[Any]]]:
    """Yield the columns of some tuples of ``width`` values at a time."""
    remaining = iter(rows)
    while chunk := list(islice(remaining, _BATCH)):
        # Faster than zip(*chunk), which has as many arguments.
        yield [list(map(itemgetter(place), chunk)) for place in range(width)]


def in_batches(
    attributes: pa.Schema,
) -> Callable[[Callable[[Source], Iterator[tuple[Any, ...]]]], Callable[[Source], Iterator[pa.RecordBatch]]]:
    """Make batches of tuples: type, id, lower, upper, the attributes, and a dict of further ones."""

    def decorate(
        rows: Callable[[Source], Iterator[tuple[Any, ...]]],
    ) -> Callable[[Source], Iterator[pa.RecordBatch]]:
        @wraps(rows)
        def events(source: Source) -> Iterator[pa.RecordBatch]:
            for *columns, further in chunks(rows(source), len(TIMES) + len(attributes) + 1):
                yield batch_of(attributes, columns, pivoted(further, source.further))

        return events

    return decorate
