"""From the matches of a query to the rows of RETURN PROBABILITY: HAVING, ORDER BY and LIMIT of groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.candidates.own_times import OffsetBounds
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.candidates.sequenced import sequenced
from uncertain_cep.files.blobs import packed, unpacked
from uncertain_cep.occurrence.answers import GroupProbabilities, group_probabilities
from uncertain_cep.occurrence.explicit_matches import TableTicks
from uncertain_cep.occurrence.match_groups import MatchGroups
from uncertain_cep.occurrence.numbered_matches import DescribedMatches, GroupableMatches, GroupFilter
from uncertain_cep.occurrence.portable_matches import MergedMatches, PortableMatches, filter_of_part
from uncertain_cep.occurrence.row_matches import RowMatches
from uncertain_cep.occurrence.undecided_rows import may_be_kept
from uncertain_cep.operators.counters import GroupCounts
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.result_columns import SortKey
from uncertain_cep.results.having import rows_kept
from uncertain_cep.results.ranking import ranked

__all__ = ["EventsOfMatches", "merged_rows", "portable_batches", "probability_rows", "refusal_of"]


@dataclass(frozen=True, slots=True)
class EventsOfMatches:
    """The events whose matches are grouped.

    Attributes
    ----------
    ticks : TableTicks
    offsets : OffsetBounds or None
        Of their clocks.
    pmfs : ExplicitPmfs or None
        Of their times; by their clocks where there are any.
    buckets : (int, int) or None
        With EVERY, the ticks between which the buckets begin that are weighed, the second one left out; None:
        all are.
    """

    ticks: TableTicks
    offsets: OffsetBounds | None
    pmfs: ExplicitPmfs | None
    buckets: tuple[int, int] | None

    @property
    def group_filter(self) -> GroupFilter | None:
        """The filter of the groups and buckets to weigh; None: all are."""
        if self.buckets is None:
            return None
        begin, end = self.buckets

        def is_within(group: NDArray[np.int64], bucket: NDArray[np.int64]) -> NDArray[np.bool_]:  # noqa: ARG001
            return (bucket >= begin) & (bucket < end)

        return is_within


def probability_rows(
    plan: EvaluationPlan,
    events: EventsOfMatches,
    batches: Iterable[pa.RecordBatch],
    threads: int,
    counts: GroupCounts | None = None,
) -> pa.RecordBatch:
    """Return the result of a query with RETURN PROBABILITY.

    Parameters
    ----------
    plan : EvaluationPlan
    events : EventsOfMatches
    batches : iterable of pyarrow.RecordBatch
        All matches of ``plan.by_row``.
    threads : int
        Most threads to weigh groups by.
    counts : GroupCounts or None
        Receives how the groups were weighed.

    Raises
    ------
    ConfidenceCostError
        If a group takes too many steps, and neither an estimate nor certain bounds will do.
    """
    assert plan.by_row is not None
    matches = RowMatches.of(plan.by_row, batches)
    if not matches.count:
        return pa.RecordBatch.from_pylist([], schema=plan.output_schema)
    refusal = refusal_of(plan, events.ticks, events.pmfs, matches)
    described = DescribedMatches.of(plan, matches, events.ticks, events.offsets, events.pmfs)
    return _rows_of_groups(plan, described, refusal, threads, events.group_filter, counts)


def portable_batches(
    plan: EvaluationPlan, events: EventsOfMatches, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of a table for the parts that weigh their groups, of ``plan.batch_schema``.

    Parameters are those of :func:`probability_rows`.
    """
    assert plan.by_row is not None
    matches = RowMatches.of(plan.by_row, batches)
    if not matches.count:
        return
    refusal = refusal_of(plan, events.ticks, events.pmfs, matches)
    described = DescribedMatches.of(
        plan, matches, events.ticks, events.offsets, events.pmfs, every_clock=True
    )
    for part, portable in PortableMatches.by_part(plan, described, refusal):
        row = {"part": part, "matches": packed(portable.packed())}
        yield pa.RecordBatch.from_pylist([row], schema=plan.batch_schema)


def merged_rows(plan: EvaluationPlan, part: int, blobs: Iterable[bytes]) -> pa.RecordBatch:
    """Return the rows of the groups that a part weighs.

    Parameters
    ----------
    plan : EvaluationPlan
    part : int
    blobs : iterable of bytes
        All matches that :func:`portable_batches` have for it, of all tables; at least one blob.

    Raises
    ------
    ConfidenceCostError
        If a group takes too many steps, and neither an estimate nor certain bounds will do.
    """
    merged = MergedMatches.of(plan, [PortableMatches.unpacked(unpacked(blob)[0]) for blob in blobs])
    group_filter = filter_of_part(plan, MatchGroups.of(plan, merged), part)
    return _rows_of_groups(plan, merged, merged.refusal, 1, group_filter)


def _rows_of_groups(
    plan: EvaluationPlan,
    matches: GroupableMatches,
    refusal: str,
    threads: int,
    group_filter: GroupFilter | None = None,
    counts: GroupCounts | None = None,
) -> pa.RecordBatch:
    """Return the rows of some groups, all of whose matches are there.

    Parameters
    ----------
    plan : EvaluationPlan
    matches : GroupableMatches
        At least one.
    refusal : str
        Why no group of several matches can be weighed; empty if any can.
    threads : int
        Most threads to weigh groups by.
    group_filter : callable or None
        With EVERY, the groups and buckets to weigh; None: all.
    counts : GroupCounts or None
        Receives how the groups were weighed.
    """
    groups, answers = group_probabilities(plan, matches, refusal, threads, group_filter)
    if counts is not None:
        _count(counts, groups, answers)
    rows = _rows(plan, groups, answers)
    if plan.having is not None:
        is_kept = rows_kept(plan.having, rows, {})
        if plan.keeps_undecided:
            is_kept = np.where(np.isnan(answers.probability), may_be_kept(plan.having, rows), is_kept)
        rows = rows.filter(pa.array(is_kept))
    rows = rows.take(_order(plan, rows))
    return pa.RecordBatch.from_arrays(rows.columns, schema=plan.output_schema)


def refusal_of(
    plan: EvaluationPlan, ticks: TableTicks, pmfs: ExplicitPmfs | None, matches: RowMatches
) -> str:
    """Return why several matches of these events cannot be weighed together; nothing if they can."""
    order = sequenced(plan.or_free[0], ticks.table, pmfs, ticks.lower, ticks.upper)
    if order is None:
        return ""
    # Any event may spoil a match.
    rows = slice(None) if any(part.forbids for part in plan.or_free) else matches.among_own_rows()[1]
    if not (order.cluster[rows] >= 0).any():
        return ""
    return (
        "RETURN PROBABILITY does not support events of an ordered source whose times overlap, where a group "
        "has several matches: rename or leave out the column of sequences, or take times as independent, "
        "sources=False"
    )


def _count(counts: GroupCounts, groups: MatchGroups, answers: GroupProbabilities) -> None:
    """Note how groups were weighed."""
    is_exact = answers.std_error == 0.0
    is_single = is_exact & (groups.sizes[answers.group] == 1)
    is_certain = is_exact & ~is_single & (answers.probability == 1.0)
    counts.matches = int(groups.sizes.sum())
    counts.single, counts.certain = int(is_single.sum()), int(is_certain.sum())
    counts.exact = int(is_exact.sum()) - counts.single - counts.certain
    counts.undecided = int(np.isnan(answers.probability).sum())
    counts.estimated = len(is_exact) - int(is_exact.sum()) - counts.undecided
    largest = int(np.argmax(groups.sizes))
    counts.largest, counts.named = int(groups.sizes[largest]), " and ".join(groups.shown(largest))


def _rows(plan: EvaluationPlan, groups: MatchGroups, answers: GroupProbabilities) -> pa.RecordBatch:
    """Return a row for each group and bucket; the probability is called confidence."""
    schema = plan.output_schema
    columns = [
        groups.column(number, answers.group, schema.field(number).type)
        for number in range(len(plan.bound.keys))
    ]
    if plan.bound.every is not None:
        columns.append(plan.domain.times(answers.bucket))
    probability = len(columns)
    is_undecided = np.isnan(answers.probability)
    columns.append(pa.array(answers.probability, mask=is_undecided))
    if plan.bounds_groups:
        columns.append(pa.array(answers.std_error == 0.0))
        if plan.approximate is not None:
            columns.append(pa.array(answers.std_error, mask=is_undecided))
        columns += [pa.array(answers.lower), pa.array(answers.upper)]
    names = [*schema.names[:probability], "confidence", *schema.names[probability + 1 :]]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _order(plan: EvaluationPlan, rows: pa.RecordBatch) -> pa.Array:
    """Return the order of rows: by ORDER BY and then falling probability, then by group and bucket.

    Nulls come last. LIMIT is applied.
    """
    keys = [*plan.sort_keys]
    if keys:
        keys.append(SortKey("confidence", descending=True))
    names = rows.schema.names
    keys += [SortKey(name, descending=False) for name in names[: names.index("confidence")]]
    columns, directions = [], []
    for key in dict.fromkeys(keys):
        column = rows.column(key.column)
        if key.column == "confidence":
            ranks = ranked(np.asarray(pc.fill_null(column, -1.0)))
            column = pa.array(ranks, mask=np.asarray(column.is_null()))
        elif pa.types.is_null(column.type):
            continue
        elif pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), None, column)
        columns.append(column)
        directions.append("descending" if key.descending else "ascending")
    limit = plan.query.limit
    if not columns:
        return pa.array(np.arange(min(rows.num_rows, rows.num_rows if limit is None else limit)))
    labels = [str(number) for number in range(len(columns))]
    order = pc.sort_indices(
        pa.table(columns, names=labels), sort_keys=list(zip(labels, directions, strict=True))
    )
    return order if limit is None else order[:limit]
