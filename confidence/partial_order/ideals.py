"""Strict partial orders of a match's events, their down-sets (ideals), and the bounds that they leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.arrays import largest, smallest
from confidence.config import MOST_STEPS_BETWEEN_IDEALS
from confidence.kernel import kernel
from confidence.partial_order.times import BETWEEN

__all__ = ["Order", "tight_order_bounds"]


class Order(NamedTuple):
    """A strict partial order of n events, with its ideals.

    Attributes
    ----------
    before : (n,) int64
        For each event the bits of all events that have to happen before it; lower numbers only.
    start : (n + 1,) int64
        Where the steps of each event begin in ``source`` and ``target``.
    source, target : (k,) int64
        Ideals without and with the event. Ideal 0 is empty, the last one full.
    ideals : int
    gap_place : (g,) int64
        LEADING, BETWEEN or TRAILING.
    gap_after, gap_before : (g,) int64
        Bits of the events that a gap lies behind and before.
    gap_cut : (g,) int64
        The only ideal in which the gap is open, or -1.
    """

    before: NDArray[np.int64]
    start: NDArray[np.int64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    ideals: int
    gap_place: NDArray[np.int64]
    gap_after: NDArray[np.int64]
    gap_before: NDArray[np.int64]
    gap_cut: NDArray[np.int64]

    @classmethod
    def of(cls, before: Sequence[int], gaps: Sequence[tuple[int, int, int]] = ()) -> Order | None:
        """Return an order; None if it has more than ``MOST_STEPS_BETWEEN_IDEALS``.

        Parameters
        ----------
        before : sequence of int
            Transitively closed.
        gaps : sequence of (int, int, int)
            Place and the bits of the events behind which and before which each gap lies.
        """
        number = {0: 0}
        masks = [0]
        steps: list[list[tuple[int, int]]] = [[] for _ in before]
        count = 0
        for mask in masks:
            for event, needed in enumerate(before):
                if mask >> event & 1 or mask & needed != needed:
                    continue
                reached = mask | 1 << event
                if reached not in number:
                    number[reached] = len(masks)
                    masks.append(reached)
                steps[event].append((number[mask], number[reached]))
                count += 1
            if count > MOST_STEPS_BETWEEN_IDEALS:
                return None
        cuts = []
        for place, after, behind in gaps:
            open_in = [k for k, mask in enumerate(masks) if mask & after == after and not mask & behind]
            cuts.append(open_in[0] if place == BETWEEN and len(open_in) == 1 else -1)
        pairs = np.array([pair for part in steps for pair in part], dtype=np.int64).reshape(-1, 2)

        def numbers(values: Sequence[int]) -> NDArray[np.int64]:
            return np.array(values, dtype=np.int64)

        return cls(
            numbers(before),
            np.cumsum(numbers([0, *(len(part) for part in steps)])),
            pairs[:, 0].copy(),
            pairs[:, 1].copy(),
            len(masks),
            numbers([place for place, _, _ in gaps]),
            numbers([after for _, after, _ in gaps]),
            numbers([behind for _, _, behind in gaps]),
            numbers(cuts),
        )


@kernel
def tight_order_bounds(lower, upper, before, window, a, b):
    """Tighten the bounds of partially ordered events by order and window; return whether they are feasible.

    All lower bounds together are one choice of times, and so are all upper ones: each is attained. O(n^2).

    Parameters
    ----------
    lower, upper : (n,) int64
        Ticks, inclusive.
    before : (n,) int64
        See :class:`Order`.
    window : int64
        W, ticks.
    a, b : (n,) int64
        Overwritten.
    """
    count = lower.shape[0]
    for j in range(count):
        a[j] = lower[j]
        b[j] = upper[j]
    for again in range(2):
        for j in range(count):
            for i in range(j):
                if before[j] >> i & 1:
                    a[j] = max(a[j], a[i] + 1)
        for j in range(count - 1, -1, -1):
            for i in range(j):
                if before[j] >> i & 1:
                    b[i] = min(b[i], b[j] - 1)
        earliest = largest(a) - window + 1
        latest = smallest(b) + window - 1
        for j in range(count):
            if again == 1 and (a[j] < earliest or b[j] > latest):
                return False
            a[j] = max(a[j], earliest)
            b[j] = min(b[j], latest)
    feasible = True
    for j in range(count):
        feasible = feasible and a[j] <= b[j]
    return feasible
