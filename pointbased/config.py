"""Numeric thresholds of the point-based evaluation, each named once.

``python -m benchmarks main --only points`` tells whether they still hold.
"""

from __future__ import annotations

from typing import Final

MOST_RUNS: Final = 50_000_000
"""Most runs held at a time, 24 bytes each."""

MOST_PREFIXES: Final = 20_000_000
"""Most beginnings of matches held at a time, about 200 bytes each."""

LEAST_ROWS: Final = 1 << 10
"""Rows that every pool has room for from the start."""
