"""The rows of RETURN PROBABILITY: one for each group and bucket that may have enough matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.groups import weigh_groups
from uncertain_cep.config import GROUPED_AT_ONCE, MOST_GROUP_STEPS
from uncertain_cep.errors import ConfidenceCostError, OptionError
from uncertain_cep.occurrence.match_groups import MatchGroups
from uncertain_cep.occurrence.numbered_matches import DescribedMatches, numbered_groups
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.running.threads import side_by_side

__all__ = ["GroupProbabilities", "group_probabilities"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class GroupProbabilities(NamedTuple):
    """The probabilities of groups to have enough matches; those of 0 are left out.

    Attributes
    ----------
    group : (g,) int64
        Their numbers.
    bucket : (g,) int64
        First tick of the bucket; 0 without EVERY.
    probability : (g,) float64
    """

    group: Int64
    bucket: Int64
    probability: Float64


@dataclass(frozen=True, slots=True)
class _Weighing:
    """The matches of a query, by group, and what they depend on."""

    plan: EvaluationPlan
    described: DescribedMatches
    groups: MatchGroups
    refusal: str
    """Why no group of several matches can be weighed; empty if any can."""

    def parts(self) -> list[Callable[[], Iterator[GroupProbabilities]]]:
        """Return tasks that together weigh all groups."""
        at_least, sizes = self.plan.at_least, self.groups.sizes
        alone = np.zeros(len(sizes), dtype=np.bool_)
        tasks: list[Callable[[], Iterator[GroupProbabilities]]] = []
        if at_least == 1 and self.plan.bound.every is None and self.described.matches.confidence:
            # What one match depends on was summed over when it was found.
            alone = sizes == 1
            tasks.append(partial(self._single, alone))
        several = np.flatnonzero(~alone & (sizes >= at_least))
        ends = np.cumsum(sizes[several])
        begin = 0
        while begin < len(several):
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + GROUPED_AT_ONCE, side="right")))
            tasks.append(partial(self._weighed, several[begin:end]))
            begin = end
        return tasks

    def _single(self, alone: NDArray[np.bool_]) -> Iterator[GroupProbabilities]:
        """Yield the groups of one match."""
        match = np.flatnonzero(alone[self.groups.of_match])
        confidence = np.minimum(np.concatenate(self.described.matches.confidence)[match], 1.0)
        yield GroupProbabilities(self.groups.of_match[match], np.zeros_like(match), confidence)

    def _weighed(self, chosen: Int64) -> Iterator[GroupProbabilities]:
        """Yield possible groups."""
        if self.refusal:
            raise OptionError(self.refusal)
        is_chosen = np.zeros(len(self.groups.sizes), dtype=np.bool_)
        is_chosen[chosen] = True
        of_match, every = self.groups.of_match, self.plan.bound.every
        numbered = numbered_groups(self.described, of_match, is_chosen[of_match], every)
        weighed = weigh_groups(numbered.groups, self.plan.at_least, MOST_GROUP_STEPS)
        if not weighed.is_exact.all():
            dear = int(np.argmin(weighed.is_exact))
            raise self._too_dear(int(numbered.code[dear]), int(numbered.bucket[dear]))
        probability = np.minimum(weighed.probability[:, -1], 1.0)
        possible = probability > 0.0
        yield GroupProbabilities(numbered.code[possible], numbered.bucket[possible], probability[possible])

    def _too_dear(self, group: int, bucket: int) -> ConfidenceCostError:
        """Return the error of a group that takes too many steps."""
        count = int(self.groups.sizes[group])
        every = self.plan.bound.every is not None
        shown = self.groups.shown(group)
        if every:
            shown.append(f"the bucket that begins at {self.plan.domain.times(np.array([bucket]))[0].as_py()}")
        named = f"of {' and '.join(shown)} " if shown else ""
        smaller = "a shorter EVERY" if every else "EVERY"
        return ConfidenceCostError(
            f"the probability {named}takes more than {MOST_GROUP_STEPS:.1e} steps: {count:,} possible "
            "matches share events or clocks. Ask for smaller groups, by more names in BY or by "
            f"{smaller}, or for fewer matches by WITHIN and WHERE",
            MOST_GROUP_STEPS + 1,
            MOST_GROUP_STEPS,
        )


def group_probabilities(
    plan: EvaluationPlan,
    described: DescribedMatches,
    refusal: str,
    threads: int,
) -> tuple[MatchGroups, list[GroupProbabilities]]:
    """Return the groups of some matches, and how likely each has enough of them.

    Parameters
    ----------
    plan : EvaluationPlan
        With RETURN PROBABILITY.
    described : DescribedMatches
        All matches of ``plan.by_row``.
    refusal : str
        Why no group of several matches can be weighed; empty if any can.
    threads : int

    Raises
    ------
    OptionError
        If a group needs what is refused.
    ConfidenceCostError
        If a group takes too many steps.
    """
    groups = MatchGroups.of(plan, described.matches, described.ticks.table)
    checkpoint()
    tasks = _Weighing(plan, described, groups, refusal).parts()
    return groups, list(side_by_side(threads, tasks))
