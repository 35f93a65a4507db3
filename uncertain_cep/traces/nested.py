"""Fields within fields by their path, and rows made of the items of lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, TraceFault

__all__ = [
    "Path",
    "exploded",
    "is_path",
    "leaf_names",
    "leaves_of",
    "parts_of",
    "roots_of",
    "text_fields",
    "with_fields",
    "with_leaf_types",
]

_PART: Final = re.compile(r'(?:"([^"]+)"|([^".]+))(?:\.|\Z)')


@cache
def parts_of(path: str) -> tuple[str, ...]:
    """Return the names along a path such as ``a.b`` or ``"a.b".c``; none if it is no path."""
    parts, place = [], 0
    while place < len(path):
        part = _PART.match(path, place)
        if part is None:
            return ()
        parts.append(part[1] or part[2])
        place = part.end()
    return () if path.endswith(".") else tuple(parts)


def is_path(name: str) -> bool:
    """Tell whether a name may be that of a field within a field."""
    return "." in name and len(parts_of(name)) > 0


def roots_of(names: Iterable[str]) -> set[str]:
    """Return the names, and those of all columns that the paths among them may begin with."""
    roots = set(names)
    for name in list(roots):
        parts = parts_of(name)
        roots.update(".".join(parts[:size]) for size in range(1, len(parts) + 1))
    return roots


def leaf_names(schema: pa.Schema) -> list[str]:
    """Return the columns of a schema, and the paths of the fields within them."""
    names: list[str] = []

    def walk(field: Any, path: str) -> None:
        names.append(path)
        for inner in field.type if pa.types.is_struct(field.type) else ():
            name = f'"{inner.name}"' if "." in inner.name else inner.name
            walk(inner, f"{path}.{name}")

    for field in schema:
        walk(field, field.name)
    return names


def with_fields(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """Return a table with a column for each of the paths that it lacks and has such a field for."""
    for name in names:
        if is_path(name) and name not in table.column_names:
            column = _field(table, parts_of(name))
            if column is not None:
                table = table.append_column(name, column)
    return table


Path = tuple[str, ...]
"""The names along which a field within fields is found; the items of a list have its path."""


def leaves_of(
    columns: Iterable[tuple[str, pa.ChunkedArray]], test: Callable[[pa.DataType], bool]
) -> Iterator[tuple[Path, pa.Array]]:
    """Yield the values, also within fields and lists, of types that pass a test, a chunk at a time."""

    def walk(path: Path, values: Any) -> Iterator[tuple[Path, Any]]:
        if test(values.type):
            yield path, values
        elif pa.types.is_list(values.type):
            yield from walk(path, values.flatten())
        elif pa.types.is_struct(values.type):
            for inner, within in zip(values.type, values.flatten(), strict=True):
                yield from walk((*path, inner.name), within)

    for name, column in columns:
        for chunk in column.chunks if test(column.type) or pa.types.is_nested(column.type) else ():
            yield from walk((name,), chunk)


def with_leaf_types(dtype: pa.DataType, path: Path, change: Callable[[Path, pa.DataType], Any]) -> Any:
    """Return a type with other types of the values within it, which ``change`` tells by path and type."""
    if pa.types.is_list(dtype):
        return pa.list_(with_leaf_types(dtype.value_type, path, change))
    if pa.types.is_struct(dtype):
        return pa.struct(
            [(field.name, with_leaf_types(field.type, (*path, field.name), change)) for field in dtype]
        )
    return change(path, dtype)


def text_fields(paths: Iterable[str]) -> list[Any]:
    """Return the fields of a schema in which these columns, and fields within fields, are text."""
    tree: dict[str, Any] = {}
    for path in paths:
        inner = tree
        for part in parts_of(path) or (path,):
            inner = inner.setdefault(part, {})

    def fields(of: dict[str, Any]) -> list[Any]:
        return [
            pa.field(name, pa.struct(fields(inner)) if inner else pa.string()) for name, inner in of.items()
        ]

    return fields(tree)


def _field(table: pa.Table, parts: Sequence[str]) -> pa.ChunkedArray | None:
    """Return the field of a path; the longest beginning of it that is a column's name counts."""
    for size in range(len(parts), 0, -1):
        name = ".".join(parts[:size])
        if name not in table.column_names:
            continue
        column = table.column(name)
        for part in parts[size:]:
            if not pa.types.is_struct(column.type) or column.type.get_field_index(part) < 0:
                return None
            column = pc.struct_field(column, part)
        return column
    return None


def exploded(table: pa.Table, paths: Sequence[str], file: str, present: set[str] | None = None) -> pa.Table:
    """Return a table with a row for each item of the lists in some columns, one after the other.

    The column then holds the item. A row without items gives none. Of a path ``a.b`` the fields of ``a``
    become columns ``a.*``. ``present`` collects the paths that the table has. A TraceError says that a column
    holds no lists.
    """
    for path in paths:
        parts = parts_of(path)
        for size in range(1, len(parts)):
            table = _spread(table, ".".join(parts[:size]))
        if path not in table.column_names:
            continue
        if present is not None:
            present.add(path)
        column = table.column(path)
        place = table.schema.get_field_index(path)
        if pa.types.is_null(column.type):
            table = table.slice(0, 0)
            continue
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            message = f"its type is {column.type}, and explode makes rows of the items of lists"
            raise TraceError(TraceFault(message, file=file, column=path))
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)
        rows = pa.array(np.repeat(np.arange(table.num_rows), lengths))
        items = pc.list_flatten(column)
        # A table without columns has no rows to take.
        others_kept = table.remove_column(place)
        if not others_kept.num_columns:
            table = pa.table({path: items})
            continue
        table = others_kept.take(rows).add_column(place, path, items)
    return table


def _spread(table: pa.Table, name: str) -> pa.Table:
    """Return a table with the fields of a column as columns of their own, if it has any."""
    if name not in table.column_names or not pa.types.is_struct(table.schema.field(name).type):
        return table
    column = table.column(name)
    table = table.drop_columns([name])
    for field in column.type:
        inner = f"{name}.{field.name}"
        if inner not in table.column_names:
            table = table.append_column(inner, pc.struct_field(column, field.name))
    return table
