"""Compiled kernels kept between processes: how Numba hands them over, and takes them back.

Numba's own cache stamps a kernel with its file alone, see :mod:`confidence.kernel_cache`. To put another one
in its place takes private parts of Numba: :func:`confidence.compiled.private_parts` imports this module.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import FunctionType
from typing import Any, Final

import numba
import numpy as np
from numba.core import codegen as numba_codegen
from numba.core import compiler
from numba.core.serialize import dumps

from confidence.kernel_cache import (
    cache_folder,
    portable_processor,
    read_entry,
    say_needed,
    sources_hash,
    write_entry,
)
from confidence.uninterrupted import may_end_here

__all__ = ["KernelCache", "MemoryCache", "attach", "check", "check_pair"]

AVX2_FEATURES: Final = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
"""What x86-64-v3 has beyond all processors of its kind."""


class KernelCache:
    """The cache of one kernel, which Numba asks for compiled code and hands it to.

    Parameters
    ----------
    function : function
        The kernel as it is written.
    form : str
        What is made of it: code of one form does not do for another.
    """

    def __init__(self, function: Any, form: str) -> None:
        self._function = function
        self._form = form
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        """Where the entries lie."""
        folder = cache_folder()
        return None if folder is None else str(folder)

    def enable(self) -> None:
        """Use the cache from now on."""
        self._enabled = True

    def disable(self) -> None:
        """Neither read nor write from now on."""
        self._enabled = False

    def flush(self) -> None:
        """Keep everything: no entry is ever stale."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for these types of arguments, or None."""
        may_end_here()
        target_context.refresh()
        stored: Any = None
        compiled: Any = None
        for name in self._names(sig, target_context.codegen()):
            if stored is None and (data := self._read(name)) is not None:
                # The types of arguments may name a class that has moved since: then it is no such entry.
                with suppress(ImportError, AttributeError):
                    stored, compiled = pickle.loads(data)
        self._announce(stored == sig)
        return self._rebuilt(target_context, compiled) if stored == sig else None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code; do nothing where that is not possible."""
        if any(not lifted.can_cache for lifted in data.lifted) or data.library.has_dynamic_globals:
            return
        for name in self._names(sig, data.codegen)[:1]:
            self._write(name, dumps((sig, data._reduce())))

    def _rebuilt(self, target_context: Any, compiled: Any) -> Any:
        return compiler.CompileResult._rebuild(target_context, *compiled)

    def _read(self, name: str) -> bytes | None:
        return read_entry(name)

    def _write(self, name: str, data: bytes) -> None:
        write_entry(name, data)

    def _announce(self, is_cached: bool) -> None:
        say_needed(f"{self._function.__module__}.{self._function.__qualname__}", is_cached)

    def _names(self, sig: Any, codegen: Any) -> list[str]:
        """Return the names of the entry for this processor and, where it will do, for all like it."""
        # The address of an object means another one in the next process.
        if not self._enabled or " at 0x" in repr(sig):
            return []
        function, names = self._function, []
        portable = (*sys.version_info[:2], portable_processor())
        versions = (sys.version, np.__version__, codegen.magic_tuple())
        if codegen.magic_tuple()[1:] == (portable_processor(), ""):
            targets: list[Any] = [portable]
        else:
            targets = [versions, portable] if _can_run_portable() else [versions]
        for target in targets:
            parts = (numba.__version__, target, function.__qualname__, sig, self._form)
            name = hashlib.sha256(repr(parts).encode())
            name.update(sources_hash(function.__module__))
            names.append(f"{function.__module__}.{function.__qualname__}-{name.hexdigest()[:40]}.nbc")
        return names


class MemoryCache(KernelCache):
    """A cache for checks that reads one dict and writes another; nobody hears of what it lacks."""

    def __init__(self, function: Any, form: str, kept: dict[str, bytes], new: dict[str, bytes]) -> None:
        super().__init__(function, form)
        self._kept, self._new = kept, new

    def _read(self, name: str) -> bytes | None:
        return self._kept.get(name)

    def _write(self, name: str, data: bytes) -> None:
        self._new[name] = data

    def _announce(self, is_cached: bool) -> None:
        """Say nothing."""


def attach(dispatcher: Any, kept: KernelCache) -> Any:
    """Return a kernel as ``numba.njit`` makes it, with a cache, and without variants for constants."""
    template = dispatcher.get_call_template

    def of_types(args: Any, kws: Any) -> Any:
        unliteral = numba.types.unliteral
        return template(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

    dispatcher._cache = kept
    dispatcher.get_call_template = of_types
    return dispatcher


@cache
def _can_run_portable() -> bool:
    """Return whether this processor runs what is compiled for :func:`portable_processor`."""
    numbas: Any = numba_codegen
    features = numbas.ll.get_host_cpu_features()
    return portable_processor() == "generic" or all(features.get(name) for name in AVX2_FEATURES)


def _scaled(value: int, factor: int) -> int:
    return value * factor


def _total(values: Any) -> int:
    total = 0
    for value in values:
        total += _scaled(value, 2) + _scaled(value, 3)
    return total


def check_pair(make: Callable[[Any, dict[str, bytes], dict[str, bytes]], Any]) -> None:
    """Raise an error unless a kernel that calls another one is compiled, kept and taken back as expected.

    Parameters
    ----------
    make : callable
        Returns what Numba makes of a function, with a :class:`MemoryCache` of two dicts.
    """
    values, kept = np.arange(4), dict[str, bytes]()
    # First both are compiled. Then the caller is taken back, and then its callee, for a caller that is not.
    for dropped, compiled in (("", 2), ("", 0), ("._total-", 1)):
        kept = {name: data for name, data in kept.items() if not dropped or dropped not in name}
        new = dict[str, bytes]()
        names = {"__name__": __name__, _scaled.__name__: make(_scaled, kept, new)}
        total = make(FunctionType(_total.__code__, names, _total.__name__), kept, new)
        if total(values) != 30 or len(new) != compiled:
            raise NotImplementedError("compiled code is not kept, or not taken back")
        kept |= new


def check(options: dict[str, Any]) -> None:
    """Raise an error unless Numba takes these options, and :func:`attach` does what it is for."""
    check_pair(
        lambda function, *dicts: attach(
            numba.njit(**options)(function), MemoryCache(function, "njit", *dicts)
        )
    )
