"""How far float64 is trusted. Tests try each at its edge."""

from __future__ import annotations

from typing import Final

PMF_TOLERANCE: Final = 1e-9
"""How far the sum of a probability mass function may be from 1."""

CONFIDENCE_TOLERANCE: Final = 1e-9
"""How far below a threshold, relative to it, a confidence still passes it: what rounding may take off."""

CERTAIN: Final = 1.0 - CONFIDENCE_TOLERANCE
"""Confidence from which a match counts as certain: what ``HAVING CONFIDENCE >= 1`` keeps."""

RANKED_DIGITS: Final = 12
"""Significant digits by which confidences are ranked and tie."""

LARGEST_ESTIMATE: Final = 1e300
"""What estimates are kept below, so that sums of products of them stay finite where it matters."""
