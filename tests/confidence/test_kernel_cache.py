"""Compiled kernels are shared by processes and checkouts, and never stand for other code."""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from confidence.kernel import Kernel
from confidence.kernel_cache import PACKAGES, cache_folder, compiler_lock, sources, why_not_kept
from uncertain_cep.running import compiling

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import numpy as np
from numba.core import event
from confidence.compiled import private_parts
from confidence.gaps.monte_carlo import _stir

private_parts()

class Compiles(event.Listener):
    count = 0
    def on_start(self, event):
        self.count += 1
    def on_end(self, event):
        pass

compiles = Compiles()
event.register("numba:compile", compiles)
state = np.array([1], dtype=np.uint64)
_stir(state, 5)
print(state[0], compiles.count)
"""


ANNOUNCED = """
from uncertain_cep.config import tuning
from uncertain_cep.running.compiling import announce_compilation
tuning.BETWEEN_WORDS = 1e9
announce_compilation()
"""


def checkout(folder: Path) -> Path:
    shutil.copytree(ROOT / "confidence", folder / "confidence", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def environment(checkout: Path, cache: Path) -> dict[str, str]:
    return {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(checkout)}


def stirred(checkout: Path, cache: Path) -> tuple[int, int]:
    """Return the result of a kernel of the checkout in a new process, and how many were compiled for it."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=checkout,
        env=environment(checkout, cache),
        capture_output=True,
        text=True,
        check=True,
    )
    state, compiles = done.stdout.split()
    return int(state), int(compiles)


def test_another_checkout_finds_what_is_compiled_but_for_an_edited_callee(tmp_path: Path) -> None:
    first, second = checkout(tmp_path / "first"), checkout(tmp_path / "second")
    cache = tmp_path / "cache"
    state, compiles = stirred(first, cache)
    assert compiles > 0
    assert stirred(second, cache) == (state, 0)

    file = second / "confidence" / "gaps" / "monte_carlo.py"
    source = file.read_text()
    assert source.count("np.uint64(13)") == 1
    file.write_text(source.replace("np.uint64(13)", "np.uint64(11)"))
    changed, compiles = stirred(second, cache)
    assert changed != state
    assert compiles > 0
    assert stirred(first, cache) == (state, 0)


def test_an_edited_callee_in_another_file_counts(tmp_path: Path) -> None:
    here = checkout(tmp_path / "here")
    folder = here / "confidence"
    (folder / "callee.py").write_text(
        "from confidence.kernel import kernel\n\n@kernel\ndef sum_of_three(a, b, c):\n    return a + b + c\n"
    )
    module = folder / "gaps" / "monte_carlo.py"
    module.write_text(
        module.read_text().replace(
            "from confidence.kernel import kernel\n",
            "from confidence.callee import sum_of_three\nfrom confidence.kernel import kernel\n",
        )
        + "\n\n@kernel\ndef _stir(state, number):\n    state[0] = sum_of_three(number, number, number)\n"
    )
    cache = tmp_path / "cache"
    assert stirred(here, cache)[0] == 15
    assert stirred(here, cache) == (15, 0)
    callee = folder / "callee.py"
    callee.write_text(callee.read_text().replace("a + b + c", "a * b * c"))
    assert stirred(here, cache)[0] == 125


def test_damaged_entries_are_compiled_anew(tmp_path: Path) -> None:
    here, cache = checkout(tmp_path / "here"), tmp_path / "cache"
    state, compiles = stirred(here, cache)
    entries = sorted(cache.rglob("*.nbc"))
    assert len(entries) == compiles
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:-1])
    assert stirred(here, cache) == (state, compiles)
    assert stirred(here, cache) == (state, 0)


def test_entries_whose_types_have_moved_are_compiled_anew(tmp_path: Path) -> None:
    """The types of arguments may be classes, and a class may be renamed while its kernel is not."""
    here, cache = checkout(tmp_path / "here"), tmp_path / "cache"
    state, compiles = stirred(here, cache)
    for entry in sorted(cache.rglob("*.nbc")):
        moved = b"cno_module_of_this_name\nMoved\n."
        entry.write_bytes(hashlib.sha256(moved).digest() + moved)
    assert stirred(here, cache) == (state, compiles)


def test_processes_that_compile_at_once_leave_whole_entries(tmp_path: Path) -> None:
    here, cache = checkout(tmp_path / "here"), tmp_path / "cache"
    command = [sys.executable, "-c", SCRIPT]
    processes = [
        subprocess.Popen(command, cwd=here, env=environment(here, cache), stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = {process.communicate()[0].split()[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(answers) == 1
    assert stirred(here, cache) == (int(answers.pop()), 0)
    assert not [file.name for file in cache.rglob("*") if file.name.startswith(".")]


@pytest.mark.parametrize(
    "variables",
    [
        {"NUMBA_CACHE_DIR": "/dev/null/cache"},
        {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": "/dev/null"},
    ],
    ids=["given", "home"],
)
def test_without_a_folder_every_process_compiles_and_says_so_once(variables: dict[str, str]) -> None:
    script = ANNOUNCED + SCRIPT + SCRIPT
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stderr.splitlines()
    assert len(said) == 2
    assert "compiling kernels" in said[0]
    assert "cannot be kept" in said[1]
    assert "NUMBA_CACHE_DIR" in said[1]


def owned_by_another(folder: Path) -> str:
    if os.geteuid():
        pytest.skip("only root can give a folder away")
    os.chown(folder, 65534, -1)
    return "belongs to another user"


def open_to_all(folder: Path) -> str:
    folder.chmod(0o1777)
    return "all users may write to"


@pytest.mark.parametrize("give", [owned_by_another, open_to_all])
def test_code_of_others_is_never_run(tmp_path: Path, give: Callable[[Path], str]) -> None:
    """A cache that all users can write, or that is another user's, is neither read nor added to."""
    here, cache = checkout(tmp_path / "here"), tmp_path / "cache"
    state, compiles = stirred(here, cache)
    folder = cache / "uncertain-cep"
    before = sorted(os.listdir(folder))
    said = give(folder)
    assert stirred(here, cache) == (state, compiles)
    assert sorted(os.listdir(folder)) == before
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("NUMBA_CACHE_DIR", str(cache))
        assert cache_folder() is None
        assert said in (why_not_kept() or "")
        with compiler_lock() as lock:
            assert lock is None
        folder.chmod(0o700)
        os.chown(folder, os.geteuid(), -1)
        assert cache_folder() == folder
        assert why_not_kept() is None
    assert stirred(here, cache) == (state, 0)


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o770, 0o2775])
def test_a_folder_of_a_group_is_warned_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    folder = tmp_path / "uncertain-cep"
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert cache_folder() == folder
    compiling._warn_of_group.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            compiling.announce_compilation()
    compiling._warn_of_group.cache_clear()
    assert [str(warning.message) for warning in caught] == (
        [compiling.BY_GROUP.format(folder)] if mode & 0o020 else []
    )


def kernel_modules() -> list[str]:
    return [
        module.name
        for package in PACKAGES
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}.")
    ]


def test_every_source_that_a_kernel_can_call_counts() -> None:
    """A kernel sees the globals of its own module: each that stands elsewhere has to be in the closure."""
    seen = 0
    for name in kernel_modules():
        module = importlib.import_module(name)
        homes = {value.py_func.__module__ for value in vars(module).values() if isinstance(value, Kernel)}
        assert homes <= sources(name).keys(), name
        seen += len(homes - {name})
    assert seen > 50
