"""Matches that others imply: where one of them is a match the other one is, so only the other is looked at.

``t_later' - t_earlier' >= (t_later - t_earlier) + (lower_later' - upper_later) + (lower_earlier -
upper_earlier')``, so a literal implies another one where that reaches it. A term implies another one if each
literal of the other is implied by one of its own. A match implies another one if its literals do, and each
box of the other implies a box of its own.
"""

from __future__ import annotations

from confidence.groups.literal_stack import literal_at, variable_of
from confidence.groups.problems import HIGH, LISTED, LOW, MOST_STEPS, STEPS
from confidence.kernel import kernel

__all__ = ["absorb"]


@kernel
def absorb(begin, variables, arena):
    """Take those matches off the list on top, from ``begin`` on, that imply others of it.

    Of two that imply each other the last one stays. O(n^2) pairs, until the budget of the group is spent;
    matches of one variable each are left alone.
    """
    if not _any_ties(begin, arena):
        return
    top, listed = arena.top, arena.listed
    kept = begin
    for place in range(begin, top[LISTED]):
        match = listed[place]
        needless = False
        for other in range(begin, top[LISTED] if top[STEPS] <= top[MOST_STEPS] else begin):
            if (other < kept or other > place) and _implies(match, listed[other], variables, arena):
                needless = True
                break
        if not needless:
            listed[kept] = match
            kept += 1
    top[LISTED] = kept


@kernel
def _any_ties(first, arena):
    """Return whether any of several matches of the list on top has literals of several variables."""
    if arena.top[LISTED] == first + 1:
        return False
    for place in range(first, arena.top[LISTED]):
        match = arena.listed[place]
        begin, end = arena.literal[arena.term[match]], arena.literal[arena.term[match + 1]]
        v = variable_of(begin, arena)
        for k in range(begin, end):
            x, y, _ = literal_at(k, arena)
            if max(x, y) != v or (x > 0 and y > 0):
                return True
    return False


@kernel
def _implies(match, other, variables, arena):
    """Return whether a match implies another one; what bounds alone tell is not looked for."""
    first, second = arena.term[match], arena.term[other]
    if not _term_implies(first, second, variables, arena):
        return False
    for box in range(second + 1, arena.term[other + 1]):
        is_implied = False
        for box_of_match in range(first + 1, arena.term[match + 1]):
            if _term_implies(box, box_of_match, variables, arena):
                is_implied = True
                break
        if not is_implied:
            return False
    return True


@kernel
def _term_implies(term, other, variables, arena):
    for k in range(arena.literal[other], arena.literal[other + 1]):
        x, y, needed = literal_at(k, arena)
        is_implied = False
        for j in range(arena.literal[term], arena.literal[term + 1]):
            arena.top[STEPS] += 1
            v, w, distance = literal_at(j, arena)
            behind = 0 if w == y else variables[LOW, y] - variables[HIGH, w]
            ahead = 0 if v == x else variables[LOW, v] - variables[HIGH, x]
            if distance + behind + ahead >= needed:
                is_implied = True
                break
        if not is_implied:
            return False
    return True
