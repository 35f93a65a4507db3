"""A schema for files that nobody has described, with comments that say why it is what it is."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.config import IN_PROCESS_BYTES
from uncertain_cep.durations import UNIT_NANOSECONDS, format_duration
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.query.expression_text import quote_name
from uncertain_cep.timedomain import EVENT_COLUMNS, Names, is_text
from uncertain_cep.traces.alike_files import (
    Group,
    camel_case,
    each_file,
    glob_of,
    groups_of_files,
    host_column,
    named_files,
    pair_of,
    series_of,
    type_of_files,
    with_stamps,
)
from uncertain_cep.traces.common_types import common_type
from uncertain_cep.traces.file_kinds import format_of
from uncertain_cep.traces.formats import FileOptions, TraceFile, list_files
from uncertain_cep.traces.readers import LOOKED_AT, READERS, recognised
from uncertain_cep.traces.sizes import unpacked_bytes
from uncertain_cep.traces.stamp_columns import StampColumn, regular_spacing, words_of
from uncertain_cep.traces.text_lines import LINE
from uncertain_cep.traces.unpacking import unpacked

__all__ = ["ProposedEvents", "ProposedSchema", "propose"]

_TYPES: Final = ("type", "kind", "event", "eventtype", "activity", "level", "action", "eventname")
FILE: Final = "file"
_MOST_TYPES: Final = 50

_FINEST: Final = "us"
_NAMES: Final = Names()
_SHARED: Final[dict[str, tuple[str, str, tuple[str, ...], str | None]]] = {
    "spark-eventlog": ("TaskStart", "TaskEnd", ("app", "task_id"), None),
    **dict.fromkeys(
        ("hadoop-jhist", "hadoop-history", "hadoop-rumen"),
        ("AttemptStart", "AttemptEnd", ("attempt_id",), None),
    ),
    **dict.fromkeys(("otlp", "jaeger", "zipkin"), ("SpanStart", "SpanEnd", ("trace_id", "span_id"), None)),
    "ganglia": ("", "", (), "host"),
    "rrd": ("", "", (), "folder"),
    "xes": ("", "", (), "case"),
}
"""Of formats the types of what begins and ends, what both share, and what other events may share."""

_WIDTH: Final = 108
"""Of comments in a schema."""
_MODEL: Final = {_NAMES.type, _NAMES.id, _NAMES.lower, _NAMES.upper}


@dataclass(frozen=True, slots=True)
class ProposedEvents:
    """One table of the schema.

    ``types`` are the types of its events, the usual ones first; ``keys`` attributes whose values few rows
    share; ``host`` one that names where an event comes from; ``pair`` is begin, end or nothing.
    """

    text: str
    types: tuple[str, ...]
    keys: tuple[str, ...]
    host: str | None
    pair: str


@dataclass(frozen=True, slots=True)
class ProposedSchema:
    """The text of a schema file, its tables, the files and folders it is for, and why others are left out."""

    text: str
    events: tuple[ProposedEvents, ...]
    traces: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def propose(paths: Sequence[str | Path], format: str | None = None) -> ProposedSchema:
    """Look at files and return a schema for them.

    Parameters
    ----------
    paths : sequence of path
    format : str, optional
        As for `read_traces`.

    Raises
    ------
    TraceError
        If a file cannot be read.
    OptionError
        If none of them has a column of stamps, or they hold too much to be looked at.
    """
    if unpacked_bytes(map(str, paths)) > IN_PROCESS_BYTES:
        raise OptionError(
            f"the files hold more than {IN_PROCESS_BYTES // 2**20} MiB: name some of them, and give what is "
            "written for these to match for all"
        )
    files, faults = list_files(paths, format, with_schema=format is None and _only_tables(paths))
    if faults:
        raise TraceError(faults)
    readers = {file.reader for file in files}
    if readers != {None}:
        if len(readers) > 1:
            names = ", ".join(sorted(name or "tables" for name in readers))
            raise OptionError(f"there are files of several formats, {names}: name those of one at a time")
        (reader,) = readers
        return _of_a_format(reader or "", files, paths)
    left_out: list[str] = []
    found: list[tuple[Group, list[StampColumn]]] = []
    options = FileOptions(format=format)
    for group in groups_of_files(files, options, left_out):
        group, stamps = with_stamps(group)
        if {*group.table.column_names} >= _MODEL:
            return _of_the_model(group, paths)
        if not stamps:
            named = ", ".join(group.table.column_names[:6])
            left_out.append(f"{named_files(group.files)}: no column of times among {named}")
        else:
            found.append((group, stamps))
    if not found:
        raise OptionError("no file has a column of times: " + "; ".join(left_out))
    taken = {file.root for group, _ in found for file in group.files}
    proposed = _schema(found, left_out, files, format)
    return replace(proposed, traces=tuple(str(path) for path in paths if Path(path) in taken))


def _of_a_format(name: str, files: Sequence[TraceFile], paths: Sequence[str | Path]) -> ProposedSchema:
    """Return a schema for files that say themselves what their events are, and how uncertain the times."""
    what = READERS[name].what
    text = [
        f"# {what[0].upper()}{what[1:]}: files say what their events are, and how uncertain the times.",
        f'format = "{name}"',
        "",
        "# If clocks are off by more than that, say so:",
        "# [[events]]",
        '# uncertainty = { kind = "plus_minus", by = "50ms" }',
    ]
    # Of a folder a schema that names a format reads everything.
    others = {path for file in files for path in _everything(file.root)} - {file.path for file in files}
    whole = all(_reader_of(path) == name for path in others if path.stat().st_size)
    traces = paths if whole else [file.path for file in files]
    begin, end, keys, place = _SHARED.get(name, ("", "", (), None))
    kinds = [(begin, "begin"), (end, "end")] if begin else [("", "")]
    events = [ProposedEvents("", (kind,), keys, place, pair) for kind, pair in kinds]
    return ProposedSchema("\n".join(text) + "\n", tuple(events), tuple(map(str, traces)))


def _reader_of(path: Path) -> str | None:
    """Return the format that a file begins as."""
    try:
        with unpacked(path) as stream:
            return recognised(stream.read(LOOKED_AT))
    except (TraceError, OSError, pa.ArrowException):
        return None


def _of_the_model(group: Group, paths: Sequence[str | Path]) -> ProposedSchema:
    """Return a schema for files that need none."""
    table = group.table
    attributes = [name for name in table.column_names if name not in EVENT_COLUMNS]
    bounds = f'lower = "{_NAMES.lower}", upper = "{_NAMES.upper}"'
    uncertainty = f'{{ kind = "columns", {bounds} }}'
    if _NAMES.pmf in table.column_names:
        uncertainty = f'{{ kind = "histogram", pmf = "{_NAMES.pmf}", lower = "{_NAMES.lower}" }}'
    ticks = table.column(_NAMES.tick).unique().to_pylist() if _NAMES.tick in table.column_names else []
    text = [
        "# The files have the columns of events already: they can be read without a schema.",
        *(f"tick = {_quoted(str(tick))}" for tick in ticks[:1]),
        "",
        "[[events]]",
        f"type_column = {_quoted(_NAMES.type)}",
        f"id = {_quoted(_NAMES.id)}",
        f"uncertainty = {uncertainty}",
        *(f"probability = {_quoted(name)}" for name in [_NAMES.probability] if name in table.column_names),
        f"attributes = {_listed(attributes)}",
    ]
    return ProposedSchema("\n".join(text) + "\n", (), tuple(map(str, paths)))


def _everything(root: Path) -> set[Path]:
    """Return the files that reading a folder in a given format would read; of a file nothing but that."""
    inside = root.rglob("*") if root.is_dir() else [root]
    return {
        path
        for path in inside
        if path.is_file() and not any(part[0] in "_." for part in path.relative_to(root).parts)
    }


def _only_tables(paths: Sequence[str | Path]) -> bool:
    """Tell whether all that is given is a log or a table by its name, which no format of its own has."""
    return all(not os.path.isdir(path) and format_of(Path(path)) not in (None, "json") for path in paths)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Rule:
    """An uncertainty as it stands in a schema, its length in nanoseconds, and why."""

    text: str
    length: int
    why: str


def _rule(stamp: StampColumn, spacing: int | None) -> _Rule:
    if spacing is not None:
        length = format_duration(spacing)
        return _Rule(
            f'{{ kind = "window", length = "{length}" }}',
            spacing,
            f"The stamps of a series are {length} apart, as those of a metric: a value tells of the {length} "
            'before its stamp. Of the time after it, write kind = "granularity", of = ...',
        )
    if len(stamp.written) > 1:
        return _Rule(
            '{ kind = "as_written" }',
            UNIT_NANOSECONDS[stamp.written[-1]],
            f"Stamps are written to {' or '.join(stamp.written)}: each stands for all of it.",
        )
    unit = stamp.written[0]
    if UNIT_NANOSECONDS[unit] < UNIT_NANOSECONDS[_FINEST]:
        said = f"The stamps tell {unit}, and no clock is so exact: say how far it may be off."
        return _Rule(f'{{ kind = "plus_minus", by = "1{_FINEST}" }}', UNIT_NANOSECONDS[_FINEST], said)
    said = f"The stamps are whole multiples of 1{unit}: the rest is cut off."
    return _Rule(f'{{ kind = "granularity", of = "1{unit}" }}', UNIT_NANOSECONDS[unit], said)


def _key(table: pa.Table, stamps: Sequence[StampColumn]) -> tuple[str | None, bool]:
    """Return the column of ids that tells most rows apart, if it tells most, and whether none comes twice."""
    times = {stamp.name for stamp in stamps}
    counts = {}
    for name in table.column_names:
        column = table.column(name)
        plain = is_text(column.type) or pa.types.is_integer(column.type)
        if plain and name not in times and re.search(r"(?i)id$", name) and not column.null_count:
            counts[name] = pc.count_distinct(column).as_py()
    best = max(counts, key=lambda name: counts[name], default=None)
    if best is None or 2 * counts[best] <= table.num_rows:
        return None, False
    return best, counts[best] == table.num_rows


def _type_column(table: pa.Table, stamps: Sequence[StampColumn]) -> str | None:
    for name in table.column_names if len(stamps) == 1 else ():
        plain = re.sub(r"[^a-z]", "", name.lower())
        column = table.column(name)
        told = plain in _TYPES and is_text(column.type) and not column.null_count
        if told and pc.count_distinct(column).as_py() <= _MOST_TYPES:
            return str(name)
    return None


def _schema(
    found: Sequence[tuple[Group, list[StampColumn]]],
    left_out: list[str],
    files: Sequence[TraceFile],
    format: str | None,
) -> ProposedSchema:
    events: list[ProposedEvents] = []
    lengths: list[int] = []
    presets = {group.preset for group, _ in found if group.preset}
    names = [type_of_files(group.files) for group, _ in found]
    types = _attribute_types(found)
    # Files without a column that tells them apart are series by themselves.
    of_files = any(len(group.files) > 1 and host_column(group.table) is None for group, _ in found)
    file_column = FILE if of_files and FILE not in types else None
    for number, (group, stamps) in enumerate(found):
        name = names[number] if names.count(names[number]) == 1 else f"{names[number]}{number + 1}"
        glob = glob_of(group, files)
        parts = [(glob, group)] if glob is not None or len(found) == 1 else each_file(group, files)
        for pattern, part in parts:
            made, some = _events(part, stamps, name, pattern, types, file_column)
            events += made
            lengths += some
    shortest = min(lengths)
    # Events of one stamp may have happened in any order.
    tick = next(
        unit for unit in ("min", "s", "ms", _FINEST) if shortest > UNIT_NANOSECONDS[unit] or unit == _FINEST
    )
    text = [
        "# What was found in the files, to be corrected by whoever knows them better.",
        *(f"# Left out: {said}" for said in left_out),
        "",
    ]
    if format is not None:
        text.append(f'format = "{format}"')
    text += [
        "# The unit of all times. It is shorter than what stamps tell, so events of one stamp may have come "
        "in any order.",
        f'tick = "1{tick}"',
    ]
    if file_column is not None:
        text += ["", "# Each file may be a series of its own.", f"file_column = {_quoted(file_column)}"]
    if len(presets) > 1:
        raise OptionError(f"there are logs of several forms, {', '.join(sorted(presets))}: name those of one")
    if presets:
        (preset,) = presets
        text += ["", "[extract]", f"# Most lines look like those of {preset}.", f'{LINE} = "{preset}"']
    for proposed in events:
        text += ["", proposed.text]
    return ProposedSchema(_readable("\n".join(text)), tuple(events), (), tuple(left_out))


def _readable(text: str) -> str:
    """Return a schema that says nothing twice, in lines that are not too long."""
    said: set[str] = set()
    lines: list[str] = []
    for line in text.split("\n"):
        if not line.startswith("# "):
            lines.append(line)
        elif line not in said:
            said.add(line)
            lines += textwrap.wrap(line, _WIDTH, subsequent_indent="# ", break_long_words=False)
    return "\n".join(lines) + "\n"


def _attribute_types(found: Sequence[tuple[Group, list[StampColumn]]]) -> dict[str, pa.DataType | None]:
    """Return the type of each column in all groups; None if it has several that do not agree."""
    types: dict[str, pa.DataType | None] = {}
    for group, _ in found:
        for field in group.table.schema:
            before = types.get(field.name, pa.null())
            types[field.name] = None if before is None else common_type(before, field.type)
    return types


def _events(
    group: Group,
    stamps: Sequence[StampColumn],
    name: str,
    glob: str | None,
    types: dict[str, pa.DataType | None],
    file_column: str | None,
) -> tuple[list[ProposedEvents], list[int]]:
    table = group.table
    (key, is_unique), host, kinds = _key(table, stamps), host_column(table), _type_column(table, stamps)
    times = {stamp.name for stamp in stamps}
    # Records without a number are no samples, however regular: those of each day, say.
    is_measured = any(
        pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        for field in table.schema
        if field.name not in times
    )
    sampled = stamps if is_measured and len(stamps) == 1 else ()
    spacings = {stamp.name: regular_spacing(series_of(group, stamp)) for stamp in sampled}
    others = [
        column
        for column in table.column_names
        if column not in times and column != kinds and not pa.types.is_nested(table.schema.field(column).type)
    ]
    attributes = {}
    for column in others:
        plain = column if column not in EVENT_COLUMNS else f"raw_{column}"
        attributes[plain if types.get(column) is not None else f"{name}_{plain}"] = column
    named = next((new for new, old in attributes.items() if old == key), None)
    place = next((new for new, old in attributes.items() if old == host), file_column)
    if file_column is not None:
        attributes[file_column] = file_column
    made, lengths = [], []
    for stamp in stamps:
        rule = _rule(stamp, spacings.get(stamp.name))
        suffix = camel_case(words_of(stamp.name)) if len(stamps) > 1 else ""
        mine = tuple(_usual(table.column(kinds))) if kinds else (f"{name}{suffix}",)
        text = ["[[events]]"]
        text += [] if glob is None else [f"files = {_quoted(glob)}"]
        if kinds:
            text.append(f"type_column = {_quoted(kinds)}")
        else:
            text.append(f"type = {_quoted(mine[0])}")
        if key is not None and is_unique:
            text.append(f"# No value of {key} comes twice.")
            text.append(f"id = {_quoted(f'{{{key}}}:{suffix.lower()}' if suffix else key)}")
        elif "id" in table.column_names:
            # A column of this name would be taken for one of ids.
            text.append("# Values of id come several times, so that a number makes them unique.")
            text.append('id = "{id}:{' + stamp.name + '}"')
        if len(stamps) > 1:
            text.append(f"# A row has {len(stamps)} times: each becomes an event of its own.")
        text.append(f"time = {_quoted(stamp.name)}")
        if stamp.unit is not None:
            text.append(f"# Numbers of this size are {stamp.unit} since 1970.")
            text.append(f'unit = "{stamp.unit}"')
        if stamp.formats and group.preset is None:
            text.append(f"time_format = {_listed(stamp.formats)}")
        if group.base is not None:
            what = "date" if "-" in group.base else "year"
            text.append(f"# The log tells no {what}: this is that of the file.")
            text.append(f"{what} = {group.base}")
        if stamp.absent:
            text.append("# Values of 0 and less stand for no time.")
            text.append(f"where = {_quoted(f'{quote_name(stamp.name)} > 0')}")
        if stamp.nulls:
            text.append("# Some rows have no such time.")
            text.append('missing = "drop"')
        text.append(f"# {rule.why}")
        if host is not None and not spacings.get(stamp.name):
            text.append(
                f"# Stamps may come from several clocks ({host}). If these are off by more, look for their "
                'offsets, kind = "clock_offset", or give a bound, kind = "plus_minus".'
            )
        text.append(f"uncertainty = {rule.text}")
        text.append(f"attributes = {_attributes(attributes)}")
        keys = () if named is None else (named,)
        made.append(ProposedEvents("\n".join(text), mine, keys, place, pair_of(stamp.name)))
        lengths.append(rule.length)
    return made, lengths


def _usual(types: pa.ChunkedArray) -> list[str]:
    counts = sorted(types.value_counts().to_pylist(), key=lambda pair: -pair["counts"])
    return [pair["values"] for pair in counts]


def _listed(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]"


def _attributes(attributes: dict[str, str]) -> str:
    if all(new == old for new, old in attributes.items()):
        return _listed(list(attributes))
    return "{ " + ", ".join(f"{_quoted(new)} = {_quoted(old)}" for new, old in attributes.items()) + " }"
