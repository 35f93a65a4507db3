"""Long CSV files and JSON lines in spans of bytes, each read by itself; nothing here imports pyspark.

Each line belongs to one span, and a span is read like a file of its own. This gives the rows of the file if
no value holds a line break and Arrow infers the same column types for all spans. Otherwise, as workers find
out, the file is read as a whole.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.timeline.domain import is_text
from uncertain_cep.traces.bounded import LONGEST_LINE
from uncertain_cep.traces.documents import are_documents
from uncertain_cep.traces.file_kinds import columns_declared, kind_of
from uncertain_cep.traces.formats import FileOptions, TraceFile, delimiter_of
from uncertain_cep.traces.instants import zoned_rows
from uncertain_cep.traces.reading_steps import Step
from uncertain_cep.traces.unpacking import compression_of, has_wide_letters, unpacked

__all__ = ["files_to_read_whole", "in_spans", "lines_are_rows", "zones_of"]

BYTES_PER_SPAN: Final = 1 << 25
"""Bytes of a long CSV file, or one of JSON lines, that a worker reads at a time."""


def in_spans(file: TraceFile, steps: Sequence[Step], options: FileOptions) -> list[TraceFile]:
    """Return the spans of a file that is long enough for several and may be read so; else the file itself."""
    if not (_format(file, options) in ("csv", "json") and _row_by_row(steps, options)):
        return [file]
    cuts = [0]
    # A file that cannot be read is reported when it is read.
    with suppress(OSError):
        size = file.path.stat().st_size
        if (
            compression_of(file.path) is None
            and columns_declared(file.path, options) is None
            and not has_wide_letters(file.path)
            and size >= 2 * BYTES_PER_SPAN
        ):
            cuts = _cuts(file, size, options)
    return [file] if len(cuts) == 1 else [replace(file, span=span) for span in pairwise((*cuts, size))]


def _cuts(file: TraceFile, size: int, options: FileOptions) -> list[int]:
    """Return where the spans of a text begin."""
    cuts = [0]
    with file.path.open("rb") as stream:
        if _format(file, options) == "json" and are_documents(stream.read(2**20)):
            return cuts
        for place in range(BYTES_PER_SPAN, size - BYTES_PER_SPAN + 1, BYTES_PER_SPAN):
            # The search begins at the byte before, which may end a line.
            stream.seek(max(place, cuts[-1]) - 1)
            if stream.readline(LONGEST_LINE).endswith(b"\n") and cuts[-1] < stream.tell() < size:
                cuts.append(stream.tell())
    return cuts


def _format(file: TraceFile, options: FileOptions) -> str | None:
    if file.reader is not None:
        return None
    return kind_of(file.path, options)


def _row_by_row(steps: Sequence[Step], options: FileOptions) -> bool:
    """Return whether each event is made of one row, independently of the rows before it."""
    if len(steps) > 1 or options.columns_by is not None or options.explode or options.deduplicate:
        return False
    if options.encoding is not None or options.skip_rows:
        return False
    events = steps[0].events
    # A time without its year or its zone is read by means of the others.
    is_complete = all("%y" in form.lower() and "%z" not in form.lower() for form in events.time_format)
    timestamps = "timestamp" in (*dict(options.types).values(), *dict(events.types).values())
    return is_complete and not (events.base or events.as_written or timestamps or events.value_columns)


def lines_are_rows(file: TraceFile, rows: int, options: FileOptions) -> bool:
    """Return whether a span with so many rows can be read by itself: no row goes on in the next line."""
    assert file.span is not None
    with unpacked(file.path, file.span) as stream:
        text: bytes = stream.read()
    if file.span[0] and text.startswith(codecs.BOM_UTF8):
        return False
    if _format(file, options) == "json" or b'"' not in text:
        return True
    named = not (file.span[0] or options.columns)
    lines = text.count(b"\n") + (not text.endswith(b"\n")) - named
    return rows == lines and _is_closed(text, delimiter_of(file.path, options))


def _is_closed(text: bytes, delimiter: str) -> bool:
    """Return whether the last line of a CSV text closes each quote that it opens."""
    import pyarrow.csv as pacsv

    last = text.rstrip(b"\n").rpartition(b"\n")[2] + b"\n"
    read = pacsv.ReadOptions(autogenerate_column_names=True, block_size=2 * LONGEST_LINE)
    parse = pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    try:
        twice = pacsv.read_csv(io.BytesIO(2 * last), read_options=read, parse_options=parse)
    except pa.ArrowInvalid:
        return False
    return bool(twice.num_rows == 2)


def zones_of(raw: pa.Table, steps: Sequence[Step]) -> dict[str, bool]:
    """Return for each column of stamps that is text whether these have a time zone, if it has any text."""
    stamps = [name for step in steps for name in step.rule.stamps(step.events.time)]
    texts = [name for name in stamps if name in raw.column_names and is_text(raw.schema.field(name).type)]
    zoned_by_name = {name: pc.any(zoned_rows(raw.column(name).cast(pa.string()))).as_py() for name in texts}
    return {name: zoned for name, zoned in zoned_by_name.items() if zoned is not None}


def files_to_read_whole(described: Mapping[TraceFile, Mapping[str, Any]]) -> set[TraceFile]:
    """Return the files whose spans do not give the rows of the file, see `describe_files`."""
    seen: dict[TraceFile, dict[Any, Any]] = {}
    refused = set()
    for span, description in described.items():
        if span.span is None:
            continue
        file = replace(span, span=None)
        schema = pa.ipc.read_schema(pa.py_buffer(description["schema"]))
        events = json.loads(description["events"] or "null")
        if events is None:
            refused.add(file)
            continue
        facts: dict[Any, Any] = {
            "metadata": schema.metadata,
            "days": events["days"],
            **{("type", field.name): field.type for field in schema if not pa.types.is_null(field.type)},
            **{("zone", name): zoned for name, zoned in events["zones"].items()},
        }
        facts_of_file = seen.setdefault(file, {})
        if any(facts_of_file.setdefault(name, fact) != fact for name, fact in facts.items()):
            refused.add(file)
    return refused
