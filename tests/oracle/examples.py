"""Short ways to write down events and to compare answers, for the tests."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from uncertain_cep.testing.model import Clock, Entry, Event, Match, Value


def event(
    type: str,
    id: int | str,
    lower: int,
    upper: int | None = None,
    pmf: tuple[Fraction, ...] | None = None,
    clock: Clock | None = None,
    sequence: int | None = None,
    probability: Fraction | int = 1,
    **attributes: Value,
) -> Event:
    """Return an event; without ``upper`` its time is certain. With a clock both are times by it."""
    upper = lower if upper is None else upper
    if clock is not None:
        lower, upper = lower + clock.lower, upper + clock.upper
    return Event(type, id, lower, upper, pmf, attributes, clock, sequence, Fraction(probability))


def rows(matches: Iterable[Match]) -> dict[tuple[Entry, ...], tuple[int, int, Fraction]]:
    """Return range and confidence by the ids of the signature."""
    return {match.ids: (match.range_lower, match.range_upper, match.confidence) for match in matches}


def ids(matches: Iterable[Match]) -> set[tuple[Entry, ...]]:
    """Return the ids of all signatures."""
    return {match.ids for match in matches}
