"""The protocol of all weighers."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns

__all__ = ["CANNOT", "WRITTEN_OUT", "Declined", "Weigher"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

CANNOT: Final = np.inf
"""The price of a match that a weigher cannot weigh."""

WRITTEN_OUT: Final = 100_000.0
"""ns. What it is worth to write out literals and forbidden spans for: some ten times what that takes."""

Declined = dict[int, tuple[float, float]]
"""Matches that a weigher gives back while it weighs: about how many steps each takes, and the limit."""


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
