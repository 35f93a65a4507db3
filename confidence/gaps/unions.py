"""The probability that some of several conditions on one match hold, added up from those that several do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Term", "Union"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class Term(NamedTuple):
    """A summand of the probability that some reading of a pattern has a match.

    Attributes
    ----------
    weight : int
        Its factor.
    negations : frozenset of int
        The negated components, by their numbers, that all have to spare the match.
    is_reading : bool
        Whether they are those of one reading.
    """

    weight: int
    negations: frozenset[int]
    is_reading: bool


class Union:
    """Ranges and confidences of matches that hold in the worlds of any of several readings.

    By inclusion and exclusion: P(R1 or ... or Rk) is the sum over the non-empty sets S of readings of
    (-1)^(|S| + 1) P(all of S). Each P(all of S) is at most the union: if terms are right up to a relative e,
    the sum is up to its number of terms times e.

    Parameters
    ----------
    count : int
        Number of matches.
    """

    def __init__(self, count: int) -> None:
        self._lower = np.full(count, np.iinfo(np.int64).max)
        self._upper = np.full(count, np.iinfo(np.int64).min)
        self._sum, self._largest, self._error = np.zeros((3, count))

    def add(
        self, term: Term, bounds: tuple[Int64, Int64], confidence: Float64 | None, error: Float64 | None
    ) -> None:
        """Add a term.

        Parameters
        ----------
        term : Term
        bounds : tuple of (n,) int64
            Range of each match, ticks; empty if it is none. The ranges are those of the readings.
        confidence : (n,) float64 or None
            0 where there is no match; None if confidences are not wanted.
        error : (n,) float64 or None
            Standard errors; None if all are 0.
        """
        if term.is_reading:
            lower, upper = bounds
            possible = lower <= upper
            np.minimum(self._lower, lower, out=self._lower, where=possible)
            np.maximum(self._upper, upper, out=self._upper, where=possible)
        if confidence is None:
            return
        self._sum += term.weight * confidence
        if term.is_reading:
            np.maximum(self._largest, confidence, out=self._largest)
        if error is not None:
            # Estimates with one seed depend on each other: the error of a sum is at most the sum of theirs.
            self._error += abs(term.weight) * error

    def result(self) -> tuple[Int64, Int64, Float64, Float64]:
        """Return ranges, confidences and standard errors; where no reading has a match the range is empty."""
        possible = self._lower <= self._upper
        # No union is below a part of it, or above 1; rounding and estimates may be.
        confidence = np.minimum(np.maximum(self._sum, self._largest), 1.0)
        return (
            np.where(possible, self._lower, 0),
            np.where(possible, self._upper, -1),
            np.where(possible, confidence, 0.0),
            self._error,
        )
