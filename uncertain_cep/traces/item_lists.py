"""Lists of objects within objects of JSON: which hold the rows, and the fields of their items as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.traces.nested import exploded, leaf_names, with_fields
from uncertain_cep.traces.stamp_columns import clock_of_traces, stamp_column

__all__ = ["lists_to_explode", "ways_to_times", "with_fields_of_items"]

_MOST_LISTS: Final = 4
"""Lists within each other."""
_LEAST_ITEMS: Final = 2
"""Items for each row, on average, of lists that are the rows."""


def lists_to_explode(table: pa.Table) -> tuple[str, ...]:
    """Return the columns of lists, one within the other, whose items are the rows; none if rows are.

    Rows are the items where no row has a time of its own, or a single row has a list of several.
    """
    if _has_times(table) and (table.num_rows > 1 or not _lists(table, _LEAST_ITEMS)):
        return ()
    ways = ways_to_times(table)
    # Rows of several lists would be those of one of them alone.
    return ways[0] if len(ways) == 1 else ()


def ways_to_times(table: pa.Table) -> list[tuple[str, ...]]:
    """Return the paths of lists, each within the one before, whose items have times, if there are any items.

    There may be several ways, as metrics of OpenTelemetry have a list of gauges or one of sums.
    """
    return list(_ways_to_times(table, _MOST_LISTS))


def _ways_to_times(table: pa.Table, depth: int) -> Iterator[tuple[str, ...]]:
    """Yield the paths of lists, each within the one before, whose items have times."""
    for path in _lists(table, 0):
        items = exploded(table, [path], "")
        if _has_times(items, path):
            yield (path,)
        elif depth > 1:
            within = items.select([path])
            yield from ((path, *more) for more in _ways_to_times(within, depth - 1))


def with_fields_of_items(table: pa.Table, lists: Sequence[str]) -> pa.Table:
    """Return a table with a column for each value of its items, also within fields, but not within lists."""
    last = lists[-1]
    paths = [path for path in leaf_names(table.schema) if path.startswith(f"{last}.")]
    table = with_fields(table, paths)
    kept = [
        name
        for name in table.column_names
        if not pa.types.is_nested(table.schema.field(name).type) or name not in paths
    ]
    return table.select(kept)


def _has_times(table: pa.Table, within: str | None = None) -> bool:
    """Tell whether a column of a table, or a field of one, holds times."""
    names = leaf_names(table.schema)
    if within is not None:
        names = [name for name in names if name.startswith(f"{within}.")]
    for name in names:
        column = with_fields(table, [name]).column(name)
        if not pa.types.is_nested(column.type) and stamp_column(name, column) is not None:
            return True
    return clock_of_traces(names) is not None


def _lists(table: pa.Table, least_items: int) -> list[str]:
    """Return the paths of lists of objects with so many items a row, on average."""
    lists = []
    for path in leaf_names(table.schema):
        column = with_fields(table, [path]).column(path)
        if pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type):
            items = pc.sum(pc.list_value_length(column)).as_py() or 0
            if items and items >= least_items * table.num_rows:
                lists.append(path)
    return lists
