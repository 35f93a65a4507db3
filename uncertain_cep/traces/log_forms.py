"""Find the form of a log, a usual one or what its stamps tell, and the year or day of its times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.timeline.domain import is_text
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS
from uncertain_cep.traces.formats import naming_file
from uncertain_cep.traces.line_layouts import layouts_of
from uncertain_cep.traces.log_presets import RESTS, ColumnType
from uncertain_cep.traces.program_presets import PRESETS
from uncertain_cep.traces.stamp_columns import stamp_column
from uncertain_cep.traces.stamp_shapes import StampShape, likeliest_shapes, stamp_in
from uncertain_cep.traces.stamp_zones import zone_beside, zone_of_all
from uncertain_cep.traces.text_lines import CONTINUATION, record_blocks
from uncertain_cep.traces.time_formats import EPOCHS, TimeFormat, told_with
from uncertain_cep.traces.unpacking import unpacked

__all__ = ["NO_BASE", "TIME", "Base", "LogForm", "base_of", "form_of", "lines_of"]

TIME: Final = "time"
"""The column of the stamps of all forms."""

_DAY: Final = UNIT_NANOSECONDS["d"]
_FARTHEST_ZONE: Final = 14 * UNIT_NANOSECONDS["h"]
_LEAST_SHARE: Final = 0.3
"""Of the lines of a log those that have its form, at least."""
_NEARLY_ALL: Final = 0.9
_MANY: Final = 0.5
"""Of lines with a stamp those that a usual form fits, if it is to be the first."""
_MOST_RECORDS: Final = 1_000
_MONTHS: Final = 12
_YEAR: Final = "(?:19|20)[0-9]{2}"
_DAY_WITH_YEAR: Final = (
    f"(?:^|[^0-9])(?P<year>{_YEAR})[-/.]?(?P<month>0[1-9]|1[0-2])[-/.]?(?P<day>0[1-9]|[12][0-9]|3[01])"
)
_MOST_BASES: Final = 40
"""Years, at most, that a log lies back."""


@dataclass(frozen=True, slots=True)
class LogForm:
    """How the lines of a log are cut into columns.

    Attributes
    ----------
    expressions : tuple of str
        Of ``[extract]``: names of usual forms, and expressions.
    patterns : tuple of str
        The same, without names.
    readings : tuple of tuple of str
        Formats of times; of several readings the usual one first.
    share : float
        Of the records that were looked at, those that have this form.
    types : tuple of (str, str)
        Columns of other types than text.
    parts : bool
        Whether records may be written in parts.
    begins : str or None
        What is found in the first line of each record, where its first letter does not tell.
    since_start : bool
        Whether times are seconds since a start.
    place : str or None
        The zone that stands beside all stamps.
    """

    expressions: tuple[str, ...]
    patterns: tuple[str, ...]
    readings: tuple[tuple[str, ...], ...]
    share: float
    types: tuple[tuple[str, ColumnType], ...] = ()
    parts: bool = False
    begins: str | None = None
    since_start: bool = False
    place: str | None = None

    @property
    def brings_its_begin(self) -> bool:
        """Whether the names of usual forms alone tell where records begin."""
        return {PRESETS[name].begins for name in self.expressions if name in PRESETS} == {self.begins}

    @property
    def is_usual(self) -> bool:
        """Whether all expressions are names of usual forms."""
        return all(name in PRESETS for name in self.expressions)


def form_of(path: Path, encoding: str | None = None) -> LogForm | None:
    """Return the form of a log that most records of a file have, if any; None if its zone is not known."""
    form = _usual_form(path, encoding)
    lines = lines_of(path, encoding)
    if form is None or (form.share < _NEARLY_ALL and form.begins is None):
        form = _general_form(lines, form) or form
    if form is None or form.since_start or any(each in EPOCHS for forms in form.readings for each in forms):
        return form
    is_readable, place = zone_of_all(_zones_beside(lines, form.patterns))
    return replace(form, place=place) if is_readable else None


def _zones_beside(lines: Sequence[str], patterns: Sequence[str]) -> Iterator[str | None]:
    """Yield of each line with a stamp the zone beside it."""
    cut = [re.compile(f"(?s){pattern}") for pattern in patterns if f"(?P<{TIME}>" in pattern]
    for line in lines:
        match = next((match for each in cut if (match := each.search(line)) is not None), None)
        if match is not None and match[TIME] is not None:
            yield zone_beside(line, *match.span(TIME))


def _records(
    path: Path,
    encoding: str | None,
    begins: str | None = None,
    continuation: str | None = CONTINUATION,
) -> pa.ChunkedArray:
    """Return the records that a file begins with."""
    with naming_file(path), unpacked(path, encoding=encoding) as stream:
        blocks: list[pa.Array] = []
        for block in record_blocks(stream, continuation, begins=begins):
            records, _ = block.records()
            blocks.append(records)
            if sum(map(len, blocks)) >= _MOST_RECORDS:
                break
    return pa.chunked_array(blocks, pa.string()).slice(0, _MOST_RECORDS)


def lines_of(path: Path, encoding: str | None) -> list[str]:
    """Return the lines that a file begins with."""
    return [line for line in _records(path, encoding, continuation=None).to_pylist() if line.strip()]


def _fits(records: pa.ChunkedArray, patterns: Sequence[str]) -> float:
    """Return the share of records that some of the expressions fit."""
    fits = np.zeros(len(records), np.bool_)
    for pattern in patterns:
        fits |= np.asarray(pc.match_substring_regex(records, f"(?s){_unnamed(pattern)}"))
    return float(fits.mean()) if len(records) else 0.0


def _unnamed(pattern: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


def _usual_form(path: Path, encoding: str | None) -> LogForm | None:
    """Return the usual form that most records have; None if it is too few of them."""
    records = _records(path, encoding)
    shares = {}
    for name, preset in PRESETS.items():
        # Lines that others would go on with may begin records here.
        apart = records if preset.begins is None else _records(path, encoding, preset.begins)
        shares[name] = _fits(apart, [pattern for pattern in preset.patterns if pattern not in RESTS])
    best = max(shares, key=lambda name: shares[name])
    if shares[best] < _LEAST_SHARE:
        return None
    preset = PRESETS[best]
    return LogForm(
        (best,), preset.patterns, (preset.time_format,), shares[best], preset.types, preset.parts,
        preset.begins, preset.since_start,
    )  # fmt: skip


def _general_form(lines: Sequence[str], usual: LogForm | None) -> LogForm | None:
    """Return the form that the shapes of stamps in lines tell; None if most lines have none.

    A usual form that many of these lines have comes first.
    """
    shapes = likeliest_shapes(lines)
    if not shapes:
        return None
    shapes, apart = _with_other_forms(lines, shapes)
    stamped = [line for line in lines if _has_stamp(line, shapes)]
    expressions: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    unlike = stamped
    if usual is not None:
        fits = [_fits_one(line, usual.patterns) for line in stamped]
        if sum(fits) >= _MANY * len(stamped):
            expressions, patterns = usual.expressions, usual.patterns
            unlike = [line for line, fit in zip(stamped, fits, strict=True) if not fit]
        else:
            usual = None
    general = tuple(layout.expression for layout in layouts_of(unlike, shapes))
    expressions, patterns = (*expressions, *general), (*patterns, *general)
    heads = [_up_to_stamp(layout.expression) for layout in layouts_of(stamped, shapes)]
    heads += [f"^[^0-9A-Za-z]?(?P<{TIME}>{shape.pattern})" for shape in apart]
    begins = [_fits_one(line, heads) for line in lines]
    goes_on = [re.search(CONTINUATION, line) is not None for line in lines]
    readings = _readings(shapes)
    if usual is not None:
        readings = tuple(tuple(dict.fromkeys((*usual.readings[0], *forms))) for forms in readings)
    # Stamps tell where records begin, unless white space does.
    by_stamps = begins != [not on for on in goes_on]
    return LogForm(
        expressions,
        patterns,
        readings,
        1.0 if by_stamps else sum(begins) / len(begins),
        types=() if usual is None else usual.types,
        parts=usual is not None and usual.parts,
        begins="|".join(dict.fromkeys(map(_unnamed, heads))) if by_stamps else None,
        since_start=shapes[0].rank == 0,
    )


def _has_stamp(line: str, shapes: Sequence[StampShape]) -> bool:
    return any(stamp_in(line, shape) is not None for shape in shapes)


def _with_other_forms(
    lines: Sequence[str], shapes: list[StampShape]
) -> tuple[list[StampShape], list[StampShape]]:
    """Return shapes with those at the beginning of other lines, and those that cannot be read with them.

    Lines with a stamp of another form are records, and go on with none. Stamps that tell a zone, and others
    that tell none, cannot be read together.
    """
    unlike = [line for line in lines if not _has_stamp(line, shapes)]
    if not unlike or not shapes[0].readings[0][0].startswith(("%", "iso")):
        return shapes, []
    further = [
        shape
        for shape in likeliest_shapes(unlike)
        if shape.rank == shapes[0].rank
        and any((stamp := stamp_in(line, shape)) is not None and stamp.begin <= 1 for line in unlike)
    ]
    zoned = {shape.tells_zone for shape in (*shapes, *further)}
    return ([*shapes, *further], []) if len(zoned) == 1 else (shapes, further)


def _fits_one(line: str, patterns: Sequence[str]) -> bool:
    return any(re.search(f"(?s){pattern}", line) for pattern in patterns if pattern not in RESTS)


def _up_to_stamp(expression: str) -> str:
    """Return the beginning of an expression, with the group of its stamp."""
    place = expression.index(f"(?P<{TIME}>")
    depth, at, inside = 0, place, False
    while True:
        sign = expression[at]
        if sign == "\\":
            at += 2
            continue
        if inside:
            inside = sign != "]"
        elif sign == "[":
            inside = True
        depth += (sign == "(") - (sign == ")") if not inside else 0
        at += 1
        if depth == 0:
            return expression[:at]


def _readings(shapes: Sequence[StampShape]) -> tuple[tuple[str, ...], ...]:
    """Return the formats of stamps of several shapes, in each order of day and month."""
    count = max(len(shape.readings) for shape in shapes)
    readings = [
        tuple(
            dict.fromkeys(
                form for shape in shapes for form in shape.readings[min(number, len(shape.readings) - 1)]
            )
        )
        for number in range(count)
    ]
    return tuple(dict.fromkeys(readings))


class Base(NamedTuple):
    """The year, or the day, of the first stamp of a log that tells none.

    Attributes
    ----------
    text : str or None
    ahead : bool
        Whether the next one is ruled out by so little that a clock of another time zone would explain it.
    is_told : bool
        Whether the lines tell the year beside their stamps.
    """

    text: str | None
    ahead: bool = False
    is_told: bool = False


NO_BASE: Final = Base(None)


def base_of(path: Path, table: pa.Table, forms: Sequence[str], place: str | None = None) -> Base:
    """Return the year that lines tell, or the latest year, or day, of the first stamp of a log.

    The latest one is that for which no stamp lies after the file's last change.
    """
    column = table.column(TIME)
    if (year := _year_of_lines(table, forms)) is not None:
        return Base(year, is_told=True)
    # Logs have the time of the place where they are written, which may be this one.
    zone = None if place is None else ZoneInfo(place)
    local = datetime.fromtimestamp(path.stat().st_mtime, UTC).astimezone(zone).replace(tzinfo=None)
    changed = np.datetime64(local, "ns")
    for unit, leap in (("Y", "2024"), ("D", "2024-02-29")):
        if not TimeFormat(told_with(forms, leap), leap).fits(column).all():
            continue
        begin, next_late = changed.astype(f"M8[{unit}]"), _DAY
        for _ in range(_MOST_BASES):
            stamps = stamp_column(TIME, column, TimeFormat(told_with(forms, str(begin)), str(begin)))
            late = _DAY if stamps is None else int(stamps.counts.max()) - int(changed.astype(np.int64))
            if late <= 0:
                return Base(str(begin), (late + _DAY if unit == "D" else next_late) <= _FARTHEST_ZONE)
            # All stamps of days move together; a year may lack 29 February.
            back = 1 if unit == "Y" or stamps is None else -(-late // _DAY)
            begin, next_late = (begin.astype(np.int64) - back).astype(f"M8[{unit}]"), late
    return NO_BASE


def _year_of_lines(table: pa.Table, forms: Sequence[str]) -> str | None:
    """Return the year of the first stamp by days in other columns that are the days of the stamps.

    None if fewer than half of the rows have such a day.
    """
    formats = TimeFormat(told_with(forms, "2024"), "2024")
    if told_with(forms, None) or not formats.fits(table.column(TIME)).all():
        return None
    hosts = table.column("host").unique().to_pylist() if "host" in table.column_names else []
    if hosts and all(re.fullmatch(_YEAR, host or "") for host in hosts):
        # In "Feb 28 10:14:22 2024 x" the year stands in the host's place.
        return str(min(hosts))
    stamps = stamp_column(TIME, table.column(TIME), formats)
    if stamps is None or len(stamps.counts) != table.num_rows:
        return None
    days = stamps.counts.astype("M8[ns]").astype("M8[D]")
    months = days.astype("M8[M]").astype(np.int64) % _MONTHS
    # Stamps are in order, so that the year changes where the month goes back by half a year.
    passed = np.cumsum(np.diff(months, prepend=months[:1]) < -_MONTHS // 2)
    years: Counter[int] = Counter()
    for name in table.column_names:
        if name == TIME or not is_text(table.column(name).type):
            continue
        parts = pc.extract_regex(table.column(name), _DAY_WITH_YEAR)
        has_day = pc.is_valid(parts).to_numpy(zero_copy_only=False)
        texts = [
            pc.struct_field(parts.filter(has_day), part).to_pylist() for part in ("year", "month", "day")
        ]
        for row, year, month, day in zip(np.flatnonzero(has_day), *texts, strict=True):
            if (int(month), int(day)) == (days[row].item().month, days[row].item().day):
                years[int(year) - int(passed[row])] += 1
    for year, count in years.most_common(1):
        if count >= _MANY * table.num_rows:
            return str(year)
    return None
