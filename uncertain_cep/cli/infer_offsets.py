"""``uncertain-cep infer-offsets``: bounds of clocks from what cannot be otherwise in traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from uncertain_cep.cli.arguments import (
    TraceOptions,
    out_option,
    overwrite_option,
    schema_options,
    table_format,
    traces_argument,
)
from uncertain_cep.cli.command_help import HelpfulCommand
from uncertain_cep.cli.progress import note
from uncertain_cep.cli.startup import without_pandas
from uncertain_cep.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["infer_offsets"]


@click.command("infer-offsets", cls=HelpfulCommand)
@traces_argument()
@click.option(
    "--causal",
    metavar="PATTERN",
    multiple=True,
    help="Two events, the second of which never happens before the first: 'SEQ(Failed a, Start b) "
    "WHERE a.task = b.task'. May be given several times, beside the [[constraints]] of the "
    "schema.",
)
@click.option("--prior", metavar="D", help="The largest error of any clock: 10min. Default: unknown.")
@click.option("--reference", metavar="CLOCK", help="The clock that is right.")
@click.option("--source", metavar="COL", default="source", show_default=True, help="The column of clocks.")
@click.option(
    "--drop", is_flag=True, help="Leave out pairs that contradict those before them, and count them."
)
@click.option("--epochs", is_flag=True, help="Start a new epoch of a clock where it was set or has drifted.")
@schema_options
@out_option("A file whose name ends in .parquet, .csv or .jsonl. Default: CSV on stdout.")
@overwrite_option
def infer_offsets(
    traces: tuple[str, ...],
    causal: tuple[str, ...],
    drop: bool,
    columns: TraceOptions,
    out: str | None,
    overwrite: bool,
    **settings: Any,
) -> None:
    """Find bounds of the errors of the clocks in traces.

    Times are as the clocks showed them, so their uncertainty is exact, or only what the stamps cut off. The
    result is a table for clock_offset.
    """
    from uncertain_cep.cli.batch_writers import write_table
    from uncertain_cep.clocks.inferring import infer_offsets
    from uncertain_cep.plurals import counted
    from uncertain_cep.traces.constraints import causal as causal_of
    from uncertain_cep.traces.reading import load_traces

    without_pandas()
    format_name = table_format(out)
    constraints = [*(columns.schema.constraints if columns.schema else ()), *map(causal_of, causal)]
    if not constraints:
        raise OptionError("say what cannot be otherwise: --causal PATTERN, or [[constraints]] in the schema")
    events = load_traces(traces, columns.schema, format=columns.format, tick=columns.tick).sound()
    settings["contradictions"] = "drop" if drop else "error"
    bounds = infer_offsets(events, constraints, tick=columns.tick, **settings)
    unit = ""
    if format_name != "parquet":
        bounds, unit = _as_numbers(bounds)
    write_table(bounds, out, format_name, overwrite=overwrite)
    bounded = bounds.select(["offset_lo", "offset_hi"]).drop_null().num_rows
    clocks = counted(len(bounds.column(0).unique()), "clock")
    note(f"queries for what was assumed prove nothing with these bounds: {'; '.join(map(str, constraints))}")
    note(f"{clocks}: {bounded:,} of {counted(bounds.num_rows, 'row')} with both bounds{unit}")


def _as_numbers(bounds: pa.Table) -> tuple[pa.Table, str]:
    """Return bounds as whole numbers, which any format can hold, and a word on their unit."""
    import pyarrow as pa

    unit = "tick"
    for name in ("offset_lo", "offset_hi"):
        place = bounds.schema.get_field_index(name)
        dtype = bounds.schema.field(place).type
        if pa.types.is_duration(dtype):
            unit = dtype.unit
            bounds = bounds.set_column(place, name, bounds.column(place).cast(pa.int64()))
    return bounds, f'; for clock_offset they are of unit = "{unit}"'
