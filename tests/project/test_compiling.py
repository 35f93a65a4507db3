"""Compiling kernels is said so, once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import numba
from uncertain_cep.compiling import announce_compilation

def compiled(module):
    def kernel(x):
        return x + 1
    kernel.__module__ = module
    return numba.njit(kernel)(1)

compiled("elsewhere")
announce_compilation()
announce_compilation()
compiled("elsewhere")
compiled(None)
print("silent so far", file=__import__("sys").stderr, flush=True)
compiled("eventbased.joins.pivot_join")
compiled("confidence.chain.uniform")
"""


def test_the_first_of_our_kernels_is_announced_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    first, *rest = done.stderr.splitlines()
    assert first == "silent so far"
    assert len(rest) == 1
    assert "compiling kernels (first use on this machine" in rest[0]
