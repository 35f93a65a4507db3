"""From the rows of matches to groups as kernels take them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.candidates.own_times import OffsetBounds
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.occurrence.explicit_matches import TableTicks, explicit_matches
from uncertain_cep.occurrence.groups_of_matches import NumberedGroups, by_group, in_buckets
from uncertain_cep.occurrence.literals import MatchLiterals, joined_literals, literals_of
from uncertain_cep.occurrence.row_matches import RowMatches
from uncertain_cep.occurrence.sequence_ties import SequenceTies
from uncertain_cep.occurrence.time_variables import TimeVariables
from uncertain_cep.plan import EvaluationPlan

__all__ = ["DescribedMatches", "described_literals", "in_groups", "numbered_groups"]

Int64 = NDArray[np.int64]


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
    """

    matches: RowMatches
    ticks: TableTicks
    times: TimeVariables
    ties: SequenceTies | None
    offsets: OffsetBounds | None

    @classmethod
    def of(
        cls,
        plan: EvaluationPlan,
        matches: RowMatches,
        ticks: TableTicks,
        offsets: OffsetBounds | None,
        pmfs: ExplicitPmfs | None,
    ) -> DescribedMatches:
        """Describe all matches of a plan of groups; of events that nothing can spoil only their own.

        ``offsets`` are of the clocks of all events, ``pmfs`` of their times, by their clocks where there are
        any.
        """
        if not any(part.forbids for part in plan.or_free):
            # Nothing depends on other events.
            matches, used = matches.among_own_rows()
            ticks = ticks.some(used)
            offsets = offsets and offsets.of_rows(used)
            pmfs = pmfs and replace(pmfs, offset=pmfs.offset[used])
        times = TimeVariables.of(plan, ticks.table, offsets, pmfs, ticks.lower, ticks.upper)
        return cls(matches, ticks, times, SequenceTies.of(plan, ticks.table, offsets), offsets)


def numbered_groups(
    described: DescribedMatches, of_match: Int64, is_chosen: NDArray[np.bool_], every: int | None
) -> NumberedGroups:
    """Return the groups of chosen matches.

    Parameters
    ----------
    described : DescribedMatches
        k matches.
    of_match : (k,) int64
        The group of each.
    is_chosen : (k,) bool
        All matches of a group, or none.
    every : int or None
        The length of buckets of the first time, ticks; None: there is one.
    """
    literals = described_literals(described, is_chosen)
    return in_groups(described, literals, of_match, every)


def described_literals(described: DescribedMatches, is_chosen: NDArray[np.bool_]) -> MatchLiterals:
    """Return chosen matches, a mask (k,) bool, as literals of variables."""
    parts = [
        literals_of(part.matches, part.templates, part.number, described.times, described.ties)
        for branch in described.matches.by_branch(is_chosen)
        for part in explicit_matches(branch, described.ticks)
    ]
    return joined_literals(parts)


def in_groups(
    described: DescribedMatches, literals: MatchLiterals, of_match: Int64, every: int | None
) -> NumberedGroups:
    """Return matches by group and by bucket; ``of_match`` has the group of each number of a match."""
    ticks, times = described.ticks, described.times
    bucket = np.zeros_like(literals.number)
    if every is not None:
        literals, bucket = in_buckets(literals, times, (ticks.lower, ticks.upper), every)
    return by_group(literals, of_match[literals.number], bucket, times)
