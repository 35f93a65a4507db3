"""Files with the same columns, and what their columns are: stamps, hosts, series."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.timeline.domain import is_text
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS
from uncertain_cep.traces.absent_times import holds_times_of_day, without_stamps
from uncertain_cep.traces.faulty_rows import ROW
from uncertain_cep.traces.file_kinds import delimiter_in, kind_of
from uncertain_cep.traces.formats import FileOptions, TraceFile, column_names, delimiter_of, read_file
from uncertain_cep.traces.item_lists import lists_to_explode, with_fields_of_items
from uncertain_cep.traces.joined_stamps import joined_name, with_joined
from uncertain_cep.traces.log_forms import NO_BASE, TIME, Base, LogForm, base_of, form_of, lines_of
from uncertain_cep.traces.nested import leaf_names, with_fields
from uncertain_cep.traces.stamp_columns import (
    StampColumn,
    clock_of_traces,
    names_host,
    since_start,
    stamp_column,
    words_of,
)
from uncertain_cep.traces.stamp_zones import zone_of_all, zones_beside
from uncertain_cep.traces.standard_input import is_spooled
from uncertain_cep.traces.text_lines import LINE
from uncertain_cep.traces.time_formats import TimeFormat, told_with
from uncertain_cep.traces.usual_formats import UsualFormat, usual_formats

__all__ = [
    "Group",
    "camel_case",
    "each_file",
    "glob_of",
    "groups_of_files",
    "host_column",
    "named_files",
    "pair_of",
    "series_of",
    "type_of_files",
    "with_stamps",
]

_BEGIN: Final = (
    "start", "begin", "launch", "submit", "open", "from", "started", "launched", "submitted", "opened",
    "admitted", "admission",
)  # fmt: skip
_END: Final = (
    "end", "finish", "stop", "complete", "completion", "close", "to", "until", "ended", "finished", "stopped",
    "completed", "closed", "discharged", "discharge",
)  # fmt: skip
_TIMES: Final = ("time", "timestamp", "ts", "at", "datetime", "date", "when", "eventtime")


@dataclass(frozen=True, slots=True)
class Group:
    """Files with the same columns, and their rows.

    Attributes
    ----------
    files : tuple of TraceFile
    tables : tuple of pyarrow.Table
    form : LogForm or None
        The form of logs.
    base : Base
        The year or the day of the first stamp of logs that tell none.
    joined : tuple
        Columns of stamps that are put together of several, see `with_joined`.
    other_times : tuple of StampColumn
        Columns of times that no events are made of.
    explode : tuple of str
        Columns of lists whose items are the rows.
    """

    files: tuple[TraceFile, ...]
    tables: tuple[pa.Table, ...]
    form: LogForm | None = None
    base: Base = NO_BASE
    joined: tuple[tuple[str, tuple[str, ...]], ...] = ()
    other_times: tuple[StampColumn, ...] = ()
    explode: tuple[str, ...] = ()

    @property
    def table(self) -> pa.Table:
        """All rows; what a file lacks is null."""
        return pa.concat_tables(self.tables, promote_options="permissive")


def groups_of_files(files: Sequence[TraceFile], options: FileOptions, left_out: list[str]) -> list[Group]:
    """Return the files in groups, and add to ``left_out`` why some are in none."""
    groups: dict[tuple[object, ...], Group] = {}
    for file in files:
        one = _group_of(file, options, left_out)
        if one is None:
            continue
        (table,) = one.tables
        expressions = None if one.form is None else (one.form.expressions, one.form.place)
        kind = kind_of(file.path, options)
        key: tuple[object, ...] = (kind, expressions, one.joined, one.explode, *table.column_names)
        before = groups.get(key)
        if before is not None and _joinable([*before.tables, table]):
            form = min((one.form, before.form), key=lambda form: 1.0 if form is None else form.share)
            one = replace(one, files=(*before.files, file), tables=(*before.tables, table), form=form)
        elif before is not None:
            key = (*key, file.path)
        groups[key] = one
    return list(groups.values())


def _group_of(file: TraceFile, options: FileOptions, left_out: list[str]) -> Group | None:
    """Return a file as a group of its own; None, with what is said of it, if it is of no use."""
    kind = kind_of(file.path, options)
    if kind == "text":
        form = form_of(file.path, options.encoding)
        if form is None:
            left_out.append(f"{file.path.name}: {without_stamps(lines_of(file.path, options.encoding))}")
            return None
        extract = tuple((LINE, pattern) for pattern in form.patterns)
        of_form = replace(
            options, extract=extract, parts=form.parts, record_begin=form.begins, types=form.types
        )
        table = read_file(file, None, of_form)
        return Group((file,), (table.drop_columns([LINE, ROW]),), form)
    if kind == "csv" and (fault := _csv_fault(file, options)):
        left_out.append(f"{file.path.name}: {fault}")
        return None
    table = read_file(file, None, options)
    if kind == "json" and (lists := lists_to_explode(table)):
        exploded_options = replace(options, explode=lists)
        items = with_fields_of_items(read_file(file, None, exploded_options), lists)
        return Group((file,), (items.drop_columns([ROW]),), explode=lists)
    joined = _apart(table)
    parts = [part for _, columns in joined for part in columns]
    mixed = [name for name in table.column_names if _has_midnights(table.column(name))]
    if (mixed or parts) and kind != "parquet":
        # The text tells days from minutes, and the form of each part.
        again = read_file(file, None, replace(options, texts=(*mixed, *parts)))
        for name in (*mixed, *parts):
            text = again.column(name)
            several = is_text(text.type) and pc.count_distinct(pc.utf8_length(text)).as_py() > 1
            if several or name in parts:
                table = table.set_column(table.column_names.index(name), name, text)
    return Group((file,), (with_joined(table, joined),), joined=joined)


def _csv_fault(file: TraceFile, options: FileOptions) -> str | None:
    """Return why a CSV file cannot be read with others, if it cannot."""
    names = column_names(file, options) or []
    delimiter = delimiter_of(file.path, options)
    other = delimiter_in(names)
    if other is not None:
        return (
            f"its values are separated by {other!r}, those of others by {delimiter!r}: give it a schema alone"
        )
    if any(usual_formats(name) for name in names):
        return f"its first line, {', '.join(names[:3])}, holds values: name the columns, columns = [...]"
    return None


def _apart(table: pa.Table) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the columns of days each with that of the times of day beside it, and what to call both."""
    days = [name for name in table.column_names if _holds_days(name, table.column(name))]
    times = [name for name in table.column_names if holds_times_of_day(table.column(name))]
    pairs = []
    for time in times:
        alike = [day for day in days if words_of(day) == words_of(time)]
        near = alike or (days if len(days) == len(times) == 1 else [])
        if len(near) == 1:
            pairs.append((joined_name((near[0], time)), (near[0], time)))
    return tuple(pairs) if len({day for _, (day, _) in pairs}) == len(pairs) else ()


def _holds_days(name: str, column: pa.ChunkedArray) -> bool:
    if pa.types.is_timestamp(column.type):
        return bool(pc.all(pc.equal(pc.floor_temporal(column, unit="day"), column), min_count=1).as_py())
    if not (is_text(column.type) or pa.types.is_date(column.type)):
        return False
    stamps = stamp_column(name, column)
    return stamps is not None and stamps.days


def _has_midnights(column: pa.ChunkedArray) -> bool:
    """Tell whether some times of a column are the beginnings of days, and others not."""
    if not pa.types.is_timestamp(column.type):
        return False
    midnights = pc.equal(pc.floor_temporal(column, unit="day"), column)
    return bool(pc.any(midnights).as_py()) and not pc.all(midnights).as_py()


def _joinable(tables: Sequence[pa.Table]) -> bool:
    try:
        pa.concat_tables([table.slice(0, 0) for table in tables], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True


def with_stamps(group: Group) -> list[tuple[Group, list[StampColumn]]]:
    """Return the stamps of a group; of logs that tell no day or year one group for each that is found."""
    if group.form is None:
        return [_zoned(*_with_likeliest(group))]
    place = group.form.place
    stamps = _of_readings(group.table.column(TIME), group.form.readings, _latest(group), place)
    if stamps is not None:
        return [(group, [stamps if place is None else replace(stamps, zone=place)])]
    forms = group.form.readings[0]
    parts: dict[Base, list[int]] = {}
    for number, (file, table) in enumerate(zip(group.files, group.tables, strict=True)):
        parts.setdefault(base_of(file.path, table, forms, place), []).append(number)
    groups = []
    for base, numbers in parts.items():
        part = replace(
            group,
            files=tuple(group.files[number] for number in numbers),
            tables=tuple(group.tables[number] for number in numbers),
            base=base,
        )
        format = TimeFormat(told_with(forms, base.text), base.text, place)
        # Each file begins anew.
        each = [stamp_column(TIME, table.column(TIME), format) for table in part.tables] if base.text else []
        nonempty = [stamp for stamp in each if stamp is not None]
        counts = np.concatenate([stamp.counts for stamp in nonempty]) if nonempty else np.zeros(0, np.int64)
        zone = place or (nonempty[0].zone if nonempty else None)
        groups.append((part, [replace(nonempty[0], counts=counts, zone=zone)] if nonempty else []))
    return groups


def _zoned(group: Group, stamps: list[StampColumn]) -> tuple[Group, list[StampColumn]]:
    """Return stamps with the zone that a column beside them tells; none if it tells none that is known."""
    zones = zones_beside(group.table)
    if zones is None or all(stamp.zoned for stamp in stamps):
        return group, stamps
    is_readable, place = zone_of_all(zones[1])
    if place is None:
        return group, stamps if is_readable else []
    return group, [stamp if stamp.zoned else replace(stamp, zone=place) for stamp in stamps]


def _latest(group: Group) -> int:
    """Return the nanoseconds since 1970 behind which no stamp of files lies, in no time zone."""
    changed = max(file.path.stat().st_mtime for file in group.files)
    return int(changed) * UNIT_NANOSECONDS["s"] + UNIT_NANOSECONDS["d"]


def _of_readings(
    column: pa.ChunkedArray, readings: Sequence[tuple[str, ...]], latest: int, place: str | None
) -> StampColumn | None:
    """Return the stamps of a log, if some of the readings tell day and year of all of them."""
    formats = [TimeFormat(complete, zone=place) for forms in readings if (complete := told_with(forms, None))]
    fitting = [format for format in formats if format.fits(column.drop_null()).all()]
    if not fitting:
        return None
    stamps = stamp_column(TIME, column, UsualFormat(fitting[0], tuple(fitting[1:])), latest)
    if stamps is None and (zone := _only_zone(column)) is not None:
        zoned = [replace(format, zone=zone) for format in fitting]
        stamps = stamp_column(TIME, column, UsualFormat(zoned[0], tuple(zoned[1:])), latest)
        return None if stamps is None else replace(stamps, zone=zone, zoned=True)
    return stamps


def _only_zone(column: pa.ChunkedArray) -> str | None:
    """Return the zone of all texts that tell one; None if they tell several, or none."""
    zones = pc.extract_regex(column, r"(?P<zone>Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})$")
    (zone, *more_zones) = pc.struct_field(zones, "zone").unique().drop_null().to_pylist() or [None]
    if zone is None or more_zones:
        return None
    return "+00:00" if zone in ("Z", "UTC", "GMT") else f"{zone[:3]}:{zone[-2:]}"


def _with_likeliest(group: Group) -> tuple[Group, list[StampColumn]]:
    """Return the stamps that become events: those of begins and ends, or else the likeliest ones."""
    table, joined = group.table, dict(group.joined)
    parts = {part for columns in joined.values() for part in columns}
    latest = _latest(group)
    stamps = [
        replace(stamp, columns=joined.get(name, ()))
        for name in table.column_names
        if name not in parts and (stamp := stamp_column(name, table.column(name), latest=latest)) is not None
    ]
    if not stamps and (clock := clock_of_traces(table.column_names)) is not None:
        stamps = [stamp for stamp in [since_start(clock, table.column(clock))] if stamp is not None]
    if not stamps:
        group, stamps = _within_fields(group)
    of_logs = [stamp for stamp in stamps if stamp.name == "log_time"]
    if not of_logs and any(pair_of(stamp.title) for stamp in stamps) and len(stamps) > 1:
        return group, stamps

    def rank(stamp: StampColumn) -> tuple[bool, bool, int, int]:
        plain = re.sub(r"[^a-z]", "", stamp.name.lower())
        place = _TIMES.index(plain) if plain in _TIMES else len(_TIMES)
        return stamp not in of_logs, not stamp.columns, place, len(stamp.formats)

    stamps.sort(key=rank)
    return replace(group, other_times=tuple(stamps[1:])), stamps[:1]


def _within_fields(group: Group) -> tuple[Group, list[StampColumn]]:
    """Return the stamps that stand in fields within fields, with a column for each of them."""
    stamps = []
    for path in leaf_names(group.table.schema):
        if path not in group.table.column_names:
            column = with_fields(group.table, [path]).column(path)
            if not pa.types.is_nested(column.type) and (stamp := stamp_column(path, column)) is not None:
                stamps.append(stamp)
    paths = [stamp.name for stamp in stamps]
    return replace(group, tables=tuple(with_fields(table, paths) for table in group.tables)), stamps


def pair_of(name: str) -> str:
    """Return whether a column of times tells begins or ends, by its name: ``begin``, ``end`` or nothing."""
    words = words_of(name)
    return "begin" if words and words[-1] in _BEGIN else "end" if words and words[-1] in _END else ""


def named_files(files: Sequence[TraceFile]) -> str:
    """Return the name of the first file, and how many more there are."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{files[0].path.name}{more}"


def camel_case(words: Iterable[str]) -> str:
    """Return words as the name of a type of events."""
    return "".join(word[:1].upper() + word[1:] for word in words)


def type_of_files(files: Sequence[TraceFile]) -> str:
    """Return a type for the events of files, by the words that their names have in common."""
    if is_spooled(files[0].path):
        return "Event"
    names = [re.split(r"[^A-Za-z0-9]+", file.path.name.partition(".")[0]) for file in files]
    common = [word for word in names[0] if all(word in other for other in names)]
    plain = [word for word in common if re.fullmatch("[A-Za-z]+", word)]
    return camel_case(plain) or camel_case(re.findall("[A-Za-z]+", files[0].path.parent.name)) or "Event"


def glob_of(group: Group, files: Sequence[TraceFile]) -> str | None:
    """Return a pattern that fits the files of a group alone, if there is one; the shortest of some."""
    names = [file.path.name for file in group.files]
    first = os.path.commonprefix(names)  # noqa: RUF071
    last = os.path.commonprefix([name[::-1] for name in names])[::-1]  # noqa: RUF071
    folder = group.files[0].path.parent.name
    patterns = [names[0]] if len(names) == 1 else [f"{first}*{last}"]
    patterns += [f"{folder}/{pattern}" for pattern in patterns] + [f"{folder}/*{last}", f"*{last}"]
    for pattern in patterns:
        fitting = [file for file in files if file.matches(_escaped(pattern))]
        if fitting == list(group.files):
            return _escaped(pattern)
    return None


def _escaped(pattern: str) -> str:
    return re.sub(r"([\[?])", r"[\1]", pattern)


def series_of(group: Group, stamp: StampColumn) -> list[np.ndarray]:
    """Return the stamps of each series: of each file, and of each value of a column of few texts in it."""
    series = []
    for table in group.tables:
        stamps = None if group.form else stamp_column(stamp.name, table.column(stamp.name))
        if stamps is None or len(stamps.counts) != table.num_rows:
            return []
        host = host_column(table)
        if host is None:
            series.append(stamps.counts)
            continue
        codes = np.asarray(pc.fill_null(table.column(host).cast(pa.string()), ""), dtype=object)
        series += [stamps.counts[codes == value] for value in dict.fromkeys(codes)]
    return series


def host_column(table: pa.Table) -> str | None:
    """Return the column that names hosts, or where else clocks are."""
    for name in table.column_names:
        if names_host(name):
            column = table.column(name)
            if not pa.types.is_nested(column.type) and pc.count_distinct(column).as_py() > 1:
                return str(name)
    return None


def each_file(group: Group, files: Sequence[TraceFile]) -> list[tuple[str | None, Group]]:
    """Return each file of a group as one of its own, with a pattern that fits its name."""
    alone = [
        replace(group, files=(file,), tables=(table,))
        for file, table in zip(group.files, group.tables, strict=True)
    ]
    return [(glob_of(part, files) or _escaped(part.files[0].path.name), part) for part in alone]
