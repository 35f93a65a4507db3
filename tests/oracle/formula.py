"""The one formula of SEMANTICS 5, as a second and independent way to the oracle's answer for SEQ.

Given the match's own times the gaps between them are disjoint and the other events independent, so
the confidence is a sum over the own times alone, of a product over the other events. No world of the
other events is ever made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from tests.oracle.model import Component, Event, Query, Seq
from tests.oracle.patterns import Candidate, Gap, candidates
from tests.oracle.worlds import key_of

Row = tuple[int, int, Fraction]
"""Range and confidence."""


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
    for key, found in readings.items():
        mass = {
            times: weight * _undisturbed_in_some(found, times, query.window)
            for times, weight in _increasing(found[0].events, query.window)
        }
        possible = [times for times, weight in mass.items() if weight > 0]
        if possible:
            rows[key] = (
                min(times[0] for times in possible),
                max(times[-1] for times in possible),
                sum(mass.values(), Fraction(0)),
            )
    return rows


def _undisturbed_in_some(readings: Sequence[Candidate], times: tuple[int, ...], window: int) -> Fraction:
    """Return the probability that some reading is undisturbed, by inclusion and exclusion."""
    total = Fraction(0)
    for count in range(1, len(readings) + 1):
        for chosen in combinations(readings, count):
            gaps = tuple(gap for candidate in chosen for gap in candidate.gaps)
            total -= (-1) ** count * _undisturbed(replace(chosen[0], gaps=gaps), times, window)
    return total


def _increasing(
    own: Sequence[Event], window: int, taken: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Yield all ``t1 < ... < tl`` with ``tl - t1 <= W - 1``, each with ``prod_j p_j(t_j)``."""
    if len(taken) == len(own):
        yield taken, Fraction(1)
        return
    for tick, probability in own[len(taken)].ticks():
        if taken and not (taken[-1] < tick <= taken[0] + window - 1):
            continue
        for times, weight in _increasing(own, window, (*taken, tick)):
            yield times, probability * weight


def _undisturbed(candidate: Candidate, times: tuple[int, ...], window: int) -> Fraction:
    """Return ``prod_x (1 - sum_{g in G(x)} P(x inside g))`` for the given own times."""
    at = dict(zip(candidate.events, times, strict=True))
    forbidding: dict[Event, set[tuple[int, int]]] = {}
    for gap in candidate.gaps:
        inside = _ticks_inside(gap, at, times[0], times[-1], window)
        for event in gap.forbidden:
            # A set: a strategy and a negation may forbid an event in one and the same gap.
            forbidding.setdefault(event, set()).add(inside)
    product = Fraction(1)
    for event, gaps in forbidding.items():
        ticks = event.ticks()
        product *= 1 - sum(weight for low, high in gaps for tick, weight in ticks if low <= tick <= high)
    return product


def _ticks_inside(gap: Gap, at: dict[Event, int], first: int, last: int, window: int) -> tuple[int, int]:
    """Return the first and last tick inside a gap (empty if the first is greater)."""
    if gap.place == "leading":
        return last - window + 1, first - 1
    if gap.place == "trailing":
        return last + 1, first + window - 1
    return at[gap.after[-1]] + 1, at[gap.before[0]] - 1
