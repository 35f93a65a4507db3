"""Buckets of times: of one length each, or the days of a time zone, of which some have 23 or 25 hours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from uncertain_cep.errors import OptionError
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS, format_duration
from uncertain_cep.timeline.zones import moments_of, shown_by_clocks

__all__ = ["Buckets", "LocalDays", "local_days"]

Int64 = npt.NDArray[np.int64]

_DAY: Final = UNIT_NANOSECONDS["d"]
_LAST_DAY: Final = (date(2037, 12, 31) - date(1970, 1, 1)).days
"""The common part of the lengths of days is looked for up to here, as far as it is known."""
_LAST_MOMENT: Final = 2**63 - 1 - 1000 * _DAY
"""Nanoseconds since 1970 so far before the last ones that buckets around them can be told."""


@dataclass(frozen=True, slots=True)
class LocalDays:
    """Buckets of so many days of a time zone, counted from 1970-01-01; ``tick`` is in nanoseconds.

    A day begins when clocks first show its midnight, or when they go on if they skip it.
    """

    zone: str
    count: int
    tick: int

    def start(self, number: Int64) -> Int64:
        """Return the first tick of buckets, (n,) int64, by their numbers. O(n)."""
        midnight = pa.array(number * self.count, pa.int64()).cast(pa.int32()).cast(pa.date32())
        first, last = moments_of(midnight.cast(pa.timestamp("ns")), self.zone)
        # Of a midnight that clocks skip, the last is when they go on.
        begin = np.where(last - first == 1, last, first)
        if (begin % self.tick).any():
            raise OptionError(
                f"EVERY: some days of {self.zone} begin between two ticks of {format_duration(self.tick)}: "
                "give a shorter tick"
            )
        return begin // self.tick

    def number(self, ticks: Int64) -> Int64:
        """Return the numbers of the buckets that ticks are in, (n,) int64: the last that has begun. O(n)."""
        shown = shown_by_clocks(ticks * self.tick, self.zone).cast(pa.int64())
        number: Int64 = np.asarray(shown) // (_DAY * self.count)
        # Clocks that were set back over midnight show the day before again.
        number = number + (self.start(number + 1) <= ticks)
        return number - (self.start(number) > ticks)

    @property
    def common_length(self) -> int:
        """The longest length, in ticks, that divides all days of the zone from 1970 to 2037."""
        return max(_common_length(self.zone) // self.tick, 1)


@dataclass(frozen=True, slots=True)
class Buckets:
    """Buckets of ``every`` ticks, one beginning at each multiple; or ``days``."""

    every: int
    days: LocalDays | None = None

    def number(self, ticks: Int64) -> Int64:
        """Return the numbers of the buckets that ticks are in, (n,) int64."""
        return ticks // self.every if self.days is None else self.days.number(ticks)

    def start(self, number: Int64) -> Int64:
        """Return the first tick of buckets, (n,) int64, by their numbers."""
        return number * self.every if self.days is None else self.days.start(number)

    def begun(self, tick: int) -> int:
        """Return when the bucket of a tick begins; of a tick that no clock shows, the tick."""
        if self.days is None:
            return tick // self.every * self.every
        if abs(tick) > _LAST_MOMENT // self.days.tick:
            return tick
        return int(self.start(self.number(np.array([tick])))[0])


@lru_cache(maxsize=16)
def _common_length(zone: str) -> int:
    """Return the greatest common divisor of the times at which days begin, nanoseconds."""
    begins = LocalDays(zone, 1, 1).start(np.arange(_LAST_DAY))
    return math.gcd(_DAY, int(np.gcd.reduce(begins)))


def local_days(zone: str | None, every: int, tick: int | None) -> LocalDays | None:
    """Return the days that buckets of ``every`` ticks of ``tick`` nanoseconds are; None for other lengths.

    An OptionError says that days of the zone are no whole ticks.
    """
    if zone is None or tick is None or every * tick % _DAY:
        return None
    days = LocalDays(zone, every * tick // _DAY, tick)
    if _common_length(zone) == _DAY:
        return None
    if _common_length(zone) % tick:
        raise OptionError(
            f"EVERY: days of {zone} begin at multiples of {format_duration(_common_length(zone))}, which is "
            f"no whole number of ticks of {format_duration(tick)}: give a shorter tick"
        )
    return days
