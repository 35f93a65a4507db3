"""The one formula of SEMANTICS 5 and 11.6, as a second and independent way to the oracle's answer for SEQ.

Given the match's own times the gaps between them are disjoint and the other events independent, so
the confidence is a sum over the own times alone, of a product over the other events. No world of the
other events is ever made. Offsets are held of the clocks that several events name; other events have
the law that their clock and their own time make together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import prod

from uncertain_cep.testing.model import Component, Event, Law, Query, Seq
from uncertain_cep.testing.patterns import Candidate, Gap, candidates
from uncertain_cep.testing.worlds import key_of

Row = tuple[int, int, Fraction]
"""Range and confidence."""

Laws = Mapping[Event, Law]
"""The ticks of each event, given the offsets of the clocks that several events name."""


def formula_answer(query: Query, events: Sequence[Event]) -> dict[object, Row]:
    """Return range and confidence of every signature of a SEQ of single and Kleene components.

    Raises
    ------
    ValueError
        If an OR-free expansion is not such a SEQ.
    """
    readings: dict[object, list[Candidate]] = defaultdict(list)
    for candidate in candidates(query, events):
        pattern = candidate.pattern
        items = pattern.items if isinstance(pattern, Seq) else (pattern,)
        if not all(isinstance(item, Component) for item in items):
            raise ValueError("the formula is for SEQ of components")
        readings[key_of(candidate, query)].append(candidate)
    rows: dict[object, Row] = {}
    for key, candidates_of_key in readings.items():
        mass: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for probability, laws in _laws(candidates_of_key):
            for times, weight in _increasing(candidates_of_key[0].events, query.window, laws):
                if not candidates_of_key[0].in_time(
                    dict(zip(candidates_of_key[0].events, times, strict=True))
                ):
                    continue
                weight *= probability * prod(event.probability for event in candidates_of_key[0].events)
                mass[times] += weight * _undisturbed_in_some(candidates_of_key, times, query.window, laws)
        possible = [times for times, weight in mass.items() if weight > 0]
        if possible:
            rows[key] = (
                min(times[0] for times in possible),
                max(times[-1] for times in possible),
                sum(mass.values(), Fraction(0)),
            )
    return rows


def _laws(readings: Sequence[Candidate]) -> Iterator[tuple[Fraction, Laws]]:
    """Yield the law of each event's time for every choice of the offsets that several events share."""
    forbidden = {event for candidate in readings for gap in candidate.gaps for event in gap.forbidden}
    events = [*readings[0].events, *forbidden]
    named = Counter(event.clock for event in events if event.clock is not None)
    shared = [clock for clock, count in named.items() if count > 1]
    for choice in product(*(clock.offsets() for clock in shared)):
        offsets = {clock: offset for clock, (offset, _) in zip(shared, choice, strict=True)}
        laws = {
            event: [(tick + offsets[event.clock], weight) for tick, weight in event.own_ticks()]
            if event.clock in offsets
            else event.ticks()
            for event in events
        }
        yield prod((weight for _, weight in choice), start=Fraction(1)), laws


def _step(one: Event, other: Event) -> int:
    """Return how many ticks later the other has to be at least to be behind."""
    return 0 if one.is_before(0, other, 0) else 1


def _undisturbed_in_some(
    readings: Sequence[Candidate], times: tuple[int, ...], window: int, laws: Laws
) -> Fraction:
    """Return the probability that some reading is undisturbed, by inclusion and exclusion."""
    total = Fraction(0)
    for count in range(1, len(readings) + 1):
        for chosen in combinations(readings, count):
            gaps = tuple(gap for candidate in chosen for gap in candidate.gaps)
            total -= (-1) ** count * _undisturbed(replace(chosen[0], gaps=gaps), times, window, laws)
    return total


def _increasing(
    events: Sequence[Event], window: int, laws: Laws, taken: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Yield all times in order with ``tl - t1 <= W - 1``, each with ``prod_j p_j(t_j)``."""
    if len(taken) == len(events):
        yield taken, Fraction(1)
        return
    event = events[len(taken)]
    for tick, probability in laws[event]:
        if taken and not (taken[-1] + _step(events[len(taken) - 1], event) <= tick <= taken[0] + window - 1):
            continue
        for times, weight in _increasing(events, window, laws, (*taken, tick)):
            yield times, probability * weight


def _undisturbed(candidate: Candidate, times: tuple[int, ...], window: int, laws: Laws) -> Fraction:
    """Return ``prod_x (1 - sum_{g in G(x)} P(x inside g))`` for the given own times."""
    at = dict(zip(candidate.events, times, strict=True))
    forbidding: dict[Event, list[tuple[int, int, Gap]]] = {}
    for gap in candidate.gaps:
        for event in gap.forbidden:
            inside = _ticks_inside(gap, event, at, times[0], times[-1], window)
            forbidding.setdefault(event, []).append((*inside, gap))
    undisturbed = Fraction(1)
    for event, gaps in forbidding.items():
        # Once a tick: a strategy and a negation may forbid an event in one and the same gap.
        undisturbed *= 1 - event.probability * sum(
            weight
            for tick, weight in laws[event]
            if any(low <= tick <= high and gap.forbids(event, {**at, event: tick}) for low, high, gap in gaps)
        )
    return undisturbed


def _ticks_inside(
    gap: Gap, event: Event, at: dict[Event, int], first: int, last: int, window: int
) -> tuple[int, int]:
    """Return the first and last tick of an event inside a gap (empty if the first is greater)."""
    low, high = last - window + 1, first + window - 1
    if gap.place != "leading":
        low = at[gap.after[-1]] + _step(gap.after[-1], event)
    if gap.place != "trailing":
        high = at[gap.before[0]] - _step(event, gap.before[0])
    return low, high
