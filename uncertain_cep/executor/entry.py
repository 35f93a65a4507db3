"""The ways into the executor: all matches of a plan, those within limits, and the candidates of a pattern."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import large_arrays
from confidence.kernel import plainly
from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.candidates.event_times import ticks_of
from uncertain_cep.candidates.marginals import with_marginals
from uncertain_cep.candidates.own_times import with_coded_clocks
from uncertain_cep.candidates.selection import ScanCache, Selection, Slicing
from uncertain_cep.candidates.span_candidates import taken_types
from uncertain_cep.candidates.span_times import with_ends
from uncertain_cep.config.limits import BATCH_ROWS
from uncertain_cep.errors import MatchLimitError, OptionError
from uncertain_cep.executor.branching import batches_of
from uncertain_cep.executor.problem import Problem
from uncertain_cep.executor.rewrites import KnownOrder, OneClock
from uncertain_cep.executor.selecting import chosen
from uncertain_cep.executor.sound_tables import check_table, is_sound
from uncertain_cep.executor.table_scans import TableScan, in_one_chunk, times_once
from uncertain_cep.operators.counters import Counters
from uncertain_cep.operators.table import kernels_of
from uncertain_cep.plan import EvaluationPlan, MatchOptions
from uncertain_cep.running.compiling import announce_compilation, plain_seconds
from uncertain_cep.running.resource_limits import within
from uncertain_cep.running.threads import threads_or_all

__all__ = ["candidates", "execute", "execute_within"]

Mask = NDArray[np.bool_]

large_arrays.allocate_by(pa.allocate_buffer)


def execute_within(
    plan: EvaluationPlan, table: pa.Table, options: MatchOptions, diagnostics: Diagnostics | None
) -> Iterator[pa.RecordBatch]:
    """Evaluate a plan on a table, within the limits that the options set on time, batches and matches.

    ``max_matches`` counts only where all matches are collected, see :attr:`EvaluationPlan.collects`.

    Raises
    ------
    TimeLimitError, MatchLimitError
        When a batch goes beyond a limit; those before it are yielded.
    """
    max_matches = options.max_matches if plan.collects else None
    matches = 0
    threads = threads_or_all(options.threads)
    batches = execute(plan, table, batch_rows=options.batch_rows, diagnostics=diagnostics, threads=threads)
    seconds = plain_seconds(table.num_rows, kernels_of(plan))
    for batch in within(options.limit, plainly(seconds, batches)):
        matches += batch.num_rows
        if max_matches is not None and matches > max_matches:
            raise MatchLimitError(matches, max_matches)
        yield batch
        # So that the next one may have its memory.
        del batch


def execute(
    plan: EvaluationPlan,
    table: pa.Table,
    *,
    slicing: Slicing | None = None,
    owned: Mask | None = None,
    batch_rows: int = BATCH_ROWS,
    file: str | None = None,
    counters: Counters | None = None,
    diagnostics: Diagnostics | None = None,
    threads: int = 1,
    buckets: tuple[int, int] | None = None,
    scan_cache: ScanCache | None = None,
) -> Iterator[pa.RecordBatch]:
    """Evaluate a plan on a table of events and yield the matches in batches.

    Parameters
    ----------
    table : pyarrow.Table
        With at least ``plan.required_columns``, and ``slicing.column`` if slicing is given.
    slicing : Slicing or None
        The slices of time that the table is cut into; each is evaluated apart.
    owned : (n,) bool or None
        The events that a match yielded may have for the plan's owner, as a rule its first component; None:
        any. Not with ``slicing``.
    batch_rows : int
        Most matches a batch holds.
    file : str or None
        Where the table comes from, for error messages.
    counters : Counters or None
        Receives the numbers of partial matches where events are joined, along a tree or in pattern order.
    diagnostics : Diagnostics or None
        Warns of what is sound but may not be what was meant; None: nobody does. With ``slicing`` one that
        says nothing of single slices.
    threads : int
        Most threads that look for matches at once. With ``counters`` there is one.
    buckets : (int, int) or None
        With RETURN PROBABILITY and EVERY, the ticks between which the buckets begin that are returned, the
        second one left out; None: all are.
    scan_cache : ScanCache or None
        Of a table that has been checked, what plans for the same events have looked up in it; None: nothing,
        and the table is checked.

    Yields
    ------
    pyarrow.RecordBatch
        Of ``plan.batch_schema``, in an order that depends on the events and on ``threads``. HAVING is
        applied; if ``plan.needs_all``, the caller makes the result of the batches with :func:`finished`.
        Memory beyond the table is O(candidates + threads * batch_rows), whatever the number of matches.

    Raises
    ------
    TraceError
        Before the first batch, if the events are not those of the model.
    """
    announce_compilation()
    if batch_rows < 1:
        raise OptionError(f"batch_rows is {batch_rows}: it must be at least 1")
    if plan.lasting and slicing is not None:
        for part, is_owned in _slices(plan, table, slicing):
            yield from execute(
                plan, part, owned=is_owned, batch_rows=batch_rows, file=file, counters=counters,
                diagnostics=diagnostics, threads=threads, buckets=buckets,
            )  # fmt: skip
        return
    table = with_marginals(plan, table)
    table = in_one_chunk(with_coded_clocks(plan, table), plan.required_columns)
    if diagnostics is not None:
        diagnostics.about(plan)
    times = times_once(plan, table)
    is_cut = slicing is not None
    if scan_cache is None:
        scan_cache = ScanCache(threads)
        if not (is_cut and plan.orders) and not is_sound(plan, table, is_cut, scan_cache, times):
            check_table(plan, table, file)
    if diagnostics is not None:
        diagnostics.look(table)
    spans = without_ends = None
    if plan.lasting:
        rows = np.flatnonzero(taken_types(plan, table))
        if len(rows) < table.num_rows:
            needed = [name for name in table.column_names if name in plan.required_columns]
            table = table.select(needed).take(pa.array(rows))
            owned = None if owned is None else owned[rows]
        without_ends = table
        plan, table, spans = with_ends(plan, table, file, rows)
        scan_cache, times = ScanCache(threads), times_once(plan, table)
    scan = TableScan(
        table, slicing, batch_rows, owned, diagnostics, threads, scan_cache, times, file, buckets,
        spans, without_ends,
    )  # fmt: skip
    yield from batches_of(plan, scan, counters)()
    if diagnostics is not None:
        diagnostics.finish()


def _slices(plan: EvaluationPlan, table: pa.Table, slicing: Slicing) -> Iterator[tuple[pa.Table, Mask]]:
    """Yield the events of each slice, and which of them its matches may begin with.

    These go by ``lower`` as given: the least begin that an event can have may be later.
    """
    numbers = np.asarray(table.column(slicing.column).to_numpy())
    for number in np.unique(numbers).tolist():
        part = table.filter(pa.array(numbers == number)).drop_columns(slicing.column)
        lower = ticks_of(part, plan.names.lower, plan)
        begin = slicing.origin + number * slicing.length
        yield part, (lower >= begin) & (lower < begin + slicing.length)


def candidates(plan: EvaluationPlan, table: pa.Table, diagnostics: Diagnostics | None = None) -> Selection:
    """Check a table of events, and return the candidates of each component of an OR-free pattern."""
    table = with_marginals(plan, table)
    check_table(plan, table)
    times = times_once(plan, table)
    scan = TableScan(table, None, BATCH_ROWS, None, None, 1, ScanCache(), times, None)
    problem = KnownOrder.forward(OneClock.forward(Problem(plan, plan, scan, table, times())))
    selection = chosen(problem)
    if diagnostics is not None:
        diagnostics.about(plan)
        diagnostics.look(table)
        diagnostics.counted(plan, selection.sizes)
    return selection
