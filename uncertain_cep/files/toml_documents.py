"""TOML files that people write: read whole, or refused with the reason."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.files.special_files import special_kind

__all__ = ["no_such_key", "toml_document"]

LONGEST: Final = 1 << 20
"""Characters of a file."""

MOST_KEY_PARTS: Final = 100
"""Most parts of a key such as ``a.b.c``: the time that reading one takes grows with their square."""

_SAID: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|' r"'''.*?'''" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'|#[^\n]*", re.DOTALL
)
"""A text, or a comment."""

_APART: Final = re.compile(r"[,=\[\]{}]")
"""Between keys and values."""


def toml_document(file: str, what: str) -> dict[str, Any]:
    """Return the document that a TOML file holds; ``what`` names its kind, such as ``schema``.

    A TraceError says why it cannot be read.
    """

    def refused(message: str) -> TraceError:
        return TraceError(TraceFault(message, file=file))

    if (kind := special_kind(Path(file))) is not None:
        raise refused(f"the {what} file is {kind}: write the {what} to a file")
    try:
        text = Path(file).read_text(encoding="utf-8")
        _check_keys(text, file, what)
        return tomllib.loads(text)
    except FileNotFoundError:
        raise refused(f"there is no such {what} file: check the path") from None
    except OSError as error:
        raise refused(f"the {what} file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise refused(f"a {what} file must be UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise refused(f"the {what} is no TOML: {error}") from None
    except (RecursionError, ValueError):
        # Brackets nested thousands deep, or a number of thousands of digits.
        raise refused(
            f"the {what} holds nesting or a number that is too long to be read: it needs neither"
        ) from None


def _check_keys(text: str, file: str, what: str) -> None:
    """Refuse a text that is too long, or has a key of so many parts that reading it would take minutes."""
    if len(text) > LONGEST:
        message = f"the {what} has {len(text):,} characters, and up to {LONGEST:,} are read"
        raise TraceError(TraceFault(message, file=file))
    # Without texts and comments, the dots that nothing else stands between are those of one key.
    for number, line in enumerate(_SAID.sub(_line_ends, text).splitlines(), 1):
        if any(part.count(".") >= MOST_KEY_PARTS for part in _APART.split(line)):
            message = f"line {number} has a key of more than {MOST_KEY_PARTS} parts: a {what} needs none"
            raise TraceError(TraceFault(message, file=file))


def _line_ends(said: re.Match[str]) -> str:
    return "\n" * said[0].count("\n")


def no_such_key(key: str, allowed: Collection[str]) -> str:
    """Return the words for a key that does not exist: the one that is like it, or all that exist."""
    near = difflib.get_close_matches(key, allowed, 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(allowed)}"
    return f"there is no such key: {hint}"
