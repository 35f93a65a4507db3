"""Counting the pairs of ticks that a chain of intervals is summed over, however long the intervals are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from confidence.kernel import kernel

__all__ = ["MOST_EDGES", "enlarged", "with_pairs"]

MOST_EDGES: Final = 2**61
"""Counts of pairs stop here: far more than can be gone through, and far from the end of int64."""

_SPARE: Final = 2**20
"""Most elements that a work array gets beyond what is needed now."""


@kernel
def with_pairs(edges, width, next_width):
    """Return a count and ``width * next_width`` together, at most ``MOST_EDGES``.

    Parameters
    ----------
    edges : int64
        At most ``MOST_EDGES``.
    width, next_width : int64
        Ticks of two intervals; their product need not fit into 64 bits.
    """
    if float(width) * float(next_width) >= float(MOST_EDGES):
        return MOST_EDGES
    return min(edges + width * next_width, MOST_EDGES)


def enlarged(space: Sequence[int], need: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of work arrays that are large enough, with some to spare where one has to grow.

    Parameters
    ----------
    space, need : sequence of int
        The sizes that there are, and those needed now.
    """
    pairs = [(int(old), int(new)) for old, new in zip(space, need, strict=True)]
    return tuple(max(old, new + min(new, _SPARE) if new > old else old) for old, new in pairs)
