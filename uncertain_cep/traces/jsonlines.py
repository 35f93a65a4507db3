"""Why a file of JSON lines cannot be read: looked for line by line, once Arrow has refused the file."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from uncertain_cep.config import FAULT_LIMIT
from uncertain_cep.errors import TraceFault

__all__ = ["json_line_faults"]


def json_line_faults(stream: BinaryIO) -> list[TraceFault]:
    """Return the lines that are no JSON object, and the values of another type than their column's first.

    Parameters
    ----------
    stream : binary file
        Decompressed.

    Returns
    -------
    list of TraceFault
        Without the file's name; the first ones only, up to a limit.
    """
    faults: list[TraceFault] = []
    kinds: dict[str, tuple[str, int]] = {}
    row = 0
    for line in stream:
        if not line.strip():
            continue
        row += 1
        if len(faults) >= FAULT_LIMIT:
            break
        try:
            pairs = json.loads(line.decode("utf-8-sig").strip(), object_pairs_hook=_Pairs)
        except json.JSONDecodeError as error:
            message = f"the line is no JSON: {error.msg} at character {error.pos + 1}"
            faults.append(TraceFault(message, row=row, value=_shown(line)))
            continue
        except UnicodeDecodeError:
            faults.append(TraceFault("its text is not UTF-8: convert the file", row=row, value=_shown(line)))
            continue
        if not isinstance(pairs, _Pairs):
            message = 'the line is no JSON object: one object a line is expected, such as {"id": 1}'
            faults.append(TraceFault(message, row=row, value=_shown(line)))
            continue
        faults += _type_faults(pairs, row, kinds)
    return faults[:FAULT_LIMIT]


class _Pairs(list[tuple[str, Any]]):
    """The names and values of an object, as they stand, so that a name given twice can be seen."""


def _type_faults(pairs: _Pairs, row: int, kinds: dict[str, tuple[str, int]]) -> list[TraceFault]:
    faults = []
    seen: set[str] = set()
    for name, value in pairs:
        if name in seen:
            faults.append(TraceFault("the line names it twice", row=row, column=name))
        seen.add(name)
        kind = _kind(value)
        if kind is None:
            continue
        first, first_row = kinds.setdefault(name, (kind, row))
        if kind != first:
            message = f"it holds {kind}, but {first} in row {first_row}: give the column one type"
            faults.append(TraceFault(message, row=row, column=name, value=_shown(_line(value))))
    return faults


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
