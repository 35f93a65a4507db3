"""Ctrl-C ends what would take minutes, whatever construct and method it is, while kernels are at work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.integration.interrupted_calls import calls

NAMES = [name for name, _, _ in calls(Path())]
QUICK = ("query order", "tree, bushy", "points", "Kleene", "negation", "set", "shared clocks",
         "stream, sliced", "command")  # fmt: skip
"""One of each kind; the others are interrupted with ``--thorough``."""

PROMPT = 60.0
"""Seconds of processor time that a slow machine may take to end a call; each would go on for far longer."""


@pytest.fixture(scope="module")
def ended(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, dict[str, Any]]:
    """How each call ended that was interrupted."""
    names = NAMES if request.config.getoption("--thorough") else QUICK
    folder = tmp_path_factory.mktemp("interrupted")
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.interrupted_calls", str(folder), *names],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=7200,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    lines = map(json.loads, done.stdout.splitlines())
    return {line["name"]: line for line in lines}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.thorough) for name in NAMES]
)
def test_an_interrupt_ends_it(name: str, ended: dict[str, dict[str, Any]]) -> None:
    outcome = ended[name]
    assert outcome["end"] == ("exit 130" if name == "command" else "interrupted")
    assert outcome["seconds"] < PROMPT
    assert not outcome["left"], "something half written was left"
