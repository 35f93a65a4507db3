"""The protocol of all weighers."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns

__all__ = ["CANNOT", "WRITTEN_OUT", "Declined", "Weigher", "price_of_sweeps"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

CANNOT: Final = np.inf
"""The price of a match that a weigher cannot weigh."""

WRITTEN_OUT: Final = 100_000.0
"""ns. What it is worth to write out literals and forbidden spans for: some ten times what that takes."""

Declined = dict[int, tuple[float, float]]
"""Matches that a weigher gives back while it weighs: about how many steps each takes, and the limit."""


def price_of_sweeps(model: MatchModel, overlaps: bool) -> Float64:
    """Return the ticks of all events of each match, (k,) float64; CANNOT where a sequence breaks a tie.

    With ``overlaps``, the pairs of ticks of neighbours whose intervals overlap.
    """
    if model.pools is None or model.scratch is None:
        return np.full(model.count, CANNOT)
    if len(model.held.start):
        # For each choice of offsets anew; given these, times have few ticks.
        return np.where(model.tied, CANNOT, 1.0)
    start = model.matches.start
    lower, upper = model.bounds()
    ticks = (upper - lower + 1).astype(np.float64)
    if overlaps:
        ticks[1:] *= np.where(upper[:-1] >= lower[1:], ticks[:-1], 1.0)
        ticks[start[:-1]] = 0.0
    summed: Float64 = np.add.reduceat(ticks, start[:-1]) if len(ticks) else np.zeros(0)
    return np.where(model.tied, CANNOT, summed)


class Weigher(Protocol):
    """A way to compute the tight ranges and confidences of matches.

    The weigher of the lowest price takes a match; the answers of all are equal (up to 1e-9), so that price
    alone decides. To add one: a file with a class of this form, and a line in
    :data:`uncertain_cep.weighers.cheapest.WEIGHERS`.
    """

    name: str
    """As ``explain`` shows it."""
    why: str
    """What it takes, and how it computes it, as ``explain`` shows it."""
    priced_above: float
    """ns. A match is priced only if no other weigher takes it for less: to price it costs as well."""

    takes_all: bool
    """Whether no price is CANNOT: then nothing is priced where no other weigher is left."""

    def price(self, model: MatchModel) -> Float64:
        """Return about how many multiplications each match takes, (k,) float64; CANNOT where it cannot.

        :data:`uncertain_cep.config.tuning.WEIGHER_PRICES` says what these take; 1 ns each if it does not.
        """
        ...

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        """Fill the answers of matches; return those that turn out too dear, or are not for this weigher."""
        ...
