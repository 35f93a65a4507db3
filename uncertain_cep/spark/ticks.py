"""Time columns in ticks, and whole quotients of them, as Spark columns."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.spark.schemas import column

__all__ = ["in_microseconds", "in_ticks", "quotient"]


def in_ticks(plan: EvaluationPlan, schema: t.StructType, name: str) -> Column:
    """Return a time column in ticks, as int64."""
    domain = plan.domain
    if domain.unit == "tick":
        return column(name)
    return quotient(in_microseconds(schema, name), domain.tick)


def in_microseconds(schema: t.StructType, name: str) -> Column:
    """Return a column of timestamps in microseconds since 1970, as int64."""
    times = column(name)
    if isinstance(schema[name].dataType, t.TimestampType):
        return f.unix_micros(times)
    # A timestamp without zone counts as UTC; Spark's own conversion would use the session's zone.
    day = f.unix_date(times.cast("date")).cast("long")
    minute = f.hour(times) * 60 + f.minute(times)
    second = (f.extract(f.lit("SECOND"), times) * 1_000_000).cast("long")
    return day * 86_400_000_000 + minute.cast("long") * 60_000_000 + second


def quotient(ticks: Column, divisor: int) -> Column:
    """Return the whole quotient, rounded down."""
    if divisor == 1:
        return ticks
    return f.call_function("div", ticks - f.pmod(ticks, f.lit(divisor)), f.lit(divisor))
