"""Reads back what a page of a report shows."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any

__all__ = ["data_of", "values"]


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
