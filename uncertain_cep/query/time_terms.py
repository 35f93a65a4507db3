"""Conditions on times, read as bounds of one time or of the difference of two.

``TIME(b) <= TIME(a) + 5 seconds`` is ``TIME(b) - TIME(a) <= 5 seconds``: terms may stand on either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, cast

from uncertain_cep.query.span_relations import APART
from uncertain_cep.query.syntax import Binary, Call, Expression, Index, Position, Time, Unary, expressions_in

__all__ = ["Comparison", "Difference", "NoDifferenceError", "differences_of"]

Comparison = Literal["<", "<=", "=", ">=", ">"]

_FLIPPED: Final[dict[Comparison, Comparison]] = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<"}


class NoDifferenceError(ValueError):
    """A condition with TIME bounds neither a time nor a difference of two; ``position`` says where."""

    def __init__(self, message: str, position: Position) -> None:
        self.position = position
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Difference:
    """``later - earlier`` compared with a sum of terms; without ``earlier``, ``later`` alone."""

    later: Time
    earlier: Time | None
    comparison: Comparison
    terms: tuple[tuple[int, Expression], ...]
    """The terms of the sum without TIME, each with its sign."""
    side: Literal[0, 1] | None = None
    """Of two differences of which one is to hold, which one this is."""


def differences_of(condition: Expression) -> tuple[Difference, ...]:
    """Return the bounds on a difference of times that a condition with TIME sets: one, or for BETWEEN two.

    Of two events that are apart there are two, each of a side, of which one holds.

    Raises
    ------
    NoDifferenceError
        If it is no time condition.
    """
    if isinstance(condition, Call) and condition.function == "between":
        value, low, high = condition.arguments
        pairs: tuple[tuple[Literal[">=", "<="], Expression], ...] = ((">=", low), ("<=", high))
        return tuple(_difference_of(Binary(sign, value, end, condition.position)) for sign, end in pairs)
    if isinstance(condition, Call) and condition.function == APART:
        begin, end, other_begin, other_end = cast("tuple[Time, ...]", condition.arguments)
        return Difference(other_begin, end, ">=", (), 0), Difference(begin, other_end, ">=", (), 1)
    return (_difference_of(condition),)


def _difference_of(condition: Expression) -> Difference:
    if not isinstance(condition, Binary) or condition.operator not in (*_FLIPPED, "!="):
        message = "a condition on times stands by itself, joined to the others by AND, without OR and NOT"
        raise NoDifferenceError(message, condition.position)
    if condition.operator == "!=":
        raise NoDifferenceError(
            "times are compared by =, <, <=, >, >= or BETWEEN, not by !=", condition.position
        )
    terms = [*_terms(condition.left, 1), *_terms(condition.right, -1)]
    times: dict[tuple[str, Index, str | None], tuple[int, Time]] = {}
    for sign, term in terms:
        if isinstance(term, Time):
            key: tuple[str, Index, str | None] = (term.variable, term.index or "current", term.part)
            times[key] = times.get(key, (0, term))[0] + sign, term
    by_sign = {sign: time for sign, time in times.values() if sign}
    if not by_sign:
        raise NoDifferenceError(
            "the times cancel, so this does not depend on them: leave it out", condition.position
        )
    if len([sign for sign, _ in times.values() if sign]) != len(by_sign) or not by_sign.keys() <= {1, -1}:
        raise NoDifferenceError(
            "a sum of times has no meaning: compare one time, or a difference such as TIME(b) - TIME(a)",
            condition.position,
        )
    bounds = tuple((-sign, term) for sign, term in terms if not isinstance(term, Time))
    comparison = cast("Comparison", condition.operator)
    if 1 in by_sign:
        return Difference(by_sign[1], by_sign.get(-1), comparison, bounds)
    return Difference(by_sign[-1], None, _FLIPPED[comparison], tuple((-sign, term) for sign, term in bounds))


def _terms(expression: Expression, sign: int) -> list[tuple[int, Expression]]:
    """Return the terms of a sum, each with its sign. TIME within a product is no term."""
    terms: list[tuple[int, Expression]] = []
    stack = [(sign, expression)]
    while stack:
        sign, term = stack.pop()
        if isinstance(term, Binary) and term.operator in ("+", "-"):
            stack += [(sign if term.operator == "+" else -sign, term.right), (sign, term.left)]
        elif isinstance(term, Unary) and term.operator == "-":
            stack.append((-sign, term.operand))
        elif not isinstance(term, Time) and any(isinstance(part, Time) for part in expressions_in(term)):
            raise NoDifferenceError(
                "a time can be added to, subtracted and compared, and nothing else", term.position
            )
        else:
            terms.append((sign, term))
    return terms
