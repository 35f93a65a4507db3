"""Systems of bounds on times and on their differences: what they leave of some intervals."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNBOUND", "Bounds", "tightened"]

Int64 = NDArray[np.int64]

UNBOUND: Final = 2**62
"""A bound that nothing reaches, in ticks."""

Bounds = dict[tuple[int, int], tuple[int, int]]
"""``low <= t[i] - t[j] <= high`` by (i, j), or of ``t[i]`` itself where j = -1; UNBOUND: no bound."""


def tightened(lower: Int64, upper: Int64, bounds: Bounds) -> tuple[Int64, Int64] | None:
    """Return the first and last tick of each event in the worlds that meet all bounds; None if none does.

    Parameters
    ----------
    lower, upper : (n,) int64
        Ticks, inclusive.
    bounds : dict

    Notes
    -----
    Bounds of differences are paths in a graph, so that the tight ones are its longest paths (Bellman and
    Ford): n rounds are enough, and one that changes something after that tells of a cycle that no world
    meets. O(n * bounds).
    """
    a, b = lower.tolist(), upper.tolist()
    for (i, j), (low, high) in bounds.items():
        if j < 0:
            a[i], b[i] = max(a[i], low), min(b[i], high)
        elif i == j and not low <= 0 <= high:
            return None
    between = [(i, j, low, high) for (i, j), (low, high) in bounds.items() if i != j >= 0]
    for _ in range(len(a) + 2):
        changed = False
        for i, j, low, high in between:
            for k, lowest, highest in ((i, a[j] + low, b[j] + high), (j, a[i] - high, b[i] - low)):
                if lowest > a[k]:
                    a[k], changed = lowest, True
                if highest < b[k]:
                    b[k], changed = highest, True
        if any(first > last for first, last in zip(a, b, strict=True)):
            return None
        if not changed:
            return np.array(a, dtype=np.int64), np.array(b, dtype=np.int64)
    return None
