"""The kernels once more as plain Python, which refuses wrong indexes and numbers that overflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.confidence.checked import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "tests.confidence.checked"
LEAST_COVERED = 95.0
"""Percent of the lines of every kernel package that tests without the compiler reach."""

COMPILER = tuple(f"confidence/{name}.py" for name in ("compiled", "kernel", "kernel_cache", "linked"))
"""Are about compiled code and its cache only: test_kernel_cache.py and test_linked_kernels.py."""

FOLDERS = tuple(
    f"tests/{room}"
    for room in (
        "confidence", "eventbased", "pointbased",
        "candidates", "cases", "executor", "expressions", "operators", "results", "streaming",
    )
)  # fmt: skip
COMPILED_ONLY = (
    "tests/confidence/test_kernel_cache.py",
    "tests/confidence/test_without_jit.py",
    # Hundreds of events, or confidences that are dear on purpose.
    "tests/operators/test_approximate.py",
    "tests/operators/test_medium.py",
    "tests/operators/test_language_medium.py",
    "tests/pointbased/test_medium.py",
    # About what is kept between calls, not about kernels.
    "tests/streaming/test_composition.py",
    "tests/streaming/test_incremental_matcher.py",
    "tests/streaming/test_replanning.py",
)
SAMPLE = "test_framework or oracle or (confidence or eventbased) and not operators and not results"
"""Of the properties those that hold the engine against the oracle."""


def plain_python(*arguments: str, measured: tuple[str, ...] = ()) -> None:
    """Run tests in a process whose kernels are plain Python with checks."""
    ignored = (f"--ignore={name}" for name in COMPILED_ONLY)
    started_with = (sys.executable, *measured, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    done = subprocess.run(
        [*started_with, "-p", PLUGIN, "-m", "not compiled", *ignored, *FOLDERS, *arguments],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def covered(files: dict[str, Any]) -> tuple[dict[str, float], list[str]]:
    """Return the percent of lines reached in each package, and what is left out in which file."""
    percent = {}
    left_out = []
    for package in PACKAGES:
        here = {name: file for name, file in files.items() if Path(name).parts[0] == package}
        lines = sum(file["summary"]["num_statements"] for file in here.values())
        missing = {name: file["missing_lines"] for name, file in here.items() if file["missing_lines"]}
        percent[package] = 100.0 * (1.0 - sum(map(len, missing.values())) / lines)
        left_out += [
            f"{name}: {here[name]['summary']['percent_covered']:.0f}%, not {', '.join(map(str, numbers))}"
            for name, numbers in sorted(missing.items())
        ]
    return percent, left_out


def test_what_is_covered_is_counted_by_package() -> None:
    def file(lines: int, missing: list[int]) -> dict[str, Any]:
        percent = 100.0 * (1.0 - len(missing) / lines)
        return {
            "summary": {"num_statements": lines, "percent_covered": percent},
            "missing_lines": missing,
        }

    files = {
        "confidence/a.py": file(9, []),
        "confidence/b.py": file(1, [7]),
        "eventbased/a.py": file(4, [1, 3]),
        "pointbased/a.py": file(2, []),
    }
    percent, left_out = covered(files)
    assert percent == pytest.approx({"confidence": 90.0, "eventbased": 50.0, "pointbased": 100.0})
    assert left_out == ["confidence/b.py: 0%, not 7", "eventbased/a.py: 50%, not 1, 3"]


def test_a_sample_as_plain_python() -> None:
    plain_python("--hypothesis-profile=sample", "-k", SAMPLE)


@pytest.mark.thorough
def test_almost_every_line_runs_as_plain_python(tmp_path: Path) -> None:
    data = f"--data-file={tmp_path / 'data'}"
    chosen = (f"--source={','.join(PACKAGES)}", f"--omit={','.join(COMPILER)}")
    plain_python(measured=("-m", "coverage", "run", data, *chosen))
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "coverage", "json", "-q", data, "-o", str(report)]
    subprocess.run(command, cwd=ROOT, check=True)
    percent, left_out = covered(json.loads(report.read_text())["files"])
    assert min(percent.values()) >= LEAST_COVERED, "\n".join([str(percent), *left_out])
