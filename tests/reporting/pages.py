"""Reads back what a page of a report shows, from its file or in a browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["PATIENCE", "Shown", "data_of", "values"]

PATIENCE = 600_000.0
"""Milliseconds after which a busy machine counts as one that hangs."""


class Shown:
    """A page that is open, and what went wrong in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.set_default_timeout(PATIENCE)
        self.faults: list[str] = []
        page.on("console", lambda message: self.faults.append(message.text))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("dialog", lambda dialog: self.faults.append(dialog.message))
        page.on("request", lambda request: self._note(request.url))

    def _note(self, url: str) -> None:
        if not url.startswith("file:"):
            self.faults.append(url)

    def open(self, path: Path) -> Page:
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]")
        return self.page


def data_of(page: object) -> dict[str, Any]:
    """Return the values that the script of a page gets."""
    packed = re.search(r'<script id="data"[^>]*>([^<]*)</script>', str(page))
    assert packed is not None
    values_of_page: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed[1]), wbits=-15))
    return values_of_page


def values(columns: list[dict[str, Any]], name: str) -> list[Any]:
    """Return the values of a column of matches."""
    cells: list[Any] = next(one["values"] for one in columns if one["name"] == name)
    return cells
