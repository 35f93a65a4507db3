"""Joins of frames of Spark: both sides brought to the same workers by one shuffle, by keys and time.

A left event goes to the slice of time in which it begins, a right one to each slice of left events in whose
reach it may be. So each left event meets all right ones that can be its partners in one place, and what this
process says of both tables there is said of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from uncertain_cep.config.limits import MAX_TICK
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.query import parse
from uncertain_cep.spark.clock_offsets import check_clock_columns, check_offsets_agree
from uncertain_cep.spark.dataframes import (
    as_spark_keeps,
    column,
    from_arrow_schema,
    in_ticks,
    in_workers,
    noted_schema,
    plainly_named,
    quotient,
    whole_numbers,
    with_span_bounds,
)
from uncertain_cep.spark.jobs import errors_of_workers
from uncertain_cep.timeline.domain import TimeDomain
from uncertain_cep.traces.held_rows import naming_no_rows

__all__ = ["Computation", "joined_frames"]

Computation = Callable[..., pa.Table]
"""Joins a left and a right table, with the named argument ``options``."""

Reach = tuple[int | None, int | None]
"""How many ticks before the begin of a left event, and behind its end, a right one can be its partner; None:
any."""

_REACHES: Final = 8
"""The length of a slice in reaches of a left event: a right one is in 1.1 slices on average."""

_ANY: Final = "PATTERN SEQ(ANY a) WITHIN 1"


@dataclass(frozen=True, slots=True)
class _Work:
    """The instructions for a worker."""

    plan: EvaluationPlan
    compute: Computation
    left: pa.Schema
    right: pa.Schema
    result: pa.Schema


def joined_frames(
    left: DataFrame,
    right: DataFrame,
    on: Sequence[str],
    reach: Callable[[TimeDomain], Reach],
    compute: Computation,
    options: MatchOptions,
) -> DataFrame:
    """Return a join of two frames, part by part.

    Parameters
    ----------
    on : sequence of str
        Columns of both in which the rows of a pair agree.
    reach : callable
        Returns the reach of a left event in ticks of a domain.
    compute : callable
        The join in this process.

    Raises
    ------
    OptionError
        If a side is a stream, or has ordered sources.
    """
    if left.isStreaming or right.isStreaming:
        raise OptionError("joins are of tables: a stream has no end")
    names = options.names
    ticks = reach(TimeDomain.of(noted_schema(left, names), names, options.tick))
    compute = partial(compute, options=replace(options, threads=1))
    left, right = (with_span_bounds(whole_numbers(side, names), names) for side in (left, right))
    schemas = [noted_schema(side, names) for side in (left, right)]
    nothing = compute(*(schema.empty_table() for schema in schemas))
    plans = [_plan(schema, options) for schema in schemas]
    _check_clocks(left, right, plans[0])
    work = _Work(plans[0], compute, schemas[0], schemas[1], as_spark_keeps(nothing.schema))
    parts = int(left.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    keys = _keys(on, (left, right))
    hashed = f.xxhash64(*keys) if keys else f.lit(0).cast("long")
    of_left, of_right = _slices(left, right, plans, ticks, parts)
    part = f.pmod(hashed + of_left, f.lit(parts)).cast("int")
    each = f.transform(of_right, lambda number: f.pmod(hashed + number, f.lit(parts)).cast("int"))
    none_of_left, none_of_right = (
        [f.lit(None).cast(field.dataType) for field in side.schema.fields] for side in (left, right)
    )
    rows = left.select(part, f.lit(True), *map(column, left.columns), *none_of_right).union(
        right.select(
            f.explode(f.array_distinct(each)), f.lit(False), *none_of_left, *map(column, right.columns)
        )
    )
    rows = plainly_named(rows)
    spread = rows.repartitionById(parts, column(rows.columns[0]))
    return in_workers(spread, partial(_joined, work=work), from_arrow_schema(work.result))


def _plan(schema: pa.Schema, options: MatchOptions) -> EvaluationPlan:
    """Return a plan that reads the times and clocks of a frame's events."""
    plan = make_plan(parse(_ANY), schema, replace(options, takes_spans=True))
    check_clock_columns(plan, schema)
    if plan.orders:
        raise OptionError(
            "a join of Spark frames does not support ordered sources: drop the column "
            f"{options.names.ordered!r}, or join tables in this process"
        )
    if plan.domain.per_unit != 1:
        raise OptionError(
            f"a tick of {plan.domain.describe()} is too short: Spark keeps times to the microsecond"
        )
    return plan


@errors_of_workers()
def _check_clocks(left: DataFrame, right: DataFrame, plan: EvaluationPlan) -> None:
    """Check that all events of a clock, of both sides, say the same of its offset."""
    clocks = [name for name in plan.clock_columns(plan.required_columns) if name in left.columns]
    if plan.clock_names.source is not None and {*clocks} <= {*right.columns}:
        both = left.select(*map(column, clocks)).union(right.select(*map(column, clocks)))
        check_offsets_agree(both, plan)


def _keys(on: Sequence[str], sides: Sequence[DataFrame]) -> list[Column]:
    """Return columns whose hashes agree where two rows of the sides have equal values."""
    keys = []
    for name in on:
        kinds = [frame.schema[name].dataType for frame in sides]
        if all(isinstance(kind, t.NumericType) for kind in kinds):
            # 0.0 and -0.0 are equal.
            keys.append(column(name).cast("double") + f.lit(0.0))
        elif kinds[0] == kinds[1]:
            keys.append(column(name))
    return keys


@errors_of_workers()
def _slices(
    left: DataFrame,
    right: DataFrame,
    plans: Sequence[EvaluationPlan],
    reach: Reach,
    parts: int,
) -> tuple[Column, Column]:
    """Return the slice of a left event, and the list of those in which a right one may be a partner."""
    before, behind = reach
    if before is None or behind is None:
        return f.lit(0), f.array(f.lit(0))
    (low, high), (lower, upper) = (
        (in_ticks(plan, side.schema, name) for name in (plan.names.lower, plan.names.upper))
        for plan, side in zip(plans, (left, right), strict=True)
    )
    longest = left.agg(f.max(f.try_subtract(high, low))).collect()[0][0] or 0
    length = _REACHES * (before + behind + longest + 1)
    if length > MAX_TICK or longest < 0:
        return f.lit(0), f.array(f.lit(0))
    first, last = quotient(lower - (behind + longest), length), quotient(upper + before, length)
    # An event in more slices than there are parts is in each part.
    return quotient(low, length), f.sequence(first, f.greatest(first, f.least(last, first + (parts - 1))))


def _joined(batches: Iterable[pa.RecordBatch], *, work: _Work) -> Iterator[pa.RecordBatch]:
    """Yield the join of a part, whose rows are those of both sides."""
    received = list(batches)
    if not received:
        return
    table = pa.Table.from_batches(received)
    received.clear()
    is_left, behind = table.column(1), 2 + len(work.left)
    left = _side(table.filter(is_left), range(2, behind), work.left)
    if not left.num_rows:
        return
    right = _side(table.filter(pc.invert(is_left)), range(behind, table.num_columns), work.right)
    # Rows of Spark have no order: of those that are tied, the larger id comes later.
    right = right.sort_by(work.plan.names.id)
    with naming_no_rows(work.plan.names, ()):
        result = work.compute(left, right)
    yield from result.cast(work.result).to_batches()


def _side(table: pa.Table, places: range, schema: pa.Schema) -> pa.Table:
    return table.select(list(places)).rename_columns(schema.names).cast(schema)
