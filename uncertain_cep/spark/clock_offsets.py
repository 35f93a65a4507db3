"""Checks of what the events of a frame say of their clocks, as each worker sees only some of the events."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from uncertain_cep.errors import OptionError, TraceError, TraceFault
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.spark.dataframes import column
from uncertain_cep.traces.checks import OTHER_BOUNDS, OTHER_PMF, check_clocks
from uncertain_cep.traces.faulty_rows import shown

__all__ = ["check_clock_columns", "check_offsets_agree", "knows_clock"]


def check_clock_columns(plan: EvaluationPlan, schema: pa.Schema) -> None:
    """Raise OptionError or TraceError for offsets of types whose unit is not known."""
    if plan.clock_names.source is None:
        return
    faults = check_clocks(schema.empty_table(), plan.names, plan.domain)
    if faults:
        raise TraceError(faults)
    for name in _bounds(plan):
        if plan.domain.unit != "tick" and pa.types.is_integer(schema.field(name).type):
            raise OptionError(
                f"column {name!r} holds whole numbers beside timestamps, and Spark reads the durations of "
                "Parquet files as such, in units that it does not tell: make intervals of them, such as "
                f"{name} * INTERVAL '0.001' SECOND, or take times as independent, sources=False"
            )


def _bounds(plan: EvaluationPlan) -> list[str]:
    """Return the columns of the bounds of offsets; none where all clocks are right."""
    return [name for name in plan.names.clocks[1:] if name in plan.required_columns]


def knows_clock(plan: EvaluationPlan, schema: t.StructType) -> Column:
    """Return the condition that an event names no clock, or one whose offset leaves it a time.

    A null means that the condition does not hold. `check_offsets_agree` compares the bounds of different
    rows.
    """
    names, bounds, clock = plan.names, _bounds(plan), plan.clock_names.source
    if clock is None or not bounds:
        return f.lit(True)
    source = column(clock)
    low, high = map(column, bounds)
    has_offset = low.isNotNull() & high.isNotNull()
    counted = plan.domain.unit == "tick"
    if all(isinstance(schema[name].dataType, t.DayTimeIntervalType) != counted for name in bounds):
        has_offset &= (low <= high) & (high - low <= column(names.upper) - column(names.lower))
    return source.isNull() | has_offset


def check_offsets_agree(frame: DataFrame, plan: EvaluationPlan) -> None:
    """Check that all events of a clock say the same of its offset; a TraceError names a clock.

    Runs a job over the columns of clocks, if there are any.
    """
    if (clock := plan.clock_names.source) is None:
        return
    source = column(clock)
    laws = [(column(name), OTHER_BOUNDS, clock) for name in _bounds(plan)]
    pmf = plan.names.offset_pmf
    if pmf in plan.required_columns:
        lists = f.coalesce(column(pmf).cast("array<double>"), f.array().cast("array<double>"))
        laws.append((lists, OTHER_PMF, pmf))
    if not laws:
        return
    extremes = [
        take(law).alias(f"{name}{number}")
        for number, (law, _, _) in enumerate(laws)
        for name, take in (("least", f.min), ("most", f.max))
    ]
    bounds = frame.filter(source.isNotNull()).groupBy(source.alias("source")).agg(*extremes)
    differs = f.lit(None).cast("int")
    for number in reversed(range(len(laws))):
        agrees = f.col(f"least{number}") == f.col(f"most{number}")
        differs = f.when(~agrees, f.lit(number)).otherwise(differs)
    wrong = bounds.select("source", differs.alias("law")).filter(f.col("law").isNotNull())
    for row in wrong.orderBy("law").limit(1).collect():
        _, message, name = laws[row["law"]]
        raise TraceError(TraceFault(message, column=name, value=shown(row["source"])))
