"""``uncertain-cep order`` and ``join``: pairs of events by their times, and how sure they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

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
from uncertain_cep.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from uncertain_cep.plan import MatchOptions

__all__ = ["join", "order"]


@click.command(cls=HelpfulCommand)
@traces_argument()
@click.option(
    "--by",
    multiple=True,
    metavar="COL",
    help="Only pairs of events with equal values in this column. May be given several times.",
)
@click.option(
    "--within", metavar="D", help="Only pairs that can happen this close to each other: 5s, or whole ticks."
)
@click.option(
    "--pairs",
    type=click.Choice(["open", "all", "cover"]),
    default="open",
    show_default=True,
    help="open: pairs in no certain order. cover: pairs in certain order with no event between, the "
    "edges of a drawing.",
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
    """Show which of two events happened first, and how likely, for all pairs in no certain order.

    Each row has the ids x and y of two events, and the probabilities before (x is first), after (y is) and
    neither (both are at one tick, or overlap if they last).
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


_OF_ONE_WAY: Final = {"asof": ("tolerance", "exact", "ties", "left_at", "right_at"), "when": ("how",)}


@click.command(cls=HelpfulCommand)
@click.argument("left", metavar="LEFT")
@click.argument("right", metavar="RIGHT")
@click.option(
    "--on",
    multiple=True,
    metavar="COL",
    help="Only pairs with equal values in this column of both traces. May be given several times.",
)
@click.option(
    "--when",
    metavar="RELATION",
    help="The relation of a pair: overlaps, contains, during, before, after, or 'within 5s'. Default: "
    "overlaps.",
)
@click.option(
    "--how",
    type=click.Choice(["inner", "left"]),
    help="left: also say how likely an event of LEFT has no pair.",
)
@click.option(
    "--asof",
    type=click.Choice(["backward", "forward", "nearest"]),
    help="Instead of pairs, find the last event of RIGHT that was not later, the first that was not "
    "earlier, or the nearest.",
)
@click.option("--tolerance", metavar="D", help="With --asof: the largest distance, 5s or whole ticks.")
@click.option(
    "--exact/--no-exact",
    default=None,
    help="With --asof: both may be at one tick, unless --no-exact is given.",
)
@click.option(
    "--ties",
    type=click.Choice(["one", "all"]),
    help="With --asof: take one of several events of RIGHT at one tick, as pandas does, or all. "
    "Default: one.",
)
@click.option(
    "--left-at",
    type=click.Choice(["begin", "end"]),
    help="With --asof: which end of events of LEFT that last counts. Default: begin.",
)
@click.option(
    "--right-at",
    type=click.Choice(["begin", "end"]),
    help="With --asof: which end of events of RIGHT that last counts. Default: end.",
)
@click.option("--left-type", metavar="TYPE", help="Only events of this type in LEFT.")
@click.option("--right-type", metavar="TYPE", help="Only events of this type in RIGHT.")
@out_option("A file whose name ends in .parquet, .csv or .jsonl. Default: CSV on stdout.")
@overwrite_option
@limit_options
@schema_options
def join(
    left: str,
    right: str,
    columns: TraceOptions,
    out: str | None,
    overwrite: bool,
    options: MatchOptions,
    **chosen: Any,
) -> None:
    """Join the events of two traces by their times, with the probability of each pair.

    LEFT and RIGHT may be one file, with --left-type and --right-type. Each row has left_id and right_id, the
    columns of both, and the probability.
    """
    from uncertain_cep.cli.batch_writers import write_table
    from uncertain_cep.joining.asof_joins import PartnerOptions, joined_asof
    from uncertain_cep.joining.pair_joins import joined
    from uncertain_cep.plurals import counted

    without_pandas()
    format_name = table_format(out)
    _check_ways(chosen)
    with working("reading"):
        events = _events(left, chosen["left_type"], columns)
        candidates = _events(right, chosen["right_type"], columns)
    options = replace(options, tick=columns.tick)
    with working("joining"):
        if chosen["asof"] is None:
            when, how = chosen["when"] or "overlaps", chosen["how"] or "inner"
            rows = joined(events, candidates, chosen["on"], when, how, options)
        else:
            exact, tolerance = chosen["exact"] is not False, chosen["tolerance"]
            length = int(tolerance) if tolerance is not None and tolerance.isdecimal() else tolerance
            at = chosen["left_at"] or "begin", chosen["right_at"] or "end"
            partner = PartnerOptions(chosen["asof"], exact, length, chosen["ties"] or "one", *at)
            rows = joined_asof(events, candidates, chosen["on"], partner, options)
    write_table(rows, out, format_name, overwrite=overwrite)
    both = " and ".join(counted(side.num_rows, "event") for side in (events, candidates))
    note(f"{counted(rows.num_rows, 'row')} of {both}")


def _check_ways(chosen: Mapping[str, Any]) -> None:
    """Raise OptionError if options of pairs and of --asof are mixed."""
    is_asof = chosen["asof"] is not None
    if is_asof and chosen["when"] is not None:
        raise OptionError("--asof and --when exclude each other")
    for name in _OF_ONE_WAY["when" if is_asof else "asof"]:
        if chosen[name] is not None:
            raise OptionError(f"--{name.replace('_', '-')} goes with {'--when' if is_asof else '--asof'}")


def _events(place: str, type_: str | None, columns: TraceOptions) -> pa.Table:
    """Return the events of a trace, of one type if it is given."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from uncertain_cep.traces.reading import load_traces

    events = load_traces((place,), columns.schema, format=columns.format, tick=columns.tick).sound()
    if type_ is None:
        return events
    return events.filter(pc.equal(events.column("type").cast(pa.string()), type_))
