"""Everything about a match that does not depend on the times: OR-free patterns, bindings, forbidden events.

A predicate never sees the tick at which an event happened, so which events satisfy the types and
predicates, and which others are forbidden in which gap, is the same in every world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, pairwise, permutations, product
from typing import Literal

from uncertain_cep.testing.group_copies import NOTHING, copied, written_out
from uncertain_cep.testing.model import (
    And,
    Component,
    Event,
    Option,
    Or,
    Pattern,
    Predicate,
    Query,
    Repeat,
    Seq,
)

Bound = Event | tuple[Event, ...]
Binding = Mapping[str, Bound]
World = Mapping[Event, int]


def _whatever(_event: Event, _world: World) -> bool:
    """Forbid an event in every world."""
    return True


@dataclass(frozen=True, slots=True)
class Gap:
    """Where some events are forbidden; beside a set, ``between`` nothing, everywhere.

    ``between``: the open interval from the last of ``after`` to the first of ``before``;
    ``leading``: ``[last - W + 1, first)``; ``trailing``: ``(last, first + W - 1]`` of the whole match.
    """

    place: Literal["leading", "between", "trailing"]
    after: tuple[Event, ...]
    before: tuple[Event, ...]
    forbidden: frozenset[Event]
    forbids: Callable[[Event, World], bool] = _whatever
    """Whether an event, which is in the gap, is forbidden in a world: what the conditions on times say."""
    joint: str = ""
    """The group whose gaps forbid together: an event of each, in the order of the gaps."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Events that satisfy the types and predicates of an OR-free pattern, and what must not happen."""

    pattern: Pattern
    binding: Binding
    gaps: tuple[Gap, ...]
    times: tuple[Predicate, ...] = ()
    """The conditions on times that the match's own events meet."""

    def in_time(self, world: World) -> bool:
        """Tell whether the match's own times meet their conditions in a world."""
        return all(time_holds(condition, self.binding, world) for condition in self.times)

    @property
    def events(self) -> tuple[Event, ...]:
        """The match's own events, in pattern order."""
        return own_events(self.pattern, self.binding)


def components(pattern: Pattern) -> list[Component]:
    """Return all components in pattern order."""
    if isinstance(pattern, Component):
        return [pattern]
    return [component for item in pattern.items for component in components(item)]


@lru_cache(maxsize=1024)
def positives(pattern: Pattern) -> tuple[Component, ...]:
    """Return the components that take events, in pattern order."""
    return tuple(component for component in components(pattern) if not component.negated)


def expansions(pattern: Pattern, largest: int = 1) -> list[Pattern]:
    """Return the OR-free patterns whose disjunction the pattern is, SEQ in SEQ and AND in AND flattened.

    Repeated groups stand ``largest`` times at most: as often as there are events.
    """
    if isinstance(pattern, Component):
        # Left out, it is nothing in a row.
        return [pattern] if pattern.least else [Seq(()), replace(pattern, least=1)]
    if isinstance(pattern, Option):
        # One that takes no event is left out.
        inner = expansions(pattern.items[0], largest)
        return [Seq(()), *(expansion for expansion in inner if positives(expansion))]
    if isinstance(pattern, Or):
        return [expansion for item in pattern.items for expansion in expansions(item, largest)]
    if isinstance(pattern, Repeat):
        last = largest if pattern.largest is None else min(pattern.largest, largest)
        return [
            expansion
            for count in range(pattern.fewest, last + 1)
            for expansion in _iterations(pattern.items[0], count)
        ]
    kind = type(pattern)
    expanded = []
    for choice in product(*(expansions(item, largest) for item in pattern.items)):
        items: list[Pattern] = []
        for item in choice:
            items.extend(item.items if isinstance(item, kind) else [item])
        expanded.append(kind(tuple(items)))
    return list(expanded)


def _iterations(pattern: Pattern, count: int) -> Iterator[Pattern]:
    """Yield the expansions of a group that stands so often, each time with an event."""
    each = [[one for one in expansions(copied(pattern, k)) if positives(one)] for k in range(count)]
    for choice in product(*each):
        items: list[Pattern] = []
        for item in choice:
            items.extend(item.items if isinstance(item, Seq) else [item])
        yield Seq(tuple(items))


def optional_lists(pattern: Pattern, optional: bool = False) -> frozenset[str]:
    """Return the lists that are empty where they, or the group around them, are left out."""
    if isinstance(pattern, Component):
        is_list = pattern.kleene and (optional or not pattern.least)
        return frozenset([pattern.variable] if is_list else ())
    if isinstance(pattern, Repeat):
        empty = optional or not pattern.fewest
        return frozenset(part.variable for part in components(pattern) if empty and not part.negated)
    if isinstance(pattern, Or):
        return frozenset()
    return frozenset[str]().union(
        *(optional_lists(item, optional or isinstance(pattern, Option)) for item in pattern.items)
    )


def check(pattern: Pattern, query: Query) -> None:
    """Raise ValueError for an OR-free pattern that has no meaning."""
    variables = [component.variable for component in components(pattern)]
    if len(set(variables)) < len(variables):
        raise ValueError("a variable is used twice")
    if not positives(pattern):
        raise ValueError("there is no positive component")
    for item in _inner(pattern):
        if isinstance(item, And):
            is_set = not _keeps_order(item)
            if is_set and query.strategy != "skip_till_any_match":
                raise ValueError("AND is defined for skip_till_any_match only")
            if not any(positives(inner) for inner in item.items):
                raise ValueError("every component of AND is negated")
            for inner in item.items:
                if isinstance(inner, Component):
                    if inner.negated and not _is_tied(inner, pattern, query):
                        raise ValueError("a negation beside a set must be tied to it by a condition on times")
                elif (is_set or item is not pattern) and any(
                    isinstance(edge, Component) and edge.negated for edge in (inner.items[0], inner.items[-1])
                ):
                    raise ValueError("a negation at an end of a SEQ in AND has no gap")
    negated = {component.variable for component in components(pattern) if component.negated}
    for predicate in query.where:
        if len(predicate.variables() & negated) > 1:
            raise ValueError("a predicate mentions two negated variables")
        for variable in set_variables(pattern):
            if predicate.indices(variable) - {"single", "current", "all"}:
                raise ValueError(f"{variable} stands in AND: its elements have no order")


def _keeps_order(pattern: And) -> bool:
    """Tell whether AND has one pattern in an order, and negations beside it."""
    taking = [item for item in pattern.items if positives(item)]
    return len(taking) == 1 and not isinstance(taking[0], Component)


def _is_tied(negated: Component, pattern: Pattern, query: Query) -> bool:
    """Tell whether a condition on times has a negated component and a positive one."""
    names = {component.variable for component in components(pattern)}
    positive = {component.variable for component in positives(pattern)}
    return any(
        negated.variable in condition.variables()
        and condition.variables() & positive
        and condition.variables() <= names
        for condition in query.times
    )


def _inner(pattern: Pattern) -> Iterator[Pattern]:
    yield pattern
    if not isinstance(pattern, Component):
        for item in pattern.items:
            yield from _inner(item)


def set_variables(pattern: Pattern) -> frozenset[str]:
    """Return the Kleene variables that stand directly in AND and so take a set, not a sequence."""
    return frozenset(
        item.variable
        for inner in _inner(pattern)
        if isinstance(inner, And)
        for item in inner.items
        if isinstance(item, Component) and item.kleene
    )


def as_tuple(bound: Bound) -> tuple[Event, ...]:
    """Return the events bound to one variable."""
    return (bound,) if isinstance(bound, Event) else bound


def own_events(pattern: Pattern, binding: Binding) -> tuple[Event, ...]:
    """Return the events bound to the positive components below ``pattern``, in pattern order."""
    return tuple(event for component in positives(pattern) for event in as_tuple(binding[component.variable]))


def is_type(component: Component, event: Event) -> bool:
    """Tell whether an event has a type that the component takes."""
    return not component.types or event.type in component.types


def agree(events: Sequence[Event], attributes: Sequence[str]) -> bool:
    """Tell whether the events have one value of each attribute; null agrees with nothing, itself included."""
    return all(
        event[name] is not None and event[name] == events[0][name] for name in attributes for event in events
    )


def predicate_holds(predicate: Predicate, binding: Binding, newest: str | None = None) -> bool:
    """Tell whether a predicate holds of bound events.

    ``c[i]`` (and a bare ``c``) speaks of every element, from the second on where ``c[i-1]`` or
    ``c[..i-1]`` is mentioned as well. With ``newest`` naming a Kleene variable, only what concerns
    its last element is asked.
    """
    ranges = []
    running = sorted(
        variable
        for variable in predicate.variables()
        if not isinstance(binding[variable], Event)
        and (
            predicate.indices(variable) & {"single", "current", "previous", "before"}
            or predicate.behind(variable)
        )
    )
    for variable in running:
        length = len(as_tuple(binding[variable]))
        start = 1 if predicate.indices(variable) & {"previous", "before"} else 0
        start = max(start, predicate.behind(variable))
        if variable == newest:
            start = max(start, length - 1)
        ranges.append(range(start, length))
    for choice in product(*ranges):
        position = dict(zip(running, choice, strict=True))
        arguments: list[Bound] = []
        for mention in predicate.mentions:
            bound = binding[mention.variable]
            if isinstance(bound, Event):
                arguments.append(bound)
            elif mention.index == "first":
                arguments.append(bound[0])
            elif mention.index == "last":
                arguments.append(bound[-1])
            elif mention.index == "all":
                arguments.append(bound)
            elif mention.index.isdecimal():
                arguments.append(
                    bound[int(mention.index) - 1] if int(mention.index) <= len(bound) else NOTHING
                )
            elif mention.index.startswith("i-"):
                arguments.append(bound[position[mention.variable] - int(mention.index[2:])])
            elif mention.index == "previous":
                arguments.append(bound[position[mention.variable] - 1])
            elif mention.index == "before":
                arguments.append(bound[: position[mention.variable]])
            else:
                arguments.append(bound[position[mention.variable]])
        if predicate.test(*arguments) is not True:
            return False
    return True


def time_holds(condition: Predicate, binding: Binding, world: World, newest: str | None = None) -> bool:
    """Tell whether a condition on times holds of bound events in a world."""

    def test(*bound: Event) -> bool | None:
        return condition.test(*((event, world[event]) for event in bound))

    return predicate_holds(replace(condition, test=test), binding, newest)


def can_increase(events: Sequence[Event]) -> bool:
    """Tell whether the intervals leave each event a tick after the one before it, or its tick by sequence."""
    earliest = events[0].lower
    for before, event in pairwise(events):
        earliest = max(earliest if before.is_before(0, event, 0) else earliest + 1, event.lower)
        if earliest > event.upper:
            return False
    return True


def candidates(query: Query, events: Sequence[Event], *, in_order: bool = False) -> Iterator[Candidate]:
    """Yield every choice of distinct events that satisfies types and predicates, for every expansion.

    A predicate is asked of the expansions that have all its variables: OR is the union of its branches,
    and a condition on a variable of one branch says nothing about another.

    With ``in_order`` choices are left out whose order no world has, as far as that is easily seen.
    """
    identities = {(tuple(event[name] for name in query.partition), event.id) for event in events}
    if len(identities) < len(events):
        raise ValueError("an id is used twice in a partition")
    has_options = any(
        isinstance(item, Option | Repeat) or (isinstance(item, Component) and not item.least)
        for item in _inner(query.pattern)
    )
    whole = query
    for pattern in expansions(query.pattern, len(events)):
        if has_options and not positives(pattern):
            continue
        listed = [component.variable for component in components(pattern)]
        query = replace(
            whole,
            where=tuple(written_out(whole.where, whole.pattern, listed)),
            times=tuple(written_out(whole.times, whole.pattern, listed)),
        )
        check(pattern, query)
        names = {*listed}
        predicates = [predicate for predicate in query.where if predicate.variables() <= names]
        for binding in _bindings(pattern, query, predicates, events, in_order):
            gaps = tuple(_gaps(pattern, query, predicates, binding, events))
            positive_names = {component.variable for component in positives(pattern)}
            times = tuple(condition for condition in query.times if condition.variables() <= positive_names)
            yield Candidate(pattern, binding, gaps, times)


def _bindings(
    pattern: Pattern,
    query: Query,
    predicates: Sequence[Predicate],
    events: Sequence[Event],
    in_order: bool,
) -> Iterator[dict[str, Bound]]:
    order = positives(pattern)
    ordered = in_order and isinstance(pattern, Seq) and all(isinstance(x, Component) for x in pattern.items)
    sets = set_variables(pattern)
    place = {component.variable: position for position, component in enumerate(order)}
    # Asked as soon as all its variables are bound: the same answer as at the end, only sooner.
    due: list[list[Predicate]] = [[] for _ in order]
    for predicate in predicates:
        if predicate.variables() <= place.keys():
            due[max((place[name] for name in predicate.variables()), default=0)].append(predicate)

    def choices(component: Component, used: Sequence[Event]) -> Iterator[Bound]:
        free = [event for event in events if event not in used and is_type(component, event)]
        if not component.kleene:
            yield from free
            return
        upper_bound = len(free) if component.most is None else min(component.most, len(free))
        for count in range(component.least, upper_bound + 1):
            if component.variable in sets:
                for chosen in combinations(free, count):
                    yield tuple(sorted(chosen, key=lambda event: (event.id,)))
            else:
                yield from sequences(free, count)

    def sequences(free: Sequence[Event], count: int) -> Iterator[tuple[Event, ...]]:
        if not in_order:
            yield from permutations(free, count)
            return
        begun: list[tuple[Event, ...]] = [()]
        for _ in range(count):
            longer = ((*chosen, event) for chosen in begun for event in free if event not in chosen)
            begun = [chosen for chosen in longer if can_increase(chosen)]
        yield from begun

    def extend(binding: dict[str, Bound], used: list[Event]) -> Iterator[dict[str, Bound]]:
        if len(binding) == len(order):
            yield binding
            return
        component = order[len(binding)]
        for bound in choices(component, used):
            extended = {**binding, component.variable: bound}
            taken = [*used, *as_tuple(bound)]
            if ordered and not can_increase(taken):
                continue
            if agree(taken, query.agree) and all(
                predicate_holds(predicate, extended) for predicate in due[len(binding)]
            ):
                yield from extend(extended, taken)

    yield from extend({}, [])


def _gaps(
    pattern: Pattern,
    query: Query,
    predicates: Sequence[Predicate],
    binding: Binding,
    events: Sequence[Event],
) -> Iterator[Gap]:
    taken_events = own_events(pattern, binding)
    further_events = [event for event in events if event not in taken_events]
    yield from _negation_gaps(pattern, query, predicates, binding, further_events)
    if query.strategy == "skip_till_any_match" and not query.gaps:
        return
    named = {(one, other): strategy for one, other, strategy in query.gaps}
    takes = [
        (component, number, event)
        for component in positives(pattern)
        for number, event in enumerate(as_tuple(binding[component.variable]))
    ]
    for (earlier, _, event), (component, number, taken) in pairwise(takes):
        strategy = query.strategy
        if query.gaps:
            strategy = named.get((earlier.variable, component.variable), "skip_till_any_match")
        if strategy == "skip_till_any_match":
            continue
        if strategy == "strict_contiguity":
            forbidden = further_events
        elif strategy == "partition_contiguity":
            forbidden = [x for x in further_events if agree((taken_events[0], x), query.partition)]
        else:
            before = taken_events[: taken_events.index(taken)]
            forbidden = [
                x
                for x in further_events
                if _could_be_taken(x, component, number, pattern, query, predicates, binding, before)
            ]
            yield Gap(
                "between",
                (event,),
                (taken,),
                frozenset(forbidden),
                _could_be_taken_in_time(component, number, pattern, query, binding),
            )
            continue
        yield Gap("between", (event,), (taken,), frozenset(forbidden))


def _could_be_taken(
    event: Event,
    component: Component,
    number: int,
    pattern: Pattern,
    query: Query,
    predicates: Sequence[Predicate],
    binding: Binding,
    before: Sequence[Event],
) -> bool:
    """Tell whether a component could take ``event`` as its element ``number``, given what was taken before.

    Asked are the predicates that mention the component and otherwise only earlier ones. A predicate on
    ``c[c.LEN]`` or over ``c[]`` is decided when the Kleene component is complete, so no single take can
    fail it.
    """
    if not is_type(component, event) or not agree((*before, event), query.agree):
        return False
    binding_so_far = _taken_instead(event, component, number, pattern, binding)
    conditions = _asked_of_next(predicates, component, number, binding_so_far)
    return all(
        predicate_holds(predicate, binding_so_far, newest=component.variable) for predicate in conditions
    )


def _taken_instead(
    event: Event, component: Component, number: int, pattern: Pattern, binding: Binding
) -> dict[str, Bound]:
    """Return the binding when a component takes an event as its element ``number``."""
    bound: dict[str, Bound] = {}
    for earlier in positives(pattern):
        if earlier is component:
            break
        bound[earlier.variable] = binding[earlier.variable]
    name = component.variable
    bound[name] = (*as_tuple(binding[name])[:number], event) if component.kleene else event
    return bound


def _asked_of_next(
    predicates: Sequence[Predicate], component: Component, number: int, bound: Binding
) -> Iterator[Predicate]:
    """Yield the predicates that decide whether a component could take an event as its element ``number``."""
    name = component.variable
    for predicate in predicates:
        if name not in predicate.variables() or not predicate.variables() <= bound.keys():
            continue
        if name in predicate.waits:
            continue
        if component.kleene:
            indices = predicate.indices(name)
            numbers = {int(index) - 1 for index in indices if index.isdecimal()}
            if indices & {"last", "all"} or (indices == {"first"} and number > 0):
                continue
            # What an element to come decides says nothing yet, nor do numbered elements alone say anew.
            if numbers and number < max(numbers):
                continue
            if numbers and number > max(numbers) and all(x.isdecimal() or x == "first" for x in indices):
                continue
        yield predicate


def _could_be_taken_in_time(
    component: Component, number: int, pattern: Pattern, query: Query, binding: Binding
) -> Callable[[Event, World], bool]:
    """Return whether an event meets in a world the conditions on times that decide the same."""

    def forbids(event: Event, world: World) -> bool:
        bound = _taken_instead(event, component, number, pattern, binding)
        conditions = _asked_of_next(query.times, component, number, bound)
        return all(time_holds(condition, bound, world, newest=component.variable) for condition in conditions)

    return forbids


def _negation_gaps(
    pattern: Pattern,
    query: Query,
    predicates: Sequence[Predicate],
    binding: Binding,
    further_events: Sequence[Event],
) -> Iterator[Gap]:
    taken_events = own_events(pattern, binding)

    def spoilers(component: Component) -> frozenset[Event]:
        conditions = [predicate for predicate in predicates if component.variable in predicate.variables()]
        return frozenset(
            x
            for x in further_events
            if is_type(component, x)
            and agree((*taken_events, x), query.agree)
            and all(
                predicate_holds(predicate, {**binding, component.variable: x}) for predicate in conditions
            )
        )

    def spoils_in_time(component: Component) -> Callable[[Event, World], bool]:
        names = {component_of_pattern.variable for component_of_pattern in components(pattern)}
        conditions = [
            condition
            for condition in query.times
            if component.variable in condition.variables() and condition.variables() <= names
        ]

        def forbids(event: Event, world: World) -> bool:
            bound = {**binding, component.variable: event}
            return all(time_holds(condition, bound, world) for condition in conditions)

        return forbids

    for inner in _inner(pattern):
        if isinstance(inner, And):
            for item in inner.items:
                if isinstance(item, Component) and item.negated:
                    yield Gap("between", (), (), spoilers(item), spoils_in_time(item))
        if not isinstance(inner, Seq):
            continue
        previous: tuple[Event, ...] = ()
        waiting: list[Component] = []
        for item in inner.items:
            if isinstance(item, Component) and item.negated:
                waiting.append(item)
                continue
            current = own_events(item, binding)
            for component in waiting:
                place: Literal["between", "leading"] = "between" if previous else "leading"
                yield Gap(
                    place, previous, current, spoilers(component), spoils_in_time(component), component.joint
                )
            previous, waiting = current, []
        for component in waiting:
            yield Gap(
                "trailing", previous, (), spoilers(component), spoils_in_time(component), component.joint
            )
