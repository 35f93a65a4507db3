"""The input of every operator: the plan, the candidates, and how the matches are to be returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.existence import Existence
from uncertain_cep.candidates.own_times import SharedClocks
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.candidates.sequenced import SequencedEvents
from uncertain_cep.candidates.span_times import SpanTimes
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.counters import Counters
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.trees import Tree

__all__ = ["ExecutionContext", "InOrder", "Threshold", "TiedEvents"]

Int64 = NDArray[np.int64]


@dataclass(slots=True)
class Threshold:
    """The smallest confidence still wanted; it rises while matches are enumerated.

    Searches leave out only matches whose bounds stay below :func:`eventbased.thresholds.needed` of ``least``,
    which leaves room for all that HAVING and rankings take for equal to it.
    """

    least: float
    """Matches of a smaller confidence are not wanted."""
    ranks: Int64 | None = None
    """(n,) int64 or None. For each row of the table a number that is in order as the ids are."""
    last_rank: int | None = None
    """Matches whose first event has a larger rank are not wanted."""
    is_worth_bounds: bool = True
    """Whether bounds of confidences cost less than these. If not, only a join that the threshold narrows much
    minds it."""


@dataclass(frozen=True, slots=True)
class InOrder:
    """Events in a known order, by whose places matches are searched for, and the plan as it was asked."""

    events: SequencedEvents
    plan: EvaluationPlan


@dataclass(frozen=True, slots=True)
class TiedEvents:
    """Events whose sequences break ties: how their matches are weighed, however they are searched for."""

    events: SequencedEvents
    plan: EvaluationPlan
    """As it was asked."""

    def wide(self, ticks: tuple[Int64, Int64]) -> tuple[Int64, Int64]:
        """Return bounds of times, by which matches are searched for, with all places within their ticks.

        What lies in a gap by these does so whatever its place is: in all worlds.
        """
        places = int(self.events.tie.max()) + 1
        return ticks[0] // places * places, ticks[1] // places * places + places - 1

    @property
    def span(self) -> int:
        """WITHIN in ticks, but at most the length of the table."""
        lower, upper = self.events.times
        return min(self.plan.window, int(upper.max()) - int(lower.min()) + 1)


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """One evaluation of an OR-free plan on the candidates of one table."""

    plan: EvaluationPlan
    table: pa.Table
    """The events; of the columns that the plan reads."""
    candidates: Selection
    """Which of them each component can take."""
    ticks: tuple[Int64, Int64]
    """tuple of (n,) int64. Lower and upper bounds of all rows, without ticks of probability 0 at their
    ends."""
    pmfs: ExplicitPmfs | None
    """None if every interval is uniform."""
    payload: Int64 | None
    """(n,) int64 or None. What to return for each row of the table; None: the row itself."""
    with_confidence: bool
    """Whether confidences are asked for."""
    batch_rows: int
    """Most matches in a chunk."""
    threshold: Threshold | None = None
    """What matches need not be found."""
    counters: Counters | None = None
    """The numbers of partial matches are added here."""
    conditioned: EvaluationPlan | None = None
    """The plan whose conditions on times joined choices are weighed by; None if they are none, or all met."""
    clocks: SharedClocks | None = None
    """None if no two events share one."""
    existence: Existence | None = None
    """The probabilities that events happened; None if all did. Operators weigh what gaps forbid by it. That
    the events of a match happened is a factor of its confidence that is put in behind them."""
    order: InOrder | None = None
    """The known order that tells what lies in gaps where times do so besides."""
    ties: TiedEvents | None = None
    """Of sequences that break ties; ``pmfs`` and ``clocks`` are those of their times."""
    spans: SpanTimes | None = None
    """Of events that last."""
    tree: Tree | None = None
    """Along which single events are joined; None: by the pivot join."""
    decided: Callable[[MatchBatch], NDArray[np.bool_]] | None = None
    """Tells which of some matches, whose events are rows, stay at a known end; None: all. What adds matches
    up asks it itself; those of other operators are asked of behind them."""

    def among(self, candidates: Selection, threshold: Threshold | None = None) -> ExecutionContext:
        """Return the same evaluation on some of the candidates, with another threshold if one is given."""
        if candidates is self.candidates and threshold is None:
            return self
        return replace(self, candidates=candidates, threshold=threshold or self.threshold)

    @property
    def span(self) -> int:
        """WITHIN in ticks, but at most the length of the table.

        Beyond the whole table a window means nothing, and sums with it have to stay within int64.
        """
        lower, upper = self.ticks
        return min(self.plan.window, int(upper.max()) - int(lower.min()) + 1)
