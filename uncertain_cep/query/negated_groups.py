"""Negated groups: conditions on them, and faults that show without a trace.

``!SEQ(N n, M m)`` forbids an n and a later m. A condition speaks of one of them and of events of the match,
or equalities tie all of them; anything else between them would count independent sets of a graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from uncertain_cep.errors import Fault
from uncertain_cep.query.branches import count_of_terms
from uncertain_cep.query.syntax import Attribute, Binary, Component, Expression, Query
from uncertain_cep.query.walks import components_of

__all__ = ["classes_of", "joint_faults", "ties_members"]

Node = tuple[str, str]
"""A variable and an attribute."""


def ties_members(predicate: Expression, components: Mapping[str, Component]) -> tuple[Node, Node] | None:
    """Return the attributes of two components of one negated group that a predicate equates; None if none."""
    match predicate:
        case Binary("=" | "==", Attribute() as one, Attribute() as other):
            groups = [components[part.variable].joint for part in (one, other) if part.variable in components]
            if len(groups) == 2 and groups[0] and groups[0] == groups[1] and one.variable != other.variable:
                return (one.variable, one.name), (other.variable, other.name)
    return None


def classes_of(pairs: Iterable[tuple[Node, Node]]) -> list[frozenset[Node]]:
    """Return the sets of attributes that pairs of equal ones make equal."""
    classes: dict[Node, frozenset[Node]] = {}
    for pair in pairs:
        merged = frozenset(pair).union(*(classes.get(node, frozenset()) for node in pair))
        classes.update(dict.fromkeys(merged, merged))
    return list(dict.fromkeys(classes.values()))


def joint_faults(query: Query) -> Iterator[Fault]:
    """Yield the faults of negated groups that stand where they are not answered, or are tied in part."""
    components = {part.variable: part for part in components_of(query.pattern)}
    groups: dict[str, list[Component]] = {}
    for part in components.values():
        if part.joint:
            groups.setdefault(part.joint, []).append(part)
    if groups and count_of_terms(query.pattern) > 1:
        first = next(iter(groups.values()))[0].position
        message = "OR chooses among negations beside a negated group: give each of them a query of its own"
        yield Fault(message, first.line, first.column)
    pairs = [pair for predicate in query.where if (pair := ties_members(predicate, components)) is not None]
    for nodes in classes_of(pairs):
        tied = {variable for variable, _ in nodes}
        group = groups[components[next(iter(tied))].joint]
        left_out = [part.variable for part in group if part.variable not in tied]
        if left_out:
            one = min(nodes)
            message = (
                f"equalities tie all events of a negated group, or none: {left_out[0]} is left out, write "
                f"{one[0]}.{one[1]} = {left_out[0]}.{one[1]} besides"
            )
            yield Fault(message, group[0].position.line, group[0].position.column)
