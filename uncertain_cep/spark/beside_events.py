"""Matches and the events that matter to them, brought to the same workers by one shuffle.

A match depends on the events with its values of the keys that can happen within a window of its time range.
So a match goes to the slice of time in which its range begins, and an event to each slice whose matches may
depend on it. Such slices can begin before the event by up to a window and the longest range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from uncertain_cep.config.limits import MAX_TICK
from uncertain_cep.executor import check_table
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.matched_events import OWN_COLUMNS, check_columns_of
from uncertain_cep.spark.clock_offsets import check_clock_columns, check_offsets_agree
from uncertain_cep.spark.dataframes import (
    arrow_schema,
    as_spark_keeps,
    column,
    from_arrow_schema,
    in_ticks,
    in_workers,
    plainly_named,
    quotient,
)
from uncertain_cep.spark.ordered_sources import Clusters, check_orders, clustered
from uncertain_cep.spark.worker import unused_name

__all__ = ["Computation", "beside_events"]

Computation = Callable[[pa.Table, pa.Table], pa.Table]
"""Makes a table from events and matches; its first column ``match`` is the row of the match."""

_REACHES: Final = 8
"""The length of a slice in windows and longest ranges: an event is in 1.3 slices on average."""


class _Work(NamedTuple):
    """The instructions for a worker."""

    plan: EvaluationPlan
    compute: Computation
    matches: pa.Schema
    """The number of a match, its keys and its variables."""
    events: pa.Schema
    result: pa.Schema


def beside_events(
    matches: DataFrame,
    events: DataFrame,
    schema: pa.Schema,
    plan: EvaluationPlan,
    compute: Computation,
    number: Column | None = None,
) -> DataFrame:
    """Return the results of a function of matches and the events that matter to them, part by part.

    Parameters
    ----------
    matches : DataFrame
        With at least the columns of the plan's keys and variables. Without ``range_lower`` and
        ``range_upper`` all matches of a key are in one part.
    events : DataFrame
        With times and ids as `whole_numbers` makes them.
    schema : pyarrow.Schema
        The columns of events that the function gets, at least those that the plan requires.
    number : Column, optional
        The number of each match, which stands for its row in the result. Default: any numbers.
    """
    check_columns_of(plan, matches.columns)
    check_clock_columns(plan, schema)
    check_offsets_agree(events, plan)
    check_orders(events, plan)
    keys = {name: column(name).cast(events.schema[name].dataType) for name in plan.partition_attributes}
    columns = [
        *(key.alias(name) for name, key in keys.items()),
        *(column(component.variable) for component in plan.components),
    ]
    named = unused_name(arrow_schema(matches.select(*columns)), OWN_COLUMNS[0])
    columns.insert(0, (f.monotonically_increasing_id() if number is None else number).alias(named))
    held = matches.select(*columns)
    of_matches = arrow_schema(held)
    nothing = compute(schema.empty_table(), of_matches.empty_table())
    work = _Work(plan, compute, of_matches, schema, as_spark_keeps(nothing.schema))
    parts = int(matches.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    shared = [name for name in plan.shared_keys if name in keys]
    events, clusters = clustered(events, plan)
    if clusters is not None:
        shared = [name for name in shared if name == plan.names.source]
    of_keys = {name: keys[name] for name in shared}
    part, reached, events = _parts(matches, events, plan, of_keys, parts, clusters)
    none_of_matches = [f.lit(None).cast(field.dataType) for field in held.schema.fields]
    none_of_events = [f.lit(None).cast(events.schema[name].dataType) for name in schema.names]
    rows = matches.select(part, f.lit(True), *columns, *none_of_events).union(
        events.select(f.explode(reached), f.lit(False), *none_of_matches, *map(column, schema.names))
    )
    rows = plainly_named(rows)
    spread = rows.repartitionById(parts, column(rows.columns[0]))
    return in_workers(spread, partial(_computed, work=work), from_arrow_schema(work.result))


def _parts(
    matches: DataFrame,
    events: DataFrame,
    plan: EvaluationPlan,
    keys: Mapping[str, Column],
    parts: int,
    clusters: Clusters | None,
) -> tuple[Column, Column, DataFrame]:
    """Return the part of a match and the parts that an event may matter to, as columns, and the events.

    ``keys`` are the columns of matches on which matches and events must agree. The events returned have the
    columns that the list needs, too.
    """
    of_match = f.pmod(f.xxhash64(*keys.values()), f.lit(parts)) if keys else f.lit(0)
    of_event = f.pmod(f.xxhash64(*map(column, keys)), f.lit(parts)) if keys else f.lit(0)
    if not {"range_lower", "range_upper"} <= set(matches.columns) or plan.window > MAX_TICK:
        return of_match.cast("int"), f.array(of_event.cast("int")), events
    begin, end = (in_ticks(plan, matches.schema, f"range_{side}") for side in ("lower", "upper"))
    lower, upper = (in_ticks(plan, events.schema, name) for name in (plan.names.lower, plan.names.upper))
    if clusters is not None:
        lower, upper = clusters.spans(lower, upper)
    # Computed when the result is used, as the matches are.
    reach = matches.agg(f.max(end - begin)).scalar() + plan.window
    length = _REACHES * f.least(reach, f.lit(MAX_TICK // _REACHES))
    # Spark refuses a subquery within a function over a list.
    first, last = (unused_name(arrow_schema(events), f"{which} slice") for which in ("first", "last"))
    events = events.withColumns(
        {
            first: quotient(f.greatest(lower - reach, f.lit(-MAX_TICK)), length),
            last: quotient(upper + plan.window, length),
        }
    )
    # An event in more slices than there are parts is in each part.
    slices = f.sequence(column(first), f.least(column(last), column(first) + (parts - 1)))
    each = f.transform(slices, lambda number: f.pmod(of_event + number, f.lit(parts)).cast("int"))
    part = f.pmod(of_match + quotient(begin, length), f.lit(parts)).cast("int")
    return part, f.array_distinct(each), events


def _computed(batches: Iterable[pa.RecordBatch], *, work: _Work) -> Iterator[pa.RecordBatch]:
    """Yield the results for the matches of a part, whose rows are matches and events."""
    received = list(batches)
    if not received:
        return
    table = pa.Table.from_batches(received)
    received.clear()
    is_match = table.column(1)
    behind = 2 + len(work.matches)
    matches = _side(table.filter(is_match), range(2, behind), work.matches)
    if not matches.num_rows:
        return
    places = range(behind, table.num_columns)
    events = _side(table.filter(pc.invert(is_match)), places, work.events)
    check_table(work.plan, events)
    result = work.compute(events, matches)
    result = result.set_column(0, result.field(0), matches.column(0).take(result.column(0)))
    yield from result.cast(work.result).to_batches()


def _side(table: pa.Table, places: range, schema: pa.Schema) -> pa.Table:
    return table.select(list(places)).rename_columns(schema.names).cast(schema)
