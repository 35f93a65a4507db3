"""P(at least k matches) of many groups, in bounded memory and between checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, steps_per_call
from confidence.groups.counting import ROOM, probabilities_of_groups
from confidence.groups.problems import Groups, Sizes, Workspace, workspace_for
from confidence.kernel import always_compiled, runs_plain

__all__ = ["WeighedGroups", "in_steps", "weigh_groups", "workspace_of"]


class _Exact(Protocol):
    """Probabilities of which some may have taken too many steps."""

    @property
    def is_exact(self) -> NDArray[np.bool_]: ...


ResultT = TypeVar("ResultT", bound=_Exact)


class WeighedGroups(NamedTuple):
    """The probabilities of some groups.

    Attributes
    ----------
    probability : (g, k + 1) float64
        P(n matches) for n < k, and P(k or more); of no meaning where the group is too dear.
    is_exact : (g,) bool
        Whether it took no more than the steps allowed.
    steps : (g,) int64
        How many it took.
    """

    probability: NDArray[np.float64]
    is_exact: NDArray[np.bool_]
    steps: NDArray[np.int64]


def weigh_groups(groups: Groups, at_least: int, most_steps: int) -> WeighedGroups:
    """Return how likely each group has each number of matches below ``at_least``, and as many or more.

    Parameters
    ----------
    groups : Groups
    at_least : int
        k, at least 1.
    most_steps : int
        A group that takes more, each a literal or so that is looked at, is given up.

    Notes
    -----
    Exact up to rounding: all terms are positive. The cost does not depend on the length of intervals, and can
    be exponential in the number of matches of a group that share variables. Memory is that of the largest
    group, times the depth of what is held of it.
    """
    return in_steps(partial(_weighed, groups, at_least), most_steps)


def in_steps(evaluated: Callable[[int], ResultT], most_steps: int) -> ResultT:
    """Evaluate within so many steps, in compiled code unless few steps do.

    As plain Python a group that is too dear would take a minute before it is given up.
    """
    if runs_plain():
        few_steps = min(most_steps, steps_per_call())
        result = evaluated(few_steps)
        if few_steps == most_steps or result.is_exact.all():
            return result
    with always_compiled():
        return evaluated(most_steps)


def _weighed(groups: Groups, at_least: int, most_steps: int) -> WeighedGroups:
    count = len(groups.match_start) - 1
    probability = np.zeros((count, at_least + 1))
    status, steps = np.zeros((2, count), dtype=np.int64)
    kernel: Any = probabilities_of_groups
    begin, factor = 0, 1
    work = workspace_of(groups, at_least, factor)
    while begin < count:
        checkpoint()
        begin = kernel(groups, begin, most_steps, steps_per_call(), work, probability, status, steps)
        if begin < count and status[begin] == ROOM:
            factor *= 2
            work = workspace_of(groups, at_least, factor)
    return WeighedGroups(probability, status == 0, steps)


def workspace_of(groups: Groups, at_least: int, factor: int) -> Workspace:
    """Return room for any of some groups, and so many times as much for what becomes of them."""
    terms = groups.term_start[groups.match_start]
    starts = groups.variable_start, groups.match_start, terms, groups.literal_start[terms]
    sizes = Sizes(*(int(np.diff(start).max(initial=0)) for start in starts))
    checkpoint(64 * factor * (10 * sizes.matches + 2 * sizes.terms + 3 * sizes.literals))
    return workspace_for(sizes, factor, at_least, groups.values)
