"""``uncertain-cep order``: which of two events happened first, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from uncertain_cep.cli.arguments import (
    TraceOptions,
    limit_options,
    out_option,
    overwrite_option,
    schema_options,
    table_format,
    traces_argument,
)
from uncertain_cep.cli.command_help import HelpfulCommand
from uncertain_cep.cli.progress import note, working
from uncertain_cep.cli.startup import without_pandas

if TYPE_CHECKING:
    from uncertain_cep.plan import MatchOptions

__all__ = ["order"]


@click.command(cls=HelpfulCommand)
@traces_argument()
@click.option(
    "--by",
    multiple=True,
    metavar="COL",
    help="Only events with equal values in this column. It may be given several times.",
)
@click.option(
    "--within", metavar="D", help="Only pairs that can happen so close to each other: 5s, or whole ticks."
)
@click.option(
    "--pairs",
    type=click.Choice(["open", "all", "cover"]),
    default="open",
    show_default=True,
    help="open: those in no certain order. cover: those in certain order with none between, the edges of a "
    "drawing.",
)
@out_option("A file whose name ends in .parquet, .csv or .jsonl. Default: CSV on stdout.")
@overwrite_option
@limit_options
@schema_options
def order(
    traces: tuple[str, ...],
    columns: TraceOptions,
    by: tuple[str, ...],
    within: str | None,
    pairs: str,
    out: str | None,
    overwrite: bool,
    options: MatchOptions,
) -> None:
    """Say how likely each of two events in one or more traces happened first, for all pairs that are open.

    Each row has the ids x and y of two events, and the probabilities before (x is first), after (y is) and
    neither (both are at one tick).
    """
    from uncertain_cep.cli.batch_writers import write_table
    from uncertain_cep.happened_before.ordering import ordered_pairs
    from uncertain_cep.plurals import counted
    from uncertain_cep.traces.reading import load_traces

    without_pandas()
    format_name = table_format(out)
    with working("reading"):
        loaded = load_traces(traces, columns.schema, format=columns.format, tick=columns.tick)
        events = loaded.sound()
    length = int(within) if within is not None and within.isdecimal() else within
    with working("comparing"):
        rows = ordered_pairs(events, by, length, pairs, replace(options, tick=columns.tick))
    write_table(rows, out, format_name, overwrite=overwrite)
    note(f"{counted(rows.num_rows, 'pair')} of {counted(events.num_rows, 'event')}")
