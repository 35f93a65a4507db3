"""UNTIL: no event of some kind between the first and the last event of a part of a pattern.

The ticks of the events in between are forbidden, too, so that negations in the gaps would say less. It is a
negation beside the whole, bound by two conditions on times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NoReturn

from uncertain_cep.query.syntax import (
    Binary,
    Component,
    Conjunction,
    Expression,
    Pattern,
    Position,
    Sequence,
    Time,
)

__all__ = ["Until", "without_until"]

Refuse = Callable[[str, Position], NoReturn]


@dataclass(frozen=True, slots=True)
class Until:
    """``item UNTIL U u``, as it is written."""

    items: tuple[Pattern]
    spoiler: Component
    """``!U u``"""
    position: Position


def without_until(pattern: Pattern | Until, refuse: Refuse) -> tuple[Pattern, tuple[Expression, ...]]:
    """Return a pattern with negations beside it in place of UNTIL, and what they are bound by.

    ``refuse`` raises an error about a position: UNTIL stands where its ends are not those of two events.
    """
    spoilers: list[Component] = []
    conditions: list[Expression] = []

    def visit(node: Pattern | Until, *, in_row: bool) -> Pattern:
        if isinstance(node, Component):
            return node
        if not isinstance(node, Until):
            in_row = in_row and isinstance(node, Sequence)
            return replace(node, items=tuple(visit(item, in_row=in_row) for item in node.items))
        if not in_row:
            refuse("UNTIL stands behind a SEQ(...), or behind an item of one", node.position)
        inner = visit(node.items[0], in_row=True)
        name, position = node.spoiler.variable, node.position
        first, last = (_end(inner, which, position, refuse) for which in ("first", "last"))
        if first == last:
            refuse(f"{first.variable} is one event, and nothing is between its first and its last", position)
        spoilers.append(node.spoiler)
        time = Time(name, None, position)
        conditions.extend((Binary(">", time, first, position), Binary("<", time, last, position)))
        return inner

    changed = visit(pattern, in_row=True)
    if spoilers:
        changed = Conjunction((changed, *spoilers), pattern.position)
    return changed, tuple(conditions)


def _end(pattern: Pattern, which: Literal["first", "last"], position: Position, refuse: Refuse) -> Time:
    """Return the time of the first or the last event of a pattern."""
    while isinstance(pattern, Sequence):
        pattern = pattern.items[0 if which == "first" else -1]
    if not isinstance(pattern, Component) or pattern.negated or not pattern.least:
        refuse("UNTIL needs an event that is always there at both ends of what it stands behind", position)
    return Time(pattern.variable, which if pattern.kleene else None, position)
