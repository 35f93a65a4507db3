"""The events of a stream that may be needed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.config import NEVER
from uncertain_cep.candidates.selection import reach_of
from uncertain_cep.config.tuning import FEW_HELD
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.negated_reach import negated_reach

__all__ = ["RecentEvents", "reach_back"]

Int64 = NDArray[np.int64]


def reach_back(plan: EvaluationPlan) -> int:
    """Return how many ticks, beside the longest interval, an event may end before a match and matter to it.

    Let a match end at T or later in a world, all intervals be at most L, and W be the window. Then its first
    event can happen at T - W + 1 or later, so it begins at T - W + 1 - L or later. An event in one of its
    gaps ends behind that; in a leading gap, which begins W - 1 ticks before the last event at the earliest,
    behind T - 2 (W - 1) - L. One beside a set ends as much earlier as it can be before its match.
    """
    return sum(reach_of(plan)) - negated_reach(plan).behind


class RecentEvents:
    """The events on time whose intervals end at ``horizon`` or later, in the order of arrival.

    Attributes
    ----------
    horizon : int
        Ticks: all such events are held.
    longest : int
        The longest interval, ticks.
    """

    def __init__(self, schema: pa.Schema, largest: int) -> None:
        self._schema = schema
        self._tables: list[pa.Table] = []
        self._bounds: list[Int64] = []
        self._alone: list[Mapping[str, Any]] = []
        self._bounds_alone: list[tuple[int, int]] = []
        self._settled = 0
        self._size = 0
        self.horizon, self.longest = NEVER, largest

    def __len__(self) -> int:
        return self._size + len(self._alone)

    def take(self, table: pa.Table, lower: Int64, upper: Int64) -> None:
        """Take events with their intervals, (n,) int64, ticks."""
        if table.num_rows:
            self._gather()
            self._add(table, np.array([lower, upper]))

    def take_few(self, events: Sequence[Mapping[str, Any]], intervals: Sequence[tuple[int, int]]) -> None:
        """Take events by their plain values."""
        self._alone += map(dict, events)
        self._bounds_alone += intervals

    def forget(self, before: int) -> None:
        """Drop the events that end before a tick, if that is worth it."""
        if len(self) <= 2 * self._settled + FEW_HELD or before <= self.horizon:
            return
        table, lower, upper = self.events()
        kept = upper >= before
        self._tables, self._bounds, self._size = [], [], 0
        self._add(table.filter(pa.array(kept)), np.array([lower[kept], upper[kept]]))
        self.horizon, self._settled = before, self._size

    def events(self) -> tuple[pa.Table, Int64, Int64]:
        """Return the events, and their intervals."""
        self._gather()
        table = pa.concat_tables([self._schema.empty_table(), *self._tables])
        lower, upper = np.concatenate([np.zeros((2, 0), dtype=np.int64), *self._bounds], axis=1)
        return table, lower, upper

    def _gather(self) -> None:
        if self._alone:
            table = pa.Table.from_pylist(self._alone, schema=self._schema)
            self._add(table, np.array(self._bounds_alone).T)
            self._alone, self._bounds_alone = [], []

    def _add(self, table: pa.Table, bounds: Int64) -> None:
        self._tables.append(table)
        self._bounds.append(bounds)
        self._size += table.num_rows
        self.longest = max(self.longest, int((bounds[1] - bounds[0]).max(initial=0)))
