"""Raw rows of the real traces, read without the library."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

__all__ = ["rows"]


def rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
