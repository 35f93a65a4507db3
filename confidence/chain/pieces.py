"""Sums of a polynomial over the ticks of its pieces, by few of its values.

The sum over a piece is a weighted mean of few of its values with positive weights (Newton and Cotes, for
sums): it does not depend on ticks, and nothing cancels.
"""

from __future__ import annotations

from typing import Final

from confidence.kernel import kernel

__all__ = ["HIGHEST_DEGREE", "add_point", "node_weights"]

HIGHEST_DEGREE: Final = 7
"""Of a polynomial whose sum is found by few values."""


@kernel
def node_weights(count, degree, weight):
    """Write how to sum a polynomial over ``count`` ticks by equally spaced values of the first of them.

    The values are those of ticks 0, h, 2h, ...; those of the ticks behind the last one count once each.
    Exact, and with positive weights, up to HIGHEST_DEGREE.

    Parameters
    ----------
    count, degree : int64
    weight : (7,) float64
        Overwritten: those of the values.

    Returns
    -------
    nodes, h : int64
        Number and distance of the values. With h = 0 the sum is over each tick.
    """
    nodes = 3 if degree <= 3 else 5 if degree <= 5 else 7
    h = (count - 1) // (nodes - 1)
    if h < 2 or degree > HIGHEST_DEGREE:
        return count, 0
    half = nodes // 2
    n = float(half * h)
    x = float(h) * float(h)
    ticks = 2.0 * n + 1.0
    two = n * (n + 1.0) * ticks / 6.0 / x
    if half == 1:
        weight[0] = weight[2] = two
        weight[1] = ticks - 2.0 * two
        return nodes, h
    four = two * (3.0 * n * n + 3.0 * n - 1.0) / 5.0 / x
    if half == 2:
        outer = (four - two) / 12.0
        inner = two - 4.0 * outer
        weight[0] = weight[4] = outer
        weight[1] = weight[3] = inner
        weight[2] = ticks - 2.0 * (inner + outer)
        return nodes, h
    six = two * (3.0 * n**4 + 6.0 * n**3 - 3.0 * n + 1.0) / 7.0 / (x * x)
    outer = (six - 5.0 * four + 4.0 * two) / 360.0
    middle = (four - two - 72.0 * outer) / 12.0
    inner = two - 4.0 * middle - 9.0 * outer
    weight[0] = weight[6] = outer
    weight[1] = weight[5] = middle
    weight[2] = weight[4] = inner
    weight[3] = ticks - 2.0 * (inner + middle + outer)
    return nodes, h


@kernel
def add_point(points, count, point, low, high):
    """Put a breakpoint among those within (low, high], ascending; return how many there are.

    Parameters
    ----------
    points : (n,) int64
        Written to; the first ``count`` of them are points.
    count, point, low, high : int64
    """
    if point <= low or point > high:
        return count
    place = count
    while place > 0 and points[place - 1] >= point:
        if points[place - 1] == point:
            return count
        place -= 1
    for k in range(count, place, -1):
        points[k] = points[k - 1]
    points[place] = point
    return count + 1
