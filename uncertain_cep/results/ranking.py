"""How confidences compare: with the threshold of HAVING, and with each other in rankings and ties.

Two ways of computing one confidence may differ in the last bits. What is kept and what comes first must not
depend on them: thresholds leave a relative tolerance, and rankings look at rounded values.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.config.tolerances import CONFIDENCE_TOLERANCE, RANKED_DIGITS

__all__ = ["least_passing", "least_ranked_as", "passing", "ranked"]

Float64 = NDArray[np.float64]

_SMALLEST_EXPONENT: Final = -290
"""Decimal exponent below which scales would leave float64: such confidences rank as they are."""

_EXPONENTS: Final = range(_SMALLEST_EXPONENT, 2)
_POWERS: Final = np.array([float(f"1e{exponent}") for exponent in _EXPONENTS])
_SCALES: Final = np.array([float(f"1e{RANKED_DIGITS - 1 - exponent}") for exponent in _EXPONENTS])


def least_passing(threshold: float) -> float:
    """Return the smallest confidence that ``HAVING CONFIDENCE >= threshold`` keeps."""
    return threshold * (1.0 - CONFIDENCE_TOLERANCE)


def passing(confidence: Float64, threshold: float) -> NDArray[np.bool_]:
    """Return a mask, (n,) bool, of the confidences that ``HAVING CONFIDENCE >= threshold`` keeps."""
    kept: NDArray[np.bool_] = confidence >= least_passing(threshold)
    return kept


def ranked(confidence: Float64) -> Float64:
    """Return confidences, (n,) float64, as rankings compare them: in 12 significant digits, at most 1.

    Notes
    -----
    O(n). The same on every machine: the decimal exponent is found by comparing with powers of ten, not by a
    logarithm, and what follows is one product, one rounding and one quotient. The powers of ten are exact for
    confidences from 1e-11 on.
    """
    places = np.searchsorted(_POWERS, confidence, side="right") - 1
    scales = _SCALES[np.maximum(places, 0)]
    rounded = np.rint(confidence * scales) / scales
    return np.minimum(np.where(places < 0, confidence, rounded), 1.0)


def least_ranked_as(rank: float) -> float:
    """Return a bound below which no confidence ranks as high as ``rank``, a value of :func:`ranked`.

    Rounding moves a confidence by at most half a unit in the last of its digits, which is at most a relative
    ``5 * 10 ** -RANKED_DIGITS``; one more takes in the rounding of this product.
    """
    return rank * (1.0 - 6.0 * 10.0**-RANKED_DIGITS)
