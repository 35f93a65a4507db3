"""When kernels are compiled: not for little work, but beside it; and what the user hears of that."""

from __future__ import annotations

import atexit
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from confidence.kernel import NEVER_COMPILED, compiles_always, seconds_plain
from confidence.kernel_cache import compiler_lock, is_marked, kept_by_group, when_compiling, why_not_kept
from uncertain_cep.config import tuning
from uncertain_cep.errors import warn

__all__ = [
    "COMPILING",
    "NOT_KEPT",
    "announce_compilation",
    "compiled_for_reading",
    "plain_seconds",
    "spent_reading",
]

COMPILING: Final = "uncertain-cep: compiling kernels of {} (first use on this machine): {} of at most {} ..."
NOT_KEPT: Final = (
    "uncertain-cep: every process compiles anew, as compiled kernels cannot be kept: {}; "
    "set NUMBA_CACHE_DIR to a folder of your own"
)
BY_GROUP: Final = (
    "members of a group may write to {}, where compiled kernels are kept: each could run code as you; "
    "take that away (chmod g-w) unless you trust them all"
)


def _to_stderr(message: str) -> None:
    # Without a console there is none.
    if sys.stderr is not None:
        print(message, file=sys.stderr, flush=True)


class _Announcer:
    """Says of what kernels are compiled and how far that is: at first, and every few seconds."""

    def __init__(self) -> None:
        self.say: Callable[[str], None] = _to_stderr
        self._groups: tuple[str, ...] = ()
        self._loaded: set[str] = set()
        self._said: float | None = None

    def about(self, groups: Sequence[str]) -> None:
        """Learn which kernels are needed next."""
        if self._groups != tuple(groups):
            self._groups = tuple(groups)
            self._loaded.clear()

    def __call__(self, kernel: str, is_cached: bool) -> None:
        self._loaded.add(kernel)
        if is_cached:
            return
        _background_compiler.end()
        now = time.monotonic()
        if self._said is not None and now - self._said < tuning.BETWEEN_WORDS:
            return
        first, self._said = self._said is None, now
        total = max(sum(tuning.KERNELS[group] for group in self._groups), len(self._loaded))
        self.say(COMPILING.format(" and ".join(self._groups) or "a pattern", len(self._loaded), total))
        if first and (reason := why_not_kept()):
            self.say(NOT_KEPT.format(reason))


class _BackgroundCompiler:
    """The process that compiles while this one goes on with plain Python: at most one for a cache folder."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._requested: set[str] = set()
        self._compiled: set[str] = set()
        self._looked = 0.0
        self._missing: tuple[str, ...] = ()

    def missing(self, groups: Sequence[str]) -> tuple[str, ...]:
        """Return the groups that are not kept as a whole, as of some seconds ago."""
        if self._compiled.issuperset(groups):
            return ()
        now = time.monotonic()
        if now - self._looked > tuning.BETWEEN_WORDS or not set(groups) <= self._compiled.union(
            self._missing
        ):
            self._looked = now
            self._missing = tuple(group for group in groups if not is_marked(group))
            self._compiled.update(set(groups) - set(self._missing))
        return tuple(group for group in groups if group in self._missing)

    def start(self, groups: Sequence[str]) -> None:
        """Have the kernels of some groups compiled, once, and unless another process compiles already."""
        # A program that Python is part of would be started anew.
        if self._requested.issuperset(groups) or "python" not in Path(sys.executable or "").name.lower():
            return
        self._requested.update(groups)
        self.end()
        with compiler_lock() as lock:
            if lock is None:
                return
            root = str(Path(__file__).resolve().parents[2])
            path = f"import sys; sys.path.insert(0, {root!r})"
            code = f"{path}; from uncertain_cep.warming import compile_in_background as go; go()"
            with suppress(OSError):
                # Ends when this process does: its input ends then.
                self._process = subprocess.Popen(
                    [sys.executable, "-c", code, *groups],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(lock,),
                )

    def end(self) -> None:
        """End the process: what it has compiled is kept, and this one goes on from there."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


_announcer: Final = _Announcer()
_background_compiler: Final = _BackgroundCompiler()
atexit.register(_background_compiler.end)


def announce_compilation(say: Callable[[str], None] | None = None) -> None:
    """Tell the user if kernels are compiled from now on, and who else could write those that are kept.

    By default that is a line on stderr, or what an earlier call gave to ``say`` it with.
    """
    if say is not None:
        _announcer.say = say
    when_compiling(_announcer)
    _warn_of_group()


_READING: Final = ("reading",)
_seconds_reading = 0.0


def compiled_for_reading() -> bool:
    """Tell whether kernels read text from now on: they are kept, and Numba is loaded or worth loading.

    Where they were never compiled, a process beside compiles them for calls to come.
    """
    if NEVER_COMPILED or compiles_always():
        return not NEVER_COMPILED
    if "confidence.compiled" not in sys.modules and _seconds_reading < tuning.PLAIN_SECONDS:
        return False
    if missing := _background_compiler.missing(_READING):
        if _seconds_reading >= tuning.PLAIN_SECONDS:
            _background_compiler.start(missing)
        return False
    return True


def spent_reading(seconds: float) -> None:
    """Learn how long this process has read text without kernels that could have read it."""
    global _seconds_reading
    _seconds_reading += seconds


@cache
def _warn_of_group() -> None:
    """Warn, once, of a folder that others may write to."""
    if (folder := kept_by_group()) is not None:
        warn(BY_GROUP.format(folder))


def plain_seconds(events: int, groups: Sequence[str]) -> float:
    """Return how long this process may run kernels as plain Python, all in all, if so much is to be done.

    Where the kernels of some groups, see :data:`uncertain_cep.config.tuning.KERNELS`, were never compiled, it
    is longer, and a process beside compiles them for calls to come.
    """
    _announcer.about(groups)
    if events >= tuning.FEW_EVENTS or NEVER_COMPILED or compiles_always():
        return 0.0
    missing = _background_compiler.missing(groups)
    if not missing:
        return tuning.PLAIN_SECONDS
    if events > tuning.TOO_FEW_EVENTS or seconds_plain() > tuning.SOON_SECONDS:
        _background_compiler.start(missing)
    return tuning.PLAIN_SECONDS_UNCOMPILED
