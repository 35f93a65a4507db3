"""Matches in a frame of Spark, with their events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from uncertain_cep.plan import MatchOptions, PlannedComponent, make_plan
from uncertain_cep.plan.lasting import schema_with_all_bounds
from uncertain_cep.query import Query
from uncertain_cep.results.matched_events import OWN_COLUMNS, check_columns_of, check_own_columns
from uncertain_cep.spark.dataframes import arrow_schema, column, noted_schema, whole_numbers
from uncertain_cep.spark.filters import candidate_filters
from uncertain_cep.spark.worker import unused_name

__all__ = ["joined_events", "taken_events"]


def joined_events(
    matches: DataFrame,
    events: DataFrame,
    query: Query,
    options: MatchOptions,
    number: Column | None = None,
    names: Sequence[str] = OWN_COLUMNS,
) -> DataFrame:
    """Return the events of matches in long form, see `uncertain_cep.events_of`, by any ``number``.

    ``names`` are the names of the columns in front of the events' own.
    """
    events = whole_numbers(events, options.names)
    schema = noted_schema(events, options.names)
    whole = schema_with_all_bounds(schema, options.names.lower)
    plan = make_plan(query, whole, options, takes_spans=True)
    check_columns_of(plan, matches.columns)
    check_own_columns(events.columns, names)
    attributes = (options.names.id, *plan.partition_attributes)
    held = [unused_name(schema, f"matched {place}") for place in range(len(attributes))]
    match, *of_event = (*names, held[0])
    # In one step with explode, Spark would number the rows that explode returns.
    numbered = matches.select(
        (f.monotonically_increasing_id() if number is None else number).alias(match),
        *(column(name).alias(held_name) for name, held_name in zip(attributes[1:], held[1:], strict=True)),
        f.concat(*(_entries(part, of_event) for part in plan.components)).alias("taken"),
    ).withColumn("taken", f.explode("taken"))
    parts = (f.col("taken").getField(name).alias(name) for name in of_event)
    flat = numbered.select(match, *map(column, held[1:]), *parts)
    # Events that the variable cannot take may have the same id.
    takes: dict[str, Column] = {}
    branches = plan.or_free
    for branch, conditions in zip(branches, candidate_filters(plan, events.schema).components, strict=True):
        named = zip((part.variable for part in branch.components), conditions, strict=False)
        takes |= {name: (column(of_event[0]) == name) & in_variable for name, in_variable in named}
    same = [column(held_name) == column(name) for name, held_name in zip(attributes, held, strict=True)]
    joined = flat.join(events, reduce(and_, same, reduce(or_, takes.values())), "left")
    return joined.select(*map(column, (*names, *events.columns)))


def taken_events(matches: DataFrame, events: DataFrame, query: Query, options: MatchOptions) -> DataFrame:
    """Return the events of some matches, each once."""
    schema = arrow_schema(events)
    beside = [unused_name(schema, name) for name in OWN_COLUMNS]
    joined = joined_events(matches, events, query, options, names=beside)
    return joined.select(*map(column, events.columns)).distinct()


def _entries(component: PlannedComponent, names: Sequence[str]) -> Column:
    """Return the events of a variable, none in another branch of OR, as a list: variable, position, id.

    ``names`` are the names of these three.
    """
    variable, position, id = names
    held = column(component.variable)

    def entry(event: Column, place: Column) -> Column:
        named = f.lit(component.variable).alias(variable)
        return f.struct(named, (place + 1).cast("long").alias(position), event.alias(id))

    events = f.transform(held if component.kleene else f.array(held), entry)
    return f.filter(f.when(held.isNotNull(), events).otherwise(f.array()), lambda one: one.isNotNull())
