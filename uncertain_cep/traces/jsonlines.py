"""Files of JSON lines that Arrow has refused: why, looked for line by line, and some columns of them."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from io import BytesIO
from typing import Any, BinaryIO, Final, NoReturn

from uncertain_cep.config.limits import FAULT_LIMIT
from uncertain_cep.errors import TraceFault
from uncertain_cep.traces.bounded import LONGEST_LINE, MOST_LEVELS, levels_of
from uncertain_cep.traces.nested import parts_of

__all__ = ["json_line_faults", "kept_columns"]

_MOST_DIGITS: Final = 308


def kept_columns(stream: BinaryIO, columns: Collection[str] | None, texts: Collection[str] = ()) -> BytesIO:
    """Return a file without what is of no use: of a stream of `json_line_faults` these columns alone.

    Of a path the fields on it are kept (None: everything is). What ``texts`` hold becomes text, as it stands.
    """
    kept = BytesIO()
    tree = _tree(columns or ())
    while line := stream.readline():
        if line.strip():
            row = json.loads(line.decode("utf-8-sig"), parse_int=_integer)
            record = row if columns is None else _pruned(row, tree)
            for name in texts:
                if not isinstance(record.get(name), str | None):
                    record[name] = json.dumps(record[name])
            kept.write(json.dumps(record).encode() + b"\n")
    kept.seek(0)
    return kept


def _tree(columns: Collection[str]) -> dict[str, Any]:
    """Return the names in an object that are of use, each with those in it; none: all are."""
    tree: dict[str, Any] = {}
    for name in columns:
        inner = tree
        for part in parts_of(name):
            inner = inner.setdefault(part, {})
    # A column that is asked for itself is kept whole.
    return tree | {name: {} for name in columns}


def _pruned(value: Any, tree: Mapping[str, Any]) -> Any:
    if not tree:
        return value
    if isinstance(value, _Pairs):
        return _Pairs((name, _pruned(inner, tree[name])) for name, inner in value if name in tree)
    if isinstance(value, list):
        return [_pruned(item, tree) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _pruned(inner, tree[name]) for name, inner in value.items() if name in tree}


def json_line_faults(
    stream: BinaryIO, columns: Collection[str] | None = None, texts: Collection[str] = ()
) -> list[TraceFault]:
    """Return the lines that are no JSON object, and the values of another type than their column's first.

    The stream is decompressed. The faults are the first ones, up to a limit, without the file's name. What
    other ``columns``, or fields by their paths, hold is no fault (None: all count), nor the type of what
    ``texts`` hold.
    """
    faults: list[TraceFault] = []
    kinds: dict[str, tuple[str, int]] = {}
    tree = None if columns is None else _tree(columns)
    row = 0
    while line := stream.readline(LONGEST_LINE + 1):
        if not line.strip():
            continue
        row += 1
        if len(faults) >= FAULT_LIMIT:
            break
        if len(line) > LONGEST_LINE:
            message = f"the line is longer than {LONGEST_LINE:,} bytes, the most that is read"
            faults.append(TraceFault(message, row=row, value=_shown(line[:80])))
            break
        if levels_of(line) > MOST_LEVELS:
            message = f"arrays and objects are nested more than {MOST_LEVELS} levels deep: make the row flat"
            faults.append(TraceFault(message, row=row, value=_shown(line)))
            continue
        try:
            pairs = json.loads(
                line.decode("utf-8-sig").strip(),
                object_pairs_hook=_Pairs,
                parse_int=_integer,
                parse_constant=_constant,
            )
        except json.JSONDecodeError as error:
            where = f" at character {error.pos + 1}" if error.doc else ""
            message = f"the line is no JSON: {error.msg}{where}"
            faults.append(TraceFault(message, row=row, value=_shown(line)))
            continue
        except UnicodeDecodeError:
            faults.append(TraceFault("its text is not UTF-8: convert the file", row=row, value=_shown(line)))
            continue
        if not isinstance(pairs, _Pairs):
            message = 'the line is no JSON object: one object a line is expected, such as {"id": 1}'
            faults.append(TraceFault(message, row=row, value=_shown(line)))
            continue
        if tree is not None:
            pairs = _Pairs((name, _pruned(value, tree[name])) for name, value in pairs if name in tree)
        faults += [
            fault
            for fault in _type_faults(pairs, row, kinds)
            if fault.column not in texts or fault.value is None
        ]
    return faults[:FAULT_LIMIT]


def _integer(text: str) -> int | float:
    # With more digits it may be out of the range of float64, and Python refuses thousands.
    return int(text) if len(text) <= _MOST_DIGITS else float(text)


def _constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"JSON knows no {name}, write null", "", 0)


class _Pairs(list[tuple[str, Any]]):
    """The names and values of an object, as they stand, so that a name given twice can be seen."""


def _type_faults(pairs: _Pairs, row: int, kinds: dict[str, tuple[str, int]]) -> list[TraceFault]:
    faults = []
    seen: set[str] = set()
    for name, value in pairs:
        if name in seen:
            faults.append(TraceFault("the line names it twice", row=row, column=name))
        seen.add(name)
        if isinstance(value, float) and math.isinf(value):
            faults.append(TraceFault("the number is out of range", row=row, column=name))
        else:
            faults += _kind_faults(value, name, name, row, kinds)
    return faults


def _kind_faults(
    value: Any, place: str, column: str, row: int, kinds: dict[str, tuple[str, int]]
) -> Iterator[TraceFault]:
    """Yield a fault for each value, or value within it, of another type than earlier values at its place."""
    kind = _kind(value)
    if kind is None:
        return
    first, first_row = kinds.setdefault(place, (kind, row))
    if kind != first:
        message = f"it holds {kind}, but {first} in row {first_row}: give the column one type"
        yield TraceFault(message, row=row, column=column, value=_shown(_line(value)))
    elif isinstance(value, _Pairs):
        for name, inner in value:
            path = f"{column}.{name}"
            yield from _kind_faults(inner, path, path, row, kinds)
    elif isinstance(value, list):
        for item in value:
            yield from _kind_faults(item, f"{place}[]", column, row, kinds)


def _kind(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "an object" if isinstance(value, _Pairs) else "a list"


def _line(value: object) -> bytes:
    return b"{...}" if isinstance(value, _Pairs) else json.dumps(value, default=lambda _: "...").encode()


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return text if len(text) <= 80 else f"{text[:77]}..."
