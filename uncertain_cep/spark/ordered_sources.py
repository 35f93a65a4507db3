"""Events of ordered sources: records that depend on each other go to the same slices.

The time of a record depends on its cluster: the records of its source that overlap it, directly or through
others. So every slice that one record may matter to gets the whole cluster.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.spark.dataframes import arrow_schema, column, in_ticks
from uncertain_cep.spark.filters import CandidateFilters
from uncertain_cep.spark.worker import unused_name
from uncertain_cep.traces.faulty_rows import shown
from uncertain_cep.traces.source_order import ORDERED_IN_PART, SEQUENCE_AGAIN, no_time_left_by

__all__ = ["Clusters", "check_orders", "clustered"]


class Clusters(NamedTuple):
    """The columns with the bounds of each record's cluster, ticks; null for other events."""

    begin: str
    end: str

    @property
    def is_record(self) -> Column:
        """Whether an event is of an ordered source, and has a place in it."""
        return column(self.end).isNotNull()

    def spans(self, lower: Column, upper: Column) -> tuple[Column, Column]:
        """Return the bounds of the clusters; for other events those given."""
        return f.coalesce(column(self.begin), lower), f.coalesce(column(self.end), upper)

    def travel(self, plan: EvaluationPlan, candidates: CandidateFilters) -> CandidateFilters:
        """Return conditions that all records meet, and only keys on which the records of a source agree."""
        return replace(
            candidates,
            later=candidates.later | self.is_record,
            anywhere=candidates.anywhere | self.is_record,
            keys=tuple(key for key in candidates.keys if key == plan.names.source),
        )


def clustered(frame: DataFrame, plan: EvaluationPlan) -> tuple[DataFrame, Clusters | None]:
    """Return the events with the columns of their clusters, if there are ordered sources.

    Sorts the records of each source by their sequences. A cluster here may be several clusters of the engine,
    which leaves out ticks of probability 0.
    """
    if plan.clock_names.ordered is None:
        return frame, None
    schema = arrow_schema(frame)
    begin, end, number, last = (
        unused_name(schema, name) for name in ("cluster begin", "cluster end", "cluster", "last")
    )
    record, lower, upper = _records(plan, frame)
    source, sequence = column(plan.names.source), column(plan.names.sequence)
    # Otherwise one task would sort all other events.
    of_source = [source, f.when(~record, f.xxhash64(column(plan.names.id)))]
    rising = Window.partitionBy(*of_source).orderBy(sequence)
    ahead = rising.rowsBetween(Window.unboundedPreceding, -1)
    behind = Window.partitionBy(*of_source).orderBy(sequence.desc())
    placed = frame.withColumns(
        {
            begin: f.min(lower).over(behind.rowsBetween(Window.unboundedPreceding, 0)),
            last: f.max(upper).over(ahead),
        }
    )
    is_fresh = f.when(column(last) <= column(begin), 1).otherwise(0)
    numbered = placed.withColumn(
        number, f.sum(is_fresh).over(rising.rowsBetween(Window.unboundedPreceding, 0))
    )
    whole = Window.partitionBy(*of_source, column(number))
    spans = {
        begin: f.when(record, f.min(lower).over(whole)),
        end: f.when(record, f.max(upper).over(whole)),
    }
    return numbered.withColumns(spans).drop(number, last), Clusters(begin, end)


def check_orders(frame: DataFrame, plan: EvaluationPlan) -> None:
    """Check what the events of a frame say of the order of their sources; a TraceError names a source.

    Runs two jobs, if there are ordered sources.
    """
    if (ordered := plan.clock_names.ordered) is None:
        return
    names = plan.names
    record, lower, upper = _records(plan, frame)
    source, sequence = column(names.source), column(names.sequence)
    is_ordered = f.coalesce(column(ordered), f.lit(False)).cast("boolean")
    held_place = f.when(record, sequence)
    each = frame.filter(source.isNotNull()).groupBy(source.alias("source"))
    in_part = (f.max(is_ordered) != f.min(is_ordered)).alias("in_part")
    again = (f.count(held_place) > f.count_distinct(held_place)).alias("again")
    wrong = each.agg(in_part, again).filter(f.col("in_part") | f.col("again"))
    for row in wrong.limit(1).collect():
        if row["in_part"]:
            raise TraceError(TraceFault(ORDERED_IN_PART, column=ordered, value=shown(row["source"])))
        of_source = frame.filter(record & (source == row["source"])).groupBy(sequence.alias("place")).count()
        place = of_source.filter(f.col("count") > 1).agg(f.min("place")).collect()[0][0]
        raise TraceError(TraceFault(SEQUENCE_AGAIN, column=names.sequence, value=shown(place)))
    by_place = Window.partitionBy(source).orderBy(sequence).rowsBetween(Window.unboundedPreceding, 0)
    backward = Window.partitionBy(source).orderBy(sequence.desc())
    bounds = frame.filter(record).select(
        source.alias("source"),
        f.max(lower).over(by_place).alias("least"),
        f.min(upper).over(backward.rowsBetween(Window.unboundedPreceding, 0)).alias("most"),
    )
    for row in bounds.filter(f.col("least") > f.col("most")).limit(1).collect():
        message = no_time_left_by("another event")
        raise TraceError(TraceFault(message, column=names.sequence, value=shown(row["source"])))


def _records(plan: EvaluationPlan, frame: DataFrame) -> tuple[Column, Column, Column]:
    """Return the condition of events with a place in an ordered source, and the bounds of all, ticks."""
    names = plan.names
    lower, upper = (in_ticks(plan, frame.schema, name) for name in (names.lower, names.upper))
    named = column(names.source).isNotNull() & column(names.sequence).isNotNull()
    return f.coalesce(column(names.ordered), f.lit(False)).cast("boolean") & named, lower, upper
