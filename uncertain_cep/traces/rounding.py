"""What ticks take from the times that are rounded down to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uncertain_cep.errors import warn
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray

__all__ = ["Rounding", "merged_times", "warn_of_merged"]


@dataclass(frozen=True, slots=True)
class Rounding:
    """What the ticks did to the times of some rows.

    Attributes
    ----------
    ticks : (k,) int64
        The ticks of certain times.
    rests : (k,) int64 or None
        What was rounded off each, nanoseconds; None if nothing.
    floored : int
        Rows whose own offset or length is no whole number of ticks.
    """

    ticks: IntArray
    rests: IntArray | None
    floored: int

    @classmethod
    def of(
        cls, lower: IntArray, upper: IntArray, rests: IntArray | None, keep: BoolArray | None, floored: int
    ) -> Rounding:
        """Return what was done to intervals, (n,) each, of those to keep (None: all)."""
        certain = lower == upper if keep is None else (lower == upper) & keep
        return cls(lower[certain], None if rests is None else rests[certain], floored)


def merged_times(parts: Sequence[Rounding]) -> int:
    """Return how many certain times share their tick with another, different one. O(k log k)."""
    if all(part.rests is None for part in parts):
        return 0
    ticks = np.concatenate([part.ticks for part in parts])
    rests = np.concatenate(
        [np.zeros(len(part.ticks), np.int64) if part.rests is None else part.rests for part in parts]
    )
    if not len(ticks):
        return 0
    order = np.argsort(ticks, kind="stable")
    ticks, rests = ticks[order], rests[order]
    starts = np.flatnonzero(np.diff(ticks, prepend=ticks[0] - 1))
    several = np.minimum.reduceat(rests, starts) != np.maximum.reduceat(rests, starts)
    return int(np.diff(starts, append=len(ticks))[several].sum())


def warn_of_merged(parts: Sequence[Rounding], tick: str | None) -> None:
    """Warn if certain times that differ are in one tick."""
    merged = merged_times(parts)
    if merged:
        warn(merged_message(merged, tick))


def merged_message(merged: int, tick: str | None) -> str:
    """Return what to say of so many certain times that share their tick with different ones."""
    return (
        f"{merged:,} certain times share a tick of {tick} with different ones: none of these is before the "
        "other, so that they never follow each other in a match; give a shorter tick, or say how uncertain "
        "the times are"
    )
