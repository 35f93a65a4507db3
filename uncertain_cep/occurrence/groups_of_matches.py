"""Matches by group, and by bucket of the first time, as the kernels that weigh groups take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.flat_lists import counting, starts_of
from confidence.groups import Groups, parts_of_groups
from uncertain_cep.occurrence.literals import MatchLiterals
from uncertain_cep.occurrence.time_variables import TimeVariables
from uncertain_cep.timeline.local_days import Buckets

__all__ = ["GroupedMatches", "NumberedGroups", "by_group", "in_buckets", "with_literals"]

Int64 = NDArray[np.int64]

_BYTES = 150
"""Bytes that a literal takes on the way, about."""


class GroupedMatches(NamedTuple):
    """Matches, and the group and the bucket of each.

    Attributes
    ----------
    literals : MatchLiterals
    code, bucket : (k,) int64
    """

    literals: MatchLiterals
    code: Int64
    bucket: Int64

    def some(self, which: Int64) -> GroupedMatches:
        """Return some matches, in this order."""
        return GroupedMatches(self.literals.some(which), self.code[which], self.bucket[which])


class NumberedGroups(NamedTuple):
    """Groups, and the numbers of their matches; all in ascending order.

    Attributes
    ----------
    code : (g,) int64
        Of each group.
    bucket : (g,) int64
        The first tick of its bucket.
    groups : Groups
    variable : (v,) int64
        Of each variable of these, which of :class:`TimeVariables` it is.
    """

    code: Int64
    bucket: Int64
    groups: Groups
    variable: Int64


def in_buckets(
    literals: MatchLiterals, times: TimeVariables, bounds: tuple[Int64, Int64], buckets: Buckets
) -> tuple[MatchLiterals, Int64]:
    """Return matches once for each bucket and each event that can be the first, and the first tick of each.

    The first time is in a bucket if an event that can be the first is, none of these is before the bucket,
    and none that stands before it in the pattern is within: so no two of these exclude each other, and what
    is returned of a match holds once at most.

    Parameters
    ----------
    literals : MatchLiterals
    times : TimeVariables
    bounds : tuple of (n,) int64
        Lower and upper bounds of the time of each row, ticks.
    buckets : Buckets
    """
    lower, upper = bounds
    start = literals.first_start
    # No first time is later than any of those events can be.
    begin = buckets.number(np.minimum.reduceat(lower[literals.first], start[:-1]))
    end = buckets.number(np.minimum.reduceat(upper[literals.first], start[:-1]))
    firsts = np.diff(start)
    copies = (end - begin + 1) * firsts
    match = np.repeat(np.arange(len(firsts)), copies)
    turn = counting(copies)
    number = begin[match] + turn // firsts[match]
    bucket, behind = buckets.start(number), buckets.start(number + 1)
    chosen = turn % firsts[match]
    copied = literals.some(match)
    each = np.repeat(np.arange(len(match)), firsts[match])
    place = counting(firsts[match])
    row, first, last = copied.first, bucket[each], behind[each] - 1
    distance = np.where(place < chosen[each], last + 1, first)
    is_first = place == chosen[each]
    more = [
        (each, np.full(len(row), -1), times.variable[row], distance - times.constant[row]),
        (
            each[is_first],
            times.variable[row[is_first]],
            np.full(int(is_first.sum()), -1),
            times.constant[row[is_first]] - last[is_first],
        ),
    ]
    return with_literals(copied, more), bucket


def with_literals(literals: MatchLiterals, more: list[tuple[Int64, Int64, Int64, Int64]]) -> MatchLiterals:
    """Return matches with further literals that must hold: the match of each, and its parts."""
    match, earlier, later, distance = (np.concatenate(column) for column in zip(*more, strict=True))
    sizes = np.diff(literals.literal_start)
    term = np.concatenate((np.repeat(np.arange(len(sizes)), sizes), literals.term_start[match]))
    order = np.argsort(term, kind="stable")
    return literals._replace(
        literal_start=starts_of(np.bincount(term, minlength=len(sizes))),
        earlier=np.concatenate((literals.earlier, earlier))[order],
        later=np.concatenate((literals.later, later))[order],
        distance=np.concatenate((literals.distance, distance))[order],
    )


def by_group(matches: GroupedMatches, times: TimeVariables) -> NumberedGroups:
    """Return matches by group and bucket; those of one number have one signature."""
    literals, code, bucket = matches
    checkpoint(_BYTES * len(literals.distance))
    order = np.lexsort((literals.number, bucket, code))
    code, bucket = code[order], bucket[order]
    is_new = np.ones(len(code), dtype=np.bool_)
    is_new[1:] = (code[1:] != code[:-1]) | (bucket[1:] != bucket[:-1])
    begins = np.flatnonzero(is_new)
    ends = np.array([0, len(times.lower)]), np.array([0, len(code)])
    all_in_one = Groups(
        ends[0], times.lower, times.upper, times.clock + 1, times.law, times.values, ends[1],
        literals.number, literals.term_start, literals.literal_start, literals.earlier + 1,
        literals.later + 1, literals.distance,
    )  # fmt: skip
    parts, variable = parts_of_groups(all_in_one, order, np.append(begins, len(code)))
    return NumberedGroups(code[begins], bucket[begins], parts, variable)
