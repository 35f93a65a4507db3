"""The problem that the steps of an evaluation work on: one OR-free plan on one table of events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.event_times import EventTimes
from uncertain_cep.candidates.existence import Existence
from uncertain_cep.candidates.own_times import SharedClocks
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.candidates.sequenced import SequencedEvents
from uncertain_cep.executor.table_scans import TableScan
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import InOrder, TiedEvents
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.undecided import UndecidedMatches

__all__ = ["Backward", "Problem"]

Mask = NDArray[np.bool_]
Backward = Callable[[MatchBatch], MatchBatch]
"""What a rewrite does to matches, whose events are rows, so that they are those of the problem before it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One OR-free plan on the events of one table, as far as the steps have come."""

    asked_plan: EvaluationPlan
    """The plan as it was asked."""
    plan: EvaluationPlan
    """The plan to search by."""
    scan: TableScan
    table: pa.Table
    """The columns that the plan needs."""
    times: EventTimes
    """The times to search by."""
    backward: tuple[Backward, ...] = ()
    """Of the rewrites so far, in their order: the last one is undone first."""
    reads_rows: bool = False
    """Whether one of them looks up events by rows of the table."""
    selection: Selection | None = None
    """The candidates of each component; None before any are chosen."""
    late_owned: Mask | None = None
    """(n,) bool or None. Events, one of which a match must begin with, where candidates do not tell it."""
    sequences: SequencedEvents | None = None
    """The order of events by which matches are searched for."""
    in_order: InOrder | None = None
    """The known order, where gaps are weighed by times as well."""
    ties: TiedEvents | None = None
    """Of sequences that break ties, where these are weighed as matches are found."""
    existence: Existence | None = None
    undecided: UndecidedMatches | None = None
    clocks: SharedClocks | None = None
    """Those that events share, by which matches are weighed."""
    conditioned: EvaluationPlan | None = None
    """The plan whose conditions on times joined choices are weighed by; None if all are met, or none are."""
    confident_search: bool = True
    """Whether the search itself knows confidences, as far as any are needed."""

    def but(self, backward: Backward | None = None, **changes: Any) -> Problem:
        """Return the problem with some fields changed, and with one more rewrite to be undone."""
        if backward is not None:
            changes["backward"] = (*self.backward, backward)
        return replace(self, **changes)

    @property
    def candidates(self) -> Selection:
        """The candidates, once there are any."""
        assert self.selection is not None
        return self.selection

    @property
    def is_weighed_behind(self) -> bool:
        """Whether undoing a rewrite weighs matches anew."""
        return self.sequences is not None and self.in_order is None and self.ties is None

    @property
    def by_rows(self) -> bool:
        """Whether the matches that are found name events by rows of the table, not by ids."""
        return self.plan.counts or self.reads_rows or self.late_owned is not None

    def owned(self, chunks: Iterator[MatchBatch]) -> Iterator[MatchBatch]:
        """Return the matches whose first component's event a slice owns."""
        is_owned = self.late_owned
        if is_owned is None:
            return chunks
        return (chunk.keep(is_owned[chunk.events[0]]) for chunk in chunks)

    def undone(self, chunks: Iterator[MatchBatch]) -> Iterator[MatchBatch]:
        """Return the matches of the problem as it was asked."""
        return reduce(lambda matches, back: map(back, matches), reversed(self.backward), chunks)
