"""Candidates of a query on a frame of Spark, checked and spread over partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.errors import OptionError
from uncertain_cep.executor import Slicing
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.query import Query, query_of
from uncertain_cep.spark.clock_offsets import check_clock_columns, check_offsets_agree
from uncertain_cep.spark.dataframes import (
    column,
    in_workers,
    noted_schema,
    plainly_named,
    whole_numbers,
    with_span_bounds,
)
from uncertain_cep.spark.diagnosed_frame import FrameEvents
from uncertain_cep.spark.file_jobs import columns_read, file_work, task_numbers
from uncertain_cep.spark.file_worker import FileWork, match_files
from uncertain_cep.spark.filters import candidate_filters
from uncertain_cep.spark.frame_statistics import collect_statistics
from uncertain_cep.spark.jobs import count_cores, errors_of_workers
from uncertain_cep.spark.largest_amounts import roundable_columns, warn_of_rounded
from uncertain_cep.spark.ordered_sources import check_orders, clustered
from uncertain_cep.spark.semi_join import KeySlices, choose_key_slices, pruned
from uncertain_cep.spark.slicing import choose_partitions, choose_slices, partitioned, sliced
from uncertain_cep.spark.spoiled_values import naming_spoiled_values
from uncertain_cep.spark.task_diagnostics import Evaluate
from uncertain_cep.spark.undecided_counts import Undecided, can_be_undecided, counted, last_tick_of_files
from uncertain_cep.spark.unique_ids import check_unique_ids
from uncertain_cep.spark.worker import check_spans_of_partition, match_partition
from uncertain_cep.timeline.domain import TICK_METADATA

__all__ = ["PreparedMatch", "Spread", "prepare"]


@dataclass(frozen=True, slots=True)
class Spread:
    """How the events of a call are spread over tasks, see `match`."""

    partitions: int | None = None
    slice_length: int | None = None
    prune: bool | None = None
    by_files: bool = True
    """Whether workers may read the files of a frame themselves."""


@dataclass(frozen=True, slots=True)
class PreparedMatch:
    """Candidates in the partitions in which they are matched."""

    plan: EvaluationPlan
    candidates: DataFrame | None
    """None if no event can begin a match. The columns are renamed, since Spark hands only columns of plain
    names to Python."""
    schema: pa.Schema
    """The schema of the candidates, by position."""
    slicing: Slicing | None
    key_slices: KeySlices | None = None
    """The components by which slices of keys were dropped before the shuffle."""
    work: FileWork | None = None
    """The files that workers read themselves. The candidates are the numbers of the tasks then."""
    undecided: Undecided | None = None
    """The undecided matches, if there can be any and somebody asks for them."""
    partitions: int = 1
    """How many there are."""

    def spread_over(self, parts: int) -> PreparedMatch:
        """Return the same for tasks that send the matches of groups to parts that weigh these."""
        plan = replace(self.plan, spread=parts)
        work = None if self.work is None else replace(self.work, plan=plan)
        return replace(self, plan=plan, work=work)

    def evaluate(self, spark: SparkSession) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return a function that yields the matches of a partition of the candidates of a session."""
        evaluate: Evaluate
        if self.work is not None:
            evaluate = partial(match_files, work=self.work)
        else:
            evaluate = partial(match_partition, plan=self.plan, schema=self.schema, slicing=self.slicing)
        if self.undecided is None:
            return partial(evaluate, diagnostics=None)
        return counted(self.undecided, evaluate, spark)


@errors_of_workers()
def prepare(
    frame: DataFrame,
    query: str | Query,
    options: MatchOptions = MatchOptions(),  # noqa: B008
    spread: Spread = Spread(),
    diagnostics: Diagnostics | None = None,
) -> PreparedMatch:
    """Plan a query on a frame, check its events and spread the candidates; errors are those of `match`.

    If it is better that workers read the files themselves, the candidates are the numbers of tasks.
    """
    if frame.isStreaming:
        raise OptionError("a streaming frame has no end: use match, and writeStream on what it returns")
    if spread.partitions is not None and spread.partitions < 1:
        raise OptionError(f"partitions must be 1 or more, not {spread.partitions}")
    model = options.names
    parsed = query_of(query, options.parameters)
    original, frame = frame, with_span_bounds(whole_numbers(frame, model), model)
    options = replace(options, takes_spans=True)
    schema = noted_schema(frame, model)
    with naming_spoiled_values(frame):
        plan = make_plan(parsed, schema, options)
    plan.refuse_unbounded("Spark")
    check_clock_columns(plan, schema)
    if plan.domain.per_unit != 1:
        raise OptionError(
            f"a tick of {plan.domain.describe()} is too short: Spark keeps times to the microsecond"
        )
    undecided = None
    if diagnostics is None:
        diagnostics = Diagnostics()
    elif can_be_undecided(plan):
        undecided = Undecided(plan, diagnostics)
    diagnostics.about(plan)
    noted = (schema.metadata or {}).get(TICK_METADATA)
    tick = None if noted is None else noted.decode()
    if spread.by_files and spread.slice_length is None and not spread.prune:
        work = file_work(original, plan, schema, tick, spread.partitions)
        if work is not None:
            if undecided is not None:
                last_tick = last_tick_of_files(plan, work.files, frame) if undecided.asks_last else None
                undecided = replace(undecided, partitions=len(work.tasks), last_tick=last_tick)
                work = replace(work, last_tick=last_tick)
            numbers = task_numbers(frame, work)
            tasks = len(work.tasks)
            return PreparedMatch(
                plan, numbers, schema, None, work=work, undecided=undecided, partitions=tasks
            )
    return _shuffled(frame, plan, schema, tick, spread, diagnostics, undecided)


def _shuffled(
    frame: DataFrame,
    plan: EvaluationPlan,
    schema: pa.Schema,
    tick: str | None,
    spread: Spread,
    diagnostics: Diagnostics,
    undecided: Undecided | None,
) -> PreparedMatch:
    """Return the candidates in partitions; ``tick`` is the length of a tick by the events' own column."""
    candidates = candidate_filters(plan, frame.schema)
    checked = frame.select(*map(column, columns_read(plan, schema)))
    checked, clusters = clustered(checked, plan)
    if clusters is not None:
        candidates = clusters.travel(plan, candidates)
    asks_last = undecided is not None and undecided.asks_last
    statistics = collect_statistics(
        checked, plan, candidates, tick, clusters, roundable_columns(plan, schema), asks_last=asks_last
    )
    needed = checked.select(*map(column, (*plan.required_columns, *(clusters or ()))))
    check_offsets_agree(needed, plan)
    check_orders(needed, plan)
    sizes, negated, types = statistics.components, statistics.negated, statistics.types
    FrameEvents(checked, plan, schema, sizes, negated, types).look(diagnostics)
    warn_of_rounded(plan, schema, statistics.largest)
    arrow = pa.schema([schema.field(name) for name in plan.required_columns])
    if plan.lasting:
        rows = plainly_named(needed.select(*map(column, plan.required_columns)))
        in_workers(rows, partial(check_spans_of_partition, plan=plan, schema=arrow), "nothing long").collect()
    if not statistics.first:
        return PreparedMatch(plan, None, arrow, None)
    partitions = spread.partitions
    if partitions is None:
        partitions = choose_partitions(statistics, lambda: count_cores(frame.sparkSession))
    slices = choose_slices(plan, statistics, partitions, spread.slice_length)
    if slices is not None and not statistics.ids_apart:
        check_unique_ids(needed, plan, candidates)
    slicing = None
    # Only the components of every reading must have a candidate.
    prune = False if plan.is_open else spread.prune
    key_slices = choose_key_slices(candidates, statistics, slices, prune)
    if slices is None:
        rows = needed.filter(candidates.anywhere).select(*map(column, plan.required_columns))
    else:
        rows = sliced(needed, plan, candidates, slices, clusters)
        arrow = arrow.append(pa.field(slices.column, pa.int64()))
        slicing = Slicing(slices.column, slices.origin, slices.length)
    if key_slices is not None:
        rows = pruned(rows, plan, candidates, slices, key_slices)
    if slices is None and not candidates.keys:
        partitions = 1
    rows = partitioned(rows, candidates, slices, partitions)
    if undecided is not None:
        undecided = replace(undecided, partitions=partitions, last_tick=statistics.last_tick)
    rows = plainly_named(rows)
    return PreparedMatch(plan, rows, arrow, slicing, key_slices, undecided=undecided, partitions=partitions)
