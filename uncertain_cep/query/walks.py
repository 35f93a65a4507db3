"""Walks over the syntax tree: what stands in it, and trees with other leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from uncertain_cep.query.syntax import (
    Aggregate,
    AllAttributes,
    Attribute,
    Binary,
    Call,
    Component,
    Equivalence,
    Expression,
    Literal,
    Option,
    Pattern,
    Query,
    Repeated,
    Unary,
    Variable,
    children_of,
    spoken_in,
)

__all__ = [
    "attributes_in",
    "compares_with_null",
    "components_of",
    "conjuncts_of",
    "has_options",
    "impossible_confidence",
    "is_confidence",
    "part_of",
    "patterns_in",
    "with_leaves",
]


def with_leaves(
    expression: Expression,
    change: Callable[[Expression], Expression],
    listed: Callable[[Call], Expression] | None = None,
) -> Expression:
    """Return an expression with what functions make of its leaves, and of its ``x IN $name`` before that."""
    if isinstance(expression, Call) and expression.function == "in_list" and listed is not None:
        changed = listed(expression)
        if changed is not expression:
            return with_leaves(changed, change, listed)
    match expression:
        case Unary():
            return replace(expression, operand=with_leaves(expression.operand, change, listed))
        case Binary():
            left, right = (with_leaves(side, change, listed) for side in children_of(expression))
            return replace(expression, left=left, right=right)
        case Aggregate() if expression.operand is not None:
            return replace(expression, operand=with_leaves(expression.operand, change, listed))
        case Call():
            arguments = tuple(with_leaves(part, change, listed) for part in expression.arguments)
            return replace(expression, arguments=arguments)
    return change(expression)


def compares_with_null(expression: Expression) -> bool:
    """Return whether an expression is a comparison with NULL, which is never true."""
    return isinstance(expression, Binary) and any(
        isinstance(side, Literal) and side.value is None for side in (expression.left, expression.right)
    )


def is_confidence(expression: Expression) -> bool:
    """Return whether an expression of a result's columns is the confidence."""
    return isinstance(expression, Variable) and expression.name.lower() == "confidence"


def impossible_confidence(expression: Expression) -> Literal | None:
    """Return the number with which a comparison compares the confidence, if no confidence can be that."""
    if not isinstance(expression, Binary):
        return None
    sides = expression.left, expression.right
    for column, number in (sides, sides[::-1]):
        if is_confidence(column) and isinstance(number, Literal):
            value = number.value
            if isinstance(value, int | float) and not isinstance(value, bool) and not 0 <= value <= 1:
                return number
    return None


def attributes_in(query: Query) -> frozenset[str] | None:
    """Return the names of all attributes of events that a query speaks of; None if it returns them all."""
    spoken = spoken_in(query)
    if any(isinstance(part, AllAttributes) for part in spoken):
        return None
    names = [part.name for part in spoken if isinstance(part, Attribute | Aggregate | Equivalence)]
    counted = () if query.expected_count is None else query.expected_count.by
    grouped = () if query.probability is None else (group.name for group in query.probability.by)
    return frozenset(name for name in (*names, *counted, *grouped) if name is not None)


def patterns_in(pattern: Pattern) -> Iterator[Pattern]:
    """Yield a pattern and everything below it, in the order of the text."""
    stack = [pattern]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, Component):
            stack.extend(reversed(node.items))


def components_of(pattern: Pattern) -> Iterator[Component]:
    """Yield the components of a pattern in the order in which it lists them."""
    return (node for node in patterns_in(pattern) if isinstance(node, Component))


def part_of(pattern: Pattern, keeps: Callable[[Component], bool]) -> Pattern | None:
    """Return a pattern with the components that are kept; None if there is none."""
    if isinstance(pattern, Component):
        return pattern if keeps(pattern) else None
    items = tuple(part for item in pattern.items if (part := part_of(item, keeps)) is not None)
    return replace(pattern, items=items) if items else None


def has_options(pattern: Pattern) -> bool:
    """Return whether a component or a group of a pattern may be left out, or a group is repeated."""
    return any(
        isinstance(node, Option | Repeated) or (isinstance(node, Component) and not node.least)
        for node in patterns_in(pattern)
    )


def conjuncts_of(expression: Expression) -> Iterator[Expression]:
    """Yield the conditions that AND joins at the top of an expression."""
    stack = [expression]
    while stack:
        part = stack.pop()
        if isinstance(part, Binary) and part.operator == "and":
            stack.extend((part.right, part.left))
        else:
            yield part
