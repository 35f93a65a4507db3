"""The numeric thresholds of the library, each named once."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BATCH_ROWS",
    "CONFIDENCE_TOLERANCE",
    "COUNT_BATCH",
    "FAULT_LIMIT",
    "LONGEST_PMF_CHAIN",
    "LONGEST_POINT_INTERVAL",
    "MAX_MATCHES",
    "MAX_TICK",
    "MOST_CONFIDENCE_STEPS",
    "MOST_COVERED_TICKS",
    "PMF_TOLERANCE",
    "POINT_BATCH",
    "RANKED_DIGITS",
]

BATCH_ROWS: Final = 131_072
"""Rows of a batch unless the caller says otherwise."""

MAX_MATCHES: Final = 50_000_000
"""Most matches that are collected in one table unless the caller says otherwise."""

CONFIDENCE_TOLERANCE: Final = 1e-9
"""How far below a threshold, relative to it, a confidence still passes it: what rounding may take off."""

RANKED_DIGITS: Final = 12
"""Significant digits by which confidences are ranked and tie."""

PMF_TOLERANCE: Final = 1e-9
"""How far the sum of a probability mass function may be from 1."""

FAULT_LIMIT: Final = 20
"""How many rows with the same fault are listed one by one; the others are counted."""

MAX_TICK: Final = 2**61
"""Largest magnitude of a time in ticks: differences and window ends of such times stay within int64."""

LONGEST_PMF_CHAIN: Final = 10_000_000
"""Most ticks from the first to the last time of a match with an explicit pmf: its confidence walks them."""

LONGEST_POINT_INTERVAL: Final = 1_000_000
"""Most ticks of an interval that the point-based evaluation goes through one by one."""

POINT_BATCH: Final = 1 << 11
"""About as many candidates are handed to the point-based evaluation before time moves on."""

MOST_CONFIDENCE_STEPS: Final = 200_000_000
"""Most multiplications spent on the exact confidence of one match with forbidden events: about a second."""

MOST_COVERED_TICKS: Final = 2**24
"""Most ticks of one partition over which expected counts are summed tick by tick: about 60 bytes each."""

COUNT_BATCH: Final = 1 << 20
"""Expected counts that are held before those of one group and bucket are added up."""

MOST_REPEATED_STEPS: Final = 2_000_000_000
"""Most steps over pairs of ticks of events to take their uses with themselves off expected counts."""
