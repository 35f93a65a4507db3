"""Logs of time services, as bounds of one clock, an epoch for each interval between two lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, TraceError, TraceFault, absent_columns
from uncertain_cep.files.special_files import DOWNLOAD, special_kind
from uncertain_cep.traces.faulty_rows import IntArray, row_faults
from uncertain_cep.traces.formats import read_file
from uncertain_cep.traces.instants import counts_of, stamp_kind

__all__ = ["LogFormat", "read_clock_log"]

LogFormat = Literal["chrony", "clockbound", "peerstats"]

_SECOND: Final = 10**9
_DAY: Final = 86_400 * _SECOND
_MODIFIED_JULIAN: Final = 40_587
"""The Modified Julian Day of 1970-01-01."""

_SYSTEM_PEER: Final = 6
"""From this selection on ntpd sets the clock by a peer."""

_CHRONY_FIELDS: Final = 14

Bounds = tuple[int, int, int]
"""A time by the clock, and bounds of its offset, all in nanoseconds."""


@public
def read_clock_log(path: str | Path, format: LogFormat, *, host: str) -> pa.Table:
    """Read what a time service knew of a clock.

    Parameters
    ----------
    path : path
        A text file; for ClockBound a CSV, JSON lines or Parquet file.
    format : {"chrony", "clockbound", "peerstats"}
        ``tracking.log`` of chrony, from version 2.2 on; readings of ClockBound, a row each with the columns
        ``earliest`` and ``latest`` (timestamps, or seconds since 1970); ``peerstats`` of ntpd.
    host : str
        What to call the clock.

    Returns
    -------
    pyarrow.Table
        A row for each interval between two lines: ``host``; ``from`` and ``until``, timestamps by the clock;
        ``offset_lo`` and ``offset_hi``, durations, the least and the most to add to get true time. For
        ``clock_offset(table, epoch=("from", "until"))``; put the tables of several hosts together by
        `pyarrow.concat_tables`.

    Raises
    ------
    TraceError
        If the file cannot be read, or a line is none of the format.
    OptionError
        If there is no such format.

    Notes
    -----
    Each line of chrony bounds the error since the line before, and while it was not synchronised there is no
    bound. ClockBound's are plus and minus half the distance of the two, ntpd's, of the peer that it sets
    the clock by, the offset plus and minus dispersion and half the delay. These two speak of one moment, so
    an interval has whatever the lines at both its ends allow.

    Examples
    --------
    >>> import pathlib
    >>> import tempfile
    >>> import pyarrow as pa
    >>> import pyarrow.parquet as pq
    >>> import uncertain_cep as uc
    >>> log = pathlib.Path(tempfile.mkdtemp()) / "clockbound.parquet"
    >>> pq.write_table(pa.table({"earliest": [1000.0, 1001.0], "latest": [1000.2, 1001.4]}), log)
    >>> (bounds,) = uc.read_clock_log(log, "clockbound", host="h").to_pylist()
    >>> bounds["offset_lo"].microseconds - 10**6, bounds["offset_hi"].microseconds
    (-200000, 200000)
    """
    if format not in _READERS:
        raise OptionError(f"format={format!r}: it is one of {', '.join(_READERS)}")
    if not isinstance(host, str):
        raise OptionError(f"host={host!r}: it is the name of the clock")
    if (kind := special_kind(path)) is not None:
        message = DOWNLOAD if kind == "a URL" else f"it is {kind}: write it to a file"
        raise TraceError(TraceFault(message, file=str(path)))
    readings = np.array(list(_READERS[format](Path(path))), np.int64).reshape(-1, 3)
    begin, end = readings[:-1], readings[1:]
    if format == "chrony":
        # A line without bounds, which are in the wrong order then, is of no use but as a beginning.
        lower, upper = end[:, 1], end[:, 2]
    else:
        lower, upper = np.minimum(begin[:, 1], end[:, 1]), np.maximum(begin[:, 2], end[:, 2])
    back = np.append(False, end[:, 0] < begin[:, 0])
    if back.any():
        message = "the clock was set back here: give the lines before and behind it as two files"
        raise TraceError([_in(path, fault) for fault in row_faults(back, message)])
    kept = (lower <= upper) & (begin[:, 0] < end[:, 0])
    stamps, lengths = pa.timestamp("ns", "UTC"), pa.duration("ns")
    return pa.table(
        {
            "host": pa.repeat(pa.scalar(host, pa.string()), int(kept.sum())),
            "from": pa.array(begin[kept, 0]).cast(stamps),
            "until": pa.array(end[kept, 0]).cast(stamps),
            "offset_lo": pa.array(lower[kept]).cast(lengths),
            "offset_hi": pa.array(upper[kept]).cast(lengths),
        }
    )


def _in(path: str | Path, fault: TraceFault) -> TraceFault:
    return TraceFault(fault.message, str(path), fault.row, fault.column, fault.value, fault.count)


def _lines(path: Path, read: Callable[[list[str]], Bounds | None], what: str) -> Iterator[Bounds]:
    """Yield the bounds that the lines of a file hold."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TraceError(TraceFault(f"this is no text: {error.reason}", file=str(path))) from None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            bounds = read(line.split())
        except (ValueError, IndexError, InvalidOperation, OverflowError):
            message = f"this is no line of {what}"
            raise TraceError(TraceFault(message, file=str(path), row=number, value=line[:80])) from None
        if bounds is not None:
            yield bounds


def _nanoseconds(seconds: str) -> int:
    """Return a number of seconds, as text, in nanoseconds, rounded away from 0."""
    exact = Decimal(seconds) * _SECOND
    return int(exact.to_integral_value("ROUND_UP"))


def _chrony(path: Path) -> Iterator[Bounds]:
    def read(fields: list[str]) -> Bounds | None:
        if not fields or fields[0] == "Date" or fields[0].startswith("="):
            return None
        moment = datetime.fromisoformat(f"{fields[0]}T{fields[1]}").replace(tzinfo=UTC)
        if len(fields) < _CHRONY_FIELDS:
            raise ValueError(fields)
        error = -1 if fields[7] == "?" else _nanoseconds(fields[13])
        return int(moment.timestamp()) * _SECOND, -error, error

    return _lines(path, read, "chrony's tracking.log with its column Max. error")


def _peerstats(path: Path) -> Iterator[Bounds]:
    def read(fields: list[str]) -> Bounds | None:
        day, second, _, status, offset, delay, dispersion = fields[:7]
        if int(status, 16) >> 8 & 7 < _SYSTEM_PEER:
            return None
        moment = (int(day) - _MODIFIED_JULIAN) * _DAY + _nanoseconds(second)
        middle, doubt = Decimal(offset), Decimal(delay) / 2 + Decimal(dispersion)
        low, high = ((middle + sign * doubt) * _SECOND for sign in (-1, 1))
        return moment, int(low.to_integral_value("ROUND_FLOOR")), int(high.to_integral_value("ROUND_CEILING"))

    return _lines(path, read, "ntpd's peerstats")


def _clockbound(path: Path) -> Iterator[Bounds]:
    table = read_file(path)
    columns = []
    absent = [name for name in ("earliest", "latest") if name not in table.column_names]
    if absent:
        raise TraceError(absent_columns(absent, table.column_names, of="file", file=str(path)))
    for name in ("earliest", "latest"):
        values = table.column(name)
        kind = stamp_kind(name, values.type, "s")
        counts, present = counts_of(values, name, kind, "s")
        bad = row_faults(~present, "there is no time", column=name, values=values)
        if bad:
            raise TraceError([_in(path, fault) for fault in bad])
        columns.append(counts * (kind.resolution or 1))
    earliest, latest = columns
    reversed_ = row_faults(
        earliest > latest, "it is after the latest time", column="earliest", values=earliest
    )
    if reversed_:
        raise TraceError([_in(path, fault) for fault in reversed_])
    half: IntArray = (latest - earliest + 1) // 2
    yield from zip(
        (earliest + (latest - earliest) // 2).tolist(), (-half).tolist(), half.tolist(), strict=True
    )


_READERS: Final[dict[str, Callable[[Path], Iterator[Bounds]]]] = {
    "chrony": _chrony,
    "clockbound": _clockbound,
    "peerstats": _peerstats,
}
