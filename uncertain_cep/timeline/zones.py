"""Time zones: what clocks of a place show, and which moments they mean by it."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import OptionError, warn
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS

__all__ = ["check_zone", "known_zone", "moments_of", "part_begins", "shown_by_clocks"]

Int64 = npt.NDArray[np.int64]

_OF_DAYS: Final = ("day", "week", "month", "quarter", "year")
"""Parts of time that are whole days."""


_LAST_KNOWN: Final = (date(2038, 1, 1) - date(1970, 1, 1)).days * UNIT_NANOSECONDS["d"]


def known_zone(zone: str) -> bool:
    """Tell whether a time zone is known on this machine."""
    try:
        pc.assume_timezone(pa.array([0]).cast(pa.timestamp("s")), zone)
    except pa.ArrowInvalid:
        return False
    return True


def check_zone(zone: Any) -> None:
    """Raise OptionError if what an option gives is no time zone, and not None."""
    if zone is not None and not (isinstance(zone, str) and known_zone(zone)):
        raise OptionError(f"zone={zone!r} is no time zone: write a name such as Europe/Prague, or +02:00")


def shown_by_clocks(nanoseconds: Int64, zone: str) -> pa.Array:
    """Return the local times of moments, nanoseconds since 1970, as timestamps without a zone.

    Arrow knows when clocks are set up to 2037, and warns of nothing: this does.
    """
    if len(nanoseconds) and nanoseconds.max() >= _LAST_KNOWN and not zone.startswith(("+", "-")):
        warn(
            f"when clocks of {zone} are set is known up to 2037, and there are later times: their hours and "
            "days are those without summer time"
        )
    return pc.local_timestamp(pa.array(nanoseconds).cast(pa.timestamp("ns", zone)))


def moments_of(local: pa.Array, zone: str) -> tuple[Int64, Int64]:
    """Return the first and the last moment at which clocks of a zone show times, nanoseconds since 1970.

    Of times that clocks skip, the first is the last nanosecond before, and the last is when they go on.
    """
    first = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
    last = pc.assume_timezone(local, zone, ambiguous="latest", nonexistent="latest")
    return np.asarray(first.cast(pa.int64())), np.asarray(last.cast(pa.int64()))


def part_begins(nanoseconds: Int64, part: str, zone: str) -> Int64:
    """Return when the hours, days, weeks (...) of a zone begin that moments are in, nanoseconds since 1970.

    An hour, or shorter, begins anew where clocks are set back; a day, or longer, begins when they first show
    its midnight. What begins at a time that clocks skip begins when they go on.
    """
    shown = shown_by_clocks(nanoseconds, zone)
    first, last = moments_of(pc.floor_temporal(shown, unit=part), zone)
    if part in _OF_DAYS:
        return np.where(last - first == 1, last, first)
    begin = np.where(last <= nanoseconds, last, first)
    behind = np.flatnonzero(_ahead(begin, zone) > np.asarray(shown.cast(pa.int64())) - nanoseconds)
    if len(behind):
        begin[behind] = _set_back(begin[behind], nanoseconds[behind], zone)
    return begin


def _ahead(nanoseconds: Int64, zone: str) -> Int64:
    """Return by how much clocks of a zone are ahead of UTC at moments, nanoseconds."""
    return np.asarray(shown_by_clocks(nanoseconds, zone).cast(pa.int64())) - nanoseconds


def _set_back(before: Int64, after: Int64, zone: str) -> Int64:
    """Return when clocks were set back between moments, to a second, of which each pair has one such time."""
    second = UNIT_NANOSECONDS["s"]
    low, high = before // second, after // second
    ahead = _ahead(high * second, zone)
    while (high - low > 1).any():
        middle = (low + high) // 2
        is_before = _ahead(middle * second, zone) > ahead
        low, high = np.where(is_before, middle, low), np.where(is_before, high, middle)
    return high * second
