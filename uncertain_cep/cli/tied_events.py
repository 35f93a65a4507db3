"""Columns whose values tie events of two types, such as the id of a job that starts and ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.timeline.domain import EVENT_COLUMNS, is_text

__all__ = ["Tie", "likeliest_ties"]

_MOST_TYPES: Final = 6
_MOST_TIES: Final = 5
_FEWEST_VALUES: Final = 2
_FEWEST_OF_ROWS: Final = 0.1
"""Different values for each row: what most rows share ties nothing."""


_OF_ANY: Final = frozenset(
    (
        "pid",
        "tid",
        "thread",
        "process",
        "level",
        "logger",
        "message",
        "pairs",
        "line",
        "place",
        "cpu",
        "uptime",
    )
)
"""Columns whose values say who wrote a record, and not what it is about."""


@dataclass(frozen=True, slots=True)
class Tie:
    """Two types, a column of each, and how many values both have."""

    first: str
    first_column: str
    second: str
    second_column: str
    shared: int


def likeliest_ties(table: pa.Table, types: Sequence[str]) -> list[Tie]:
    """Return the ties of the commonest types, those of most values first."""
    values = {(kind, name): texts for kind in types[:_MOST_TYPES] for name, texts in _values(table, kind)}
    ties = [
        Tie(first, name, second, other, len(texts & more))
        for (first, name), texts in values.items()
        for (second, other), more in values.items()
        if first != second and len(texts & more) >= _FEWEST_VALUES
    ]
    # Of ties of as many values one column of both types says more.
    ties.sort(key=lambda tie: (-tie.shared, tie.first_column != tie.second_column, types.index(tie.first)))
    return ties[:_MOST_TIES]


def _values(table: pa.Table, kind: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the columns that may tie events of a type, and their values as text."""
    rows = table.filter(pc.equal(table.column("type"), kind))
    for name in rows.column_names:
        column = rows.column(name)
        plain = is_text(column.type) or pa.types.is_integer(column.type)
        if name in EVENT_COLUMNS or name.lower() in _OF_ANY or not plain or column.null_count == len(column):
            continue
        values = pc.unique(column.drop_null())
        if len(values) >= max(_FEWEST_VALUES, _FEWEST_OF_ROWS * rows.num_rows):
            yield name, {f"{column.type}:{value}" for value in values.to_pylist()}
