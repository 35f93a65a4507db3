"""The facts of a report as one page that needs nothing else."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html import escape
from importlib.resources import files
from typing import Any

from uncertain_cep.wording import counted

__all__ = ["page_of"]

_STATIC = ("title", "words", "query", "plan", "version", "assumed", "warnings")
"""Facts that are written into the page; the others are handed to its script."""


def page_of(facts: dict[str, Any]) -> str:
    """Return a page with its styles, its script and its data; values of the trace are data throughout.

    What the script gets is compressed and in base64, so that nothing in it can end an element.
    """
    handed = {name: value for name, value in facts.items() if name not in _STATIC}
    packed = zlib.compress(json.dumps(handed, separators=(",", ":"), allow_nan=False).encode(), 9, wbits=-15)
    totals = facts["totals"]
    filled = {
        "title": escape(facts["title"]),
        "words": escape(" ".join(facts["words"])),
        "query": escape(facts["query"]),
        "plan": escape(facts["plan"]),
        "version": escape(facts["version"]),
        "totals": escape(
            f"{counted(totals['matches'], 'match', 'matches')}, {totals['expected']:,.1f} expected."
        ),
        "assumed": _lines(facts["assumed"], "plain") + _lines(facts["warnings"], "plain warn"),
        "data": base64.b64encode(packed).decode("ascii"),
        "style": _part("page.css"),
        "script": _part("page.js"),
    }
    # In one pass: what is filled in is not looked at again.
    return re.sub(r"\{(\w+)\}", lambda found: filled[found[1]], _part("page.html"))


def _lines(lines: list[str], kind: str) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<ul class="{kind}">{items}</ul>' if lines else ""


def _part(name: str) -> str:
    return files("uncertain_cep.reporting").joinpath(name).read_text(encoding="utf-8")
