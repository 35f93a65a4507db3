"""The folder that keeps compiled kernels, and what they are named by.

Numba stamps a cached kernel with the file that it stands in. A kernel holds the code of its callees as well.
After an edit of a callee, or an upgrade, a warm cache would go on with the old code. Here an entry is named
by a hash over everything that its code depends on. So a stale entry is never found:

- the sources of the kernel's module and of all kernel modules that it imports, directly or not, and of the
  modules that have Numba compile it;
- the versions of Python, Numba and NumPy, the processor and the types of the arguments.

Names do not depend on paths or times of files: checkouts, environments and processes share one folder.
Each entry is one file, written aside and moved into place. Processes that compile the same kernel at once
both write the same entry.

Entries are pickles: to read one is to run what its writer wants. So nothing is read from a folder that other
users can write to, but for the members of a group that may.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import stat
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Not on Windows.
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "PACKAGES",
    "WITHOUT",
    "cache_folder",
    "compiler_lock",
    "is_marked",
    "keep_nothing",
    "kept_by_group",
    "mark",
    "name_of_mark",
    "portable_processor",
    "read_entry",
    "say_needed",
    "shipped_folder",
    "sources",
    "sources_hash",
    "when_compiling",
    "why_not_kept",
    "write_entry",
]

PACKAGES: Final = ("confidence", "eventbased", "pointbased")
"""The packages whose modules hold kernels."""

UNUSED_SECONDS: Final = 30 * 24 * 3600
"""An entry that was not used for so long is removed."""

SHIPPED: Final = "uncertain_cep_kernels"
"""The package that holds compiled kernels."""

COMPILERS: Final = ("confidence.compiled", "confidence.linked", "confidence.stored")
"""Decide what becomes of every kernel."""

WITHOUT: Final = "UNCERTAIN_CEP_NUMBA_WITHOUT"
"""Variable of the environment with parts of ``confidence.compiled.PRIVATE`` that are not to be used."""

NO_CODE: Final = frozenset({"confidence.kernel", "confidence.kernel_cache"})
"""Decide when kernels are compiled, and where they are kept, which the code does not depend on."""

_IMPORT: Final = re.compile(rf"^\s*(?:from|import)\s+((?:{'|'.join(PACKAGES)})\b[\w.]*)", re.MULTILINE)
_DIGEST: Final = hashlib.sha256().digest_size


def portable_processor() -> str:
    """Return the processor, in LLVM's words, that kernels for all machines like this are compiled for."""
    return "x86-64-v3" if platform.machine().lower() in ("x86_64", "amd64") else "generic"


@cache
def shipped_folder() -> Path | None:
    """Return the folder of compiled kernels that is installed as a distribution of its own, if it is."""
    spec = find_spec(SHIPPED)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "compiled"


def cache_folder() -> Path | None:
    """Return the folder that holds the compiled kernels, which need not exist; None if there can be none."""
    folder = _named_folder()
    return None if folder is None or _refusal(folder) is not None else folder


def _named_folder() -> Path | None:
    """Return the folder that the environment names, whoever it belongs to; None without a home."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given) / "uncertain-cep"
    try:
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "uncertain-cep" / "kernels"
        given = os.environ.get("XDG_CACHE_HOME")
        return Path(given or Path.home() / ".cache") / "uncertain-cep" / "kernels"
    except RuntimeError:
        return None


def _refusal(folder: Path) -> str | None:
    """Return why what a folder holds may be anybody's; None if it is the user's own, or not there."""
    if sys.platform == "win32":
        return None
    try:
        found = folder.stat()
    except OSError:
        return None
    # Whatever belongs to root could have been put anywhere.
    if found.st_uid not in (os.geteuid(), 0):
        return f"{folder} belongs to another user, whose code would be run"
    if found.st_mode & stat.S_IWOTH:
        return f"all users may write to {folder}, whose code would be run: remove it"
    return None


def kept_by_group() -> Path | None:
    """Return the folder if members of a group may write to it, so that each could run code as this user."""
    folder = cache_folder()
    with suppress(OSError):
        if sys.platform != "win32" and folder is not None and folder.stat().st_mode & stat.S_IWGRP:
            return folder
    return None


def why_not_kept() -> str | None:
    """Return None if compiled kernels can be kept, else why not."""
    folder = _named_folder()
    if folder is None:
        return "there is no home directory"
    if (refusal := _refusal(folder)) is not None:
        return refusal
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
        Name and source of that module and of all kernel modules that it imports, directly or not, and of
        ``COMPILERS``. A kernel can call no kernel of any other module. What is imported from a package stands
        in its ``__init__``, whose imports count in turn.
    """
    found: dict[str, bytes] = {}
    left = [module, *COMPILERS]
    while left:
        name = left.pop()
        if name not in found and name not in NO_CODE:
            found[name], more = _imports(name)
            left.extend(more)
    return found


@cache
def sources_hash(module: str) -> bytes:
    """Return a hash of :func:`sources`."""
    total = hashlib.sha256()
    for name, source in sorted(sources(module).items()):
        total.update(f"{name} {len(source)}\n".encode())
        total.update(source)
    return total.digest()


_told: Final[list[Callable[[str, bool], None]]] = []


def when_compiling(tell: Callable[[str, bool], None]) -> None:
    """Have a function called for each kernel that is needed from now on.

    It gets the kernel's full name, and whether it was found here; else Numba compiles it next.
    """
    if tell not in _told:
        _told.append(tell)


def say_needed(name: str, found: bool) -> None:
    """Tell who asked for it that a kernel is needed."""
    for tell in _told:
        tell(name, found)


@contextmanager
def compiler_lock() -> Iterator[int | None]:
    """Yield a file descriptor that is locked while it, or a copy of it in another process, is open.

    None if another process holds one, or if there is no folder for compiled kernels.
    """
    folder = cache_folder()
    if folder is None or fcntl is None:
        yield None
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "compiling.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield None
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield None
        else:
            yield lock
    finally:
        os.close(lock)


@cache
def _all_sources_hash() -> str:
    """Return a hash of the sources of all kernels."""
    parts = (sys.version_info[:2], os.environ.get(WITHOUT, ""))
    total = hashlib.sha256(repr(parts).encode())
    for package in (*PACKAGES, "numba"):
        spec = find_spec(package)
        root = Path(spec.origin).parent if spec is not None and spec.origin else Path()
        # A release of Numba has a file that names it.
        files = [root / "_version.py"] if package == "numba" else sorted(root.rglob("*.py"))
        for file in files:
            source = file.read_bytes() if file.is_file() else b""
            # What writes a kernel module is a program, and not installed.
            if b'\nif __name__ == "__main__":' in source:
                continue
            total.update(f"{package} {file.relative_to(root).as_posix()} {len(source)}\n".encode())
            total.update(source)
    return total.hexdigest()[:40]


def name_of_mark(group: str) -> str:
    """Return the name of the file that notes that all kernels of a group are kept."""
    return f"{group.replace(' ', '_')}-{_all_sources_hash()}.whole"


def is_marked(group: str) -> bool:
    """Return whether all kernels of a group have been kept, for the sources as they are now."""
    return any((folder / name_of_mark(group)).exists() for folder in _folders())


_keeps: Final[list[bool]] = [True]


def keep_nothing() -> None:
    """Mark no group as kept from now on, as this process keeps no compiled code."""
    _keeps[:] = [False]


def mark(group: str) -> None:
    """Note that all kernels of a group are kept."""
    folder = cache_folder() if all(_keeps) else None
    if folder is not None:
        with suppress(OSError):
            _write(folder / name_of_mark(group), b"")


def read_entry(name: str) -> bytes | None:
    """Return the data of an entry, None if there is none or it is damaged."""
    for folder in _folders():
        with suppress(OSError):
            data = (folder / name).read_bytes()
            if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
                if folder == cache_folder():
                    _touch(folder / name)
                return data[_DIGEST:]
    return None


def _folders() -> list[Path]:
    return [folder for folder in (cache_folder(), shipped_folder()) if folder is not None]


def write_entry(name: str, data: bytes) -> None:
    """Keep an entry; do nothing where that is not possible."""
    folder = cache_folder()
    if folder is None:
        return
    try:
        _write(folder / name, hashlib.sha256(data).digest() + data)
        _remove_unused(folder)
    except OSError:
        return


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
    unused = [path for path in folder.iterdir() if path.stat().st_mtime < oldest]
    for path in (*unused, *(folder.glob("*.whole") if unused else ())):
        path.unlink(missing_ok=True)
