"""Slices of time that can be evaluated apart from each other, each match in one of them.

Slice s reports the matches whose first event has its `lower` in ``[origin + s L, origin + (s + 1) L)``. The
first event is that of the pattern's first component. It happens by the end of the slice plus the longest
interval of that component's candidates. All other events that a match depends on happen within the window
after it, or also before it, if AND leaves the order open or a negation leads the pattern. So an event goes to
every slice whose matches it can take part in or forbid: as a first event to one, otherwise to few if L is
large against the window. If the first component is a compressed Kleene one, which has many events, the event
after them counts as the first one, and they lie before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from uncertain_cep.candidates.selection import looks_back
from uncertain_cep.config.tuning import ROWS_PER_PARTITION, ROWS_WORTH_A_TASK
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.spark.dataframes import column, in_ticks, quotient
from uncertain_cep.spark.filters import CandidateFilters
from uncertain_cep.spark.frame_statistics import FrameStatistics
from uncertain_cep.spark.ordered_sources import Clusters

__all__ = ["Slices", "choose_partitions", "choose_slices", "own_slice", "partitioned", "sliced"]

_LARGEST_INT64: Final = 2**63 - 1

_LARGEST_COPIED_SHARE: Final = 0.25
"""How many rows the slices may add to those there are."""

_SLICES_PER_PARTITION: Final = 4
"""More than one, so that a busy hour is spread over several partitions."""


@dataclass(frozen=True, slots=True)
class Slices:
    """The slices of a trace, in ticks."""

    column: str
    """The name of the column with the slice of a row, which the trace does not use."""
    origin: int
    """Where slice 0 begins: the smallest `lower` of a first event."""
    length: int
    count: int
    reach: int
    """How long after the end of its slice an event can still take part in a match, or forbid one."""
    back: int
    """How long before the beginning of its slice an event can take part in a match, or forbid one."""


def choose_partitions(statistics: FrameStatistics, count_cores: Callable[[], int]) -> int:
    """Return the number of partitions: the cores, unless rows are few or do not fit into their memory."""
    rows = math.ceil(statistics.candidates * (1 + _LARGEST_COPIED_SHARE))
    useful = math.ceil(rows / ROWS_WORTH_A_TASK)
    if useful <= 1:
        return 1
    return max(min(count_cores(), useful), math.ceil(rows / ROWS_PER_PARTITION))


def choose_slices(
    plan: EvaluationPlan,
    statistics: FrameStatistics,
    partitions: int,
    length: int | None,
) -> Slices | None:
    """Return the slices for a number of partitions, or None if slices are of no use.

    By default there are a few slices for each partition, but slices are long enough for few copies of later
    events.

    Raises
    ------
    OptionError
        If the length is below 1.
    """
    reach = min(plan.window - 1 + statistics.longest, _LARGEST_INT64)
    back = min(plan.window - 1, _LARGEST_INT64) if looks_back(plan) else 0
    span = statistics.latest - statistics.earliest + 1
    if length is None:
        if partitions == 1:
            return None
        copies = statistics.later * (back + reach + statistics.mean_length)
        shortest = math.ceil(copies / (_LARGEST_COPIED_SHARE * max(statistics.candidates, 1)))
        length = max(math.ceil(span / (_SLICES_PER_PARTITION * partitions)), shortest, 1)
    elif length < 1:
        raise OptionError(f"slice_length must be 1 tick or more, not {length}")
    count = math.ceil(span / length)
    if count < 2:
        return None
    name = "slice"
    while name in plan.required_columns:
        name += "_"
    return Slices(name, statistics.earliest, length, count, reach, back)


def own_slice(frame: DataFrame, plan: EvaluationPlan, slices: Slices) -> Column:
    """Return the slice that reports the matches that belong to an event."""
    return quotient(in_ticks(plan, frame.schema, plan.names.lower) - slices.origin, slices.length)


def sliced(
    frame: DataFrame,
    plan: EvaluationPlan,
    candidates: CandidateFilters,
    slices: Slices,
    clusters: Clusters | None = None,
) -> DataFrame:
    """Return the candidates of a frame with the column of their slices, a row for each slice.

    Events of one of the ``clusters`` are in all slices of it.
    """
    lower, upper = (in_ticks(plan, frame.schema, name) for name in (plan.names.lower, plan.names.upper))
    if clusters is not None:
        lower, upper = clusters.spans(lower, upper)
    origin, length = slices.origin, slices.length
    last = origin + slices.count * length - 1
    slice_of_event = own_slice(frame, plan, slices)
    # Clipped before the subtraction, which otherwise could leave int64 with a very long window.
    begins = f.greatest(lower, f.lit(origin)) - origin - slices.reach
    earliest = f.greatest(quotient(begins, length), f.lit(0))
    is_last = upper >= max(last - slices.back, -_LARGEST_INT64)
    latest = quotient(f.when(is_last, f.lit(last)).otherwise(upper + slices.back) - origin, length)
    is_later = candidates.later
    from_tick = max(origin - slices.back, -_LARGEST_INT64)
    in_time = (upper >= from_tick) & (lower <= min(last + slices.reach, _LARGEST_INT64))
    first_slice = f.when(is_later, earliest).otherwise(slice_of_event)
    last_slice = f.when(is_later, latest).otherwise(slice_of_event)
    number = f.explode(f.sequence(first_slice, last_slice)).alias(slices.column)
    return frame.filter(candidates.anywhere & in_time).select(*map(column, plan.required_columns), number)


def partitioned(
    frame: DataFrame, candidates: CandidateFilters, slices: Slices | None, partitions: int
) -> DataFrame:
    """Return a frame whose rows of one key and slice are in one partition."""
    parts = [f.xxhash64(*map(column, candidates.keys))] if candidates.keys else []
    if slices is not None:
        # The slice is added to the hash, so that the slices of a key take turns over all partitions.
        parts.append(column(slices.column))
    if not parts:
        return frame.repartition(1)
    number = reduce(lambda left, right: f.pmod(left, f.lit(partitions)) + right, parts)
    return frame.repartitionById(partitions, f.pmod(number, f.lit(partitions)).cast("int"))
