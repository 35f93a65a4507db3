"""``uncertain-cep match``: the matches of a query, in process or on Spark."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from uncertain_cep.cli.arguments import (
    FORMATS,
    Format,
    TraceOptions,
    engine_option,
    evaluation_options,
    format_of_name,
    master_option,
    out_option,
    overwrite_option,
    parameter_option,
    query_argument,
    query_file,
    read_queries,
    schema_options,
    told_apart,
    traces_argument,
)
from uncertain_cep.cli.command_help import HelpfulCommand
from uncertain_cep.cli.progress import note
from uncertain_cep.cli.rules import alerts_of_rules, are_rules, rules_and_traces
from uncertain_cep.cli.startup import uncollected
from uncertain_cep.config.limits import IN_PROCESS_BYTES, MAX_MATCHES
from uncertain_cep.errors import OptionError
from uncertain_cep.files.query_files import QUERY_ENDINGS
from uncertain_cep.files.special_files import check_written_here
from uncertain_cep.results.output_place import check_output_place

if TYPE_CHECKING:
    from uncertain_cep.plan import MatchOptions
    from uncertain_cep.query import Query

__all__ = ["match"]

Engine = Literal["local", "spark"]


@click.command(cls=HelpfulCommand)
@query_argument
@traces_argument()
@out_option(
    "A file .parquet, .csv, .json or .jsonl, else a folder. Without it the matches go to stdout. "
    "A cluster also writes to a URI, such as s3a://bucket/matches.",
    checked=False,
)
@click.option(
    "--as",
    "types",
    multiple=True,
    metavar="TYPE",
    help="With several queries: the event type of the matches of the first, then of the second, and so"
    " on. Default: the name of the query file without its ending.",
)
@overwrite_option
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help="The format. Default: by the name of OUT; for a folder parquet, for stdout csv. json is one "
    "object a line.",
)
@click.option("--min-confidence", type=click.FloatRange(0, 1), metavar="X", help="As HAVING CONFIDENCE >= X.")
@click.option("--top", type=click.IntRange(min=1), metavar="K", help="As ORDER BY CONFIDENCE DESC LIMIT K.")
@click.option("--no-confidence", is_flag=True, help="Leave the column confidence out, which is faster.")
@click.option(
    "--approximate",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="E",
    help="Estimate confidences that cost too much, with this standard error.",
)
@click.option(
    "--undecided",
    type=click.Choice(["error", "bounds"]),
    default="error",
    show_default=True,
    help="With RETURN PROBABILITY, for a group that costs too much: an error, or certain bounds and a null.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="The seed of --approximate.")
@click.option(
    "--max-matches",
    type=click.IntRange(min=1),
    default=MAX_MATCHES,
    show_default=True,
    metavar="N",
    help="Stop with an error at more matches. Not with --engine spark.",
)
@engine_option
@master_option
@click.option(
    "--kleene",
    type=click.Choice(["matches", "compressed"]),
    default="matches",
    show_default=True,
    help="compressed: one row for each choice of the other events, with expected numbers of Kleene events.",
)
@parameter_option
@evaluation_options
@schema_options
def match(
    query: str,
    traces: tuple[str, ...],
    columns: TraceOptions,
    types: tuple[str, ...],
    out: str | None,
    overwrite: bool,
    format_name: Format | None,
    min_confidence: float | None,
    top: int | None,
    no_confidence: bool,
    approximate: float | None,
    undecided: str,
    seed: int,
    max_matches: int,
    engine: Literal["auto", "local", "spark"],
    master: str | None,
    kleene: str,
    parameters: dict[str, str],
    options: MatchOptions,
) -> None:
    """Find the matches of QUERY in one or more traces.

    QUERY is a file, or the text itself if it starts with PATTERN. It may also be a folder or a TOML file of
    rules, or files of Sigma (*.yml): their alerts are one table, whose first column is the rule. A TRACE is a
    Parquet, CSV or JSON lines file (also .gz); its columns are type, id, lower and upper unless a schema file
    or the options below say otherwise.

    More queries may follow QUERY, as files *.sase, *.query or *.sql, or as text. For each query, the matches
    of the queries before it are events over their time ranges. The result, and the options on matches, are
    those of the last query.
    """
    started = time.monotonic()
    with uncollected():
        from uncertain_cep.cli.execution import Destination, Matching, deliver
    from uncertain_cep.plan import Approximation

    options = replace(
        options,
        tick=columns.tick,
        confidence=not no_confidence,
        approximate=None if approximate is None else Approximation(approximate, seed),
        undecided=undecided,
        kleene=kleene,
        max_matches=max_matches,
    )
    if are_rules(query):
        of_one_query = {
            "--as": types,
            "--min-confidence": min_confidence,
            "--top": top,
            "--format": format_name,
            "--param": parameters,
        }
        if refused := [name for name, value in of_one_query.items() if value]:
            raise OptionError(f"{refused[0]} is for one query, and {query} holds rules: leave it out")
        if engine == "local" and master is not None:
            raise OptionError("--master is for Spark: leave it out, or use --engine spark")
        on_spark = engine == "spark" or master is not None
        place = (master or "local[*]") if on_spark else None
        sources, traces = rules_and_traces(query, traces)
        if out is not None:
            check_written_here(out)
            check_output_place(
                out, [*(("the rules", one) for one in sources), *inputs_of((), traces, columns)]
            )
        alerts_of_rules(sources, traces, columns, options, out, overwrite, place)
        return
    queries, traces = told_apart(query, traces)
    chosen, reason = choose_engine(engine, traces, master)
    if out is not None:
        on_cluster = chosen == "spark" and master is not None and not master.startswith("local")
        check_written_here(out, by_spark=on_cluster)
        check_output_place(out, inputs_of(queries, traces, columns))
    if chosen == "spark" and len(queries) > 1:
        raise OptionError("not supported yet: several queries on Spark; use --engine local")
    note(f"engine: {'Spark' if chosen == 'spark' else 'in process'} ({reason})")
    *before, last = read_queries(queries, parameters, columns.zone)
    matching = Matching(
        query=with_controls(last, min_confidence, top),
        before=named_queries(queries[:-1], types, before),
        traces=traces,
        columns=columns,
        options=options,
        master=None if chosen == "local" else master or "local[*]",
    )
    suffix = format_of_name(out) if out else None
    if out is None and format_name == "parquet":
        raise OptionError("Parquet is not printed on stdout: add -o OUT, or choose --format csv or json")
    if suffix is not None and format_name not in (None, suffix):
        raise OptionError(
            f"--format {format_name} contradicts the name {out}: leave it out, or name another file"
        )
    destination = Destination(
        out=out,
        as_file=suffix is not None,
        format_name=format_name or suffix or ("parquet" if out else "csv"),
        overwrite=overwrite,
    )
    count = deliver(matching, destination)
    where = f", in {out}" if out else ""
    note(f"{_rows_found(matching.query, count)} in {time.monotonic() - started:.1f} s{where}")


def _rows_found(query: Query, count: int) -> str:
    """Return how many rows there are, and of what."""
    from uncertain_cep.plurals import counted

    clause = query.expected_count or query.probability
    if clause is None:
        return counted(count, "match", "matches")
    if query.probability is not None and not clause.by and clause.every is None:
        return "the probability"
    if clause.by:
        return (
            counted(count, "group")
            if clause.every is None
            else f"{counted(count, 'row')}, one for each group and bucket"
        )
    return "the expected count" if clause.every is None else counted(count, "bucket")


def inputs_of(
    queries: tuple[str, ...], traces: tuple[str, ...], columns: TraceOptions
) -> list[tuple[str, str | Path]]:
    """Return all files and folders that a run reads, each behind what it is."""
    inputs: list[tuple[str, str | Path]] = []
    inputs += [("the query file", file) for query in queries if (file := query_file(query)) is not None]
    inputs += [("the input folder" if os.path.isdir(trace) else "the trace", trace) for trace in traces]
    schema = columns.schema
    if schema is not None:
        inputs += [] if schema.file is None else [("the schema file", schema.file)]
        # A table in an input folder is in the way with the folder.
        folders = [schema.folder or Path(), *(Path(trace).parent for trace in traces)]
        places = (folder / table for table in schema.tables for folder in folders)
        inputs += [("the table of clock offsets", place) for place in dict.fromkeys(places)]
    return inputs


def named_queries(
    queries: tuple[str, ...], types: tuple[str, ...], read: Sequence[Query]
) -> tuple[tuple[str, Query], ...]:
    """Return the queries before the last one, each with the type of the events that its matches are."""
    if len(types) > len(queries):
        raise OptionError(
            f"--as names the matches of every query but the last: it was given {len(types)} times for "
            f"{len(queries)} such queries"
        )
    named: dict[str, Query] = {}
    for number, (query, parsed) in enumerate(zip(queries, read, strict=True)):
        if number < len(types):
            name = types[number]
        elif query.lower().endswith(QUERY_ENDINGS):
            name = Path(query).stem
        else:
            raise OptionError("a query that is given as text has no name for its matches: add --as TYPE")
        if name in named:
            raise OptionError(f"the matches of two queries would be called {name}: name them with --as")
        named[name] = parsed
        if parsed.expected_count is not None or parsed.probability is not None:
            returned = "probabilities" if parsed.expected_count is None else "expected counts"
            raise OptionError(f"{name} returns {returned}, not matches that a query could go on with")
    return tuple(named.items())


def with_controls(query: Query, min_confidence: float | None, top: int | None) -> Query:
    """Return the query with what the options ask on top of its own HAVING, ORDER BY and LIMIT."""
    if min_confidence is not None:
        query = replace(query, min_confidence=max(min_confidence, query.min_confidence or 0.0))
    if top is not None:
        query = replace(query, order_by_confidence=True, order_by=(), limit=min(top, query.limit or top))
    return query


def choose_engine(
    engine: Literal["auto", "local", "spark"], traces: tuple[str, ...], master: str | None
) -> tuple[Engine, str]:
    """Return the engine to use and, in words, why."""
    remote = [trace for trace in traces if "://" in trace]
    if engine == "local":
        if remote:
            raise OptionError(f"the in-process engine reads local files, not {remote[0]}: use --engine spark")
        if master is not None:
            raise OptionError("--master is for Spark: leave it out, or use --engine spark")
        return "local", "as --engine says"
    if engine == "spark":
        return "spark", "as --engine says"
    if master is not None:
        return "spark", "because of --master"
    if remote:
        return "spark", f"{remote[0]} is not on this machine's file system"
    from uncertain_cep.traces.sizes import unpacked_bytes

    size = unpacked_bytes(traces)
    limit = f"{IN_PROCESS_BYTES // 2**20} MiB"
    shown = f"about {size / 2**20:,.1f} MiB of traces, unpacked"
    if size > IN_PROCESS_BYTES:
        return "spark", f"{shown}, more than {limit}"
    return "local", f"{shown}, at most {limit}"
