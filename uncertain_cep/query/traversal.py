"""Walks over syntax trees; none of them recurses, so a tree of any depth is safe."""

from __future__ import annotations

from collections.abc import Iterator

from uncertain_cep.query.syntax import Binary, Component, Expression, Pattern, Unary

__all__ = ["children_of", "components_of", "conjuncts_of", "expressions_in", "patterns_in"]


def children_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands of an expression, left to right."""
    if isinstance(expression, Binary):
        return (expression.left, expression.right)
    return (expression.operand,) if isinstance(expression, Unary) else ()


def expressions_in(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and everything below it, in the order of the text."""
    stack = [expression]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(reversed(children_of(found)))


def conjuncts_of(expression: Expression) -> Iterator[Expression]:
    """Yield the conditions that AND joins at the top of an expression."""
    stack = [expression]
    while stack:
        found = stack.pop()
        if isinstance(found, Binary) and found.operator == "and":
            stack.extend((found.right, found.left))
        else:
            yield found


def patterns_in(pattern: Pattern) -> Iterator[Pattern]:
    """Yield a pattern and everything below it, in the order of the text."""
    stack = [pattern]
    while stack:
        found = stack.pop()
        yield found
        if not isinstance(found, Component):
            stack.extend(reversed(found.items))


def components_of(pattern: Pattern) -> Iterator[Component]:
    """Yield the components of a pattern in the order in which it lists them."""
    return (found for found in patterns_in(pattern) if isinstance(found, Component))
