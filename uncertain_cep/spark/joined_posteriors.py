"""When the events of matches happened, computed by the workers that a shuffle brings both to.

A match depends on the events with its values of the keys whose intervals meet its range, or the window before
it or behind it. So a match goes to one slice of time, and an event to each that it may matter to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from uncertain_cep.config import MAX_TICK
from uncertain_cep.executor import check_table
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.query import Query
from uncertain_cep.results.matched_events import OWN_COLUMNS, check_columns_of
from uncertain_cep.results.posteriors import posterior_table
from uncertain_cep.spark.clock_offsets import check_clock_columns, check_offsets_agree
from uncertain_cep.spark.dataframes import (
    arrow_schema,
    as_spark_keeps,
    column,
    from_arrow_schema,
    in_ticks,
    noted_schema,
    plainly_named,
    quotient,
    whole_numbers,
)

__all__ = ["joined_posteriors"]

_WINDOWS: Final = 8
"""How many windows a slice is long: an event is in 1.4 slices on average."""


class _Work(NamedTuple):
    """What a worker is told."""

    plan: EvaluationPlan
    matches: pa.Schema
    """The number of a match, its keys and its variables."""
    events: pa.Schema
    result: pa.Schema
    pmf_ticks: int


def joined_posteriors(
    matches: DataFrame, events: DataFrame, query: Query, options: MatchOptions, pmf_ticks: int
) -> DataFrame:
    """Return when the events of matches happened, see `uncertain_cep.posteriors`."""
    events = whole_numbers(events, options.names)
    schema = noted_schema(events, options.names)
    plan = make_plan(query, schema, options)
    check_columns_of(plan, matches.columns)
    check_clock_columns(plan, schema)
    check_offsets_agree(events, plan)
    keys = {name: column(name).cast(events.schema[name].dataType) for name in plan.partition_attributes}
    variables = [column(component.variable) for component in plan.components]
    given = [
        f.monotonically_increasing_id().alias(OWN_COLUMNS[0]),
        *(key.alias(name) for name, key in keys.items()),
        *variables,
    ]
    held = matches.select(*given).schema
    wanted = pa.schema([schema.field(name) for name in plan.required_columns])
    of_matches = arrow_schema(matches.select(*given))
    nothing = posterior_table(plan, wanted.empty_table(), of_matches.empty_table(), pmf_ticks)
    work = _Work(plan, of_matches, wanted, as_spark_keeps(nothing.schema), pmf_ticks)
    parts = int(matches.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    own, reached = _parts(matches, events, plan, list(keys.values()), parts)
    none_of_matches = [f.lit(None).cast(field.dataType) for field in held.fields]
    none_of_events = [f.lit(None).cast(events.schema[name].dataType) for name in plan.required_columns]
    rows = matches.select(own, f.lit(True), *given, *none_of_events).union(
        events.select(f.explode(reached), f.lit(False), *none_of_matches, *map(column, plan.required_columns))
    )
    rows = plainly_named(rows)
    return rows.repartitionById(parts, column(rows.columns[0])).mapInArrow(
        partial(_posteriors, work=work), from_arrow_schema(work.result)
    )


def _parts(
    matches: DataFrame, events: DataFrame, plan: EvaluationPlan, keys: list[Column], parts: int
) -> tuple[Column, Column]:
    """Return in which of some parts a match is, and the list of those that an event may matter to."""
    of_match = f.pmod(f.xxhash64(*keys), f.lit(parts)) if keys else f.lit(0)
    of_event = f.pmod(f.xxhash64(*map(column, plan.partition_attributes)), f.lit(parts)) if keys else f.lit(0)
    if "range_lower" not in matches.columns or _WINDOWS * plan.window > MAX_TICK:
        return of_match.cast("int"), f.array(of_event.cast("int"))
    length = _WINDOWS * plan.window
    slice_of = quotient(in_ticks(plan, matches.schema, "range_lower"), length)
    lower, upper = (in_ticks(plan, events.schema, name) for name in (plan.names.lower, plan.names.upper))
    first, last = quotient(lower - 2 * plan.window, length), quotient(upper + plan.window, length)
    # One that is in more slices than there are parts is in each part.
    slices = f.sequence(first, f.least(last, first + (parts - 1)))
    each = f.transform(slices, lambda number: f.pmod(of_event + number, f.lit(parts)).cast("int"))
    return f.pmod(of_match + slice_of, f.lit(parts)).cast("int"), f.array_distinct(each)


def _posteriors(batches: Iterable[pa.RecordBatch], *, work: _Work) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the matches of a part, whose rows are those of matches and of events."""
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
    found = posterior_table(work.plan, events, matches, work.pmf_ticks)
    name = OWN_COLUMNS[0]
    found = found.set_column(0, name, matches.column(name).take(found.column(name)))
    yield from found.cast(work.result).to_batches()


def _side(table: pa.Table, places: range, schema: pa.Schema) -> pa.Table:
    return table.select(list(places)).rename_columns(schema.names).cast(schema)
