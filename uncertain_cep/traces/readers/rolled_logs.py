"""Event logs of Spark in several files, some of which the history server may have compacted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from uncertain_cep.traces.unpacking import COMPACTED

__all__ = ["app_of", "rolled_files", "superseded"]

_NAME: Final = re.compile(r"events_([0-9]+)_([^.]+)")


def app_of(path: Path) -> str | None:
    """Return the application that a file of a rolled log is named after; None for other files."""
    match = _NAME.match(path.name)
    return None if match is None else match[2]


def _order(path: Path) -> tuple[int, bool]:
    match = _NAME.match(path.name)
    return (0 if match is None else int(match[1])), path.suffix == COMPACTED


def rolled_files(path: Path) -> list[Path]:
    """Return the files of a rolled log in their order, from the last compacted one up to ``path``.

    There are none if ``path`` is no file of a rolled log.
    """
    app = app_of(path)
    if app is None:
        return []
    rolled = {other for other in path.parent.iterdir() if app_of(other) == app}
    files = sorted({*rolled, path}, key=_order)
    begins = [n for n, file in enumerate(files) if file.suffix == COMPACTED and _order(file) <= _order(path)]
    return files[begins[-1] if begins else 0 :]


def superseded(paths: Iterable[Path]) -> set[Path]:
    """Return the files for which a compacted one among them stands."""
    compacted: dict[tuple[Path, str | None], Path] = {}
    rolled = sorted((path for path in paths if app_of(path)), key=_order)
    for path in rolled:
        if path.suffix == COMPACTED:
            compacted[path.parent, app_of(path)] = path
    return {
        path for path in rolled if _order(path) < _order(compacted.get((path.parent, app_of(path)), path))
    }
