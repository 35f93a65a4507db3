"""The pattern of one match: an event for each component, in parts and in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from uncertain_cep.query.repeated_groups import list_of, number_of, repeated_groups, with_counts
from uncertain_cep.query.syntax import Component, Conjunction, Disjunction, Pattern
from uncertain_cep.query.syntax import Sequence as Ordered
from uncertain_cep.query.walks import components_of

__all__ = ["before", "shown_variable", "with_events"]

_ELEMENT: Final = "."
"""Between a list and the number of an element: no variable has it in its name."""

_Around = type[Ordered] | type[Conjunction]


def with_events(pattern: Pattern, members: Mapping[str, Sequence[int]]) -> Pattern | None:
    """Return a pattern of the events of a match, one for each component; None where it has none.

    ``members`` are the numbers of the events of each variable; of a repeated group ``b[2]`` is that of the
    second iteration.
    """
    counts = [_iterations(group, members) for group in repeated_groups(pattern)]
    return _of_members(with_counts(pattern, counts), members, Ordered)


def _of_members(pattern: Pattern, members: Mapping[str, Sequence[int]], around: _Around) -> Pattern | None:
    if isinstance(pattern, Component):
        if pattern.negated or pattern.variable not in members:
            return None
        numbers = members[pattern.variable]
        iteration = number_of(pattern.variable)
        singles = [
            Component(
                (f"e{number}",),
                f"{list_of(pattern.variable)}{_ELEMENT}{iteration or place}"
                if iteration or pattern.kleene
                else pattern.variable,
                kleene=False,
                negated=False,
                position=pattern.position,
            )
            for place, number in enumerate(numbers, 1)
        ]
        return singles[0] if len(singles) == 1 else around(tuple(singles), pattern.position)
    kind: _Around = Ordered
    if isinstance(pattern, Conjunction):
        kind = Conjunction
    elif isinstance(pattern, Disjunction):
        kind = around
    items = [part for item in pattern.items if (part := _of_members(item, members, kind)) is not None]
    if not items:
        return None
    return items[0] if len(items) == 1 else kind(tuple(items), pattern.position)


def _iterations(group: Pattern, members: Mapping[str, Sequence[int]]) -> int:
    """Return how often a repeated group stands in a match."""
    lists = {part.variable for part in components_of(group)}
    return max((number_of(name) for name in members if list_of(name) in lists), default=0)


def shown_variable(variable: str) -> str:
    """Return a variable as a query writes it, or an element of a list."""
    name, _, place = variable.partition(_ELEMENT)
    return f"{name}[{place}]" if place else name


def before(pattern: Pattern, variable: str) -> list[str]:
    """Return the variables that have to be just before one, in the order of the pattern."""
    if isinstance(pattern, Component):
        return []
    for place, item in enumerate(pattern.items):
        if variable in {leaf.variable for leaf in components_of(item)}:
            inner = before(item, variable)
            if inner or not isinstance(pattern, Ordered) or not place:
                return inner
            return _last(pattern.items[place - 1])
    return []


def _last(pattern: Pattern) -> list[str]:
    """Return the variables that can be last."""
    if isinstance(pattern, Component):
        return [pattern.variable]
    items = pattern.items[-1:] if isinstance(pattern, Ordered) else pattern.items
    return [name for item in items for name in _last(item)]
