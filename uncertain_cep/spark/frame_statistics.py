"""What the slices are chosen by, and the faults of a trace, in one pass over a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from uncertain_cep.config import FAULT_LIMIT, MAX_TICK, PMF_TOLERANCE
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.spark.clock_offsets import knows_clock
from uncertain_cep.spark.dataframes import column, in_microseconds, in_ticks
from uncertain_cep.spark.filters import CandidateFilters
from uncertain_cep.spark.ordered_sources import Clusters
from uncertain_cep.timedomain import check_one_tick
from uncertain_cep.traces.checks import (
    check_values,
)

__all__ = ["GROUPS", "FrameStatistics", "about_how_many", "collect_statistics"]

_GROUP_BITS: Final = 3
GROUPS: Final = 1 << _GROUP_BITS
"""Groups of keys, told apart by their hashes, of each of which the least hash is looked for."""


@dataclass(frozen=True, slots=True)
class FrameStatistics:
    """Counts and extremes of the candidates of a query, all times in ticks."""

    first: int
    """Candidates of the component by which matches belong to slices, the first one as a rule."""
    later: int
    """Candidates of any other."""
    candidates: int
    """Events that are one or the other."""
    earliest: int
    latest: int
    """Smallest and largest `lower` among the first; 0 without any."""
    longest: int
    """Largest `upper - lower` among the first."""
    mean_length: float
    """Mean `upper - lower` of the later."""
    keys: int
    """About how many combinations of values the candidates have in the columns that matches agree on."""
    components: tuple[tuple[int, ...], ...]
    """For each OR-free pattern the candidates of its components, in pattern order."""


def collect_statistics(
    frame: DataFrame,
    plan: EvaluationPlan,
    candidates: CandidateFilters,
    tick: str | None = None,
    clusters: Clusters | None = None,
) -> FrameStatistics:
    """Return the statistics of a frame of the plan's required columns, and the tick column if there is one.

    ``tick`` is what the events say how long a tick is, as far as is known. Events of one of the ``clusters``
    are as long as that.

    Raises
    ------
    TraceError
        If an event is at fault, candidate or not.
    """
    schema = frame.schema
    lower, upper = (in_ticks(plan, schema, name) for name in (plan.names.lower, plan.names.upper))
    faulty = _faulty(plan, schema, tick)
    each = [takes for branch in candidates.components for takes in branch]
    begin, end = (lower, upper) if clusters is None else clusters.spans(lower, upper)
    # Each condition is computed once, into a column, instead of once for each aggregate that uses it.
    marked = frame.select(
        lower.alias("lower"),
        f.try_subtract(end, begin).alias("length"),
        candidates.first.alias("first"),
        candidates.later.alias("later"),
        faulty.alias("faulty"),
        (f.xxhash64(*map(column, candidates.keys)) if candidates.keys else f.lit(0)).alias("key"),
        *(takes.alias(f"component{number}") for number, takes in enumerate(each)),
    )
    first, later = f.col("first"), f.col("later")
    found = (
        marked.filter(first | later | f.col("faulty"))
        .agg(
            f.count_if("faulty").alias("faulty"),
            f.count_if(first).alias("first"),
            f.count_if(later).alias("later"),
            f.count_if(first | later).alias("candidates"),
            f.min(f.when(first, f.col("lower"))).alias("earliest"),
            f.max(f.when(first, f.col("lower"))).alias("latest"),
            f.max(f.when(first, f.col("length"))).alias("longest"),
            f.avg(f.when(later, f.col("length"))).alias("mean_length"),
            *_least_hashes(first | later),
            *(f.count_if(f"component{number}").alias(f"component{number}") for number in range(len(each))),
        )
        .collect()[0]
    )
    if found["faulty"]:
        _report(frame.filter(faulty), plan, found["faulty"], tick)
    names = ("first", "later", "candidates", "earliest", "latest", "longest", "mean_length")
    counts = iter([found[f"component{number}"] for number in range(len(each))])
    components = tuple(tuple(next(counts) for _ in branch) for branch in candidates.components)
    known: dict[str, Any] = {name: found[name] or 0 for name in names}
    least = [found[f"hash{group}"] for group in range(GROUPS)]
    return FrameStatistics(**known, keys=max(about_how_many(least), 1), components=components)


def _least_hashes(wanted: Column) -> list[Column]:
    """Return the least hash of keys in each of some groups of them, for `about_how_many`.

    Spark's approx_count_distinct is more precise, but keeps all aggregates beside it from being compiled.
    """
    key = f.col("key")
    group, rest = key.bitwiseAND(f.lit(GROUPS - 1)), f.shiftrightunsigned(key, _GROUP_BITS)
    return [
        f.min(f.when(wanted & (group == number), rest)).alias(f"hash{number}") for number in range(GROUPS)
    ]


def about_how_many(least: Sequence[int | None]) -> int:
    """Return how many different keys there are by the least hash in each group, None without any.

    Hashes of a group are the points of a Poisson process, looked at up to the first one. The estimate is the
    most likely rate: groups with a point, by the lengths looked at. Standard error 1 / sqrt(groups).
    """
    largest = 2.0 ** (64 - _GROUP_BITS)
    lengths = [1.0 if point is None else (point + 1) / largest for point in least]
    return round(len(least) * sum(point is not None for point in least) / sum(lengths))


def _faulty(plan: EvaluationPlan, schema: t.StructType, tick: str | None) -> Column:
    """Return the condition of rows that are no event of the model; never null."""
    names, domain = plan.names, plan.domain
    lower, upper = column(names.lower), column(names.upper)
    sound = column(names.type).isNotNull() & column(names.id).isNotNull() & (lower <= upper)
    if domain.unit == "tick":
        sound &= (lower >= -MAX_TICK) & (upper <= MAX_TICK)
    elif domain.tick != 1:
        sound &= (in_microseconds(schema, names.lower) % domain.tick == 0) & (
            in_microseconds(schema, names.upper) % domain.tick == 0
        )
    if names.pmf in plan.required_columns and not isinstance(schema[names.pmf].dataType, t.NullType):
        length = f.try_subtract(in_ticks(plan, schema, names.upper), in_ticks(plan, schema, names.lower))
        pmf = column(names.pmf).cast("array<double>")
        total = f.aggregate(pmf, f.lit(0.0), lambda total, part: total + part)
        # Of events that name clocks it is that of the time by the clock: workers look at its length.
        is_long = f.lit(True) if plan.clocks else f.size(pmf) == length + 1
        is_pmf = (
            is_long
            & f.forall(pmf, lambda part: f.coalesce(part >= 0, f.lit(False)))
            & (f.abs(total - 1) <= PMF_TOLERANCE)
        )
        sound &= pmf.isNull() | is_pmf
    if plan.clocks:
        sound &= knows_clock(plan, schema)
    if names.probability in plan.required_columns:
        probability = column(names.probability).cast("double")
        # To Spark NaN is above all numbers.
        sound &= f.coalesce((probability >= 0) & (probability <= 1), f.lit(True))
    sound = f.coalesce(sound, f.lit(False))
    if names.tick in schema.names:
        sound &= column(names.tick).eqNullSafe(f.lit(tick))
    return ~sound


def _report(faulty: DataFrame, plan: EvaluationPlan, count: int, tick: str | None) -> None:
    """Raise for some rows at fault what the in-process engine would raise for all."""
    names = plan.names
    if names.tick in faulty.columns:
        several = faulty.select(column(names.tick)).distinct().limit(FAULT_LIMIT).collect()
        check_one_tick([tick, *(row[0] for row in several)], names.tick)
    wanted = [names.type, names.id, names.lower, names.upper]
    wanted += [name for name in (names.pmf, names.probability) if name in plan.required_columns]
    wanted += names.clocks if plan.clocks else ()
    table = faulty.select(*map(column, wanted)).limit(FAULT_LIMIT).toArrow()
    # Spark has no numbers of rows: the value has to tell the row.
    faults = check_values(table, names, plan.domain, clocks=plan.clocks)
    faults = [replace(fault, row=None) for fault in faults]
    if not faults:
        return
    if count > FAULT_LIMIT:
        faults.append(TraceFault(f"{count - FAULT_LIMIT:,} more events have such faults"))
    raise TraceError(faults)
