"""The sums of :mod:`confidence.timed.time_laws` for one match at a time, over any times but those kept."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cells", "Factor", "TooManyCellsError", "law_of"]

Float64 = NDArray[np.float64]

_MOST_FACTORS: Final = 16
"""Most tables that are multiplied at once; NumPy takes no more than 31."""


class TooManyCellsError(ValueError):
    """A sum takes more cells than there are left; ``cells`` says how many."""

    def __init__(self, cells: float) -> None:
        self.cells = cells
        super().__init__(f"{cells} cells")


class Cells:
    """How many cells of tables may still be computed, and at most in one table."""

    def __init__(self, left: float, in_one: float) -> None:
        self._left, self._in_one = left, in_one

    def take(self, sizes: Sequence[int]) -> None:
        """Note a table of such sizes; raise TooManyCellsError before it is made if it is too large."""
        cells = float(prod(map(float, sizes)))
        self._left -= cells
        if self._left < 0.0 or cells > self._in_one:
            raise TooManyCellsError(cells)


class Factor(NamedTuple):
    """A table over the ticks of some times.

    Attributes
    ----------
    axes : tuple of int
        The times, ascending.
    values : float64 array
        One dimension a time.
    """

    axes: tuple[int, ...]
    values: Float64


def law_of(kept: Sequence[int], sizes: Sequence[int], factors: Sequence[Factor], cells: Cells) -> Float64:
    """Return the sum of the product of factors over all times but some, for each choice of ticks of those.

    Parameters
    ----------
    kept : sequence of int
        The times that are not summed over, ascending.
    sizes : sequence of int
        The ticks of each time.
    factors : sequence of Factor
    cells : Cells

    Raises
    ------
    TooManyCellsError
        If that takes too many cells.
    """
    alike: dict[tuple[int, ...], Float64] = {}
    for found in factors:
        alike[found.axes] = found.values * alike[found.axes] if found.axes in alike else found.values
    remaining = [Factor(axes, values) for axes, values in alike.items()]
    summed = set(range(len(sizes))).difference(kept)
    while summed:
        scopes = {
            other: sorted({axis for found in remaining if other in found.axes for axis in found.axes})
            for other in summed
        }
        following = min(summed, key=lambda other: prod(sizes[axis] for axis in scopes[other]))
        summed.remove(following)
        scope = scopes[following]
        own = [found for found in remaining if following in found.axes]
        remaining = [found for found in remaining if following not in found.axes]
        cells.take([sizes[axis] for axis in scope])
        while len(own) > _MOST_FACTORS:
            axes = sorted({axis for found in own[:_MOST_FACTORS] for axis in found.axes})
            cells.take([sizes[axis] for axis in axes])
            own = [*own[_MOST_FACTORS:], _product(own[:_MOST_FACTORS], axes)]
        remaining.append(_product(own, [axis for axis in scope if axis != following]))
    cells.take([sizes[time] for time in kept])
    law = Factor(tuple(kept), np.ones([sizes[time] for time in kept]))
    for found in remaining:
        law = _product([law, found], kept)
    return law.values


def _product(factors: Sequence[Factor], kept: Sequence[int]) -> Factor:
    """Return the product of factors, summed over the axes that are not kept."""
    number = {axis: k for k, axis in enumerate(sorted({axis for found in factors for axis in found.axes}))}
    operands: list[Any] = [
        part for found in factors for part in (found.values, [number[axis] for axis in found.axes])
    ]
    return Factor(tuple(kept), np.einsum(*operands, [number[axis] for axis in kept]))
