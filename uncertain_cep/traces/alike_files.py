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

from uncertain_cep.timedomain import is_text
from uncertain_cep.traces.faulty_rows import ROW
from uncertain_cep.traces.file_kinds import format_of
from uncertain_cep.traces.formats import FileOptions, TraceFile, read_file
from uncertain_cep.traces.stamp_columns import StampColumn, names_host, stamp_column, words_of
from uncertain_cep.traces.text_lines import LINE, PRESETS, RESTS, record_blocks
from uncertain_cep.traces.time_formats import TimeFormat, told_with
from uncertain_cep.traces.unpacking import unpacked

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

_BEGIN: Final = ("start", "begin", "launch", "submit", "open", "from")
_END: Final = ("end", "finish", "stop", "complete", "completion", "close", "to", "until")
_TIMES: Final = ("time", "timestamp", "ts", "at", "datetime", "date", "when", "eventtime")
_TIME: Final = "time"


@dataclass(frozen=True, slots=True)
class Group:
    """Files with the same columns, and their rows; logs have a form, and the year or day of the file."""

    files: tuple[TraceFile, ...]
    tables: tuple[pa.Table, ...]
    preset: str | None
    base: str | None = None

    @property
    def table(self) -> pa.Table:
        """All rows; what a file lacks is null."""
        return pa.concat_tables(self.tables, promote_options="permissive")


def groups_of_files(files: Sequence[TraceFile], options: FileOptions, left_out: list[str]) -> Iterable[Group]:
    """Return the files in groups, and add to ``left_out`` why logs of no known form are in none."""
    found: dict[tuple[object, ...], Group] = {}
    for file in files:
        preset = None
        kind = options.format or format_of(file.path)
        if kind in ("text", "log"):
            preset = _preset(file)
            if preset is None:
                left_out.append(
                    f"{file.path.name}: its lines are of no usual form ({', '.join(PRESETS)}): write an "
                    "expression for them into [extract]"
                )
                continue
            own = PRESETS[preset]
            extract = tuple((LINE, pattern) for pattern in own.patterns)
            table = read_file(file, None, replace(options, extract=extract, parts=own.parts))
            table = table.drop_columns([LINE, ROW])
        else:
            table = read_file(file, None, options)
            mixed = [name for name in table.column_names if _has_midnights(table.column(name))]
            if mixed and kind != "parquet":
                # The text tells days from minutes.
                again = read_file(file, None, replace(options, texts=tuple(mixed)))
                for name in mixed:
                    text = again.column(name)
                    if is_text(text.type) and pc.count_distinct(pc.utf8_length(text)).as_py() > 1:
                        table = table.set_column(table.column_names.index(name), name, text)
        key = (kind, preset, *table.column_names)
        mine = found.get(key, Group((), (), preset))
        if mine.tables and not _joinable([*mine.tables, table]):
            key = (*key, file.path)
            mine = Group((), (), preset)
        found[key] = Group((*mine.files, file), (*mine.tables, table), preset)
    return found.values()


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


def _preset(file: TraceFile) -> str | None:
    """Return the form of logs that most records of a file have."""
    shares = {}
    with unpacked(file.path) as stream:
        lines = next(record_blocks(stream, None), (pa.array([], pa.string()), None))[0].slice(0, 1000)
    for name, preset in PRESETS.items():
        fits = np.zeros(len(lines), np.bool_)
        for pattern in (pattern for pattern in preset.patterns if pattern not in RESTS):
            fits |= np.asarray(pc.match_substring_regex(lines, re.sub(r"\(\?P<\w+>", "(?:", pattern)))
        shares[name] = fits.mean() if len(lines) else 0.0
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] >= 0.3 else None


def with_stamps(group: Group) -> tuple[Group, list[StampColumn]]:
    """Return the stamps of a group, which for a log that tells no day or year is that of the file."""
    if group.preset is None:
        return group, _stamps(group.table)
    preset = PRESETS[group.preset]
    changed = np.datetime64(int(group.files[0].path.stat().st_mtime), "s")
    bases = [None, str(changed.astype("M8[Y]")), str(changed.astype("M8[D]"))]
    for base in bases:
        told = told_with(preset.time_format, base)
        found = stamp_column(_TIME, group.table.column(_TIME), TimeFormat(told, base)) if told else None
        if found is not None:
            return replace(group, base=base), [found]
    return group, []


def _stamps(table: pa.Table) -> list[StampColumn]:
    """Return the columns of stamps that become events: those of begins and ends, or else the likeliest."""
    found = [stamp_column(name, table.column(name)) for name in table.column_names]
    stamps = [stamp for stamp in found if stamp is not None]
    if any(pair_of(stamp.name) for stamp in stamps) and len(stamps) > 1:
        return stamps

    def rank(stamp: StampColumn) -> tuple[int, int]:
        plain = re.sub(r"[^a-z]", "", stamp.name.lower())
        return (_TIMES.index(plain) if plain in _TIMES else len(_TIMES), len(stamp.formats))

    return sorted(stamps, key=rank)[:1]


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
    found = []
    for table in group.tables:
        mine = None if group.preset else stamp_column(stamp.name, table.column(stamp.name))
        if mine is None or len(mine.counts) != table.num_rows:
            return []
        host = host_column(table)
        if host is None:
            found.append(mine.counts)
            continue
        codes = np.asarray(pc.fill_null(table.column(host).cast(pa.string()), ""), dtype=object)
        found += [mine.counts[codes == value] for value in dict.fromkeys(codes)]
    return found


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
