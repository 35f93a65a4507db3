"""The steps that choose the candidates of a problem."""

from __future__ import annotations

from uncertain_cep.candidates.match_windows import feasible
from uncertain_cep.candidates.own_times import shared_clocks
from uncertain_cep.candidates.selection import Selection, select
from uncertain_cep.executor.problem import Problem

__all__ = ["by_shared_clocks", "chosen", "in_reach", "selected"]


def chosen(problem: Problem) -> Selection:
    """Return the candidates of each component, whatever else is in their reach."""
    times, scan = problem.times, problem.scan
    return select(
        problem.plan,
        problem.table,
        times.lower,
        times.upper,
        times.in_table[0],
        scan.slicing,
        scan.scan_cache,
    )


def selected(problem: Problem) -> Problem | None:
    """Return the problem with the candidates of each component; None if the window is too short for any."""
    plan, selection = problem.plan, chosen(problem)
    if plan.window < plan.event_order.least_span:
        return None
    if problem.scan.diagnostics is not None:
        problem.scan.diagnostics.counted(plan, selection.sizes)
    if problem.existence is not None:
        selection = problem.existence.possible(selection)
    return problem.but(selection=selection)


def in_reach(problem: Problem) -> Problem:
    """Return the problem without candidates that have too few others in reach."""
    return problem.but(selection=feasible(problem.plan, problem.candidates))


def by_shared_clocks(problem: Problem) -> Problem:
    """Return the problem with the clocks that events share, whose times are not independent."""
    times = problem.times
    if times.offsets is None:
        return problem
    clocks, pmfs = shared_clocks(
        problem.plan, problem.table, times.offsets, times.pmfs, times.lower, times.upper
    )
    return problem.but(clocks=clocks, times=times._replace(pmfs=pmfs))
