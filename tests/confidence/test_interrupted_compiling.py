"""An interrupt while Numba is loaded, or compiles, leaves nothing that later calls would stumble over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from confidence.uninterrupted import may_end_here, uninterrupted
from tests.conftest import ROOT

INTERRUPTED = """
import os, signal, sys, threading
import numpy as np
from confidence import kernel_cache
from confidence.gaps.monte_carlo import _stir

signal.signal(signal.SIGINT, signal.default_int_handler)
armed = True
interrupted = []

def interrupt(kind):
    global armed
    if armed:
        armed = False
        interrupted.append(kind)
        os.kill(os.getpid(), signal.SIGINT)

class Modules:
    met = 0

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite", "yaml"):
            self.met += 1
            if self.met % 7 == 1:
                interrupt("import")

sys.meta_path.insert(0, Modules())
kernel_cache.when_compiling(lambda name, found: interrupted.count("kernel") or interrupt("kernel"))
while True:
    state = np.array([1], dtype=np.uint64)
    try:
        _stir(state, 5)
        break
    except KeyboardInterrupt:
        for thread in set(threading.enumerate()) - {threading.current_thread()}:
            thread.join()
        armed = True
plain = np.array([1], dtype=np.uint64)
_stir.plain(plain, 5)
print(state[0] == plain[0], *interrupted)
"""


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "") not in ("", "0"), reason="nothing is compiled")
def test_kernels_compile_after_interrupts_of_all_that_comes_before(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    same, *interrupted = done.stdout.split()
    assert same == "True"
    # While Numba is loaded, while it fills its tables for the first kernel, and while it compiles that.
    assert interrupted.count("import") > 1
    assert interrupted.count("kernel") == 1
    assert done.stderr == ""


def test_what_is_uninterrupted_returns_and_raises_as_ever() -> None:
    assert uninterrupted(lambda: 3) == 3
    with pytest.raises(ValueError, match="of the call"):
        uninterrupted(partial(int, "of the call"))
    outer, inner = uninterrupted(lambda: (threading.get_ident(), uninterrupted(threading.get_ident)))
    assert outer == inner != threading.get_ident()


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_wait_and_the_work_where_it_may_end() -> None:
    began, interrupted, steps = threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        began.set()
        os.kill(os.getpid(), signal.SIGINT)
        interrupted.wait(600.0)
        steps.append("went on")
        may_end_here()
        steps.append("did not end")

    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)
    (thread,) = set(threading.enumerate()) - before
    interrupted.set()
    thread.join(600.0)
    assert began.is_set()
    assert steps == ["went on"]
    may_end_here()
