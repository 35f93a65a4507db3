"""Partially ordered events: which of them have happened is an ideal of the order, swept tick by tick."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.partial_order.times import BETWEEN, LEADING, TRAILING
from eventbased.gaps.set_gaps import SetConfidences
from uncertain_cep.plan.event_order import InSets
from uncertain_cep.query.branches import PartialOrder
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.weigher import Declined, price_of_sweeps

__all__ = ["Ideals", "order_confidences"]

Float64 = NDArray[np.float64]

_PLACES: Final = {"leading": LEADING, "between": BETWEEN, "trailing": TRAILING}


def order_confidences(
    order: PartialOrder, kleene: NDArray[np.bool_], window: int, rows: int, most_steps: float
) -> SetConfidences:
    """Return the engine for confidences of partially ordered components."""
    gaps = list(dict.fromkeys(order.gaps))
    return SetConfidences(
        order.before,
        (kleene & ~np.array(order.is_set)).tolist(),
        [(_PLACES[gap.place], gap.after, gap.before) for gap in gaps],
        np.array([gaps.index(gap) for gap in order.gaps], dtype=np.int64),
        window,
        rows,
        most_steps,
    )


class Ideals:
    """Sweeps over the ticks, whose states are the ideals of the order."""

    name = "ideals"
    why = "takes sets and partial orders without conditions on times: a sweep over ticks, ideals as states"
    priced_above = 0.0
    takes_all = False

    def __init__(self, pattern: MatchPattern, order: PartialOrder) -> None:
        self._pattern = pattern
        kleene = np.array([part.kleene for part in pattern.plan.components], dtype=np.bool_)
        self._kernel = order_confidences(
            order, kleene, pattern.window, pattern.rows, pattern.limits.most_steps
        )

    @classmethod
    def of(cls, pattern: MatchPattern) -> Ideals | None:
        """Return the weigher for the matches of a pattern; None for sequences and conditions on times."""
        order = pattern.plan.event_order
        if not isinstance(order, InSets) or pattern.has_time_literals:
            return None
        return cls(pattern, order.order)

    def price(self, model: MatchModel) -> Float64:
        """Return the ticks of all events, (k,) float64: what one step of a sweep costs, at least."""
        return price_of_sweeps(model, overlaps=False)

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        """Fill the answers of matches; return those whose order has too many ideals, or takes too long."""
        declined: dict[int, float] = {}
        assert model.pools is not None
        assert model.scratch is not None
        assert self._pattern.conditions is not None
        out.std_error[:] = 0.0
        self._kernel.describe(
            model.matches, model.candidates, model.offsets, model.pools, self._pattern.rules.negated,
            self._pattern.conditions, model.pmfs, model.wanted, model.scratch, out[:3], model.held, declined,
        )  # fmt: skip
        limit = self._pattern.limits.most_steps
        return {n: (steps, limit) for n, steps in declined.items()}
