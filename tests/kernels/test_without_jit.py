"""The kernels once more as plain Python, where an index out of bounds is an error and not a wild read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_kernels_as_plain_python() -> None:
    names = (
        "uniform", "pmf", "forbidden", "gaps", "orders", "join", "pointbased", "incremental_methods",
        "growing", "expected", "overlaps", "surviving", "sets", "windows", "tree_join", "survival_tables",
        "bounds", "limits",
    )  # fmt: skip
    tests = [f"tests/kernels/test_{name}.py" for name in names]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
