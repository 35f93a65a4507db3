"""Files of rows as Arrow tables: CSV, JSON lines and Parquet, with faults a user can act on."""

from __future__ import annotations

import csv
import errno
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from uncertain_cep.config.limits import FAULT_LIMIT
from uncertain_cep.errors import TraceError, TraceFault, ignoring, warn
from uncertain_cep.files.special_files import DOWNLOAD, is_url, special_kind
from uncertain_cep.plurals import first_few
from uncertain_cep.running.in_order import in_order
from uncertain_cep.traces.bounded import (
    header_names,
)
from uncertain_cep.traces.cells import reading_threads
from uncertain_cep.traces.csv_files import opened_table, read_csv
from uncertain_cep.traces.extracting import (
    ExtractionUses,
    extracted_names,
    sources_of,
    with_extracted,
)
from uncertain_cep.traces.faulty_rows import IN_ORDER, ROW, row_faults, unreadable_rows
from uncertain_cep.traces.file_kinds import columns_declared, content_kind, format_of, kind_of, stem_suffix
from uncertain_cep.traces.file_options import COLUMN_TYPES, ColumnType, FileOptions
from uncertain_cep.traces.folders import contents_of_folder
from uncertain_cep.traces.frames import takeable
from uncertain_cep.traces.instants import check_rows_agree, is_text, read_iso
from uncertain_cep.traces.joined_stamps import joined_names, with_joined
from uncertain_cep.traces.json_files import first_names, json_table, read_json
from uncertain_cep.traces.message_templates import template_columns, with_templates
from uncertain_cep.traces.nested import exploded, leaf_names, roots_of, with_fields
from uncertain_cep.traces.readers import (
    READERS,
    event_blocks,
    finest_tick,
    read_events,
    recognised,
)
from uncertain_cep.traces.readers.json_columns import compile_trees
from uncertain_cep.traces.readers.rolled_logs import superseded
from uncertain_cep.traces.standard_input import spooled
from uncertain_cep.traces.table_formats import FILE_FORMATS
from uncertain_cep.traces.text_lines import CONTINUATION, LINE, RecordLines, record_blocks
from uncertain_cep.traces.unpacking import first_bytes, unpacked

__all__ = [
    "COLUMN_TYPES",
    "FILE_FORMATS",
    "ColumnType",
    "FileOptions",
    "TraceFile",
    "column_names",
    "compile_reading",
    "delimiter_of",
    "first_column_names",
    "list_files",
    "naming_file",
    "read_file",
    "reader_tick",
    "with_type",
]

_ARROW: Final[dict[str, pa.DataType]] = {
    "string": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("ns"),
}
_KNOWN: Final = (
    ".csv, .tsv, .json, .jsonl, .ndjson, .log (each also .gz, .zst, .bz2, .xz or .lz4) and .parquet"
)

_LOGS: Final = "say in a schema file what their lines hold, which uncertain-cep init writes"

_DEFAULT: Final = FileOptions()


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A file to read; ``root`` is what the user gave, the file itself or a folder above it."""

    path: Path
    root: Path
    reader: str | None = None
    """The format, if it is one of ``READERS``."""
    span: tuple[int, int] | None = None
    """Of a text the bytes to read, whole lines from one byte up to, but without, another; None: all."""

    def matches(self, pattern: str) -> bool:
        """Tell whether a glob pattern fits the file, or a folder between it and the one given."""
        if self.path.match(pattern):
            return True
        between = self.path.parents[: len(self.path.parts) - len(self.root.parts)]
        return any(folder.match(pattern) for folder in between)

    @property
    def partitions(self) -> tuple[tuple[str, str], ...]:
        """The ``column=value`` folders between the folder given and the file."""
        folders = self.path.parts[len(self.root.parts) : -1]
        pairs = (folder.partition("=") for folder in folders if "=" in folder)
        return tuple((name, value) for name, _, value in pairs)


def list_files(
    paths: Sequence[str | Path],
    format: str | None = None,
    *,
    with_schema: bool = False,
    logs: bool = False,
) -> tuple[list[TraceFile], list[TraceFault]]:
    """Return the files to read: those given, and those in the folders given; ``-`` is standard input.

    Of folders these are the files whose names say a known format or, if a format is given, all files; if no
    name says one, those that begin as a format of ``READERS`` does. Files and folders whose names start with
    ``_`` or ``.`` are passed over in folders, as Spark does, and logs of text, unless there is a schema, or
    ``logs`` asks for them. Without a format a file that begins as one of ``READERS`` is read as such, and a
    warning says so, unless its name says that it is a table, or that it is JSON and a schema tells of its
    columns.
    """
    reader = format if format in READERS else None
    asks = format is None
    files: list[TraceFile] = []
    faults: list[TraceFault] = []
    for path in paths:
        given_path = spooled(format) if str(path) == "-" else Path(path)
        if (kind := special_kind(given_path)) == "a URL":
            faults.append(TraceFault(DOWNLOAD, file=str(path)))
        elif not given_path.exists():
            faults.append(TraceFault("there is no such file: check the path", file=str(given_path)))
        elif kind is not None:
            message = f"it is {kind}, and traces are read several times: write it to a file"
            faults.append(TraceFault(message, file=str(given_path)))
        elif not given_path.is_dir():
            reader_of_file = _recognised(given_path, with_schema=with_schema) if asks else reader
            files.append(TraceFile(given_path, given_path, reader_of_file))
        else:
            inside, linked_folders = contents_of_folder(given_path)
            _warn_of_links(given_path, linked_folders)
            readers = {
                path: _recognised(path, with_schema=with_schema) if asks else reader for path in inside
            }
            lacking = "no file"
            if asks:
                texts = [path.name for path in inside if format_of(path) == "text"]
                lacking = f"logs, such as {texts[0]}: {_LOGS}" if texts else f"no file of {_KNOWN}"
                inside = _meant(inside, readers, with_schema=with_schema, logs=logs)
            elif reader:
                # Beside its rolled event logs Spark leaves an empty file that tells its state.
                inside = [path for path in inside if path.stat().st_size]
            files += [TraceFile(path, given_path, readers[path]) for path in inside]
            if not inside:
                faults.append(TraceFault(f"the folder holds {lacking}", file=str(given_path)))
    # The history server does not read what it has compacted either.
    left_out = superseded(file.path for file in files if file.reader == "spark-eventlog")
    files = [file for file in files if file.path not in left_out]
    if asks:
        _warn_of_readers(files)
    return files, faults


def _warn_of_links(folder: Path, linked_folders: Sequence[Path]) -> None:
    """Warn of links to folders in a folder, which are not followed."""
    if linked_folders:
        names = first_few([str(path.relative_to(folder)) for path in linked_folders], 3)
        warn(
            f"{folder}: links to other folders are not followed: {names}; give a folder by its own name to "
            "read it, too"
        )


def _meant(
    inside: Sequence[Path], readers: Mapping[Path, str | None], *, with_schema: bool, logs: bool
) -> list[Path]:
    """Return the files of a folder that are read where nobody names their format."""
    named = [path for path in inside if format_of(path) is not None]
    recognised = [path for path in inside if readers[path]]
    # A log beside a table was not meant, unless a schema tells of it.
    tables = [path for path in named if kind_of(path) != "text"]
    if with_schema or (logs and (tables or not recognised)):
        return named or recognised or [path for path in inside if content_kind(path) in ("text", "json")]
    return tables or recognised


def _recognised(path: Path, *, with_schema: bool) -> str | None:
    """Return the format of ``READERS`` that a file begins as, where it may be one."""
    if format_of(path) not in (None, "json") or (with_schema and format_of(path) is not None):
        return None
    # What cannot be read is met again.
    with ignoring(OSError, ValueError, pa.ArrowException):
        return recognised(first_bytes(path))
    return None


def _warn_of_readers(files: Sequence[TraceFile]) -> None:
    for name in dict.fromkeys(file.reader for file in files if file.reader is not None):
        first, *more_names = (file.path.name for file in files if file.reader == name)
        more = f" and {len(more_names)} more" if more_names else ""
        warn(f"{first}{more}: read as {name}, as what is in there says; name the format to be sure")


def reader_tick(files: Iterable[TraceFile]) -> str | None:
    """Return the tick of the files that readers read, where nobody names one; None without such files."""
    return finest_tick({file.reader for file in files if file.reader is not None})


def column_names(file: TraceFile, options: FileOptions = _DEFAULT) -> list[str] | None:
    """Return a file's columns without reading its rows, or None where that takes a full read (JSON lines).

    A TraceError says that the file cannot be read, or names a column twice.
    """
    names = None if file.reader else _own_columns(file.path, options)
    if names is None:
        return None
    names += [name for name in _places(file, options) if name not in names]
    names += [name for name in extracted_names(options.extract, names) if name not in names]
    if options.templates is not None and options.templates[0] in names:
        names = [*names, *template_columns(options.templates)]
    return names + joined_names(options.joined, names)


def first_column_names(file: TraceFile, options: FileOptions) -> list[str]:
    """Return the columns that a file has as far as it begins; none of one that cannot be read."""
    with ignoring(OSError, ValueError, StopIteration, pa.ArrowException, TraceError):
        if (names := column_names(file, options)) is not None:
            return names
        if file.reader:
            with unpacked(file.path) as stream:
                names = next(event_blocks(file.reader, stream, str(file.path))).column_names
        else:
            names = [LINE] if _known_format(file.path, options) == "text" else first_names(file.path)
        names = [*names, *_places(file, options)]
        return [*names, *extracted_names(options.extract, names), *template_columns(options.templates)]
    return []


def _places(file: TraceFile, options: FileOptions) -> dict[str, str]:
    """Return the columns, and what they hold, that tell where a file stands."""
    named = {options.file_column: file.path.name, options.folder_column: file.path.parent.name}
    return dict(file.partitions) | {name: value for name, value in named.items() if name is not None}


def _own_columns(path: Path, options: FileOptions) -> list[str] | None:
    kind = _known_format(path, options)
    with naming_file(path):
        if kind == "parquet":
            import pyarrow.parquet as pq

            with path.open("rb") as file:
                names = leaf_names(pq.read_schema(file))
        elif kind == "csv" and options.columns:
            further = () if options.columns_by is None else options.columns_by[1]
            names = list(
                dict.fromkeys(
                    (*options.columns, *(name for _, names_of_kind in further for name in names_of_kind))
                )
            )
        elif kind == "csv":
            with opened_table(path, options) as stream:
                names = header_names(stream, delimiter_of(path, options))
        else:
            return None
    if not names and kind == "csv":
        message = "the file is empty: a line with the column names is expected"
        raise TraceError(TraceFault(message, file=str(path)))
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        message = "two columns have this name: rename one"
        raise TraceError([TraceFault(message, file=str(path), column=name) for name in twice])
    return names


def read_file(
    file: Path | TraceFile,
    columns: Collection[str] | None = None,
    options: FileOptions = _DEFAULT,
    uses: ExtractionUses | None = None,
    fields: Iterable[str] = (),
    groups: tuple[int, int] | None = None,
) -> pa.Table:
    """Return the rows of a file, of these columns only as far as it has them.

    The table has no schema metadata other than the file's own, and a column ``ROW`` if its rows are not those
    of the file. ``fields`` are paths of fields within fields to make columns of. ``uses`` learns what was
    extracted. Of a Parquet file ``groups`` are the row groups to read, from one up to, but without, another
    one (None: all). A TraceError names file, row, column and value as far as they are known.
    """
    trace_file = file if isinstance(file, TraceFile) else TraceFile(file, file)
    path = trace_file.path
    kind = trace_file.reader or _known_format(path, options)
    names = None if trace_file.reader else _own_columns(path, options)
    places = _places(trace_file, options)
    requested = None if columns is None else set(columns)
    cut = {column for column, _ in options.extract}
    needed = requested
    if requested is not None:
        needed = requested | {part for name, parts in options.joined if name in requested for part in parts}
        if options.templates is not None and not needed.isdisjoint(template_columns(options.templates)):
            needed = {*needed, options.templates[0]}
        needed |= sources_of(options.extract, needed) | set(options.explode)
    csv_columns = (
        None if names is None or needed is None else [name for name in names if name in roots_of(needed)]
    )
    inner = (*(requested or ()), *fields, *cut, *(name for name, _ in options.types))
    inner_fields = sorted({*inner} - {*extracted_names(options.extract, cut)})

    def finished(table: pa.Table, uses: ExtractionUses | None = uses) -> pa.Table:
        if options.explode:
            if uses is not None:
                uses.rows += table.num_rows
            lists_seen = None if uses is None else uses.exploded
            table = exploded(_numbered(table), options.explode, str(path), lists_seen)
        table = with_fields(table, inner_fields)
        file_columns = names or table.column_names
        taken = [name for name in (options.file_column, options.folder_column) if name in file_columns]
        if taken:
            message = (
                "the schema names the file, or the folder, in such a column, and the file has one: rename it"
            )
            raise TraceError([TraceFault(message, file=str(path), column=name) for name in taken])
        for name, text in places.items():
            if name not in table.column_names and (needed is None or name in needed):
                table = table.append_column(name, pa.repeat(_folder_value(text), table.num_rows))
        if uses is not None:
            uses.read(names if names is not None else table.column_names, whole=trace_file.reader is None)
            uses.read(places)
        table = with_extracted(table, options.extract, str(path), uses, needed)
        table = with_templates(table, options.templates, str(path), needed)
        table = with_joined(table, options.joined)
        if requested is not None:
            table = table.select([name for name in table.column_names if name in requested or name == ROW])
        return table

    with naming_file(path):
        if trace_file.reader:
            kept = None if needed is None else roots_of(needed)
            with unpacked(path) as stream:
                table = finished(read_events(trace_file.reader, stream, str(path), needed, kept))
        elif kind == "parquet":
            table = finished(_read_parquet(path, needed and roots_of(needed), groups))
        elif kind == "text":
            table = _text_table(path, options, finished, uses)
        elif kind == "csv":
            table = finished(
                read_csv(path, csv_columns, delimiter_of(path, options), options, trace_file.span)
            )
        else:
            table = finished(read_json(path, needed, options, trace_file.span))
    return _with_types(table, dict(options.types), str(path))


def _text_table(
    path: Path,
    options: FileOptions,
    finished: Callable[[pa.Table, ExtractionUses | None], pa.Table],
    uses: ExtractionUses | None,
) -> pa.Table:
    """Return the records of a text, the table of each block ``finished`` by one of all cores.

    Of each block no more is kept than what is asked for.
    """
    # Who says which lines go on is not told so.
    counts_joined = options.continuation == CONTINUATION and options.record_begin is None

    def work(block: RecordLines | None) -> tuple[pa.Table, ExtractionUses | None]:
        uses_of_block = None if uses is None else ExtractionUses()
        if block is None:
            return finished(_RECORDS.empty_table(), uses_of_block), uses_of_block
        if uses_of_block is not None and counts_joined and not block.begins.all():
            uses_of_block.count_joined(block.further(), options.extract)
        lines, rows = block.records()
        return finished(pa.table([lines, pa.array(rows)], _RECORDS), uses_of_block), uses_of_block

    tables = []
    with unpacked(path, encoding=options.encoding) as stream:
        blocks = record_blocks(stream, options.continuation, parts=options.parts, begins=options.record_begin)
        for table, uses_of_block in in_order(reading_threads(), chain(blocks, [None]), work):
            if uses is not None and uses_of_block is not None:
                uses.add(uses_of_block.told())
            tables.append(table)
    return pa.concat_tables(tables)


def _numbered(table: pa.Table) -> pa.Table:
    """Return a table with the numbers of its rows."""
    return table if ROW in table.column_names else table.append_column(ROW, pa.array(np.arange(len(table))))


_RECORDS: Final = pa.schema([(LINE, pa.string()), pa.field(ROW, pa.int64(), metadata=IN_ORDER)])


def _folder_value(text: str) -> pa.Scalar:
    if text == "__HIVE_DEFAULT_PARTITION__":
        return pa.scalar(None, pa.null())
    return pa.scalar(int(text) if re.fullmatch("-?[0-9]{1,18}", text) else unquote(text))


def _known_format(path: Path, options: FileOptions) -> str:
    kind = kind_of(path, options)
    if kind is None:
        message = f"its format is not known by its name: {_KNOWN} can be read; in Python, format= names it"
        message = DOWNLOAD if is_url(path) else message
        raise TraceError(TraceFault(message, file=str(path)))
    return kind


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Turn what Arrow and the system say about a file into a fault that names it."""
    try:
        if (kind := special_kind(path)) not in (None, "a URL"):
            raise TraceError(f"it is {kind}, and files are read several times: write it to a file")
        yield
        return
    except TraceError as error:
        raise TraceError([replace(fault, file=fault.file or str(path)) for fault in error.faults]) from None
    except FileNotFoundError:
        message = DOWNLOAD if is_url(path) else "there is no such file: check the path"
    except PermissionError:
        message = "it may not be read: check its permissions"
    except UnicodeDecodeError:
        message = "the name of a column is no UTF-8 text: convert the file, or make it again"
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, csv.Error) as error:
        if getattr(error, "errno", None) == errno.ENOMEM:
            raise
        said = str(error).splitlines()[0].removeprefix(f"Could not open Parquet input source '{path}': ")
        message = f"it cannot be read, it is damaged or cut off: copy or make it again ({said.rstrip('.')})"
    raise TraceError(TraceFault(message, file=str(path)))


def delimiter_of(path: Path, options: FileOptions) -> str:
    """Return the delimiter between the values of a CSV file."""
    named = stem_suffix(path) if options.format is None else f".{options.format}"
    if (declared := columns_declared(path, options)) is not None:
        return declared.delimiter
    return options.delimiter or ("\t" if named == ".tsv" else ",")


def _read_parquet(path: Path, columns: Collection[str] | None, groups: tuple[int, int] | None) -> pa.Table:
    import pyarrow.parquet as pq

    with path.open("rb") as file, pq.ParquetFile(file) as parquet:
        names = parquet.schema_arrow.names
        present = None if columns is None else [name for name in names if name in columns]
        if groups is None:
            return takeable(parquet.read(columns=present))
        return takeable(parquet.read_row_groups(range(*groups), columns=present))


def _with_types(table: pa.Table, types: Mapping[str, ColumnType], file: str) -> pa.Table:
    faults: list[TraceFault] = []
    for name, column_type in types.items():
        if name in table.column_names:
            try:
                table = with_type(table, name, column_type)
            except TraceError as error:
                faults += [replace(fault, file=file) for fault in error.faults]
    if faults:
        raise TraceError(faults)
    return table


def with_type(table: pa.Table, name: str, column_type: str) -> pa.Table:
    """Return a table with another type of a column; a TraceError names what cannot be read as one."""
    column, target = table.column(name), _ARROW[column_type]
    if column.type == target:
        return table
    try:
        if pa.types.is_timestamp(target) and is_text(column.type):
            check_rows_agree(column, name)
        return table.set_column(table.schema.get_field_index(name), name, _cast(column, target))
    except pa.ArrowNotImplementedError:
        message = f"its type is {column.type}, which cannot be read as {column_type}"
        raise TraceError(TraceFault(message, column=name)) from None
    except pa.ArrowInvalid:
        bad = np.zeros(len(column), np.bool_)
        bad[unreadable_rows(column, partial(_cast, target=target), FAULT_LIMIT)] = True
        message = f"the value is no {column_type}: correct it, or give the column another type"
        raise TraceError(row_faults(bad, message, column=name, values=column)) from None


def _cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_timestamp(target) and is_text(column.type):
        return read_iso(column.cast(pa.string()))
    return column.cast(target)


def compile_reading() -> None:
    """Read a line of a log, and JSON flat and nested, by the kernels that read many."""
    with_extracted(pa.table({LINE: ["1 a"]}), [(LINE, "^(?P<number>[0-9]+) ")], "")
    json_table(b'{"a":1,"b":"c"}\n', [])
    compile_trees()
