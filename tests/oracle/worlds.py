"""The answer by enumeration of possible worlds (SEMANTICS 2 to 4).

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
from itertools import pairwise, product

from tests.oracle.model import Component, Entry, Event, Key, Match, Pattern, Query, Seq, Signature
from tests.oracle.patterns import Binding, Candidate, Gap, candidates, components

World = Mapping[Event, int]


def worlds(events: Sequence[Event]) -> Iterator[tuple[Fraction, dict[Event, int]]]:
    """Yield every world of positive probability: the probability and the tick of each event."""
    if not events:
        yield Fraction(1), {}
        return
    first, rest = events[0], events[1:]
    ticks = first.ticks()
    for probability, world in worlds(rest):
        for tick, weight in ticks:
            yield probability * weight, {first: tick, **world}


def span(pattern: Pattern, binding: Binding, world: World) -> tuple[int, int] | None:
    """Return the first and last tick of a pattern's events, or None if their order in the world is wrong.

    Within SEQ each item, and each element of a Kleene component, is strictly before the next.
    Within AND any order and ties will do; a Kleene component directly in AND is a set.
    """
    if isinstance(pattern, Component):
        bound = binding[pattern.variable]
        if isinstance(bound, Event):
            return world[bound], world[bound]
        times = [world[event] for event in bound]
        increasing = all(earlier < later for earlier, later in pairwise(times))
        return (times[0], times[-1]) if increasing else None
    if isinstance(pattern, Seq):
        first: int | None = None
        last: int | None = None
        for item in pattern.items:
            if isinstance(item, Component) and item.negated:
                continue
            inner = span(item, binding, world)
            if inner is None or (last is not None and inner[0] <= last):
                return None
            first = inner[0] if first is None else first
            last = inner[1]
        return None if first is None or last is None else (first, last)
    spans = []
    for item in pattern.items:
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


def is_inside(gap: Gap, time: int, first: int, last: int, window: int, world: World) -> bool:
    """Tell whether a tick lies inside a gap of a match from ``first`` to ``last``."""
    if gap.place == "leading":
        return last - window + 1 <= time < first
    if gap.place == "trailing":
        return last < time <= first + window - 1
    return max(world[own] for own in gap.after) < time < min(world[own] for own in gap.before)


def own_range(candidate: Candidate, window: int, world: World) -> tuple[int, int] | None:
    """Return the first and last tick of a candidate whose order and window are right, whatever it forbids."""
    times = span(candidate.pattern, candidate.binding, world)
    return None if times is None or times[1] - times[0] > window - 1 else times


def range_in(candidate: Candidate, window: int, world: World) -> tuple[int, int] | None:
    """Return the first and last tick of a candidate that is a match in a world, else None."""
    times = own_range(candidate, window, world)
    if times is None or any(
        is_inside(gap, world[event], *times, window, world)
        for gap in candidate.gaps
        for event in gap.forbidden
    ):
        return None
    return times


def key_of(candidate: Candidate, query: Query) -> Key:
    """Return the partition and the signature: all positive variables of the whole pattern, in its order."""
    signature: list[tuple[str, Entry]] = []
    for component in components(query.pattern):
        if component.negated:
            continue
        bound = candidate.binding.get(component.variable)
        if bound is None:
            signature.append((component.variable, None))
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
        (1,) if entry is None else (0, *(entry if isinstance(entry, tuple) else (entry,)))
        for _, entry in signature
    )


def answer_literally(query: Query, events: Sequence[Event]) -> list[Match]:
    """Return the answer by enumerating all worlds of all events. Exponential in the trace."""
    choices = list(candidates(query, events))
    rows = _Rows()
    for probability, world in worlds(events):
        found: dict[Key, tuple[int, int]] = {}
        for candidate in choices:
            times = range_in(candidate, query.window, world)
            if times is not None:
                found[key_of(candidate, query)] = times
        for key, times in found.items():
            rows.add(key, probability, times)
    return rows.matches()


Weighted = tuple[int, list[tuple[int, int]]]
"""The ticks of an event with integers that are their probabilities times the first number."""


def weighted(event: Event) -> Weighted:
    """Return the ticks of positive probability with integer weights, and what these sum to."""
    ticks = event.ticks()
    total = math.lcm(*(weight.denominator for _, weight in ticks))
    return total, [(tick, int(weight * total)) for tick, weight in ticks]


Forbidding = Mapping[Event, Sequence[tuple[int, Gap]]]
"""The gaps that forbid each event, with the reading of each as a bit."""


def _readings(query: Query, events: Sequence[Event]) -> Iterator[tuple[Key, list[Candidate], Forbidding]]:
    """Yield each signature with its readings, and what these forbid."""
    readings: dict[Key, list[Candidate]] = defaultdict(list)
    for candidate in candidates(query, events, in_order=True):
        readings[key_of(candidate, query)].append(candidate)
    for key, found in readings.items():
        forbidding: dict[Event, list[tuple[int, Gap]]] = defaultdict(list)
        for number, candidate in enumerate(found):
            for gap in candidate.gaps:
                for event in gap.forbidden:
                    forbidding[event].append((1 << number, gap))
        yield key, found, forbidding


def answer(query: Query, events: Sequence[Event]) -> list[Match]:
    """Return the answer by enumerating, for each signature, the worlds of the events that matter to it.

    Given the worlds of a match's own events, those of the others count by which of its readings they break.
    """
    rows = _Rows()
    ticks = {event: weighted(event) for event in events}
    for key, found, forbidding in _readings(query, events):
        own = found[0].events
        mass: dict[tuple[int, int], int] = defaultdict(int)
        for choice in product(*(ticks[event][1] for event in own)):
            world = {event: tick for event, (tick, _) in zip(own, choice, strict=True)}
            ranges = {own_range(candidate, query.window, world) for candidate in found}
            (times,) = ranges
            if times is not None:
                weight = _whole(len(found), forbidding, ticks, query.window, times, world)
                mass[times] += math.prod(weight for _, weight in choice) * weight
        scale = math.prod(ticks[event][0] for event in (*own, *forbidding))
        for times, weight in mass.items():
            if weight:
                rows.add(key, Fraction(weight, scale), times)
    return rows.matches()


def times_given(query: Query, events: Sequence[Event]) -> dict[Key, list[dict[int, Fraction]]]:
    """Return for each match the law of the time of each of its events, given that it is a match.

    By enumerating worlds as :func:`answer` does; the events are in pattern order.
    """
    ticks = {event: weighted(event) for event in events}
    laws: dict[Key, list[dict[int, Fraction]]] = {}
    for key, found, forbidding in _readings(query, events):
        own = found[0].events
        mass: list[dict[int, int]] = [defaultdict(int) for _ in own]
        for choice in product(*(ticks[event][1] for event in own)):
            world = {event: tick for event, (tick, _) in zip(own, choice, strict=True)}
            times = own_range(found[0], query.window, world)
            if times is None:
                continue
            weight = math.prod(weight for _, weight in choice)
            weight *= _whole(len(found), forbidding, ticks, query.window, times, world)
            for law, (tick, _) in zip(mass, choice, strict=True):
                law[tick] += weight
        total = sum(mass[0].values())
        if total:
            laws[key] = [{tick: Fraction(weight, total) for tick, weight in law.items()} for law in mass]
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
                if not broken & reading and is_inside(gap, tick, *times, window, world):
                    broken |= reading
            for before, whole in weights.items():
                more[before | broken] += whole * weight
        weights = more
    return sum(weight for broken, weight in weights.items() if broken != (1 << readings) - 1)
