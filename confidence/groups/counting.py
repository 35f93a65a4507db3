"""P(at least k of a group's matches), group by group: a recursion, as a stack of frames.

Three kinds of frames add up what those above them find. *Held*: a variable at one tick after the other, the
sum of what is found, each times how often the tick counts. *Alternatives*: parts of a list of matches, whose
numbers of matches add up. *Factors*: parts of one match, which is one if all of them hold.
"""

from __future__ import annotations

from typing import Final

from confidence.budget import plain_checkpoint
from confidence.groups.absorbing import absorb
from confidence.groups.holding import TOO_DEAR, drawn_tick, held_ticks, tying_most
from confidence.groups.independent_parts import fold, split
from confidence.groups.problems import (
    CHILD,
    CLOCK,
    EARLIER,
    FRAMES,
    HIGH,
    LATER,
    LAW,
    LEAST,
    LISTED,
    LITERALS,
    LOW,
    MARK,
    MATCHES,
    MOST_STEPS,
    MOST_TIED,
    NEAR_HIGH,
    NEAR_LOW,
    NODES,
    OWN_HIGH,
    OWN_LOW,
    PARTS,
    SIBLING,
    STAMP,
    STEPS,
    TERMS,
)
from confidence.groups.simplifying import NO_ROOM, simplified
from confidence.kernel import kernel

__all__ = [
    "COSTLY",
    "READY",
    "ROOM",
    "bound",
    "counted",
    "load_group",
    "probabilities_of_groups",
    "probabilities_of_worlds",
    "set_bounds",
]

READY: Final = 0
COSTLY: Final = 1
ROOM: Final = 2
"""States of a group: it is counted, takes too many steps, or needs more room."""

_DEEPER: Final = 3
"""A frame was pushed, whose result is to come."""

_MOST_EXACT: Final = 2
"""Most matches that a variable ties which is held at all pieces although others are drawn."""

_HELD: Final = 0
_ALTERNATIVES: Final = 1
_FACTORS: Final = 2

_KIND: Final = 0
_NEXT: Final = 1
_END: Final = 2
_VARIABLE: Final = 3
_LOW: Final = 4
_HIGH: Final = 5
_FIRST: Final = 6
_LAST: Final = 7
_TOPS: Final = 8
"""Columns of a frame: its kind, the next of its ticks or parts and where they end; the variable held, its
bounds, and the list of matches; how much of the six stacks is taken by what is below."""


@kernel
def probabilities_of_groups(groups, begin, most_steps, budget, work, probability, status, steps):
    """Fill P(n matches), n < k, and P(k or more) of some groups; return the first group that is not done.

    Parameters
    ----------
    groups : Groups
    begin : int64
        The first group.
    most_steps : int64
        How many steps a group may take.
    budget : int64
        How many steps to take before coming back.
    work : Workspace
    probability : (g, k + 1) float64
        Written to.
    status : (g,) int64
        Written to: READY, COSTLY, or ROOM if the workspace has too little for the group; then the others
        behind it are not looked at.
    steps : (g,) int64
        Written to: how many steps each took.
    """
    spent = 0
    count = probability.shape[0]
    for group in range(begin, count):
        if spent > budget:
            return group
        plain_checkpoint()
        if not load_group(groups, group, most_steps, work):
            status[group] = ROOM
            return group
        status[group] = counted(0, work.arena.top[LISTED], work.variables, work.arena, work.scratch)
        steps[group] = work.arena.top[STEPS]
        spent += work.arena.top[STEPS]
        if status[group] == ROOM:
            return group
        for n in range(probability.shape[1]):
            probability[group, n] = work.scratch.result[n]
    return count


@kernel
def probabilities_of_worlds(groups, shares, begin, most_steps, budget, work, weight):
    """Fill P(k or more) of one group given some ticks, for each of some worlds.

    A variable that ties more than two matches is held at the tick that is drawn for it, others at all pieces.

    Parameters
    ----------
    groups : Groups
    shares : (w, v) float64
        In [0, 1). The share of the law of each variable that is below its tick, in each world.
    begin : int64
        The first world.
    most_steps, budget : int64
        How many steps to take at most, and before coming back.
    work : Workspace
    weight : (w,) float64
        Written to.

    Returns
    -------
    world : int64
        The first one that is not done.
    status : int64
        READY, COSTLY or ROOM.
    steps : int64
        How many were taken.
    """
    spent = 0
    for world in range(begin, shares.shape[0]):
        if spent > budget:
            return world, READY, spent
        plain_checkpoint()
        if not load_group(groups, 0, most_steps - spent, work):
            return world, ROOM, spent
        work.arena.top[MOST_TIED] = _MOST_EXACT
        for v in range(shares.shape[1]):
            work.scratch.share[v + 1] = shares[world, v]
        status = counted(0, work.arena.top[LISTED], work.variables, work.arena, work.scratch)
        spent += work.arena.top[STEPS]
        if status != READY:
            return world, status, spent
        weight[world] = min(work.scratch.result[work.scratch.result.shape[0] - 1], 1.0)
    return shares.shape[0], READY, spent


@kernel
def load_group(groups, group, most_steps, work):
    """Write a group to the bottom of the stacks; return whether there is room."""
    variables, arena, top = work.variables, work.arena, work.arena.top
    begin, end = groups.variable_start[group], groups.variable_start[group + 1]
    first, last = groups.match_start[group], groups.match_start[group + 1]
    first_term, last_term = groups.term_start[first], groups.term_start[last]
    first_literal, last_literal = groups.literal_start[first_term], groups.literal_start[last_term]
    if (
        end - begin >= variables.shape[1]
        or last - first >= min(arena.signature.shape[0], arena.listed.shape[0])
        or last - first > work.scratch.stamp.shape[0]
        or last_term - first_term + 1 >= arena.literal.shape[0]
        or last_literal - first_literal >= arena.literals.shape[1]
        or 2 * (last_literal - first_literal) + 4 * (end - begin) > work.scratch.edges.shape[0]
    ):
        return False
    for v in range(end - begin + 1):
        variables[CHILD, v] = variables[SIBLING, v] = 0
        work.scratch.by_variable[MARK, v] = 0
    for v in range(1, end - begin + 1):
        at = begin + v - 1
        variables[OWN_LOW, v], variables[OWN_HIGH, v] = groups.lower[at], groups.upper[at]
        variables[LOW, v], variables[HIGH, v] = groups.lower[at], groups.upper[at]
        variables[LAW, v] = groups.law[at]
        clock = groups.parent[at]
        variables[CLOCK, v] = clock
        if clock:
            variables[LOW, v] += groups.lower[begin + clock - 1]
            variables[HIGH, v] += groups.upper[begin + clock - 1]
            variables[SIBLING, v] = variables[CHILD, clock]
            variables[CHILD, clock] = v
        variables[NEAR_LOW, v], variables[NEAR_HIGH, v] = variables[LOW, v], variables[HIGH, v]
    for match in range(first, last):
        arena.term[match - first] = groups.term_start[match] - first_term
        arena.signature[match - first] = groups.signature[match]
        arena.listed[match - first] = match - first
        work.scratch.stamp[match - first] = 0
    arena.term[last - first] = last_term - first_term
    for term in range(first_term, last_term + 1):
        arena.literal[term - first_term] = groups.literal_start[term] - first_literal
    for k in range(first_literal, last_literal):
        place = k - first_literal
        arena.literals[EARLIER, place], arena.literals[LATER, place] = groups.earlier[k], groups.later[k]
        arena.literals[LEAST, place] = groups.distance[k]
    top[MATCHES], top[TERMS], top[LITERALS] = (
        last - first,
        last_term - first_term,
        last_literal - first_literal,
    )
    top[LISTED], top[NODES], top[PARTS], top[FRAMES] = last - first, 0, 0, 0
    top[STEPS], top[STAMP], top[MOST_STEPS], top[MOST_TIED] = 0, 0, most_steps, last - first
    return True


@kernel
def counted(begin, end, variables, arena, scratch):
    """Fill ``scratch.result`` for listed matches of the group that is loaded; return a status."""
    top = arena.top
    status = _enter(begin, end, variables, arena, scratch)
    while top[FRAMES] and status in (READY, _DEEPER):
        if top[STEPS] > top[MOST_STEPS]:
            return COSTLY
        plain_checkpoint()
        level = top[FRAMES] - 1
        frame = arena.frame[level]
        if status == READY:
            _take(level, arena, scratch)
        if frame[_NEXT] == frame[_END]:
            _leave(level, variables, arena, scratch)
            status = READY
        elif frame[_KIND] == _HELD:
            tick = arena.tick[frame[_NEXT]]
            bound(frame[_VARIABLE], tick, tick, variables)
            status = _enter(frame[_FIRST], frame[_LAST], variables, arena, scratch)
        elif frame[_KIND] == _ALTERNATIVES:
            status = _open_part(frame[_NEXT], variables, arena, scratch)
        else:
            status = _push_held(frame[_NEXT], frame[_NEXT] + 1, variables, arena, scratch)
    return status


@kernel
def _enter(begin, end, variables, arena, scratch):
    """Count the matches of a list, or push a frame that does; return READY, _DEEPER, COSTLY or ROOM."""
    top, result = arena.top, scratch.result
    last = result.shape[0] - 1
    level = top[FRAMES]
    if level >= arena.frame.shape[0]:
        return ROOM
    frame, total = arena.frame[level], arena.total[level]
    _note_tops(frame, top)
    first = top[LISTED]
    certain = simplified(begin, end, variables, arena, scratch)
    if certain == NO_ROOM:
        return ROOM
    for n in range(last + 1):
        total[n] = 0.0
    total[min(certain, last)] = 1.0
    if certain < last and top[LISTED] > first:
        if last == 1 and top[LISTED] - first <= top[MOST_TIED]:
            absorb(first, variables, arena)
        parts = split(first, variables, arena, scratch, total)
        if parts == NO_ROOM:
            return ROOM
        if parts and total[last] < 1.0:
            frame[_KIND], frame[_NEXT], frame[_END] = _ALTERNATIVES, top[PARTS] - parts, top[PARTS]
            top[FRAMES] = level + 1
            return _DEEPER
    for n in range(last + 1):
        result[n] = total[n]
    _restore_tops(frame, top)
    return READY


@kernel
def _note_tops(frame, top):
    for stack in range(PARTS + 1):
        frame[_TOPS + stack] = top[stack]


@kernel
def _restore_tops(frame, top):
    for stack in range(PARTS + 1):
        top[stack] = frame[_TOPS + stack]


@kernel
def _open_part(part, variables, arena, scratch):
    """Push the frame of a part of a list of matches; return what :func:`_enter` does."""
    begin, end = arena.part[part, 0], arena.part[part, 1]
    if begin >= 0:
        return _push_held(begin, end, variables, arena, scratch)
    level = arena.top[FRAMES]
    if level >= arena.frame.shape[0]:
        return ROOM
    frame, total = arena.frame[level], arena.total[level]
    _note_tops(frame, arena.top)
    frame[_KIND], frame[_NEXT], frame[_END] = _FACTORS, -begin - 1, end
    for n in range(total.shape[0]):
        total[n] = 0.0
    total[0], total[1] = arena.chance[part, 0], arena.chance[part, 1]
    arena.top[FRAMES] = level + 1
    return _DEEPER


@kernel
def _push_held(begin, end, variables, arena, scratch):
    """Push the frame that holds a variable of listed matches; return what :func:`_enter` does."""
    level = arena.top[FRAMES]
    if level >= arena.frame.shape[0]:
        return ROOM
    frame, total = arena.frame[level], arena.total[level]
    _note_tops(frame, arena.top)
    v = tying_most(begin, end, variables, arena, scratch)
    if v < 0:
        return COSTLY
    if end - begin > arena.top[MOST_TIED]:
        nodes = drawn_tick(v, variables, arena, scratch)
    else:
        nodes = held_ticks(v, variables, arena, scratch)
    if nodes < 0:
        return COSTLY if nodes == TOO_DEAR else ROOM
    frame[_KIND], frame[_VARIABLE] = _HELD, v
    frame[_NEXT], frame[_END] = arena.top[NODES] - nodes, arena.top[NODES]
    frame[_LOW], frame[_HIGH] = variables[LOW, v], variables[HIGH, v]
    frame[_FIRST], frame[_LAST] = begin, end
    for n in range(total.shape[0]):
        total[n] = 0.0
    arena.top[FRAMES] = level + 1
    return _DEEPER


@kernel
def set_bounds(v, low, high, variables):
    """Set the bounds of a variable, also those within a match."""
    variables[LOW, v] = variables[NEAR_LOW, v] = low
    variables[HIGH, v] = variables[NEAR_HIGH, v] = high


@kernel
def bound(v, low, high, variables):
    """Give a variable other bounds, one tick to hold it, and move the times by it if it is a clock."""
    set_bounds(v, low, high, variables)
    w = variables[CHILD, v]
    while w:
        set_bounds(w, low + variables[OWN_LOW, w], high + variables[OWN_HIGH, w], variables)
        w = variables[SIBLING, w]


@kernel
def _take(level, arena, scratch):
    """Add the result of the frame above to a frame, and go on to its next tick or part."""
    frame, total, result = arena.frame[level], arena.total[level], scratch.result
    if frame[_KIND] == _HELD:
        weight = arena.weight[frame[_NEXT]]
        for n in range(total.shape[0]):
            total[n] += weight * result[n]
    elif frame[_KIND] == _ALTERNATIVES:
        fold(total, result, scratch.row)
    else:
        total[0], total[1] = total[0] + total[1] * result[0], total[1] * result[1]
    frame[_NEXT] += 1


@kernel
def _leave(level, variables, arena, scratch):
    """Take a frame off, whose total is the result."""
    frame, total, result = arena.frame[level], arena.total[level], scratch.result
    scale = 1.0
    if frame[_KIND] == _HELD:
        v = frame[_VARIABLE]
        if variables[LAW, v] < 0:
            scale = float(frame[_HIGH] - frame[_LOW] + 1)
        bound(v, frame[_LOW], frame[_HIGH], variables)
    for n in range(total.shape[0]):
        result[n] = total[n] / scale
    _restore_tops(frame, arena.top)
    arena.top[FRAMES] = level
