"""Numeric thresholds of the point-based evaluation, each named once.

``python -m benchmarks main --only points`` tells whether they still hold.
"""

from __future__ import annotations

from typing import Final

POINTS_PER_STEP: Final = 1 << 14
"""About as many point events are expanded, matched and dropped before the next ones."""

MOST_RUNS: Final = 50_000_000
"""Most runs held at a time, 24 bytes each."""

MOST_PREFIXES: Final = 20_000_000
"""Most beginnings of matches held at a time, about 200 bytes each."""

LEAST_ROWS: Final = 1 << 10
"""Rows that every pool has room for from the start."""

TABLE_LOAD: Final = 2
"""The hash table has at least this many rows for each entry."""

TINY: Final = 5e-324
"""The smallest positive float64: what a positive probability too small for float64 is taken for, so that
the range of a match does not lose a time that is merely very improbable."""
