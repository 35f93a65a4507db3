"""Bounds on the times of matches beside those of their pattern, each match with its own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.flat_lists import starts_of
from confidence.timed.bounds import UNBOUND
from confidence.timed.forbidden_tables import OTHER, Others

__all__ = ["Beside", "EarlierTick", "EndOfEvent", "TimeDifference"]

Int64 = NDArray[np.int64]


class EndOfEvent(NamedTuple):
    """A time of a match: of the one event of a component, and of one that lasts its begin or its end."""

    component: int
    at_end: bool


class TimeDifference(NamedTuple):
    """Bounds of the difference of two times of each match.

    Attributes
    ----------
    later, earlier : EndOfEvent
    low, high : (k,) int64
        The one time less the other one, ticks.
    """

    later: EndOfEvent
    earlier: EndOfEvent
    low: Int64
    high: Int64

    def some(self, which: Int64) -> TimeDifference:
        """Return the bounds of some of the matches, (m,) int64."""
        return self._replace(low=self.low[which], high=self.high[which])


class EarlierTick(NamedTuple):
    """A tick for each match that is before a time of it: one of an interval, all alike likely.

    Attributes
    ----------
    time : EndOfEvent
    first, last : (k,) int64
        The interval, inclusive.
    """

    time: EndOfEvent
    first: Int64
    last: Int64

    def some(self, which: Int64) -> EarlierTick:
        """Return the intervals of some of the matches, (m,) int64."""
        return self._replace(first=self.first[which], last=self.last[which])

    def among(self, forbidden: Others, time: int) -> Others:
        """Return the forbidden events with one more of each match, behind its own: at or behind a time."""
        stop = forbidden.start[1:]
        rules = forbidden.rule_start[stop]
        number, columns = len(forbidden.constraints), max(forbidden.sides.shape[1], 1)
        sides = np.zeros((number + 1, columns, 2), dtype=np.int64)
        sides[:number, : forbidden.sides.shape[1]] = forbidden.sides
        sides[number, 0] = OTHER, time

        def bounds(of_rules: Int64, of_time: int, free: int) -> Int64:
            wide = np.full((len(of_rules), columns), free)
            wide[:, : of_rules.shape[1]] = of_rules
            row = np.full(columns, free)
            row[0] = of_time
            return _inserted(wide, rules, row)

        return Others(
            forbidden.start + np.arange(len(forbidden.start)),
            _inserted(forbidden.lower, stop, self.first),
            _inserted(forbidden.upper, stop, self.last),
            _inserted(forbidden.offset, stop, -1),
            starts_of(_inserted(np.diff(forbidden.rule_start), stop, 1)),
            _inserted(forbidden.rule, rules, number),
            sides,
            np.append(forbidden.constraints, 1),
            bounds(forbidden.low, 0, -UNBOUND),
            bounds(forbidden.high, UNBOUND, UNBOUND),
        )


Beside = TimeDifference | EarlierTick


def _inserted(values: Int64, places: Int64, further: Any) -> Int64:
    """Return values with further ones in front of those at some places."""
    return np.insert(values, places, further, axis=0)
