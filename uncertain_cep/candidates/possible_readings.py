"""The readings of a pattern that events make possible, found before any of them is planned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from operator import ge
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from eventbased import partition_bases
from eventbased.config import LONGEST_LINE
from eventbased.match_windows import grouped, restricted, union
from uncertain_cep.candidates.selection import ScanCache, Selection, Slicing, partitioned
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.equivalence import PartitionKey
from uncertain_cep.plan.readings import Choice, Readings
from uncertain_cep.query.branches import Alternative, Branch, order_of
from uncertain_cep.query.repeated_groups import list_of
from uncertain_cep.query.syntax import Component, Repeated
from uncertain_cep.query.syntax import Sequence as Series
from uncertain_cep.query.walks import components_of

__all__ = ["all_candidates", "possible_readings"]

Int64 = NDArray[np.int64]

_ALWAYS: Final = np.array([[-(2**62)], [2**62]], dtype=np.int64)


def all_candidates(
    plan: EvaluationPlan,
    table: pa.Table,
    lower: Int64,
    upper: Int64,
    slicing: Slicing | None,
    scan_cache: ScanCache,
) -> tuple[EvaluationPlan, Selection]:
    """Return the candidates of all components of a plan with branches, and the plan that they are those of.

    Its keys are those that the events of every branch are split by. ``lower`` and ``upper``, (n,) int64, are
    the intervals of all rows, ticks.
    """
    keys = tuple(PartitionKey((name,) * len(plan.components)) for name in plan.shared_keys)
    whole = replace(plan, split_keys=keys, branches=())
    rows = scan_cache.rows_of(whole, table, plan.components)
    rows, numbers, count = partitioned(whole, table, rows, slicing)
    return whole, Selection(
        rows=tuple(rows),
        lower=tuple(lower[part] for part in rows),
        upper=tuple(upper[part] for part in rows),
        partition=None if numbers is None or count == 1 else tuple(numbers),
        partitions=count,
    )


class _Reached(NamedTuple):
    """Where the events of the first item of a reading that takes any can be, and those of the last so far.

    Segments of time for each component, see :func:`eventbased.match_windows.union`.
    """

    first: list[Int64]
    last: list[Int64]


def possible_readings(plan: EvaluationPlan, readings: Readings, selection: Selection) -> Iterator[Choice]:
    """Yield the choices whose components have candidates that can be in order within the window.

    Every reading with a match is yielded, in the order of :attr:`Readings.choices`; some without one are, as
    predicates are not looked at, and of the times of a component just where each can be.

    Parameters
    ----------
    plan : EvaluationPlan
        With branches.
    selection : Selection
        The candidates of its components, see :func:`all_candidates`.

    Notes
    -----
    A walk over the items, depth first: what the first items of a reading take is looked at once for all that
    begin so, and left where the next item that has to take an event cannot. O(n) for each such beginning, for
    n segments of time.
    """
    times = _covered(plan, selection)
    window, step = _window(plan, selection), plan.least_step
    if not readings.groups:
        for number, alternative in enumerate(readings.alternatives):
            for choice in _Walk(alternative, times, window, step).onward((), _Reached([], []), None):
                yield number, *choice
        return
    together = _together(plan, selection)
    # Where a group cannot stand so often, it may be beside the reading.
    ranges = [
        range(group.fewest, max(group.fewest, _most_iterations(group, together)) + 1)
        for group in readings.groups
    ]
    impossible: list[Choice] = []
    for counts in product(*ranges):
        if any(all(map(ge, counts, fewer)) for fewer in impossible):
            continue
        is_possible = False
        for number, alternative in enumerate(readings.with_counts(counts)):
            for choice in _Walk(alternative, times, window, step).onward((), _Reached([], []), None):
                is_possible = True
                if readings.is_own((*counts, number, *choice)):
                    yield *counts, number, *choice
        if not is_possible and any(counts):
            # Without some iterations of a match the others are in order within the window as well; without
            # any there may be no event.
            impossible.append(counts)


def _most_iterations(group: Repeated, together: dict[str, int]) -> int:
    """Return how often a group can stand at most: each time it takes other events.

    ``together`` has for each variable how many of its candidates one match can have at most.
    """
    inner = group.items[0]
    in_a_row = inner.items if isinstance(inner, Series) else ()
    taken = [part for part in components_of(group) if not part.negated]
    always = [part for part in in_a_row if isinstance(part, Component) and part.least and not part.negated]
    in_all = sum(together[part.variable] for part in taken)
    bounds = [in_all, *(together[part.variable] for part in always)]
    return min(bounds if group.largest is None else [group.largest, *bounds])


def _together(plan: EvaluationPlan, selection: Selection) -> dict[str, int]:
    """Return how many candidates of each component can be within one window at most."""
    window = _window(plan, selection)
    together = {component.variable: 0 for component in plan.components}
    for j, component in enumerate(plan.components):
        lower, upper = selection.lower[j], selection.upper[j]
        numbers = None if selection.partition is None else selection.partition[j]
        parts = [np.arange(len(lower))] if numbers is None else _by_number(numbers)
        for part in parts:
            first, last = np.sort(lower[part]), np.sort(upper[part])
            # The window that has most begins with the end of one.
            begun = np.searchsorted(first, last + (window - 1), side="right")
            ended = np.searchsorted(last, last, side="left")
            count = int((begun - ended).max(initial=0))
            together[component.variable] = max(together[component.variable], count)
    return together


def _by_number(numbers: Int64) -> list[Int64]:
    """Return the places of each of some numbers."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)


def _window(plan: EvaluationPlan, selection: Selection) -> int:
    nonempty = [part for part in zip(selection.lower, selection.upper, strict=True) if len(part[0])]
    if not nonempty:
        return plan.window
    return min(
        plan.window, max(int(u.max()) for _, u in nonempty) - min(int(low.min()) for low, _ in nonempty) + 1
    )


def _covered(plan: EvaluationPlan, selection: Selection) -> dict[str, Int64]:
    """Return where the candidates of each component can be, partitions behind one another on one line."""
    names = [component.variable for component in plan.components]
    covered = dict.fromkeys(names, _ALWAYS[:, :0])
    nonempty = [j for j, size in enumerate(selection.sizes) if size]
    if not nonempty:
        return covered
    lower, upper = ([parts[j] for j in nonempty] for parts in (selection.lower, selection.upper))
    partition = selection.partition and [selection.partition[j] for j in nonempty]
    gap = _window(plan, selection) + 2
    shift, line, _ = partition_bases(lower, upper, partition, selection.partitions, gap)
    if line > LONGEST_LINE:
        return covered | {names[j]: _ALWAYS for j in nonempty}
    nothing = np.empty(0, dtype=np.int64)
    for place, j in enumerate(nonempty):
        numbers = nothing if partition is None else np.ascontiguousarray(partition[place])
        low, high = (np.ascontiguousarray(parts[place]) for parts in (lower, upper))
        lifted_low, lifted_high = np.empty_like(low), np.empty_like(high)
        if not grouped(low, high, numbers, shift, lifted_low, lifted_high):
            order = np.argsort(lifted_low, kind="stable")
            lifted_low, lifted_high = lifted_low[order], lifted_high[order]
        covered[names[j]] = union(lifted_low, lifted_high)
    return covered


_Ahead = tuple[int, list[_Reached | None]]


def _variables(branch: Branch) -> list[str]:
    """Return the variables of a branch that take events."""
    return [part.variable for part in components_of(branch.pattern) if not part.negated]


@dataclass(frozen=True, slots=True)
class _Walk:
    of: Alternative
    times: dict[str, Int64]
    window: int
    step: int
    """By how many ticks an event follows one before it at least."""

    def onward(self, chosen: Choice, reached: _Reached, ahead: _Ahead | None) -> Iterator[Choice]:
        """Yield the choices that begin with some and can be.

        ``ahead`` has, if that is known, what the next item that has to take an event reaches from here.
        """
        checkpoint()
        place = len(chosen)
        if place == len(self.of.items):
            if self.of.is_reading(chosen):
                yield chosen
            return
        ahead = ahead or self._ahead(place, reached)
        required, behind = ahead
        if not any(behind):
            return
        taken = behind if place == required else self._all_taken(place, reached)
        for number, times in enumerate(taken):
            if times is not None:
                yield from self.onward((*chosen, number), times, ahead if times is reached else None)

    def _ahead(self, place: int, reached: _Reached) -> _Ahead:
        """Look at the next item from a place on that has to take an event; at the place behind all else."""
        for required in range(place, len(self.of.items)):
            if all(map(_variables, self.of.items[required])):
                return required, self._all_taken(required, reached)
        return len(self.of.items), [reached]

    def _all_taken(self, place: int, reached: _Reached) -> list[_Reached | None]:
        return [self._taken(branch, reached) for branch in self.of.items[place]]

    def _taken(self, branch: Branch, reached: _Reached) -> _Reached | None:
        """Return the times reached behind an item; None if some of its components can take no event there."""
        times_here: list[Int64] = []
        variables = _variables(branch)
        if not variables:
            return reached
        behind = reached.last if reached.last is reached.first else [*reached.last, *reached.first]
        for name, earlier in zip(variables, order_of(branch.pattern).before, strict=True):
            allowed = _ALWAYS
            for times in behind:
                allowed = restricted(allowed, times, self.step, self.window - 1)
            for k, times in enumerate(times_here):
                earliest_lag = self.step if earlier >> k & 1 else 1 - self.window
                allowed = restricted(allowed, times, earliest_lag, self.window - 1)
            times_here.append(restricted(self.times[list_of(name)], allowed, 0, 0))
            if not times_here[-1].shape[1]:
                return None
        return _Reached(reached.first or times_here, times_here)
