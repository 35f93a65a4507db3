"""Bounds of P(at least k matches) that hold for certain, from exact numbers of parts of a group.

With N the number of matches of a group, and N_c those of its parts c:

- N >= N_c, and parts that share no variable are independent: the distribution of the sum of their numbers
  bounds P(N >= k) from below.
- Parts that together have all matches: min(N, k) <= sum of min(N_c, k). So P(N >= k) is at most the sum of
  E[min(N_c, k)] / k (Markov's inequality; for k = 1 the sum of P(N_c >= 1)).

Parts are halved until their numbers are exact: by time, as matches that are far from each other share less.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confidence.flat_lists import taken
from confidence.groups.partial_groups import parts_of_groups
from confidence.groups.problems import Groups
from confidence.groups.weighing_groups import weigh_groups

__all__ = ["certain_bounds"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Parts = list[tuple[Int64, Float64]]
"""Matches, and their P(n matches), n < k, and P(k or more)."""

_FEWEST_STEPS = 5_000
"""What a part may take at least: most single matches take a few hundred."""


def certain_bounds(groups: Groups, at_least: int, most_steps: int) -> tuple[float, float]:
    """Return a lower and an upper bound of P(at least k matches) of a group.

    Parameters
    ----------
    groups : Groups
        One group.
    at_least : int
        k, at least 1.
    most_steps : int
        How many steps to spend, about; more tell closer bounds.
    """
    parts, dear = _halved(groups, at_least, most_steps)
    numbers = np.arange(at_least + 1)
    upper = sum(float(numbers @ probability) for _, probability in parts) / at_least + dear / at_least
    parts += _likely(groups, at_least, most_steps)
    return min(_independent(groups, parts, at_least), 1.0), min(max(upper, 0.0), 1.0)


def _exact(groups: Groups, parts: list[Int64], at_least: int, most_steps: int) -> tuple[Parts, list[Int64]]:
    """Return the numbers of those parts that are not too dear, and the others."""
    sizes = [len(part) for part in parts]
    start = np.concatenate(([0], np.cumsum(sizes)))
    match = np.concatenate([np.sort(part) for part in parts])
    match = match[np.lexsort((groups.signature[match], np.repeat(np.arange(len(parts)), sizes)))]
    each = max(most_steps // len(parts), _FEWEST_STEPS)
    in_parts, _ = parts_of_groups(groups, match, start)
    weighed = weigh_groups(in_parts, at_least, each)
    closed = [
        (part, np.minimum(row, 1.0))
        for part, row, is_exact in zip(parts, weighed.probability, weighed.is_exact, strict=True)
        if is_exact
    ]
    return closed, [part for part, is_exact in zip(parts, weighed.is_exact, strict=True) if not is_exact]


def _halved(groups: Groups, at_least: int, most_steps: int) -> tuple[Parts, int]:
    """Return exact parts, and how many single matches there are beside them that are too dear."""
    closed: Parts = []
    dear = 0
    pending = [_by_time(groups)]
    while pending:
        dear += sum(len(part) == 1 for part in pending)
        halves = [half for part in pending if len(part) > 1 for half in np.array_split(part, 2)]
        if not halves:
            break
        more, pending = _exact(groups, halves, at_least, most_steps // 4)
        closed += more
    return closed, dear


def _by_time(groups: Groups) -> Int64:
    """Return the matches by the earliest of their times."""
    count = len(groups.signature)
    first = groups.literal_start[groups.term_start]
    sides = np.stack((groups.earlier, groups.later))
    lower = np.append(groups.lower, 0)
    times = np.where(sides > 0, lower[sides - 1], np.iinfo(np.int64).max).min(axis=0)
    earliest = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(earliest, np.repeat(np.arange(count), np.diff(first)), times)
    return np.argsort(earliest, kind="stable")


def _likely(groups: Groups, at_least: int, most_steps: int) -> Parts:
    """Return single matches, and the largest number of the likeliest of them that is exact."""
    count = len(groups.signature)
    singles, _ = _exact(groups, [np.array([match]) for match in range(count)], at_least, most_steps // 4)
    order = np.array([part[0] for part, _ in singles], dtype=np.int64)
    chance = np.array([1.0 - probability[0] for _, probability in singles])
    order = order[np.argsort(-chance, kind="stable")]
    size = len(order) // 2
    while size > 1:
        closed, _ = _exact(groups, [order[:size]], at_least, most_steps // 8)
        if closed:
            return singles + closed
        size //= 2
    return singles


def _independent(groups: Groups, parts: Parts, at_least: int) -> float:
    """Return P(at least k) of parts: the likeliest, and further ones that share nothing with those taken."""
    best = max((float(probability[-1]) for _, probability in parts), default=0.0)
    is_taken = np.zeros(len(groups.lower) + 1, dtype=np.bool_)
    is_counted = np.zeros(len(groups.signature), dtype=np.bool_)
    total = np.zeros(at_least + 1)
    total[0] = 1.0
    first = groups.literal_start[groups.term_start]
    parent = np.append(0, groups.parent)
    for match, probability in sorted(parts, key=lambda part: float(part[1][0] - part[1][-1])):
        literals, _ = taken(first, match)
        variables = np.concatenate((groups.earlier[literals], groups.later[literals]))
        variables = np.concatenate((variables, parent[variables]))
        variables, signature = variables[variables > 0], groups.signature[match]
        if not is_taken[variables].any() and not is_counted[signature].any():
            is_taken[variables] = is_counted[signature] = True
            sums = np.convolve(total, probability)
            total = np.append(sums[:at_least], sums[at_least:].sum())
    return max(best, float(total[-1]))
