"""Why no times are read from a file, and what to write into a schema for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.timeline.domain import is_text
from uncertain_cep.traces.item_lists import ways_to_times
from uncertain_cep.traces.stamp_shapes import unread_zone
from uncertain_cep.traces.stamp_zones import zones_beside
from uncertain_cep.traces.toml_texts import listed
from uncertain_cep.traces.usual_formats import TIME_OF_DAY
from uncertain_cep.traces.written_names import AMBIGUOUS_ZONES

__all__ = ["holds_times_of_day", "without_stamps", "without_times"]

_LOOKED_ROWS: Final = 100


def without_stamps(lines: Sequence[str]) -> str:
    """Return why no stamps of a log are read."""
    zone = unread_zone(lines)
    if zone is None:
        return "its lines have no stamps that are known: write an expression for them into [extract]"
    ambiguous = zone.upper() in AMBIGUOUS_ZONES
    kind = "a zone of several places" if ambiguous else "which is not read behind a stamp"
    return (
        f"its stamps are in {zone}, {kind}: write an expression into [extract] that leaves it out, and say "
        'the place, time_zone = "Continent/City"'
    )


def without_times(table: pa.Table) -> str:
    """Return why no times of a table are read."""
    if (beside := zones_beside(table)) is not None:
        column, zones = beside
        return (
            f"{column} holds the zones of its stamps, {', '.join(sorted(zones)[:3])}: write [[events]] "
            f'for each, with where = "{column} = \'{zones[0]}\'" and its place, time_zone = "Continent/City"'
        )
    said = f"no column of times among {', '.join(table.column_names[:6])}"
    if clocks := [name for name in table.column_names if holds_times_of_day(table.column(name))]:
        said += f" ({clocks[0]} holds times of day: say their day, date = 2015-10-17, and time_format)"
    for name in table.column_names:
        rows = table.column(name).slice(0, _LOOKED_ROWS).drop_null()
        if is_text(rows.type) and (zone := unread_zone(rows.to_pylist())) is not None:
            said += (
                f" ({name} is in {zone}, whose offset is not known: write it into the time_format, such as "
                f'"%Y-%m-%d %H:%M:%S {zone}", and say the place, time_zone = "Continent/City")'
            )
            break
    if len(ways := ways_to_times(table)) > 1:
        lists = " or ".join(f"explode = {listed(way)}" for way in ways)
        said += f" (several lists hold times, and the rows are those of one: {lists})"
    return said


def holds_times_of_day(column: pa.ChunkedArray) -> bool:
    """Tell whether a column holds times of day without a day."""
    if is_text(column.type):
        return bool(pc.all(pc.match_substring_regex(column, TIME_OF_DAY), min_count=1).as_py())
    return bool(pa.types.is_time(column.type)) and column.null_count < len(column)
