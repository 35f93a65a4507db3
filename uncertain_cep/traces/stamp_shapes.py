"""Stamps in lines of text, by their shape alone: where they stand, and in which formats they are written.

A shape is a day, a gap and a time of day, or a number since 1970 or since a start. It counts where nothing
beside it could belong to it, within the first characters of a line.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

from uncertain_cep.traces.stamp_zones import UTC_ZONE, apart, zone_beside
from uncertain_cep.traces.written_names import ENGLISH_MONTHS, MONTH_NAMES, ZONES, any_name

__all__ = ["REACH", "LineStamp", "StampShape", "likeliest_shapes", "stamp_in", "unread_zone"]

REACH: Final = 60
"""Characters of a line within which its stamp begins."""
_NEAR: Final = 30
"""Characters behind a time of day within which a day belongs to it."""

_MONTH: Final = "[A-Za-z\u00c0-\u017e\u0400-\u04ff]{3,13}"
_WEEKDAY: Final = "[A-Z][a-z]{2,8}"
_MONTH_NAMES: Final = any_name(MONTH_NAMES)
_ENGLISH: Final = any_name(ENGLISH_MONTHS)
_WEEKDAY_NAMES: Final = "(?i:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
"""Names, as they are looked for; expressions that are written for others to read have any word there."""
_OFFSET: Final = "[+-](?:0[0-9]|1[0-4]):?(?:00|15|30|45)"
_ZONE: Final = rf"(?:Z|{'|'.join(sorted(ZONES, key=len, reverse=True))}|{_OFFSET})"
_HOURS: Final = "[+-](?:0[0-9]|1[0-4])"
"""An offset of whole hours, right behind a time."""
_USUAL_ZONE: Final = f"(?:Z|UTC|GMT|{_OFFSET})"
_NAMED_ZONE: Final = "[A-Z]{3,4}"
_YEAR_BEHIND: Final = re.compile(r" [A-Za-z][A-Za-z0-9_/+-]* (?:19|20)[0-9]{2}(?![0-9./:-])")
_UNREAD_DAY: Final = re.compile(
    r"(?:[0-9]{1,2}(?:st|nd|rd|th|\.)?[-/ ]*(?:de |of )?[^\W\d_]{3,}\.?[-/, ]*(?:de )?(?:[0-9]{4}|[0-9]{2})"
    r"[\sT,:]+(?:at )?"
    r"|(?:(?<![0-9])[0-9]{4}\D{1,3}[0-9]{1,2}\D{1,3}[0-9]{1,2}|(?<![0-9.])[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:[0-9]{4}|[0-9]{2}))"
    r"[^0-9]{1,32}"
    r"|[^\W\d_]{3,}[-/. ]+[0-9]{1,2}(?:st|nd|rd|th)?[-/., ]+[0-9]{4}[^0-9]{1,8}"
    r"|(?<![0-9A-Za-z])[A-Z](?:[0-9]{2})?[0-9]{6}[ T_:-]+"
    r"|(?<![0-9A-Za-z./-])[0-9]{1,2}[./-][0-9]{1,2}[./-]?[^0-9A-Za-z]{1,8})$"
)
"""A year behind a zone that is not read, and a day before a time of day, make another time of a stamp."""
_DATED: Final = 4
"""The rank of stamps that tell a day with its year, and a time."""
_LEAST_SHARE: Final = 0.3
"""Of lines those with a stamp; fewer where all stamps stand at the same place, as records have many lines."""
_LEAST_IN_PLACE: Final = 0.02
_IN_ORDER: Final = 0.8
"""Of numbers that may be stamps those that are no smaller than the one before."""
_FEWEST_TIMES: Final = 20
_MANY_DAYS: Final = 30 * 86_400
"""Of numbers in no order fewer, or of a shorter span in seconds, may be numbers of orders or of users."""


@dataclass(frozen=True, slots=True)
class StampShape:
    """A shape of stamps.

    Attributes
    ----------
    pattern : str
        An expression that Python and RE2 read alike, without named groups.
    readings : tuple of tuple of str
        The formats of its texts; where a day can be read in several ways, those of each way, the usual first.
    rank : int
        4: a day with its year, and a time; 3: numbers since 1970; 2: a day without its year; 1: a time of
        day; 0: a time since a start.
    """

    pattern: str
    readings: tuple[tuple[str, ...], ...]
    rank: int

    @property
    def tells_zone(self) -> bool:
        """Whether its texts tell their time zone."""
        return self.pattern.endswith(_HOURS) or _USUAL_ZONE in self.pattern or _NAMED_ZONE in self.pattern


@dataclass(frozen=True, slots=True)
class LineStamp:
    """Where the stamp of a line stands."""

    begin: int
    end: int


_DAYS: Final[tuple[tuple[str, tuple[str, ...], int], ...]] = (
    ("[0-9]{4}-[0-9]{2}-[0-9]{2}", ("%Y-%m-%d",), 4),
    ("[0-9]{4}/[0-9]{2}/[0-9]{2}", ("%Y/%m/%d",), 4),
    (r"[0-9]{4}\.[0-9]{2}\.[0-9]{2}", ("%Y.%m.%d",), 4),
    ("[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}", ("%m/%d/%Y", "%d/%m/%Y"), 4),
    (r"[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}", ("%d.%m.%Y", "%m.%d.%Y"), 4),
    ("[0-9]{1,2}-[0-9]{1,2}-[0-9]{4}", ("%d-%m-%Y", "%m-%d-%Y"), 4),
    (f"[0-9]{{1,2}}/{_MONTH}/[0-9]{{4}}", ("%d/%b/%Y",), 4),
    (f"[0-9]{{1,2}}-{_MONTH}-[0-9]{{4}}", ("%d-%b-%Y",), 4),
    (f"{_WEEKDAY}, [0-9]{{1,2}} {_MONTH} [0-9]{{4}}", ("%a, %d %b %Y",), 4),
    (f"[0-9]{{1,2}} {_MONTH} [0-9]{{4}}", ("%d %b %Y",), 4),
    (rf"[0-9]{{1,2}}\. {_MONTH} [0-9]{{4}}", ("%d. %b %Y",), 4),
    (rf"[0-9]{{1,2}} {_MONTH}\. [0-9]{{4}}", ("%d %b. %Y",), 4),
    ("[0-9]{4}年[0-9]{1,2}月[0-9]{1,2}日", ("%Y年%m月%d日",), 4),
    ("[0-9]{4}년 [0-9]{1,2}월 [0-9]{1,2}일", ("%Y년 %m월 %d일",), 4),
    (f"[0-9]{{1,2}} de {_MONTH} de [0-9]{{4}}", ("%d de %b de %Y",), 4),
    (f"{_MONTH} +[0-9]{{1,2}}, [0-9]{{4}}", ("%b %d, %Y",), 4),
    (f"{_MONTH}/[0-9]{{1,2}}/[0-9]{{4}}", ("%b/%d/%Y",), 4),
    (f"{_MONTH}-[0-9]{{1,2}}-[0-9]{{4}}", ("%b-%d-%Y",), 4),
    (f"{_MONTH} +[0-9]{{1,2}} [0-9]{{4}}", ("%b %d %Y",), 4),
    ("(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])", ("%Y%m%d",), 4),
    (f"[0-9]{{1,2}}{_MONTH}[0-9]{{4}}", ("%d%b%Y",), 4),
    ("[0-9]{1,2}/[0-9]{1,2}/[0-9]{2}", ("%y/%m/%d", "%m/%d/%y", "%d/%m/%y"), 4),
    (r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}", ("%d.%m.%y", "%y.%m.%d", "%m.%d.%y"), 4),
    ("[0-9]{2}-[0-9]{2}-[0-9]{2}", ("%y-%m-%d", "%d-%m-%y", "%m-%d-%y"), 4),
    ("[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])", ("%y%m%d",), 4),
    (f"[0-9]{{1,2}}-{_MONTH}-[0-9]{{2}}", ("%d-%b-%y",), 4),
    (f"{_MONTH} +[0-9]{{1,2}}", ("%b %d",), 2),
    (f"[0-9]{{1,2}} {_MONTH}", ("%d %b",), 2),
    ("[0-9]{2}-[0-9]{2}", ("%m-%d", "%d-%m"), 2),
    (r"[0-9]{2}\.[0-9]{2}", ("%m.%d", "%d.%m"), 2),
    ("[0-9]{2}/[0-9]{2}", ("%m/%d", "%d/%m"), 2),
)  # fmt: skip
"""Expressions, formats and ranks. A day without its year never begins one that has it."""

_WIDE_GAP: Final = r"[^0-9A-Za-z%\\\n\u0080-\uffff]{1,4}(?:(?i:time)[=:]\"?)?"
"""Between a day with its year and a time of day, such as ``] [`` and `` time=``."""
_ALONE: Final = re.compile(r"\{4\}[^(\[]|\{4\}$|/\[0-9\]\{2\}$")
"""Of the days with a year those with four digits beside something else, or with a slash."""
_GAPS: Final = (" ", "T", ":", "-", ", ", "_", "  ", " at ", " - ")
_CLOCKS: Final = (
    (r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}", "%H:%M:%S", (".", ",", ":")),
    (r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}", "%H.%M.%S", (".", ",", ":")),
    ("[0-2][0-9][0-5][0-9][0-5][0-9]", "%H%M%S", (".", ",")),
    (r"[0-9]{1,2}:[0-9]{2}", "%H:%M", ()),
)
_SECONDS_OF_DAYS: Final = (
    "20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:[01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]"
)
_EPOCHS: Final = (
    (_SECONDS_OF_DAYS, "%Y%m%d%H%M%S"),
    (r"1[0-9]{9}(?:\.[0-9]{1,9})?", "epoch_s"),
    ("1[0-9]{12}", "epoch_ms"),
    ("1[0-9]{15}", "epoch_us"),
    ("1[0-9]{18}", "epoch_ns"),
)
_SPECIAL: Final = re.compile(r"[\\.^$*+?{}\[\]|()]")
_BEFORE: Final = r"(?<![0-9A-Za-z./+-])"
_NO_CLOCK_BEFORE: Final = r"(?<![0-9A-Za-z.:/+-])"
_AFTER: Final = r"(?![0-9A-Za-z]|[./:-][0-9])"
_EPOCH_AFTER: Final = r"(?![0-9A-Za-z]|[./-][0-9])"


@dataclass(frozen=True, slots=True)
class _Family:
    """Shapes that begin with the same day."""

    expression: re.Pattern[str]
    days: tuple[str, ...]
    day: str
    rank: int
    day_behind: bool = False
    """Whether the time of day stands before the day."""


@cache
def _families() -> tuple[_Family, ...]:
    gaps = "|".join(map(re.escape, sorted(_GAPS, key=len, reverse=True)))
    clocks = "|".join(
        f"(?P<c{number}>{clock}(?P<f{number}>[{''.join(signs)}][0-9]{{1,9}})?)"
        if signs
        else f"(?P<c{number}>{clock})"
        for number, (clock, _, signs) in enumerate(_CLOCKS)
    )
    clock = f"(?:{clocks})(?P<noon> ?[AaPp][Mm])?"
    zone = f"(?P<zone> ?{_ZONE}|{_HOURS})?"
    # Git writes the zone behind the year.
    year = "(?:(?P<year> (?:19|20)[0-9]{2})(?P<late> [+-][0-9]{4})?)?"
    # A number behind a stamp with its year is no year, but a process.
    ends = {_DATED: f"{zone}(?P<year>)(?P<late>)"}
    weekday = f"(?P<weekday>{_WEEKDAY_NAMES} )?"
    families, behind = [], []
    for day, forms, rank in _DAYS:
        named = f"(?P<day>{_strict(day, rank)})"
        wide = f"(?P<gap>{gaps}|{_WIDE_GAP})" if rank == _DATED else f"(?P<gap>{gaps})"
        in_order = f"{_BEFORE}{weekday}{named}{wide}{clock}{ends.get(rank, zone + year)}{_AFTER}"
        families.append(_Family(re.compile(in_order), forms, day, rank))
        if rank == _DATED and _ALONE.search(day):
            turned = (
                f"{_NO_CLOCK_BEFORE}{clock}(?P<zone>)(?P<weekday>)(?P<year>)(?P<late>){wide}{named}{_AFTER}"
            )
            behind.append(_Family(re.compile(turned), forms, day, rank, day_behind=True))
    alone = f"{_NO_CLOCK_BEFORE}(?P<weekday>)(?P<day>)(?P<gap>){clock}{ends[_DATED]}{_AFTER}"
    return (*families, *behind, _Family(re.compile(alone), ("",), "", 1))


@cache
def _days() -> re.Pattern[str]:
    """Return an expression of days that are hardly ever anything else."""
    days = [_strict(day, rank) for day, _, rank in _DAYS if rank == _DATED and _ALONE.search(day)]
    days += [f"{_ENGLISH} +[0-9]{{1,2}}", f"[0-9]{{1,2}} {_ENGLISH}"]
    return re.compile(f"{_BEFORE}(?:{'|'.join(days)})(?![0-9A-Za-z])")


def _strict(day: str, rank: int) -> str:
    """Return the expression of a day with the names of months and weekdays alone.

    Without a year, only English names are months: those of other languages are words too often.
    """
    return day.replace(_WEEKDAY, _WEEKDAY_NAMES).replace(_MONTH, _MONTH_NAMES if rank == _DATED else _ENGLISH)


def _is_unread(line: str, match: re.Match[str], rank: int) -> bool:
    """Tell whether a year, or a day that is not read, may belong to a stamp that tells none."""
    if rank == _DATED:
        return False
    begin, end = match.span()
    return bool(
        (match["weekday"] and _YEAR_BEHIND.match(line, end))
        or _UNREAD_DAY.search(line[:begin])
        or _days().search(line[:begin])
        or _days().search(line, end, end + _NEAR)
    )


def _shape_of(family: _Family, match: re.Match[str]) -> StampShape | None:
    """Return the shape of a match; None if it is too often something else than a stamp."""
    number = next(number for number in range(len(_CLOCKS)) if match[f"c{number}"] is not None)
    has_year = bool(match["year"])
    if number > 0 and family.rank < _DATED:
        return None
    _, _, signs = _CLOCKS[number]
    sign = (match[f"f{number}"] or " ")[0].strip() if signs else ""
    pattern = _pattern(family, match, number, sign)
    readings = tuple(_formats(family, day, match, number, sign) for day in family.days)
    return StampShape(pattern, readings, _DATED if has_year else family.rank)


def _pattern(family: _Family, match: re.Match[str], number: int, sign: str) -> str:
    """Return an expression for stamps like a match; a fraction may be absent."""
    gap = _SPECIAL.sub(r"\\\g<0>", match["gap"])
    parts = [_CLOCKS[number][0], f"(?:{re.escape(sign)}[0-9]{{1,9}})?" if sign else ""]
    if not family.day_behind:
        parts = [f"{_WEEKDAY} " if match["weekday"] else "", family.day, gap, *parts]
    if noon := match["noon"]:
        parts.append(" [AaPp][Mm]" if noon.startswith(" ") else "[AaPp][Mm]")
    if zone := match["zone"]:
        kinds = (_USUAL_ZONE, _HOURS, _NAMED_ZONE)
        kind = next(kind for kind in kinds if re.fullmatch(kind, zone.strip()))
        parts.append(" " * zone.startswith(" ") + kind)
    if match["year"]:
        parts.append(" [0-9]{4}" + (" [+-][0-9]{4}" if match["late"] else ""))
    return "".join([*parts, gap, family.day] if family.day_behind else parts)


def _formats(family: _Family, day: str, match: re.Match[str], number: int, sign: str) -> tuple[str, ...]:
    """Return the formats of stamps like a match, with their fraction and without."""
    noon, zone, gap = match["noon"] or "", match["zone"] or "", match["gap"]
    plain = number == 0 and sign != ":" and not noon and not family.day_behind
    if day == "%Y-%m-%d" and gap in ("T", " ") and plain and not match["weekday"]:
        return ("iso",)
    clock = _CLOCKS[number][1]
    if noon:
        clock = clock.replace("%H", "%I")
    end = (" %p" if noon.startswith(" ") else "%p") if noon else ""
    end += (" %z" if zone.startswith(" ") else "%z") if zone else ""
    end += " %Y" if match["year"] else ""
    end += " %z" if match["late"] else ""
    begin = f"{'%a ' if match['weekday'] else ''}{day}{gap}{clock}"
    if family.day_behind:
        begin, end = clock, f"{end}{gap}{day}"
    return tuple(f"{begin}{part}{end}" for part in ((f"{sign}%f", "") if sign else ("",)))


def stamp_in(line: str, shape: StampShape) -> LineStamp | None:
    """Return the place of a line's stamp of a shape."""
    match = _compiled(shape).search(line[: 2 * REACH])
    return None if match is None or match.start() > REACH else LineStamp(*match.span())


@cache
def _compiled(shape: StampShape) -> re.Pattern[str]:
    after = _EPOCH_AFTER if shape.rank in (0, 3) else _AFTER
    before = _BEFORE if shape.rank in (2, _DATED) else _NO_CLOCK_BEFORE
    return re.compile(f"{before}(?:{shape.pattern}){after}")


_SINCE_START: Final = (
    (r"^\[? *[0-9]+\.[0-9]{3,9}s?\]?[:\s]", r"[0-9]+\.[0-9]{3,9}"),
    (r"\s[0-9]+\.[0-9]{6}: ", r"[0-9]+\.[0-9]{6}"),
)
"""The beginnings of lines with seconds since a start, and these seconds."""


def _numbers(lines: Sequence[str]) -> list[StampShape]:
    """Return the shapes of numbers that may be times since 1970, or since a start."""
    shapes = [StampShape(pattern, ((form,),), 3) for pattern, form in _EPOCHS]
    for test, pattern in _SINCE_START:
        if sum(re.search(test, line[:REACH]) is not None for line in lines) >= _LEAST_SHARE * len(lines):
            shapes.append(StampShape(pattern, (("epoch_s",),), 0))
            break
    return [shape for shape in shapes if _in_order(lines, shape) or _in_one_field(lines, shape)]


def _in_order(lines: Sequence[str], shape: StampShape) -> bool:
    values = [
        float(line[stamp.begin : stamp.end]) for line in lines if (stamp := stamp_in(line, shape)) is not None
    ]
    steps = [later >= earlier for earlier, later in pairwise(values)]
    return bool(values) and sum(steps) >= _IN_ORDER * len(steps)


def _in_one_field(lines: Sequence[str], shape: StampShape) -> bool:
    """Tell whether numbers in no order are seconds since 1970: of one field, of the past, of many days."""
    if shape.readings != (("epoch_s",),) or shape.rank == 0:
        return False
    stamps = [(line, stamp) for line in lines if (stamp := stamp_in(line, shape)) is not None]
    fields = {len(line[: stamp.begin].split()) for line, stamp in stamps}
    values = {float(line[stamp.begin : stamp.end]) for line, stamp in stamps}
    return (
        len(stamps) == len(lines)
        and len(fields) == 1
        and len(values) >= _FEWEST_TIMES
        and max(values) < time.time()
        and max(values) - min(values) > _MANY_DAYS
    )


def likeliest_shapes(lines: Sequence[str]) -> list[StampShape]:
    """Return the shapes in which lines have their stamps, the commonest first; none if most have none.

    All of them are of one rank, the highest one that about as many lines have as any.
    """
    counts: Counter[StampShape] = Counter()
    places: dict[StampShape, list[int]] = {}
    families = _families()
    for line in lines:
        head = line[: 2 * REACH]
        taken: list[tuple[int, int]] = []
        for family in families:
            match = family.expression.search(head)
            if match is None or match.start() > REACH:
                continue
            # A part of a longer stamp is no stamp.
            begin, end = match.span()
            if any(low <= begin and end <= high for low, high in taken):
                continue
            if family.day_behind and any(begin < high and low < end for low, high in taken):
                continue
            shape = _shape_of(family, match)
            if shape is None:
                continue
            taken.append(match.span())
            if not _is_unread(line, match, shape.rank):
                counts[shape] += 1
                places.setdefault(shape, []).append(match.start())
    for shape in _numbers(lines):
        for line in lines:
            if (stamp := stamp_in(line, shape)) is not None:
                counts[shape] += 1
                places.setdefault(shape, []).append(stamp.begin)
    return _chosen(lines, counts, places)


def unread_zone(lines: Sequence[str]) -> str | None:
    """Return the first zone beside a stamp that means several offsets, or that is not read; None if none."""
    for line in map(apart, lines):
        for family in _families():
            match = family.expression.search(line[: 2 * REACH])
            if match is not None and match.start() <= REACH and _shape_of(family, match) is not None:
                zone = zone_beside(line, *match.span())
                if zone is not None and not UTC_ZONE.fullmatch(zone):
                    return zone
                break
    return None


def _chosen(
    lines: Sequence[str], counts: Counter[StampShape], places: dict[StampShape, list[int]]
) -> list[StampShape]:
    """Return the shapes of the column of stamps that tells most."""
    columns: dict[tuple[object, ...], list[StampShape]] = {}
    for shape in counts:
        # A column's stamps are of one day's form, with or without a fraction or a zone.
        columns.setdefault(_column_of(shape), []).append(shape)
    sums = {key: sum(counts[shape] for shape in shapes) for key, shapes in columns.items()}
    fewest = _LEAST_SHARE * len(lines)
    columns = {
        key: shapes
        for key, shapes in columns.items()
        if sums[key] >= fewest
        or (
            shapes[0].rank % 2 == 0
            and shapes[0].rank
            and _in_place(shapes, places, _LEAST_IN_PLACE * len(lines))
        )
    }
    sums = {key: sums[key] for key in columns}
    if not sums:
        return []
    highest = max(sums.values())

    def worth(key: tuple[object, ...]) -> tuple[int, int, int]:
        shapes = columns[key]
        begin = sorted(place for shape in shapes for place in places[shape])
        return -shapes[0].rank, begin[len(begin) // 2], -sums[key]

    best = min((key for key in sums if sums[key] >= 0.9 * highest), key=worth)
    return sorted(columns[best], key=lambda shape: (-counts[shape], shape.pattern))


def _in_place(shapes: Sequence[StampShape], places: dict[StampShape, list[int]], fewest: float) -> bool:
    """Tell whether stamps stand at one place, and are no fewer than these."""
    begins = Counter(place for shape in shapes for place in places[shape])
    place, count = max(begins.items(), key=lambda pair: (pair[1], -pair[0]))
    return place < REACH // 2 and count >= fewest and count == sum(begins.values())


def _column_of(shape: StampShape) -> tuple[object, ...]:
    """Return the rank and the form, without a fraction, that the shapes of one column share."""
    form = shape.readings[0][0]
    if shape.rank in (0, 3):
        return shape.rank, form
    for part in (".%f", ",%f", ":%f", " %z", "%z"):
        form = form.replace(part, "")
    return shape.rank, form
