"""How many lines of the kernels tests reach without the compiler: a process a folder of tests, all combined.

``python -m tests.confidence.covering`` prints a line for each folder as it ends, then what no test reaches.
Arguments are folders to run instead of all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.confidence.checked import PACKAGES

__all__ = ["COMPILED_ONLY", "FOLDERS", "LEAST_COVERED", "ROOT", "covered", "main", "plain_python"]

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "tests.confidence.checked"
LEAST_COVERED = 95.0
"""Percent of the lines of every kernel package that tests without the compiler reach."""

COMPILER = tuple(
    f"confidence/{name}.py" for name in ("compiled", "kernel", "kernel_cache", "linked", "stored")
)
"""Are about compiled code and its cache only, as are test_kernel_cache.py, test_linked_kernels.py and
test_private_parts.py."""

KERNELS = tuple(f"tests/{package}" for package in PACKAGES)
ENGINE = tuple(
    f"tests/{room}"
    for room in ("executor", "operators", "results", "streaming", "candidates", "expressions", "cases")
)
"""Folders whose tests run whole queries; the first take longest."""

FOLDERS = (*ENGINE, *KERNELS)
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


def plain_python(folders: Sequence[str], *arguments: str, measured: tuple[str, ...] = ()) -> str:
    """Run tests in a process whose kernels are plain Python with checks; return what it said if they fail."""
    ignored = (f"--ignore={name}" for name in COMPILED_ONLY)
    started_with = (sys.executable, *measured, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    done = subprocess.run(
        [*started_with, "-p", PLUGIN, "-m", "not compiled", *ignored, *folders, *arguments],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr if done.returncode else ""


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


def main(folders: Sequence[str] = FOLDERS) -> list[str]:
    """Run folders of tests, as many at once as there are cores; return what failed or is not reached."""
    chosen = (f"--source={','.join(PACKAGES)}", f"--omit={','.join(COMPILER)}")
    begun = time.monotonic()
    with TemporaryDirectory() as place, ThreadPoolExecutor(os.cpu_count()) as side_by_side:

        def run(folder: str) -> str:
            data = f"--data-file={place}/.coverage.{Path(folder).name}"
            # Few examples of whole queries reach enough: they take most of the time.
            fewer = ("--hypothesis-profile=sample",) if folder in ENGINE else ()
            said = plain_python([folder], *fewer, measured=("-m", "coverage", "run", data, *chosen))
            print(f"{folder}: {'failed' if said else 'passed'} after {time.monotonic() - begun:.0f} s")
            return said

        failed = [said for said in side_by_side.map(run, folders) if said]
        report = Path(place, "report.json")
        whole = f"--data-file={place}/.coverage"
        for step in (("combine", "-q", whole, place), ("json", "-q", whole, "-o", str(report))):
            subprocess.run([sys.executable, "-m", "coverage", *step], cwd=ROOT, check=True)
        percent, left_out = covered(json.loads(report.read_text())["files"])
    shown = ", ".join(f"{package} {value:.1f}%" for package, value in percent.items())
    if failed or min(percent.values()) < LEAST_COVERED:
        return [*failed, *left_out, shown]
    print(*left_out, shown, sep="\n")
    return []


if __name__ == "__main__":
    sys.exit("\n".join(main(sys.argv[1:] or FOLDERS)) or 0)
