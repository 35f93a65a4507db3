"""Results written aside and moved into place, so that half of one is never seen, whatever ends the program.

A result is made in a folder beside its place, ``.NAME.*.partial``, which this process holds a lock on. The
system releases the lock when the process ends, however that happens. So the next one that writes there can
tell what was left behind from what another process is still at. Where folders cannot be locked, as on some
network file systems and on Windows, nothing is taken for left behind.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from uncertain_cep.errors import OptionError
from uncertain_cep.files.special_files import check_written_here, special_kind

if sys.platform != "win32":
    import fcntl

__all__ = ["locked", "written_aside"]

_FORMER: Final = "former"
_UNLINKABLE: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_OVERTAKEN: Final = (errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR, errno.ENOENT)
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TRIES: Final = 100


@contextmanager
def written_aside(out: Path, check: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield a new path to write a file or a folder to; it takes the place of ``out`` if all went well.

    Parameters
    ----------
    out : pathlib.Path
        Its parent is made if need be.
    check : callable
        Is given ``out``, raises an error of ours if something there is to stay, and returns whether it may
        be replaced. It is asked before and after the work, which may take hours.

    Raises
    ------
    OptionError
        If it is a URL, or there is something that is neither a file nor a folder.

    Notes
    -----
    Of several processes that write to one place, the first one to end wins if it is not to be replaced, else
    the last one. What is there is whole at any time, but for the moment between two renames in which one
    folder takes the place of another.
    """
    check_written_here(out)
    # "." has no name of its own to put a neighbour beside, and a symbolic link is to stay one.
    check_written_here(out)
    out = Path(os.path.abspath(out))
    _check_kind(out)
    _remove_left_behind(out)
    check(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    aside, lock = _new_folder(out)
    try:
        made = aside / out.name
        yield made
        _move(made, out, check)
    except OSError as error:
        if error.errno in _FULL and error.filename is None:
            error.filename = str(out)
        raise
    finally:
        _remove(aside, out)
        if lock is not None:
            os.close(lock)


def _check_kind(out: Path) -> None:
    kind = special_kind(out)
    # /dev/stdout is a link to what may be a file.
    named = [os.path.realpath(out.parent), os.readlink(out) if out.is_symlink() else ""]
    if any(name.startswith(("/proc/", "/dev/fd")) for name in named):
        kind = "an open stream"
    if kind is not None:
        raise OptionError(f"{out} is {kind}, which nothing can replace: name another place")


def _move(made: Path, out: Path, check: Callable[[Path], bool]) -> None:
    for _ in range(_TRIES):
        replaceable = check(out)
        try:
            if not made.is_dir() and not out.is_dir():
                _move_file(made, out, replaceable)
                return
            if replaceable and os.path.lexists(out):
                out.replace(made.parent / _FORMER)
            made.rename(out)
            return
        except OSError as error:
            if error.errno not in _OVERTAKEN or not os.path.lexists(made):
                raise
            # Another process was faster.
            _remove(made.parent / _FORMER)
    raise OptionError(f"{out} is written by other processes all the time: name another place")


def _move_file(made: Path, out: Path, replaceable: bool) -> None:
    if not replaceable:
        try:
            # Unlike a rename this fails if there is something by now.
            os.link(made, out)
            return
        except OSError as error:
            if error.errno not in _UNLINKABLE:
                raise
    made.replace(out)


def _new_folder(out: Path) -> tuple[Path, int | None]:
    """Make a folder of this process beside ``out``; return the descriptor that holds its lock, if any."""
    for _ in range(_TRIES):
        aside = out.parent / f".{out.name}.{uuid4().hex[:12]}.partial"
        aside.mkdir()
        # Before it is locked, another process may take it for left behind and hold the lock, or remove it.
        try:
            lock = locked(aside)
        except BlockingIOError:
            continue
        if aside.is_dir():
            return aside, lock
        if lock is not None:
            os.close(lock)
    raise OptionError(f"other processes remove folders beside {out} all the time: name another place")


def locked(folder: Path) -> int | None:
    """Return a descriptor that holds the lock of a folder, or None if folders cannot be locked.

    Raises
    ------
    BlockingIOError
        If another process holds it.
    """
    if sys.platform == "win32":
        return None
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return lock


def _remove_left_behind(out: Path) -> None:
    """Remove what processes that are no more have left beside ``out``."""
    named = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{12}}\.partial")
    with suppress(OSError):
        for path in out.parent.iterdir():
            if not named.fullmatch(path.name):
                continue
            with suppress(BlockingIOError):
                if (lock := locked(path)) is not None:
                    _remove(path, out)
                    os.close(lock)


def _remove(aside: Path, out: Path | None = None) -> None:
    """Remove a file or folder; a former result in it goes back to a place that is empty."""
    former = aside / _FORMER
    if out is not None and former.exists() and not os.path.lexists(out):
        with suppress(OSError):
            former.rename(out)
    if aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.unlink(missing_ok=True)
