"""When a match is too unlikely to be followed: the one comparison of upper bounds with wanted confidences."""

from __future__ import annotations

from confidence.kernel import kernel
from eventbased.config import BOUND_MARGIN

__all__ = ["needed"]


@kernel(inline=True)
def needed(least):
    """Return the smallest upper bound for which a match is kept.

    Every search that leaves out matches because of their confidence compares its bounds with this number, and
    with nothing else.

    Parameters
    ----------
    least : float64
        The confidence of HAVING, or that of the last of the best matches so far. A match of the same one, up
        to the rounding below, is wanted as well.

    Notes
    -----
    What is kept in the end is decided later, by confidences, and kindly: HAVING passes what is within a
    relative 1e-9 of its threshold, and rankings take confidences for equal that agree in 12 significant
    digits, which differ by less than 1e-11. A computed confidence may itself be too large by 1e-9. So a match
    whose exact confidence is ``least * (1 - 2.02e-9)`` may be kept, and so has to be found; the rest of
    :data:`eventbased.config.BOUND_MARGIN` is for the rounding of bounds, which are products of a few dozen
    probabilities, each no smaller than exact but for some units in the last place.
    """
    return least * BOUND_MARGIN
