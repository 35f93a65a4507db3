"""Everything public has an example in its docstring that runs; first lines are plain."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

import uncertain_cep as uc
from tests.cases.kernels import running
from tests.project.test_imports import PACKAGES, ROOT, files_of

MODULES: Final[Mapping[str, Any]] = {
    "uc": uc,
    "uc.examples": uc.examples,
    "uc.plot": uc.plot,
    "uc.testing": uc.testing,
    "uc.testing.strategies": uc.testing.strategies,
}
WORDS: Final = ("Clock", "Component", "Event", "Match", "Predicate", "Query", "Question")
SAID_ELSEWHERE: Final = ("answer_literally", "conj", "disj", "no", "one", "plus", "seq", "where")
"""The oracle's words: docs/testing.md shows them side by side."""

RELATIVE: Final = re.compile(
    r"(return|yield|say|tell)?\s*(what|which|that which|whatever|those|how many of)\b", re.IGNORECASE
)
"""The start of a first line with a clause in place of a noun, such as "Return what makes of matches"."""


def documented() -> Iterator[tuple[str, Any]]:
    """Yield the public functions and classes, by their full names."""
    for place, module in MODULES.items():
        for name in module.__all__:
            public = getattr(module, name)
            is_error = isinstance(public, type) and public.__module__ == "uncertain_cep.errors"
            if callable(public) and not is_error and name not in WORDS + SAID_ELSEWHERE:
                yield f"{place}.{name}", public


@pytest.mark.parametrize(("name", "public"), list(documented()), ids=[name for name, _ in documented()])
def test_the_example_runs(name: str, public: Any) -> None:
    # What a function that is wrapped says is in the module that wrote it.
    parts = doctest.DocTestFinder(recurse=False).find(getattr(public, "__wrapped__", public), name, globs={})
    assert [example for part in parts for example in part.examples], f"{name} has no example"
    with running("plain"):
        for part in parts:
            assert doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(part).failed == 0


@pytest.mark.parametrize("module", MODULES.values(), ids=list(MODULES))
def test_the_examples_of_modules_run(module: Any) -> None:
    with running("plain"):
        assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    "line", ["Return what makes of them", "Which of them", "Yield those of a row.", "How many of them are"]
)
def test_clauses_in_place_of_nouns_are_recognised(line: str) -> None:
    assert RELATIVE.match(line)
    for start in ('"""', '"""\n    ', 'r"""', "'", '"""\\\n    '):
        module = f"def f():\n    {start}{line}{start.strip()[-1]}"
        assert QUOTED.search(module)


QUOTED: Final = re.compile(rf"""["'](\\\n)?\s*(?:{RELATIVE.pattern})""", re.IGNORECASE)
"""A text that begins so: a file without one needs not be parsed, which takes most of the time."""


def first_lines(text: str) -> Iterator[str]:
    """Yield the first line of each docstring of a module."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            continue
        if docstring := ast.get_docstring(node):
            yield docstring.splitlines()[0]


def test_docstrings_begin_with_no_relative_clause() -> None:
    texts = {
        file: file.read_text() for package in (*PACKAGES, "benchmarks", "tests") for file in files_of(package)
    }
    relative = [
        f"{file.relative_to(ROOT)}: {line}"
        for file, text in texts.items()
        if QUOTED.search(text)
        for line in first_lines(text)
        if RELATIVE.match(line)
    ]
    assert relative == []
