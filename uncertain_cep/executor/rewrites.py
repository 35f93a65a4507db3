"""Rewrites: forward, each changes the problem; backward, matches into those of the problem before it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from uncertain_cep.candidates.distances import moved
from uncertain_cep.candidates.existence import Existence, as_evaluated, existence
from uncertain_cep.candidates.own_times import MovedTimes, shared_clocks, times_by_one_clock
from uncertain_cep.candidates.sequenced import SequencedEvents, sequenced
from uncertain_cep.executor.problem import Backward, Problem
from uncertain_cep.operators.batch import MatchBatch, happened
from uncertain_cep.operators.context import InOrder, TiedEvents
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.evaluated_parts import counts_candidates, moves_candidates

__all__ = ["HappenedEvents", "KnownOrder", "MovedCandidates", "OneClock"]


@dataclass(frozen=True, slots=True)
class OneClock:
    """Times by the clock that all events of a match share: its offset moves all of them by as much."""

    times: MovedTimes
    owner: int
    """A component that takes one event."""

    @classmethod
    def forward(cls, problem: Problem) -> Problem:
        """Return the problem by the times of clocks, without these, if a match has one clock."""
        plan, times = problem.plan, problem.times
        by = times_by_one_clock(plan, problem.table, times.offsets, times.lower, times.upper)
        if by is None:
            return problem
        times = times._replace(offsets=None, lower=by.lower, upper=by.upper)
        return problem.but(
            cls(by, plan.owner).backward, plan=replace(plan, clocks=False), times=times, reads_rows=True
        )

    def backward(self, chunk: MatchBatch) -> MatchBatch:
        """Return matches with their ranges, as much wider as the offset of their clock is uncertain."""
        row = chunk.events[self.owner]
        return replace(
            chunk, lower=chunk.lower + self.times.low[row], upper=chunk.upper + self.times.high[row]
        )


class KnownOrder:
    """Ticks so short that events which sequences put in order share none."""

    def __init__(self, events: SequencedEvents, plan: EvaluationPlan, table: pa.Table) -> None:
        self._events, self._plan, self._table = events, plan, table

    @classmethod
    def forward(cls, problem: Problem) -> Problem:
        """Return the problem on shorter ticks, if sequences put events in order.

        The search itself weighs matches where the order of all is known, and times tell besides what lies in
        gaps, or where gaps and sets ask for the ties that sequences break. Else backward does.
        """
        plan, table, times = problem.plan, problem.table, problem.times
        sequences = sequenced(plan, table, times.pmfs, times.lower, times.upper)
        if sequences is None:
            return problem
        searched, lower, upper = sequences.searched(plan)
        rewritten = problem.but(
            plan=searched,
            times=times._replace(offsets=None, pmfs=None, lower=lower, upper=upper),
            sequences=sequences,
            reads_rows=True,
            confident_search=sequences.is_total,
        )
        if sequences.is_spoiled_in_time(plan):
            return rewritten.but(in_order=InOrder(sequences, plan))
        if sequences.breaks_ties(plan):
            assert times.offsets is not None
            clocks, pmfs = shared_clocks(searched, table, times.offsets, times.pmfs, *sequences.times)
            return rewritten.but(
                times=rewritten.times._replace(pmfs=pmfs),
                clocks=clocks,
                ties=TiedEvents(sequences, plan),
                confident_search=True,
            )
        return rewritten.but(cls(sequences, plan, table).backward)

    def backward(self, chunk: MatchBatch) -> MatchBatch:
        """Return matches with the ranges and confidences that their times in order have."""
        return self._weigh(chunk)

    @cached_property
    def _weigh(self) -> Backward:
        # Imports much that matches do without.
        from uncertain_cep.operators.sequenced_matches import sequence_weigher

        return sequence_weigher(self._events, self._plan, self._table)


@dataclass(frozen=True, slots=True)
class HappenedEvents:
    """Events as if all had happened, but for those that forbid: that those of a match did is a factor."""

    existence: Existence

    @classmethod
    def forward(cls, problem: Problem) -> Problem:
        """Return the problem without candidates that cannot have happened."""
        plan = problem.plan
        exists = existence(problem.table, plan.names.probability)
        if exists is None:
            return problem
        selection = problem.selection and exists.possible(problem.selection)
        rewritten = problem.but(plan=as_evaluated(plan, exists), selection=selection, existence=exists)
        if counts_candidates(plan):
            # Expected counts are of what happened, whether matches are enumerated or not.
            return rewritten
        return rewritten.but(cls(exists).backward, reads_rows=True)

    def backward(self, chunk: MatchBatch) -> MatchBatch:
        """Return matches whose events can have happened, with the probability that they did as a factor."""
        return happened(chunk, self.existence.probability)


@dataclass(frozen=True, slots=True)
class MovedCandidates:
    """Candidates moved back by what least distances ask, so that these are those of any sequence."""

    move: int
    """How far those of the last component are, ticks."""

    @classmethod
    def forward(cls, problem: Problem) -> Problem | None:
        """Return the problem without least distances, if it is a join at distances; None: no match."""
        plan = problem.plan
        if not moves_candidates(plan):
            return problem
        inner, candidates, move = moved(plan, problem.candidates)
        if inner.window < len(inner.components):
            return None
        rewritten = problem.but(plan=inner, selection=candidates)
        if not inner.neighbour_bounds:
            return rewritten.but(cls(move).backward)
        if any(bound.high <= 0 for bound in inner.neighbour_bounds):
            return None
        return rewritten.but(conditioned=plan)

    def backward(self, chunk: MatchBatch) -> MatchBatch:
        """Return matches with the ends of their ranges by the last event's own time."""
        return replace(chunk, upper=chunk.upper + self.move)
