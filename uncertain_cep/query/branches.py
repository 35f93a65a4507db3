"""The OR-free patterns that a pattern stands for, and the order that each asks of its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from math import prod
from typing import Final, Literal

from uncertain_cep.query.repeated_groups import has_repeated_groups, list_of, with_few_iterations
from uncertain_cep.query.syntax import (
    Component,
    Conjunction,
    Disjunction,
    Iteration,
    LeftOut,
    Option,
    Pattern,
    Position,
    Repeated,
)
from uncertain_cep.query.syntax import Sequence as Series
from uncertain_cep.query.walks import components_of, has_options, patterns_in

__all__ = [
    "MOST_BRANCHES",
    "MOST_TERMS",
    "Alternative",
    "Branch",
    "GapPlace",
    "PartialOrder",
    "ReadingTerm",
    "alternatives_of",
    "branches_of",
    "count_of_expansions",
    "count_of_terms",
    "covering_choices",
    "expansions",
    "has_countless_readings",
    "is_linear",
    "keeps_order",
    "order_of",
    "set_variables",
    "some_expansions",
]

MOST_BRANCHES: Final = 256
"""Most OR-free patterns that are planned beforehand, of a pattern or of a part of one with options; and most
alternatives of such a pattern."""

MOST_TERMS: Final = 255
"""Most terms whose sum is the confidence of a signature: eight negations that OR chooses among."""


@dataclass(frozen=True, slots=True)
class ReadingTerm:
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
    terms: tuple[ReadingTerm, ...]
    left_out: frozenset[str] = frozenset()
    """The variables of lists that are empty, since an optional component is left out."""


@dataclass(frozen=True, slots=True)
class GapPlace:
    """Where the events of a negated component must not be.

    ``after`` and ``before`` are bits of the positive components behind whose last and before whose first
    event the gap lies; 0 at an end of the match, and ``beside`` a set, where conditions on times alone bound
    it.
    """

    place: Literal["leading", "between", "trailing", "beside"]
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
    if isinstance(pattern, Disjunction | Option):
        return sum(counts) + isinstance(pattern, Option)
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
    if isinstance(pattern, Option):
        yield _nothing(pattern)
        yield from filter(_takes_event, expansions(pattern.items[0]))
        return
    if isinstance(pattern, LeftOut):
        yield _nothing(pattern)
        return
    if isinstance(pattern, Iteration):
        yield from filter(_takes_event, expansions(pattern.items[0]))
        return
    if isinstance(pattern, Disjunction):
        for item in pattern.items:
            yield from expansions(item)
        return
    assert not isinstance(pattern, Repeated)
    for choice in product(*(list(expansions(item)) for item in pattern.items)):
        yield _joined(pattern, [choice[k] for k in _needed(choice)])


def _needed(choice: Sequence[Pattern]) -> list[int]:
    """Return the numbers of items but for negations of what other readings have."""
    names = {component.variable for item in choice for component in components_of(item)}
    return [k for k, item in enumerate(choice) if not (isinstance(item, Component) and item.needs - names)]


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


def _nothing(option: Component | Option | LeftOut) -> Series:
    """Return the empty pattern in place of what is optional and left out."""
    return Series((), option.position)


def _takes_event(pattern: Pattern) -> bool:
    return any(not component.negated for component in components_of(pattern))


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
    if isinstance(pattern, Option | Iteration):
        return counts[0][0], int(isinstance(pattern, Option))
    if isinstance(pattern, Disjunction):
        for _, terms in counts:
            without *= 1 + terms
        return max(most_terms for most_terms, _ in counts), without - 1
    positive = 1
    for most_terms, terms in counts:
        positive *= max(most_terms, terms)
        without *= terms
    return (positive if any(most_terms for most_terms, _ in counts) else 0), without


def branches_of(pattern: Pattern) -> tuple[Branch, ...]:
    """Return the OR-free patterns that a pattern stands for, those that can give one signature together."""
    if isinstance(pattern, Component):
        negated = frozenset([pattern.variable] if pattern.negated else ())
        taken = Branch(_taken(pattern), (ReadingTerm(1, negated, True),))
        if pattern.least:
            return (taken,)
        empty = frozenset([pattern.variable] if pattern.kleene else ())
        return Branch(_nothing(pattern), (ReadingTerm(1, frozenset(), True),), empty), taken
    if isinstance(pattern, Option | LeftOut):
        empty_branch = Branch(_nothing(pattern), (ReadingTerm(1, frozenset(), True),), _lists_of(pattern))
        return empty_branch, *(
            branch for item in pattern.items for branch in branches_of(item) if _takes(branch)
        )
    if isinstance(pattern, Iteration):
        return tuple(filter(_takes, branches_of(pattern.items[0])))
    if isinstance(pattern, Disjunction):
        return _merged(chain.from_iterable(map(branches_of, pattern.items)), pattern.position)
    assert not isinstance(pattern, Repeated)
    return tuple(_joined_branch(pattern, choice) for choice in product(*map(branches_of, pattern.items)))


def _lists_of(pattern: Pattern) -> frozenset[str]:
    """Return the variables of lists that are empty where a pattern is left out."""
    lists = {part.variable for part in components_of(pattern) if part.kleene}
    for node in patterns_in(pattern):
        if isinstance(node, LeftOut):
            lists.update(node.lists)
        elif isinstance(node, Iteration):
            lists.update(list_of(part.variable) for part in components_of(node) if not part.negated)
    return frozenset(lists)


def _joined_branch(pattern: Series | Conjunction, choice: Sequence[Branch]) -> Branch:
    """Return the branch of SEQ or AND that has one branch of each item."""
    terms: tuple[ReadingTerm, ...] = (ReadingTerm(1, frozenset(), True),)
    choice = [choice[k] for k in _needed([branch.pattern for branch in choice])]
    for branch in choice:
        terms = tuple(_both(one, other) for one in terms for other in branch.terms)
    left_out = frozenset[str]().union(*(branch.left_out for branch in choice))
    return Branch(_joined(pattern, [branch.pattern for branch in choice]), terms, left_out)


def has_countless_readings(pattern: Pattern) -> bool:
    """Return whether a pattern has so many readings that they are planned once events are there."""
    return (
        has_options(pattern)
        and not _is_small(pattern)
        and 0 < _count_of_alternatives(pattern) <= MOST_BRANCHES
    )


def _is_small(pattern: Pattern) -> bool:
    return count_of_expansions(pattern) <= MOST_BRANCHES


Items = tuple[tuple[Branch, ...], ...]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Items in a row, of which a reading has one branch each.

    ``taking`` has first and one past the last of items that take an event, one of them at least. Readings in
    which they do not are those of another alternative, or none.
    """

    items: Items
    taking: tuple[Span, ...]
    taken: tuple[tuple[int, ...], ...]
    """How many components of each branch of each item take events."""

    @property
    def choices(self) -> Iterator[tuple[int, ...]]:
        """The numbers of a branch of each item, for each reading."""
        return filter(self.is_reading, product(*map(range, map(len, self.items))))

    def is_reading(self, choice: Sequence[int]) -> bool:
        """Return whether a branch of each item makes a reading of this alternative."""
        taken = [takes[number] for takes, number in zip(self.taken, choice, strict=True)]
        return all(any(taken[first:end]) for first, end in self.taking)

    def branch_of(self, choice: Sequence[int]) -> Branch:
        """Return the branch that a branch of each item makes."""
        chosen = [item[number] for item, number in zip(self.items, choice, strict=True)]
        return _joined_branch(Series((), Position(1, 1)), chosen)


def alternatives_of(pattern: Pattern) -> tuple[Alternative, ...]:
    """Return alternatives that have each reading once.

    A SEQ is one, unless an OR in it has more patterns than are planned beforehand.
    """
    return tuple(
        Alternative(items, ((0, len(items)), *taking), tuple(tuple(map(_takes, item)) for item in items))
        for items, taking in _rows_of(pattern)
    )


def _rows_of(pattern: Pattern) -> Iterator[tuple[Items, tuple[Span, ...]]]:
    """Yield items and ``taking`` of each alternative, but for that of all of its items."""
    if isinstance(pattern, Series):
        for parts in product(*(list(_rows_of(item)) for item in pattern.items)):
            items: Items = ()
            taking: list[Span] = []
            for inner, spans in parts:
                taking += [(len(items) + first, len(items) + end) for first, end in spans]
                items += inner
            yield items, tuple(taking)
    elif isinstance(pattern, Iteration):
        for inner, spans in _rows_of(pattern.items[0]):
            yield inner, ((0, len(inner)), *spans)
    elif _is_small(pattern) or not isinstance(pattern, Disjunction):
        yield (branches_of(pattern),), ()
    else:
        for item in pattern.items:
            for inner, spans in _rows_of(item):
                yield inner, ((0, len(inner)), *spans)
        # Of its items those that take no event can give one signature, so they are one.
        without = _without_events(pattern)
        if without:
            yield (without,), ()


def _count_of_alternatives(pattern: Pattern) -> int:
    """Return how many alternatives there are, without making them; 0 if there are none."""
    if _is_small(pattern):
        return 1
    if isinstance(pattern, Repeated):
        return _count_of_alternatives(pattern.items[0])
    if not isinstance(pattern, Series | Disjunction):
        return 0
    counts = [_count_of_alternatives(item) for item in pattern.items]
    if isinstance(pattern, Series):
        return prod(counts)
    return sum(counts) + bool(_counted(pattern)[1]) if all(counts) else 0


def _without_events(pattern: Pattern) -> tuple[Branch, ...]:
    """Return the branches that take no event."""
    if isinstance(pattern, Component | Option | LeftOut | Iteration):
        return tuple(branch for branch in branches_of(pattern) if not _takes(branch))
    inner = map(_without_events, pattern.items)
    if isinstance(pattern, Disjunction):
        return _merged(chain.from_iterable(inner), pattern.position)
    assert not isinstance(pattern, Repeated)
    return tuple(_joined_branch(pattern, choice) for choice in product(*inner))


def _takes(branch: Branch) -> int:
    """Return how many components of a branch take events."""
    return sum(not component.negated for component in components_of(branch.pattern))


def covering_choices(alternative: Alternative) -> list[tuple[int, ...]]:
    """Return choices among which every branch of an item stands wherever it can.

    Each stands with all that is optional left out, with all of it taken, and, where all before it can be left
    out, as the first. At most three for each branch of an item. Where items that have to take an event would
    not, another alternative has that reading.
    """
    taken = alternative.taken
    fewest = [min(range(len(takes)), key=takes.__getitem__) for takes in taken]
    fullest = [max(range(len(takes)), key=takes.__getitem__) for takes in taken]
    choices = [tuple(fullest)]
    for place, takes in enumerate(taken):
        for number in range(len(takes)):
            choices += [(*base[:place], number, *base[place + 1 :]) for base in (fullest, fewest)]
            if not any(taken[k][fewest[k]] for k in range(place)):
                choices.append((*fewest[:place], number, *fullest[place + 1 :]))
    return [*filter(alternative.is_reading, dict.fromkeys(choices))]


def some_expansions(pattern: Pattern) -> Iterator[Pattern]:
    """Yield the expansions of a pattern; of one with countless readings those of :func:`covering_choices`.

    Repeated groups stand once, or not at all where they need not.
    """
    if has_repeated_groups(pattern):
        for each in with_few_iterations(pattern, upto=1):
            yield from some_expansions(each)
        return
    if not has_countless_readings(pattern):
        yield from expansions(pattern)
        return
    for alternative in alternatives_of(pattern):
        for choice in covering_choices(alternative):
            yield alternative.branch_of(choice).pattern


def _both(one: ReadingTerm, other: ReadingTerm) -> ReadingTerm:
    """Return the product of two terms: a match that the negations of both spare."""
    return ReadingTerm(
        one.weight * other.weight, one.negated | other.negated, one.is_reading and other.is_reading
    )


def _merged(branches: Iterable[Branch], position: Position) -> tuple[Branch, ...]:
    """Return the branches of an OR; those of its items that take no event are one, if lists are the same."""
    merged: list[Branch] = []
    without: dict[frozenset[str], int] = {}
    for branch in branches:
        absent = without.get(branch.left_out)
        if _takes(branch):
            merged.append(branch)
        elif absent is None:
            without[branch.left_out] = len(merged)
            merged.append(branch)
        else:
            present = merged[absent]
            common = [_both(one, other) for one in present.terms for other in branch.terms]
            excluded = [ReadingTerm(-term.weight, term.negated, False) for term in common]
            parts = (*components_of(present.pattern), *components_of(branch.pattern))
            terms = (*present.terms, *branch.terms, *excluded)
            merged[absent] = Branch(Series(parts, position), terms, branch.left_out)
    return tuple(merged)


def is_linear(pattern: Pattern) -> bool:
    """Return whether an expansion is a component, or a SEQ of components."""
    if isinstance(pattern, Component):
        return True
    return isinstance(pattern, Series) and all(isinstance(item, Component) for item in pattern.items)


def keeps_order(pattern: Conjunction) -> bool:
    """Return whether AND has one pattern of several events and negations beside it: then it is no set."""
    taking = [item for item in pattern.items if _takes_event(item)]
    return len(taking) == 1 and not isinstance(taking[0], Component)


def set_variables(pattern: Pattern) -> frozenset[str]:
    """Return the variables of an expansion that stand directly in AND."""
    if isinstance(pattern, Component):
        return frozenset()
    members = [item.variable for item in pattern.items if isinstance(item, Component)]
    inner = (set_variables(item) for item in pattern.items)
    return frozenset(members if isinstance(pattern, Conjunction) else ()).union(*inner)


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
        visited = 0
        for item in node.items:
            negated = sum(component.negated for component in components_of(item))
            if negated and all(component.negated for component in components_of(item)):
                # Several are those that readings of an OR choose among.
                gaps.extend([GapPlace("beside", 0, 0)] * negated)
            else:
                visited |= visit(item, earlier, True)
        return visited

    def series(items: Sequence[Pattern], earlier: int) -> int:
        visited = previous = waiting = 0
        for item in items:
            if isinstance(item, Component) and item.negated:
                waiting += 1
                continue
            # The gaps before an item come after those inside of the items before it, and before its own.
            place = len(gaps)
            current = visit(item, earlier | visited, False)
            gap = GapPlace("between" if previous else "leading", previous, current)
            gaps[place:place] = [gap] * waiting
            previous, waiting = current, 0
            visited |= current
        gaps.extend([GapPlace("trailing", previous, 0)] * waiting)
        return visited

    visit(pattern, 0, False)
    return PartialOrder(tuple(before), tuple(is_set), tuple(gaps))
