"""Wide rows as several: one for each of some columns that holds a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.common_types import common_type
from uncertain_cep.traces.faulty_rows import IntArray

__all__ = ["VALUE", "VARIABLE", "value_names", "with_values"]

_NOTHING: Final[Mapping[str, str]] = {}

VARIABLE = "variable"
VALUE = "value"


def value_names(
    columns: Sequence[tuple[str, str]], present: Sequence[str], kept: Mapping[str, str] = _NOTHING
) -> dict[str, str]:
    """Return the columns that hold values, each with what it is called.

    ``columns`` are pairs of new names and columns; a column that is not there may be a glob pattern for
    several, which keep their names. Columns that are ``kept``, each with the key of the schema that names it,
    are part of no pattern; a TraceError says which of them is a value as well.
    """
    value_columns: dict[str, str] = {}
    for new, old in columns:
        if old in present:
            value_columns[old] = new
        else:
            candidates = (name for name in present if name not in kept)
            value_columns |= {
                name: name for name in candidates if fnmatchcase(name, old) and name not in value_columns
            }
    faults = [
        TraceFault(f"value_columns makes a row of it, and {key} names it: leave it out of one", column=name)
        for name, key in kept.items()
        if name in value_columns
    ]
    if faults:
        raise TraceError(faults)
    return value_columns


def with_values(
    raw: pa.Table, columns: Sequence[tuple[str, str]], names: Mapping[str, str]
) -> tuple[pa.Table, IntArray]:
    """Return a row for each value in some columns of each row, and the row that it is of, (n,) int64.

    The columns ``variable`` and ``value`` tell what the column is called, and the value; a null gives no row.
    A TraceError says that there are no such columns, or that they hold values of different types. ``names``
    is what :func:`value_names` finds of ``columns``, which only errors quote.
    """
    patterns = ", ".join(old for _, old in columns)
    if not names:
        message = f"value_columns names {patterns}, and the file has no such column"
        raise TraceError(TraceFault(f"{message}; it has {', '.join(raw.column_names)}"))
    taken = [name for name in (VARIABLE, VALUE) if name in raw.column_names and name not in names]
    if taken:
        message = "value_columns makes a column of this name, and the file has one: rename it"
        raise TraceError([TraceFault(message, column=name) for name in taken])
    types = [raw.schema.field(name).type for name in names]
    dtype = reduce(lambda one, other: None if one is None else common_type(one, other), types)
    if dtype is None:
        types_of_columns = ", ".join(f"{name}: {kind}" for name, kind in zip(names, types, strict=True))
        raise TraceError(
            f"value_columns: the values are of different types: leave out some ({types_of_columns})"
        )
    size, count = raw.num_rows, len(names)
    # One column behind the other, taken a row at a time.
    whole = pa.concat_arrays(
        [chunk for name in names for chunk in raw.column(name).cast(dtype).chunks] or [pa.nulls(0, dtype)]
    )
    order = np.arange(size * count).reshape(count, size).T.ravel()
    order = order[np.asarray(whole.is_valid())[order]]
    rows = order % size if size else order
    labels = pa.DictionaryArray.from_arrays(pa.array(order // max(size, 1), pa.int32()), list(names.values()))
    table = raw.drop_columns(list(names)).take(pa.array(rows))
    table = table.append_column(VARIABLE, labels.cast(pa.string()))
    return table.append_column(VALUE, whole.take(pa.array(order))), rows
