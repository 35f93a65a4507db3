"""Gauss quadrature for sums: the sum of a polynomial over equally spaced ticks by half as many values.

The rule of n nodes is exact up to degree 2n - 1, as for integrals, and its weights are positive. Its nodes
are the roots of the Gram polynomial of degree n, found by Newton's method from the right. They lie between
ticks: so the rule is for functions that are known as formulas.
"""

from __future__ import annotations

import math
from typing import Final

from confidence.kernel import kernel

__all__ = ["MOST_NODES", "gauss_nodes"]

MOST_NODES: Final = 32
"""Beyond, each tick counts."""

_ROUNDS: Final = 100
"""Newton's method is at a root after far fewer."""


@kernel
def gauss_nodes(count, degree, node, weight):
    """Write values of a polynomial over the ticks 0..count-1 that tell its sum, and their weights.

    Parameters
    ----------
    count, degree : int64
        At least 1 tick.
    node : (n,) float64
        Overwritten: from 0 to count - 1.
    weight : (n,) float64
        Overwritten.

    Returns
    -------
    int64
        How many values there are: ``degree // 2 + 1``, or all ticks where they are few; -1 if the arrays have
        less room than that. O(degree^3).
    """
    nodes = degree // 2 + 1
    if count <= 2 * nodes or nodes > MOST_NODES:
        if count > node.shape[0]:
            return -1
        for k in range(count):
            node[k] = float(k)
            weight[k] = 1.0
        return count
    size = float(count)
    centre = 0.5 * (size - 1.0)
    if nodes == 1:
        node[0] = centre
        weight[0] = size
        return 1
    if nodes == 2:
        away = math.sqrt((size * size - 1.0) / 12.0)
        node[0], node[1] = centre - away, centre + away
        weight[0] = weight[1] = 0.5 * size
        return 2
    if nodes == 3:
        square = (3.0 * size * size - 7.0) / 20.0
        outer = size * (size * size - 1.0) / 24.0 / square
        away = math.sqrt(square)
        node[0], node[1], node[2] = centre - away, centre, centre + away
        weight[0] = weight[2] = outer
        weight[1] = size - 2.0 * outer
        return 3
    _roots(size, nodes, node, weight)
    for k in range(nodes):
        node[k] = centre + 0.5 * size * node[k]
    return nodes


@kernel
def _roots(size, nodes, node, weight):
    """Write the roots of a Gram polynomial on ticks from -1 to 1, descending, and their weights."""
    node[nodes // 2] = 0.0
    for k in range(nodes // 2):
        root = 1.0
        for _ in range(_ROUNDS):
            value, slope, _ = _gram(root, size, nodes)
            # Without the roots that are known; from the right Newton's method comes closer at each step.
            pull = slope
            for j in range(k):
                pull -= value / (root - node[j])
            step = value / pull
            root -= step
            if abs(step) <= 1e-15:
                break
        node[k], node[nodes - 1 - k] = root, -root
    for k in range(nodes):
        _, slope, scaled = _gram(node[k], size, nodes)
        weight[k] = size * scaled / slope


@kernel
def _gram(x, size, nodes):
    """Return the monic Gram polynomial at x, its slope, and what its weight is in proportion to."""
    before, here = 0.0, 1.0
    slope_before, slope = 0.0, 0.0
    norm = 1.0
    for k in range(nodes):
        degree = float(k)
        square = degree / size
        behind = degree * degree * (1.0 - square * square) / (4.0 * degree * degree - 1.0) if k else 0.0
        if k:
            norm *= behind
        before, here, slope_before, slope = (
            here,
            x * here - behind * before,
            slope,
            here + x * slope - behind * slope_before,
        )
    return here, slope, norm / before
