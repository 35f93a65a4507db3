"""Kernels that make arrays, or call one that does, say so, and no other does."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from tests.project.test_imports import ROOT, files_of

MAKES: Final = {
    *("arange", "argsort", "array", "concatenate", "copy", "cumsum", "empty", "empty_like", "full", "ones"),
    *("repeat", "sort", "unique", "where", "zeros", "zeros_like"),
}
"""Functions of NumPy, and methods of arrays, that return a new one."""


def decorators(node: ast.FunctionDef) -> list[ast.expr]:
    return [
        one
        for one in node.decorator_list
        if "kernel" in (getattr(one, "id", ""), getattr(getattr(one, "func", None), "id", ""))
    ]


def kernels(file: Path) -> dict[str, ast.FunctionDef]:
    found = (node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef))
    return {node.name: node for node in found if decorators(node)}


def calls(node: ast.FunctionDef) -> tuple[bool, set[str]]:
    """Return whether a function makes an array itself, and the names of the functions that it calls."""
    called = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    own = any(isinstance(one, ast.Attribute) and one.attr in MAKES for one in called)
    return own, {one.id for one in called if isinstance(one, ast.Name)}


def test_who_makes_arrays_says_so() -> None:
    known: dict[str, tuple[bool, set[str], bool]] = {}
    for package in ("confidence", "eventbased", "pointbased"):
        for file in files_of(package):
            home = str(file.relative_to(ROOT))
            for name, node in kernels(file).items():
                own, called = calls(node)
                # A private name is that of another function in another file.
                full = {f"{home}: {other}" if other.startswith("_") else other for other in called}
                says = "allocates=True" in "".join(map(ast.unparse, decorators(node)))
                known[f"{home}: {name}" if name.startswith("_") else name] = own, full, says
    assert len(known) > 200
    makes = {name for name, (own, _, _) in known.items() if own}
    while more := {name for name, (_, called, _) in known.items() if called & makes} - makes:
        makes |= more
    assert {name for name, (_, _, says) in known.items() if says} == makes
