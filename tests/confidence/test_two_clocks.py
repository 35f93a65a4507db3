"""Matches of events that are certain by clocks, side by side, against every choice of offsets."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence.chain.exact import exact_chain_confidence
from confidence.shared.two_clocks import EXACT, ROOM
from confidence.shared.weighing import RigidEvents, RigidMatches
from confidence.shared.write_two_clocks import PLACE, written_out


class Case(NamedTuple):
    """Matches of events some of which share a clock."""

    clock: list[int]
    """Of each event; -1: one of its own."""
    reading: list[int]
    bounds: list[tuple[int, int]]
    """Of each clock's offset, and then of that of each event with one of its own."""
    matches: list[list[int]]
    window: int

    @property
    def offset(self) -> list[int]:
        """The number of each event's offset."""
        known = max(self.clock, default=-1) + 1
        own = itertools.count(known)
        return [clock if clock >= 0 else next(own) for clock in self.clock]

    def events(self, far: int = 0) -> RigidEvents:
        low, high = (
            np.array([at + self.bounds[x][side] for at, x in zip(self.reading, self.offset, strict=True)])
            for side in (0, 1)
        )
        # One event more, which no match has.
        far_low, far_high = np.append(low, low.min() + far), np.append(high, low.min() + far)
        return RigidEvents(np.append(self.clock, -1), far_low, far_high)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    ticks = st.integers(0, 5)
    clocks = draw(st.integers(1, 3))
    clock = draw(st.lists(st.integers(-1, clocks - 1), min_size=2, max_size=9))
    number = clocks + clock.count(-1)
    reading = list(itertools.accumulate(draw(st.integers(-1, 4)) for _ in clock))
    bounds = []
    for _ in range(number):
        low = draw(st.integers(-3, 3))
        bounds.append((low, low + draw(ticks)))
    named = [*clock, clocks - 1]  # So that all clocks are numbered.
    length = draw(st.integers(2, min(len(clock), 5)))
    chosen = st.lists(st.sampled_from(range(len(clock))), min_size=length, max_size=length, unique=True)
    matches = draw(st.lists(chosen.map(sorted), min_size=1, max_size=6))
    return Case(named, [*reading, 0], bounds, matches, draw(st.integers(1, 20)))


def exactly(case: Case, match: list[int]) -> tuple[int, int, Fraction] | None:
    """Return range and confidence of a match by all choices of offsets; None if it cannot happen."""
    offset = [case.offset[event] for event in match]
    kinds = sorted(set(offset))
    found, every = [], 0
    for values in itertools.product(*(range(case.bounds[x][0], case.bounds[x][1] + 1) for x in kinds)):
        every += 1
        moved = dict(zip(kinds, values, strict=True))
        times = [case.reading[event] + moved[x] for event, x in zip(match, offset, strict=True)]
        if all(s < t for s, t in itertools.pairwise(times)) and times[-1] - times[0] < case.window:
            found.append((times[0], times[-1]))
    if not found:
        return None
    return min(s for s, _ in found), max(t for _, t in found), Fraction(len(found), every)


def weighed(case: Case, events: RigidEvents, matches: Any, several: int = 1) -> tuple[Any, Any, Any]:
    """Return ranges, which were -7 to -7 before, and confidences."""
    many = matches.shape[1]
    found = np.full(many, -7), np.full(many, -7), np.full(many, 7.0)
    rigid = RigidMatches(matches, case.window, events, *found)
    cuts = np.linspace(0, many, several + 1).astype(int).tolist()
    for part in itertools.pairwise(cuts):
        assert not rigid.weigh(part, True)
    return found


@given(cases())
def test_matches_are_weighed_as_all_offsets_say(case: Case) -> None:
    first, last, confidence = weighed(case, case.events(), np.array(case.matches).T.copy())
    for n, match in enumerate(case.matches):
        clocks = [case.offset[event] for event in match]
        exact = exactly(case, match)
        assert confidence[n] == pytest.approx(float(exact[2]) if exact else 0.0, rel=1e-12, abs=0)
        if len(set(clocks)) == len(clocks):
            assert (first[n], last[n]) == (-7, -7), "no two of its events share a clock"
        elif exact is None:
            assert first[n] > last[n]
        else:
            assert (first[n], last[n]) == exact[:2]


@given(cases(), st.integers(1, 4), st.booleans())
def test_side_by_side_or_one_by_one(case: Case, several: int, has_gap: bool) -> None:
    """In parts, in columns with a gap, and where float64 does not tell ticks apart."""
    matches = np.tile(np.array(case.matches).T, ROOM // 3)
    given = np.ascontiguousarray(matches)
    if has_gap:
        given = np.zeros((len(matches), matches.shape[1] + 3), np.int64)[:, : matches.shape[1]]
        given[:] = matches
    found = weighed(case, case.events(), given, several)
    alone = case.events(far=2 * EXACT)
    assert alone.columns is None
    for column, other in zip(found, weighed(case, alone, matches.copy()), strict=True):
        possible = found[0] <= found[1]
        assert column[possible].tolist() == pytest.approx(other[possible].tolist(), rel=1e-12)
        assert (found[2][~possible] == 0.0).all()


@given(cases(), st.integers(1, 4))
def test_what_cannot_happen_is_left_out(case: Case, several: int) -> None:
    matches = np.tile(np.array(case.matches).T, 9)
    first, last, confidence = weighed(case, case.events(), matches.copy())
    ids = np.arange(len(case.clock)) + 100
    for payload in (ids, ids[:0]):
        columns = first.copy(), last.copy(), confidence.copy()
        rigid = RigidMatches(matches.copy(), case.window, case.events(), *columns)
        cuts = np.linspace(0, len(first), several + 1).astype(int).tolist()
        for part in itertools.pairwise(cuts):
            rigid.keep_possible(part, payload)
        events, *kept = rigid.columns()
        possible = first <= last
        wanted = payload[matches] if len(payload) else matches
        assert events.tolist() == wanted[:, possible].tolist()
        for column, whole in zip(kept, (first, last, confidence), strict=True):
            assert column.tolist() == whole[possible].tolist()


def test_sums_that_cancel_are_redone_exactly() -> None:
    """Ten events, each by a clock of its own, of which the order is hardly possible."""
    wide = [(place, place + 3 * 10**5) for place in range(10)]
    case = Case([-1] * 10, [0] * 10, wide, [list(range(10))], 4 * 10**5)
    for length in (8, 10):
        rows = np.arange(length)[::-1, None].copy()
        _, _, confidence = weighed(case, case.events(), rows)
        bounds = [wide[event] for event in rows[:, 0].tolist()]
        lower, upper = zip(*bounds, strict=True)
        exact = exact_chain_confidence(lower, upper, case.window)
        assert confidence[0] == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("length", range(2, 10))
def test_two_clocks_in_turns(length: int) -> None:
    """A million ticks each: the strip that order leaves, by its exact number."""
    width = 10**6
    clock = [place % 2 for place in range(length)]
    reading = [10 * (place // 2) for place in range(length)]
    case = Case(clock, reading, [(0, width - 1)] * 2, [list(range(length))], 10 * width)
    first, last, confidence = weighed(case, case.events(), np.arange(length)[:, None].copy())
    if length == 2:
        assert confidence.tolist() == pytest.approx([(width - 1) / (2 * width)], rel=1e-15)
        return
    counted = sum(width - difference for difference in range(1, 10))
    assert confidence[0] == pytest.approx(counted / width**2, rel=1e-15)
    assert first.tolist() == [0]
    assert last[0] == reading[-1] + width - (1 if length % 2 == 0 else 2)


def test_written_kernels_are_those_of_the_generator() -> None:
    assert PLACE.read_text() == written_out(), "run python -m confidence.shared.write_two_clocks"
