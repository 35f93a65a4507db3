"""The rows of RETURN PROBABILITY: one for each group and bucket that may have enough matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.groups import certain_bounds, estimated, parts_of_groups, weigh_groups
from uncertain_cep.config.limits import MOST_CONFIDENCE_STEPS, MOST_GROUP_STEPS
from uncertain_cep.config.tuning import GROUPED_AT_ONCE
from uncertain_cep.errors import ConfidenceCostError, OptionError
from uncertain_cep.occurrence.conditioned_spans import (
    ConditionedGroups,
    ConditionedSpans,
    TooManyLengthsError,
    sums_of_numbers,
)
from uncertain_cep.occurrence.counted_events import choices, counted_groups
from uncertain_cep.occurrence.groups_of_matches import GroupedMatches, NumberedGroups, by_group
from uncertain_cep.occurrence.match_groups import MatchGroups
from uncertain_cep.occurrence.numbered_matches import (
    GroupableMatches,
    GroupFilter,
    in_groups,
)
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.syntax import CountedEvents
from uncertain_cep.running.threads import side_by_side

__all__ = ["GroupProbabilities", "group_probabilities"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_TASKS: Final = 4
"""Tasks of a thread, so that one with dear groups does not leave the others idle for long."""

_FEWEST_AT_ONCE: Final = 256
"""Matches of a task, at least: below, what a task takes by itself is more than its matches do."""

_CERTAIN: Final = 1e-12
"""Bounds as close to each other as this leave nothing to estimate."""


class GroupProbabilities(NamedTuple):
    """The probabilities of groups to have enough matches; those of 0 are left out.

    Attributes
    ----------
    group : (g,) int64
        Their numbers.
    bucket : (g,) int64
        First tick of the bucket; 0 without EVERY.
    probability : (g,) float64
        NaN where it is undecided.
    std_error : (g,) float64
        0 where it is exact; NaN where it is undecided.
    lower, upper : (g,) float64
        Bounds that are certain.
    """

    group: Int64
    bucket: Int64
    probability: Float64
    std_error: Float64
    lower: Float64
    upper: Float64

    @classmethod
    def exact(cls, group: Int64, bucket: Int64, probability: Float64) -> GroupProbabilities:
        """Return probabilities that are all known."""
        none = np.zeros_like(probability)
        return cls(group, bucket, probability, none, probability.copy(), probability.copy())

    @classmethod
    def joined(cls, parts: Sequence[GroupProbabilities]) -> GroupProbabilities:
        """Return the probabilities of several parts, of none as well."""
        none = np.zeros(0, dtype=np.int64)
        parts = [cls.exact(none, none, np.zeros(0)), *parts]
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def possible(self) -> GroupProbabilities:
        """Return the groups whose probability is not certainly 0."""
        is_possible = self.upper > 0.0
        return GroupProbabilities._make(column[is_possible] for column in self)


@dataclass(frozen=True, slots=True)
class _Weighing:
    """The matches of a query, by group, and what they depend on."""

    plan: EvaluationPlan
    matches: GroupableMatches
    groups: MatchGroups
    refusal: str
    """Why no group of several matches can be weighed; empty if any can."""
    group_filter: GroupFilter | None
    """With EVERY, the groups and buckets to weigh; None: all."""

    def parts(self, threads: int) -> list[Callable[[], Iterator[GroupProbabilities]]]:
        """Return tasks that together weigh all groups, a few for each thread."""
        if self.plan.counted_events is not None:
            return self._counted(self.plan.counted_events)
        at_least, sizes = self.plan.at_least, self.groups.sizes
        alone = np.zeros(len(sizes), dtype=np.bool_)
        tasks: list[Callable[[], Iterator[GroupProbabilities]]] = []
        confidence = self.matches.confidences
        if at_least == 1 and self.plan.bound.every is None and confidence is not None:
            # What one match depends on was summed over when it was found.
            alone = sizes == 1
            alone[self.groups.of_match[np.isnan(confidence)]] = False
            tasks.append(partial(self._single, alone, confidence))
        several = np.flatnonzero(~alone & (sizes >= at_least))
        ends = np.cumsum(sizes[several])
        at_once = min(GROUPED_AT_ONCE, max(int(sizes[several].sum()) // (_TASKS * threads), _FEWEST_AT_ONCE))
        begin = 0
        while begin < len(several):
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + at_once, side="right")))
            tasks.append(partial(self._weighed, several[begin:end]))
            begin = end
        return tasks

    def _single(self, alone: NDArray[np.bool_], confidence: Float64) -> Iterator[GroupProbabilities]:
        """Yield the groups of one match; ``confidence`` is that of each match."""
        match = np.flatnonzero(alone[self.groups.of_match])
        probability = np.minimum(confidence[match], 1.0)
        yield GroupProbabilities.exact(self.groups.of_match[match], np.zeros_like(match), probability)

    def _weighed(self, chosen: Int64) -> Iterator[GroupProbabilities]:
        """Yield possible groups."""
        if self.refusal:
            raise OptionError(self.refusal)
        is_chosen = np.zeros(len(self.groups.sizes), dtype=np.bool_)
        is_chosen[chosen] = True
        of_match, buckets = self.groups.of_match, self.plan.bound.buckets
        literals = self.matches.literals(is_chosen[of_match])
        yield self._weigh(in_groups(self.matches, literals, of_match, buckets, self.group_filter))

    def _counted(self, counted: CountedEvents) -> list[Callable[[], Iterator[GroupProbabilities]]]:
        """Return tasks that together weigh all groups of pairs, of which some make a match."""
        bounded = counted_groups(self.plan, counted, self.matches, self.groups)
        closed = np.flatnonzero(bounded.is_closed)
        answers = GroupProbabilities.exact(closed, np.zeros_like(closed), bounded.lower[closed])
        tasks: list[Callable[[], Iterator[GroupProbabilities]]] = [lambda: iter((answers.possible(),))]
        for group in np.flatnonzero(~bounded.is_closed).tolist():
            bounds = float(bounded.lower[group]), float(bounded.upper[group])
            tasks.append(partial(self._of_choices, group, bounds, counted))
        return tasks

    def _of_choices(
        self, group: int, bounds: tuple[float, float], counted: CountedEvents
    ) -> Iterator[GroupProbabilities]:
        """Yield the probability of a group, each choice of so many pairs of an anchor written out."""
        if self.refusal:
            raise OptionError(self.refusal)
        pairs = self.matches.literals(self.groups.of_match == group)
        written = choices(pairs, self.matches.first_rows(counted.anchor)[pairs.number], counted.least)
        if written is not None:
            if len(written.number):
                code = np.full(len(written.number), group)
                yield self._weigh(
                    in_groups(self.matches, written, code, self.plan.bound.buckets, self.group_filter)
                )
        elif self.plan.keeps_undecided and self.plan.bound.every is None:
            unknown = np.full(1, np.nan)
            yield GroupProbabilities(
                np.array([group]), np.zeros(1, dtype=np.int64), unknown, unknown, *np.array(bounds)[:, None]
            )
        else:
            raise self._too_dear(group, 0)

    def _weigh(self, matches: GroupedMatches) -> GroupProbabilities:
        """Return the probabilities of groups that are not 0 for certain."""
        if self.matches.spans is not None:
            return self._weigh_given(self.matches.spans, matches)
        numbered = by_group(matches, self.matches.times)
        weighed = weigh_groups(numbered.groups, self.plan.at_least, MOST_GROUP_STEPS)
        probability = np.minimum(weighed.probability[:, -1], 1.0)
        answers = GroupProbabilities.exact(numbered.code, numbered.bucket, probability)
        for number in np.flatnonzero(~weighed.is_exact).tolist():
            if not self.plan.bounds_groups:
                raise self._too_dear(int(numbered.code[number]), int(numbered.bucket[number]))
            if not self._is_bound(numbered, number, answers):
                raise self._too_dear(int(numbered.code[number]), int(numbered.bucket[number]))
        return answers.possible()

    def _weigh_given(self, spans: ConditionedSpans, matches: GroupedMatches) -> GroupProbabilities:
        """Return the probabilities of groups, given that the lengths of spans are within their bounds."""
        if not len(matches.code):
            return GroupProbabilities.joined([])
        at_least = self.plan.at_least
        parts = self._conditioned(spans, matches)
        weighed = weigh_groups(parts.numbered.groups, at_least, MOST_GROUP_STEPS)
        numbers = np.zeros((len(parts.group), at_least + 1))
        np.add.at(numbers, parts.part, weighed.probability * parts.factor[:, None])
        np.minimum(numbers, 1.0, out=numbers)
        numbers[:, 0] = np.maximum(1.0 - numbers[:, 1:].sum(axis=1), 0.0)
        probability = np.minimum(sums_of_numbers(numbers, parts.group, len(parts.code)), 1.0)
        answers = GroupProbabilities.exact(parts.code, parts.bucket, probability)
        for number in np.unique(parts.group[parts.part[~weighed.is_exact]]).tolist():
            code, bucket = int(parts.code[number]), int(parts.bucket[number])
            if not self.plan.bounds_groups:
                raise self._too_dear(code, bucket)
            which = np.flatnonzero((matches.code == code) & (matches.bucket == bucket))
            one = self._bounded(self._conditioned(spans, matches.some(which), whole=True))
            if one is None:
                raise self._too_dear(code, bucket)
            for column, value in zip(answers[2:], one, strict=True):
                column[number] = value
        return answers.possible()

    def _conditioned(
        self, spans: ConditionedSpans, matches: GroupedMatches, *, whole: bool = False
    ) -> ConditionedGroups:
        """Return the parts of groups; an error names a group that is too dear."""
        try:
            return ConditionedGroups.of(spans, matches, self.matches.times, whole=whole)
        except TooManyLengthsError as error:
            code, bucket = matches.code[error.match], matches.bucket[error.match]
            raise self._too_dear(int(code), int(bucket)) from None

    def _bounded(self, whole: ConditionedGroups) -> tuple[float, ...] | None:
        """Return probability, standard error and bounds of one group, the sums of those of its lengths.

        None if they are too dear.
        """
        count = len(whole.factor)
        nothing = np.zeros(count, dtype=np.int64)
        each = GroupProbabilities.exact(nothing, nothing, np.zeros(count))
        for choice, factor in enumerate(whole.factor.tolist()):
            if not self._is_bound(whole.numbered, choice, each, 1.0 / factor, count):
                return None
        sums = (float(column.sum()) for column in (each.probability, each.std_error**2, *each[4:]))
        probability, variance, lower, upper = sums
        return min(probability, 1.0), variance**0.5, min(lower, 1.0), min(upper, 1.0)

    def _is_bound(
        self,
        numbered: NumberedGroups,
        number: int,
        answers: GroupProbabilities,
        share: float = 1.0,
        count: int = 1,
    ) -> bool:
        """Fill in certain bounds of a group that takes too many steps, and an estimate if one is allowed.

        Return whether that is enough. All are divided by ``share``; of ``count`` estimates the sum has the
        standard error that is allowed.
        """
        checkpoint()
        groups, at_least, allowed = numbered.groups, self.plan.at_least, self.plan.approximate
        matches = np.arange(groups.match_start[number], groups.match_start[number + 1])
        group, _ = parts_of_groups(groups, matches, np.array([0, len(matches)]))
        lower, upper = certain_bounds(group, at_least, MOST_GROUP_STEPS // 4)
        lower, upper = min(lower / share, 1.0), min(upper / share, 1.0)
        answers.lower[number], answers.upper[number] = lower, upper
        answers.probability[number], answers.std_error[number] = upper, 0.0
        if upper - lower <= _CERTAIN:
            return True
        estimate = None
        if allowed is not None:
            std_error = allowed.std_error * share / count**0.5
            estimate = estimated(group, at_least, std_error, allowed.seed, MOST_CONFIDENCE_STEPS)
        if estimate is not None:
            answers.probability[number] = min(max(estimate.probability / share, lower), upper)
            answers.std_error[number] = min(estimate.std_error / share, upper - lower)
        elif self.plan.keeps_undecided:
            answers.probability[number] = answers.std_error[number] = np.nan
        else:
            return False
        return True

    def _too_dear(self, group: int, bucket: int) -> ConfidenceCostError:
        """Return the error of a group that takes too many steps."""
        count = int(self.groups.sizes[group])
        every = self.plan.bound.every is not None
        shown = self.groups.shown(group)
        if every:
            shown.append(f"the bucket that begins at {self.plan.domain.times(np.array([bucket]))[0].as_py()}")
        named = f"of {' and '.join(shown)} " if shown else ""
        smaller = "a shorter EVERY" if every else "EVERY"
        allowed = self.plan.approximate
        allow = "allow an estimate, approximate=0.01"
        if allowed is not None:
            allow = f"allow a standard error above {allowed.std_error}"
        return ConfidenceCostError(
            f"the probability {named}takes more than {MOST_GROUP_STEPS:.1e} steps: {count:,} possible "
            "matches share events or clocks. Ask for smaller groups, by more names in BY or by "
            f"{smaller}, or for fewer matches by WITHIN and WHERE; {allow}, or take certain bounds, "
            'undecided="bounds"',
            MOST_GROUP_STEPS + 1,
            MOST_GROUP_STEPS,
        )


def group_probabilities(
    plan: EvaluationPlan,
    matches: GroupableMatches,
    refusal: str,
    threads: int,
    group_filter: GroupFilter | None = None,
) -> tuple[MatchGroups, GroupProbabilities]:
    """Return the groups of some matches, and how likely each has enough of them.

    Parameters
    ----------
    plan : EvaluationPlan
        With RETURN PROBABILITY.
    matches : GroupableMatches
        All matches of ``plan.by_row``.
    refusal : str
        Why no group of several matches can be weighed; empty if any can.
    threads : int
    group_filter : callable or None
        With EVERY, the groups and buckets to weigh; None: all.

    Raises
    ------
    OptionError
        If a group needs what is refused.
    ConfidenceCostError
        If a group takes too many steps, and neither an estimate nor certain bounds will do.
    """
    groups = MatchGroups.of(plan, matches)
    checkpoint()
    tasks = _Weighing(plan, matches, groups, refusal, group_filter).parts(threads)
    return groups, GroupProbabilities.joined(list(side_by_side(threads, tasks)))
