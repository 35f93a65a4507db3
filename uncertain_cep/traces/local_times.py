"""Local times as times in UTC, and which of two an hour means that clocks showed twice.

Clocks that are set back show an hour twice, so a stamp of that hour has two readings. The order of the rows
tells which, where there is one way alone to choose readings so that the rows stand in order.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, Values, row_faults
from uncertain_cep.traces.stamp_remarks import Remark, say

__all__ = ["in_utc", "repeats_hours"]

_FIXED: Final = re.compile(r"(?i)[+-][0-9]{2}:?[0-9]{2}|utc|gmt|z")
_NEVER: Final = -(2**62)


def in_utc(
    counts: IntArray,
    rows: BoolArray,
    zone: str,
    *,
    column: str,
    values: Values,
    in_order: bool | None = False,
) -> tuple[IntArray, IntArray]:
    """Return local times as those of UTC, and how much later each may be.

    Parameters
    ----------
    counts : (n,) int64
        Nanoseconds since 1970, in the order of the rows.
    rows : (n,) bool
        Those of local time; the others are in UTC already.
    zone, column, values
        Of which column they are, and what it holds, for messages.
    in_order : bool or None
        Whether the rows are known to stand in the order of their times. False: they do if that is possible,
        and the other way round is not. None: their order says nothing.

    Returns
    -------
    first : (n,) int64
        Nanoseconds since 1970 in UTC; of two readings the earlier one unless the order tells the later.
    again : (n,) int64
        Nanoseconds from this reading to the later one, 0 where there is no other.

    Warns of stamps with two readings. A TraceError names those that clocks never showed. O(n).
    """
    local = pa.array(counts[rows]).cast(pa.timestamp("ns"))
    try:
        first = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
        last = pc.assume_timezone(local, zone, ambiguous="latest", nonexistent="latest")
    except pa.ArrowInvalid as error:
        raise TraceError(f"column {column!r}: the time zone {zone} is not known here: {error}") from None
    early, late = counts.copy(), counts.copy()
    early[rows], late[rows] = (np.asarray(readings.cast(pa.int64())) for readings in (first, last))
    # Arrow gives the ends of what was skipped.
    never = late - early == 1
    if never.any():
        message = f"clocks of {zone} never showed it, as they were set forward: is the zone right?"
        raise TraceError(row_faults(never, message, column=column, values=values))
    twice = late > early
    if not twice.any():
        return early, late - early
    chosen = None if in_order is None else _in_order(early, late)
    if in_order is False and chosen is not None and _in_order(early[::-1], late[::-1]) is not None:
        chosen = None
    lowest, highest = (early, late) if chosen is None else chosen
    again = highest - lowest
    say(Remark(_twice_message, (column, zone), (int(twice.sum()), int((again > 0).sum()))))
    return lowest, again


def _in_order(early: IntArray, late: IntArray) -> tuple[IntArray, IntArray] | None:
    """Return the earliest and the latest reading of each row by which the rows stand in order; None if none.

    Rows may stand as far out of order as those do that have one reading, up to half an hour.
    """
    twice = late > early
    certain = np.where(twice, _NEVER, early)
    slack = int((np.maximum.accumulate(certain) - certain)[~twice].max(initial=0))
    if slack > int((late - early)[twice].min()) // 2:
        return None
    lowest = _lowest(early, late, slack)
    mirrored = _lowest(-late[::-1], -early[::-1], slack)
    return None if lowest is None or mirrored is None else (lowest, -mirrored[::-1])


def _lowest(early: IntArray, late: IntArray, slack: int) -> IntArray | None:
    """Return the earliest readings, (n,) int64, none before one of an earlier row by more than the slack."""
    twice = np.flatnonzero(late > early)
    chosen = early.copy()
    certain = early.copy()
    certain[twice] = _NEVER
    before = np.maximum.accumulate(certain)
    latest = _NEVER
    for row in twice.tolist():
        earliest = max(latest, int(before[row])) - slack
        if early[row] < earliest:
            chosen[row] = late[row]
        if chosen[row] < earliest:
            return None
        latest = max(latest, int(chosen[row]))
    in_order = (np.maximum.accumulate(chosen) - chosen <= slack).all()
    return chosen if in_order else None


def _twice_message(column: str, zone: str, twice: int, unknown: int) -> str:
    if unknown == twice:
        explanation = "each has both times, equally likely"
    elif unknown:
        ordered = twice - unknown
        explanation = (
            f"the order of the rows tells which for {ordered:,}, and {unknown:,} have both, equally likely"
        )
    else:
        explanation = "the order of the rows tells which"
    return (
        f"{twice:,} stamps of {column} stand for two times, as clocks of {zone} were set back: {explanation}"
    )


def repeats_hours(zone: str | None) -> bool:
    """Tell whether clocks of a zone may show a time twice: not those of a fixed offset."""
    return zone is not None and _FIXED.fullmatch(zone) is None
