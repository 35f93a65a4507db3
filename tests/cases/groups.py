"""Groups of matches as the kernels take them, drawn, and counted by all ticks of all variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st

from confidence.groups import Groups

__all__ = ["Literal", "Matches", "Time", "arrays_of", "counted", "groups", "worlds"]

Literal = tuple[int, int, int]
"""``t[1] - t[0] >= [2]``; 0 stands for tick 0."""


@dataclass(frozen=True)
class Time:
    """A variable: an interval, which moves with another variable if it has a clock, and perhaps a law."""

    lower: int
    upper: int
    clock: int = 0
    pmf: tuple[Fraction, ...] | None = None

    @property
    def law(self) -> list[tuple[int, Fraction]]:
        """The ticks of positive probability."""
        size = self.upper - self.lower + 1
        weights = self.pmf or (Fraction(1, size),) * size
        return [(self.lower + n, weight) for n, weight in enumerate(weights) if weight]


@dataclass(frozen=True)
class Matches:
    """A group: variables, numbered from 1, and for each match its signature, literals and boxes."""

    times: tuple[Time, ...]
    matches: tuple[tuple[int, tuple[Literal, ...], tuple[tuple[Literal, ...], ...]], ...]


def arrays_of(groups_to_lay_out: list[Matches]) -> Groups:
    """Return groups as arrays."""
    times = [time for group in groups_to_lay_out for time in group.times]
    laws: list[int] = []
    values: list[float] = []
    for time in times:
        laws.append(-1 if time.pmf is None else len(values))
        values += map(float, time.pmf or ())
    matches = [match for group in groups_to_lay_out for match in group.matches]
    terms = [[literals, *boxes] for _, literals, boxes in matches]
    literals = [literal for term in terms for part in term for literal in part]
    columns = np.array(literals, dtype=np.int64).reshape(-1, 3).T

    def ends(sizes: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.cumsum([0, *sizes])

    def whole(numbers: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(numbers, dtype=np.int64)

    return Groups(
        ends([len(group.times) for group in groups_to_lay_out]),
        whole([time.lower for time in times]),
        whole([time.upper for time in times]),
        whole([time.clock for time in times]),
        whole(laws),
        np.array(values, dtype=np.float64),
        ends([len(group.matches) for group in groups_to_lay_out]),
        whole([signature for signature, _, _ in matches]),
        ends([len(term) for term in terms]),
        ends([len(part) for term in terms for part in term]),
        *(np.ascontiguousarray(column) for column in columns),
    )


def worlds(group: Matches) -> Iterator[tuple[tuple[int, ...], Fraction, int]]:
    """Yield each choice of ticks, with its probability, and how many signatures have a match then."""
    for choice in product(*(time.law for time in group.times)):
        ticks, weight = [0], Fraction(1)
        for tick, chance in choice:
            ticks.append(tick)
            weight *= chance
        for number, time in enumerate(group.times, start=1):
            if time.clock:
                ticks[number] += ticks[time.clock]

        def holds(literals: tuple[Literal, ...], ticks: list[int] = ticks) -> bool:
            return all(ticks[later] - ticks[earlier] >= distance for earlier, later, distance in literals)

        signatures = {
            signature
            for signature, literals, boxes in group.matches
            if holds(literals) and not any(map(holds, boxes))
        }
        yield tuple(tick for tick, _ in choice), weight, len(signatures)


def counted(group: Matches, at_least: int) -> list[Fraction]:
    """Return the probabilities of 0, 1, .. matches, and of so many or more, by all choices of ticks."""
    masses = [Fraction(0)] * (at_least + 1)
    for _, weight, matches in worlds(group):
        masses[min(matches, at_least)] += weight
    return masses


@st.composite
def groups(draw: st.DrawFn, *, longest: int = 7, most_times: int = 4) -> Matches:
    """Draw a group: times that overlap, clocks, laws, windows, boxes, signatures of several matches."""
    count = draw(st.integers(1, most_times))
    times: list[Time] = []
    for number in range(count):
        lower, size = draw(st.integers(0, longest)), draw(st.integers(1, longest))
        clock = 0
        if number and draw(st.integers(0, 3)) == 0:
            clocks = [n for n, time in enumerate(times, start=1) if not time.clock]
            clock = draw(st.sampled_from(clocks))
            lower -= longest // 2
        pmf = None
        if size <= 7 and draw(st.integers(0, 3)) == 0:
            weights = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any))
            pmf = tuple(Fraction(weight, sum(weights)) for weight in weights)
        times.append(Time(lower, lower + size - 1, clock, pmf))
    distances = st.sampled_from([0, 1, 1, 1, 2, -1]) | st.integers(-longest, longest // 2)

    @st.composite
    def literal(draw: st.DrawFn) -> Literal:
        earlier, later = draw(st.permutations(range(count + 1)))[:2]
        if earlier and later:
            return earlier, later, draw(distances)
        tick = draw(st.integers(0, 2 * longest))
        return earlier, later, -tick if earlier else tick

    terms = st.lists(literal(), max_size=3).map(tuple)
    boxes = st.lists(st.lists(literal(), min_size=1, max_size=3).map(tuple), max_size=2).map(tuple)
    matches = []
    for signature in range(draw(st.integers(1, 4))):
        shared = draw(st.sampled_from([signature, signature, 0]))
        matches.append((shared, draw(terms), draw(boxes) if draw(st.booleans()) else ()))
    return Matches(tuple(times), tuple(matches))
