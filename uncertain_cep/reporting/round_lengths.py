"""Bars of a chart of time, of lengths that people count time in."""

from __future__ import annotations

from typing import Final

__all__ = ["MOMENTS", "bars_of_time"]

MOMENTS: Final = 48
"""Bars of the chart of when matches are."""

_ROUND_LENGTHS: Final[tuple[int, ...]] = (
    *(step * 10**power for power in range(10) for step in (1, 2, 5)),
    *(seconds * 10**9 for seconds in (10, 15, 30)),
    *(minutes * 60 * 10**9 for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(days * 86_400 * 10**9 for days in (1, 2, 7, 14, 28, 91, 182, 364)),
)
"""Lengths that people count time in, nanoseconds, ascending."""


def bars_of_time(low: int, high: int, tick: int | None) -> tuple[int, int, int]:
    """Return where bars that cover two ticks, and those between, begin, how long each is, and their number.

    ``tick`` is the length of a tick in nanoseconds.
    """
    width = _round_length((high - low) // MOMENTS + 1, tick)
    low -= low % width
    return low, width, (high - low) // width + 1


def _round_length(shortest: int, tick: int | None) -> int:
    """Return a round number of ticks of some nanoseconds, at least so many."""
    if tick is not None:
        for length in _ROUND_LENGTHS:
            if length >= shortest * tick and length % tick == 0:
                return int(length // tick)
    return next(
        int(step * 10**power) for power in range(20) for step in (1, 2, 5) if step * 10**power >= shortest
    )
