"""The numbers of the engine: each is read somewhere, and says what it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.project.test_imports import PACKAGES, ROOT, files_of

HOMES = [ROOT / "uncertain_cep" / "config" / f"{name}.py" for name in ("limits", "tolerances", "tuning")]
HOMES += [ROOT / package / "config.py" for package in PACKAGES if package != "uncertain_cep"]


def numbers_of(file: Path) -> Iterator[tuple[str, bool]]:
    """Yield the names that a file of numbers binds, and whether a text says what each is."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            yield node.target.id, is_text


@cache
def names_read() -> frozenset[str]:
    """Return all names and attributes that the packages read."""
    trees = (
        ast.parse(file.read_text(encoding="utf-8")) for package in PACKAGES for file in files_of(package)
    )
    return frozenset(
        node.id if isinstance(node, ast.Name) else node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


@pytest.mark.parametrize("home", HOMES, ids=lambda home: "/".join(home.parts[-2:]))
def test_every_number_is_read_and_explained(home: Path) -> None:
    numbers = dict(numbers_of(home))
    assert numbers
    assert [name for name in numbers if name not in names_read()] == []
    assert [name for name, is_text in numbers.items() if not is_text] == []
