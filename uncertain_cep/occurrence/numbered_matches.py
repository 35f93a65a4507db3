"""From the rows of matches to groups as kernels take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.own_times import OffsetBounds
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.candidates.sequenced import SequencedEvents, sequenced
from uncertain_cep.occurrence.conditioned_spans import ConditionedSpans, times_with_ends
from uncertain_cep.occurrence.explicit_matches import TableTicks, explicit_matches
from uncertain_cep.occurrence.groups_of_matches import (
    GroupedMatches,
    NumberedGroups,
    by_group,
    in_buckets,
)
from uncertain_cep.occurrence.literals import MatchLiterals, joined_literals, literals_of
from uncertain_cep.occurrence.row_matches import RowMatches
from uncertain_cep.occurrence.sequence_ties import SequenceTies
from uncertain_cep.occurrence.time_variables import TimeVariables
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.timeline.local_days import Buckets

__all__ = ["DescribedMatches", "GroupFilter", "GroupableMatches", "in_groups", "numbered_groups"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

GroupFilter = Callable[[Int64, Int64], Mask]
"""Of the numbers of groups and the first ticks of buckets, each (k,) int64, which of them are weighed."""


class GroupableMatches(Protocol):
    """Matches from which groups are made, as long as all of a group are among them."""

    @property
    def table(self) -> pa.Table:
        """The events that rows are of; the attributes of keys are among its columns."""

    @property
    def times(self) -> TimeVariables:
        """The variables that their times depend on."""

    @property
    def bounds(self) -> tuple[Int64, Int64]:
        """Lower and upper bounds of the times of rows, (n,) int64, ticks."""

    @property
    def spans(self) -> ConditionedSpans | None:
        """The events that last whose begin and end are two times with a bound of their difference."""

    @property
    def count(self) -> int:
        """How many matches there are."""

    @property
    def confidences(self) -> Float64 | None:
        """Confidences of the matches, (k,) float64, NaN where one is an estimate; None if there are none."""

    def first_rows(self, variable: str | None) -> Int64:
        """Return the row of a variable of each match, see :meth:`RowMatches.first_rows`."""

    def literals(self, is_chosen: Mask) -> MatchLiterals:
        """Return chosen matches, a mask (k,) bool, as literals of variables."""


@dataclass(frozen=True, slots=True)
class DescribedMatches:
    """Matches, and all that their times depend on.

    Attributes
    ----------
    matches : RowMatches
    ticks : TableTicks
        The events that their rows are of.
    times : TimeVariables
    ties : SequenceTies or None
        Which of two events at one tick is before the other; None: neither.
    offsets : OffsetBounds or None
        Of the clocks of these events.
    order : SequencedEvents or None
        The order by sequences of events that can spoil matches; None: there is none, or nothing can.
    spans : ConditionedSpans or None
        The events that last whose begin and end are two times with a bound of their difference.
    """

    matches: RowMatches
    ticks: TableTicks
    times: TimeVariables
    ties: SequenceTies | None
    offsets: OffsetBounds | None
    order: SequencedEvents | None
    spans: ConditionedSpans | None = None

    @classmethod
    def of(
        cls,
        plan: EvaluationPlan,
        matches: RowMatches,
        ticks: TableTicks,
        offsets: OffsetBounds | None,
        pmfs: ExplicitPmfs | None,
        *,
        every_clock: bool = False,
    ) -> DescribedMatches:
        """Describe all matches of a plan of groups; of events that nothing can spoil only their own.

        ``offsets`` are of the clocks of all events, ``pmfs`` of their times, by their clocks where there are
        any. ``every_clock`` is for matches that meet those of other tables.
        """
        order = None
        if any(part.forbids for part in plan.or_free):
            order = sequenced(plan.or_free[0], ticks.table, pmfs, ticks.lower, ticks.upper)
        else:
            # Nothing depends on other events.
            matches, used = matches.among_own_rows()
            ticks, used = ticks.some(used), ticks.with_ends(used)
            offsets = offsets and offsets.of_rows(used)
            pmfs = pmfs and replace(pmfs, offset=pmfs.offset[used])
        times = TimeVariables.of(
            plan, ticks.table, offsets, pmfs, ticks.lower, ticks.upper, every_clock=every_clock
        )
        conditioned = None
        if ticks.spans is not None:
            times = times_with_ends(times, ticks.spans)
            conditioned = ConditionedSpans.of(times, ticks.spans)
        ties = SequenceTies.of(plan, ticks.table, offsets)
        return cls(matches, ticks, times, ties, offsets, order, conditioned)

    @property
    def table(self) -> pa.Table:
        """The events."""
        return self.ticks.table

    @property
    def bounds(self) -> tuple[Int64, Int64]:
        """Lower and upper bounds of the times of rows, (n,) int64, ticks."""
        return self.ticks.lower, self.ticks.upper

    @property
    def count(self) -> int:
        """How many matches there are."""
        return self.matches.count

    @property
    def confidences(self) -> Float64 | None:
        """Confidences of the matches, (k,) float64, NaN where one is an estimate; None if there are none."""
        return np.concatenate(self.matches.confidence) if self.matches.confidence else None

    def first_rows(self, variable: str | None) -> Int64:
        """Return the row of a variable of each match, see :meth:`RowMatches.first_rows`."""
        return self.matches.first_rows(variable)

    def literals(self, is_chosen: Mask) -> MatchLiterals:
        """Return chosen matches, a mask (k,) bool, as literals of variables."""
        parts = [
            literals_of(part, self.times, self.ties, sides)
            for branch in self.matches.by_branch(is_chosen)
            for part in explicit_matches(branch, self.ticks, self.order)
            for sides in part.pattern.sides()
        ]
        return joined_literals(parts)


def numbered_groups(
    matches: GroupableMatches,
    of_match: Int64,
    is_chosen: Mask,
    buckets: Buckets | None,
    group_filter: GroupFilter | None = None,
) -> NumberedGroups:
    """Return the groups of chosen matches.

    Parameters
    ----------
    matches : GroupableMatches
        k matches.
    of_match : (k,) int64
        The group of each.
    is_chosen : (k,) bool
        All matches of a group, or none.
    buckets : Buckets or None
        Those of the first time; None: there is one.
    group_filter : callable or None
        With ``buckets``, which groups and buckets to return; None: all.
    """
    grouped = in_groups(matches, matches.literals(is_chosen), of_match, buckets, group_filter)
    return by_group(grouped, matches.times)


def in_groups(
    matches: GroupableMatches,
    literals: MatchLiterals,
    of_match: Int64,
    buckets: Buckets | None,
    group_filter: GroupFilter | None = None,
) -> GroupedMatches:
    """Return matches with their groups and buckets; ``of_match`` has the group of each number of a match."""
    bucket = np.zeros_like(literals.number)
    if buckets is not None:
        literals, bucket = in_buckets(literals, matches.times, matches.bounds, buckets)
        if group_filter is not None:
            chosen = np.flatnonzero(group_filter(of_match[literals.number], bucket))
            literals, bucket = literals.some(chosen), bucket[chosen]
    return GroupedMatches(literals, of_match[literals.number], bucket)
