"""Sums of polynomials of a high degree over equally spaced ticks, by few of their values.

The ticks are those next to the points of Chebyshev and Lobatto; their weights have the sum of each Gram
polynomial, which are orthogonal over the ticks: 0 but for the first one.
"""

from __future__ import annotations

import math

from confidence.kernel import kernel

__all__ = ["nodes_needed", "spread_nodes"]


@kernel
def nodes_needed(degree):
    """Return up to how many ticks each counts: of fewer, those next to the points are not far enough apart.

    About d^2 / 5 (Rivlin and Cheney 1966; mock-Chebyshev subsets): with fewer the weights grow exponentially.
    """
    return max(2 * degree, degree * degree // 4)


@kernel
def spread_nodes(count, degree, points, matrix):
    """Write which of ``count`` ticks to take, and their weights, for polynomials up to a degree.

    Parameters
    ----------
    count, degree : int64
        More than :func:`nodes_needed` ticks.
    points : (degree + 1,) int64
        Overwritten: the ticks, ascending, from 0.
    matrix : (n, n + 1) float64
        Work array of n > degree rows; column ``degree + 1`` has the weights.
    """
    nodes = degree + 1
    for k in range(nodes):
        place = 0.5 - 0.5 * math.cos(math.pi * float(k) / float(degree))
        points[k] = int(place * float(count - 1) + 0.5)
        if k and points[k] <= points[k - 1]:
            points[k] = points[k - 1] + 1
    # The same from the other end, so that both ends are as dense.
    for k in range(nodes - 1, nodes // 2, -1):
        points[k] = count - 1 - points[nodes - 1 - k]
    size = float(count)
    for k in range(nodes):
        x = 2.0 * float(points[k]) / (size - 1.0) - 1.0
        before, here = 0.0, 1.0
        for n in range(nodes):
            matrix[n, k] = here
            # The recurrence of Gram polynomials of length 1 each, on ticks from -1 to 1.
            ahead = _gram(n + 1, size)
            behind = _gram(n, size)
            before, here = here, (x * here - behind * before) / ahead
    for n in range(nodes):
        matrix[n, nodes] = size if n == 0 else 0.0
    _solve(matrix, nodes)


@kernel
def _gram(n, size):
    """Return the coefficient that ties the Gram polynomials of degree n and n - 1 over so many ticks."""
    if n == 0:
        return 0.0
    k = float(n)
    return (k / (size - 1.0)) * math.sqrt((size * size - k * k) / (4.0 * k * k - 1.0))


@kernel
def _solve(matrix, nodes):
    """Solve linear equations in place, by elimination with the largest pivots, in the last column."""
    for k in range(nodes):
        pivot = k
        for n in range(k + 1, nodes):
            if abs(matrix[n, k]) > abs(matrix[pivot, k]):
                pivot = n
        for j in range(k, nodes + 1):
            matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
        for n in range(nodes):
            factor = matrix[n, k] / matrix[k, k] if n != k else 0.0
            if factor != 0.0:
                for j in range(k, nodes + 1):
                    matrix[n, j] -= factor * matrix[k, j]
    for k in range(nodes):
        matrix[k, nodes] /= matrix[k, k]
