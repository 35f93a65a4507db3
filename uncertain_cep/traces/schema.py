"""Schema files: which columns of a raw trace are what, and how uncertain its times are."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, TraceError, TraceFault
from uncertain_cep.files.toml_documents import toml_document
from uncertain_cep.plurals import counted
from uncertain_cep.traces.added_rules import added
from uncertain_cep.traces.constraints import Constraint
from uncertain_cep.traces.events_schema import KINDS, EventsSchema
from uncertain_cep.traces.formats import FileOptions
from uncertain_cep.traces.schema_document import SchemaReader
from uncertain_cep.traces.uncertain_stamps import Uncertainty

__all__ = ["TraceSchema", "given_schema", "load_schema"]


@dataclass(frozen=True, slots=True)
class TraceSchema:
    """How the rows of raw files become interval events.

    Attributes
    ----------
    events : tuple of EventsSchema
        One raw row gives an event for each that takes its file and whose condition it meets.
    tick : str or None
        Length of a tick. Default: the finest of the default ticks of all the columns of stamps.
    options : FileOptions
        How the text of files is read.
    file : str or None
        Where the schema stands; relative paths in it start from there.
    constraints : tuple of Constraint
        What cannot be otherwise, for `infer_offsets`.
    zone : str or None
        The time zone of stamps that tell none, and of commands' queries: see ``zone`` of `parse`.

    Notes
    -----
    A schema file is TOML::

        format = "spark-eventlog"  # optional, of all files whatever their names, as for `read_traces`
        tick = "1ms"               # optional
        zone = "Europe/Prague"     # optional, of stamps that tell none, and of hours and days in queries
        delimiter = ";"            # optional, of CSV files
        encoding = "latin-1"       # optional, of text that is not UTF-8; UTF-16 is known by its first letter
        skip_rows = 3              # optional, lines before the line of names of CSV files
        nulls = ["NA", "-"]        # optional, texts of CSV files that stand for null besides the empty one
        columns = ["time", "kind"] # optional, the names of columns of CSV files without a line of names
        explode = "data.spans"     # optional, a column of lists, or several: rows are made of their items
        file_column = "file"       # optional, a column for the names of files; folder_column: of folders
        deduplicate = true         # optional: of events that agree in everything all but one are left out
        continuation = '^ '       # optional, what is found in lines of text that belong to the one before
        record_begin = '^[0-9]{4}-'   # or: what is found in the first line of each record of text

        [columns_by.kind]          # optional, of such CSV files: further columns by the value of one
        CPU = ["host", "usage"]

        [types]                    # optional: string, int, float, bool or timestamp, not what is found out
        serial = "string"

        [extract]                  # optional: columns cut out of others, as the named groups of an expression
        attempt_id = '_(?P<attempt>[0-9]+)$'
        line = "log4j"             # of text files: an expression, several to be tried in order, or a name

        [templates.message]        # optional: types of texts by their words, in the column template; what
        Login = 'user <*> logged in from <*>'   # varies is in p1, p2 and so on; Other: what fits none

        [[events]]                 # one table for each event that a raw row stands for
        files = "*tasks*.csv.gz"   # optional glob on the file's name, or on the end of its path
        optional = true            # no file need be there; default: a warning where none is
        type = "TaskFinish"        # or: type_column = "a column"
        id = "{task}:finish"       # a column, a template, or "place" for file:row; default: the column id,
                                   # else a running number, as by false though there is a column id
        time = "start_ms + took"   # column of the stamps, or a sum of one and of lengths in the same unit;
                                   # or ["Date", "Time"]: columns whose texts, a space between, are the stamp
        unit = "ms"                # of numbers since 1970: ns us ms s min h d; "tick" or none: plain ticks
        time_format = "%d/%b/%Y %H:%M"   # of text that is not ISO 8601; or several, tried in order
        year = 2015                # if the format tells no year; date = 2015-10-17 if it tells no day
        fixed_date = true          # optional: all rows have that year or day; default: it changes, see docs
        time_zone = "Europe/Berlin"   # or "+02:00", of stamps that tell none; default UTC
        value_columns = ["cpu", "mem*"]   # makes an event of each value: columns variable and value
        types = { value = "float" }   # as in [types], of the rows that meet the condition
        where = "result = 'OK'"    # optional condition on the columns of the row, as in a query
        probability = "score"      # optional: column of the probability that the event happened at all
        sequence = "line"          # optional: column of the place of an event among those of its source
        ordered = true             # they happened in this order; without sequence: that of the file's rows
        source = "file"            # column of the source, unless the uncertainty tells it; default: one
        attributes = ["job", "host"]   # or { new_name = "column" }; default: the columns not used above
        uncertainty = { kind = "clock_offset", table = "offsets.csv", key = "host" }
        missing = "drop"           # rows without time or offset: "error" (default) or "drop"
        spans = true               # optional, of formats with begins and ends: one event of both, that lasts

        [[constraints]]            # optional: what cannot be otherwise, for infer-offsets
        causal = "SEQ(Send a, Get b) WHERE a.message = b.message"
        delay = "1ms"              # optional
        [[constraints]]
        encloses = [["SpanStart", "SpanEnd"], ["SpanStart", "SpanEnd"]]   # parent and child
        by = ["SpanID", "ParentID"]
        [[constraints]]
        all_before = ["MapEnd", "ShuffleEnd"]
        by = "job"                 # optional

    With a format that `read_traces` reads without a schema, ``[[events]]`` may be left out. Its rows have the
    columns ``type``, ``id``, ``lower``, ``upper`` and attributes; any other field of it can be named, too.

    Columns are named as they are, fields within fields by their path: ``task.host``, ``"a.b".c``. Formats of
    times are those of strptime, ``iso``, ``epoch_s``, ``epoch_ms``, ``epoch_us`` and ``epoch_ns``. Names of
    text formats are ``syslog``, ``syslog5424``, ``log4j``, ``access``, ``cri``
    and others of docs/text-logs.md.

    Kinds of uncertainty: ``exact``; ``plus_minus`` (``by``); ``granularity`` (``of``); ``as_written``;
    ``window`` (``length``, and ``source``, the column of a sampler of one phase); ``period`` (``length``);
    ``columns`` (``lower``,
    ``upper``: columns, or sums, ``"launch + slack"``); ``histogram`` (``pmf``, and ``lower`` unless ``time``
    is given); ``clock_offset`` (``table``, and if they differ from the default ``key``, ``host``, ``lower``,
    ``upper``, ``unit``, and ``epoch = ["from", "until"]`` where a host has several, ``shared = true``,
    ``own = { kind = "granularity", of = "1s" }``; see `clock_offset`). Lengths are texts such as ``"15s"``,
    or numbers of ticks.

    Events that last have, in place of ``time``, at least two of ``begin``, ``end`` and ``duration``: columns
    of the stamps of both ends, each as uncertain as ``uncertainty`` says, and of exact lengths, in ``unit``.

    Where the uncertainty depends on a column, such as the type or source, write instead of ``uncertainty``::

        [events.uncertainty_by.source]
        ganglia = { kind = "window", length = "15s" }
        kubelet = { kind = "plus_minus", by = "500ms" }
        "*" = { kind = "exact" }   # optional: all other values

    A relative path of a table is looked for beside the schema file, then in the folder of the trace.
    """

    events: tuple[EventsSchema, ...]
    tick: str | None = None
    options: FileOptions = field(default_factory=FileOptions)
    file: str | None = None
    constraints: tuple[Constraint, ...] = ()
    zone: str | None = None

    def __repr__(self) -> str:
        return f"<TraceSchema {self.file or 'of options'}: {counted(len(self.events), '[[events]] table')}>"

    @property
    def folder(self) -> Path | None:
        """The folder of the schema file."""
        return None if self.file is None else Path(self.file).parent

    @property
    def tables(self) -> tuple[str, ...]:
        """The files of clock offsets that its rules read, as they are named."""
        return tuple(table for events in self.events for table in events.uncertainty.tables)

    @classmethod
    def from_flags(
        cls,
        *,
        uncertainty: str | None = None,
        tick: str | None = None,
        spans_of: str | None = None,
        **flags: str | None,
    ) -> TraceSchema:
        """Return the schema that flags of a command describe: one kind of events.

        Parameters
        ----------
        uncertainty : str, optional
            A kind and its arguments: ``exact``, ``plus_minus:500ms``, ``granularity:1min``, ``window:15s``,
            ``columns:lo,hi``, ``histogram:pmf``, ``histogram:pmf,lower`` or ``clock_offset:table.csv:host``
            (table, column of the events that names the host, and if need be, each after a colon, the table's
            columns of the host, the lower and the upper bound, their unit, ``from,until`` of epochs, and
            ``shared``). Several add up: ``granularity:1s + plus_minus:200ms``.
        spans_of : str, optional
            A format that tells begins and ends, to make one event of both.
        type, type_column, id, time, begin, end, duration, unit, tick, where, missing : str or None
            As in a schema file. Without a type or its column, the column ``type``, but for ``spans_of``.

        Raises
        ------
        OptionError
            With every mistake, each named after its flag.
        """
        table: dict[str, Any] = {key: value for key, value in flags.items() if value is not None}
        document: dict[str, Any] = {"events": [table]}
        if spans_of is not None:
            document["format"], table["spans"] = spans_of, True
        elif not table.keys() & {"type", "type_column"}:
            table["type_column"] = "type"
        if uncertainty is not None:
            table["uncertainty"] = _split_flag(uncertainty)
        if tick is not None:
            document["tick"] = tick
        if "zone" in table:
            document["zone"] = table.pop("zone")
        reader = SchemaReader()
        length, events, options = reader.read(document)
        if reader.faults:
            raise OptionError(
                "\n".join(f"{_flag(path)}: {_told(path, message)}" for path, message in reader.faults)
            )
        return cls(events, length, options, zone=reader.zone)


@public
def load_schema(path: str | Path) -> TraceSchema:
    """Read a schema file; see `TraceSchema` for what stands in it.

    Raises
    ------
    TraceError
        With every mistake in the file, each with its key and what to write.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> schema = uc.load_schema(uc.examples.folder("chemotherapy") / "schema.toml")
    """
    file = os.fspath(path)
    document = toml_document(file, "schema")
    reader = SchemaReader()
    tick, events, options = reader.read(document)
    constraints = reader.constraints(document["constraints"]) if "constraints" in document else ()
    if reader.faults:
        raise TraceError([TraceFault(f"{key}: {message}", file=file) for key, message in reader.faults])
    return TraceSchema(events, tick, options, file, constraints, reader.zone)


def given_schema(schema: TraceSchema | str | Path | None) -> TraceSchema | None:
    """Return the schema that a caller gave, read by `load_schema` if it is a path."""
    if schema is None or isinstance(schema, TraceSchema):
        return schema
    schema_or_path: Any = schema
    if not isinstance(schema_or_path, str | Path):
        raise OptionError(
            f"schema={schema_or_path!r}: it takes the path of a schema file, or what load_schema made of one"
        )
    return load_schema(schema_or_path)


def given_uncertainty(rule_or_text: Uncertainty | str | Sequence[Uncertainty | str]) -> Uncertainty:
    """Return the rule that a caller gave, as such or as text, see `TraceSchema.from_flags`. Lists add up."""
    if isinstance(rule_or_text, list | tuple):
        return added([given_uncertainty(part) for part in rule_or_text])
    if not isinstance(rule_or_text, str):
        rule: Any = rule_or_text
        if not hasattr(rule, "intervals"):
            raise OptionError(
                f'uncertainty={rule_or_text!r}: write a rule, such as plus_minus("500ms"), or its text, '
                '"plus_minus:500ms"'
            )
        return rule  # type: ignore[no-any-return]
    reader = SchemaReader()
    spec = reader.uncertainty(_split_flag(rule_or_text), "uncertainty")
    if spec is None or reader.faults:
        messages = (_told(path, message) for path, message in reader.faults)
        raise OptionError("\n".join(f"uncertainty={rule_or_text!r}: {message}" for message in messages))
    return spec.rule()


_ADDED: Final = re.compile(rf"\s*\+\s*(?=(?:{'|'.join(KINDS)})(?![^:\s+]))")
"""What stands between two rules that add up, but not within one, as in ``columns:a,b + c``."""


def _split_flag(text: str) -> dict[str, Any] | list[dict[str, Any]]:
    parts = _ADDED.split(text)
    return _one_flag(text) if len(parts) == 1 else [_one_flag(part) for part in parts]


def _one_flag(text: str) -> dict[str, Any]:
    name, _, arguments = text.partition(":")
    kind = KINDS.get(name)
    if kind is None:
        return {"kind": name}
    values = arguments.split(":" if name == "clock_offset" else ",") if arguments else []
    table: dict[str, Any] = {"kind": name}
    for place, value in enumerate(values):
        key = kind.arguments[place] if place < len(kind.arguments) else value
        pair: Any = value.split(",") if key in kind.pairs else value
        if key in kind.switches:
            pair = {"shared": True}.get(value, value)
        table[key] = int(value) if key in kind.durations and value.isdigit() else pair
    return table


def _told(path: str, message: str) -> str:
    """Return the fault of an option; of the text of an uncertainty also how it is written."""
    _, is_of_text, key = path.rpartition("uncertainty.")
    if not is_of_text:
        return message
    if key == "kind":
        return f'{message}; its values stand behind a colon, such as "plus_minus:500ms"'
    if message.startswith("is missing"):
        return f'{key} {message}, behind a colon as in "window:15s"'
    return message


def _flag(path: str) -> str:
    key = path.removeprefix("events[1]").removeprefix(".").partition(".")[0]
    return f"--{key.replace('_', '-')}" if key else "--type or --type-column"
