"""Numeric thresholds of the confidence kernels, each named once.

``python -m benchmarks main --only throughput --only units`` measures confidences of plain sequences, ``--only
language`` those with forbidden events: what a change of a number costs or brings shows there.
"""

from __future__ import annotations

from typing import Final

# What float64 and int64 are trusted with. No benchmark tells: the tests compare with exact fractions.

WORST_CANCELLATION: Final = 1e5
"""Largest ratio of summed absolute terms to result that float64 is trusted with: about 1e-11 relative."""

WORST_EXCLUSION: Final = 1e3
"""The same for a sum of conditions on times by inclusion and exclusion: with 1e5 errors of 1e-9 were met."""

LARGEST_COUNT: Final = 1e280
"""Counts above this leave float64's range soon; they are redone in exact arithmetic."""

MOST_EXACT_TICKS: Final = 2**53
"""Most ticks from the first to the last bound of a chain whose positions float64 tells apart."""

# Forbidden events. Fitted to skip till next match at half intervals 5 to 50; `--only language`, and
# `python -m benchmarks paper --only 4e,5c` for long intervals.

FEW_STEPS: Final = 1e6
"""Multiplications up to which chains for every choice of places are taken without looking for less."""

# Estimates, which the tests of approximate= compare with exact values.

FEWEST_DRAWS: Final = 256
"""Worlds drawn at least for an estimate."""

# Events in partial order.

MOST_STEPS_BETWEEN_IDEALS: Final = 1_000_000
"""Most steps between ideals of an order that are listed: beyond, a sweep costs too much for any match."""

# Times are within int64.

EVER: Final = 2**63 - 1
"""A time behind all others."""

NEVER: Final = -EVER
"""A time before all others."""
