"""Queries for an order of events that bounds of clocks were inferred from, and which is assumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from uncertain_cep.query import Query
from uncertain_cep.query.syntax import Component
from uncertain_cep.query.syntax import Sequence as Ordered
from uncertain_cep.query.walks import components_of
from uncertain_cep.traces.constraints import AllBefore, Causal, Constraint

__all__ = ["assumed_in"]

Order = tuple[frozenset[str], frozenset[str]]


def assumed_in(query: Query, constraints: Sequence[Constraint]) -> list[str]:
    """Return in words which constraints a query asks about: two of its events are of the types of one."""
    items = query.pattern.items if isinstance(query.pattern, Ordered) else ()
    components = [item for item in items if isinstance(item, Component) and not item.negated]
    reasons = []
    for constraint in constraints:
        for first, then in _orders(constraint):
            pair = next(
                (
                    (one, other)
                    for one, other in combinations(components, 2)
                    if not first.isdisjoint(one.types) and not then.isdisjoint(other.types)
                ),
                None,
            )
            if pair is not None:
                reasons.append(
                    f"{pair[0].variable} before {pair[1].variable} is what the constraint {constraint} takes "
                    "for granted: with bounds that follow from it, that its pairs are in order is certain by "
                    "assumption, and proves nothing"
                )
                break
    return reasons


def _orders(constraint: Constraint) -> Iterator[Order]:
    """Yield the types of events that a constraint puts before those of others."""
    if isinstance(constraint, Causal):
        first, then = (frozenset(part.types) for part in components_of(constraint.query().pattern))
        yield first, then
    elif isinstance(constraint, AllBefore):
        yield frozenset([constraint.first]), frozenset([constraint.then])
    else:
        yield frozenset(constraint.parent[:1]), frozenset(constraint.child[:1])
        yield frozenset(constraint.child[1:]), frozenset(constraint.parent[1:])
