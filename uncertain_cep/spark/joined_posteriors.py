"""When the events of matches in a frame of Spark happened."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.lasting import schema_with_all_bounds
from uncertain_cep.query import Query
from uncertain_cep.results.posteriors import posterior_table
from uncertain_cep.spark.beside_events import beside_events
from uncertain_cep.spark.dataframes import noted_schema, whole_numbers, with_span_bounds

__all__ = ["joined_posteriors"]


def joined_posteriors(
    matches: DataFrame, events: DataFrame, query: Query, options: MatchOptions, pmf_ticks: int
) -> DataFrame:
    """Return when the events of matches happened, see `uncertain_cep.posteriors`."""
    events = whole_numbers(events, options.names)
    schema = schema_with_all_bounds(noted_schema(events, options.names), options.names.lower)
    events = with_span_bounds(events, options.names)
    plan = make_plan(query, schema, options)
    event_schema = pa.schema([schema.field(name) for name in plan.required_columns])
    return beside_events(
        matches, events, event_schema, plan, partial(_posteriors, plan=plan, pmf_ticks=pmf_ticks)
    )


def _posteriors(events: pa.Table, matches: pa.Table, *, plan: EvaluationPlan, pmf_ticks: int) -> pa.Table:
    return posterior_table(plan, events, matches, pmf_ticks)
