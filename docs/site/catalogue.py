"""What the library raises and warns of, read from its code.

A message is followed from where it is raised, noted or warned of to the texts that it is made of: through
variables of the function, functions that return texts, and functions that hand a parameter on. ``…`` stands
for what is known only when it is said.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Final

from uncertain_cep import errors

__all__ = ["messages"]

ROOT: Final = Path(__file__).resolve().parents[2]

NOTED: Final = {
    "TraceFault": "TraceError",
    "Missing": "TraceError",
    "Fault": "QueryError",
    "NoDifferenceError": "QueryError",
    "warn": "warn",
}
"""What notes a fault, and the error that lists it."""

WARNED_OF: Final = re.compile(r"diagnostics|inference|compiling|raw_stamps")
"""Modules in which lists of warnings are made and handed on."""

NO_WARNING: Final = ("candidates: ", "How uncertain", "uncertain-cep: ")
"""What those modules say besides."""

OPEN: Final = "\0"
"""Stands for what is known only when a message is said."""

MESSAGES: Final = ("message", "said")
"""What parameters are called that functions hand on as messages."""

MOST: Final = 200
"""Texts of one message."""


@dataclass
class Function:
    """A function of the library: its name, its own parts, its parameters without self, and its module."""

    name: str
    parts: list[ast.AST]
    module: Path
    parameters: list[str]
    owner: str
    assigned: dict[str, list[ast.expr]] = field(default_factory=dict)
    added: dict[str, list[ast.expr]] = field(default_factory=dict)


@cache
def messages() -> dict[str, list[str]]:
    """Return the texts of errors by their names, and of warnings as ``warn``."""
    known = {*errors.__all__}
    found: dict[str, set[str]] = {}
    for name, text in _Code().said():
        text = re.sub(r"\s+", " ", text.replace(OPEN, "…")).strip()
        # What begins with a sign is the end of another text.
        if name in known and re.match(r"(?=.* )[^;,:].*\w{3,}", text) and not text.startswith(NO_WARNING):
            found.setdefault(name, set()).add(text)
    return {name: sorted(texts, key=str.lower) for name, texts in found.items()}


class _Code:
    """The functions of the library, and which of them hand a message on."""

    def __init__(self) -> None:
        self.functions: dict[str, list[Function]] = {}
        self.scopes: list[Function] = []
        self.makers: dict[tuple[str, str], tuple[int, str, str]] = {}
        for file in sorted((ROOT / "uncertain_cep").rglob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            module = ast.FunctionDef("", ast.arguments([], [], None, [], [], None, []), tree.body, [])
            classes = [part for part in ast.walk(tree) if isinstance(part, ast.ClassDef)]
            self.owners = {id(part): each.name for each in classes for part in each.body}
            self._add(module, file)
        while self._makers_grow():
            pass

    def _add(self, node: ast.FunctionDef, file: Path) -> None:
        given = node.args
        names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        parameters = [name for name in names if name not in ("self", "cls")]
        owner = self.owners.get(id(node), "")
        function = Function(node.name, [*_own(node)], file, parameters, owner)
        self.scopes.append(function)
        self.functions.setdefault(node.name, []).append(function)
        for part in function.parts:
            if isinstance(part, ast.FunctionDef):
                self._add(part, file)
            elif isinstance(part, ast.Assign):
                for target in part.targets:
                    if isinstance(target, ast.Name):
                        function.assigned.setdefault(target.id, []).append(part.value)
                    elif isinstance(target, ast.Tuple) and isinstance(part.value, ast.Tuple):
                        for name, value in zip(target.elts, part.value.elts, strict=False):
                            if isinstance(name, ast.Name):
                                function.assigned.setdefault(name.id, []).append(value)
            elif isinstance(part, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
                known = function.added if isinstance(part, ast.AugAssign) else function.assigned
                if isinstance(part.target, ast.Name) and part.value is not None:
                    known.setdefault(part.target.id, []).append(part.value)

    def _makers_grow(self) -> bool:
        """Note the functions that hand a parameter on as a message; return whether there is a new one."""
        before = len(self.makers)
        for function in self.scopes:
            for part in function.parts:
                for kind, argument in self._told(part, function):
                    names = {each.id for each in ast.walk(argument) if isinstance(each, ast.Name)}
                    for place, parameter in enumerate(function.parameters):
                        if parameter in names and parameter in MESSAGES:
                            key = (function.name, str(function.module))
                            self.makers.setdefault(key, (place, parameter, kind))
        return len(self.makers) > before

    def _told(self, node: ast.AST, function: Function) -> Iterator[tuple[str, ast.expr]]:
        """Yield the error, and the expression of the message, of a call that raises, notes or warns."""
        if not isinstance(node, ast.Call):
            return
        called = getattr(node.func, "id", getattr(node.func, "attr", ""))
        name = NOTED.get(called, called)
        if name.endswith("Error") or name == "warn":
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            wanted = node.args if called != "Missing" else node.args[2:3]
            yield from (
                (name, each) for each in [*wanted[:1], *([given["message"]] if "message" in given else [])]
            )
        if called == "fault":
            # Of a schema file, behind the place in it.
            yield from (("TraceError", each) for each in node.args[1:2])
        if called == "__init__" and function.owner.endswith("Error"):
            yield from ((function.owner, each) for each in node.args[:1])
        maker = self._maker(called, function)
        if maker is not None:
            place, parameter, kind = maker
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            if parameter in given:
                yield kind, given[parameter]
            elif place < len(node.args):
                yield kind, node.args[place]

    def _maker(self, called: str, function: Function) -> tuple[int, str, str] | None:
        own = self.makers.get((called, str(function.module)))
        others = {maker for (name, _), maker in self.makers.items() if name == called}
        return own or (others.pop() if len(others) == 1 else None)

    def said(self) -> Iterator[tuple[str, str]]:
        """Yield each error with a text that it may have."""
        for function in self.scopes:
            is_handed_on = WARNED_OF.search(function.module.stem) is not None
            for part in function.parts:
                for kind, argument in self._told(part, function):
                    yield from ((kind, text) for text in self.texts(argument, function))
                if is_handed_on and isinstance(part, ast.Call) and getattr(part.func, "attr", "") == "append":
                    yield from (("warn", text) for each in part.args for text in self.texts(each, function))
                if is_handed_on and isinstance(part, ast.Yield | ast.Return) and part.value is not None:
                    yield from (("warn", text) for text in self.texts(part.value, function))

    def texts(self, node: ast.expr, function: Function, depth: int = 0) -> list[str]:
        """Return what an expression may be, ``OPEN`` for what is not known."""
        if depth > 6:
            return [OPEN]
        match node:
            case ast.Constant(value=str() as text):
                return [text]
            case ast.Constant():
                return []
            case ast.JoinedStr(values=parts):
                return self._joined([self._part(part, function, depth) for part in parts])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._joined([self.texts(side, function, depth + 1) for side in (left, right)])
            case ast.IfExp(body=body, orelse=other):
                return [*self.texts(body, function, depth + 1), *self.texts(other, function, depth + 1)]
            case ast.BoolOp(values=values):
                return [text for each in values for text in self.texts(each, function, depth + 1)]
            case ast.Name(id=name):
                given = function.assigned.get(name, [])
                if not given and name not in function.parameters:
                    homes = [each for each in self.functions[""] if each.module == function.module]
                    given = [value for home in homes for value in home.assigned.get(name, [])]
                first = self._any([self.texts(each, function, depth + 1) for each in given])
                ends = [self.texts(each, function, depth + 1) for each in function.added.get(name, [])]
                return [*first, *(text for end in ends for text in self._joined([first, end]))]
            case ast.Call(func=ast.Attribute(attr="format", value=value)):
                return [re.sub(r"\{[^}]*\}", OPEN, text) for text in self.texts(value, function, depth + 1)]
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(value=ast.Name(id="self"), attr=called)):
                return self._any([self._returned(each, depth) for each in self._functions(called, function)])
        return [OPEN]

    def _part(self, part: ast.expr, function: Function, depth: int) -> list[str]:
        if not isinstance(part, ast.FormattedValue):
            return self.texts(part, function, depth + 1)
        # Names of things are open; so is what says more than two things.
        found = self.texts(part.value, function, depth + 1) if part.conversion == -1 else [OPEN]
        return found if len(found) <= 4 and any(" " in text for text in found) else [OPEN]

    def _returned(self, function: Function, depth: int) -> list[str]:
        values = [
            part.value
            for part in function.parts
            if isinstance(part, ast.Return | ast.Yield) and part.value is not None
        ]
        return [text for value in values for text in self.texts(value, function, depth + 1)]

    def _functions(self, called: str, function: Function) -> list[Function]:
        known = self.functions.get(called, [])
        own = [each for each in known if each.module == function.module]
        return own or (known if len(known) == 1 else [])

    @staticmethod
    def _any(found: list[list[str]]) -> list[str]:
        return [text for texts in found for text in texts][:MOST] or [OPEN]

    @staticmethod
    def _joined(parts: list[list[str]]) -> list[str]:
        return ["".join(some) for some, _ in zip(product(*parts), range(MOST), strict=False)]


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a function, and functions within it, but not the parts of these."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _own(child)
