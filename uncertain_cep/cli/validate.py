"""``uncertain-cep validate``: every fault of a trace."""

from __future__ import annotations

import click

from uncertain_cep.cli.arguments import traces_argument
from uncertain_cep.cli.progress import note
from uncertain_cep.cli.schemas import TraceOptions, schema_options

__all__ = ["validate"]


@click.command()
@traces_argument
@schema_options
@click.pass_context
def validate(ctx: click.Context, traces: tuple[str, ...], columns: TraceOptions) -> None:
    """Check that traces can be read and matched, and print every fault with its file and row.

    Exit code 0 without faults, else 2.
    """
    from uncertain_cep.traces import validation_report

    report = validation_report(traces, columns.schema)
    for fault in report.faults:
        click.echo(str(fault))
    dropped = f", {report.dropped:,} dropped" if report.dropped else ""
    found = f"{len(report.faults):,} faults" if report.faults else "no faults"
    note(f"{report.rows:,} rows{dropped}, {report.events:,} events, {found}")
    if report.faults:
        ctx.exit(2)
