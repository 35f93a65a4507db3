"""Why there is no match among the events of a frame."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from uncertain_cep.config.limits import SAMPLED_FOR_NOTHING
from uncertain_cep.explanation.nothing import conditions_among, sampled_types
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.query import Query
from uncertain_cep.spark.dataframes import column, in_ticks, noted_schema, whole_numbers
from uncertain_cep.spark.file_jobs import columns_read

__all__ = ["why_no_match"]


def why_no_match(events: DataFrame, query: Query, options: MatchOptions) -> str:
    """Name the conditions that leave no match, as `conditions_that_leave_nothing` does in process.

    The first events by their time come to this process, at most ``SAMPLED_FOR_NOTHING``; of many events this
    sorts those of the pattern's types.
    """
    frame = whole_numbers(events, options.names)
    schema = noted_schema(frame, options.names)
    plan = make_plan(query, schema, options)
    names = columns_read(plan, schema)
    rows = frame.select(*map(column, names))
    sample = rows.limit(SAMPLED_FOR_NOTHING + 1).toArrow()
    whole = sample.num_rows <= SAMPLED_FOR_NOTHING
    if not whole:
        if types := sampled_types(plan):
            rows = rows.filter(column(plan.names.type).isin(*types))
        rows = rows.orderBy(in_ticks(plan, rows.schema, plan.names.lower))
        sample = rows.limit(SAMPLED_FOR_NOTHING).toArrow()
    fields = [schema.field(name) for name in names]
    return conditions_among(plan, sample.cast(pa.schema(fields, schema.metadata)), options, whole=whole)
