"""The answer by enumeration of possible worlds.

``answer_literally`` is the definition word for word: all worlds of all events, the matches of each,
collapsed. ``answer`` sums, for each signature, over the worlds of only those events that its match
can depend on; the others are independent of them and their probabilities sum to 1, so it is the same
(and a test compares the two).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, permutations, product

from uncertain_cep.testing.group_copies import lengths_in, place
from uncertain_cep.testing.model import (
    Clock,
    Component,
    Entry,
    Event,
    Identifier,
    Key,
    Law,
    Match,
    Pattern,
    Query,
    Seq,
    Signature,
)
from uncertain_cep.testing.patterns import (
    Binding,
    Candidate,
    Gap,
    World,
    candidates,
    components,
    optional_lists,
    own_events,
)


def worlds(events: Sequence[Event]) -> Iterator[tuple[Fraction, dict[Event, int]]]:
    """Yield every world of positive probability: the probability and the tick of each event that happened.

    Worlds with clocks differ in offsets, too, so several may have the same ticks. Those that break the order
    of an ordered clock are left out, and the others share the probability.
    """
    doubtful = [event for event in events if event.probability < 1]
    for weight, world in _worlds_of_all(events):
        for happened in product((True, False), repeat=len(doubtful)):
            chance = weight
            absent = set[Event]()
            for event, happens in zip(doubtful, happened, strict=True):
                chance *= event.probability if happens else 1 - event.probability
                if not happens:
                    absent.add(event)
            if chance:
                yield chance, {event: tick for event, tick in world.items() if event not in absent}


def _worlds_of_all(events: Sequence[Event]) -> Iterator[tuple[Fraction, dict[Event, int]]]:
    """Yield the worlds as if all events had happened."""
    if not any(event.clock is not None and event.clock.ordered for event in events):
        yield from _unordered_worlds(events)
        return
    ordered_worlds = [(weight, world) for weight, world in _unordered_worlds(events) if _is_in_order(world)]
    total = sum((weight for weight, _ in ordered_worlds), Fraction(0))
    if not ordered_worlds:
        raise ValueError("no world is left")
    yield from ((weight / total, world) for weight, world in ordered_worlds)


def _unordered_worlds(events: Sequence[Event]) -> Iterator[tuple[Fraction, dict[Event, int]]]:
    for weight, offsets in _offsets(events):
        for choice in product(*(event.own_ticks() for event in events)):
            pairs = zip(events, choice, strict=True)
            world = {event: tick + (offsets[event.clock] if event.clock else 0) for event, (tick, _) in pairs}
            yield math.prod((part for _, part in choice), start=weight), world


def _offsets(events: Sequence[Event]) -> Iterator[tuple[Fraction, dict[Clock, int]]]:
    """Yield every choice of offsets of the clocks of some events, with its probability."""
    clocks = list(dict.fromkeys(event.clock for event in events if event.clock is not None))
    for choice in product(*(clock.offsets() for clock in clocks)):
        offsets = {clock: offset for clock, (offset, _) in zip(clocks, choice, strict=True)}
        yield math.prod((part for _, part in choice), start=Fraction(1)), offsets


def _is_in_order(world: World) -> bool:
    """Tell whether the events of each ordered clock happened in the order of their sequences."""
    return all(
        one.sequence is None or other.sequence is None or one.sequence >= other.sequence or tick <= other_tick
        for (one, tick), (other, other_tick) in permutations(world.items(), 2)
        if one.clock is not None and one.clock is other.clock and one.clock.ordered
    )


def span(pattern: Pattern, binding: Binding, world: World) -> tuple[int, int] | None:
    """Return the first and last tick of a pattern's events, or None if their order in the world is wrong.

    Within SEQ each item, and each element of a Kleene component, is strictly before the next.
    Within AND any order and ties will do; a Kleene component directly in AND is a set.
    """
    if isinstance(pattern, Component):
        bound = binding[pattern.variable]
        if isinstance(bound, Event):
            return world[bound], world[bound]
        increasing = all(one.is_before(world[one], other, world[other]) for one, other in pairwise(bound))
        return (world[bound[0]], world[bound[-1]]) if increasing else None
    if isinstance(pattern, Seq):
        first: int | None = None
        last: int | None = None
        previous: tuple[Event, ...] = ()
        for item in pattern.items:
            if isinstance(item, Component) and item.negated:
                continue
            inner = span(item, binding, world)
            if inner is None or (last is not None and inner[0] < last):
                return None
            current = own_events(item, binding)
            if inner[0] == last and not all(
                one.is_before(world[one], other, world[other]) for one, other in product(previous, current)
            ):
                return None
            first = inner[0] if first is None else first
            last, previous = inner[1], current
        return None if first is None or last is None else (first, last)
    spans = []
    for item in pattern.items:
        if isinstance(item, Component) and item.negated:
            continue
        if isinstance(item, Component) and item.kleene:
            bound = binding[item.variable]
            assert isinstance(bound, tuple)
            times = [world[event] for event in bound]
            spans.append((min(times), max(times)))
            continue
        inner = span(item, binding, world)
        if inner is None:
            return None
        spans.append(inner)
    return min(low for low, _ in spans), max(high for _, high in spans)


def is_forbidden(gap: Gap, event: Event, time: int, first: int, last: int, window: int, world: World) -> bool:
    """Tell whether a gap of a match from ``first`` to ``last`` forbids an event at a tick."""
    inside = is_inside(gap, event, time, first, last, window, world)
    return inside and gap.forbids(event, {**world, event: time})


def is_inside(gap: Gap, event: Event, time: int, first: int, last: int, window: int, world: World) -> bool:
    """Tell whether an event at a tick lies inside a gap of a match from ``first`` to ``last``."""
    if gap.place == "leading" and time < last - window + 1:
        return False
    if gap.place == "trailing" and time > first + window - 1:
        return False
    return all(taken.is_before(world[taken], event, time) for taken in gap.after) and all(
        event.is_before(time, taken, world[taken]) for taken in gap.before
    )


def own_range(candidate: Candidate, window: int, world: World) -> tuple[int, int] | None:
    """Return the first and last tick of a candidate whose own times are right, whatever it forbids."""
    times = span(candidate.pattern, candidate.binding, world)
    if times is None or times[1] - times[0] > window - 1 or not candidate.in_time(world):
        return None
    return times


def range_in(candidate: Candidate, window: int, world: World) -> tuple[int, int] | None:
    """Return the first and last tick of a candidate that is a match in a world, else None."""
    if not all(event in world for event in candidate.events):
        return None
    times = own_range(candidate, window, world)
    if times is None:
        return None
    groups: dict[str, list[list[Event]]] = defaultdict(list)
    for gap in candidate.gaps:
        forbidden = [
            event
            for event in gap.forbidden
            if event in world and is_forbidden(gap, event, world[event], *times, window, world)
        ]
        if not gap.joint and forbidden:
            return None
        groups[gap.joint].append(forbidden)
    if any(_in_order(listed, world) for joint, listed in groups.items() if joint):
        return None
    return times


def _in_order(groups: Sequence[Sequence[Event]], world: World) -> bool:
    """Tell whether some events, one of each group, happened one before the other."""
    return any(
        all(one.is_before(world[one], other, world[other]) for one, other in pairwise(chosen))
        for chosen in product(*groups)
    )


def key_of(candidate: Candidate, query: Query) -> Key:
    """Return the partition and the signature: all positive variables of the whole pattern, in its order."""
    signature: list[tuple[str, Entry]] = []
    lengths = lengths_in(query.pattern, [part.variable for part in components(candidate.pattern)])
    for component in components(query.pattern):
        if component.negated:
            continue
        if length := lengths.get(component.variable, 0):
            taken = [candidate.binding.get(place(component.variable, k)) for k in range(length)]
            ids = tuple(event.id if isinstance(event, Event) else None for event in taken)
            signature.append((component.variable, ids))
            continue
        bound = candidate.binding.get(component.variable)
        if bound is None:
            # The list of an option that is left out is empty; beside OR it may be of another branch.
            is_own = component.kleene and component.variable not in lengths
            empty = is_own and not component.least and isinstance(query.pattern, Seq)
            empty = empty or component.variable in optional_lists(query.pattern)
            signature.append((component.variable, () if empty else None))
        elif isinstance(bound, Event):
            signature.append((component.variable, bound.id))
        else:
            signature.append((component.variable, tuple(event.id for event in bound)))
    return tuple(candidate.events[0][name] for name in query.partition), tuple(signature)


class _Rows:
    """Collects the worlds of each signature."""

    def __init__(self) -> None:
        self._mass: dict[Key, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
        self._last: dict[Key, int] = {}

    def add(self, key: Key, probability: Fraction, times: tuple[int, int]) -> None:
        first, last = times
        self._mass[key][first] += probability
        self._last[key] = max(last, self._last.get(key, last))

    def matches(self) -> list[Match]:
        rows = []
        for key, first_times in self._mass.items():
            partition, signature = key
            rows.append(
                Match(
                    partition,
                    signature,
                    min(first_times),
                    self._last[key],
                    sum(first_times.values(), Fraction(0)),
                    dict(first_times),
                )
            )
        return sorted(rows, key=lambda row: (sort_key(row.signature), repr(row.partition)))


def sort_key(signature: Signature) -> tuple[tuple[object, ...], ...]:
    """Return a key that puts signatures in the order that breaks ties: by the ids in pattern order.

    Integers as numbers, text by code point, lists element by element, nulls last.
    """
    return tuple(
        (1,) if entry is None else (0, *map(_element_key, entry if isinstance(entry, tuple) else (entry,)))
        for _, entry in signature
    )


def _element_key(element: Identifier | None) -> tuple[object, ...]:
    return (1,) if element is None else (0, element)


def answer_literally(query: Query, events: Sequence[Event]) -> list[Match]:
    """Return the answer by enumerating all worlds of all events. Exponential in the trace."""
    rows = _Rows()
    for probability, _, matches in _worlds_with_matches(query, events):
        for key, (_, times) in matches.items():
            rows.add(key, probability, times)
    return rows.matches()


Matches = dict[Key, tuple[Candidate, tuple[int, int]]]
"""The matches of a world: one of the readings of each, and its range."""


def _worlds_with_matches(query: Query, events: Sequence[Event]) -> Iterator[tuple[Fraction, World, Matches]]:
    """Yield all worlds of all events with their matches."""
    choices = [(key_of(candidate, query), candidate) for candidate in candidates(query, events)]
    for probability, world in worlds(events):
        matches: Matches = {}
        for key, candidate in choices:
            times = range_in(candidate, query.window, world)
            if times is not None:
                matches[key] = candidate, times
        yield probability, world, matches


Weighted = tuple[int, list[tuple[int, int]], int]
"""Ticks with integers that are their probabilities times the first number, and that of no tick."""


def weighted(ticks: Law, probability: Fraction) -> Weighted:
    """Return the ticks of an event with integer weights, what these sum to, and that of no tick at all."""
    weights = [(tick, weight * probability) for tick, weight in ticks]
    total = math.lcm(probability.denominator, *(weight.denominator for _, weight in weights))
    return total, [(tick, int(weight * total)) for tick, weight in weights], int((1 - probability) * total)


Forbidding = Mapping[Event, Sequence[tuple[int, Gap]]]
"""The gaps that forbid each event, with the reading of each as a bit."""


def _readings(query: Query, events: Sequence[Event]) -> Iterator[tuple[Key, list[Candidate], Forbidding]]:
    """Yield each signature with its readings, and what these forbid."""
    readings: dict[Key, list[Candidate]] = defaultdict(list)
    for candidate in candidates(query, events, in_order=True):
        readings[key_of(candidate, query)].append(candidate)
    for key, candidates_of_key in readings.items():
        forbidding: dict[Event, list[tuple[int, Gap]]] = defaultdict(list)
        for number, candidate in enumerate(candidates_of_key):
            for gap in candidate.gaps:
                for event in gap.forbidden:
                    forbidding[event].append((1 << number, gap))
        yield key, candidates_of_key, forbidding


Possible = tuple[tuple[int, int], tuple[int, ...], int]
"""Range and own ticks of a match, and the weight of the worlds in which it is one with these."""


def _possible(query: Query, events: Sequence[Event]) -> Iterator[tuple[Key, Fraction, list[Possible]]]:
    """Yield for each signature and choice of offsets what is possible, and the probability of a weight of 1.

    Given the offsets of the clocks and the worlds of a match's own events, those of the others count by which
    of its readings they break. An ordered clock ties all its events, so it is refused.
    """
    if any(event.clock is not None and event.clock.ordered for event in events):
        raise ValueError("ordered clocks: ask answer_literally")
    if any(component.joint for component in components(query.pattern)):
        raise ValueError("negated groups: ask answer_literally")
    own_ticks = {event: weighted(event.own_ticks(), event.probability) for event in events}
    for key, readings, forbidding in _readings(query, events):
        taken = readings[0].events
        scale = math.prod(own_ticks[event][0] for event in (*taken, *forbidding))
        for probability, offsets in _offsets((*taken, *forbidding)):
            ticks = {event: _moved(own_ticks[event], event, offsets) for event in (*taken, *forbidding)}
            possible: list[Possible] = []
            for choice in product(*(ticks[event][1] for event in taken)):
                world = {event: tick for event, (tick, _) in zip(taken, choice, strict=True)}
                ranges = {own_range(candidate, query.window, world) for candidate in readings}
                (times,) = ranges
                if times is not None:
                    weight = _whole(len(readings), forbidding, ticks, query.window, times, world)
                    weight *= math.prod(weight for _, weight in choice)
                    if weight:
                        possible.append((times, tuple(world.values()), weight))
            yield key, probability / scale, possible


def _moved(ticks: Weighted, event: Event, offsets: Mapping[Clock, int]) -> Weighted:
    if event.clock is None:
        return ticks
    return ticks[0], [(tick + offsets[event.clock], weight) for tick, weight in ticks[1]], ticks[2]


def answer(query: Query, events: Sequence[Event]) -> list[Match]:
    """Return the answer by enumerating, for each signature, the worlds of the events that matter to it.

    Examples
    --------
    >>> from uncertain_cep.testing import Event, Query, answer, one, seq
    >>> query = Query(seq(one("A", "a"), one("B", "b")), 4)
    >>> (match,) = answer(query, [Event("A", 7, 1, 4), Event("B", 8, 3, 4)])
    >>> match.range_lower, match.range_upper, str(match.confidence)
    (1, 4, '5/8')
    """
    if any(component.joint for component in components(query.pattern)):
        # What several events forbid together is no product over them.
        return answer_literally(query, events)
    rows = _Rows()
    for key, unit, possible in _possible(query, events):
        mass: dict[tuple[int, int], int] = defaultdict(int)
        for times, _, weight in possible:
            mass[times] += weight
        for times, weight in mass.items():
            rows.add(key, unit * weight, times)
    return rows.matches()


def _own_ticks(query: Query, events: Sequence[Event]) -> Iterator[tuple[Key, tuple[int, ...], Fraction]]:
    """Yield ticks of the events of each match, perhaps twice, and how likely it is a match with these."""
    if not any(component.joint for component in components(query.pattern)):
        for key, unit, possible in _possible(query, events):
            yield from ((key, ticks, unit * weight) for _, ticks, weight in possible)
        return
    for probability, world, matches in _worlds_with_matches(query, events):
        for key, (candidate, _) in matches.items():
            yield key, tuple(world[event] for event in candidate.events), probability


def ticks_of_matches(query: Query, events: Sequence[Event]) -> dict[Key, dict[tuple[int, ...], Fraction]]:
    """Return for each match the probabilities that it is one, and its events are at certain ticks.

    By enumerating worlds as :func:`answer` does; the events are in pattern order.
    """
    laws: dict[Key, dict[tuple[int, ...], Fraction]] = {}
    for key, ticks, probability in _own_ticks(query, events):
        law = laws.setdefault(key, {})
        law[ticks] = law.get(ticks, Fraction(0)) + probability
    return laws


def times_given(query: Query, events: Sequence[Event]) -> dict[Key, list[dict[int, Fraction]]]:
    """Return for each match the law of the time of each of its events, given that it is a match.

    See :func:`ticks_of_matches`.
    """
    laws: dict[Key, list[dict[int, Fraction]]] = {}
    for key, joint in ticks_of_matches(query, events).items():
        for ticks, probability in joint.items():
            for mass, tick in zip(laws.setdefault(key, [{} for _ in ticks]), ticks, strict=True):
                mass[tick] = mass.get(tick, Fraction(0)) + probability
    for mass in (mass for laws_of_match in laws.values() for mass in laws_of_match):
        total = sum(mass.values())
        mass.update({tick: weight / total for tick, weight in mass.items()})
    return laws


def _whole(
    readings: int,
    forbidding: Forbidding,
    ticks: Mapping[Event, Weighted],
    window: int,
    times: tuple[int, int],
    world: World,
) -> int:
    """Return the weight of the worlds of the forbidden events in which one reading at least is whole."""
    # By the readings that are broken, each a bit.
    weights = {0: 1}
    for event, gaps in forbidding.items():
        more: dict[int, int] = defaultdict(int)
        for tick, weight in ticks[event][1]:
            broken = 0
            for reading, gap in gaps:
                if not broken & reading and is_forbidden(gap, event, tick, *times, window, world):
                    broken |= reading
            for before, whole in weights.items():
                more[before | broken] += whole * weight
        for before, whole in weights.items():
            more[before] += whole * ticks[event][2]
        weights = more
    return sum(weight for broken, weight in weights.items() if broken != (1 << readings) - 1)
