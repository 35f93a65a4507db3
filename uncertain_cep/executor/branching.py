"""Branches of OR and readings of options, each evaluated by itself; slices that are, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from uncertain_cep.candidates.event_times import ticks_of
from uncertain_cep.candidates.possible_readings import all_candidates, possible_readings
from uncertain_cep.candidates.selection import ScanCache, Slicing
from uncertain_cep.executor.sound_tables import check_table, constants_hold
from uncertain_cep.executor.steps import evaluated
from uncertain_cep.executor.table_scans import TableScan, times_once
from uncertain_cep.operators.counters import Counters
from uncertain_cep.plan import EvaluationPlan, plan_of_reading
from uncertain_cep.plan.evaluated_parts import counts_matches_found, is_searched_by_slice
from uncertain_cep.plan.grouping import ROW_FIELD
from uncertain_cep.plan.readings import Readings
from uncertain_cep.results.projection import widened

__all__ = ["batches_of"]

Batches = Callable[[], Iterator[pa.RecordBatch]]


def batches_of(plan: EvaluationPlan, scan: TableScan, counters: Counters | None) -> Batches:
    """Check every branch of OR, then return an iterator over the matches of a plan.

    Readings, which may be many, are evaluated one after the other.
    """
    if plan.counted is not None and counts_matches_found(plan):
        from uncertain_cep.results.expected_counts import counts_of_matches

        counted = batches_of(plan.counted, scan, counters)
        return lambda: counts_of_matches(plan, counted())
    if plan.by_row is not None:
        if scan.slicing is not None:
            return partial(_grouped_by_slice, plan, plan.by_row, scan, scan.slicing, counters)
        return _grouped(plan, plan.by_row, scan, counters)
    if plan.branches:
        parts = _of_branches(plan, scan, counters)
        return lambda: _in_turn(plan, parts)
    if scan.slicing is None or not is_searched_by_slice(plan):
        return evaluated(plan, scan, counters)
    return partial(_by_slice, plan, scan, scan.slicing, counters)


def _grouped(
    plan: EvaluationPlan, by_row: EvaluationPlan, scan: TableScan, counters: Counters | None
) -> Batches:
    """Return an evaluation that yields the probabilities of groups of matches."""
    from uncertain_cep.occurrence.explicit_matches import TableTicks
    from uncertain_cep.occurrence.probability_rows import EventsOfMatches, portable_batches, probability_rows

    table = scan.table.append_column(ROW_FIELD, pa.array(np.arange(scan.table.num_rows)))
    matches = batches_of(by_row, replace(scan, table=table), counters)

    def rows() -> Iterator[pa.RecordBatch]:
        times = scan.times()
        columns = scan.table.select(plan.required_columns)
        ticks = TableTicks(columns, times.lower, times.upper, times.in_table[0], scan.spans)
        groups = None if counters is None else counters.groups
        events = EventsOfMatches(ticks, times.offsets, times.pmfs, scan.buckets)
        if plan.spread:
            yield from portable_batches(plan, events, matches())
        else:
            yield probability_rows(plan, events, matches(), scan.threads, groups)

    return rows


def _grouped_by_slice(
    plan: EvaluationPlan,
    by_row: EvaluationPlan,
    scan: TableScan,
    slicing: Slicing,
    counters: Counters | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the probabilities of groups of slices that share no group."""
    for part in _slices(plan, scan, slicing):
        yield from _grouped(plan, by_row, part, counters)()


def _of_branches(
    plan: EvaluationPlan, scan: TableScan, counters: Counters | None
) -> Iterator[tuple[EvaluationPlan, Batches]]:
    """Return the branches of a plan, each with its evaluation."""

    def evaluations(
        branches: Iterable[tuple[int, EvaluationPlan]],
    ) -> Iterator[tuple[EvaluationPlan, Batches]]:
        for number, branch in branches:
            yield branch, batches_of(plan.of_branch(branch), scan, counters and counters.of_branch(number))

    if (readings := plan.readings) is not None:
        return evaluations(_possible(plan, readings, scan))
    # All branches are held at once, in one chunk of the events.
    scan = replace(scan, table=scan.needed(plan))
    return _released(list(evaluations(enumerate(plan.or_free))))


def _released(
    parts: list[tuple[EvaluationPlan, Batches]],
) -> Iterator[tuple[EvaluationPlan, Batches]]:
    """Yield branches, each held no longer than it takes."""
    while parts:
        yield parts.pop(0)


def _in_turn(
    plan: EvaluationPlan, parts: Iterator[tuple[EvaluationPlan, Batches]]
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of branches, one after the other."""
    for branch, matches in parts:
        yield from (widened(plan, batch, branch.bound) for batch in matches())


def _by_slice(
    plan: EvaluationPlan, scan: TableScan, slicing: Slicing, counters: Counters | None
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of slices in which a search may begin with any event, and any forbids."""
    for part in _slices(plan, scan, slicing):
        yield from evaluated(plan, part, counters)()


def _slices(plan: EvaluationPlan, scan: TableScan, slicing: Slicing) -> Iterator[TableScan]:
    """Yield the slices of a table, in each of them the events that its matches may begin with."""
    numbers = np.asarray(scan.table.column(slicing.column).to_numpy())
    for number in np.unique(numbers).tolist():
        part = scan.table.filter(pa.array(numbers == number))
        if plan.orders:
            check_table(plan, part, scan.file)
        begin = slicing.origin + number * slicing.length
        lower = ticks_of(part, plan.names.lower, plan)
        is_owned = (lower >= begin) & (lower < begin + slicing.length)
        times = times_once(plan, part)
        yield replace(
            scan, table=part, slicing=None, owned=is_owned, threads=1, scan_cache=ScanCache(), times=times
        )


def _possible(
    plan: EvaluationPlan, readings: Readings, scan: TableScan
) -> Iterator[tuple[int, EvaluationPlan]]:
    """Yield the readings of a plan that can have a match, with their numbers.

    Those that are planned one by one are numbered as they come.
    """
    table = scan.table
    if not constants_hold(plan) or not table.num_rows:
        return
    times = scan.times()
    whole, selection = all_candidates(plan, table, times.lower, times.upper, scan.slicing, scan.scan_cache)
    shortest = min(len(branch.components) for branch in plan.or_free)
    if scan.diagnostics is not None and plan.window >= shortest:
        scan.diagnostics.counted(whole, selection.sizes)
    possible = possible_readings(plan, readings, selection)
    if not readings.planned:
        for number, choice in enumerate(possible):
            yield number, plan_of_reading(plan, choice)
        return
    numbers = {choice: number for number, choice in enumerate(readings.choices)}
    for choice in possible:
        yield numbers[choice], plan.or_free[numbers[choice]]
