"""The decorator of every kernel, and the cache on disk that keeps what it compiled.

Numba stamps a cached kernel with the file that it stands in. A kernel holds the code of its callees as well.
After an edit of a callee, or an upgrade, a warm cache would go on with the old code. Here an entry is named
by a hash over everything that its code depends on. So a stale entry is never found:

- the sources of the kernel's module and of all kernel modules that it imports, directly or not;
- the versions of Python, Numba and NumPy, the processor and the types of the arguments.

Names do not depend on paths or times of files: checkouts, environments and processes share one folder.
Each entry is one file, written aside and moved into place. Processes that compile the same kernel at once
both write the same entry.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
import time
import uuid
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numba
import numpy as np
from numba.core import compiler, types
from numba.core.registry import CPUDispatcher
from numba.core.serialize import dumps

from confidence.linked import LinkedDispatcher, kernel_flags, rebuilt, set_environments

__all__ = ["PACKAGES", "cache_folder", "kernel", "sources", "why_not_kept"]

PACKAGES: Final = ("confidence", "eventbased", "pointbased")
"""The packages whose modules hold kernels."""

UNUSED_SECONDS: Final = 30 * 24 * 3600
"""An entry that was not used for so long is removed."""

_IMPORT: Final = re.compile(rf"^\s*(?:from|import)\s+((?:{'|'.join(PACKAGES)})\b[\w.]*)", re.MULTILINE)
_DIGEST: Final = hashlib.sha256().digest_size


def kernel(function: Any = None, *, inline: bool = False, allocates: bool = False) -> Any:
    """Compile a function with Numba at its first call with arguments of these types; keep it on disk.

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

    Returns
    -------
    callable
        The compiled function, or the function itself under ``NUMBA_DISABLE_JIT``.
    """
    if function is None:
        return lambda given: kernel(given, inline=inline, allocates=allocates)
    settings: Any = numba.config
    return function if settings.DISABLE_JIT else _Kernel(function, targetoptions=_options(inline, allocates))


def _options(inline: bool, allocates: bool) -> dict[str, Any]:
    # What is not given is taken over from the caller that happens to compile the function first.
    return {
        "nopython": True,
        "boundscheck": None,
        "nogil": True,
        "error_model": "numpy",
        "fastmath": False,
        "forceinline": inline,
        "no_cfunc_wrapper": True,
        "_nrt": allocates,
    }


class _Kernel(CPUDispatcher):
    """A function to compile: for calls by Python, and otherwise for calls by other kernels.

    A call with a constant makes no variant of a kernel for that constant.
    """

    _compiler: Any

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(py_func, locals, targetoptions)
        # Read now: by the time of the first call a file may have been edited.
        _sources_hash(py_func.__module__)
        self._compiler._customize_flags = kernel_flags
        self._cache = _KernelCache(py_func, linked=False)
        self._linked = LinkedDispatcher(py_func, targetoptions)
        self._linked._cache = _KernelCache(py_func, linked=True)

    def add_overload(self, cres: Any) -> None:
        """Let Python find the code."""
        super().add_overload(cres)
        set_environments(cres)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile the kernel for a call by another one, whose arguments have these types."""
        _, folded = self._compiler.fold_argument_types(args, kws)
        given = tuple(types.unliteral(argument) for argument in folded)
        home: Any = super() if given in self.overloads else self._linked
        return home.get_call_template(given, {})

    def get_overload(self, sig: Any) -> Any:
        """Return the key of the code for a call by another kernel."""
        given = tuple(sig)
        home: Any = self._linked if given in self._linked.overloads else super()
        return home.get_overload(sig)


def cache_folder() -> Path | None:
    """Return the folder that holds the compiled kernels, which need not exist; None without a home."""
    settings: Any = numba.config
    if settings.CACHE_DIR:
        return Path(settings.CACHE_DIR) / "uncertain-cep"
    try:
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "uncertain-cep" / "kernels"
        given = os.environ.get("XDG_CACHE_HOME")
        return Path(given or Path.home() / ".cache") / "uncertain-cep" / "kernels"
    except RuntimeError:
        return None


def why_not_kept() -> str | None:
    """Return None if compiled kernels can be kept, else why not."""
    folder = cache_folder()
    if folder is None:
        return "there is no home directory"
    try:
        _write(folder / f"probe.{uuid.uuid4().hex}", b"", keep=False)
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror})"
    return None


def _write(path: Path, data: bytes, keep: bool = True) -> None:
    """Write a file aside and move it into place; without ``keep`` only try it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:16]}")
    try:
        aside.write_bytes(data)
        if keep:
            aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


@cache
def _imports(module: str) -> tuple[bytes, frozenset[str]]:
    """Return the source of a kernel module and the kernel modules that it names in its imports."""
    spec = find_spec(module)
    if spec is None or spec.loader is None or spec.origin is None:
        return b"", frozenset()
    source: bytes = spec.loader.get_data(spec.origin)  # type: ignore[attr-defined]
    return source, frozenset(_IMPORT.findall(source.decode()))


def sources(module: str) -> dict[str, bytes]:
    """Return the sources that the kernels of a module are compiled from.

    Parameters
    ----------
    module : str
        Full name of a kernel module.

    Returns
    -------
    dict of str to bytes
        Name and source of that module and of all kernel modules that it imports, directly or not. A kernel
        can call no kernel of any other module. What is imported from a package stands in its ``__init__``,
        whose imports count in turn.
    """
    found: dict[str, bytes] = {}
    left = [module]
    while left:
        name = left.pop()
        if name not in found:
            found[name], more = _imports(name)
            left.extend(more)
    return found


@cache
def _sources_hash(module: str) -> bytes:
    total = hashlib.sha256()
    for name, source in sorted(sources(module).items()):
        total.update(f"{name} {len(source)}\n".encode())
        total.update(source)
    return total.digest()


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
        path = self._path(sig, target_context.codegen())
        if path is None:
            return None
        try:
            data = path.read_bytes()
        except OSError:
            return None
        if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
            return None
        stored, compiled = pickle.loads(data[_DIGEST:])
        if stored != sig:
            return None
        _touch(path)
        if self._linked:
            return rebuilt(target_context, compiled)
        return compiler.CompileResult._rebuild(target_context, *compiled)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code; do nothing where that is not possible."""
        if any(not lifted.can_cache for lifted in data.lifted) or data.library.has_dynamic_globals:
            return
        path = self._path(sig, data.codegen)
        if path is None:
            return
        entry = dumps((sig, data._reduce()))
        try:
            _write(path, hashlib.sha256(entry).digest() + entry)
            _remove_unused(path.parent)
        except OSError:
            return

    def _path(self, sig: Any, codegen: Any) -> Path | None:
        folder = cache_folder() if self._enabled else None
        # The address of an object means another one in the next process.
        if folder is None or " at 0x" in repr(sig):
            return None
        function = self._function
        parts = (
            sys.version, numba.__version__, np.__version__, codegen.magic_tuple(), function.__qualname__, sig,
            self._linked,
        )  # fmt: skip
        name = hashlib.sha256(repr(parts).encode())
        name.update(_sources_hash(function.__module__))
        return folder / f"{function.__module__}.{function.__qualname__}-{name.hexdigest()[:40]}.nbc"


def _touch(path: Path) -> None:
    """Say that an entry is in use, at most once a day."""
    try:
        if time.time() - path.stat().st_mtime > 24 * 3600:
            os.utime(path)
    except OSError:
        return


@cache
def _remove_unused(folder: Path) -> None:
    """Remove the entries that were not used for long, once in a process that compiles."""
    oldest = time.time() - UNUSED_SECONDS
    for path in folder.glob("*.nbc"):
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)
