"""Whole numbers of JSON lines that Arrow would round: it reads those beyond 64 bits as float64.

A field whose numbers are all whole is text then, as it stands there. Where decimal numbers stand beside them,
it is float64, and a warning counts the numbers that are rounded.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.traces.exact_numbers import LARGEST, has_large, marked, warn_of_rounded
from uncertain_cep.traces.nested import Path, leaves_of, parts_of

__all__ = ["LongNumbers", "with_marks", "with_text"]

_MOST_DIGITS: Final = 308
"""A whole number of more digits is out of the range of float64, which is a fault of its own."""


@dataclass(slots=True)
class _Seen:
    """The kinds of numbers of one field in a block of lines."""

    decimal: bool = False
    beyond: bool = False
    rounded: int = 0
    first: tuple[int, str] = (0, "")


@dataclass(slots=True)
class LongNumbers:
    """The numbers in a file's blocks that float64 may round."""

    _seen: dict[int, dict[Path, _Seen]] = field(default_factory=dict)
    _first_row: dict[int, int] = field(default_factory=dict)

    def learn(self, number: int, block: bytes, table: pa.Table) -> None:
        """Learn of a block of lines and its table, in place of what was known of it."""
        columns = list(zip(table.column_names, table.columns, strict=True))
        floats = list(leaves_of(columns, pa.types.is_floating))
        long = {path: _Seen() for path, values in floats if has_large(values)}
        floats_seen = {path: _Seen(decimal=True) for path, _ in floats}
        if long:
            _look(block, long)
        self._seen[number] = floats_seen | long
        self._first_row[number] = table.num_rows

    def as_text(self, declared: Collection[str] = ()) -> set[Path]:
        """Return the fields to read as text; a ``declared`` one is if any of its numbers would be rounded."""
        paths = {path for seen in self._seen.values() for path in seen}
        declared_paths = {parts_of(name) or (name,) for name in declared} | {(name,) for name in declared}
        text_paths = set()
        for path in paths:
            blocks = [seen[path] for seen in self._seen.values() if path in seen]
            whole = any(each.beyond for each in blocks) and not any(each.decimal for each in blocks)
            if whole or (path in declared_paths and any(each.beyond or each.rounded for each in blocks)):
                text_paths.add(path)
        return text_paths

    def warn(self, file: str, roots: Collection[str] | None) -> None:
        """Warn of the numbers that are rounded, in these columns (None: all)."""
        totals: dict[Path, _Seen] = {}
        before = 0
        for number in sorted(self._seen):
            for path, seen in self._seen[number].items():
                total = totals.setdefault(path, _Seen())
                if seen.rounded and not total.rounded:
                    total.first = (before + seen.first[0], seen.first[1])
                total.rounded += seen.rounded
            before += self._first_row[number]
        for path, total in totals.items():
            if roots is not None and path[0] not in roots:
                continue
            warn_of_rounded(".".join(path), total.rounded, [total.first], file)


class _Decimal(float):
    """A number with the text that stands there."""

    text = ""


def _decimal(text: str) -> _Decimal:
    number = _Decimal(text)
    number.text = text
    return number


def _whole(text: str) -> int | _Decimal:
    return int(text) if len(text) <= _MOST_DIGITS else _decimal(text)


def _rows(block: bytes) -> Iterator[Any]:
    for line in block.split(b"\n"):
        if line.strip():
            yield json.loads(line.decode("utf-8-sig"), parse_int=_whole, parse_float=_decimal)


def _look(block: bytes, seen_of: Mapping[Path, _Seen]) -> None:
    """Note what the numbers of some fields are."""

    def look(path: Path, value: Any, row: int) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                look((*path, name), inner, row)
        elif isinstance(value, list):
            for item in value:
                look(path, item, row)
        elif path in seen_of and isinstance(value, int | float) and not isinstance(value, bool):
            seen = seen_of[path]
            if isinstance(value, float):
                seen.decimal = True
                return
            seen.beyond |= not -(2**63) <= value < 2**63
            if abs(value) > LARGEST and int(float(value)) != value:
                seen.first = seen.first if seen.rounded else (row, str(value))
                seen.rounded += 1

    for row, record in enumerate(_rows(block), 1):
        look((), record, row)


def with_text(block: bytes, paths: Collection[Path]) -> bytes:
    """Return lines in which the numbers of some fields are texts, as they stand there."""

    def changed(path: Path, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: changed((*path, name), inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [changed(path, item) for item in value]
        if path in paths and isinstance(value, int | float) and not isinstance(value, bool):
            return value.text if isinstance(value, _Decimal) else str(value)
        return value

    return b"".join(json.dumps(changed((), row)).encode() + b"\n" for row in _rows(block))


def with_marks(table: pa.Table, paths: Collection[Path]) -> pa.Table:
    """Return a table that says of its columns which of them are read as text."""
    for place, column in enumerate(table.schema):
        if (column.name,) in paths and column.type == pa.string():
            table = table.set_column(place, marked(column.name), table.column(place))
    return table
