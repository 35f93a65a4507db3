"""The columns of a raw table as stamps: their form and resolution, and series of them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, UncertainCepWarning
from uncertain_cep.timeline.domain import is_text
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS
from uncertain_cep.traces.faulty_rows import IntArray
from uncertain_cep.traces.instants import counts_of, stamp_kind
from uncertain_cep.traces.time_formats import EPOCHS, TimeFormat
from uncertain_cep.traces.usual_formats import ZONE, UsualFormat, usual_format

__all__ = [
    "UNITS",
    "StampColumn",
    "clock_of_traces",
    "names_host",
    "regular_spacing",
    "resolution_of",
    "since_start",
    "stamp_column",
    "words_of",
]

UNITS: Final = ("d", "h", "min", "s", "ms", "us", "ns")
"""From the longest."""

_YEARS: Final = (631_152_000, 4_102_444_800)
"""Seconds since 1970 of 1990 and 2100: numbers between them may be stamps."""

_FARTHEST_START: Final = 1e15
"""Microseconds since a start, or since 1970, that nanoseconds can hold: 31 years."""

_MOSTLY: Final = 0.8
_FEWEST: Final = 8
_FEWEST_ALIKE: Final = 2
"""Steps of a series that tell how far apart its stamps are; fewer, if they are all the same."""


@dataclass(frozen=True, slots=True)
class StampColumn:
    """A column of stamps.

    Attributes
    ----------
    name : str
    counts : (n,) int64
        Nanoseconds since 1970, in the order of the rows, of those with a stamp.
    written : tuple of str
        The units that texts are written to, from the longest; of one unit, or no text, just that.
    unit : str or None
        Of numbers.
    formats : tuple of str
        Of text that is not all ISO 8601.
    alternatives : tuple of tuple of str
        Formats that fit all texts, too, with day and month in another order.
    in_order : bool
        Whether the times are in order by ``formats`` alone, and not by ``alternatives``.
    in_past : bool
        Whether by ``formats`` alone no time lies behind the last change of the files.
    zoned : bool
        Whether stamps tell their time zone.
    days : bool
        Whether stamps are days, without a time of day.
    absent : bool
        Whether numbers of 0 or less stand for no stamp.
    nulls : bool
    zone : str or None
        The time zone of all stamps that tell one, if others tell none.
    since_start : bool
        Whether numbers are times since a start.
    columns : tuple of str
        Those that the stamps are put together of, if these are several.
    """

    name: str
    counts: IntArray
    written: tuple[str, ...]
    unit: str | None = None
    formats: tuple[str, ...] = ()
    alternatives: tuple[tuple[str, ...], ...] = ()
    in_order: bool = False
    in_past: bool = False
    zoned: bool = True
    days: bool = False
    absent: bool = False
    nulls: bool = False
    zone: str | None = None
    since_start: bool = False
    columns: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name of the column, or of the first one."""
        return self.columns[0] if self.columns else self.name


def stamp_column(
    name: str,
    column: pa.ChunkedArray,
    format: TimeFormat | UsualFormat | None = None,
    latest: int | None = None,
) -> StampColumn | None:
    """Return a column of a table as stamps, if it can be such; the format of text is looked for.

    Where the order of day and month is open, one by which no stamp lies behind ``latest``, in nanoseconds,
    comes first.
    """
    dtype, nulls = column.type, column.null_count > 0
    column = column.drop_null()
    if not len(column):
        return None
    if pa.types.is_timestamp(dtype) or pa.types.is_date(dtype):
        kind = stamp_kind(name, dtype, None)
        counts = counts_of(column, name, kind, None)[0] * (kind.resolution or 1)
        zoned = pa.types.is_timestamp(dtype) and dtype.tz is not None
        written = (resolution_of(counts),)
        return StampColumn(name, counts, written, zoned=zoned, days=pa.types.is_date(dtype), nulls=nulls)
    if is_text(dtype):
        return _of_text(name, column, nulls, format, latest)
    if pa.types.is_integer(dtype) or pa.types.is_floating(dtype):
        days = _of_days(name, column, nulls) if pa.types.is_integer(dtype) else None
        return days or _of_numbers(name, column, nulls)
    return None


def _of_numbers(name: str, column: pa.ChunkedArray, nulls: bool) -> StampColumn | None:
    numbers = np.asarray(column.cast(pa.float64(), safe=False))
    positive = numbers[numbers > 0]
    for unit in EPOCHS.values():
        nanoseconds = UNIT_NANOSECONDS[unit]
        low, high = (bound * (10**9 // nanoseconds) for bound in _YEARS)
        # Other numbers than stamps are below 0, or none.
        if len(positive) and ((positive >= low) & (positive < high)).all():
            if pa.types.is_integer(column.type):
                counts = np.asarray(column.cast(pa.int64()))[numbers > 0] * nanoseconds
            else:
                counts = np.rint(positive * nanoseconds / 1000).astype(np.int64) * 1000
            absent = len(positive) < len(numbers)
            return StampColumn(name, counts, (resolution_of(counts),), unit, absent=absent, nulls=nulls)
    return None


def clock_of_traces(names: Sequence[str]) -> str | None:
    """Return the column of times, in us since a start, of events of the Trace Event Format; None of others.

    Chrome, Perfetto, PyTorch and clang write it.
    """
    for name in names:
        within, _, field = name.rpartition(".")
        before = f"{within}." if within else ""
        if field == "ts" and {f"{before}ph", f"{before}pid"} <= {*names}:
            return name
    return None


def since_start(name: str, column: pa.ChunkedArray) -> StampColumn | None:
    """Return a column of numbers as times in us since a start; None if it holds others than these."""
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return None
    numbers = np.asarray(column.drop_null().cast(pa.float64(), safe=False))
    if not len(numbers) or (numbers < 0).any() or (numbers > _FARTHEST_START).any():
        return None
    counts = np.rint(numbers * UNIT_NANOSECONDS["us"]).astype(np.int64)
    written = (resolution_of(counts),)
    return StampColumn(name, counts, written, "us", since_start=True, nulls=column.null_count > 0)


def _of_text(
    name: str,
    column: pa.ChunkedArray,
    nulls: bool,
    format: TimeFormat | UsualFormat | None,
    latest: int | None = None,
) -> StampColumn | None:
    usual = usual_format(column) if format is None else format
    if usual is None and _NUMBER.search(name):
        usual = _epochs(column)
    if isinstance(usual, TimeFormat):
        usual = UsualFormat(usual)
    if usual is None:
        return None
    try:
        # What is only tried is nothing to warn of.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UncertainCepWarning)
            readings = [(each, each.read(column, name)) for each in (usual.format, *usual.alternatives)]
    except TraceError:
        return None
    # Rows are in order of time more often than not.
    ordered = [pair for pair in readings if _in_order(pair[1].counts)]
    in_order = len(readings) > 1 and len(ordered) == 1
    past = [pair for pair in readings if latest is None or int(pair[1].counts.max()) <= latest] or readings
    chosen, read = ordered[0] if in_order else past[0]
    lengths = sorted(set(read.lengths.tolist()), reverse=True)
    return StampColumn(
        name,
        read.counts,
        tuple(dict.fromkeys(_unit_of(length) for length in lengths)),
        formats=() if chosen.formats == ("iso",) else chosen.formats,
        alternatives=tuple(each.formats for each, _ in readings if each is not chosen),
        in_order=in_order,
        in_past=len(past) == 1 < len(readings) and chosen is past[0][0],
        zoned=bool(pc.any(pc.match_substring_regex(column, ZONE)).as_py()),
        days=lengths == [UNIT_NANOSECONDS["d"]],
        nulls=nulls,
    )


_NUMBER: Final = re.compile(r"(?i)time|date|stamp|nano|milli|epoch|(?:^|_|[a-z.])(?:ts|at)$")
"""What names of columns have in them whose numbers may be times though they are text, or days."""


def _epochs(column: pa.ChunkedArray) -> UsualFormat | None:
    """Return the format of texts that are numbers since 1970."""
    for form, unit in EPOCHS.items():
        digits = len(str(10**9 // UNIT_NANOSECONDS[unit])) + 9
        expression = rf"^[0-9]{{{digits}}}(?:[.,][0-9]{{1,9}})?$"
        if pc.all(pc.match_substring_regex(column, expression)).as_py():
            return UsualFormat(TimeFormat((form,)))
    return None


def _of_days(name: str, column: pa.ChunkedArray, nulls: bool) -> StampColumn | None:
    """Return whole numbers such as 20240531, and 20240531100000, if their name and all of them say so."""
    text = column.cast(pa.string())
    for digits, form in ((6, "%Y%m%d"), (12, "%Y%m%d%H%M%S")):
        fits = pc.match_substring_regex(text, f"^(?:19|20)[0-9]{{{digits}}}$")
        if _NUMBER.search(name) and pc.all(fits).as_py():
            return _of_text(name, text, nulls, TimeFormat((form,)))
    return None


def _in_order(counts: IntArray) -> bool:
    steps = np.diff(counts)
    return bool((steps >= 0).all() or (steps <= 0).all())


def resolution_of(counts: IntArray) -> str:
    """Return the longest unit of which all times, (n,) int64 nanoseconds, are whole numbers."""
    common = int(np.gcd.reduce(counts)) if len(counts) else UNIT_NANOSECONDS["d"]
    return _unit_of(common or UNIT_NANOSECONDS["d"])


def _unit_of(nanoseconds: int) -> str:
    return next(unit for unit in UNITS if nanoseconds % UNIT_NANOSECONDS[unit] == 0)


def regular_spacing(series: Sequence[IntArray]) -> int | None:
    """Return the nanoseconds from one stamp of a series to the next, if these are nearly always the same."""
    steps = np.concatenate([np.diff(np.unique(stamps)) for stamps in series] or [np.zeros(0, np.int64)])
    if len(steps) < _FEWEST_ALIKE:
        return None
    usual = int(np.median(steps))
    near = np.abs(steps - usual) <= usual / 20
    share = _MOSTLY if len(steps) >= _FEWEST else 1.0
    if usual < UNIT_NANOSECONDS["s"] or near.mean() < share:
        return None
    # A minute, not 59.98 s.
    for unit in ("d", "h", "min", "s"):
        whole = round(usual / UNIT_NANOSECONDS[unit])
        if whole and abs(usual - whole * UNIT_NANOSECONDS[unit]) <= usual / 20:
            return whole * UNIT_NANOSECONDS[unit]
    return usual


_UNIT_WORDS: Final = frozenset(
    ("time", "timestamp", "ts", "at", "date", "unix", "nano", "nanos", "ms", "us", "ns", "s", "millis")
)


def words_of(name: str) -> list[str]:
    """Return the words of a name, in small letters, without those that only say that it is a time."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)
    return [word.lower() for word in words if word.lower() not in _UNIT_WORDS]


_HOSTS: Final = ("host", "hostname", "node", "machine", "server", "pod", "instance", "executor")


def names_host(name: str) -> bool:
    """Tell whether a column of this name holds names of hosts, or where else clocks are."""
    words = words_of(name) or [name.lower()]
    return words[-1] in _HOSTS or (words[-1] == "name" and words[0] in _HOSTS)
