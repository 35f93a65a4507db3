"""Statistics by which slices are chosen, and the faults of a trace, in one pass over a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f
from pyspark.sql import types as t

from uncertain_cep.config.limits import FAULT_LIMIT, MAX_TICK, MOST_BITS
from uncertain_cep.config.tolerances import PMF_TOLERANCE
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.table_faults import value_faults
from uncertain_cep.spark.candidate_counts import COUNTED, GROUP_BITS, counted_candidates
from uncertain_cep.spark.clock_offsets import knows_clock
from uncertain_cep.spark.dataframes import (
    column,
    from_arrow_schema,
    in_microseconds,
    in_ticks,
    in_workers,
    plainly_named,
)
from uncertain_cep.spark.filters import CandidateFilters
from uncertain_cep.spark.largest_amounts import Largest
from uncertain_cep.spark.ordered_sources import Clusters
from uncertain_cep.spark.undecided_counts import last_ticks
from uncertain_cep.timeline.domain import check_one_tick

__all__ = ["FrameStatistics", "about_how_many", "collect_statistics", "packed"]

_INTEGERS: Final = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)


@dataclass(frozen=True, slots=True)
class FrameStatistics:
    """Counts and extremes of the candidates of a query, all times in ticks."""

    first: int
    """Candidates of the component by which matches belong to slices, the first one as a rule."""
    later: int
    """Candidates of the other components."""
    candidates: int
    """Events that are a candidate of any component."""
    earliest: int
    latest: int
    """The smallest and largest `lower` of the first candidates; 0 without any."""
    longest: int
    """The largest `upper - lower` of the first candidates."""
    mean_length: float
    """The mean `upper - lower` of the later ones."""
    keys: int
    """The number of combinations of values in the columns on which matches agree, about."""
    components: tuple[tuple[int, ...], ...]
    """For each OR-free pattern the candidates of its components, in pattern order."""
    negated: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, int] = field(default_factory=dict)
    """The events that meet the conditions of ``CandidateFilters.negated`` and ``types``, of those that are a
    candidate in any way."""
    ids_apart: bool = False
    """Whether it is known that no two candidates have the same id."""
    last_tick: int | None = None
    """The last tick of any event, candidate or not, if it was asked for."""
    largest: Largest = field(default_factory=dict)
    """The largest amounts of all events in the columns that numbers may be rounded in."""


def collect_statistics(
    frame: DataFrame,
    plan: EvaluationPlan,
    candidates: CandidateFilters,
    tick: str | None = None,
    clusters: Clusters | None = None,
    roundable: Sequence[str] = (),
    *,
    asks_last: bool = False,
) -> FrameStatistics:
    """Return the statistics of a frame of the plan's required columns, and the tick column if there is one.

    ``tick`` is the length of a tick that the events name, if it is known. Events of one of the ``clusters``
    count as long as their cluster. ``roundable`` are the columns whose largest amounts are asked for, and
    ``asks_last`` says whether the last tick of any event is.

    Raises
    ------
    TraceError
        If an event is at fault, candidate or not.
    """
    schema = frame.schema
    names = plan.names
    lower, upper = (in_ticks(plan, schema, name) for name in (names.lower, names.upper))
    begin, end = (lower, upper) if clusters is None else clusters.spans(lower, upper)
    faulty = _faulty(plan, schema, tick)
    beside = (*candidates.negated.values(), *candidates.types.values())
    kinds = (faulty, candidates.first, candidates.later, *candidates.distinct.values(), *beside)
    is_whole = isinstance(schema[names.id].dataType, _INTEGERS)
    columns = [
        *packed(kinds),
        lower,
        f.try_subtract(end, begin),
        f.xxhash64(*map(column, candidates.keys)) if candidates.keys else f.lit(0).cast("long"),
        (column(names.id) if is_whole else f.lit(None)).cast("long"),
    ]
    observed = [f.max(last_ticks(plan, schema)).alias("last")] if asks_last else []
    observed += [_largest(schema, name).alias(f"largest {n}") for n, name in enumerate(roundable)]
    observation = Observation()
    events = frame.observe(observation, *observed) if observed else frame
    relevant = plainly_named(events.filter(candidates.first | candidates.later | faulty).select(*columns))
    count = partial(counted_candidates, kinds=len(kinds))
    counts = in_workers(relevant, count, from_arrow_schema(COUNTED)).toArrow()
    if at_fault := pc.sum(counts.column("faulty")).as_py():
        _report(frame.filter(faulty), plan, at_fault, tick)
    statistics = _added_up(counts, candidates)
    if not observed:
        return statistics
    extremes = observation.get
    amounts = [extremes[f"largest {n}"] for n in range(len(roundable))]
    return replace(
        statistics,
        last_tick=int(extremes["last"] or 0) if asks_last else None,
        largest={name: text for name, text in zip(roundable, amounts, strict=True) if text is not None},
    )


def _largest(schema: t.StructType, name: str) -> Column:
    """Return the largest amount of a column of numbers as text; NaN is none."""
    number = column(name)
    if isinstance(schema[name].dataType, (t.FloatType, t.DoubleType)):
        number = f.when(~f.isnan(number), number)
    return f.max(f.abs(number)).cast("string")


def packed(conditions: Sequence[Column]) -> list[Column]:
    """Return conditions that are never null as the bits of numbers: a column costs more than they do."""
    return [
        reduce(
            lambda left, right: left.bitwiseOR(right),
            (f.when(holds, 1 << bit).otherwise(0).cast("long") for bit, holds in enumerate(group)),
        )
        for group in (conditions[begin : begin + MOST_BITS] for begin in range(0, len(conditions), MOST_BITS))
    ]


def _added_up(table: pa.Table, candidates: CandidateFilters) -> FrameStatistics:
    """Return the statistics of a frame by the counts of workers, batch by batch."""
    numbers = table.to_pydict()
    first, later, either = (sum(numbers[name]) for name in ("first", "later", "candidates"))
    counts = iter([sum(column) for column in zip(*numbers["components"], strict=True)])
    sizes = {key: next(counts, 0) for key in candidates.distinct}
    negated = {variable: next(counts, 0) for variable in candidates.negated}
    types = {name: next(counts, 0) for name in candidates.types}
    ranges = sorted(ids for ids in numbers["ids"] if ids)
    least_hashes = [
        min((hash for hash in hashes if hash is not None), default=None)
        for hashes in zip(*numbers["least"], strict=True)
    ]
    return FrameStatistics(
        first=first,
        later=later,
        candidates=either,
        earliest=_extreme(min, numbers["earliest"]),
        latest=_extreme(max, numbers["latest"]),
        longest=_extreme(max, numbers["longest"]),
        mean_length=sum(numbers["length"]) / max(later, 1),
        keys=max(about_how_many(least_hashes or [None]), 1),
        components=tuple(
            tuple(sizes.get(id(takes), 0) for takes in branch) for branch in candidates.components
        ),
        negated=negated,
        types=types,
        ids_apart=None not in numbers["ids"] and all(one[1] < two[0] for one, two in pairwise(ranges)),
    )


def _extreme(choose: Callable[..., int], values: Sequence[int | None]) -> int:
    return choose((value for value in values if value is not None), default=0)


def about_how_many(least_hashes: Sequence[float | None]) -> int:
    """Return about how many keys there are, by the least hash in each group, None without any.

    The hashes of a group are the points of a Poisson process that is observed up to its first point. The
    estimate is the rate of maximum likelihood: the groups with a point, by the lengths observed. Its relative
    standard error is 1 / sqrt(groups).
    """
    largest = 2.0 ** (64 - GROUP_BITS)
    lengths = [1.0 if point is None else (point + 1) / largest for point in least_hashes]
    return round(len(least_hashes) * sum(point is not None for point in least_hashes) / sum(lengths))


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
        # Of events that name clocks the pmf is that of the time by the clock: workers check its length.
        is_long = f.lit(True) if plan.has_pmfs_by_clocks else f.size(pmf) == length + 1
        is_pmf = (
            is_long
            & f.forall(pmf, lambda part: f.coalesce(part >= 0, f.lit(False)))
            & (f.abs(total - 1) <= PMF_TOLERANCE)
        )
        sound &= pmf.isNull() | is_pmf
    sound &= knows_clock(plan, schema)
    if names.probability in plan.required_columns:
        probability = column(names.probability).cast("double")
        # For Spark NaN is above all numbers.
        sound &= f.coalesce((probability >= 0) & (probability <= 1), f.lit(True))
    sound = f.coalesce(sound, f.lit(False))
    if names.tick in schema.names:
        sound &= column(names.tick).eqNullSafe(f.lit(tick))
    return ~sound


def _report(faulty: DataFrame, plan: EvaluationPlan, count: int, tick: str | None) -> None:
    """Raise for some rows at fault the error that the in-process engine would raise for all."""
    names = plan.names
    if names.tick in faulty.columns:
        several = faulty.select(column(names.tick)).distinct().limit(FAULT_LIMIT).collect()
        check_one_tick([tick, *(row[0] for row in several)], names.tick)
    names_read = [names.type, names.id, names.lower, names.upper]
    names_read += [name for name in (names.pmf, names.probability) if name in plan.required_columns]
    names_read += [name for name in names.clocks if name in plan.clock_columns(plan.required_columns)]
    table = faulty.select(*map(column, names_read)).limit(FAULT_LIMIT).toArrow()
    # Spark has no row numbers: the value has to identify the row.
    faults = value_faults(plan, table)
    faults = [replace(fault, row=None) for fault in faults]
    if not faults:
        return
    if count > FAULT_LIMIT:
        faults.append(TraceFault(f"{count - FAULT_LIMIT:,} more events have such faults"))
    raise TraceError(faults)
