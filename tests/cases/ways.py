"""Ways to ask one query of one trace, which all give the same."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

import uncertain_cep as uc
from tests.cases.nested import NestedCase

__all__ = ["IN_PROCESS", "matches_by", "table_of"]

IN_PROCESS: Final = ("sliced", "threads", "point")
"""Beside the default: event by event, in several threads, and by the framework over points."""


def matches_by(way: str, case: NestedCase) -> pa.Table:
    """Return the matches of a case by one of the ways."""
    table, text = case.trace.table(), case.text()
    if way == "sliced":
        matcher = uc.IncrementalMatcher(text, table.schema)
        parts = [matcher.push(table.slice(row, 1)) for row in range(table.num_rows)] + [matcher.close()]
        return pa.Table.from_batches(parts)
    if way == "point":
        return uc.match(table, text, evaluation="point")
    return uc.match(table, text, threads=3)


def table_of(*rows: tuple[str, str, int, int] | tuple[str, str, int, int, int]) -> pa.Table:
    """Return events of rows: type, id, lower, upper and, by default 0, k."""
    names = ("type", "id", "lower", "upper", "k")
    columns = zip(*((*row, 0)[:5] if len(row) == 4 else row for row in rows), strict=True)
    return pa.table(dict(zip(names, map(list, columns), strict=True)))
