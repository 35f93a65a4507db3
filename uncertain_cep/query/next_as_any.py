"""Skip till next match read as skip till any match, where the probability of a match is the same.

Say that each condition is of one event besides the first, or ties all by ``[k]``. In every world a first
event then begins a match under one strategy if and only if it does under the other. Of a match e1, f2, ..,
fl under skip till any take for j = 2 .. l the earliest event behind the one before that can be taken for j.
By induction it is no later than fj, which comes after f(j-1) and meets all that is asked. Nothing could have
been taken before it, so this is a match under skip till next, of the same first event and in the window.

So probabilities of groups by the first event, or by what all events agree on, are the same, and no event
forbids any. That does not hold for several matches, for ties that sequences break, nor for groups by later
events.
"""

from __future__ import annotations

from dataclasses import replace

from uncertain_cep.query.syntax import (
    Attribute,
    Component,
    Expression,
    Query,
    Sequence,
    Time,
    expressions_in,
)

__all__ = ["next_as_any"]


def next_as_any(query: Query) -> Query:
    """Return a query for groups under skip till any match where that has the same probabilities."""
    clause, pattern = query.probability, query.pattern
    if clause is None or query.strategy != "skip_till_next_match" or query.gap_strategies:
        return query
    if clause.at_least > 1 or not isinstance(pattern, Sequence):
        return query
    components = [item for item in pattern.items if isinstance(item, Component)]
    is_plain = all(not item.negated and not item.kleene and item.least == 1 for item in components)
    if len(components) < len(pattern.items) or not is_plain:
        return query
    first = components[0].variable
    later = {component.variable for component in components[1:]}
    if any(group.variable in later or group.name in later for group in clause.by):
        return query
    if any(len(_later_variables(condition, first)) > 1 for condition in query.where):
        return query
    return replace(query, strategy="skip_till_any_match", probability=replace(clause, reads_any=True))


def _later_variables(condition: Expression, first: str) -> set[str]:
    """Return the variables of a condition besides the first one."""
    parts = [part for part in expressions_in(condition) if isinstance(part, Attribute | Time)]
    return {part.variable for part in parts} - {first}
