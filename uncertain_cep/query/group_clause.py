"""RETURN PROBABILITY: faults that show without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncertain_cep.errors import Fault
from uncertain_cep.query.expression_text import quote_name
from uncertain_cep.query.syntax import Component, GroupName, Position, Probability, Query, expressions_in
from uncertain_cep.query.walks import components_of, is_confidence

__all__ = ["probability_faults"]

_MOST_MATCHES: Final = 1_000
"""The largest k of OF AT LEAST k MATCHES: the cost grows with its square."""

_OWN: Final = ("bucket", "exact", "std_error", "probability_lower", "probability_upper", "confidence")
"""Columns that the result may have beside those of BY, and the name that HAVING knows the probability by."""


def _fault(message: str, position: Position) -> Fault:
    return Fault(message, position.line, position.column)


def probability_faults(query: Query, clause: Probability) -> Iterator[Fault]:
    """Yield the faults of the clause, and of clauses that speak of matches beside it."""
    if query.non_overlapping:
        yield _fault(
            "OUTPUT NON OVERLAPPING chooses among matches, and RETURN PROBABILITY returns groups of them: "
            "leave one of them out",
            query.position_of("OUTPUT"),
        )
    conditions = () if query.having is None else query.having.conditions
    ordered = [part for item in query.order_by for part in expressions_in(item.expression)]
    kept_by = [part for condition in conditions for part in expressions_in(condition)]
    for keyword, present in (
        ("HAVING", query.min_confidence is not None or any(map(is_confidence, kept_by))),
        ("ORDER BY", query.order_by_confidence or any(map(is_confidence, ordered))),
    ):
        if present:
            yield _fault(
                f"CONFIDENCE is of matches, and RETURN PROBABILITY returns groups of them: {keyword} "
                "PROBABILITY speaks of these",
                query.position_of(keyword),
            )
    if not 1 <= clause.at_least <= _MOST_MATCHES:
        yield _fault(f"OF AT LEAST takes from 1 to {_MOST_MATCHES:,} matches", clause.position)
    yield from _name_faults(query, clause)
    if clause.every is not None and clause.every.amount == 0:
        yield _fault("a bucket of 0 holds no time: EVERY must be at least one tick", clause.every.position)


def _name_faults(query: Query, clause: Probability) -> Iterator[Fault]:
    """Yield faults of the names of BY and of the result's columns."""
    components = {component.variable: component for component in components_of(query.pattern)}
    names = [group.text for group in clause.by]
    for number, group in enumerate(clause.by):
        if group.text in names[:number]:
            yield _fault(f"BY names {group.text} twice", group.position)
        component = components.get(group.name if group.variable is None else group.variable)
        if component is not None:
            yield from _component_faults(group, component)
        elif group.variable is not None:
            yield _fault(f"unknown variable {group.variable}", group.position)
        if group.text in (*_OWN, clause.name):
            yield _fault(
                f"the output has a column {group.text} already: rename the attribute, or name the "
                "probability with AS",
                group.position,
            )
    if clause.name in (*_OWN, *components):
        message = (
            f"{quote_name(clause.name)} is another column of the result, or a variable: name the probability "
        )
        yield _fault(f"{message}otherwise", clause.position)


def _component_faults(group: GroupName, component: Component) -> Iterator[Fault]:
    name = component.variable
    if component.negated:
        yield _fault(f"BY {group.text}: {name} is negated, so no event of a match is {name}", group.position)
    elif component.kleene:
        yield _fault(
            f"BY {group.text}: {name} is several events, and a match has one group: name a variable of one "
            "event",
            group.position,
        )
