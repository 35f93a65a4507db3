"""Relations between events that last, as the conditions on their begins and ends that they abbreviate."""

from __future__ import annotations

from functools import reduce
from typing import Final, Literal

from uncertain_cep.query.syntax import Binary, Call, Expression, Position, Time

__all__ = ["APART", "apart", "duration_of", "related"]

APART: Final = "apart"
"""The function of four times that `apart` makes a condition of; no query can name it."""

Part = Literal["begin", "end"]
Comparison = tuple[tuple[int, Part], Literal["<", "<="], tuple[int, Part]]

_ENDS: Final[tuple[Part, Part]] = ("begin", "end")
_RELATIONS: Final[dict[str, tuple[Comparison, ...]]] = {
    "overlaps": (((0, "begin"), "<=", (1, "end")), ((1, "begin"), "<=", (0, "end"))),
    "contains": (((0, "begin"), "<=", (1, "begin")), ((1, "end"), "<=", (0, "end"))),
    "during": (((1, "begin"), "<=", (0, "begin")), ((0, "end"), "<=", (1, "end"))),
    "before": (((0, "end"), "<", (1, "begin")),),
    "after": (((1, "end"), "<", (0, "begin")),),
}
"""What each says of the first event, 0, and the second one, 1."""


def related(first: str, relation: str, second: str, position: Position) -> Expression:
    """Return the condition that a relation between two variables stands for."""
    names = first, second

    def time(which: tuple[int, Part]) -> Time:
        return Time(names[which[0]], None, position, which[1])

    comparisons: list[Expression] = [
        Binary(sign, time(left), time(right), position) for left, sign, right in _RELATIONS[relation]
    ]
    return reduce(lambda left, right: Binary("and", left, right, position), comparisons)


def apart(first: str, second: str, position: Position) -> Expression:
    """Return the condition that two variables do not overlap: one of them is before the other."""
    times = [Time(name, None, position, part) for name in (first, second) for part in _ENDS]
    return Call(APART, tuple(times), position)


def duration_of(variable: str, position: Position) -> Expression:
    """Return the difference of the end and the begin of an event."""
    return Binary(
        "-", Time(variable, None, position, "end"), Time(variable, None, position, "begin"), position
    )
