"""Answers of many groups once one of their variables is known, in bounded memory and between checkpoints."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, steps_per_call
from confidence.groups.counting import ROOM
from confidence.groups.known_variables import MEAN, SQUARE, SURE, resolved_groups
from confidence.groups.problems import Groups
from confidence.groups.weighing_groups import in_steps, workspace_of

__all__ = ["ResolvedVariables", "resolve_variables"]

Float64 = NDArray[np.float64]


class ResolvedVariables(NamedTuple):
    """The answer of each group once one of its variables is known.

    Attributes
    ----------
    probability : (v,) float64
        P(at least k matches) of the group of each variable.
    taken_off : (v,) float64
        How much knowing the variable takes off the Brier score P (1 - P): the variance of that probability,
        given the variable.
    made_certain : (v,) float64
        How likely the probability becomes 0 or 1, up to 1e-12.
    is_exact : (v,) bool
        Whether it took no more than the steps allowed; else the others have no meaning.
    """

    probability: Float64
    taken_off: Float64
    made_certain: Float64
    is_exact: NDArray[np.bool_]


def resolve_variables(groups: Groups, at_least: int, most_steps: int) -> ResolvedVariables:
    """Return the answers of some groups once each of their variables is known, one at a time.

    Parameters
    ----------
    groups : Groups
        v variables in all.
    at_least : int
        k, at least 1.
    most_steps : int
        A variable that takes more, each a literal or so that is looked at, is given up.

    Notes
    -----
    Exact up to rounding, by few ticks of each piece on which the probability is a polynomial; the cost does
    not depend on the length of intervals, but for the own time of an event by a clock with a law.
    """
    return in_steps(partial(_resolved, groups, at_least), most_steps)


def _resolved(groups: Groups, at_least: int, most_steps: int) -> ResolvedVariables:
    count = len(groups.lower)
    group = np.repeat(np.arange(len(groups.match_start) - 1), np.diff(groups.variable_start))
    resolved = np.zeros((count, 3))
    status, steps = np.zeros((2, count), dtype=np.int64)
    kernel: Any = resolved_groups
    begin, factor = 0, 1
    work = workspace_of(groups, at_least, factor)
    while begin < count:
        checkpoint()
        piece = np.zeros(len(work.arena.tick), dtype=np.int64)
        ends = np.zeros((2, len(work.scratch.start)), dtype=np.int64)
        rooms = piece, ends, group
        begin = kernel(groups, begin, most_steps, steps_per_call(), work, rooms, resolved, status, steps)
        if begin < count and status[begin] == ROOM:
            factor *= 2
            work = workspace_of(groups, at_least, factor)
    mean = resolved[:, MEAN]
    taken_off = np.maximum(resolved[:, SQUARE] - mean * mean, 0.0)
    return ResolvedVariables(mean, taken_off, resolved[:, SURE], status == 0)
