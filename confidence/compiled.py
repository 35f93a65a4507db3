"""What Numba makes of a kernel, and how that is kept between processes."""

from __future__ import annotations

import hashlib
import pickle
import sys
from contextlib import suppress
from functools import cache, partial
from typing import Any, Final

import numba
import numpy as np
from numba._dispatcher import compute_fingerprint
from numba.core import codegen as numba_codegen
from numba.core import compiler, types
from numba.core.registry import CPUDispatcher
from numba.core.serialize import dumps

from confidence.kernel_cache import (
    cache_folder,
    portable_processor,
    read_entry,
    say_needed,
    sources_hash,
    write_entry,
)
from confidence.linked import LinkedDispatcher, kernel_flags, rebuilt, set_environments
from confidence.uninterrupted import may_end_here, uninterrupted

__all__ = ["CompiledKernel"]

AVX2_FEATURES: Final = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
"""What x86-64-v3 has beyond all processors of its kind."""


class CompiledKernel(CPUDispatcher):
    """A function to compile: for calls by Python, and otherwise for calls by other kernels.

    A call with a constant makes no variant of a kernel for that constant.
    """

    _compiler: Any

    def __init__(self, py_func: Any, targetoptions: Any, packed: bool) -> None:
        super().__init__(py_func, {}, targetoptions)
        self._compiler._customize_flags = kernel_flags
        self._cache = _KernelCache(py_func, linked=False)
        self._linked = LinkedDispatcher(py_func, targetoptions, packed)
        self._linked._cache = _KernelCache(py_func, linked=True)
        self._entries: dict[tuple[Any, ...], Any] = {}

    @classmethod
    def of(cls, function: Any, inline: bool, allocates: bool, packed: bool) -> CompiledKernel:
        """Return the kernel to make of a function, see :func:`confidence.kernel.kernel`."""
        # What is not given is taken over from the caller that happens to compile the function first.
        options = {
            "nopython": True,
            "boundscheck": None,
            "nogil": True,
            "error_model": "numpy",
            "fastmath": False,
            "forceinline": inline,
            "no_cfunc_wrapper": True,
            "_nrt": allocates,
        }
        return cls(function, options, packed)

    def add_overload(self, cres: Any) -> None:
        """Let Python find the code."""
        super().add_overload(cres)
        set_environments(cres)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        # Called when Python calls the kernel with arguments of new types.
        home: Any = super()
        return uninterrupted(partial(home._compile_for_args, *args, **kws))

    def entry(self, arguments: tuple[Any, ...]) -> Any:
        """Return what Python calls where arguments are of such types; None if it is not compiled for them."""
        # To find out the types takes 0.3 ms for fifty arrays.
        key = compute_fingerprint(arguments), *map(type, arguments)
        if key not in self._entries:
            overload: Any = self.overloads.get(tuple(map(self.typeof_pyval, arguments)))
            if overload is None:
                return None
            self._entries[key] = overload.entry_point
        return self._entries[key]

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile the kernel for a call by another one, whose arguments have these types."""
        may_end_here()
        _, folded = self._compiler.fold_argument_types(args, kws)
        given = tuple(types.unliteral(argument) for argument in folded)
        home: Any = super() if given in self.overloads else self._linked
        return home.get_call_template(given, {})

    def get_overload(self, sig: Any) -> Any:
        """Return the key of the code for a call by another kernel."""
        given = tuple(sig)
        home: Any = self._linked if given in self._linked.overloads else super()
        return home.get_overload(sig)


class _KernelCache:
    """What Numba asks for compiled code and hands it to, for one kernel."""

    def __init__(self, function: Any, linked: bool) -> None:
        self._function = function
        self._linked = linked
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
        target_context.refresh()
        stored: Any = None
        compiled: Any = None
        for name in self._names(sig, target_context.codegen()):
            if stored is None and (data := read_entry(name)) is not None:
                # The types of arguments may name a class that has moved since: then it is no such entry.
                with suppress(ImportError, AttributeError):
                    stored, compiled = pickle.loads(data)
        say_needed(f"{self._function.__module__}.{self._function.__qualname__}", stored == sig)
        if stored != sig:
            return None
        if self._linked:
            return rebuilt(target_context, compiled)
        return compiler.CompileResult._rebuild(target_context, *compiled)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code; do nothing where that is not possible."""
        if any(not lifted.can_cache for lifted in data.lifted) or data.library.has_dynamic_globals:
            return
        for name in self._names(sig, data.codegen)[:1]:
            write_entry(name, dumps((sig, data._reduce())))

    def _names(self, sig: Any, codegen: Any) -> list[str]:
        """Return the names of the entry for this processor and, where it will do, for all like it."""
        # The address of an object means another one in the next process.
        if not self._enabled or " at 0x" in repr(sig):
            return []
        function, names = self._function, []
        portable = (*sys.version_info[:2], portable_processor())
        own = (sys.version, np.__version__, codegen.magic_tuple())
        if codegen.magic_tuple()[1:] == (portable_processor(), ""):
            targets: list[Any] = [portable]
        else:
            targets = [own, portable] if _can_run_portable() else [own]
        for target in targets:
            parts = (numba.__version__, target, function.__qualname__, sig, self._linked)
            name = hashlib.sha256(repr(parts).encode())
            name.update(sources_hash(function.__module__))
            names.append(f"{function.__module__}.{function.__qualname__}-{name.hexdigest()[:40]}.nbc")
        return names


@cache
def _can_run_portable() -> bool:
    """Return whether this processor runs what is compiled for :func:`portable_processor`."""
    numbas: Any = numba_codegen
    features = numbas.ll.get_host_cpu_features()
    return portable_processor() == "generic" or all(features.get(name) for name in AVX2_FEATURES)
