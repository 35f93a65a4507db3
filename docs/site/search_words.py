"""What people type into the search of the site, and the page that answers it.

Sphinx ranks a page by its entries of the index before it counts words, so these become entries.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import click

__all__ = ["TYPED", "entries", "of_messages", "of_options"]

TYPED: Final[Mapping[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("search.toml").read_text(encoding="utf-8")
)
"""Words by page."""


def entries(words: Iterable[str]) -> str:
    """Return words as entries of the index, which stand where the directive does."""
    lines = "\n".join(f"   ! single: {word}" for word in words)
    return f"```{{eval-rst}}\n.. index::\n{lines}\n```\n" if lines else ""


def of_options(command: click.Command) -> list[str]:
    """Return the options of a command, as one types them."""
    return [
        max(parameter.opts, key=len)
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
    ]


def of_messages(messages: Iterable[str]) -> list[str]:
    """Return what one may copy out of messages: their parts between what is known only when they are said."""
    parts = {part.strip(" '\"`.,") for text in messages for part in re.split(r"…|[:;,] ", text)}
    return sorted(
        re.sub(r"[;!]", " ", part) for part in parts if len(part.split()) > 1 and part.isprintable()
    )
