"""Conditions on times by another evaluation: it finds choices of events, which are weighed as any others.

It evaluates neither the conditions nor what the strategy and negations forbid, so that it finds more choices
than matches, and no fewer. So is it where what is forbidden may not have happened.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from confidence.predicates.conditions import scratch
from eventbased.search.state import FoundMatches
from uncertain_cep.operators.backtracking import BacktrackingSearch, searched
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.incremental import run_pool
from uncertain_cep.operators.series import event_by_event
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.typed import variables_of
from uncertain_cep.weighers.templates import TimeTemplates

__all__ = ["Choices", "timed_choices", "without_times"]

Int64 = NDArray[np.int64]


def timed_choices(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches of a plan by the evaluation that it names.

    Raises
    ------
    OptionError
        If the method does not take so long a pattern, or interval.
    ConfidenceCostError
        If the confidence of a match takes too many steps.
    """
    yield from searched(_OtherEvaluation, context)


class Choices(BacktrackingSearch):
    """Choices of events that :meth:`found` yields among the candidates of a layout, weighed as any others."""

    @abstractmethod
    def found(self) -> Iterator[FoundMatches]:
        """Yield choices of events, as candidates of the layout: all that may be matches, each once."""

    def chunks(self) -> Iterator[MatchBatch]:
        """Yield the choices that are matches, weighed, in chunks."""
        work, depth = None, 0
        for matches in self.found():
            longest = int(np.diff(matches.start).max())
            if work is None or longest > depth:
                depth = 2 * longest
                work = scratch(self._conditions, depth)
            chunk = self._chunk(matches, work)
            if len(chunk.lower):
                yield chunk


class _OtherEvaluation(Choices):
    """Choices of events that another evaluation finds."""

    def found(self) -> Iterator[FoundMatches]:
        context, rows, first = self._context, self._rows, self._laid.first
        length = len(first) - 1
        place = np.empty((length, self._table.num_rows), dtype=np.int64)
        for j in range(length):
            own = np.arange(first[j], first[j + 1])
            place[j, rows[own]] = own
        without = replace(
            context, plan=without_times(self._plan), pmfs=None, payload=None, with_confidence=False,
            threshold=None,
        )  # fmt: skip
        if self._plan.evaluation != "point":
            for batch in run_pool(without):
                yield event_by_event(place[np.arange(length)[:, None], batch.events])
            return
        from uncertain_cep.operators.points import point_matches

        cut = TimeTemplates(self._plan, self._table).cut(context.candidates)
        for found in point_matches(replace(without, candidates=cut)):
            yield FoundMatches(found.start, place[found.component, found.event], found.component)


def without_times(plan: EvaluationPlan) -> EvaluationPlan:
    """Return the plan of the choices of events that can be matches, whatever their conditions on times."""
    query = replace(
        plan.query, strategy="skip_till_any_match", min_confidence=None, having=None, order_by=(),
        order_by_confidence=False, limit=None, non_overlapping=False,
    )  # fmt: skip
    positive = {part.variable for part in plan.components}
    return replace(
        plan,
        bound=replace(plan.bound, query=query, times=(), terms=()),
        negations=(),
        joined=tuple(predicate for predicate in plan.joined if variables_of(predicate) <= positive),
        approximate=None,
        confidence=False,
        having=None,
        sort_keys=(),
    )
