"""The files of a folder, and links that lead back into it."""

from __future__ import annotations

import os
from pathlib import Path

from uncertain_cep.files.special_files import special_kind

__all__ = ["files_of_folder", "link_in_circle", "linked_folders"]


def files_of_folder(folder: Path) -> list[Path]:
    """Return the files of a folder and of the folders in it, in the order of their names.

    Files and folders whose names start with ``_`` or ``.`` are passed over, as Spark does. So are folders
    that are links: they may lead back into the folder. So is what is no file, such as a pipe.
    """
    return [path for path in _inside(folder) if os.path.isfile(path) and special_kind(path) is None]


def linked_folders(folder: Path) -> list[Path]:
    """Return the links to folders in a folder, which `files_of_folder` does not follow."""
    return [path for path in _inside(folder) if os.path.islink(path) and os.path.isdir(path)]


def _inside(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if not any(part[0] in "_." for part in path.relative_to(folder).parts)
    )


def link_in_circle(folder: Path) -> Path | None:
    """Return a link to a folder that it is in, which leads whoever follows links in circles, if there is one.

    Names that start with ``_`` or ``.`` are passed over, and what cannot be read.
    """
    done: set[str] = set()

    def search(place: Path, above: frozenset[str]) -> Path | None:
        real = os.path.realpath(place)
        if real in above:
            return place
        if real in done:
            return None
        try:
            inside = sorted(
                entry.path for entry in os.scandir(place) if entry.name[0] not in "_." and entry.is_dir()
            )
        except OSError:
            inside = []
        circles = (search(Path(path), above | {real}) for path in inside)
        circle = next((path for path in circles if path is not None), None)
        done.add(real)
        return circle

    return search(folder, frozenset())
