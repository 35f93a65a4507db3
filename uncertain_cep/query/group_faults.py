"""Faults of repeated groups that show without a trace."""

from __future__ import annotations

from collections.abc import Iterator

from uncertain_cep.errors import Fault
from uncertain_cep.query.branches import count_of_terms
from uncertain_cep.query.repeated_groups import lists_by_iteration, repeated_groups
from uncertain_cep.query.syntax import (
    Aggregate,
    Attribute,
    Component,
    Conjunction,
    Expression,
    Pattern,
    Position,
    Query,
    Repeated,
    Time,
    expressions_in,
)
from uncertain_cep.query.walks import components_of, patterns_in

__all__ = ["group_faults"]


def group_faults(query: Query, most_components: int) -> Iterator[Fault]:
    """Yield the faults of the repeated groups of a query, and of lists by iteration outside of any."""
    groups = repeated_groups(query.pattern)
    inside = {part.variable for group in groups for part in components_of(group)}
    for name in sorted(lists_by_iteration(query.pattern) - inside):
        component = next(part for part in components_of(query.pattern) if part.variable == name)
        message = (
            f"{name} is a single event: write it without [], or repeat the group that it stands in, such as "
            f"SEQ({component.types[0] if component.types else 'ANY'} {name}[])+"
        )
        yield _fault(message, component.position)
    for group in groups:
        yield from _faults_within(group, most_components)
    yield from _faults_in_sets(query.pattern)
    for condition in query.where if len(groups) > 1 else ():
        yield from _faults_of_two(condition, groups)


def _faults_within(group: Repeated, most_components: int) -> Iterator[Fault]:
    inner = [node for node in patterns_in(group.items[0]) if isinstance(node, Repeated)]
    if inner:
        yield _fault(
            "a repeated group in a repeated group would have lists of lists: repeat one", inner[0].position
        )
        return
    parts = list(components_of(group))
    for component in parts:
        name = component.variable
        if component.negated or component.by_iteration:
            continue
        if component.kleene:
            message = (
                f"{name} is repeated in a repeated group, and would be a list of lists: write it as one "
                f"event of each iteration, {name}[] without + * {{}}, or make it a group of its own"
            )
        else:
            message = f"{name} stands in a repeated group, one event an iteration: write {name}[]"
        yield _fault(message, component.position)
    if group.fewest * len(parts) > most_components:
        message = (
            f"the group stands {group.fewest} times, which is {group.fewest * len(parts):,} components, and "
            f"at most {most_components} are answered"
        )
        yield _fault(message, group.position)
    if count_of_terms(group.items[0]) > 1:
        message = (
            "OR chooses among negations in a repeated group, and one confidence would be a sum over all that "
            "each iteration may choose: give each of the negations a query of its own"
        )
        yield _fault(message, group.position)


def _faults_in_sets(pattern: Pattern) -> Iterator[Fault]:
    for node in patterns_in(pattern):
        if not isinstance(node, Conjunction):
            continue
        taking = [part for part in node.items if not (isinstance(part, Component) and part.negated)]
        # Beside negations alone it is no set.
        for part in taking if len(taking) > 1 else ():
            for group in repeated_groups(part):
                yield _fault("a repeated group stands in SEQ(...), not in AND(...)", group.position)


def _faults_of_two(condition: Expression, groups: tuple[Repeated, ...]) -> Iterator[Fault]:
    """Yield the fault of a condition that speaks of each iteration of two groups."""
    of_groups = [{part.variable: part for part in components_of(group)} for group in groups]
    spoken: dict[int, str] = {}
    for part in expressions_in(condition):
        if not isinstance(part, Attribute | Aggregate | Time):
            continue
        for number, variables in enumerate(of_groups):
            if part.variable in variables and _speaks_of_each(part):
                spoken.setdefault(number, part.variable)
    if len(spoken) > 1:
        one, other = [*spoken.values()][:2]
        message = (
            f"{one} and {other} stand in two repeated groups, whose iterations are not the same: compare one "
            f"of them with {other}[1], {other}[{other}.LEN] or an aggregate"
        )
        yield _fault(message, condition.position)


def _speaks_of_each(part: Attribute | Aggregate | Time) -> bool:
    index = part.index
    return index in (None, "current", "previous", "before") or (isinstance(index, int) and index < 0)


def _fault(message: str, position: Position) -> Fault:
    return Fault(message, position.line, position.column)
