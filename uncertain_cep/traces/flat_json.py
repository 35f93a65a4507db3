"""Blocks of flat JSON lines as tables: what Arrow makes of them, several times as fast."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confidence.parsing.json_rows import ESCAPED, FALSE, FLOAT, NULL, STAMP, TEXT, TRUE, WHOLE, read_rows
from uncertain_cep.running.threads import side_by_side
from uncertain_cep.traces.bounded import LONGEST_LINE
from uncertain_cep.traces.cells import cells_of, reading_threads, with_nulls

__all__ = ["flat_table"]

_SLICE: Final = 1 << 21
"""Bytes that one thread reads at a time."""
_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_POWERS: Final = 10.0 ** np.arange(23)
_WHOLES: Final = 1 << WHOLE
_NUMBERS: Final = _WHOLES | 1 << FLOAT
_TEXTS: Final = 1 << TEXT | 1 << STAMP | 1 << ESCAPED
_STAMP: Final = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_BOOLEANS: Final = 1 << TRUE | 1 << FALSE


class _Rows:
    """The values of some lines."""

    def __init__(self, names: Sequence[bytes], count: int) -> None:
        self.kinds = np.zeros((len(names), count), np.uint8)
        self.firsts, self.lasts = np.zeros((2, len(names), count), np.int64)
        self.floats = np.zeros((len(names), count))
        self.seen = np.zeros(len(names), np.int64)
        self.count = 0


def flat_table(
    block: bytes, fields: Sequence[pa.Field], parse: Callable[[bytes, Sequence[pa.Field]], pa.Table]
) -> pa.Table | None:
    """Return the rows of some lines of flat objects, or None if Arrow has to read them.

    ``fields`` are columns with these types. ``parse`` has Arrow read lines: texts that may be times. O(n).
    """
    names = _names(block)
    if names is None or not all(field.type == pa.string() for field in fields):
        return None
    if any(field.name not in names for field in fields):
        return None
    letters = np.frombuffer(block, np.uint8)
    quoted = [b'"%s"' % name.encode() for name in names]
    parts = list(
        side_by_side(reading_threads(), [partial(_part, letters, quoted, *cut) for cut in _cuts(block)])
    )
    if any(part is None for part in parts):
        return None
    rows = [part for part in parts if part is not None and part.count]
    seen = np.bitwise_or.reduce([part.seen for part in rows], axis=0) & ~(1 << NULL)
    texts = {field.name for field in fields}
    types = [_type_of(int(kinds), forced=name in texts) for name, kinds in zip(names, seen, strict=True)]
    if any(dtype is None for dtype in types):
        return None
    makers = [partial(_arrays, letters, part, types) for part in rows]
    chunks = list(side_by_side(reading_threads(), makers))
    if any(array is None for arrays in chunks for array in arrays):
        return None
    columns = {
        name: pa.chunked_array([arrays[column] for arrays in chunks], types[column])
        for column, name in enumerate(names)
    }
    stamps = []
    for name, kinds in zip(names, seen, strict=True):
        if name not in texts and kinds and not kinds & ~(1 << STAMP | 1 << ESCAPED):
            # Texts that are written by escapes may be times, too.
            may_be = kinds == 1 << STAMP or pc.all(pc.match_substring_regex(columns[name], _STAMP)).as_py()
            if may_be and kinds & 1 << ESCAPED:
                return None
            stamps += [name] if may_be else []
    table = pa.table(
        {name: columns[name] for name in dict.fromkeys([*(field.name for field in fields), *names])}
    )
    if not block.isascii():
        # Arrow takes any bytes for text.
        table.validate(full=True)
    if stamps:
        read = parse(_lines_of(table.select(stamps)), [])
        for name in stamps:
            table = table.set_column(table.schema.get_field_index(name), name, read.column(name))
    return table


def _type_of(kinds: int, *, forced: bool) -> pa.DataType | None:
    """Return the type of a column with values of some kinds, text if that is ``forced``; None for no type."""
    if not kinds & ~_TEXTS:
        return pa.string() if kinds or forced else pa.null()
    if forced:
        return None
    if not kinds & ~_NUMBERS:
        return pa.int64() if kinds == _WHOLES else pa.float64()
    return None if kinds & ~_BOOLEANS else pa.bool_()


def _names(block: bytes) -> list[str] | None:
    """Return the names in the first line; None if it is no flat object whose names are plain."""
    start = _SPACE.match(block)
    begin = 0 if start is None else start.end()
    line = block[begin : block.find(b"\n", begin) + 1 or len(block)]
    try:
        pairs = json.loads(line, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return None
    if not line.startswith(b"{") or not pairs or any(isinstance(value, list) for _, value in pairs):
        return None
    names = [name for name, _ in pairs]
    plain = all(name.isascii() and json.dumps(name) == f'"{name}"' for name in names)
    return names if plain and len({*names}) == len(names) else None


def _cuts(block: bytes) -> list[tuple[int, int]]:
    """Return where parts of a block begin and end, each of whole lines."""
    begin, cuts = 0, []
    while begin < len(block):
        end = block.find(b"\n", begin + _SLICE) + 1 or len(block)
        cuts.append((begin, end))
        begin = end
    return cuts


def _part(letters: Any, names: Sequence[bytes], begin: int, end: int) -> Any:
    """Yield the rows of some lines; None if they cannot be read here."""
    count = int(np.count_nonzero(letters[begin:end] == ord("\n"))) + 1
    rows = _Rows(names, count)
    ends = np.cumsum([0, *map(len, names)])
    rows.count = read_rows(
        letters, begin, end, np.frombuffer(b"".join(names), np.uint8), ends, _POWERS, LONGEST_LINE,
        rows.kinds, rows.firsts, rows.lasts, rows.floats, rows.seen,
    )  # fmt: skip
    yield rows if rows.count >= 0 else None


def _arrays(letters: Any, rows: _Rows, types: Sequence[pa.DataType]) -> Iterator[list[pa.Array | None]]:
    """Yield the values of all columns of some lines."""
    yield [_array(letters, rows, column, dtype) for column, dtype in enumerate(types)]


def _array(letters: Any, rows: _Rows, column: int, dtype: pa.DataType) -> pa.Array | None:
    """Return the values of a column; None if a text has half a letter of two escapes."""
    kinds = rows.kinds[column, : rows.count]
    valid = kinds > NULL
    if pa.types.is_null(dtype):
        return pa.nulls(rows.count)
    if dtype == pa.string():
        firsts = np.where(valid, rows.firsts[column, : rows.count], -1)
        cells = cells_of(letters, firsts, rows.lasts[column, : rows.count], valid)
        if not rows.seen[column] & 1 << ESCAPED:
            return cells
        mask = pa.array(kinds == ESCAPED)
        plain = _unescaped(cells.filter(mask))
        return None if plain is None else pc.replace_with_mask(cells, mask, plain)
    if dtype == pa.bool_():
        return with_nulls(pa.array(kinds == TRUE), valid)
    values = rows.firsts if dtype == pa.int64() else rows.floats
    return with_nulls(pa.array(values[column, : rows.count]), valid)


def _unescaped(texts: pa.Array) -> pa.Array | None:
    """Return texts of JSON without their escapes; None if some are no text."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    joined = pc.binary_join(whole, '","')[0].as_buffer().to_pybytes()
    try:
        return pa.array(msgspec.json.decode(b'["%s"]' % joined, type=list[str]), pa.string())
    except ValueError:
        return None


def _lines_of(table: pa.Table) -> bytes:
    """Return JSON lines of columns of text without escapes."""
    parts = []
    for number, name in enumerate(table.column_names):
        begin = "{" if number == 0 else ","
        column = table.column(name)
        quoted = pc.binary_join_element_wise(f'{begin}"{name}":"', column, '"', "")
        parts.append(pc.if_else(column.is_valid(), quoted, f'{begin}"{name}":null'))
    lines = pc.binary_join_element_wise(*parts, "}\n", "").combine_chunks()
    data = lines.buffers()[2]
    return b"" if data is None else data.to_pybytes()
