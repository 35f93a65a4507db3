"""The facts of a report as one page that needs nothing else.

Its drawings are SVG written by hand. Chart libraries were weighed. uPlot is small, and draws series of values
on a canvas, which no screen reader reads and no test can ask; it has no intervals, densities or open ends.
Observable Plot needs D3: together they take a third of the 1 MB that a page may have, and would draw the bars
alone. Lanes, step lines and graphs of orders would stay ours; all scripts of a page have 80 kB.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uncertain_cep.plurals import counted
from uncertain_cep.running.installation import needed

if TYPE_CHECKING:
    from uncertain_cep.reporting.notebook_widget import PageWidget

__all__ = ["FRAME_HEIGHT", "Report", "page_of", "summary_of"]

FRAME_HEIGHT: Final = 720
"""Pixels of a report in a notebook."""


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """A page of matches: a notebook shows it, and ``str`` returns its HTML."""

    html: str
    path: Path | None
    """Where it was written to."""
    summary: str
    """How many matches there are."""

    def __str__(self) -> str:
        return self.html

    def __repr__(self) -> str:
        where = "not written to a file" if self.path is None else f"in {self.path}"
        return f"<report of {self.summary} {where}; {len(self.html.encode()):,} bytes of HTML>"

    def widget(self) -> PageWidget:
        """Return the page as a widget of a notebook, which shares the open match with Python.

        Its trait ``match`` is the match that is open, a dict of its keys and ids, or None. Another one opens
        when it is set. ``height`` is that of the frame in pixels. The page takes the colours of the notebook.
        Where the kernel is gone, it stays as it was: notebooks keep the page without the widget, too.

        Raises
        ------
        RuntimeEnvironmentError
            If anywidget is not installed.
        """
        needed("notebook")
        from uncertain_cep.reporting.notebook_widget import PageWidget

        return PageWidget(self.html, self.summary, FRAME_HEIGHT, self._repr_html_())

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, so that neither changes the look of the other."""
        return (
            f'<iframe sandbox="allow-scripts allow-downloads allow-modals" srcdoc="{escape(self.html)}" '
            f'title="{escape(self.summary)}" style="width:100%;height:{FRAME_HEIGHT}px;border:0"></iframe>'
        )


_SCRIPTS: Final = ("times.js", "lanes.js", "orders.js", "groups.js", "page.js")
"""One behind the other they are the script of a page."""

_STATIC = ("title", "words", "query", "plan", "version", "assumed", "warnings")
"""Facts that are written into the page; the others are handed to its script."""


def page_of(facts: dict[str, Any]) -> str:
    """Return a page with its styles, its script and its data; values of the trace are data throughout.

    What the script gets is compressed and in base64, so that nothing in it can end an element.
    """
    handed = {name: value for name, value in facts.items() if name not in _STATIC}
    packed = zlib.compress(json.dumps(handed, separators=(",", ":"), allow_nan=False).encode(), 9, wbits=-15)
    filled = {
        "title": escape(facts["title"]),
        "words": escape(" ".join(facts["words"])),
        "query": escape(facts["query"]),
        "plan": escape(facts["plan"]),
        "version": escape(facts["version"]),
        "totals": escape(f"{summary_of(facts['totals'])}."),
        "assumed": _lines(facts["assumed"], "plain") + _lines(facts["warnings"], "plain warn"),
        "data": base64.b64encode(packed).decode("ascii"),
        "style": _part("page.css"),
        "script": "".join(map(_part, _SCRIPTS)),
    }
    # In one pass: what is filled in is not looked at again.
    return re.sub(r"\{(\w+)\}", lambda match: filled[match[1]], _part("page.html"))


def summary_of(totals: dict[str, float]) -> str:
    """Return how many matches there are."""
    return f"{counted(totals['matches'], 'match', 'matches')}, {totals['expected']:,.1f} expected"


def _lines(lines: list[str], kind: str) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<ul class="{kind}">{items}</ul>' if lines else ""


def _part(name: str) -> str:
    return files("uncertain_cep.reporting").joinpath(name).read_text(encoding="utf-8")
