"""What the columns of a raw table may be: stamps, of which form and resolution, and series of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.durations import UNIT_NANOSECONDS
from uncertain_cep.errors import TraceError
from uncertain_cep.timedomain import is_text
from uncertain_cep.traces.faulty_rows import IntArray
from uncertain_cep.traces.instants import counts_of, stamp_kind
from uncertain_cep.traces.time_formats import EPOCHS, TimeFormat

__all__ = [
    "UNITS",
    "StampColumn",
    "names_host",
    "regular_spacing",
    "resolution_of",
    "stamp_column",
    "words_of",
]

UNITS: Final = ("d", "h", "min", "s", "ms", "us", "ns")
"""From the longest."""

_FORMATS: Final = (
    "iso", "%d/%b/%Y:%H:%M:%S %z", "%Y/%m/%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y",
    "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y", "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%d/%m/%Y",
    "%y/%m/%d %H:%M:%S", "%a %b %d %H:%M:%S %Y", "%b %d %Y %H:%M:%S",
)  # fmt: skip
_YEARS: Final = (631_152_000, 4_102_444_800)
"""Seconds since 1970 of 1990 and 2100: numbers between them may be stamps."""

_TRIED: Final = 500
_MOSTLY: Final = 0.8
_FEWEST: Final = 8


@dataclass(frozen=True, slots=True)
class StampColumn:
    """A column of stamps.

    Attributes
    ----------
    name : str
    unit : str or None
        Of numbers.
    formats : tuple of str
        Of text that is not all ISO 8601.
    counts : (n,) int64
        Nanoseconds since 1970, in the order of the rows, of those with a stamp.
    written : tuple of str
        The units that texts are written to, from the longest; of one unit, or no text, just that.
    absent : bool
        Whether numbers of 0 or less stand for no stamp.
    nulls : bool
    """

    name: str
    unit: str | None
    formats: tuple[str, ...]
    counts: IntArray
    written: tuple[str, ...]
    absent: bool
    nulls: bool


def stamp_column(name: str, column: pa.ChunkedArray, format: TimeFormat | None = None) -> StampColumn | None:
    """Return what a column of a table is, if it can be one of stamps; the format of text is looked for."""
    dtype, nulls = column.type, column.null_count > 0
    column = column.drop_null()
    if not len(column):
        return None
    if pa.types.is_timestamp(dtype) or pa.types.is_date(dtype):
        kind = stamp_kind(name, dtype, None)
        counts = counts_of(column, name, kind, None)[0] * (kind.resolution or 1)
        return StampColumn(name, None, (), counts, (resolution_of(counts),), False, nulls)
    if is_text(dtype):
        return _of_text(name, column, nulls, format or _format_of(column))
    if not (pa.types.is_integer(dtype) or pa.types.is_floating(dtype)):
        return None
    numbers = np.asarray(column.cast(pa.float64(), safe=False))
    positive = numbers[numbers > 0]
    for unit in EPOCHS.values():
        per_second = 10**9 // UNIT_NANOSECONDS[unit]
        low, high = (bound * per_second for bound in _YEARS)
        # Other numbers than stamps are below 0, or none.
        if len(positive) and ((positive >= low) & (positive < high)).all():
            whole = pa.types.is_integer(dtype)
            exact = np.asarray(column.cast(pa.int64()) if whole else column.cast(pa.float64()))
            exact = exact[numbers > 0]
            nanoseconds = UNIT_NANOSECONDS[unit]
            counts = (
                exact * nanoseconds if whole else np.rint(exact * nanoseconds / 1000).astype(np.int64) * 1000
            )
            some = (resolution_of(counts),)
            return StampColumn(name, unit, (), counts, some, len(positive) < len(numbers), nulls)
    return None


def _of_text(
    name: str, column: pa.ChunkedArray, nulls: bool, format: TimeFormat | None
) -> StampColumn | None:
    if format is None:
        return None
    try:
        read = format.read(column, name)
    except TraceError:
        return None
    lengths = sorted(set(read.lengths.tolist()), reverse=True)
    written = tuple(dict.fromkeys(_unit_of(length) for length in lengths))
    formats = () if format.formats == ("iso",) else format.formats
    return StampColumn(name, None, formats, read.counts, written, False, nulls)


def _format_of(column: pa.ChunkedArray) -> TimeFormat | None:
    """Return the formats that fit the first texts of a column, if some do."""
    left = column.slice(0, _TRIED).cast(pa.string())
    if not pc.all(pc.match_substring_regex(left, r"[0-9].*[-/.: ]")).as_py():
        return None
    fitting: list[str] = []
    for form in _FORMATS:
        rows = _fitting(left, form)
        if rows.any():
            fitting.append(form)
            left = left.filter(pa.array(~rows))
        if not len(left):
            return TimeFormat(tuple(fitting))
    return None


def _fitting(text: pa.ChunkedArray, form: str) -> Any:
    try:
        return TimeFormat((form,)).read(text, "").present
    except TraceError as error:
        bad = [fault.row for fault in error.faults if fault.row is not None]
        if len(bad) < len(error.faults):
            # More rows than are listed: a format of few of them is none.
            return np.zeros(len(text), np.bool_)
        fits = np.ones(len(text), np.bool_)
        fits[np.array(bad) - 1] = False
        return fits


def resolution_of(counts: IntArray) -> str:
    """Return the longest unit of which all times, (n,) int64 nanoseconds, are whole numbers."""
    common = int(np.gcd.reduce(counts)) if len(counts) else UNIT_NANOSECONDS["d"]
    return _unit_of(common or UNIT_NANOSECONDS["d"])


def _unit_of(nanoseconds: int) -> str:
    return next(unit for unit in UNITS if nanoseconds % UNIT_NANOSECONDS[unit] == 0)


def regular_spacing(series: Sequence[IntArray]) -> int | None:
    """Return the nanoseconds from one stamp of a series to the next, if these are nearly always the same."""
    steps = np.concatenate([np.diff(np.unique(stamps)) for stamps in series] or [np.zeros(0, np.int64)])
    if len(steps) < _FEWEST:
        return None
    usual = int(np.median(steps))
    near = np.abs(steps - usual) <= usual / 20
    if usual < UNIT_NANOSECONDS["s"] or near.mean() < _MOSTLY:
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
