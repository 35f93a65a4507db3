"""Estimates of P(at least k matches) of a group whose exact sum takes too many steps, from drawn worlds.

Two estimators without bias. *Plain*: the share of the worlds with so many matches. *Held*: the recursion of
``counting``, with one drawn tick in place of all pieces wherever more than two matches are tied, so that each
world weighs a probability instead of 0 or 1 (Rao and Blackwell): dearer by the draw, and by far better for
what is rare. A few draws of the latter tell which of them has the smaller variance for the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, steps_per_call
from confidence.config import FEWEST_DRAWS
from confidence.groups.counting import COSTLY, ROOM, probabilities_of_worlds
from confidence.groups.problems import Groups
from confidence.groups.weighing_groups import workspace_of
from confidence.kernel import always_compiled

__all__ = ["Estimate", "estimated"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_AT_ONCE: Final = 1 << 22
"""Numbers, of variables or literals times worlds, that are held at once."""

_PILOT: Final = FEWEST_DRAWS // 4
"""Worlds that tell which estimator to take."""

_PLAIN_STEPS: Final = 0.15
"""What the look at a literal of a plain world takes, in steps of the recursion."""


class Estimate(NamedTuple):
    """An estimate and its standard error."""

    probability: float
    std_error: float


def estimated(groups: Groups, at_least: int, std_error: float, seed: int, most_steps: int) -> Estimate | None:
    """Return an estimate of P(at least k matches) of a group; None if it takes too many steps.

    Parameters
    ----------
    groups : Groups
        One group.
    at_least : int
        k, at least 1.
    std_error : float
        The standard error to reach, above 0.
    seed : int
        With the bounds of its times it decides what is drawn.
    most_steps : int

    Notes
    -----
    Where no two draws differ, the standard error is 3 / draws: with 95% probability, what was never seen is
    rarer (the rule of three).
    """
    key = crc32(np.concatenate((groups.lower, groups.upper)).tobytes())
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, key])))
    worlds = max(FEWEST_DRAWS, math.ceil(0.25 / std_error**2), math.ceil(3.0 / std_error))
    plain_cost = _PLAIN_STEPS * (len(groups.distance) + len(groups.lower))
    pilot, steps = _held(groups, at_least, _PILOT, random, most_steps // 8)
    if len(pilot) == _PILOT:
        mean, spread = float(pilot.mean()), float(pilot.var())
        cost = steps / _PILOT
        if (spread or mean * (1.0 - mean) / _PILOT) * cost < mean * (1.0 - mean) * plain_cost:
            # Fewer than the worst case asks for: each world weighs a probability.
            needed = max(FEWEST_DRAWS, math.ceil(min(2.0 * spread, 0.25) / std_error**2))
            if not spread:
                needed = max(needed, math.ceil(3.0 / std_error))
            if needed * cost <= most_steps:
                weights, _ = _held(groups, at_least, needed, random, 2 * most_steps)
                if len(weights) == needed:
                    return _summed(weights)
    if worlds * plain_cost > most_steps:
        return None
    return _summed(np.concatenate(list(_plain(groups, at_least, worlds, random))))


def _summed(weights: Float64) -> Estimate:
    """Return the mean of what worlds weigh, and its standard error."""
    mean, spread = float(weights.mean()), float(weights.std(ddof=1))
    if weights.max() - weights.min() <= 1e-12 * weights.max():
        return Estimate(mean, min(3.0 / len(weights), 1.0))
    return Estimate(mean, spread / math.sqrt(len(weights)))


def _plain(groups: Groups, at_least: int, worlds: int, random: np.random.Generator) -> Iterator[Float64]:
    """Yield, for some worlds after others, 1.0 where there are so many matches, and 0.0 elsewhere."""
    at_once = max(_AT_ONCE // (len(groups.distance) + len(groups.lower) + 1), 1)
    for begin in range(0, worlds, at_once):
        checkpoint()
        ticks = _drawn_ticks(groups, random.random((min(at_once, worlds - begin), len(groups.lower))).T)
        yield (_matches_of_worlds(groups, ticks) >= at_least).astype(np.float64)


def _drawn_ticks(groups: Groups, share: Float64) -> Int64:
    """Return the ticks of the constant and of all variables, (v + 1, w) int64, of shares of their laws."""
    size = groups.upper - groups.lower + 1
    ticks = np.zeros((len(size) + 1, share.shape[1]), dtype=np.int64)
    ticks[1:] = np.minimum((share * size[:, None]).astype(np.int64), size[:, None] - 1)
    for v in np.flatnonzero(groups.law >= 0).tolist():
        chances = np.cumsum(groups.values[groups.law[v] : groups.law[v] + size[v]])
        place = np.searchsorted(chances, share[v] * chances[-1], side="right")
        ticks[v + 1] = np.minimum(place, size[v] - 1)
    ticks[1:] += groups.lower[:, None]
    ticks[1:] += np.where(groups.parent[:, None] > 0, ticks[groups.parent], 0)
    return ticks


def _matches_of_worlds(groups: Groups, ticks: Int64) -> Int64:
    """Return how many signatures match in each of some worlds, (w,) int64."""
    holds = ticks[groups.later] - ticks[groups.earlier] >= groups.distance[:, None]
    terms = len(groups.literal_start) - 1
    term = np.ones((terms, ticks.shape[1]), dtype=np.bool_)
    filled = np.flatnonzero(np.diff(groups.literal_start))
    if len(filled):
        term[filled] = np.logical_and.reduceat(holds, groups.literal_start[filled], axis=0)
    is_box = np.ones(terms, dtype=np.bool_)
    is_box[groups.term_start[:-1]] = False
    match = np.logical_and.reduceat(term != is_box[:, None], groups.term_start[:-1], axis=0)
    by_signature = np.argsort(groups.signature, kind="stable")
    first = np.flatnonzero(np.diff(groups.signature[by_signature], prepend=-1))
    matches: Int64 = np.logical_or.reduceat(match[by_signature], first, axis=0).sum(axis=0)
    return matches


def _held(
    groups: Groups, at_least: int, worlds: int, random: np.random.Generator, most_steps: int
) -> tuple[Float64, int]:
    """Return P(at least k) given the ticks drawn, for each world until the steps are spent, and the steps."""
    kernel: Any = probabilities_of_worlds
    factor, steps = 1, 0
    work = workspace_of(groups, at_least, factor)
    weights: list[Float64] = []
    at_once = max(_AT_ONCE // (len(groups.lower) + 1), 1)
    left = worlds
    while left > 0:
        shares = random.random((min(at_once, left), len(groups.lower)))
        weight = np.zeros(len(shares))
        begin = 0
        while begin < len(shares):
            checkpoint()
            # A group that is estimated has cost too much already.
            with always_compiled():
                done, status, taken = kernel(
                    groups, shares, begin, most_steps - steps, steps_per_call(), work, weight
                )
            steps += taken
            if status == ROOM:
                factor *= 2
                work = workspace_of(groups, at_least, factor)
            elif status == COSTLY or steps > most_steps:
                weights.append(weight[:done])
                return np.concatenate(weights), steps
            begin = done
        weights.append(weight)
        left -= len(shares)
    return np.concatenate(weights), steps
