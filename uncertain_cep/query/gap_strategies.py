"""Strategies of single gaps, as negations of what must not be in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from uncertain_cep.query.syntax import Component, Pattern, Query, components_of
from uncertain_cep.query.syntax import Sequence as Series
from uncertain_cep.query.typed import Apply, Column, TypedExpression, variables_of

__all__ = ["NamedGaps", "named_gaps"]


@dataclass(frozen=True, slots=True)
class NamedGaps:
    """A pattern with a negation in each gap that has a strategy, and what these ask.

    Of those negations ``contiguous`` are asked nothing, and of these ``untied`` not even the partition.
    """

    pattern: Pattern
    predicates: tuple[TypedExpression, ...]
    contiguous: frozenset[str]
    untied: frozenset[str]


def named_gaps(query: Query, predicates: Sequence[TypedExpression]) -> NamedGaps:
    """Return the pattern of a checked query, and what its gaps add to some predicates.

    ``skip_till_next_match(a, b)`` forbids every event that b could have been: of its types, and with all
    predicates true that mention b and otherwise only what comes before it. Contiguity forbids every event, of
    the partition or of the stream.
    """
    wanted = {gap: given.strategy for given in query.gap_strategies for gap in given.gaps}
    if not wanted or not isinstance(query.pattern, Series):
        return NamedGaps(query.pattern, (), frozenset(), frozenset())
    items: list[Pattern] = []
    added: list[TypedExpression] = []
    contiguous: dict[str, str] = {}
    known: list[str] = []
    for component in components_of(query.pattern):
        name = component.variable
        strategy = wanted.get((known[-1], name)) if known and not component.negated else None
        if strategy not in (None, "skip_till_any_match"):
            absent = f"{strategy}({known[-1]}, {name})"
            is_next = strategy == "skip_till_next_match"
            types = component.types if is_next else ()
            items.append(Component(types, absent, False, True, component.position))
            if is_next:
                asked = [found for found in predicates if name in variables_of(found) <= {*known, name}]
                added += [_of_another(found, name, absent) for found in asked]
            else:
                contiguous[absent] = str(strategy)
        items.append(component)
        if not component.negated:
            known.append(name)
    untied = frozenset(name for name, strategy in contiguous.items() if strategy == "strict_contiguity")
    pattern = replace(query.pattern, items=tuple(items))
    return NamedGaps(pattern, tuple(added), frozenset(contiguous), untied)


def _of_another(expression: TypedExpression, name: str, other: str) -> TypedExpression:
    """Return an expression with another variable in place of one."""
    if isinstance(expression, Apply):
        return replace(
            expression, operands=tuple(_of_another(operand, name, other) for operand in expression.operands)
        )
    if isinstance(expression, Column) and expression.variable == name:
        return replace(expression, variable=other)
    return expression
