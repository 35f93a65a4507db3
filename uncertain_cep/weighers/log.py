"""Counts of the matches that each weigher took, and their estimated cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.weighers.weigher import Weigher

__all__ = ["WeigherUse", "WeighingLog"]

Float64 = NDArray[np.float64]


@dataclass(slots=True)
class WeigherUse:
    """The matches that one weigher took."""

    matches: int = 0
    nanoseconds: float = 0.0
    """Estimated, of all of them."""
    others: dict[str, float] = field(default_factory=dict)
    """ns. For other weighers that can take some of the matches what one of these costs, at least."""


@dataclass(slots=True)
class WeighingLog:
    """The uses of all weighers, in the order in which they were first used."""

    uses: dict[str, WeigherUse] = field(default_factory=dict)

    def add(self, weighers: Sequence[Weigher], taker: int, prices: Float64) -> None:
        """Add matches that a weigher took; ``prices`` are (weighers, k) float64, NaN where not computed."""
        use = self.uses.setdefault(weighers[taker].name, WeigherUse())
        use.matches += prices.shape[1]
        use.nanoseconds += float(prices[taker].sum())
        for weigher, price in zip(weighers, prices, strict=True):
            known = np.where(np.isnan(price), max(weigher.priced_above, 0.0), price)
            known = known[np.isfinite(known)]
            if weigher is not weighers[taker] and len(known):
                cheapest = use.others.get(weigher.name, np.inf)
                use.others[weigher.name] = min(cheapest, float(known.min()))
