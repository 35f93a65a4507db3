"""The sum over the ticks of a piece of what is a polynomial there, by few ticks, whatever its degree."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import plain_checkpoint
from confidence.chain.pieces import HIGHEST_DEGREE, node_weights
from confidence.chain.spread_nodes import nodes_needed, spread_nodes
from confidence.kernel import kernel

__all__ = [
    "HIGHEST_SPREAD",
    "PieceSums",
    "most_terms",
    "piece_term",
    "piece_terms",
    "solves",
    "ticks_of_pieces",
]

HIGHEST_SPREAD: Final = 64
"""Of a degree; beyond, each tick counts."""

_SPREAD: Final = -1
_ONE: Final = -2
_TWO: Final = -3
"""Ways of choosing, in place of a distance of ticks: those of a high degree, and one or two in the middle."""


class PieceSums(NamedTuple):
    """Work arrays: the ticks of a piece that are taken, and their weights."""

    weight: NDArray[np.float64]
    """(7,) float64. Of equally spaced ticks."""
    spread: NDArray[np.int64]
    """(p,) int64. Ticks of polynomials of a high degree."""
    matrix: NDArray[np.float64]
    """(p, p + 1) float64."""

    @classmethod
    def of(cls, degree: int) -> PieceSums:
        """Return the arrays for polynomials up to a degree."""
        return cls.of_nodes(min(degree, HIGHEST_SPREAD) + 1)

    @classmethod
    def of_nodes(cls, nodes: int) -> PieceSums:
        """Return the arrays for as many ticks of a polynomial of a high degree."""
        return cls(np.zeros(HIGHEST_DEGREE), np.zeros(nodes, np.int64), np.zeros((nodes, nodes + 1)))


@kernel
def piece_terms(size, degree, sums):
    """Choose the ticks of a piece; return how many terms the sum has, and what `piece_term` asks for.

    Parameters
    ----------
    size : int64
        At least 1.
    degree : int64
        At least 0. Of a high one that the arrays have no room for each tick is taken.
    sums : PieceSums
        Written to.

    Returns
    -------
    terms, nodes, apart : int64
    """
    if size <= degree + 1:
        return size, size, 0
    if degree <= 1:
        if degree == 0 or size % 2 == 1:
            return 1, size, _ONE
        return 2, size, _TWO
    if degree <= HIGHEST_DEGREE:
        nodes, apart = node_weights(size, degree, sums.weight)
        if apart:
            return nodes + size - (nodes - 1) * apart - 1, nodes, apart
    elif degree < sums.spread.shape[0] and size > nodes_needed(degree):
        spread_nodes(size, degree, sums.spread, sums.matrix)
        return degree + 1, degree + 1, _SPREAD
    return size, size, 0


@kernel
def solves(apart):
    """Return whether `piece_terms` solved equations, in the cube of the degree."""
    return apart == _SPREAD


@kernel
def piece_term(k, nodes, apart, sums):
    """Return the tick of a term, from 0 at the piece's begin, and its weight."""
    if apart > 0:
        if k < nodes:
            return k * apart, sums.weight[k]
        return (nodes - 1) * apart + 1 + k - nodes, 1.0
    if apart == 0:
        return k, 1.0
    if apart == _SPREAD:
        return sums.spread[k], sums.matrix[k, nodes]
    return (nodes - 1) // 2 + k, float(nodes) if apart == _ONE else float(nodes) / 2.0


@kernel
def _fill_ticks(start, size, degree, sums, piece, tick, weight):
    """Write the ticks that are taken of all pieces, the pieces and the weights; return how many there are."""
    count = 0
    for n in range(start.shape[0]):
        plain_checkpoint()
        terms, nodes, apart = piece_terms(size[n], degree, sums)
        for k in range(terms):
            at, share = piece_term(k, nodes, apart, sums)
            piece[count], tick[count], weight[count] = n, start[n] + at, share
            count += 1
    return count


def ticks_of_pieces(
    start: NDArray[np.int64], size: NDArray[np.int64], degree: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return by which ticks what is a polynomial on each piece is summed: their pieces, ticks and weights.

    Parameters
    ----------
    start, size : (n,) int64
        The first tick of each piece, and how many it has, at least 1.
    degree : int
    """
    room = int(np.minimum(size, most_terms(degree)).sum())
    piece, tick = np.empty((2, room), dtype=np.int64)
    weight = np.empty(room)
    fill: Any = _fill_ticks
    count = fill(start, size, degree, PieceSums.of(degree), piece, tick, weight)
    return piece[:count], tick[:count], weight[:count]


def most_terms(degree: int) -> int:
    """Return how many ticks of a piece are taken at most, for polynomials up to a degree."""
    few = 2 * HIGHEST_DEGREE - 2
    return few if degree <= HIGHEST_DEGREE else max(few, int(nodes_needed(degree)), degree + 1)
