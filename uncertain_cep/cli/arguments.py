"""Arguments and options that several commands share."""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast, get_args

import click

from uncertain_cep.cli.progress import note
from uncertain_cep.cli.startup import uncollected
from uncertain_cep.errors import OptionError
from uncertain_cep.files.query_files import QUERY_ENDINGS, SQL_ENDING, UnreadableError, text_in
from uncertain_cep.files.special_files import check_written_here, is_of_web, special_kind
from uncertain_cep.timeline.durations import parse_duration

if TYPE_CHECKING:
    from uncertain_cep.plan import MatchOptions
    from uncertain_cep.query import Query
    from uncertain_cep.traces import TraceSchema

__all__ = [
    "FORMATS",
    "Format",
    "TraceOptions",
    "compression_of_name",
    "evaluation_options",
    "format_of_name",
    "limit_options",
    "out_option",
    "overwrite_option",
    "parameter_option",
    "query_argument",
    "query_file",
    "read_queries",
    "read_query",
    "schema_options",
    "schema_options_but_where",
    "table_format",
    "told_apart",
    "traces_argument",
    "written_here",
]

Command = TypeVar("Command", bound=Callable[..., Any])
ResultT = TypeVar("ResultT")
Format = Literal["parquet", "csv", "json"]
Compression = Literal["gzip", "zstd"]
EVALUATIONS: Final = ("auto", "point", "query_order", "any_state", "selectivity")
FORMATS: Final = cast(tuple[Format, ...], get_args(Format))

_SUFFIXES: Final[dict[str, Format]] = {
    ".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip
_COMPRESSIONS: Final[dict[str, Compression]] = {".gz": "gzip", ".zst": "zstd"}
_OTHER_SUFFIXES: Final = frozenset(
    (".arrow", ".avro", ".bz2", ".db", ".duckdb", ".feather", ".html", ".ods", ".orc", ".sqlite", ".tsv",
     ".txt", ".xls", ".xlsx", ".xml", ".xz", ".yaml", ".yml", ".zip")
)  # fmt: skip
_QUERY_TEXT: Final = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z))*PATTERN\b", re.IGNORECASE)

_LOOKED_AT: Final = 4_096

query_argument = click.argument("query")


def _readable(
    _context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    for trace in value:
        if is_of_web(trace):
            raise OptionError(f"{trace}: nothing is read from the web: download it, and name the file")
    return value


def written_here(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Return the place of a result, unless it is a URL."""
    if value is not None:
        check_written_here(value)
    return value


def traces_argument(*, required: bool = True) -> Callable[[Command], Command]:
    """Return the argument of a command that names its traces."""
    metavar = "TRACE..." if required else "[TRACE...]"
    return click.argument("traces", nargs=-1, required=required, metavar=metavar, callback=_readable)


overwrite_option = click.option("--overwrite", is_flag=True, help="Replace an earlier result.")


def _seconds(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    seconds = parse_duration(value, what="--time-limit") / 1e9
    if not seconds:
        raise OptionError("--time-limit 0 leaves no time: leave it out for no limit")
    return seconds


_SOURCES: Final = click.option(
    "--sources/--no-sources",
    default=True,
    help="By default, events of one clock with bounded offset move together; --no-sources takes them "
    "as independent.",
)
_LIMITS: Final = (
    click.option(
        "--time-limit",
        metavar="T",
        callback=_seconds,
        help="Stop with an error and without a result after this time: 30s, 5min. Reading the traces and "
        "starting Spark count.",
    ),
    click.option(
        "--memory-limit",
        metavar="M",
        help="Stop with an error and without a result before the process holds more memory: 4GB, 512MiB. "
        "Not with --engine spark.",
    ),
)
_EVALUATION_OPTIONS: Final = (
    click.option(
        "--evaluation",
        type=click.Choice(EVALUATIONS),
        default="auto",
        show_default=True,
        help="The method of evaluation; all give the same answer.",
    ),
    click.option(
        "--planner",
        metavar="P",
        default="auto",
        show_default=True,
        help="How to order the joins: auto, trivial, frequency, greedy, ii_random, ii_greedy, "
        "dp_left_deep, dp_bushy, zstream, zstream_greedy, or a tree over the variables, '((c a) b)'.",
    ),
    click.option(
        "--latency-weight",
        type=click.FloatRange(min=0),
        metavar="A",
        default=0.0,
        show_default=True,
        help="For planners: how much the work after the last event counts beside all the work.",
    ),
    _SOURCES,
    click.option(
        "--known-until",
        metavar="T",
        default=None,
        help="All events are known up to this time, ISO 8601 text or a tick. Leave out matches with a gap "
        "that can end later, such as a negation at the end.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        help="Most threads at once. Default: one for each core. Without ORDER BY the order of the matches "
        "depends on it. Not with --engine spark.",
    ),
    *_LIMITS,
)


def _gathered(
    options: Sequence[Callable[[Any], Any]], keyword: str, gather: Callable[..., object], names: Sequence[str]
) -> Callable[[Callable[..., ResultT]], Callable[..., ResultT]]:
    """Return a decorator that adds options to a command, gathered by ``gather`` into one keyword argument."""

    def decorate(command: Callable[..., ResultT]) -> Callable[..., ResultT]:
        @functools.wraps(command)
        def with_options(*arguments: Any, **values: Any) -> ResultT:
            made = gather(**{name: values.pop(name) for name in names})
            return command(*arguments, **{keyword: made}, **values)

        decorated: Callable[..., ResultT] = with_options
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def _match_options(time_limit: float | None, memory_limit: str | None, **values: Any) -> MatchOptions:
    started = time.monotonic()
    with uncollected():
        from uncertain_cep.plan import MatchOptions
        from uncertain_cep.running.resource_limits import Limits

    limits = Limits.of(time_limit, memory_limit)
    return MatchOptions(limit=limits and replace(limits, started=started), **values)


evaluation_options: Final = _gathered(
    _EVALUATION_OPTIONS,
    "options",
    _match_options,
    (
        "evaluation",
        "planner",
        "latency_weight",
        "sources",
        "known_until",
        "threads",
        "time_limit",
        "memory_limit",
    ),
)
"""Adds the options of every evaluation to a command, which gets them as ``options``, a `MatchOptions`."""

limit_options: Final = _gathered(
    (_SOURCES, *_LIMITS), "options", _match_options, ("sources", "time_limit", "memory_limit")
)
"""Adds those options that do not choose a method."""


def _parameters(
    _context: click.Context, _parameter: click.Parameter, settings: tuple[str, ...]
) -> dict[str, str]:
    values: dict[str, str] = {}
    for one in settings:
        name, equals, value = one.partition("=")
        name = name.strip().removeprefix("$")
        if not equals or not name:
            raise OptionError(f"--param {one!r}: write NAME=VALUE, such as --param limit=5 for $limit")
        if name in values:
            raise OptionError(f"--param gives {name} twice")
        values[name] = value
    return values


parameter_option: Final = click.option(
    "--param",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_parameters,
    help="A parameter of the query: limit=5 for $limit. May be given several times.",
)


engine_option: Final = click.option(
    "--engine",
    type=click.Choice(["auto", "local", "spark"]),
    default="auto",
    show_default=True,
    help="local: in this process. auto: Spark for traces above 512 MiB unpacked, on another file system, or "
    "with --master.",
)

master_option: Final = click.option(
    "--master",
    metavar="M",
    help="Spark's master: local[4], a cluster's URL, or sc://HOST for Spark Connect. Default: local[*].",
)


def out_option(
    explanation: str, *, required: bool = False, checked: bool = True
) -> Callable[[Command], Command]:
    """Return the option -o of a command; one that is ``checked`` refuses URLs."""
    check = written_here if checked else None
    return click.option("-o", "--out", metavar="OUT", required=required, callback=check, help=explanation)


def format_of_name(name: str) -> Format | None:
    """Return the format that a file name ends in, or None for the name of a directory.

    An OptionError says that it is the name of a file of another format.
    """
    suffix = Path(name).suffix.lower()
    packed = compression_of_name(name)
    if packed is not None:
        inner = Path(name).with_suffix("").suffix.lower()
        format_name = _SUFFIXES.get(inner)
        if format_name in (None, "parquet"):
            raise OptionError(f"{name}: {suffix} is for text, such as r.csv{suffix} or r.jsonl{suffix}")
        return format_name
    if suffix in _OTHER_SUFFIXES:
        raise OptionError(
            f"{name}: {suffix} cannot be written: name a file {', '.join(_SUFFIXES)}, or a directory"
        )
    return _SUFFIXES.get(suffix)


def table_format(out: str | None) -> Format:
    """Return the format of a table that goes to one file, or as CSV to stdout if it is None."""
    if out is None:
        return "csv"
    format_name = format_of_name(out)
    if format_name is None:
        raise OptionError(f"{out} must end in .parquet, .csv or .jsonl, which says what to write")
    return format_name


def compression_of_name(name: str) -> Compression | None:
    """Return how a file of this name is compressed."""
    return _COMPRESSIONS.get(Path(name).suffix.lower())


def told_apart(query: str, arguments: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the queries and the traces of a command line.

    Behind the first argument, which is a query, further ones are those that begin with PATTERN or are
    files named as `QUERY_ENDINGS` say; the first other argument begins the traces. An OptionError says that
    there is no trace, or a query behind one.
    """
    queries = [query]
    traces = list(arguments)
    while traces and _is_query(traces[0]):
        queries.append(traces.pop(0))
    late = [argument for argument in traces if _is_query(argument)]
    if late:
        raise OptionError(f"queries come before the traces: {late[0]!r} stands behind {traces[0]!r}")
    if not traces:
        more = f"; {queries[-1]!r} is taken for a query, too" if len(queries) > 1 else ""
        raise OptionError(f"there is no trace: name one or more files behind the queries{more}")
    for trace in traces:
        if _holds_query(trace):
            raise OptionError(
                f"{trace} holds a query, and stands where traces do: further queries are files named "
                f"*{' or *'.join(QUERY_ENDINGS)} before the traces, or text that begins with PATTERN"
            )
    return tuple(queries), tuple(traces)


def _is_query(argument: str) -> bool:
    return _QUERY_TEXT.match(argument) is not None or argument.lower().endswith(QUERY_ENDINGS)


def _holds_query(trace: str) -> bool:
    """Tell whether a file begins as a query does."""
    with suppress(OSError, ValueError):
        if os.path.isfile(trace) and special_kind(trace) is None:
            with open(trace, "rb") as file:
                return _QUERY_TEXT.match(file.read(_LOOKED_AT).decode("utf-8-sig", "replace")) is not None
    return False


def query_file(argument: str) -> str | None:
    """Return the file that a query argument names, or None if it is the text of a query."""
    return None if _QUERY_TEXT.match(argument) else argument


def read_queries(
    arguments: Sequence[str], parameters: Mapping[str, str], zone: str | None = None
) -> tuple[Query, ...]:
    """Return the queries of arguments, each with the values of those parameters that it has.

    The query is the argument itself if that begins with PATTERN, else what is in the file of that name. Its
    hours and days are those of the zone. An OptionError says that none has a parameter.
    """
    from uncertain_cep.query import parse, query_of
    from uncertain_cep.query.syntax import Untyped

    queries = [parse(_text_of(argument), zone=zone) for argument in arguments]
    names = {name for query in queries for name in query.parameters}
    typed = tuple(sorted((name, Untyped(value)) for name, value in parameters.items()))
    return tuple(
        query_of(query, tuple(one for one in typed if one[0] in query.parameters or one[0] not in names))
        for query in queries
    )


def read_query(argument: str, parameters: Mapping[str, str], zone: str | None = None) -> Query:
    """Return the query of one argument, see :func:`read_queries`."""
    return read_queries((argument,), parameters, zone)[0]


def _text_of(argument: str) -> str:
    if _QUERY_TEXT.match(argument):
        return argument
    if special_kind(argument) == "a named pipe":
        note(f"reading the query from the pipe {argument} ...")
    try:
        text = text_in(argument, pipes=True)
    except UnreadableError as error:
        shown = argument if len(argument) <= 60 else f"{argument[:60]}..."
        hint = "" if os.path.exists(argument) else ". (A query given as text starts with PATTERN.)"
        raise OptionError(f"the query file {shown!r} {error}{hint}") from None
    if not argument.lower().endswith(SQL_ENDING):
        return text
    from uncertain_cep.query.sql_queries import translated

    return translated(text)


class _FormatOption(click.Option):
    """An option whose help lists the formats, which are imported if they are to be shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names and the help of the option."""
        from uncertain_cep.traces.readers.registry import READERS

        record = super().get_help_record(ctx)
        return record and (record[0], record[1].format(formats=", ".join(READERS)))


_SCHEMA_OPTIONS: Final = (
    click.option(
        "--input-format",
        cls=_FormatOption,
        metavar="F",
        help="What all traces are, whatever their names: csv, tsv, json, parquet, or a format that needs no "
        "schema: {formats}.",
    ),
    click.option("--schema", metavar="FILE", help="A schema file (TOML), instead of the options below."),
    click.option("--type", metavar="T", help="The type of all events."),
    click.option("--type-column", metavar="COL", help="The column of the types."),
    click.option("--id", metavar="COL", help="The column of the ids. Default: running numbers."),
    click.option("--time", metavar="COL", help="The column of the stamps, or a sum: at - 60 s."),
    click.option("--begin", metavar="COL", help="The column of begins, for events that last."),
    click.option("--end", metavar="COL", help="The column of ends, for events that last."),
    click.option(
        "--duration", metavar="COL", help="The column of durations. Events that last need two of the three."
    ),
    click.option(
        "--spans",
        is_flag=True,
        default=None,
        help="Make one event that lasts of each begin and end of an --input-format.",
    ),
    click.option("--unit", metavar="U", help="The unit of numeric stamps: s, ms, us, ns, or tick."),
    click.option("--tick", metavar="D", help="The length of a tick, such as 100ms."),
    click.option(
        "--uncertainty",
        metavar="RULE",
        help="exact, plus_minus:500ms, granularity:1min, window:15s, period:60s, columns:LOWER,UPPER, "
        "histogram:PMF or clock_offset:TABLE:COL; several add up: granularity:1s + plus_minus:200ms.",
    ),
    click.option("--zone", metavar="Z", help="The time zone of stamps without one, and of hours and days."),
    click.option(
        "--missing",
        type=click.Choice(["error", "drop"]),
        help="What to do about rows without a time. Default: error.",
    ),
)


_WHERE: Final = click.option("--where", metavar="CONDITION", help="Read only rows that meet this condition.")


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """The options on traces.

    Without a schema the columns are type, id, lower and upper; only then there may be a tick.
    """

    schema: TraceSchema | None
    tick: str | None
    format: str | None = None
    zone: str | None = None
    """The time zone of queries; None: UTC."""


def _trace_options(
    schema: str | None, tick: str | None, input_format: str | None, zone: str | None, **flags: Any
) -> TraceOptions:
    from uncertain_cep.traces import TraceSchema, load_schema

    columns = {name: value for name, value in flags.items() if value is not None}
    if schema is not None:
        if columns or tick is not None or zone is not None:
            flag = next(iter(columns), "zone" if tick is None else "tick").replace("_", "-")
            raise OptionError(f"--{flag} and --schema exclude each other: write it into the schema file")
        loaded = load_schema(schema)
        return TraceOptions(_of_format(loaded, input_format), None, input_format, loaded.zone)
    if not columns:
        if zone is not None:
            from uncertain_cep.timeline.zones import check_zone

            check_zone(zone)
        return TraceOptions(None, tick, input_format, zone)
    if columns.pop("spans", None):
        from uncertain_cep.traces.readers.registry import READERS

        formats = [name for name, reader in READERS.items() if reader.spans]
        if input_format not in formats:
            raise OptionError(
                f"--spans needs an --input-format that tells begins and ends: {', '.join(formats)}"
            )
        columns["spans_of"] = input_format
    elif "uncertainty" not in columns:
        raise OptionError(
            "say how uncertain the times are: --uncertainty plus_minus:500ms, granularity:1min, window:15s, "
            "columns:LOWER,UPPER, ..., or --uncertainty exact"
        )
    made = TraceSchema.from_flags(tick=tick, zone=zone, **columns)
    return TraceOptions(_of_format(made, input_format), None, input_format, zone)


def _of_format(schema: TraceSchema, input_format: str | None) -> TraceSchema:
    """Return the schema for files of a format, which goes before the one that it names itself."""
    if input_format is None:
        return schema
    return replace(schema, options=replace(schema.options, format=input_format))


_SCHEMA_NAMES: Final = (
    *("input_format", "schema", "tick", "type", "type_column", "id", "time", "unit", "uncertainty"),
    *("begin", "end", "duration", "spans", "missing", "zone"),
)  # fmt: skip

schema_options: Final = _gathered(
    (*_SCHEMA_OPTIONS, _WHERE), "columns", _trace_options, (*_SCHEMA_NAMES, "where")
)
"""Adds the options to a command, which gets what they say as ``columns``, `TraceOptions`."""

schema_options_but_where: Final = _gathered(_SCHEMA_OPTIONS, "columns", _trace_options, _SCHEMA_NAMES)
"""The same without ``--where``, for a command that has an option of this name."""
