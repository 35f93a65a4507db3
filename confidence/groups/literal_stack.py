"""Reading and writing literals of an arena, and whether their variables are held."""

from __future__ import annotations

from confidence.groups.problems import EARLIER, HIGH, LATER, LEAST, LITERALS, LOW
from confidence.kernel import kernel

__all__ = ["append", "is_open", "literal_at", "put", "variable_of"]


@kernel
def is_open(v, variables):
    """Return whether a variable has several ticks."""
    return variables[LOW, v] < variables[HIGH, v]


@kernel
def literal_at(place, arena):
    """Return the earlier and the later variable of a literal, and how far these are apart at least."""
    rows = arena.literals
    return rows[EARLIER, place], rows[LATER, place], rows[LEAST, place]


@kernel
def put(earlier, later, distance, place, arena):
    """Write a literal."""
    rows = arena.literals
    rows[EARLIER, place], rows[LATER, place], rows[LEAST, place] = earlier, later, distance


@kernel
def append(earlier, later, distance, arena):
    """Write a literal to the top of the stack, which has room for it."""
    put(earlier, later, distance, arena.top[LITERALS], arena)
    arena.top[LITERALS] += 1


@kernel
def variable_of(place, arena):
    """Return one of the variables of a literal, which bounds one at least."""
    return max(arena.literals[EARLIER, place], arena.literals[LATER, place])
