"""Where the law of one time of a match is another polynomial: for means that cost no ticks.

They end where `uncertain_cep.weighers.held_times` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.results.piecewise import weighted_sums
from uncertain_cep.weighers.held_times import breaks_of
from uncertain_cep.weighers.match_model import MatchModel

__all__ = ["PiecesOfLaw", "pieces_of_laws"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class PiecesOfLaw(NamedTuple):
    """The pieces on which the laws of one time of k matches are polynomial.

    Attributes
    ----------
    begin, end : (k,) int64
        The first and the last tick that is possible.
    breaks : (b, k) int64
        Where another polynomial begins.
    length : int
        Behind the degree of the polynomials.
    """

    begin: Int64
    end: Int64
    breaks: Int64
    length: int

    def sums(self, first: Int64, law: Callable[[Int64, Int64], Float64]) -> Float64:
        """Return the sums over ticks of the law times the ticks behind ``first``, (k,) float64."""
        return weighted_sums(first, self.begin, self.end, self.breaks, self.length, law)


def pieces_of_laws(model: MatchModel, event: int, *, at_end: bool) -> Iterator[tuple[Int64, PiecesOfLaw]]:
    """Yield the pieces of a time of some matches, with their numbers.

    Matches that have explicit probabilities, or very many pieces, are left out.

    Parameters
    ----------
    model : MatchModel
        Of matches that nothing is forbidden, by independent times.
    event : int
        The place of the event among those of its match.
    at_end : bool
        Whether the time is its end.
    """
    sides = product((0, 1), repeat=len(model.pattern.apart))
    choices = [tuple(zip(model.pattern.apart, choice, strict=True)) for choice in sides]
    # Of the sides of events that are apart each has pieces of its own.
    of_sides = [replace(model, sides=choice).explicit for choice in choices]
    for parts in zip(*of_sides, strict=True):
        shape = parts[0].shape
        time = shape.total + shape.lasting.index(event) if at_end else event
        breaks = [breaks_of(part.times, time) for part in parts]
        uniform = np.flatnonzero((parts[0].times.size > 0.0).all(axis=1))
        if len(uniform) and all(one is not None for one in breaks):
            begins, ends = (
                np.stack([getattr(part.times, name)[:, time] for part in parts]) for name in ("first", "last")
            )
            begin, end = begins.min(axis=0), ends.max(axis=0)
            # Where sides have an end of their own nothing is left of them behind it.
            edges = np.concatenate([*(one for one in breaks if one is not None), begins, ends])
            both = np.concatenate((edges, edges + 1))
            pieces = PiecesOfLaw(
                begin[uniform], end[uniform], both[:, uniform], parts[0].times.first.shape[1]
            )
            yield parts[0].which[uniform], pieces
