"""From batches to the result: what only shows once all are there (SASE+: OUTPUT, ORDER BY, LIMIT)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.kernel import plain_for
from eventbased import choose_non_overlapping
from uncertain_cep.expressions.codes import codes_of, paired
from uncertain_cep.operators.table import kernels_of
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.result_columns import SortKey
from uncertain_cep.results.ranking import ranked
from uncertain_cep.running.compiling import plain_seconds
from uncertain_cep.running.resource_limits import Limits, looked_at
from uncertain_cep.running.threads import waited_for

__all__ = ["finished", "in_order", "non_overlapping", "signature_keys"]

Int64 = NDArray[np.int64]

_SORTED_AT_ONCE: Final = 1 << 20
"""Matches that are sorted in a fraction of a second, so that nobody has to be able to end it."""


def finished(
    plan: EvaluationPlan, batches: Iterable[pa.RecordBatch], limits: Limits | None = None
) -> pa.Table:
    """Return the result that the batches of :func:`uncertain_cep.executor.execute` make.

    They may be of several tables that share no match. Expected counts are added up; of the matches those stay
    that OUTPUT NON OVERLAPPING keeps, in the order of ORDER BY, ties by falling confidence and by signature,
    and at most LIMIT. What HAVING drops is dropped before. Memory is O(k + batch) with LIMIT k and without
    NON OVERLAPPING, else O(matches). The limits are looked at where that takes long.
    """
    if plan.counts:
        from uncertain_cep.results.expected_counts import merged_counts

        return merged_counts(plan, batches)
    if plan.is_grouped:
        return pa.Table.from_batches(list(batches), schema=plan.output_schema)
    limit = plan.query.limit
    ordered = plan.query.is_ordered
    if plan.query.non_overlapping:
        matches = _together(plan, batches)
        batches = _of_all(limits, matches, partial(non_overlapping, plan, matches)).to_batches()
    if limit is None:
        result = _together(plan, batches)
        if ordered:
            result = _of_all(limits, result, partial(_sorted, plan, result))
    else:
        result = plan.batch_schema.empty_table()
        for batch in batches:
            if plan.widens:
                result = _together(plan, [*result.to_batches(), batch])
            else:
                result = pa.concat_tables([result, pa.Table.from_batches([batch])])
            if ordered:
                result = _of_all(limits, result, partial(_sorted, plan, result, limit))
            elif result.num_rows >= limit:
                break
        result = result.slice(0, limit)
    return result.select(plan.output_schema.names)


def _together(plan: EvaluationPlan, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Return batches as one table; whole numbers are float64 where those of a batch are."""
    found, schema = list(batches), plan.batch_schema
    if not plan.widens:
        return pa.Table.from_batches(found, schema=schema)
    for place, field in enumerate(schema):
        if any(batch.schema.field(place).type != field.type for batch in found):
            schema = schema.set(place, field.with_type(pa.float64()))
    if schema != plan.batch_schema:
        found = [_cast(batch, schema) for batch in found]
    return pa.Table.from_batches(found, schema=schema)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of a schema, to the nearest float64."""
    columns = [
        column if column.type == field.type else column.cast(field.type, safe=False)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _of_all(limits: Limits | None, matches: pa.Table, made: Callable[[], pa.Table]) -> pa.Table:
    """Return the result of a step that makes sorted copies of matches, within limits."""
    if matches.num_rows <= _SORTED_AT_ONCE:
        return made()
    with looked_at(limits):
        checkpoint(2 * matches.nbytes)
        return waited_for(made)


def _sorted(plan: EvaluationPlan, matches: pa.Table, limit: int | None = None) -> pa.Table:
    return matches.take(_best_first(plan, matches, plan.sort_keys)[:limit])


def non_overlapping(plan: EvaluationPlan, matches: pa.Table) -> pa.Table:
    """Return matches whose time ranges do not overlap, chosen by falling confidence in each partition.

    ``matches`` are all those of some partitions, of the plan's batch schema. A partition is one combination
    of values of the plan's partition columns. O(n log n); the chosen matches come in the order given.
    """
    if not matches.num_rows:
        return matches
    partition = _partition_codes(matches, plan.partition_columns)
    lower, upper = (
        np.asarray(matches.column(name).cast(pa.int64()).to_numpy())
        for name in ("range_lower", "range_upper")
    )
    by_time = np.lexsort((lower, partition))
    place = np.empty(len(by_time), dtype=np.int64)
    place[by_time] = np.arange(len(by_time))
    chosen = np.empty(len(by_time), dtype=np.bool_)
    best = place[_best_first(plan, matches)]
    with plain_for(plain_seconds(len(best), kernels_of(plan))):
        choose_non_overlapping(best, partition[by_time], lower[by_time], upper[by_time], chosen)
    return matches.take(pa.array(np.sort(by_time[chosen])))


def _best_first(plan: EvaluationPlan, matches: pa.Table, given: tuple[SortKey, ...] = ()) -> Int64:
    """Return the order by keys, then by falling confidence, then by the values of the ids, nulls last."""
    return in_order(matches, [*given, SortKey("confidence", descending=True), *signature_keys(plan)])


def signature_keys(plan: EvaluationPlan) -> list[SortKey]:
    """Return the keys by which matches come in the order of their signatures."""
    return [SortKey(component.variable, descending=False) for component in plan.components]


def in_order(matches: pa.Table, keys: Sequence[SortKey]) -> Int64:
    """Return the rows of a table, (n,) int64, in the order of some keys, nulls last."""
    columns, directions = [], []
    for key in dict.fromkeys(keys):
        column = matches.column(key.column)
        if key.column == "confidence":
            column = pa.array(ranked(np.asarray(column.to_numpy())))
        found = _sortable(column)
        columns += found
        # Nulls come last in either direction.
        falling = ["descending" if key.descending else "ascending"] * len(found)
        directions += falling if len(found) == 1 else ["ascending", *falling[1:]]
    names = [str(number) for number in range(len(columns))]
    table = pa.table(columns, names=names)
    found = pc.sort_indices(table, sort_keys=list(zip(names, directions, strict=True)))
    return np.asarray(found).astype(np.int64)


def _sortable(column: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """Return columns by which to sort: a list element by element, before those that it begins."""
    if pa.types.is_floating(column.type):
        return [pc.if_else(pc.is_nan(column), None, column)]
    if not pa.types.is_list(column.type):
        return [] if pa.types.is_null(column.type) else [column]
    lists = column.combine_chunks()
    lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0))
    starts = np.asarray(lists.offsets)[:-1]
    columns = [lists.is_null()]
    for k in range(int(lengths.max(initial=1))):
        there = lengths > k
        columns += [pa.array(there), lists.values.take(pa.array(starts + k, mask=~there))]
    return columns


def _partition_codes(matches: pa.Table, names: tuple[str, ...]) -> Int64:
    """Return a number for each row, the same exactly for rows that agree in some columns."""
    codes = np.zeros(matches.num_rows, dtype=np.int64)
    for name in names:
        codes = paired(codes, codes_of([matches.column(name)])[0][0])
    return codes
