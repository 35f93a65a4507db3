"""Needs of tests that a machine may lack: they are skipped there, unless the run demands them.

Whoever starts the tests knows what is there, and says so in a variable of the environment: ``.ci/run`` does.
A need that is demanded and not met is a failure.
"""

from __future__ import annotations

import os
from typing import Final, NoReturn

import pytest

__all__ = ["NEEDS", "VARIABLE", "check_needs", "is_demanded", "is_gate", "lacking"]

VARIABLE: Final = "UNCERTAIN_CEP_TESTS_NEED"

NEEDS: Final = {
    "browser": "Chromium, for the pages",
    "data": "the real traces in ../shared/data",
    "packages": "all of requirements/test.lock",
    "proc": "what Linux tells in /proc",
}
"""What the variable may name, separated by blanks."""


def _demanded() -> frozenset[str]:
    return frozenset(os.environ.get(VARIABLE, "").split())


def is_demanded(need: str) -> bool:
    """Whether tests that lack this are to fail."""
    return need in _demanded()


def is_gate() -> bool:
    """Whether this run decides on a change, so that it has to say the same twice."""
    return bool(_demanded())


def check_needs() -> None:
    """Raise an error if the variable names something else."""
    if unknown := _demanded() - set(NEEDS):
        raise pytest.UsageError(
            f"{VARIABLE} names {' '.join(sorted(unknown))}: it takes {' '.join(NEEDS)}, separated by blanks"
        )


def lacking(need: str, reason: str, *, whole_file: bool = False) -> NoReturn:
    """Skip the test, or the file that is being imported; fail if the need is demanded."""
    if is_demanded(need):
        pytest.fail(f"{reason}, and {VARIABLE} demands it", pytrace=False)
    pytest.skip(reason, allow_module_level=whole_file)
