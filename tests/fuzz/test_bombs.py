"""Any query on any events: a call ends within its limits, with an answer or an error of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Final

import pytest

from benchmarks.resident import is_told
from tests.conftest import ROOT
from tests.fuzz.bombs import BOMBS
from tests.fuzz.long_matches import DRAWN, LONG
from tests.needs import is_demanded

QUICK: Final = ("dense", "parentheses")

MOST_LATE: Final = 100.0
"""Seconds of processor time beyond a limit, on a slow machine: to compile what fewer events did not ask for.

On a fast one that is at most 20 s, and without it 4 s, for one call of another library or planning a pattern
of 200 components. Without limits each bomb takes hours.
"""

MOST_LATE_IN_A_MATCH: Final = 10.0
"""The same where one match is dear: a second or so on a fast machine, as the wait for the compiler ends."""

MOST_BEYOND: Final = 384 * 2**20
"""Bytes beyond a limit: a batch of matches for each thread, and what is made between two looks."""

pytestmark = pytest.mark.skipif(not is_told() and not is_demanded("proc"), reason="needs Linux' /proc")


def endings(*names: str, of: str = "bombs") -> list[dict[str, Any]]:
    """Return how bombs end, each with little time, with little memory and where there is no more of it."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.fuzz.{of}", *names],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=7200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results = list(map(json.loads, done.stdout.splitlines()))
    assert [ending["name"] for ending in results] == [name for name in names for _ in range(3)]
    return results


def check(*names: str) -> None:
    for ending in endings(*names):
        assert ending["late"] < MOST_LATE, ending
        assert ending["beyond"] < MOST_BEYOND, ending


def check_long(*names: str) -> None:
    for ending in endings(*names, of="long_matches"):
        assert ending["late"] < MOST_LATE_IN_A_MATCH, ending
        assert ending["beyond"] < MOST_BEYOND, ending


@pytest.mark.compiled
def test_some_bombs() -> None:
    check(*QUICK)


@pytest.mark.thorough
@pytest.mark.compiled
@pytest.mark.parametrize("name", [name for name in BOMBS if name not in QUICK])
def test_bombs(name: str) -> None:
    check(name)


@pytest.mark.thorough
@pytest.mark.compiled
@pytest.mark.parametrize("name", LONG)
def test_long_matches(name: str) -> None:
    check_long(name)


@pytest.mark.thorough
@pytest.mark.compiled
@pytest.mark.parametrize("part", range(8))
def test_drawn_queries_over_dense_events(part: int) -> None:
    check_long(*[name for number, name in enumerate(DRAWN) if number % 8 == part])
