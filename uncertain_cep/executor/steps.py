"""The evaluation of an OR-free plan as a list of steps: what each does to the problem is undone in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from uncertain_cep.candidates.selection import ScanCache
from uncertain_cep.executor.kept import confident
from uncertain_cep.executor.matching_run import MatchingRun
from uncertain_cep.executor.problem import Problem
from uncertain_cep.executor.rewrites import HappenedEvents, KnownOrder, MovedCandidates, OneClock
from uncertain_cep.executor.selecting import by_shared_clocks, in_reach, selected
from uncertain_cep.executor.slices import owned
from uncertain_cep.executor.sound_tables import constants_hold
from uncertain_cep.executor.table_scans import TableScan
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.counters import Counters
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.having import had
from uncertain_cep.results.undecided import ROW, UndecidedMatches

__all__ = ["STEPS", "Step", "evaluated", "stepped"]

Batches = Callable[[], Iterator[pa.RecordBatch]]


class Step(NamedTuple):
    """One thing that is done to a problem before its matches are looked for."""

    name: str
    forward: Callable[[Problem], Problem | None]
    """Returns the problem to go on with; None if there is no match."""
    after: tuple[str, ...] = ()
    """The steps that have to come before it; any order that heeds these has the same answer."""


def known_end(problem: Problem) -> Problem:
    """Return a problem of which undecided matches are left out; backward, as they are known by their ends.

    Without a known end those behind the last event are only warned of.
    """
    plan, scan, times = problem.plan, problem.scan, problem.times
    end, diagnostics = plan.known_until, scan.diagnostics
    find: Callable[[EvaluationPlan], Iterator[pa.RecordBatch]] | None = None
    if not plan.forbids or (end is None and (diagnostics is None or not plan.negations)):
        return problem
    if end is None:
        last_tick = diagnostics.last_tick if diagnostics is not None else None
        end = int(times.upper.max()) if last_tick is None else last_tick
    else:
        rows = scan.table.append_column(ROW, pa.array(np.arange(scan.table.num_rows)))
        again = replace(scan, table=rows, diagnostics=None, scan_cache=ScanCache(), threads=1)

        def find(plan_of_undecided: EvaluationPlan) -> Iterator[pa.RecordBatch]:
            return evaluated(plan_of_undecided, again, None)()

    events = 0 if scan.spans is None else scan.spans.events
    bounds = times.lower, times.upper
    undecided = UndecidedMatches(plan, problem.table, bounds, end, find, diagnostics, events)
    if not undecided:
        return problem
    kept = partial(_decided, undecided, partial(_number_wanted, plan, problem.table))
    return problem.but(kept, undecided=undecided, reads_rows=True)


def _decided(
    undecided: UndecidedMatches, number_wanted: Callable[[MatchBatch], int], chunk: MatchBatch
) -> MatchBatch:
    return chunk.keep(undecided.decided(chunk, number_wanted))


def _number_wanted(plan: EvaluationPlan, table: pa.Table, chunk: MatchBatch) -> int:
    """Count the matches that HAVING keeps."""
    chunk = confident(plan, chunk)
    if plan.having is None or not len(chunk.lower):
        return len(chunk.lower)
    return int(had(plan, table, chunk, False).num_rows)


STEPS: Final = (
    Step("known end", known_end),
    Step("happened", HappenedEvents.forward),
    Step("one clock", OneClock.forward, ("known end",)),
    Step("known order", KnownOrder.forward, ("known end", "happened")),
    Step("candidates", selected, ("one clock", "known order")),
    Step("owned", owned, ("candidates",)),
    Step("in reach", in_reach, ("candidates",)),
    Step("moved", MovedCandidates.forward, ("candidates",)),
    Step("shared clocks", by_shared_clocks, ("one clock", "known order")),
)
"""Everything that is done to a problem, in order. Finding, weighing, keeping: :class:`MatchingRun`."""


def stepped(problem: Problem, steps: Sequence[Step]) -> Problem | None:
    """Return a problem behind some steps; None if one of them tells that there is no match."""
    for step in steps:
        further = step.forward(problem)
        if further is None or (further.selection is not None and further.selection.empty):
            return None
        problem = further
    return problem


def evaluated(plan: EvaluationPlan, scan: TableScan, counters: Counters | None) -> Batches:
    """Return an iterator over matches among events of the model; with ``owned``, of owners among these.

    Raises what speaks against them.
    """
    if not constants_hold(plan) or not scan.table.num_rows:
        return _nothing
    problem = stepped(Problem(plan, plan, scan, scan.needed(plan), scan.times()), STEPS)
    return _nothing if problem is None else MatchingRun(problem, counters).batches


def _nothing() -> Iterator[pa.RecordBatch]:
    return iter(())
