"""Relations between events that last, as the conditions on their begins and ends that they abbreviate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final, Literal

from uncertain_cep.query.syntax import (
    Attribute,
    Binary,
    Call,
    Expression,
    Position,
    Time,
    Variable,
)

__all__ = [
    "APART",
    "NamedComparison",
    "apart",
    "comparison_of",
    "duration_of",
    "length_ends",
    "related",
    "relation_at",
]

APART: Final = "apart"
"""The function of four times that `apart` makes a condition of; no query can name it."""

Part = Literal["begin", "end"]
Comparison = tuple[tuple[int, Part], Literal["<", "<=", ">", ">="], tuple[int, Part]]
NamedComparison = tuple[tuple[str, Part], str, tuple[str, Part]]
"""An end of a variable, how it compares, and the end of another one."""

_ENDS: Final[tuple[Part, Part]] = ("begin", "end")
_RELATIONS: Final[dict[str, tuple[Comparison, ...]]] = {
    "overlaps": (((0, "begin"), "<=", (1, "end")), ((1, "begin"), "<=", (0, "end"))),
    "contains": (((0, "begin"), "<=", (1, "begin")), ((1, "end"), "<=", (0, "end"))),
    "during": (((0, "begin"), ">=", (1, "begin")), ((0, "end"), "<=", (1, "end"))),
    "before": (((0, "end"), "<", (1, "begin")),),
    "after": (((0, "begin"), ">", (1, "end")),),
}
"""What each says of the first event, 0, and the second one, 1. Each begins with an end of the first event, so
that no two of them are the same comparisons."""


def related(first: str, relation: str, second: str, position: Position) -> Expression:
    """Return the condition that a relation between two variables stands for."""
    names = first, second

    def time(which: tuple[int, Part]) -> Time:
        return Time(names[which[0]], None, position, which[1])

    comparisons: list[Expression] = [
        Binary(sign, time(left), time(right), position) for left, sign, right in _RELATIONS[relation]
    ]
    return reduce(lambda left, right: Binary("and", left, right, position), comparisons)


def comparison_of(condition: Expression) -> NamedComparison | None:
    """Return the ends of two variables that a condition compares; None if it is something else."""
    if not isinstance(condition, Binary):
        return None
    left, right = condition.left, condition.right
    if not isinstance(left, Time) or not isinstance(right, Time) or left.part is None or right.part is None:
        return None
    return (left.variable, left.part), condition.operator, (right.variable, right.part)


def relation_at(comparisons: Sequence[NamedComparison | None], place: int) -> tuple[str, int] | None:
    """Return the relation that comparisons from a place on stand for, as text, and how many; else None."""
    start = comparisons[place]
    if start is None:
        return None
    names = start[0][0], start[2][0]
    for relation, parts in _RELATIONS.items():
        named = [
            ((names[left], end), sign, (names[right], other_end))
            for (left, end), sign, (right, other_end) in parts
        ]
        if [*comparisons[place : place + len(named)]] == named:
            return f"{names[0]} {relation.upper()} {names[1]}", len(named)
    return None


def apart(first: str, second: str, position: Position) -> Expression:
    """Return the condition that two variables do not overlap: one of them is before the other."""
    times = [Time(name, None, position, part) for name in (first, second) for part in _ENDS]
    return Call(APART, tuple(times), position)


def duration_of(ends: Sequence[Expression], position: Position) -> Expression | None:
    """Return the time from one end to another one, of an event if there is one; None: these are no ends."""
    if len(ends) == 1 and isinstance(ends[0], Variable):
        name = ends[0].name
        return Binary("-", Time(name, None, position, "end"), Time(name, None, position, "begin"), position)
    times = [_time_of(end) for end in ends]
    if len(times) != 2 or times[0] is None or times[1] is None:
        return None
    return Binary("-", times[1], times[0], position)


def _time_of(end: Expression) -> Time | None:
    """Return the time of ``a``, ``a.begin`` or ``a.end``; None if it is something else."""
    if isinstance(end, Variable):
        return Time(end.name, None, end.position)
    if not isinstance(end, Attribute) or end.index is not None:
        return None
    part = next((part for part in _ENDS if part == end.name.lower()), None)
    return None if part is None else Time(end.variable, None, end.position, part)


def length_ends(expression: Expression) -> tuple[Time, Time] | None:
    """Return the later and the earlier time of a difference of two times; None if it is something else."""
    if not isinstance(expression, Binary) or expression.operator != "-":
        return None
    later, earlier = expression.left, expression.right
    if not isinstance(later, Time) or not isinstance(earlier, Time):
        return None
    return (later, earlier) if later.index is None and earlier.index is None else None
