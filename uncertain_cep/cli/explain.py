"""``uncertain-cep explain``: how a query will be evaluated."""

from __future__ import annotations

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
from uncertain_cep.cli.progress import show
from uncertain_cep.cli.rules import are_rules, rules_and_traces, shared_by_rules
from uncertain_cep.cli.startup import without_pandas

if TYPE_CHECKING:
    from uncertain_cep.plan import MatchOptions

__all__ = ["explain"]


@click.command(cls=HelpfulCommand)
@query_argument
@traces_argument(required=False)
@click.option(
    "--analyze", is_flag=True, help="Find the matches, and show actual numbers beside the estimates."
)
@click.option("--json", "as_json", is_flag=True, help="Write a JSON object instead of text.")
@parameter_option
@evaluation_options
@schema_options
def explain(
    query: str,
    traces: tuple[str, ...],
    columns: TraceOptions,
    parameters: dict[str, str],
    options: MatchOptions,
    analyze: bool,
    as_json: bool,
) -> None:
    """Show how QUERY will be evaluated; with traces also the statistics and the plan.

    QUERY is a file, or the text itself if it starts with PATTERN; or a folder or a TOML file of rules:
    then it shows what they share.
    """
    from uncertain_cep.api import explained
    from uncertain_cep.clocks.assumed import assumed_in
    from uncertain_cep.errors import warn
    from uncertain_cep.optimizer.memory import keep_on_disk

    without_pandas()
    if are_rules(query):
        named = rules_and_traces(query, traces)
        show(shared_by_rules(*named, columns, options, analyze=analyze, as_json=as_json))
        return
    keep_on_disk()
    parsed, options = read_query(query, parameters, columns.zone), replace(options, tick=columns.tick)
    table = None
    if traces:
        from uncertain_cep.cli.execution import plan_of
        from uncertain_cep.query import attributes_in
        from uncertain_cep.traces.reading import load_traces

        loaded = load_traces(
            traces, columns.schema, format=columns.format, tick=columns.tick, used=attributes_in(parsed)
        )
        table = loaded.sound()
        plan_of(parsed, loaded, table, options)
    if columns.schema is not None:
        for said in assumed_in(parsed, columns.schema.constraints):
            warn(said)
    shown = explained(parsed, table, options, analyze=analyze, format="json" if as_json else "text")
    show(shown)
