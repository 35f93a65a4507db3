"""``uncertain-cep generate``: synthetic traces, the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import click

from uncertain_cep.cli.arguments import compression_of_name, format_of_name, out_option, overwrite_option
from uncertain_cep.cli.progress import note
from uncertain_cep.errors import OptionError

__all__ = ["generate"]


@click.group()
def generate() -> None:
    """Make a synthetic trace."""


@generate.command()
@click.option("--events", "n", type=int, default=1_000_000, show_default=True, help="Number of events.")
@click.option(
    "--half-interval",
    type=int,
    default=5,
    show_default=True,
    help="How many ticks before or after its stamp an event may have happened.",
)
@click.option("--series", type=int, default=1000, show_default=True, help="Values rise from 1 to this.")
@click.option("--keys", type=int, help="Spread the events over this many keys, in a column key.")
@click.option("--spacing", type=int, default=1, show_default=True, help="Ticks between events of a key.")
@click.option("--long-share", type=float, default=0.0, show_default=True, help="Share of long intervals.")
@click.option(
    "--long-half-interval",
    type=int,
    default=2000,
    show_default=True,
    help="Half the length of a long interval.",
)
@click.option("--seed", type=int, help="The same seed gives the same trace.")
@out_option("A file whose name ends in .parquet, .csv or .jsonl.", required=True)
@overwrite_option
def stream(
    n: int,
    half_interval: int,
    series: int,
    keys: int | None,
    spacing: int,
    long_share: float,
    long_half_interval: int,
    seed: int | None,
    out: str,
    overwrite: bool,
) -> None:
    """Make the stream of the paper: repeating values, one event a tick, each with an interval."""
    format_name = format_of_name(out)
    if format_name is None:
        raise OptionError(f"{out} must end in .parquet, .csv or .jsonl, which says what to write")
    from uncertain_cep.cli.batch_writers import write_batches
    from uncertain_cep.cli.outputs import result_written_aside
    from uncertain_cep.traces.streams import value_stream

    with result_written_aside(Path(out), overwrite=overwrite) as aside:
        table = value_stream(n, half_interval, series, keys, seed, spacing, long_share, long_half_interval)
        write_batches(table.to_batches(), table.schema, aside, format_name, compression_of_name(out))
    note(f"{table.num_rows:,} events in {out}")


@generate.command()
@click.option("--minutes", type=int, default=60, show_default=True, help="Length of the trace.")
@click.option("--nodes", type=int, default=10, show_default=True, help="Number of machines.")
@click.option("--seed", type=int, default=2010, show_default=True)
@out_option("A directory for tasks.parquet, metrics.parquet, clock_offsets.csv and _truth/.", required=True)
@overwrite_option
def cluster(minutes: int, nodes: int, seed: int, out: str, overwrite: bool) -> None:
    """Simulate a cluster: its task log, its 15-second metrics, and beside them the true times."""
    from uncertain_cep.traces.cluster import cluster_trace, write_cluster

    trace = cluster_trace(minutes, nodes, seed)
    write_cluster(out, trace, overwrite=overwrite)
    note(f"{trace.tasks.num_rows:,} task events and {trace.metrics.num_rows:,} metrics in {out}")
