"""RETURN PROBABILITY on Spark: matches are found by slice, and travel to the task that weighs their group."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.result_columns import SortKey
from uncertain_cep.spark.dataframes import column, from_arrow_schema, in_workers, plainly_named
from uncertain_cep.spark.preparing import PreparedMatch
from uncertain_cep.spark.worker import rank_groups, unused_name, weigh_groups_of_parts

__all__ = ["groups_frame"]


def groups_frame(prepared: PreparedMatch, spark: SparkSession) -> DataFrame:
    """Return the frame of the groups of prepared candidates.

    Matches are shuffled, with all that they depend on, and no events; where all matches of a group are in one
    partition already, nothing is.
    """
    plan = prepared.plan
    schema = from_arrow_schema(plan.output_schema)
    frame = prepared.candidates
    if frame is None:
        return spark.createDataFrame([], schema)
    parts = _parts(prepared)
    if not parts:
        evaluate = prepared.evaluate(spark)
    else:
        prepared = prepared.spread_over(parts)
        plan = prepared.plan
        sent = in_workers(frame, prepared.evaluate(spark), from_arrow_schema(plan.batch_schema))
        frame = plainly_named(sent.repartitionById(parts, column("part").cast("int")))
        evaluate = partial(weigh_groups_of_parts, plan=plan)
    if not plan.sort_keys:
        groups = in_workers(frame, evaluate, schema)
    else:
        rank = unused_name(plan.output_schema, "rank")
        with_rank = t.StructType([*schema.fields, t.StructField(rank, t.DoubleType())])
        name = _probability_of(plan)
        ranked = partial(rank_groups, evaluate=evaluate, name=rank, probability=name)
        groups = in_workers(frame, ranked, with_rank)
        keys = (_sorted_by(plan, key, rank) for key in plan.sort_keys)
        names = schema.names[: schema.names.index(name)]
        groups = groups.orderBy(
            *keys, column(rank).desc_nulls_last(), *(column(name).asc_nulls_last() for name in names)
        )
    if plan.query.limit is not None:
        groups = groups.limit(plan.query.limit)
    return groups.select(*map(column, plan.output_schema.names))


def _parts(prepared: PreparedMatch) -> int:
    """Return in how many parts groups are weighed; 0: where their matches are found."""
    bound = prepared.plan.bound
    if prepared.work is None and prepared.slicing is None:
        # Events of one value of these columns are in one partition.
        keys = prepared.plan.shared_keys
        by = {key.attribute for key in bound.keys if key.variable is None}
        if prepared.partitions == 1 or (keys and by.issuperset(keys)):
            return 0
    if bound.every is None and _has_first_event(prepared.plan):
        return 0
    return prepared.partitions if bound.keys or bound.every is not None else 1


def _has_first_event(plan: EvaluationPlan) -> bool:
    """Return whether a group is that of an event by which all its matches belong to one slice."""
    owners = {branch.components[branch.owner].variable for branch in plan.or_free}
    events = {key.variable for key in plan.bound.keys if key.attribute is None}
    return not plan.is_open and len(owners) == 1 and owners <= events


def _probability_of(plan: EvaluationPlan) -> str:
    clause = plan.query.probability
    assert clause is not None
    return clause.name


def _sorted_by(plan: EvaluationPlan, key: SortKey, rank: str) -> Column:
    """Return the column by which Spark sorts for a key of ORDER BY: nulls last, NaN as null."""
    name = rank if key.column == "confidence" else key.column
    sort_column = column(name)
    if name != rank and pa.types.is_floating(plan.output_schema.field(name).type):
        sort_column = f.when(~f.isnan(sort_column), sort_column)
    return sort_column.desc_nulls_last() if key.descending else sort_column.asc_nulls_last()
