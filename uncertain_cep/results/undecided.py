"""Undecided matches: one of their gaps can end behind the known end, where unknown events may be.

Bounds of times decide most matches. Only where an event's interval straddles the known end is the query with
one more condition asked (:mod:`uncertain_cep.plan.gap_ends`), for the candidates that do. So every construct
that takes conditions on times has undecided matches without code of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.gap_ends import GapEnd, ends_behind, undecided_plan
from uncertain_cep.query.time_conditions import FAR
from uncertain_cep.weighers.templates import TimeTemplates

__all__ = ["ROW", "UndecidedMatches"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
Find = Callable[[EvaluationPlan], Iterator[pa.RecordBatch]]

ROW: Final = "uncertain_cep.row"
"""The column with the numbers of rows that plans of undecided matches give for ids."""


class UndecidedMatches:
    """Tells, of matches of an OR-free plan whose events are rows, those with a gap that can end too late.

    Bounds of the times of a match's events decide most. If only some ticks of an event let a gap end behind
    the known end, and something may spoil the match at just these, the query is asked again with conditions
    on these times: what it finds is undecided.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
    times : tuple of (n,) int64
        Lower and upper bounds of all rows, ticks.
    end : int
        The last tick of which everything is known.
    find : callable or None
        Returns the matches of such a plan among the same events. None: bounds alone decide, and only gaps at
        the end of a match count.
    diagnostics : Diagnostics or None
        Counts the matches; they are left out if there is ``find``.
    events : int
        If they last, how many there are: behind their rows are those of their ends. 0: they are points.
    """

    def __init__(
        self,
        plan: EvaluationPlan,
        table: pa.Table,
        times: tuple[Int64, Int64],
        end: int,
        find: Find | None,
        diagnostics: Diagnostics | None,
        events: int = 0,
    ) -> None:
        self._plan, self._times, self._end, self._find = plan, times, end, find
        self._events = events
        self._diagnostics = diagnostics
        self._gaps = [gap for gap in ends_behind(plan, end) if find is not None or gap.is_trailing]
        self._templates = [_templates(plan, table, gap) for gap in self._gaps]
        self._reach = plan.window - 1 if any(gap.is_trailing for gap in self._gaps) else 0
        if plan.negates_beside_sets:
            self._reach = FAR
        self._by_strategy = find is not None and plan.query.strategy != "skip_till_any_match"
        self._in_sets = not plan.event_order.is_chain
        self._lock = Lock()
        self._known: set[tuple[object, ...]] | None = None

    def __bool__(self) -> bool:
        """Return whether any match can be undecided."""
        return bool(self._gaps) or self._by_strategy

    def decided(self, chunk: MatchBatch, wanted: Callable[[MatchBatch], int]) -> Mask:
        """Return a mask of the matches that stay, (k,), and count the others; without ``find`` all stay.

        ``wanted`` tells how many of some matches the query asks for.
        """
        found = self._undecided(chunk)
        if self._diagnostics is not None and found.any():
            self._diagnostics.undecided(self._plan.domain, self._end, wanted(chunk.keep(found)))
        return ~found if self._find is not None else np.ones_like(found)

    def _undecided(self, chunk: MatchBatch) -> Mask:
        """Return a mask of undecided matches; most end so early that nothing else is looked at."""
        late = chunk.upper > self._end - self._reach
        if late.any():
            late[late] = self._of_late(chunk.keep(late))
        return late

    def _of_late(self, chunk: MatchBatch) -> Mask:
        size = len(chunk.lower)
        checkpoint(16 * size)
        counts, rows = chunk.by_match()
        found = np.zeros(size, dtype=np.bool_)
        if self._by_strategy:
            # The last gap ends with the last event, whose latest time is that of the range.
            found |= (chunk.upper >= self._end + 2) & (counts.sum(axis=0) > 1)
        possible = np.zeros(size, dtype=np.bool_)
        for some, number, events in _alike(counts, rows):
            for gap, templates in zip(self._gaps, self._templates, strict=True):
                can, must = self._by_bounds(gap, templates, number, events)
                found[some] |= must
                possible[some] |= can
        if self._find is None:
            return possible
        open_ = np.flatnonzero(possible & ~found)
        if len(open_):
            known = self._asked(self._find)
            signatures = _signatures(chunk.take(open_), self._in_sets)
            found[open_] = [signature in known for signature in signatures]
        return found

    def _by_bounds(
        self, gap: GapEnd, templates: TimeTemplates, counts: tuple[int, ...], rows: Int64
    ) -> tuple[Mask, Mask]:
        """Return of matches, (k, l) rows, in which a gap can end too late, and in which it always does."""
        lower, upper = self._times
        if self._events:
            # As their templates number them, behind all events the ends of the first one of each component.
            starts = np.cumsum([0, *counts[:-1]])
            rows = np.concatenate((rows, rows[:, starts] + self._events), axis=1)
        can, must = np.ones((2, len(rows)), dtype=np.bool_)
        must &= not gap.conditions
        for instance in templates.own(counts):
            low, high = templates.bounds_of_all(instance, rows)
            event = rows[:, instance.later]
            can &= (upper[event] >= low) & (low <= high)
            must &= lower[event] >= low
        return can, must & can

    def _asked(self, find: Find) -> set[tuple[object, ...]]:
        """Return the signatures of undecided matches of which bounds do not tell it."""
        with self._lock:
            if self._known is None:
                known = set[tuple[object, ...]]()
                variables = [part.variable for part in self._plan.components]
                for gap in self._gaps:
                    for batch in find(undecided_plan(self._plan, gap, ROW, self._straddled(gap))):
                        columns = [batch.column(name).to_pylist() for name in variables]
                        known.update(
                            zip(*(_hashable(column, self._in_sets) for column in columns), strict=True)
                        )
                        checkpoint(64 * len(known))
                self._known = known
            return self._known

    def _straddled(self, gap: GapEnd) -> int | None:
        """Return the tick that a gap's only event must be able to be before, for bounds not to tell."""
        if len(gap.times) != 1 or gap.conditions:
            return None
        (condition,) = gap.times
        is_plain = condition.later.element == "single" and condition.later.part != "end"
        return condition.ticks if is_plain and condition.is_literal else None


def _templates(plan: EvaluationPlan, table: pa.Table, gap: GapEnd) -> TimeTemplates:
    lasting = tuple(range(len(plan.components))) if plan.lasting else ()
    return TimeTemplates(replace(plan, bound=replace(plan.bound, times=gap.times)), table, lasting)


def _alike(counts: Int64, rows: Int64) -> Iterator[tuple[Int64, tuple[int, ...], Int64]]:
    """Yield the matches with as many events of each component: their places, the numbers, and the rows."""
    if not counts.shape[1]:
        return
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts.sum(axis=0))))[:-1]
    if (counts == counts[:, :1]).all():
        yield np.arange(counts.shape[1]), tuple(counts[:, 0].tolist()), rows.reshape(counts.shape[1], -1)
        return
    kinds, kind = np.unique(counts, axis=1, return_inverse=True)
    kind = kind.reshape(-1)
    for number, own in enumerate(kinds.T):
        some = np.flatnonzero(kind == number)
        yield some, tuple(own.tolist()), rows[starts[some][:, None] + np.arange(own.sum())]


def _signatures(chunk: MatchBatch, in_sets: bool) -> Iterator[tuple[object, ...]]:
    """Yield the rows of each match, one entry for each component."""
    columns: list[Sequence[object]] = []
    for first, series in chunk.of_components:
        if series is None:
            columns.append(first.tolist())
        else:
            lists = [part.tolist() for part in np.split(series.events, series.start[1:-1])]
            columns.append(_hashable(lists, in_sets))
    return zip(*columns, strict=True)


def _hashable(column: Sequence[object], in_sets: bool) -> list[object]:
    """Return lists as tuples; those of sets, which are in order by id, in order by row."""
    return [
        entry if not isinstance(entry, list) else tuple(sorted(entry) if in_sets else entry)
        for entry in column
    ]
