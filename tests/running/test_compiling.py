"""Little work compiles nothing and does not wait for what is compiled beside it; what is compiled is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import uncertain_cep as uc
from confidence.kernel import NEVER_COMPILED, always_compiled
from uncertain_cep.config import tuning
from uncertain_cep.operators.table import OPERATORS
from uncertain_cep.running import compiling
from uncertain_cep.warming import GROUPS

ROOT = Path(__file__).resolve().parents[2]

EVENTS = """
import sys
import pyarrow as pa
import uncertain_cep as uc
from uncertain_cep.config import tuning
n = int(sys.argv[1])
events = pa.table({
    "type": ["A", "B", "C", "D"] * (n // 4), "id": range(n), "lower": range(n), "upper": range(2, n + 2),
})
query = "PATTERN SEQ(A a, B b, C c) WITHIN 8"
"""

ANNOUNCED = """
import numpy as np
from confidence.gaps.monte_carlo import _stir
from uncertain_cep.running.compiling import announce_compilation, plain_seconds
tuning.BETWEEN_WORDS = 1e9
announce_compilation()
announce_compilation()
plain_seconds(10**9, ("joins",))
print("silent so far", file=sys.stderr, flush=True)
_stir(np.array([1], dtype=np.uint64), 5)
"""

# Of seconds there are many, so that a busy machine changes nothing.
LITTLE = """
tuning.SOON_SECONDS = tuning.PLAIN_SECONDS = tuning.PLAIN_SECONDS_UNCOMPILED = 1e9
uc.match(events, query)
print("numba" in sys.modules)
"""

LONGER = """
tuning.PLAIN_SECONDS = tuning.PLAIN_SECONDS_UNCOMPILED = 0.01
found = uc.match(events, query)
print("numba" in sys.modules)
tuning.FEW_EVENTS = 0
print(found.num_rows == uc.match(events, query).num_rows > 0)
"""

# What is stopped cannot be done before it is looked at.
BESIDE = """
import signal
from confidence.kernel_cache import compiler_lock
from uncertain_cep.running import compiling
from uncertain_cep.running.compiling import _background_compiler
tuning.PLAIN_SECONDS = tuning.PLAIN_SECONDS_UNCOMPILED = 1e9

class Stopped(compiling.subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.send_signal(signal.SIGSTOP)

compiling.subprocess.Popen = Stopped
uc.match(events, query)
with compiler_lock() as lock:
    assert lock is None
print("numba" in sys.modules, _background_compiler._process.pid)
"""


def run(script: str, events: int, cache: Path | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", EVENTS + script, str(events)],
        cwd=ROOT,
        env=os.environ | ({} if cache is None else {"NUMBA_CACHE_DIR": str(cache)}),
        capture_output=True,
        text=True,
        check=True,
    )


def test_what_compiles_is_said_with_how_far_it_is(tmp_path: Path) -> None:
    said = f"kernels of joins (first use on this machine): 1 of at most {tuning.KERNELS['joins']}"
    first, *further_lines = run(ANNOUNCED, 8, tmp_path).stderr.splitlines()
    assert first == "silent so far"
    assert len(further_lines) == 1
    assert said in further_lines[0]


def test_little_work_loads_no_compiler(tmp_path: Path) -> None:
    assert run(LITTLE, 100, tmp_path).stdout.split() == ["False"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(NEVER_COMPILED, reason="nothing compiles")
def test_one_process_beside_compiles_for_the_next_call_and_ends_with_this_one(tmp_path: Path) -> None:
    loaded, process = run(BESIDE, 400, tmp_path).stdout.split()
    assert loaded == "False"
    with pytest.raises(ProcessLookupError):
        os.kill(int(process), 0)


@pytest.mark.compiled
def test_work_that_is_longer_than_thought_goes_on_compiled() -> None:
    assert run(LONGER, 2000, None).stdout.split() == ["True", "True"]


def test_every_operator_names_a_group_that_can_be_compiled_beforehand() -> None:
    assert {operator.kernels for operator in OPERATORS} - {None} <= GROUPS.keys()
    assert GROUPS.keys() == tuning.KERNELS.keys()


def test_groups_are_named() -> None:
    with pytest.raises(uc.OptionError, match="no group 'join' of kernels: they are joins"):
        uc.warm_up(["join"])


@pytest.mark.skipif(NEVER_COMPILED, reason="nothing compiles")
@pytest.mark.parametrize("missing", [(), ("reading",)])
def test_reading_takes_kernels_once_they_are_worth_it_and_waits_for_none(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]
) -> None:
    started: list[tuple[str, ...]] = []
    monkeypatch.delitem(sys.modules, "confidence.compiled", raising=False)
    monkeypatch.setattr(compiling, "_seconds_reading", 0.0)
    monkeypatch.setattr(compiling._background_compiler, "missing", lambda groups: missing)
    monkeypatch.setattr(compiling._background_compiler, "start", started.append)
    assert not compiling.compiled_for_reading()
    compiling.spent_reading(tuning.PLAIN_SECONDS)
    assert compiling.compiled_for_reading() == (not missing)
    assert started == ([missing] if missing else [])
    with always_compiled():
        assert compiling.compiled_for_reading()
