"""Whether a result may go where it is asked to: not over what it is made of."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from uncertain_cep.errors import OptionError

__all__ = ["check_output_place", "local_path"]

_Identity = tuple[int, int]
_READ_AGAIN: Final = "the result would be read with the events the next time"


def local_path(place: str | Path) -> Path | None:
    """Return the absolute path of a file or folder, or None for one of another file system."""
    if isinstance(place, Path):
        return place.absolute()
    parts = urlsplit(place)
    # A Windows path has a drive, which looks like a scheme of one letter but for the slashes behind it.
    if not parts.scheme or (len(parts.scheme) == 1 and "://" not in place):
        return Path(place).absolute()
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def check_output_place(out: str | Path, inputs: Iterable[tuple[str, str | Path]]) -> None:
    """Refuse a place at which a result would replace what it is made of, or be read with it the next time.

    Parameters
    ----------
    out : str or pathlib.Path
        A file or folder, there or not, or the URI of one.
    inputs : iterable of (str, str or pathlib.Path)
        Files, folders and URIs, each behind the words that say what it is, such as ``"the query file"``;
        those that are not there are passed over.

    Raises
    ------
    OptionError
        If the place is an input, holds one, or lies in an input folder. Links and relative paths are
        followed, and what the file system calls one file is one, whatever its names.
    """
    target = local_path(out)
    for what, given in inputs:
        source = local_path(given)
        if target is None or source is None:
            _check_uris(str(out), what, str(given))
            continue
        _check_paths(out, target, what, given, source)


def _check_paths(out: str | Path, target: Path, what: str, given: str | Path, source: Path) -> None:
    wanted, found = _identity(target), _identity(source)
    if found is None:
        return
    if wanted == found:
        raise _refused(f"{out} is {what} {given}")
    if wanted is not None and wanted in _above(source):
        raise _refused(f"{out} holds {what} {given}")
    if not source.is_dir():
        return
    if found in _above(target):
        raise _refused(f"{out} lies in {what} {given}", _READ_AGAIN)
    if wanted is None:
        return
    for path in source.rglob("*"):
        # A link in the folder may lead to the place, and a file may have two names.
        if _identity(path) == wanted or (path.is_symlink() and wanted in _above(path)):
            raise _refused(f"{out} is or holds {path}, in {what} {given}")


def _check_uris(out: str, what: str, given: str) -> None:
    target, source = (f"{place.rstrip('/')}/" for place in (out, given))
    if source.startswith(target):
        relation = "is" if source == target else "holds"
        raise _refused(f"{out} {relation} {what} {given}")
    if target.startswith(source):
        raise _refused(f"{out} lies in {what} {given}", _READ_AGAIN)


def _refused(relation: str, why: str = "the result would take its place") -> OptionError:
    return OptionError(f"{relation}, and {why}: name another place")


def _identity(path: Path) -> _Identity | None:
    """Return the identity of a file in the file system, links followed, or None if there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _above(path: Path) -> set[_Identity]:
    """Return the folders above a path: those it is named by, and those it lies in once links are followed."""
    return {found for place in _folders(path) if (found := _identity(place)) is not None}


def _folders(path: Path) -> Iterator[Path]:
    yield from Path(os.path.abspath(path)).parents
    yield from Path(os.path.realpath(path)).parents
