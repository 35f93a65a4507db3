"""Time zones: what clocks of a place show, and which moments they mean by it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import OptionError

__all__ = ["check_zone", "known_zone", "moments_of", "part_begins", "shown_by_clocks"]

Int64 = npt.NDArray[np.int64]

_OF_DAYS: Final = ("day", "week", "month", "quarter", "year")
"""Parts of time that are whole days."""


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
    """Return the local times of moments, nanoseconds since 1970, as timestamps without a zone."""
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

    Of an hour that clocks show twice each turn begins anew; a day, or longer, begins when they first show its
    midnight. What begins at a time that clocks skip begins when they go on.
    """
    floored = pc.floor_temporal(shown_by_clocks(nanoseconds, zone), unit=part)
    first, last = moments_of(floored, zone)
    if part in _OF_DAYS:
        return np.where(last - first == 1, last, first)
    return np.where(last <= nanoseconds, last, first)
