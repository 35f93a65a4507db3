"""Types of columns of JSON lines, as Arrow finds them out a block at a time."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

__all__ = ["wider_type"]

_WIDER: Final = (
    (pa.int64(), pa.float64()),
    (pa.date32(), pa.timestamp("s"), pa.string()),
    (pa.timestamp("s", "UTC"), pa.string()),
)
"""Types of which a later one takes what an earlier one is written as."""
_TIMES: Final = frozenset((pa.date32(), pa.timestamp("s"), pa.timestamp("s", "UTC")))


def wider_type(first: pa.DataType, second: pa.DataType, path: str) -> pa.DataType:
    """Return the type that Arrow finds for a column whose blocks have these two.

    Objects have the fields of both. ArrowInvalid says that the column at ``path`` holds several kinds of
    values, such as numbers and texts.
    """
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    if pa.types.is_list(first) and pa.types.is_list(second):
        return pa.list_(wider_type(first.value_type, second.value_type, path))
    if pa.types.is_struct(first) and pa.types.is_struct(second):
        fields = {field.name: field.type for field in first}
        for field in second:
            before = fields.get(field.name, pa.null())
            fields[field.name] = wider_type(before, field.type, f"{path}.{field.name}")
        return pa.struct(fields.items())
    if pa.timestamp("s", "UTC") in (first, second) and {first, second} <= _TIMES:
        # Times with a zone and times without are not of one kind.
        return pa.string()
    for kinds in _WIDER:
        if first in kinds and second in kinds:
            return kinds[max(kinds.index(first), kinds.index(second))]
    raise pa.ArrowInvalid(f"column {path} holds {first} and {second}")
