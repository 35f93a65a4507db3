"""Results on disk: written aside, then moved, so that a half-written result is never seen."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from uncertain_cep.errors import OptionError

__all__ = ["ABOUT_FILE", "describe_result", "written_aside"]

ABOUT_FILE: Final = "_about.json"
"""File in every result directory that says how it was made; readers of Parquet skip such a name."""


def describe_result(directory: Path, facts: Mapping[str, object]) -> None:
    """Write how a result was made into its directory, which also marks it as ours to overwrite."""
    (directory / ABOUT_FILE).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


@contextmanager
def written_aside(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a new path beside `out`, a file or a directory, to write to; move it to `out` if all went well.

    The parent is made if need be. An OptionError says that `out` is there and `overwrite` was not asked for,
    or that it is a directory that no command of ours has written.
    """
    # "." has no name of its own to put a neighbour beside, and a symbolic link is to stay one.
    out = Path(os.path.abspath(out))
    _check_replaceable(out, overwrite)
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.parent / f".{out.name}.{uuid4().hex[:12]}.partial"
    try:
        yield aside
        # Looked at again: the result may have taken hours.
        _check_replaceable(out, overwrite)
        former = None
        if out.exists():
            former = aside.with_suffix(".former")
            out.replace(former)
        aside.replace(out)
        if former is not None:
            _remove(former)
    finally:
        _remove(aside)


def _check_replaceable(out: Path, overwrite: bool) -> None:
    if not os.path.lexists(out):
        return
    if not overwrite:
        raise OptionError(f"{out} is there already: name another place, or add --overwrite to replace it")
    if out.is_dir() and any(out.iterdir()) and not (out / ABOUT_FILE).is_file():
        raise OptionError(
            f"{out} is a directory that this program has not written (it has no {ABOUT_FILE}), so it is "
            "not overwritten: name another place"
        )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
