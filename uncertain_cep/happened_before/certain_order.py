"""The order of events as far as their bounds, clocks and sequences decide it.

Let ``x I y`` say that x ends before y begins, by the bounds of their times, and ``x S y`` that both are of
one clock and x is before y by their own times and sequences, whatever the offset of the clock is. As offsets
of different clocks are independent, x is before y in all worlds iff ``x I y`` or ``x S y``: R, the union of
both. R is transitive, as "before in all worlds" is. So a pair of R is a cover unless some z has ``x R z`` and
``z R y``. Each of the two steps is one of I or S, which makes four cases, each of them one look at the
smallest end behind x, or at the largest begin before y. A cover of R that is a pair of I is a cover of I, and
likewise of S: no others need be looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.happened_before.interval_orders import IntervalOrder, Pairs, one_scale

__all__ = ["CertainOrder"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

_NO_TIE: int = np.iinfo(np.int64).max
"""The rank of an event without a sequence, where it is looked at as the earlier one of a tie."""


@dataclass(frozen=True)
class CertainOrder:
    """The bounds, clocks and sequences that decide the order of n events.

    Attributes
    ----------
    group : (n,) int64
        Only events of one group are put in order; -1: of no group.
    lower, upper : (n,) int64
        Bounds of their times, ticks.
    clock : (n,) int64
        -1: none.
    own_lower, own_upper : (n,) int64
        Bounds of their times by their clock.
    rank : (n,) int64
        In order as the sequences of a clock's events are; -1: none.
    """

    group: Int64
    lower: Int64
    upper: Int64
    clock: Int64
    own_lower: Int64
    own_upper: Int64
    rank: Int64

    @cached_property
    def by_bounds(self) -> IntervalOrder:
        """The order I."""
        return IntervalOrder(self.group, self.lower, self.upper)

    @cached_property
    def has_clocks(self) -> bool:
        """Whether any event has a clock."""
        return bool((self.clock >= 0).any())

    @cached_property
    def by_clock(self) -> IntervalOrder:
        """The order S: intervals of (own tick, sequence)."""
        has_clock = (self.clock >= 0) & (self.group >= 0)
        (group,) = one_scale((self.group, self.clock))
        low, high = one_scale(
            (self.own_lower, self.rank), (self.own_upper, np.where(self.rank < 0, _NO_TIE, self.rank))
        )
        return IntervalOrder(np.where(has_clock, group, -1), low, high)

    def share_clock(self, x: Int64, y: Int64) -> Mask:
        """Return whether events are of one clock, (k,) bool."""
        same: Mask = (self.clock[x] == self.clock[y]) & (self.clock[x] >= 0)
        return same

    def is_before(self, x: Int64, y: Int64) -> Mask:
        """Return whether one event of a pair is before the other one in all worlds, (k,) bool."""
        before: Mask = self.upper[x] < self.lower[y]
        if self.has_clocks:
            by_clock = self.by_clock
            before |= self.share_clock(x, y) & (by_clock.high[x] < by_clock.low[y])
        return before

    def pairs_within(self, slack: int | None) -> Pairs:
        """Return the pairs with at most so much between their bounds; None: all pairs."""
        return self.by_bounds.pairs(slack)

    def open_pairs(self) -> Pairs:
        """Return the pairs that are in no order in all worlds, the one that begins first as x.

        Those of one clock overlap by it, and so they do by their bounds: one offset moves both.
        """
        if not self.has_clocks:
            return self.by_bounds.pairs()
        x, y = (
            np.concatenate(rows) for rows in zip(self._across_clocks(), self.by_clock.pairs(), strict=True)
        )
        return x, y

    def _across_clocks(self) -> Pairs:
        """Return the pairs of different clocks whose bounds overlap."""
        _, group = np.unique(self.group, return_inverse=True)
        group = group.reshape(-1)
        # Groups of one clock alone have none.
        low, high = np.full(group.max(initial=0) + 1, _NO_TIE), np.full(group.max(initial=0) + 1, -1)
        np.minimum.at(low, group, self.clock)
        np.maximum.at(high, group, self.clock)
        has_some = (low < high) | (low < 0)
        x, y = IntervalOrder(np.where(has_some[group], self.group, -1), self.lower, self.upper).pairs()
        differ = ~self.share_clock(x, y)
        return x[differ], y[differ]

    def covers(self) -> Pairs:
        """Return the pairs (x, y) with x before y in all worlds, and no event between them in all worlds."""
        if not self.has_clocks:
            return self.by_bounds.covers()
        parts = [self.by_bounds.covers(), self.by_clock.covers()]
        x, y = (np.concatenate(rows) for rows in zip(*parts, strict=True))
        # A pair of both orders is listed once.
        _, first = np.unique(x * len(self.group) + y, return_index=True)
        x, y = x[first], y[first]
        left = ~self._has_between(x, y)
        return x[left], y[left]

    def _has_between(self, x: Int64, y: Int64) -> Mask:
        """Return whether some z is behind x and before y in all worlds, for pairs of R."""
        bounds, by_clock = self.by_bounds, self.by_clock
        between: Mask = bounds.smallest_behind(self.upper)[x] < self.lower[y]
        between |= by_clock.smallest_behind(self.upper)[x] < self.lower[y]
        same = self.share_clock(x, y)
        between |= same & (by_clock.smallest_behind(by_clock.high)[x] < by_clock.low[y])
        # The mirror image: ~ turns the order of whole numbers round.
        mirrored = IntervalOrder(by_clock.group, ~by_clock.high, ~by_clock.low)
        between |= ~mirrored.smallest_behind(~self.lower)[y] > self.upper[x]
        return between
