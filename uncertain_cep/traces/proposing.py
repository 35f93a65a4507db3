"""A schema for files that nobody has described, with comments that say why it is what it is."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from uncertain_cep.config.limits import IN_PROCESS_BYTES
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.timeline.domain import EVENT_COLUMNS, Names
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS
from uncertain_cep.traces.absent_times import without_times
from uncertain_cep.traces.alike_files import (
    Group,
    each_file,
    glob_of,
    groups_of_files,
    host_column,
    named_files,
    type_of_files,
    with_stamps,
)
from uncertain_cep.traces.common_types import common_type
from uncertain_cep.traces.file_kinds import content_kind, delimiter_in, kind_of
from uncertain_cep.traces.folders import files_of_folder
from uncertain_cep.traces.formats import FileOptions, TraceFile, column_names, list_files
from uncertain_cep.traces.log_forms import LogForm, form_of
from uncertain_cep.traces.offset_tables import offset_table
from uncertain_cep.traces.program_presets import PRESETS
from uncertain_cep.traces.proposed_events import FINEST, ProposedEvents, events_of_group
from uncertain_cep.traces.proposed_types import ProposedTypes, with_types_of_messages
from uncertain_cep.traces.readers import READERS, recognised
from uncertain_cep.traces.sizes import unpacked_bytes
from uncertain_cep.traces.stamp_columns import StampColumn
from uncertain_cep.traces.standard_input import is_spooled, spooled
from uncertain_cep.traces.text_lines import LINE
from uncertain_cep.traces.text_options import with_text_options
from uncertain_cep.traces.toml_texts import listed, literal, quoted
from uncertain_cep.traces.unpacking import first_bytes

__all__ = ["ProposedEvents", "ProposedSchema", "propose"]

FILE: Final = "file"
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
        ``-`` is standard input.
    format : str, optional
        As for `read_traces`.

    Raises
    ------
    TraceError
        If a file cannot be read.
    OptionError
        If none of them has a column of stamps, or they hold too much to be looked at.
    """
    files_or_folders = [spooled(format) if str(path) == "-" else path for path in paths]
    if unpacked_bytes(map(str, files_or_folders)) > IN_PROCESS_BYTES:
        raise OptionError(
            f"the files hold more than {IN_PROCESS_BYTES // 2**20} MiB: name some of them, and give what is "
            "written for these to match for all"
        )
    files, faults = list_files(files_or_folders, format, logs=True)
    if faults:
        raise TraceError(faults)
    readers = {file.reader for file in files}
    if readers != {None}:
        if len(readers) > 1:
            names = ", ".join(sorted(name or "tables" for name in readers))
            raise OptionError(f"there are files of several formats, {names}: name those of one at a time")
        (reader,) = readers
        return _of_a_format(reader or "", files, paths)
    if format is None and (kind := _kind_by_content(files)) is not None:
        return propose(paths, kind)
    if format is None and len(files) == 1 and is_spooled(files[0].path) and form_of(files[0].path):
        # Nothing names standard input: its format has to stand in the schema.
        return propose(paths, "text")
    options = with_text_options(files, FileOptions(format=format))
    left_out: list[str] = []
    groups: list[tuple[Group, list[StampColumn]]] = []
    offsets: list[str] = []
    options = replace(options, delimiter=_delimiter(files, options))
    alike, message_types = with_types_of_messages(groups_of_files(files, options, left_out))
    for whole in alike:
        if {*whole.table.column_names} >= _MODEL:
            return _of_the_model(whole, paths)
        for group, stamps in with_stamps(whole):
            if stamps:
                groups.append((group, stamps))
            elif offset_lines := offset_table(group):
                offsets += offset_lines
            else:
                left_out.append(f"{named_files(group.files)}: {without_times(group.table)}")
    if not groups:
        left_out += ["there is no column of times beside the offsets of clocks"] if offsets else []
        raise OptionError("no file has a column of times: " + "; ".join(left_out))
    taken = {file.root for group, _ in groups for file in group.files}
    traces = [str(path) for path, place in zip(paths, files_or_folders, strict=True) if Path(place) in taken]
    return replace(_schema(groups, left_out, files, options, message_types, offsets), traces=tuple(traces))


def _kind_by_content(files: Sequence[TraceFile]) -> str | None:
    """Return the format of files, none of whose names tells it, if all have the same."""
    kinds = {None if kind_of(file.path) is not None else content_kind(file.path) for file in files}
    return kinds.pop() if len(kinds) == 1 else None


def _delimiter(files: Sequence[TraceFile], options: FileOptions) -> str | None:
    """Return the delimiter of CSV files if it is no comma and no file name tells it."""
    for file in files:
        if kind_of(file.path, options) == "csv":
            with suppress(TraceError):
                if (other := delimiter_in(column_names(file, options) or [])) is not None:
                    return other
    return None


def _of_a_format(name: str, files: Sequence[TraceFile], paths: Sequence[str | Path]) -> ProposedSchema:
    """Return a schema for files that say themselves what their events are, and how uncertain the times."""
    what = READERS[name].what
    uncertain = (
        "and how uncertain the times" if not name.startswith("hadoop") else "but not how right clocks are"
    )
    text = [
        f"# {what[0].upper()}{what[1:]}: files say what their events are, {uncertain}.",
        f'format = "{name}"',
        "",
        *(_CLOCKS_OF_HOSTS if name.startswith("hadoop") else ()),
        "# [[events]]",
        *(_LASTING if READERS[name].spans else ()),
        "# If clocks are off by more than that, say so:",
        '# uncertainty = { kind = "plus_minus", by = "50ms" }',
    ]
    # Of a folder a schema that names a format reads everything.
    unnamed = {path for file in files for path in _everything(file.root)} - {file.path for file in files}
    whole = all(_reader_of(path) == name for path in unnamed if path.stat().st_size)
    traces = paths if whole else [file.path for file in files]
    begin, end, keys, place = _SHARED.get(name, ("", "", (), None))
    kinds = [(begin, "begin"), (end, "end")] if begin else [("", "")]
    events = [ProposedEvents("", (kind,), keys, place, pair) for kind, pair in kinds]
    return ProposedSchema("\n".join(text) + "\n", tuple(events), tuple(map(str, traces)))


_CLOCKS_OF_HOSTS: Final = (
    "# Attempts are stamped by the clocks of their hosts, jobs and tasks by that of the master. In a cluster",
    "# clocks may be minutes apart: uncertain-cep infer-offsets finds bounds of their offsets.",
)
_LASTING: Final = (
    "# Begins and ends are events of their own. If one event of both is to last, say so:",
    "# spans = true",
)


def _reader_of(path: Path) -> str | None:
    """Return the format that a file begins as."""
    try:
        return recognised(first_bytes(path))
    except MemoryError:
        raise
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
        *(f"tick = {quoted(str(tick))}" for tick in ticks[:1]),
        "",
        "[[events]]",
        f"type_column = {quoted(_NAMES.type)}",
        f"id = {quoted(_NAMES.id)}",
        f"uncertainty = {uncertainty}",
        *(f"probability = {quoted(name)}" for name in [_NAMES.probability] if name in table.column_names),
        f"attributes = {listed(attributes)}",
    ]
    return ProposedSchema("\n".join(text) + "\n", (), tuple(map(str, paths)))


def _everything(root: Path) -> set[Path]:
    """Return the files that reading a folder in a given format would read; of a file nothing but that."""
    return set(files_of_folder(root) if root.is_dir() else [root])


def _schema(
    groups: Sequence[tuple[Group, list[StampColumn]]],
    left_out: list[str],
    files: Sequence[TraceFile],
    options: FileOptions,
    message_types: ProposedTypes | None,
    offsets: Sequence[str],
) -> ProposedSchema:
    events: list[ProposedEvents] = []
    names = [type_of_files(group.files) for group, _ in groups]
    types = _attribute_types(groups)
    # Files without a column that tells them apart are series by themselves.
    of_files = any(len(group.files) > 1 and host_column(group.table) is None for group, _ in groups)
    file_column = FILE if of_files and FILE not in types else None
    for number, (group, stamps) in enumerate(groups):
        name = names[number] if names.count(names[number]) == 1 else f"{names[number]}{number + 1}"
        glob = glob_of(group, files)
        parts = [(glob, group)] if glob is not None or len(groups) == 1 else each_file(group, files)
        for pattern, part in parts:
            # What comes from standard input has no name.
            fits = None if len(files) == 1 and is_spooled(files[0].path) else pattern
            events += events_of_group(part, stamps, name, fits, types, file_column, offsets)
    text = [
        "# What was found in the files, to be corrected by whoever knows them better.",
        *(f"# Left out: {said}" for said in left_out),
        "# No file tells how far clocks were off: they are taken as right. If they were not, choose another "
        "uncertainty (docs/uncertainty.md).",
        "",
        *_above(events, options),
        *_records([group.form for group, _ in groups if group.form is not None]),
    ]
    if file_column is not None:
        text += ["", "# Each file may be a series of its own.", f"file_column = {quoted(file_column)}"]
    forms = [group.form for group, _ in groups if group.form is not None]
    if lists := tuple(dict.fromkeys(path for group, _ in groups for path in group.explode)):
        text += [
            "# The rows are the items of lists.",
            f"explode = {quoted(lists[0]) if len(lists) == 1 else listed(lists)}",
        ]
    text += _extract(forms)
    text += [] if message_types is None else message_types.lines()
    for proposed in events:
        text += ["", proposed.text]
    return ProposedSchema(_readable("\n".join(text)), tuple(events), (), tuple(left_out))


def _above(events: Sequence[ProposedEvents], options: FileOptions) -> list[str]:
    """Return the lines of a schema that hold for all tables."""
    lengths = [proposed.length for proposed in events]

    def measures(unit: str) -> bool:
        ticks = UNIT_NANOSECONDS[unit]
        return all(length > ticks and length % ticks == 0 for length in lengths)

    # Events of one stamp may have happened in any order.
    tick = next(unit for unit in ("min", "s", "ms", FINEST) if unit == FINEST or measures(unit))
    text = [] if options.format is None else [f'format = "{options.format}"']
    if options.encoding is not None:
        text += [
            "# The text is not UTF-8. Are letters wrong, name another.",
            f'encoding = "{options.encoding}"',
        ]
    if options.columns:
        text += ["# The files have no line of names.", f"columns = {listed(options.columns)}"]
    if options.skip_rows:
        text += ["# So many lines stand before the line of names.", f"skip_rows = {options.skip_rows}"]
    if options.delimiter is not None:
        text += ["# The first line of the files has no commas.", f"delimiter = {quoted(options.delimiter)}"]
    return [
        *text,
        "# The unit of all times. It is shorter than what stamps tell, so events of one stamp may have come "
        "in any order.",
        f'tick = "1{tick}"',
    ]


def _records(forms: Sequence[LogForm]) -> list[str]:
    """Return the lines of a schema that tell where records of text begin."""
    begins = dict.fromkeys(form.begins for form in forms)
    # A usual form brings its own.
    if {*begins} <= {None} or (len(begins) == 1 and forms[0].is_usual and forms[0].brings_its_begin):
        return []
    return [
        "# A record begins where this is found; other lines, which have no stamp, go on with the record "
        "before.",
        f"record_begin = {_expression('|'.join(begin or _ANY for begin in begins))}",
    ]


_ANY: Final = r"^\S"
"""Where records begin whose form says nothing else."""


def _extract(forms: Sequence[LogForm]) -> list[str]:
    """Return how the records of logs are cut into columns."""
    if not forms:
        return []
    shares: dict[tuple[str, ...], float] = {}
    for form in forms:
        shares[form.expressions] = min(form.share, shares.get(form.expressions, 1.0))
    text = ["", "[extract]"]
    for expressions, share in shares.items():
        if all(name in PRESETS for name in expressions):
            amount = "all" if share == 1 else f"{share:.1%}" if share < 0.9995 else "nearly all"
            dropped = "" if share == 1 else " Records that do not are left out, and counted."
            text.append(f"# Of the records looked at {amount} look like those of {expressions[0]}.{dropped}")
        else:
            text.append(
                "# No usual form fits: the stamp was found by its shape. Each group is a column; rename "
                "those that you know. A record that no expression fits is left out, and counted."
            )
    if all(form.begins is None for form in forms):
        text.append(
            "# Lines that begin with white space go on with the record before, as stack traces do: see "
            "continuation in docs/text-logs.md."
        )
    each = [expression for expressions in shares for expression in expressions]
    names = list(dict.fromkeys(each))
    if len(names) == 1:
        return [*text, f"{LINE} = {_expression(names[0])}"]
    if all(name in PRESETS for name in names):
        return [*text, f"{LINE} = {listed(names)}"]
    return [*text, f"{LINE} = [", *(f"    {_expression(name)}," for name in names), "]"]


def _expression(text: str) -> str:
    """Return an expression, or the name of a usual form, as TOML writes it."""
    return quoted(text) if text in PRESETS else literal(text)


def _readable(text: str) -> str:
    """Return a schema that says nothing twice, in lines that are not too long."""
    said: set[str] = set()
    lines: list[str] = []
    for line in text.split("\n"):
        if not line.startswith("# "):
            lines.append(line)
        elif line not in said:
            said.add(line)
            if line.startswith("# uncertainty = "):
                # It can be made the rule by leaving out the sign.
                lines.append(line)
                continue
            lines += textwrap.wrap(line, _WIDTH, subsequent_indent="# ", break_long_words=False)
    return "\n".join(lines) + "\n"


def _attribute_types(groups: Sequence[tuple[Group, list[StampColumn]]]) -> dict[str, pa.DataType | None]:
    """Return the type of each column in all groups; None if it has several that do not agree."""
    types: dict[str, pa.DataType | None] = {}
    for group, _ in groups:
        for field in group.table.schema:
            before = types.get(field.name, pa.null())
            types[field.name] = None if before is None else common_type(before, field.type)
    return types
