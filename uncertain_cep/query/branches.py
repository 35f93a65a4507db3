"""The OR-free patterns that a pattern stands for, and the order that each asks of its events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, Literal

from uncertain_cep.query.syntax import Component, Conjunction, Disjunction, Pattern
from uncertain_cep.query.syntax import Sequence as Series
from uncertain_cep.query.walks import components_of

__all__ = [
    "MOST_BRANCHES",
    "MOST_TERMS",
    "Branch",
    "GapPlace",
    "PartialOrder",
    "Term",
    "all_choices",
    "branches_of",
    "branches_of_items",
    "count_of_expansions",
    "count_of_terms",
    "covering_choices",
    "expansions",
    "has_countless_readings",
    "is_linear",
    "joined_branch",
    "order_of",
    "set_variables",
    "some_expansions",
]

MOST_BRANCHES: Final = 256
"""Most OR-free patterns that are planned beforehand: of a pattern, or of an item of a SEQ with options."""

MOST_TERMS: Final = 255
"""Most terms whose sum is the confidence of a signature: eight negations that OR chooses among."""


@dataclass(frozen=True, slots=True)
class Term:
    """A summand of the probability that some reading of a pattern has a match of a given signature.

    Its weight, 1 or -1, is of the probability of a match that all the negations spare. ``is_reading`` tells
    whether these are the negations of one reading.
    """

    weight: int
    negated: frozenset[str]
    is_reading: bool


@dataclass(frozen=True, slots=True)
class Branch:
    """The OR-free patterns with the same positive components: readings that can give one signature.

    No variable stands twice in a pattern, so they differ in their negations, and in nothing else. The terms
    are by inclusion and exclusion over the readings: what several of them have in common is the pattern with
    the negations of all those. No term is above the union, so their sum hardly cancels: of k terms the
    relative error is at most k times that of one.
    """

    pattern: Pattern
    terms: tuple[Term, ...]
    left_out: frozenset[str] = frozenset()
    """The variables of lists that are empty, since an optional component is left out."""


@dataclass(frozen=True, slots=True)
class GapPlace:
    """Where the events of a negated component must not be.

    ``after`` and ``before`` are bits of the positive components behind whose last and before whose first
    event the gap lies; 0 at an end of the match.
    """

    place: Literal["leading", "between", "trailing"]
    after: int
    before: int


@dataclass(frozen=True, slots=True)
class PartialOrder:
    """The order of an OR-free pattern with sets, by the numbers of its positive components in pattern order.

    ``before`` has for each component the bits of those, all lower, whose events come before all of its own;
    ``is_set`` whether it stands in AND, where a Kleene component takes a set; ``gaps`` each negated
    component's.
    """

    before: tuple[int, ...]
    is_set: tuple[bool, ...]
    gaps: tuple[GapPlace, ...]


def count_of_expansions(pattern: Pattern) -> int:
    """Return how many OR-free patterns a pattern stands for, without making them."""
    if isinstance(pattern, Component):
        return 1 if pattern.least else 2
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
        if not pattern.least:
            yield _nothing(pattern)
        yield _taken(pattern)
        return
    if isinstance(pattern, Disjunction):
        for item in pattern.items:
            yield from expansions(item)
        return
    for choice in product(*(list(expansions(item)) for item in pattern.items)):
        yield _joined(pattern, choice)


def _joined(pattern: Series | Conjunction, choice: Sequence[Pattern]) -> Pattern:
    """Return SEQ or AND of OR-free patterns, flat as those of :func:`expansions` are."""
    items: list[Pattern] = []
    for item in choice:
        items.extend(item.items if isinstance(item, type(pattern)) else [item])
    if not items:
        return replace(pattern, items=())
    alone = items[0]
    if len(items) > 1 or (isinstance(alone, Component) and (alone.kleene or alone.negated)):
        return replace(pattern, items=tuple(items))
    return alone


def _nothing(component: Component) -> Series:
    """Return what stands for an optional component that is left out."""
    return Series((), component.position)


def _taken(component: Component) -> Component:
    """Return a component that takes an event at least."""
    return component if component.least else replace(component, least=1)


def count_of_terms(pattern: Pattern) -> int:
    """Return the number of terms of the branch that has most, without making them."""
    return max(_counted(pattern))


def _counted(pattern: Pattern) -> tuple[int, int]:
    """Return the most terms of branches with positive components, and those of the one without; or 0."""
    if isinstance(pattern, Component):
        return (0, 1) if pattern.negated else (1, 0 if pattern.least else 1)
    counts = [_counted(item) for item in pattern.items]
    without = 1
    if isinstance(pattern, Disjunction):
        for _, own in counts:
            without *= 1 + own
        return max(found for found, _ in counts), without - 1
    positive = 1
    for found, own in counts:
        positive *= max(found, own)
        without *= own
    return (positive if any(found for found, _ in counts) else 0), without


def branches_of(pattern: Pattern) -> tuple[Branch, ...]:
    """Return the OR-free patterns that a pattern stands for, those that can give one signature together."""
    if isinstance(pattern, Component):
        negated = frozenset([pattern.variable] if pattern.negated else ())
        taken = Branch(_taken(pattern), (Term(1, negated, True),))
        if pattern.least:
            return (taken,)
        empty = frozenset([pattern.variable] if pattern.kleene else ())
        return Branch(_nothing(pattern), (Term(1, frozenset(), True),), empty), taken
    if isinstance(pattern, Disjunction):
        return _alternatives(pattern)
    return tuple(joined_branch(pattern, choice) for choice in product(*map(branches_of, pattern.items)))


def joined_branch(pattern: Series | Conjunction, choice: Sequence[Branch]) -> Branch:
    """Return the branch of SEQ or AND that has one branch of each item."""
    terms: tuple[Term, ...] = (Term(1, frozenset(), True),)
    for branch in choice:
        terms = tuple(_both(one, other) for one in terms for other in branch.terms)
    left_out = frozenset[str]().union(*(branch.left_out for branch in choice))
    return Branch(_joined(pattern, [branch.pattern for branch in choice]), terms, left_out)


def has_countless_readings(pattern: Pattern) -> bool:
    """Return whether a SEQ has so many readings that they are planned once events are there."""
    if not isinstance(pattern, Series) or count_of_expansions(pattern) <= MOST_BRANCHES:
        return False
    has_options = any(not component.least for component in components_of(pattern))
    return has_options and all(count_of_expansions(item) <= MOST_BRANCHES for item in _flat(pattern))


def _flat(pattern: Series) -> Iterator[Pattern]:
    """Yield the items of a SEQ, those of a SEQ in it one by one."""
    for item in pattern.items:
        if isinstance(item, Series):
            yield from _flat(item)
        else:
            yield item


def branches_of_items(pattern: Series) -> tuple[tuple[Branch, ...], ...]:
    """Return the branches of each item of a SEQ: one of each make a branch of it, in the order of these."""
    return tuple(map(branches_of, _flat(pattern)))


def _takes(branch: Branch) -> int:
    """Return how many components of a branch take events."""
    return sum(not component.negated for component in components_of(branch.pattern))


def all_choices(items: Sequence[Sequence[Branch]]) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of a branch of each item, for each branch of a SEQ that takes an event."""
    taken = [[_takes(branch) for branch in item] for item in items]
    for choice in product(*map(range, map(len, items))):
        if any(own[number] for own, number in zip(taken, choice, strict=True)):
            yield choice


def covering_choices(items: Sequence[Sequence[Branch]]) -> list[tuple[int, ...]]:
    """Return choices among which every branch of an item stands wherever it can.

    Each stands with all that is optional left out, with all of it taken, and, where all before it can be left
    out, as the first. At most three for each branch of an item; the first has most components.
    """
    taken = [[_takes(branch) for branch in item] for item in items]
    fewest = [min(range(len(own)), key=own.__getitem__) for own in taken]
    most = [max(range(len(own)), key=own.__getitem__) for own in taken]
    found = [tuple(most)]
    for place, own in enumerate(taken):
        for number in range(len(own)):
            found += [(*rest[:place], number, *rest[place + 1 :]) for rest in (most, fewest)]
            if not any(taken[k][fewest[k]] for k in range(place)):
                found.append((*fewest[:place], number, *most[place + 1 :]))
    return [
        choice
        for choice in dict.fromkeys(found)
        if any(own[number] for own, number in zip(taken, choice, strict=True))
    ]


def some_expansions(pattern: Pattern) -> Iterator[Pattern]:
    """Yield the expansions of a pattern; of one with countless readings those of :func:`covering_choices`."""
    if not has_countless_readings(pattern):
        yield from expansions(pattern)
        return
    assert isinstance(pattern, Series)
    items = branches_of_items(pattern)
    for choice in covering_choices(items):
        chosen = [item[number] for item, number in zip(items, choice, strict=True)]
        yield joined_branch(pattern, chosen).pattern


def _both(one: Term, other: Term) -> Term:
    """Return the product of two terms: a match that the negations of both spare."""
    return Term(one.weight * other.weight, one.negated | other.negated, one.is_reading and other.is_reading)


def _alternatives(pattern: Disjunction) -> tuple[Branch, ...]:
    """Return the branches of an OR; those of its items that take no event are one, if lists are the same."""
    found: list[Branch] = []
    without: dict[frozenset[str], int] = {}
    for branch in (branch for item in pattern.items for branch in branches_of(item)):
        absent = without.get(branch.left_out)
        if not all(component.negated for component in components_of(branch.pattern)):
            found.append(branch)
        elif absent is None:
            without[branch.left_out] = len(found)
            found.append(branch)
        else:
            known = found[absent]
            common = [_both(one, other) for one in known.terms for other in branch.terms]
            excluded = [Term(-term.weight, term.negated, False) for term in common]
            parts = (*components_of(known.pattern), *components_of(branch.pattern))
            terms = (*known.terms, *branch.terms, *excluded)
            found[absent] = Branch(Series(parts, pattern.position), terms, branch.left_out)
    return tuple(found)


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
