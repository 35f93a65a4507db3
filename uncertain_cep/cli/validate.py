"""``uncertain-cep validate``: every fault of a trace, and what a query finds in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from uncertain_cep.cli.arguments import read_query, traces_argument
from uncertain_cep.cli.progress import note, of_ticks
from uncertain_cep.cli.schemas import TraceOptions, schema_options

if TYPE_CHECKING:
    import pyarrow as pa

    from uncertain_cep.plan import EvaluationPlan

__all__ = ["validate"]


@click.command()
@traces_argument
@click.option(
    "--query",
    metavar="QUERY",
    help="Also check that this query, a file or a text, can be asked of the traces: its columns and types, "
    "whether ids are unique in its partitions, and how many events each variable can be.",
)
@schema_options
@click.pass_context
def validate(ctx: click.Context, traces: tuple[str, ...], query: str | None, columns: TraceOptions) -> None:
    """Check that traces can be read and matched, and print every fault with its file and row.

    Exit code 0 without faults, else 2.
    """
    from uncertain_cep.candidates.doubts import EMPTY_TRACE
    from uncertain_cep.errors import warn
    from uncertain_cep.plan import make_plan
    from uncertain_cep.traces.reading import load_traces
    from uncertain_cep.traces.validate import report_of
    from uncertain_cep.wording import counted

    parsed = None if query is None else read_query(query)
    loaded = load_traces(traces, columns.schema, tick=columns.tick)
    plan = None
    if parsed is not None and loaded.table is not None and not loaded.faults:
        plan = make_plan(parsed, loaded.table.schema, tick=columns.tick)
    report = report_of(loaded, partition=() if plan is None else plan.partition_attributes)
    report.warn()
    for fault in report.faults:
        click.echo(str(fault))
    dropped = f", {report.dropped:,} dropped" if report.dropped else ""
    found = counted(len(report.faults), "fault") if report.faults else "no faults"
    ticks = of_ticks(report.tick, report.floored)
    note(f"{counted(report.rows, 'row')}{dropped}, {counted(report.events, 'event')}{ticks}, {found}")
    if report.faults:
        ctx.exit(2)
    if not report.events:
        warn(EMPTY_TRACE)
    if plan is not None and loaded.table is not None:
        note(_candidates(plan, loaded.table))


def _candidates(plan: EvaluationPlan, table: pa.Table) -> str:
    """Return how many events each variable of a query can be; warn of what may not be meant."""
    from uncertain_cep.candidates.doubts import Doubts
    from uncertain_cep.executor import candidates

    doubts = Doubts()
    doubts.about(plan)
    for branch in plan.branches or (plan,):
        candidates(branch, table, doubts)
    return doubts.summary()
