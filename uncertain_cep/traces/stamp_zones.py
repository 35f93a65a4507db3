"""Time zones beside stamps that are not read with them: names, offsets and places, in any case.

A stamp beside such a zone would be read as one of UTC. Only UTC itself may stand anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from uncertain_cep.timeline.domain import is_text
from uncertain_cep.timeline.zones import known_zone
from uncertain_cep.traces.written_names import AMBIGUOUS_ZONES, UNREAD_ZONES, ZONES

__all__ = ["PLACE", "UTC_ZONE", "apart", "zone_beside", "zone_of_all", "zones_beside"]

PLACE: Final = (
    "(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Mexico"
    r"|Pacific|US)/[A-Za-z][A-Za-z0-9_/+-]*"
)
"""Zones of the IANA."""

UTC_ZONE: Final = re.compile(
    r"(?i:Z|UTC|GMT|WET|UCT|Zulu|Etc/(?:UTC|GMT|UCT|Zulu|Universal|Greenwich))|(?i:UTC|GMT)?[+-]0{1,2}(?::?00)?"
)
_OFFSET: Final = "[+-](?:0?[0-9]|1[0-4])(?::?(?:00|15|30|45))?"
_USUAL_OFFSET: Final = "[+-](?:0[0-9]|1[0-4])(?::?(?:00|15|30|45))?"
_NAMES: Final = "|".join(sorted({*ZONES, *AMBIGUOUS_ZONES, *UNREAD_ZONES}, key=len, reverse=True))
_IN_WORDS: Final = r"(?:[A-Z][A-Za-z.]+ ){1,3}(?:Standard|Daylight|Summer) Time"
_US: Final = "[CEMP]T"
_ZONE: Final = (
    rf"(?:{_IN_WORDS}|(?i:{PLACE}|(?:UTC|GMT) ?{_OFFSET}|Z|UCT|Zulu|{_NAMES})|{_US}|{_USUAL_OFFSET})"
)
_KEY: Final = r"(?i:\"?(?:tz|zone|time_?zone)\"?\s?[=:]\s?\"?)"
_BEHIND: Final = re.compile(
    rf"[\s,;|\"'()\[\]{{}}<>_-]{{0,6}}{_KEY}?(?P<zone>{_ZONE})(?![A-Za-z0-9_/]|[.:-][A-Za-z0-9])"
    rf"|[\s]?(?P<signed>{_OFFSET}|[+-][0-9]{{3}})(?![A-Za-z0-9_/]|[.:-][A-Za-z0-9])"
)
_GLUED: Final = re.compile(rf"(?<=[0-9][0-9])(?=(?i:{_NAMES})(?![A-Za-z0-9_]))")
_SIGNED: Final = re.compile(rf" ?{_OFFSET}(?![A-Za-z0-9_/]|[.:-][A-Za-z0-9])")
_AHEAD: Final = re.compile(rf"(?:^|[\s,;|\"'(\[{{<=:])(?P<zone>{_ZONE})[\s,;|\"')\]}}>:=]{{1,4}}$")
_TOLD: Final = re.compile(
    rf"[0-9] ?(?:Z|z|{'|'.join(sorted(ZONES, key=len, reverse=True))}|[+-][0-9]{{2}}:?[0-9]{{2}})$"
    r"|:[0-9]{2}(?:[.,][0-9]{1,9})?[+-](?:0[0-9]|1[0-4])$"
)
_ZONE_NAME: Final = re.compile(r"(?i)(?:.*[^a-z])?(?:tz|time_?zone|zone|(?:utc|tz|gmt)_?offset)")
_WHOLE_ZONE: Final = re.compile(_ZONE)
_FEW: Final = 3
"""Winter, summer and UTC: a column of more names is no column of zones."""
_MANY: Final = 0.5


def zone_beside(line: str, begin: int, end: int) -> str | None:
    """Return the zone that stands behind a stamp, or before it; None if there is none.

    Parameters
    ----------
    line : str
    begin, end : int
        Where the stamp stands.
    """
    if _TOLD.search(line[begin:end]):
        # UTC is read, and +2 belongs to it.
        signed = _SIGNED.match(line, end)
        return (
            None
            if signed is None or line[end - 3 : end] not in ("UTC", "GMT")
            else line[end - 3 : end] + signed[0]
        )
    if behind := _BEHIND.match(line, end):
        zone: str = behind["zone"] or behind["signed"]
        return zone
    ahead = _AHEAD.search(line[:begin])
    return None if ahead is None else ahead["zone"]


def apart(line: str) -> str:
    """Return a line with a space between a digit and the name of a zone behind it: ``10:00 CST``."""
    return _GLUED.sub(" ", line)


def zones_beside(table: pa.Table) -> tuple[str, list[str]] | None:
    """Return the column of a table whose texts all are time zones, and which; None if there is none."""
    for name in table.column_names:
        if _ZONE_NAME.fullmatch(name) and is_text(table.column(name).type):
            zones: list[str] = table.column(name).unique().drop_null().to_pylist()
            if zones and all(_WHOLE_ZONE.fullmatch(zone) for zone in zones):
                return name, zones
    return None


def zone_of_all(zones: Iterable[str | None]) -> tuple[bool, str | None]:
    """Tell whether stamps can be read with the zones beside them, and in which zone they are then.

    They can where few have one, where all are of UTC, or all of one place or offset. The zone is None where
    the stamps tell it.
    """
    each = list(zones)
    beside = {zone for zone in each if zone is not None}
    if sum(zone is not None for zone in each) < _MANY * len(each) or len(beside) > _FEW:
        return True, None
    if all(UTC_ZONE.fullmatch(zone) for zone in beside):
        return True, None
    (zone, *more) = beside
    place = (
        re.fullmatch(rf"{PLACE}|[+-][0-9]{{2}}:[0-9]{{2}}", zone) is not None
        and not more
        and known_zone(zone)
    )
    return place, zone if place else None
