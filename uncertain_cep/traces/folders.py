"""The files of a folder, and links that lead back into it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from confidence.budget import checkpoint
from uncertain_cep.files.special_files import special_kind

__all__ = ["FolderContents", "contents_of_folder", "files_of_folder", "link_in_circle"]


class FolderContents(NamedTuple):
    """The files of a folder and of the folders in it, and the links to folders, in the order of names."""

    files: list[Path]
    links: list[Path]


def contents_of_folder(folder: Path) -> FolderContents:
    """Return the files of a folder and of the folders in it, and the links to folders among them.

    Files and folders whose names start with ``_`` or ``.`` are passed over, as Spark does. Links to folders
    are not followed: they may lead back into the folder. What is no file, such as a pipe, and a folder that
    cannot be read are passed over, too. Each folder is listed once, and limits are looked at before.
    """
    contents = FolderContents([], [])
    waiting = _from_last_name(os.fspath(folder))
    # Folders can be nested deeper than Python calls.
    while waiting:
        entry = waiting.pop()
        if entry.is_dir(follow_symlinks=False):
            waiting += _from_last_name(entry.path)
        elif os.path.isdir(entry.path):
            contents.links.append(Path(entry.path))
        elif os.path.isfile(entry.path) and special_kind(entry.path) is None:
            contents.files.append(Path(entry.path))
    return contents


def files_of_folder(folder: Path) -> list[Path]:
    """Return the files of a folder, see :func:`contents_of_folder`."""
    return contents_of_folder(folder).files


def _from_last_name(folder: str) -> list[os.DirEntry[str]]:
    """List the entries of a folder, the last name first; none if it cannot be read."""
    checkpoint()
    try:
        with os.scandir(folder) as entries:
            inside = [entry for entry in entries if entry.name[0] not in "_."]
    except OSError:
        return []
    return sorted(inside, key=lambda entry: entry.name, reverse=True)


def link_in_circle(folder: Path) -> Path | None:
    """Return a link to a folder that it is in, which leads whoever follows links in circles, if there is one.

    Names that start with ``_`` or ``.`` are passed over, and what cannot be read. Each folder is listed once,
    whatever the number of links to it, and limits are looked at before.
    """
    done, above = set[tuple[int, int]](), set[tuple[int, int]]()
    # A folder that is still to be looked at; or its number, once all that is in it has been.
    waiting: list[str | tuple[int, int]] = [os.fspath(folder)]
    # Folders can be nested deeper than Python calls.
    while waiting:
        place = waiting.pop()
        if isinstance(place, tuple):
            above.remove(place)
            done.add(place)
            continue
        number = _number(place)
        if number in above:
            return Path(place)
        if number is not None and number not in done:
            above.add(number)
            waiting.append(number)
            waiting += [entry.path for entry in _from_last_name(place) if entry.is_dir()]
    return None


def _number(folder: str) -> tuple[int, int] | None:
    """Return device and number of a folder, the same by all links to it; None if it is gone."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino
