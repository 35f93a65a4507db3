"""Variables are named after what they hold: words that name nothing are counted, room by room."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.project.test_imports import PACKAGES, ROOT, files_of

EMPTY: Final = frozenset(
    {
        *("found", "own", "given", "asked", "told", "some", "others", "mine", "rest"),
        *("many", "much", "least", "most", "known", "wanted"),
    }
)
"""Words that say nothing of a value by themselves."""

MAYBE_BOUND: Final = re.compile(rf"\b(?:{'|'.join(EMPTY)})\s*(?:[=:,)\]+*/|&@%^<>-]|in\b)")
"""How a word stands where it may be bound: a file without one is not parsed, which takes most of the time."""

STILL_EMPTY: Final[Mapping[str, int]] = {
    "confidence": 82,
    "eventbased": 113,
    "tests/api": 1,
    "tests/candidates": 1,
    "tests/cases": 14,
    "tests/cli": 2,
    "tests/confidence": 100,
    "tests/eventbased": 88,
    "tests/executor": 104,
    "tests/expressions": 11,
    "tests/operators": 109,
    "tests/pointbased": 1,
    "tests/query": 2,
    "tests/results": 102,
    "tests/running": 1,
    "tests/spark": 4,
    "tests/streaming": 1,
    "tests/traces": 2,
    "tests/weighers": 12,
    "uncertain_cep/candidates": 1,
    "uncertain_cep/errors.py": 3,
    "uncertain_cep/operators": 146,
    "uncertain_cep/optimizer": 1,
    "uncertain_cep/plan": 4,
    "uncertain_cep/plot.py": 1,
    "uncertain_cep/query": 11,
    "uncertain_cep/results": 154,
    "uncertain_cep/streaming": 2,
    "uncertain_cep/testing": 4,
    "uncertain_cep/traces": 2,
    "uncertain_cep/weighers": 73,
}
"""At most so many variables of these folders and modules have such names, and none of others do.

The numbers may only fall. Some stay: fields and keyword arguments that users pass, and fields of saved state.
"""


def empty_names(tree: ast.AST) -> Iterator[str]:
    """Yield the empty names that a tree binds: variables, parameters and fields, each time."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg in EMPTY:
            yield node.arg
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in EMPTY:
            yield node.id


def room_of(file: Path) -> str:
    """Return the folder, or the module, that a file belongs to."""
    parts = file.relative_to(ROOT).parts
    return "/".join(parts[: 2 if parts[0] in ("uncertain_cep", "tests") else 1])


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("found = 1", ["found"]),
        ("def f(given, *, most): ...", ["given", "most"]),
        ("[own for own in rows]", ["own"]),
        ("rows = found + other.rest", []),
        ("for most in rows: least += most", ["least", "most"]),
        ("with f as own, g as rest: ...", ["own", "rest"]),
    ],
)
def test_bound_names_are_counted(code: str, names: list[str]) -> None:
    assert sorted(empty_names(ast.parse(code))) == names
    assert MAYBE_BOUND.search(code)


def test_variables_are_named_after_what_they_hold() -> None:
    rooms: dict[str, list[str]] = {}
    for package in (*PACKAGES, "benchmarks", "tests"):
        for file in files_of(package):
            text = file.read_text(encoding="utf-8")
            names = empty_names(ast.parse(text)) if MAYBE_BOUND.search(text) else ()
            rooms.setdefault(room_of(file), []).extend(f"{file.relative_to(ROOT)}: {name}" for name in names)
    over = {room: names for room, names in rooms.items() if len(names) > STILL_EMPTY.get(room, 0)}
    assert not over
