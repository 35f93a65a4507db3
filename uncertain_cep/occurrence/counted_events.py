"""At least n events of a type next to one other event: RETURN PROBABILITY without a match for each choice.

The matches of the plan are pairs, of an event and the other one, the *anchor*. A group has a match if an
anchor has n of its pairs. Where anchors share nothing the number of events of each is Poisson-binomial; else
each choice of n pairs of an anchor is written out as a match, if there are few.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.counts.at_least import Laws, TooManyTermsError, probability_of_at_least
from confidence.flat_lists import starts_of, taken
from uncertain_cep.config.limits import MOST_CONFIDENCE_STEPS
from uncertain_cep.occurrence.literals import MatchLiterals
from uncertain_cep.occurrence.match_groups import MatchGroups
from uncertain_cep.occurrence.numbered_matches import GroupableMatches
from uncertain_cep.occurrence.time_variables import TimeVariables
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.syntax import CountedEvents

__all__ = ["CountedGroups", "choices", "counted_groups"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_MOST_CHOICES: Final = 2_000
"""Choices of n pairs that are written out for a group."""

_CERTAIN: Final = 1e-12
"""Bounds as close to each other as this are the probability."""


class CountedGroups(NamedTuple):
    """How likely each group has enough events next to one of its anchors, as far as anchors share nothing.

    Attributes
    ----------
    is_closed : (g,) bool
        Whether both bounds are the probability.
    lower, upper : (g,) float64
        Bounds that are certain.
    """

    is_closed: NDArray[np.bool_]
    lower: Float64
    upper: Float64


def counted_groups(
    plan: EvaluationPlan,
    counted: CountedEvents,
    matches: GroupableMatches,
    groups: MatchGroups,
) -> CountedGroups:
    """Return bounds of the probabilities of groups, and which are known without choices of events.

    Parameters
    ----------
    plan : EvaluationPlan
    counted : CountedEvents
    matches : GroupableMatches
        Pairs.
    groups : MatchGroups
        Of the pairs.
    """
    event, anchor = (matches.first_rows(name) for name in (counted.variable, counted.anchor))
    count = len(groups.sizes)
    bounded = CountedGroups(np.zeros(count, dtype=np.bool_), np.zeros(count), np.ones(count))
    if plan.bound.every is not None or plan.sequences or plan.lasting:
        return bounded
    times = matches.times
    laws = _laws(times)
    order = np.lexsort((event, anchor, groups.of_match))
    group, event, anchor = groups.of_match[order], event[order], anchor[order]
    begins = np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(group))
    for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        number = group[begin]
        pairs = event[begin:end], anchor[begin:end]
        for column, value in zip(bounded, _closed(counted, plan.window, laws, times, *pairs), strict=True):
            column[number] = value
    return bounded


def _laws(times: TimeVariables) -> Laws:
    """Return the laws of the own times of all events, and how likely each happened."""
    rows = np.arange(len(times.variable))
    variable = np.maximum(times.variable, 0)
    is_own = times.variable == rows
    happened = np.ones(len(rows))
    doubtful = times.happened >= 0
    happened[doubtful] = times.values[times.law[times.happened[doubtful]] + 1]
    happened[times.happened == -2] = 0.0
    lower = np.where(is_own, times.lower[variable], times.constant)
    upper = np.where(is_own, times.upper[variable], times.constant)
    return Laws(lower, upper, happened, np.where(is_own, times.law[variable], -1), times.values)


def _closed(
    counted: CountedEvents, window: int, laws: Laws, times: TimeVariables, event: Int64, anchor: Int64
) -> tuple[bool, float, float]:
    """Return whether the probability of a group of pairs is known, and bounds that are certain."""
    begins = np.append(np.flatnonzero(np.diff(anchor, prepend=-1)), len(anchor))
    variable = times.variable[np.concatenate((event, anchor))]
    clock = np.where(variable >= len(times.variable), variable, times.clock[np.maximum(variable, 0)])
    clock = np.where(variable >= 0, clock, -1)
    if (clock != clock[0]).any():
        return False, 0.0, 1.0
    chances = []
    for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        try:
            chance = probability_of_at_least(
                laws.some(anchor[begin : begin + 1]), laws.some(event[begin:end]), counted.least,
                window, counted.is_behind, MOST_CONFIDENCE_STEPS,
            )  # fmt: skip
        except TooManyTermsError:
            return False, 0.0, 1.0
        chances.append(min(chance, 1.0))
    lower, upper = max(chances), min(sum(chances), 1.0)
    if len(chances) == 1 or upper - lower <= _CERTAIN:
        return True, lower, lower
    if clock[0] < 0 and len(np.unique(event)) == len(event) and not np.isin(event, anchor).any():
        none = float(np.prod([1.0 - chance for chance in chances]))
        return True, 1.0 - none, 1.0 - none
    return False, lower, upper


def choices(pairs: MatchLiterals, anchor: Int64, size: int) -> MatchLiterals | None:
    """Return each choice of ``size`` pairs of one anchor as a match.

    None if there are too many. ``anchor``, (k,) int64, has the anchor of each pair; pairs forbid nothing.
    """
    order = np.argsort(anchor, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(anchor[order])) + 1)
    if sum(comb(len(part), size) for part in parts) > _MOST_CHOICES:
        return None
    chosen = [choice for part in parts for choice in combinations(part.tolist(), size)]
    if not chosen:
        return pairs.some(np.zeros(0, dtype=np.int64))
    pair = np.array(chosen, dtype=np.int64)
    sizes = np.diff(pairs.literal_start)
    literal, _ = taken(pairs.literal_start, pair.ravel())
    first, _ = taken(pairs.first_start, pair.ravel())
    count = len(pair)
    firsts = np.diff(pairs.first_start)[pair].sum(axis=1)
    return MatchLiterals(
        np.arange(count), np.arange(count + 1), starts_of(sizes[pair].sum(axis=1)), pairs.earlier[literal],
        pairs.later[literal], pairs.distance[literal], starts_of(firsts), pairs.first[first],
    )  # fmt: skip
