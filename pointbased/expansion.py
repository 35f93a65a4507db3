"""Stream expansion (the paper, section 3, step 1): a point event for each tick of every event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["PointEvents", "expand"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PointEvents:
    """Events at exact times.

    Attributes
    ----------
    source : (m,) int64
        The interval event, as its index in what was expanded.
    time : (m,) int64
        Ticks.
    probability : (m,) float64
        That the event happened then; always positive.
    """

    source: Int64
    time: Int64
    probability: NDArray[np.float64]


def expand(
    lower: Int64, upper: Int64, pmf_offset: Int64 | None, pmf: NDArray[np.float64] | None
) -> PointEvents:
    """Expand interval events into point events, event by event and in ascending time within each.

    Parameters
    ----------
    lower, upper : (n,) int64
        Interval bounds, ticks, inclusive.
    pmf_offset : (n,) int64 or None
        Where an event's probabilities start in ``pmf``; -1 for uniform. None if all are uniform.
    pmf : (k,) float64 or None

    Returns
    -------
    PointEvents
        Without the ticks of probability 0. O(sum of interval lengths) time and memory.
    """
    sizes = upper - lower + 1
    source = np.repeat(np.arange(len(lower), dtype=np.int64), sizes)
    within = np.arange(len(source), dtype=np.int64) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    time = lower[source] + within
    probability = 1.0 / sizes[source]
    if pmf_offset is not None and pmf is not None:
        explicit = pmf_offset[source] >= 0
        probability[explicit] = pmf[(pmf_offset[source] + within)[explicit]]
        possible = probability > 0.0
        source, time, probability = source[possible], time[possible], probability[possible]
    return PointEvents(source, time, probability)
