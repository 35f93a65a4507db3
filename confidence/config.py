"""Numeric thresholds of the confidence kernels, each named once."""

from __future__ import annotations

from typing import Final

WORST_CANCELLATION: Final = 1e5
"""Largest ratio of summed absolute terms to result that float64 is trusted with: about 1e-11 relative."""

LARGEST_COUNT: Final = 1e280
"""Counts above this leave float64's range soon; they are redone in exact arithmetic."""

MOST_EXACT_TICKS: Final = 2**53
"""Most ticks from the first to the last bound of a chain whose positions float64 tells apart."""

STEPS_PER_CALL: int = 2**21
"""Steps of a search, some nanoseconds each, after which its kernel comes back to Python: 0.05 s or so."""

MULTIPLICATIONS_PER_CALL: float = 2.0**25
"""Multiplications for confidences after which a kernel comes back to Python: 0.1 s or so."""
