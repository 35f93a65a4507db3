"""``uncertain-cep decide``: what would decide the answers of a query."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from uncertain_cep.cli.arguments import (
    TraceOptions,
    evaluation_options,
    parameter_option,
    query_argument,
    read_query,
    schema_options,
    traces_argument,
)
from uncertain_cep.cli.command_help import HelpfulCommand
from uncertain_cep.cli.progress import announced_kernels, show, working

if TYPE_CHECKING:
    from uncertain_cep.plan import MatchOptions

__all__ = ["decide"]


@click.command(cls=HelpfulCommand)
@query_argument
@traces_argument()
@click.option(
    "--by",
    type=click.Choice(["source", "type", "event"]),
    default="source",
    show_default=True,
    help="How to group the times of events. Clocks always stand alone.",
)
@click.option(
    "--doubtful",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="K",
    help="List the K most doubtful answers.",
)
@click.option("--json", "as_json", is_flag=True, help="Write a JSON object instead of text.")
@parameter_option
@evaluation_options
@schema_options
def decide(
    query: str,
    traces: tuple[str, ...],
    columns: TraceOptions,
    by: str,
    doubtful: int,
    as_json: bool,
    parameters: dict[str, str],
    options: MatchOptions,
) -> None:
    """Name the times and clocks that, if known, would decide most answers of QUERY in one or more traces.

    An answer is a match, or with RETURN PROBABILITY a group.

    QUERY is a file, or the text itself if it starts with PATTERN.
    """
    from uncertain_cep.cli.execution import plan_of
    from uncertain_cep.optimizer.memory import keep_on_disk
    from uncertain_cep.query import attributes_in
    from uncertain_cep.resolving.decided import decided
    from uncertain_cep.results.display import as_text
    from uncertain_cep.traces.reading import load_traces

    keep_on_disk()
    parsed, options = read_query(query, parameters, columns.zone), replace(options, tick=columns.tick)
    with working("reading"):
        loaded = load_traces(
            traces, columns.schema, format=columns.format, tick=columns.tick, used=attributes_in(parsed)
        )
        table = loaded.sound()
        plan_of(parsed, loaded, table, options)
    announced_kernels()
    with working("matching"):
        result = decided(parsed, table, options, by, doubtful)
    if not as_json:
        show(str(result))
        return
    sources, answers = (as_text(part).to_pylist() for part in (result.sources, result.answers))
    facts = {
        "sentence": result.sentence, "count": result.count, "open": result.open, "sources": sources,
        "answers": answers,
    }  # fmt: skip
    show(json.dumps(facts, indent=2, default=str))
