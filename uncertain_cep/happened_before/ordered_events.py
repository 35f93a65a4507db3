"""The events of a table as their order needs them: bounds, clocks, sequences, and laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.executor.checked_events import CheckedEvents, equal_values
from uncertain_cep.happened_before.certain_order import CertainOrder
from uncertain_cep.plan import MatchOptions

__all__ = ["OrderedEvents"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class OrderedEvents:
    """The events of a table, checked.

    Attributes
    ----------
    events : CheckedEvents
    order : CertainOrder
    has_own_law, has_law : (n,) bool
        Whether the time of an event by its clock, and its time, are not uniform.
    """

    events: CheckedEvents
    order: CertainOrder
    has_own_law: Mask
    has_law: Mask

    @classmethod
    def of(cls, table: pa.Table, by: Sequence[str], options: MatchOptions) -> OrderedEvents:
        """Return the events of a table, in groups of equal values of some columns.

        Raises
        ------
        TraceError
            With every fault, if they are not those of the model.
        OptionError
            If records of an ordered source overlap.
        """
        events = CheckedEvents.of(table, options)
        times, count = events.times, table.num_rows
        clock, rank = np.full((2, count), -1)
        own_lower, own_upper = times.lower, times.upper
        own_law = np.zeros(count, dtype=np.bool_) if times.pmfs is None else times.pmfs.offset >= 0
        law = own_law.copy()
        if (offsets := times.offsets) is not None:
            clock, low, high = offsets.clock, offsets.low[offsets.clock], offsets.high[offsets.clock]
            own_lower, own_upper = times.lower - low, times.upper - high
            # The sum of two uniform parts, none of which is certain, is not uniform.
            law |= (offsets.law[clock] >= 0) | ((low < high) & (own_lower < own_upper))
            rank = events.ranks("order")
        (group,) = equal_values([events.table], by)
        order = CertainOrder(group, times.lower, times.upper, clock, own_lower, own_upper, rank)
        return cls(events, order, own_law, law)
