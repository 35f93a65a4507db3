"""Events that a trace has several times, as where exports overlap."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.timeline.domain import Names
from uncertain_cep.traces.faulty_rows import BoolArray

__all__ = ["duplicates_message", "first_of_equal"]

_NAMES: Final = Names()


def first_of_equal(table: pa.Table, numbered: BoolArray) -> BoolArray:
    """Mark the events, (n,) bool, that no earlier event equals in all columns. O(n) but for nested values.

    Ids of those that are ``numbered``, (n,) bool, only number the rows, and are not compared.
    """
    compared = {}
    for number, name in enumerate(table.column_names):
        column = table.column(name)
        if pa.types.is_nested(column.type) or isinstance(column.type, pa.BaseExtensionType):
            column = pa.chunked_array([pa.array(map(repr, column.to_pylist()), pa.string())])
        elif name == _NAMES.id:
            column = pc.if_else(pa.array(numbered), pa.scalar(None, column.type), column)
        compared[f"c{number}"] = column.cast(pa.int8()) if pa.types.is_null(column.type) else column
    whole = pa.table({**compared, "row": np.arange(table.num_rows)})
    rows = whole.group_by(list(compared)).aggregate([("row", "min")]).column("row_min")
    first = np.zeros(table.num_rows, np.bool_)
    first[np.asarray(rows.to_numpy())] = True
    return first


def duplicates_message(duplicates: int, kept: int) -> str:
    """Return the message for so many events that were left out as duplicates."""
    return f"{duplicates:,} events agree in everything with an earlier one: left out; {kept:,} are kept"
