"""``uncertain-cep explain``: how a query will be evaluated."""

from __future__ import annotations

import click

from uncertain_cep.cli.arguments import (
    evaluation_option,
    latency_weight_option,
    planner_option,
    query_argument,
    read_query,
    time_limit_option,
)
from uncertain_cep.cli.schemas import TraceOptions, schema_options

__all__ = ["explain"]


@click.command()
@query_argument
@click.argument("traces", nargs=-1, metavar="[TRACE...]")
@evaluation_option
@planner_option
@latency_weight_option
@click.option("--analyze", is_flag=True, help="Find the matches, and set actual numbers beside estimates.")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON object instead of words.")
@time_limit_option
@schema_options
def explain(
    query: str,
    traces: tuple[str, ...],
    columns: TraceOptions,
    evaluation: str,
    planner: str,
    latency_weight: float,
    analyze: bool,
    as_json: bool,
    time_limit: float | None,
) -> None:
    """Say how QUERY will be evaluated; with traces also on what statistics, and by which plan.

    QUERY is a file, or the text itself if it starts with PATTERN.
    """
    import uncertain_cep as uc
    from uncertain_cep.optimizer.memory import keep_on_disk

    keep_on_disk()
    parsed = read_query(query)
    table = None
    if traces:
        from uncertain_cep.traces import read_traces

        table = read_traces(traces, columns.schema, tick=columns.tick)
    found = uc.explain(
        parsed,
        table,
        tick=columns.tick,
        evaluation=evaluation,
        planner=planner,
        latency_weight=latency_weight,
        analyze=analyze,
        format="json" if as_json else "text",
        timeout=time_limit,
    )
    click.echo(found)
