"""Everything public is called in an example in its docstring, and the examples are right."""

from __future__ import annotations

import doctest
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

import uncertain_cep as uc
from tests.cases.kernels import running

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


def documented() -> Iterator[tuple[str, Any]]:
    """Yield what is called, by its full name."""
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
