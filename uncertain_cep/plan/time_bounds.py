"""Bounds on times from conditions on times: predicates on interval bounds that every match meets.

``TIME(b) - TIME(a) <= h`` holds in no world unless ``b.lower - a.upper <= h``. Such predicates leave out
choices of events early; what they leave is decided by the conditions themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from uncertain_cep.query.time_conditions import FAR, TimeCondition, TimeReference, bounds_in_ticks
from uncertain_cep.query.typed import Apply, Column, Constant, Kind, Operator, TypedExpression
from uncertain_cep.timeline.domain import Names, TimeDomain
from uncertain_cep.timeline.lasting_columns import END_BOUNDS

_ARITHMETIC: Final = ("add", "subtract", "multiply", "divide", "remainder", "negate")

__all__ = [
    "Distances",
    "LiteralBound",
    "bound_predicates",
    "distances_of",
    "literal_bounds",
    "span_of",
    "whole_sum",
]


def bound_predicates(condition: TimeCondition, names: Names, domain: TimeDomain) -> Iterator[TypedExpression]:
    """Yield the predicates on bounds that a condition implies, of the same variables; of some none."""
    if condition.beside:
        # A predicate that mentions less would be asked where the condition is not.
        return
    if condition.numbers is not None and not _is_arithmetic(condition.numbers):
        return
    if not all(_is_arithmetic(moment) for _, moment in condition.moments):
        return
    if condition.comparison in ("<", "<=", "="):
        yield from _implied(condition, names, domain, is_upper=True)
    if condition.comparison in (">", ">=", "="):
        yield from _implied(condition, names, domain, is_upper=False)


def _implied(
    condition: TimeCondition, names: Names, domain: TimeDomain, *, is_upper: bool
) -> Iterator[TypedExpression]:
    lower, upper = (names.lower, names.upper) if is_upper else (names.upper, names.lower)
    tick = 1 if domain.unit == "tick" else domain.tick_nanoseconds
    assert tick is not None
    # Times in nanoseconds are rounded down to ticks, which changes a difference by less than one.
    slack = 0 if domain.unit == "tick" else tick if is_upper else -tick
    operator: Operator = "less_equal" if is_upper else "greater_equal"
    if condition.earlier is None and domain.unit != "tick":
        if condition.is_literal:
            bound = condition.ticks * tick + condition.nanoseconds + slack
            if -(2**63) <= bound < 2**63:
                yield Apply(
                    operator, (_bound(condition.later, lower, names, "time"), Constant(bound, "time")), "bool"
                )
        return
    if condition.moments and domain.unit == "tick":
        return
    constant = condition.ticks * tick + condition.nanoseconds + slack
    if abs(constant) >= (2**63 if condition.is_literal else 2**53):
        # A sum with an attribute may be rounded then, and say something else than the condition.
        return
    difference: TypedExpression = _bound(condition.later, lower, names, "int")
    if condition.earlier is not None:
        difference = Apply("subtract", (difference, _bound(condition.earlier, upper, names, "int")), "int")
    yield Apply(operator, (difference, whole_sum(condition, tick, slack)), "bool")


def whole_sum(condition: TimeCondition, tick: int, slack: int = 0) -> TypedExpression:
    """Return the bound of a condition as a number of units; a tick has ``tick`` of them."""
    total: TypedExpression = Constant(condition.ticks * tick + condition.nanoseconds + slack, "int")
    if condition.numbers is not None:
        kind = condition.numbers.kind
        numbers = Apply("multiply", (condition.numbers, Constant(tick, "int")), kind)
        total = Apply("add", (numbers, total), kind)
    for sign, moment in condition.moments:
        total = Apply("add" if sign > 0 else "subtract", (total, _as_whole(moment)), total.kind)
    return total


def _as_whole(expression: TypedExpression) -> TypedExpression:
    """Return times and lengths as the whole numbers that they are worked out as."""
    if isinstance(expression, Apply):
        return replace(expression, operands=tuple(map(_as_whole, expression.operands)), kind="int")
    return replace(expression, kind="int")


def _is_arithmetic(expression: TypedExpression) -> bool:
    if not isinstance(expression, Apply):
        return True
    return expression.operator in _ARITHMETIC and all(map(_is_arithmetic, expression.operands))


def _bound(reference: TimeReference, name: str, names: Names, kind: Kind) -> Column:
    if reference.part == "end":
        name = END_BOUNDS[name == names.upper]
    return Column(reference.variable, name, kind, reference.element)


class LiteralBound(NamedTuple):
    """``low <= t_j - t_i <= high`` of two components of single events, in ticks; FAR: no bound."""

    i: int
    j: int
    low: int
    high: int


def literal_bounds(
    conditions: Sequence[TimeCondition], variables: Sequence[str | None], domain: TimeDomain
) -> Iterator[tuple[TimeCondition, LiteralBound]]:
    """Yield the conditions that bound a difference of two of some variables by a number of ticks."""
    for condition in conditions:
        if condition.earlier is not None and condition.is_literal and condition.variables <= {*variables}:
            low, high = bounds_in_ticks(condition, None, (), domain.tick_nanoseconds)
            i, j = variables.index(condition.earlier.variable), variables.index(condition.later.variable)
            yield condition, LiteralBound(i, j, int(low), int(high))


def span_of(
    conditions: Sequence[TimeCondition],
    variables: Sequence[str],
    window: int,
    domain: TimeDomain,
    step: int = 1,
) -> int:
    """Return the ticks that a sequence of single events can span: the window, or less by literal conditions.

    The longest of all that the bounds between components leave, by the shortest paths over them (Floyd and
    Warshall). O(l^3). Each event is at least ``step`` ticks after the one ahead: 0 where sequences may tell
    the order within a tick.
    """
    length = len(variables)
    longest = [[0 if i == j else FAR if i < j else -step for j in range(length)] for i in range(length)]
    for _, (i, j, low, high) in literal_bounds(conditions, variables, domain):
        longest[i][j], longest[j][i] = min(longest[i][j], high), min(longest[j][i], -low)
    for k in range(length):
        for i in range(length):
            for j in range(length):
                longest[i][j] = min(longest[i][j], longest[i][k] + longest[k][j])
    span = min(window, longest[0][-1] + 1)
    # In one tick no two events can happen one after the other.
    possible = span > -longest[-1][0] and all(longest[i][i] >= 0 for i in range(length))
    return max(span, 1) if possible else 1


@dataclass(frozen=True, slots=True)
class Distances:
    """Bounds of conditions on times on the differences of neighbours in a sequence of single events."""

    least: tuple[int, ...]
    """By how many ticks each event follows the one before at least, 0 for the first."""
    most: tuple[int, ...]
    """By how many at most; FAR: any number."""
    implied: frozenset[TypedExpression]
    """The predicates on bounds of intervals that hold where the differences are so."""
    are_all: bool
    """Whether the conditions say nothing but ``least``."""

    @property
    def bounds(self) -> tuple[LiteralBound, ...]:
        """The bounds of each event's distance from the one before, but for the first."""
        pairs = enumerate(zip(self.least[1:], self.most[1:], strict=True))
        return tuple(LiteralBound(i, i + 1, low, high) for i, (low, high) in pairs)

    def unimplied(self, predicates: Sequence[TypedExpression]) -> tuple[TypedExpression, ...]:
        """Return the predicates that do not hold by the differences alone."""
        return tuple(predicate for predicate in predicates if predicate not in self.implied)


def distances_of(
    conditions: Sequence[TimeCondition], variables: Sequence[str], names: Names, domain: TimeDomain
) -> Distances:
    """Return the bounds that literal conditions set on the differences of neighbours."""
    least = [0, *[1] * (len(variables) - 1)]
    most = [FAR] * len(variables)
    implied: set[TypedExpression] = set()
    neighbours = 0
    for condition, (i, j, low, high) in literal_bounds(conditions, variables, domain):
        if abs(i - j) != 1:
            continue
        if i > j:
            i, j, low, high = j, i, -high, -low
        least[j], most[j] = max(least[j], low), min(most[j], high)
        implied.update(bound_predicates(condition, names, domain))
        neighbours += 1
    are_all = neighbours == len(conditions) and min(most) == FAR
    return Distances(tuple(least), tuple(most), frozenset(implied), are_all)
