"""Files that hold the text of a query."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from uncertain_cep.files.special_files import special_kind

__all__ = ["QUERY_ENDINGS", "SQL_ENDING", "UnreadableError", "text_in"]

SQL_ENDING: Final = ".sql"
"""Of the names of query files that hold a MATCH_RECOGNIZE."""

QUERY_ENDINGS: Final = (".sase", ".query", SQL_ENDING)
"""Of the names of query files, where they might be something else."""


class UnreadableError(Exception):
    """A query file cannot be read; the text says why, behind the name of the file."""


def text_in(file: str | Path, *, pipes: bool = False) -> str:
    """Return the text in a query file, which may be a named pipe if ``pipes`` says so.

    Raises
    ------
    UnreadableError
        If the file cannot be read as UTF-8 text.
    """
    kind = special_kind(file)
    if kind is not None and not (pipes and kind == "a named pipe"):
        raise UnreadableError(f"is {kind}: write the query to a file")
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not UTF-8 text: {error.reason}") from None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
