"""Results on disk: which may be replaced, and how they were made."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from uncertain_cep.errors import OptionError
from uncertain_cep.files.atomic_output import written_aside

__all__ = ["ABOUT_FILE", "check_replaceable", "describe_result", "result_written_aside"]

ABOUT_FILE: Final = "_about.json"
"""File in every result directory that says how it was made; readers of Parquet skip such a name."""


def describe_result(directory: Path, facts: Mapping[str, object]) -> None:
    """Write how a result was made into its directory, which also marks it as ours to overwrite."""
    (directory / ABOUT_FILE).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def result_written_aside(out: Path, *, overwrite: bool) -> AbstractContextManager[Path]:
    """Return `written_aside` for a result, with a check of the place.

    An OptionError says that `out` is there and `overwrite` was not asked for, or that it is a directory that
    no command of ours has written.
    """

    def check(place: Path) -> bool:
        check_replaceable(place, overwrite)
        return overwrite

    return written_aside(out, check)


def check_replaceable(out: Path, overwrite: bool) -> None:
    """Refuse a place where there is what is not to be overwritten, or what no command of ours has written."""
    if not os.path.lexists(out):
        return
    if not overwrite:
        raise OptionError(f"{out} is there already: name another place, or add --overwrite to replace it")
    if out.is_dir() and any(out.iterdir()) and not (out / ABOUT_FILE).is_file():
        raise OptionError(
            f"{out} is a directory that this program has not written (it has no {ABOUT_FILE}), so it is "
            "not overwritten: name another place"
        )
