"""The conditions and results of a query with repeated groups, in a reading that fixes how often these stand.

What speaks of ``f[i]`` is asked of each iteration, by the variables of its own (``f[1]``, ``f[2]``, ..); not
of those where one that it speaks of is left out. An aggregate over ``f[]`` is an expression of the places
that an event takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from uncertain_cep.query.binder import BoundComponent, BoundQuery, BoundReturn
from uncertain_cep.query.branches import Branch
from uncertain_cep.query.repeated_groups import copy_of, list_of, number_of, repeated_groups
from uncertain_cep.query.time_conditions import TimeCondition, TimeReference
from uncertain_cep.query.typed import (
    Aggregated,
    Apply,
    Column,
    Constant,
    Element,
    Kind,
    Operator,
    TypedExpression,
    columns_in,
)
from uncertain_cep.query.walks import components_of

__all__ = ["bound_reading"]

_NULL: Final = Constant(None, "null")
_RUNNING: Final = frozenset({"current", "previous", "single"})


def bound_reading(bound: BoundQuery, branch: Branch) -> BoundQuery | None:
    """Return a query with a branch of its pattern, in which each repeated group stands so often in a row.

    None for a reading without any event, which is none.
    """
    groups = repeated_groups(bound.pattern)
    if not groups:
        return bound.of_branch(branch)
    parts = {part.variable: part for part in bound.components}
    names = [component.variable for component in components_of(branch.pattern)]
    lengths: dict[str, int] = {}
    for group in groups:
        variables = [part.variable for part in components_of(group)]
        length = max((number_of(name) for name in names if list_of(name) in variables), default=0)
        lengths |= dict.fromkeys(variables, length)
    forbids_next = bound.query.strategy == "skip_till_next_match"
    absent = frozenset(name for name, part in parts.items() if part.negated)
    reading = _Reading(lengths, frozenset(names), absent, forbids_next)
    returns, places = reading.returned(bound)
    expanded = replace(
        bound,
        components=tuple(
            BoundComponent(name, parts[list_of(name)].types, negated=parts[list_of(name)].negated)
            if number_of(name)
            else parts[name]
            for name in names
        ),
        predicates=tuple(each for predicate in bound.predicates for each in reading.predicates(predicate)),
        times=tuple(each for condition in bound.times for each in reading.times(condition)),
        returns=returns,
        places=places,
    )
    return expanded.of_branch(branch)


class _NotAskedError(Exception):
    """A condition meets a place that is left out."""


@dataclass(frozen=True, slots=True)
class _Reading:
    lengths: dict[str, int]
    """How often the group of each variable of one stands."""
    names: frozenset[str]
    """The variables of the reading."""
    negated: frozenset[str]
    """The negated variables of the query."""
    forbids_next: bool
    """Whether conditions tell what could have been taken."""

    def predicates(self, predicate: TypedExpression) -> Iterator[TypedExpression]:
        """Yield a predicate of each iteration, or of the match if it speaks of no iteration in particular."""
        columns = columns_in(predicate)
        element = self._element((column.variable, _meant(column)) for column in columns)
        for number in self._numbers((column.variable, _meant(column)) for column in columns):
            try:
                yield self._placed(predicate, number, element)
            except _NotAskedError:
                continue

    def times(self, condition: TimeCondition) -> Iterator[TimeCondition]:
        """Yield a condition on times of each iteration."""
        element = self._element(condition.mentions)

        def reference(one: TimeReference, number: int) -> TimeReference:
            if one.variable not in self.lengths:
                return one
            return replace(one, variable=self._variable(one.variable, one.element, number), element=element)

        for number in self._numbers(condition.mentions):
            try:
                beside = frozenset(
                    (self._variable(name, mentioned, number), element)
                    if name in self.lengths
                    else (name, mentioned)
                    for name, mentioned in condition.beside
                )
                yield replace(
                    condition,
                    later=reference(condition.later, number),
                    earlier=None if condition.earlier is None else reference(condition.earlier, number),
                    numbers=None
                    if condition.numbers is None
                    else self._placed(condition.numbers, number, element),
                    moments=tuple(
                        (sign, self._placed(bound, number, element)) for sign, bound in condition.moments
                    ),
                    beside=beside,
                )
            except _NotAskedError:
                continue

    def returned(
        self, bound: BoundQuery
    ) -> tuple[tuple[BoundReturn, ...], tuple[tuple[str, tuple[str | None, ...]], ...]]:
        """Return the columns of a reading, and those that become lists: of each the columns of its places."""
        lists = [name for name in self.lengths if name not in self.negated and self.lengths[name]]
        places = {name: self._copies(name) for name in lists}
        returns: list[BoundReturn] = []
        for item in bound.returns:
            if item.expression is not None:
                returns += [replace(item, expression=each) for each in self.predicates(item.expression)]
            elif item.variable not in self.lengths:
                returns.append(item)
            elif item.variable in places and item.name != item.variable:
                copies = self._copies(item.variable)
                columns = [None if name is None else f"{item.name}[{n}]" for n, name in enumerate(copies, 1)]
                places[item.name] = tuple(columns)
                returns += [
                    replace(item, name=column, variable=name)
                    for column, name in zip(columns, copies, strict=True)
                    if column is not None
                ]
        return tuple(returns), tuple(places.items())

    def _copies(self, variable: str) -> tuple[str | None, ...]:
        """Return the variables of each place of a list; None where no event is taken."""
        copies = (copy_of(variable, number) for number in range(1, self.lengths[variable] + 1))
        return tuple(name if name in self.names else None for name in copies)

    def _element(self, mentions: Iterable[tuple[str, Element]]) -> Element:
        """Return how a condition speaks of the one event of each place.

        What asks for the last iteration, or for all, is not known while more may follow: it does not tell
        what could have been taken.
        """
        spoken = {*mentions}
        if not self.forbids_next or any(name in self.negated for name, _ in spoken):
            return "single"
        whole = any(name in self.lengths and element in ("last", "all") for name, element in spoken)
        return "last" if whole else "single"

    def _numbers(self, mentions: Iterable[tuple[str, Element]]) -> Iterable[int]:
        """Return the iterations that a condition is asked of; 0 if it speaks of none in particular."""
        first, length = 0, 0
        for name, element in mentions:
            if name not in self.lengths:
                continue
            if element in _RUNNING or element == "before" or (isinstance(element, int) and element < 0):
                back = -element if isinstance(element, int) else int(element in ("previous", "before"))
                first, length = max(first, 1 + back), self.lengths[name]
        return range(first, length + 1) if first else (0,)

    def _variable(self, variable: str, element: Element, number: int) -> str:
        """Return the variable of the place that a mention means in an iteration."""
        place = self._place(variable, element, number)
        name = copy_of(variable, place)
        if name not in self.names:
            raise _NotAskedError
        return name

    def _place(self, variable: str, element: Element, number: int) -> int:
        if isinstance(element, int):
            return element if element > 0 else number + element
        return {"first": 1, "last": self.lengths[variable], "previous": number - 1}.get(element, number)

    def _placed(self, expression: TypedExpression, number: int, element: Element) -> TypedExpression:
        """Return an expression of the events of an iteration."""
        if isinstance(expression, Apply):
            operands = tuple(self._placed(operand, number, element) for operand in expression.operands)
            return replace(expression, operands=operands)
        if not isinstance(expression, Column) or expression.variable not in self.lengths:
            return expression
        variable = expression.variable
        if isinstance(expression, Aggregated):
            last = number - 1 if expression.span == "before" else self.lengths[variable]
            copies = (copy_of(variable, place) for place in range(1, last + 1))
            names = [name for name in copies if name in self.names]
            if not names:
                raise _NotAskedError
            return _aggregate(expression, [_value(expression, name, element) for name in names])
        if self._place(variable, expression.index, number) > self.lengths[variable] > 0:
            # As of an element that a repeated component does not have: its attributes are null.
            return _NULL
        return replace(expression, variable=self._variable(variable, expression.index, number), index=element)


def _meant(column: Column) -> Element:
    return column.span if isinstance(column, Aggregated) else column.index


def _value(aggregate: Aggregated, variable: str, element: Element) -> TypedExpression:
    """Return the value of one event that an aggregate is computed of."""
    if aggregate.computed is not None:
        return _of_event(aggregate.computed, variable, element)
    return Column(variable, aggregate.name, aggregate.of, element)


def _of_event(expression: TypedExpression, variable: str, element: Element) -> TypedExpression:
    if isinstance(expression, Apply):
        operands = tuple(_of_event(operand, variable, element) for operand in expression.operands)
        return replace(expression, operands=operands)
    return (
        replace(expression, variable=variable, index=element)
        if isinstance(expression, Column)
        else expression
    )


def _aggregate(aggregate: Aggregated, values: list[TypedExpression]) -> TypedExpression:
    """Return an aggregate as an expression of its values, of which nulls are left out."""
    function, kind = aggregate.function, aggregate.kind
    if function == "count" and not aggregate.name:
        return Constant(len(values), "int")
    count = _sum([_chosen(_is_null(value), _int(0), _int(1)) for value in values], "int")
    match function:
        case "count":
            return count
        case "distinct":
            return _sum(
                [_chosen(_any_of(_seen(values, k)), _int(0), _int(1)) for k in range(len(values))], "int"
            )
        case "min" | "max":
            if len(values) == 1:
                return values[0]
            return Apply("least" if function == "min" else "greatest", tuple(values), kind)
        case "sum":
            return _unless_null(values, _total(values, aggregate.of), kind)
        case "any" | "every":
            operator: Operator = "or" if function == "any" else "and"
            neutral = Constant(function == "every", "bool")
            filled = [Apply("coalesce", (value, neutral), "bool") for value in values]
            return _unless_null(values, reduce(lambda x, y: Apply(operator, (x, y), "bool"), filled), "bool")
    mean = Apply("divide", (_total(values, aggregate.of), count), "float")
    if function == "avg":
        return mean
    from_mean = [Apply("subtract", (value, mean), "float") for value in values]
    squares: list[TypedExpression] = [Apply("multiply", (each, each), "float") for each in from_mean]
    above = Apply("subtract", (count, _int(1)), "int")
    return Apply("sqrt", (Apply("divide", (_total(squares, "float"), above), "float"),), "float")


def _seen(values: list[TypedExpression], k: int) -> list[TypedExpression]:
    """Return the conditions under which a value adds nothing to a set of those before it."""
    equal = [Apply("equal", (values[k], value), "bool") for value in values[:k]]
    return [_is_null(values[k]), *equal]


def _any_of(conditions: list[TypedExpression]) -> TypedExpression:
    return reduce(lambda one, other: Apply("or", (one, other), "bool"), conditions)


def _is_null(value: TypedExpression) -> TypedExpression:
    return Apply("is_null", (value,), "bool")


def _chosen(condition: TypedExpression, then: TypedExpression, other: TypedExpression) -> TypedExpression:
    return Apply("case", (condition, then, other), then.kind if then.kind != "null" else other.kind)


def _unless_null(values: list[TypedExpression], result: TypedExpression, kind: Kind) -> TypedExpression:
    """Return a result that is null where all values are."""
    if len(values) == 1:
        return values[0]
    none = reduce(lambda one, other: Apply("and", (one, other), "bool"), map(_is_null, values))
    return Apply("case", (none, _NULL, result), kind)


def _total(values: list[TypedExpression], kind: Kind) -> TypedExpression:
    """Return the sum of values, those that are null as 0."""
    zero = Constant(0.0, "float") if kind == "float" else _int(0)
    return _sum([Apply("coalesce", (value, zero), zero.kind) for value in values], zero.kind)


def _sum(values: list[TypedExpression], kind: Kind) -> TypedExpression:
    return reduce(lambda one, other: Apply("add", (one, other), kind), values)


def _int(value: int) -> Constant:
    return Constant(value, "int")
