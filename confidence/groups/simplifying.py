"""Matches without what bounds of variables decide: impossible ones go, certain literals and boxes do, too."""

from __future__ import annotations

from typing import Final

from confidence.groups.literal_stack import append, is_open, literal_at, put
from confidence.groups.problems import (
    CLOCK,
    EARLIER,
    HIGH,
    LATER,
    LEAST,
    LISTED,
    LITERALS,
    LOW,
    MATCHES,
    NEAR_HIGH,
    NEAR_LOW,
    OWN_HIGH,
    OWN_LOW,
    STAMP,
    STEPS,
    TERMS,
)
from confidence.kernel import kernel

__all__ = ["NO_ROOM", "simplified"]

NO_ROOM: Final = -1

_IMPOSSIBLE: Final = 0
_OPEN: Final = 1


@kernel
def simplified(begin, end, variables, arena, scratch):
    """Append what is left of some listed matches, and list those that are neither certain nor impossible.

    Parameters
    ----------
    begin, end : int64
        Places in ``arena.listed``.
    variables : Variables
    arena : Arena
    scratch : Scratch

    Returns
    -------
    certain : int64
        How many signatures have a certain match; their other matches are not listed. ``NO_ROOM`` if the
        matches do not fit.
    """
    top = arena.top
    top[STAMP] += 1
    certain = 0
    first = top[LISTED]
    for place in range(begin, end):
        match = arena.listed[place]
        terms = arena.term[match + 1] - arena.term[match]
        literals = arena.literal[arena.term[match + 1]] - arena.literal[arena.term[match]]
        top[STEPS] += terms + literals
        if (
            top[MATCHES] + 2 > arena.term.shape[0]
            or top[TERMS] + terms + 1 > arena.literal.shape[0]
            or top[LITERALS] + literals > arena.literals.shape[1]
            or top[LISTED] >= arena.listed.shape[0]
        ):
            return NO_ROOM
        if scratch.stamp[arena.signature[match]] == top[STAMP]:
            continue
        before_terms, before_literals = top[TERMS], top[LITERALS]
        number = top[MATCHES]
        if _left(match, variables, arena, scratch) == _IMPOSSIBLE:
            top[TERMS], top[LITERALS] = before_terms, before_literals
            arena.literal[before_terms] = before_literals
            continue
        if top[TERMS] == before_terms + 1 and top[LITERALS] == before_literals:
            certain += 1
            scratch.stamp[arena.signature[match]] = top[STAMP]
            top[TERMS] = before_terms
            continue
        arena.term[number + 1] = top[TERMS]
        arena.signature[number] = arena.signature[match]
        top[MATCHES] = number + 1
        arena.listed[top[LISTED]] = number
        top[LISTED] += 1
    if certain:
        _without_certain(first, arena, scratch)
    return certain


@kernel
def _without_certain(first, arena, scratch):
    """Take those matches off a list whose signatures have a certain one."""
    top = arena.top
    kept = first
    for place in range(first, top[LISTED]):
        match = arena.listed[place]
        if scratch.stamp[arena.signature[match]] != top[STAMP]:
            arena.listed[kept] = match
            kept += 1
    top[LISTED] = kept


@kernel
def _left(match, variables, arena, scratch):
    """Append the terms of a match that are left; return whether it is possible."""
    top = arena.top
    first = arena.term[match]
    touched, possible = _unary(first, 0, variables, arena, scratch)
    begin = top[LITERALS]
    if possible:
        for k in range(touched):
            v = scratch.touched[k]
            _append_bounds(v, variables[LOW, v], variables[HIGH, v], variables, arena)
        possible = _binary(first, begin, variables, arena)
    arena.literal[top[TERMS]] = begin
    top[TERMS] += 1
    arena.literal[top[TERMS]] = top[LITERALS]
    held = top[LITERALS]
    if possible:
        for term in range(first + 1, arena.term[match + 1]):
            if not _box_left(term, touched, begin, held, variables, arena, scratch):
                possible = False
                break
    for k in range(touched):
        v = scratch.touched[k]
        variables[NEAR_LOW, v], variables[NEAR_HIGH, v] = variables[LOW, v], variables[HIGH, v]
    return _OPEN if possible else _IMPOSSIBLE


@kernel
def _box_left(term, touched, begin, end, variables, arena, scratch):
    """Append a box if it is undecided; return whether the match can still be.

    ``touched`` variables have bounds of the match; ``begin`` .. ``end`` are the literals that it has to meet.
    """
    top = arena.top
    begun = top[LITERALS]
    count, possible = _unary(term, touched, variables, arena, scratch)
    if possible:
        for k in range(touched, count):
            v = scratch.touched[k]
            _append_bounds(v, scratch.saved[k, 0], scratch.saved[k, 1], variables, arena)
        possible = _binary(term, begun, variables, arena)
        possible = possible and _not_excluded(begun, begin, end, arena)
    for k in range(count - 1, touched - 1, -1):
        v = scratch.touched[k]
        variables[NEAR_LOW, v], variables[NEAR_HIGH, v] = scratch.saved[k, 0], scratch.saved[k, 1]
    if not possible:
        top[LITERALS] = begun
        return True
    if top[LITERALS] == begun:
        return False
    top[TERMS] += 1
    arena.literal[top[TERMS]] = top[LITERALS]
    return True


@kernel
def _unary(term, touched, variables, arena, scratch):
    """Narrow the near bounds of variables to what literals of a term against constants ask.

    Returns
    -------
    touched : int64
        How many entries of ``scratch.touched`` there are, each with the bounds before in ``scratch.saved``.
    possible : bool
        Whether the term may hold.
    """
    possible = True
    first = touched
    for k in range(arena.literal[term], arena.literal[term + 1]):
        x, y, distance = literal_at(k, arena)
        x_open, y_open = is_open(x, variables), is_open(y, variables)
        if x_open and y_open:
            continue
        if not x_open and not y_open:
            possible = possible and variables[LOW, y] - variables[LOW, x] >= distance
            continue
        v = y if y_open else x
        bound = distance + variables[LOW, x] if y_open else variables[LOW, y] - distance
        if (y_open and bound <= variables[NEAR_LOW, v]) or (x_open and bound >= variables[NEAR_HIGH, v]):
            continue
        place = first
        while place < touched and scratch.touched[place] != v:
            place += 1
        if place == touched:
            scratch.touched[place] = v
            scratch.saved[place, 0], scratch.saved[place, 1] = variables[NEAR_LOW, v], variables[NEAR_HIGH, v]
            touched += 1
        if y_open:
            variables[NEAR_LOW, v] = bound
        else:
            variables[NEAR_HIGH, v] = bound
        possible = possible and variables[NEAR_LOW, v] <= variables[NEAR_HIGH, v]
    return touched, possible


@kernel
def _append_bounds(v, low, high, variables, arena):
    """Append the near bounds of a variable as literals, where they are narrower than some others."""
    if variables[NEAR_LOW, v] > low:
        append(0, v, variables[NEAR_LOW, v], arena)
    if variables[NEAR_HIGH, v] < high:
        append(v, 0, -variables[NEAR_HIGH, v], arena)


@kernel
def _least_difference(x, y, variables):
    """Return the least that the time of y less that of x can be within near bounds."""
    by_bounds = variables[NEAR_LOW, y] - variables[NEAR_HIGH, x]
    if variables[CLOCK, x] and variables[CLOCK, x] == variables[CLOCK, y]:
        return max(by_bounds, variables[OWN_LOW, y] - variables[OWN_HIGH, x])
    if x and variables[CLOCK, y] == x:
        return max(by_bounds, variables[OWN_LOW, y])
    if y and variables[CLOCK, x] == y:
        return max(by_bounds, -variables[OWN_HIGH, x])
    return by_bounds


@kernel
def _binary(term, begun, variables, arena):
    """Append the undecided literals of a term between open variables; return whether all are possible.

    ``own`` is where what is left of the term begins: of literals that differ in their bounds one is left.
    """
    for k in range(arena.literal[term], arena.literal[term + 1]):
        x, y, distance = literal_at(k, arena)
        if not is_open(x, variables) or not is_open(y, variables):
            continue
        if -_least_difference(y, x, variables) < distance:
            return False
        if _least_difference(x, y, variables) >= distance:
            continue
        place = begun
        while place < arena.top[LITERALS] and not _ties(x, y, place, arena):
            place += 1
        if place == arena.top[LITERALS]:
            append(x, y, distance, arena)
        else:
            arena.literals[LEAST, place] = max(arena.literals[LEAST, place], distance)
    return True


@kernel
def _ties(x, y, place, arena):
    """Return whether a literal bounds the difference of y from x."""
    return arena.literals[EARLIER, place] == x and arena.literals[LATER, place] == y


@kernel
def _not_excluded(begun, begin, end, arena):
    """Drop those literals of the last term that others imply; return whether the others leave it possible.

    Those of the term begin at ``own``, the others are at ``begin`` .. ``end``.
    """
    kept = begun
    for k in range(begun, arena.top[LITERALS]):
        x, y, needed = literal_at(k, arena)
        implied = False
        if x and y:
            for j in range(begin, end):
                v, w, distance = literal_at(j, arena)
                if v == x and w == y and distance >= needed:
                    implied = True
                elif v == y and w == x and distance > -needed:
                    return False
        if not implied:
            put(x, y, needed, kept, arena)
            kept += 1
    arena.top[LITERALS] = kept
    return True
