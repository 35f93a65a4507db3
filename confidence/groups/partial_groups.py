"""Some matches of groups as groups of their own, with no other variables than they need."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.flat_lists import starts_of, taken
from confidence.groups.problems import Groups

__all__ = ["parts_of_groups"]

Int64 = NDArray[np.int64]


def parts_of_groups(groups: Groups, match: Int64, start: Int64) -> tuple[Groups, Int64]:
    """Return matches as groups, and which variable of all each of theirs is, (v,) int64.

    O(n log n) in the number of their literals.

    Parameters
    ----------
    groups : Groups
    match : (m,) int64
        Matches, those of one part side by side and by rising signature; one may be in several parts. The
        matches of a part are of one group.
    start : (g + 1,) int64
        Where the matches of each part begin; no part is empty.
    """
    term, term_start = taken(groups.term_start, match)
    literal, literal_start = taken(groups.literal_start, term)
    part = np.repeat(np.arange(len(start) - 1), np.diff(start))
    rises = np.ones(len(match), dtype=np.int64)
    rises[1:] = groups.signature[match[1:]] != groups.signature[match[:-1]]
    rises[start[:-1]] = 0
    running = np.cumsum(rises)
    of_match = np.repeat(np.repeat(np.arange(len(match)), np.diff(term_start)), np.diff(literal_start))
    before = groups.variable_start[np.searchsorted(groups.match_start, match, side="right") - 1] - 1
    sides = np.stack((groups.earlier[literal], groups.later[literal]))
    sides = np.where(sides > 0, sides + before[of_match], -1)
    used = _variables(groups, len(start) - 1, part[of_match], sides)
    parts = Groups(
        used.start,
        groups.lower[used.variable],
        groups.upper[used.variable],
        used.clock,
        groups.law[used.variable],
        groups.values,
        start,
        running - running[start[:-1]][part],
        term_start,
        literal_start,
        used.sides[0],
        used.sides[1],
        groups.distance[literal],
    )
    return parts, used.variable


class _Variables(NamedTuple):
    """The variables of parts, and literals by their numbers in these, from 1.

    Attributes
    ----------
    start : (g + 1,) int64
    variable, clock : (v,) int64
        Which variable of all each is, and the number of its clock in the part, or 0.
    sides : (2, l) int64
    """

    start: Int64
    variable: Int64
    clock: Int64
    sides: Int64


def _variables(groups: Groups, parts: int, part: Int64, sides: Int64) -> _Variables:
    """Return the variables of some parts.

    Parameters
    ----------
    groups : Groups
    parts : int
        How many there are.
    part : (l,) int64
        That of each literal.
    sides : (2, l) int64
        Its variables among those of all groups; -1: the constant.
    """
    size = max(len(groups.lower), 1)
    group_start = np.repeat(groups.variable_start[:-1], np.diff(groups.variable_start))
    clock_of = np.where(groups.parent > 0, group_start + groups.parent - 1, -1)
    keys = part * size + sides
    distinct = np.unique(keys[sides >= 0])
    clock = clock_of[distinct % size]
    distinct = np.union1d(distinct, (distinct - distinct % size + clock)[clock >= 0])
    variable, of_part = distinct % size, distinct // size
    start = starts_of(np.bincount(of_part, minlength=parts))

    def numbered(keys: Int64) -> Int64:
        return np.searchsorted(distinct, keys) - start[keys // size] + 1

    clock = clock_of[variable]
    has_clock = clock >= 0
    clock[has_clock] = numbered(of_part[has_clock] * size + clock[has_clock])
    clock[~has_clock] = 0
    sides = sides.copy()
    sides[sides >= 0] = numbered(keys[sides >= 0])
    return _Variables(start, variable, clock, np.maximum(sides, 0))
