"""``uncertain-cep validate``: every fault of a trace, and what a query finds in it."""

from __future__ import annotations

from typing import Any

import click

from uncertain_cep.cli.arguments import (
    TraceOptions,
    parameter_option,
    read_query,
    schema_options,
    traces_argument,
)
from uncertain_cep.cli.command_help import HelpfulCommand
from uncertain_cep.cli.progress import note, of_ticks, show
from uncertain_cep.cli.rules import are_rules
from uncertain_cep.cli.startup import without_pandas
from uncertain_cep.errors import OptionError

__all__ = ["validate"]


@click.command(cls=HelpfulCommand)
@traces_argument()
@click.option(
    "--query",
    metavar="QUERY",
    help="Also check a query (a file or text), or each rule of a folder or a TOML file: columns, "
    "types, unique ids, and how many events each variable can be.",
)
@parameter_option
@schema_options
@click.pass_context
def validate(
    ctx: click.Context,
    traces: tuple[str, ...],
    query: str | None,
    parameters: dict[str, str],
    columns: TraceOptions,
) -> None:
    """Check that traces can be read and matched, and print every fault with its file and row.

    It also prints a profile of the events without faults: types, times, nulls, names such as hosts, and what
    looks odd. The exit code is 0 without faults, else 2.
    """
    from uncertain_cep.plurals import counted
    from uncertain_cep.traces.profile import profile_lines, profile_of, sound_part
    from uncertain_cep.validation import validated

    without_pandas()
    parsed = None if query is None else _query_or_rules(query, parameters, columns)
    checked = validated(traces, columns.schema, parsed, columns.format, columns.tick)
    report = checked.report
    for fault in report.faults:
        show(str(fault))
    dropped = f", {report.dropped:,} dropped" if report.dropped else ""
    faults = counted(sum(fault.count for fault in report.faults), "fault") if report.faults else "no faults"
    ticks = of_ticks(report.tick, report.floored)
    note(f"{counted(report.rows, 'row')}{dropped}, {counted(report.events, 'event')}{ticks}, {faults}")
    table = report.table
    if report.faults and table is not None:
        table = sound_part(table)
    if table is not None:
        for line in profile_lines(profile_of(table)):
            show(line)
    if report.faults:
        ctx.exit(2)
    if checked.candidates is not None:
        note(checked.candidates)


def _query_or_rules(query: str, parameters: dict[str, str], columns: TraceOptions) -> Any:
    if not are_rules(query):
        return read_query(query, parameters, columns.zone)
    from uncertain_cep.rule_sets.rule_files import rules

    if parameters:
        raise OptionError("--param is for one query: a rule brings the values of its own")
    return rules(query)
