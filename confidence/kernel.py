"""The decorator of every kernel: a function that runs as plain Python on little, and compiled on much.

Numba takes a second to load, and up to a minute to compile what a query needs. So small work calls kernels as
the Python functions that they are (:func:`plain_for`), until this process has spent so long with them that
compiled ones would have been the better choice. A kernel that can run long comes back often, with all that it
knows in its arguments. So each call may run either way, and the answer is the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import update_wrapper
from threading import Lock
from time import thread_time
from types import FunctionType
from typing import Any, Final, TypeVar

import numpy as np

from confidence.kernel_cache import sources_hash
from confidence.uninterrupted import uninterrupted

__all__ = [
    "POSITIVE",
    "Kernel",
    "always_compiled",
    "compiles_always",
    "compiles_now",
    "kernel",
    "plain_for",
    "plainly",
    "runs_plain",
    "seconds_plain",
]

ItemT = TypeVar("ItemT")

NEVER_COMPILED: Final = os.environ.get("NUMBA_DISABLE_JIT", "") not in ("", "0")
"""Whether kernels are Python functions only, as for coverage."""

POSITIVE: Final = 2**63 - 1
"""Mask for an index: it tells the compiler that the index does not count from the end."""

_allowed: Final[ContextVar[float]] = ContextVar("allowed", default=0.0)
_compiled_only: Final[ContextVar[bool]] = ContextVar("compiled_only", default=False)
_creating: Final = Lock()
_spent = 0.0


def kernel(
    function: Any = None,
    *,
    inline: bool = False,
    allocates: bool = False,
    packed: bool = False,
    plain: Callable[..., Any] | None = None,
) -> Any:
    """Make a function a kernel: compiled at its first call with arguments of these types, and kept on disk.

    Parameters
    ----------
    function : callable
        A function at the top of a module of the kernel packages. It runs without the interpreter's lock; a
        division by zero gives NaN or an infinity.
    inline : bool
        Whether LLVM always puts the function's body into its callers. Numba's own ``inline="always"`` copies
        the body before types are inferred, which has to be paid for at each call again.
    allocates : bool
        Whether the function, or one that it calls, makes arrays. Where none does, no references are counted:
        counts are atomic, and Numba takes one whenever an array is read from a tuple, which was nine tenths
        of the time of a search. Numba refuses to compile a function that allocates and does not say so.
    packed : bool
        Whether, where other kernels call it, LLVM makes vectors of equal operations that stand side by side
        (superword-level parallelism). It takes longer to compile, and slows down what has few of these.
        Without it ``iter_matches`` of ``benchmarks main --only throughput`` took 1.01 to 1.15 times as long,
        sequences of five components 1.10 to 1.13 times, on a machine that was busy.
    plain : callable or None
        Runs in place of the function as plain Python; None: the function itself.

    Returns
    -------
    callable
        A :class:`Kernel`, or the function itself under ``NUMBA_DISABLE_JIT``.
    """
    if function is None:
        return lambda given: kernel(given, inline=inline, allocates=allocates, packed=packed, plain=plain)
    if NEVER_COMPILED:
        return function if plain is None else plain
    return Kernel(function, inline, allocates, packed, plain)


class Kernel:
    """A function that is compiled when it has to be, and plain Python until then.

    Attributes
    ----------
    py_func : function
        As it is written.
    """

    def __init__(
        self,
        function: FunctionType,
        inline: bool,
        allocates: bool,
        packed: bool,
        plain: Callable[..., Any] | None,
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.__name__ = function.__name__
        # Now: by the time of the first call a file may have been edited.
        sources_hash(function.__module__)
        self._options = inline, allocates, packed
        self._compiled: Any = None
        self._plain = plain

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel, in which way see :func:`plain_for`."""
        global _spent
        compiled = self._compiled
        if compiled is not None and compiled.overloads:
            return compiled(*arguments)
        if not runs_plain():
            return self.compiled(*arguments)
        # Of this thread alone: what threads wait for one another is spent once.
        started = thread_time()
        try:
            # As in compiled code, integers that overflow wrap around in silence.
            with np.errstate(all="ignore"):
                return self.plain(*arguments)
        finally:
            _spent += thread_time() - started

    @property
    def compiled(self) -> Any:
        """The function as Numba compiles it; the first kernel that is asked for it loads Numba."""
        if self._compiled is None:
            uninterrupted(self._make)
        return self._compiled

    def _make(self) -> None:
        from confidence.compiled import compiled_kernel, know

        with _creating:
            know(Kernel)
            if self._compiled is None:
                self._compiled = compiled_kernel(self.py_func, *self._options)

    @property
    def plain(self) -> Callable[..., Any]:
        """The Python function, whose kernels are Python functions."""
        if self._plain is None:
            code, names = self.py_func.__code__, _plain_names(self.py_func.__module__)
            self._plain = FunctionType(code, names, self.__name__, self.py_func.__defaults__)
        return self._plain


_names_seen: Final[dict[str, dict[str, Any]]] = {}


def _plain_names(module: str) -> dict[str, Any]:
    """Return the names that the kernels of a module see, with Python functions for kernels."""
    if module not in _names_seen:
        names = _names_seen[module] = dict(vars(sys.modules[module]))
        names.update({name: found.plain for name, found in names.items() if isinstance(found, Kernel)})
    return _names_seen[module]


@contextmanager
def plain_for(seconds: float) -> Iterator[None]:
    """Have kernels that Python calls in this context run as plain Python.

    They do until this process has spent so many seconds that way, from its beginning. What is compiled
    already stays so.
    """
    token = _allowed.set(seconds)
    try:
        yield
    finally:
        _allowed.reset(token)


def plainly(seconds: float, found: Iterator[ItemT]) -> Iterator[ItemT]:
    """Yield items, each found in the context of :func:`plain_for`, which the caller does not see."""
    if seconds == _allowed.get():
        # To change nothing still takes 10 us where what is looked up is not in the processor's cache.
        yield from found
        return
    while True:
        with plain_for(seconds):
            try:
                item = next(found)
            except StopIteration:
                return
        yield item


@contextmanager
def always_compiled() -> Iterator[None]:
    """Have all kernels compiled in this context, whatever is asked for within it."""
    token = _compiled_only.set(True)
    try:
        yield
    finally:
        _compiled_only.reset(token)


def runs_plain() -> bool:
    """Return whether a kernel that is not compiled yet would run as plain Python now."""
    return _spent < _allowed.get() and not _compiled_only.get()


def compiles_always() -> bool:
    """Return whether this is the context of :func:`always_compiled`."""
    return _compiled_only.get()


def compiles_now() -> bool:
    """Return whether a kernel called now would be compiled, and Numba is there already."""
    return "confidence.compiled" in sys.modules and not runs_plain()


def seconds_plain() -> float:
    """Return how long this process has run kernels as plain Python."""
    return _spent
