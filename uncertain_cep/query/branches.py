"""The OR-free patterns that a pattern stands for, and the order that each asks of its events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, Literal

from uncertain_cep.query.syntax import Component, Conjunction, Disjunction, Pattern
from uncertain_cep.query.syntax import Sequence as Series

__all__ = [
    "MOST_BRANCHES",
    "GapPlace",
    "PartialOrder",
    "count_of_expansions",
    "expansions",
    "is_linear",
    "order_of",
    "set_variables",
]

MOST_BRANCHES: Final = 256
"""Most OR-free patterns that a pattern may stand for."""


@dataclass(frozen=True, slots=True)
class GapPlace:
    """Where the events of a negated component must not be.

    Attributes
    ----------
    place : {"leading", "between", "trailing"}
    after, before : int
        Bits of the positive components behind whose last and before whose first event the gap lies; 0 at an
        end of the match.
    """

    place: Literal["leading", "between", "trailing"]
    after: int
    before: int


@dataclass(frozen=True, slots=True)
class PartialOrder:
    """The order of an OR-free pattern with sets, by the numbers of its positive components in pattern order.

    Attributes
    ----------
    before : tuple of int
        For each component the bits of those whose events come before all of its own; lower numbers only.
    is_set : tuple of bool
        Whether it stands in AND: a Kleene component there takes a set, elsewhere a sequence.
    gaps : tuple of GapPlace
        One for each negated component, in pattern order.
    """

    before: tuple[int, ...]
    is_set: tuple[bool, ...]
    gaps: tuple[GapPlace, ...]


def count_of_expansions(pattern: Pattern) -> int:
    """Return how many OR-free patterns a pattern stands for, without making them."""
    if isinstance(pattern, Component):
        return 1
    counts = [count_of_expansions(item) for item in pattern.items]
    if isinstance(pattern, Disjunction):
        return sum(counts)
    total = 1
    for count in counts:
        total *= count
    return total


def expansions(pattern: Pattern) -> Iterator[Pattern]:
    """Yield the OR-free patterns whose disjunction a pattern is, in the order of the text.

    SEQ in SEQ and AND in AND are flat, and so is a compound of one item; only a Kleene component alone in AND
    keeps it, since it takes a set there.
    """
    if isinstance(pattern, Component):
        yield pattern
        return
    if isinstance(pattern, Disjunction):
        for item in pattern.items:
            yield from expansions(item)
        return
    for choice in product(*(list(expansions(item)) for item in pattern.items)):
        items: list[Pattern] = []
        for item in choice:
            items.extend(item.items if isinstance(item, type(pattern)) else [item])
        alone = items[0]
        if len(items) > 1 or (isinstance(alone, Component) and (alone.kleene or alone.negated)):
            yield replace(pattern, items=tuple(items))
        else:
            yield alone


def is_linear(pattern: Pattern) -> bool:
    """Return whether an expansion is a component, or a SEQ of components."""
    if isinstance(pattern, Component):
        return True
    return isinstance(pattern, Series) and all(isinstance(item, Component) for item in pattern.items)


def set_variables(pattern: Pattern) -> frozenset[str]:
    """Return the variables of an expansion that stand directly in AND."""
    if isinstance(pattern, Component):
        return frozenset()
    own = [item.variable for item in pattern.items if isinstance(item, Component)]
    inner = (set_variables(item) for item in pattern.items)
    return frozenset(own if isinstance(pattern, Conjunction) else ()).union(*inner)


def order_of(pattern: Pattern) -> PartialOrder:
    """Return the order that an expansion asks of its events."""
    before: list[int] = []
    is_set: list[bool] = []
    gaps: list[GapPlace] = []

    def visit(node: Pattern, earlier: int, in_set: bool) -> int:
        if isinstance(node, Component):
            before.append(earlier)
            is_set.append(in_set)
            return 1 << (len(before) - 1)
        if isinstance(node, Series):
            return series(node.items, earlier)
        own = 0
        for item in node.items:
            own |= visit(item, earlier, True)
        return own

    def series(items: Sequence[Pattern], earlier: int) -> int:
        own = previous = waiting = 0
        for item in items:
            if isinstance(item, Component) and item.negated:
                waiting += 1
                continue
            # The gaps before an item come after those inside of the items before it, and before its own.
            place = len(gaps)
            current = visit(item, earlier | own, False)
            gap = GapPlace("between" if previous else "leading", previous, current)
            gaps[place:place] = [gap] * waiting
            previous, waiting = current, 0
            own |= current
        gaps.extend([GapPlace("trailing", previous, 0)] * waiting)
        return own

    visit(pattern, 0, False)
    return PartialOrder(tuple(before), tuple(is_set), tuple(gaps))
