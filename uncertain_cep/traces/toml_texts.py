"""Texts as TOML writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

__all__ = ["key", "listed", "literal", "quoted"]


def quoted(text: str) -> str:
    """Return a text in double quotes."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def literal(text: str) -> str:
    """Return a text with its backslashes as they are, where TOML can write it so."""
    return f"'{text}'" if "'" not in text and text.isprintable() else quoted(text)


def listed(texts: Sequence[str]) -> str:
    """Return a list of texts."""
    return f"[{', '.join(map(quoted, texts))}]"


def key(name: str) -> str:
    """Return a name as a key."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)
