"""Patterns that forbid, repeat or order partially, on events that share clocks, against all worlds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from eventbased.gaps import fewer_offsets, held_clocks
from eventbased.gaps.clocks_in_gaps import clocks_in_gaps
from tests.cases.clocks import by_clocks
from tests.cases.existence import doubtful
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases, reading_cases
from tests.cases.options import option_cases
from tests.cases.sampling import sampled_from
from tests.cases.times import timed_cases, timed_nested_cases
from tests.executor.test_shared_clocks import table_of
from tests.oracle import Clock, Event, Query, answer, no, one, plus, seq


@given(by_clocks(language_cases(most=4)))
def test_kleene_negation_and_strategies(case: LanguageCase) -> None:
    case.check()


@given(by_clocks(language_cases("skip_till_next_match", most=4)))
def test_next_matches(case: LanguageCase) -> None:
    case.check()


@given(by_clocks(st.sampled_from(["SAO", "SA", "A"]).flatmap(lambda kinds: nested_cases(kinds, 4))))
def test_sets(case: NestedCase) -> None:
    case.check()


@given(by_clocks(reading_cases(4)))
def test_readings(case: NestedCase) -> None:
    case.check()


@given(by_clocks(option_cases(most=4)))
def test_options(case: NestedCase) -> None:
    case.check()


@given(by_clocks(timed_cases(most=4)))
def test_conditions_on_times(case: LanguageCase) -> None:
    case.check()


@given(doubtful(by_clocks(language_cases(most=4))))
def test_what_may_not_have_happened(case: LanguageCase) -> None:
    case.check()


@given(doubtful(by_clocks(st.sampled_from(["SA", "SAO"]).flatmap(lambda kinds: nested_cases(kinds, 4)))))
def test_sets_of_what_may_not_have_happened(case: NestedCase) -> None:
    case.check()


@given(doubtful(by_clocks(timed_cases(most=4))))
def test_conditions_on_times_of_what_may_not_have_happened(case: LanguageCase) -> None:
    case.check()


@given(by_clocks(timed_nested_cases()))
def test_conditions_on_times_of_sets(case: NestedCase) -> None:
    case.check()


@contextmanager
def _fewer_offsets() -> Iterator[None]:
    """Take the ways to fewer offsets wherever they lead, not only where they are worth the while."""
    always = patch.object(fewer_offsets, "is_fewer", lambda _steps, _most: True)
    with patch.object(held_clocks, "_FEW_CHOICES", 0), always:
        yield


@given(by_clocks(language_cases(most=4)))
def test_segments_that_matches_are_alike_in(case: LanguageCase) -> None:
    with _fewer_offsets():
        case.check()


@given(by_clocks(language_cases("skip_till_next_match", most=4)))
def test_segments_until_the_next_match(case: LanguageCase) -> None:
    with _fewer_offsets():
        case.check()


@given(by_clocks(nested_cases("SA", 4)))
def test_segments_that_sets_are_alike_in(case: NestedCase) -> None:
    with _fewer_offsets():
        case.check()


@given(doubtful(by_clocks(timed_cases(most=4))))
def test_clocks_one_by_one_with_conditions_on_times(case: LanguageCase) -> None:
    with _fewer_offsets():
        case.check()


@given(by_clocks(language_cases(most=4)), st.integers(0, 8), st.integers(1, 3))
def test_a_least_confidence_leaves_out_what_is_less_likely(case: LanguageCase, at: int, limit: int) -> None:
    """The threshold is just below, or at, a confidence that occurs."""
    table = case.trace.table()
    whole = uc.match(table, case.text("ORDER BY CONFIDENCE DESC")).to_pylist()
    assert uc.match(table, case.text(f"ORDER BY CONFIDENCE DESC LIMIT {limit}")).to_pylist() == whole[:limit]
    for place, share in ((at, 1.0), (at + 1, 0.999)):
        if place < len(whole):
            least = whole[place]["confidence"] * share
            kept = [row for row in whole if row["confidence"] >= least * (1 - 1e-9)]
            tail = f"HAVING CONFIDENCE >= {least:.17f} ORDER BY CONFIDENCE DESC"
            assert uc.match(table, case.text(tail)).to_pylist() == kept


@pytest.mark.parametrize("lower", [-3, 0, 1])
@pytest.mark.parametrize("width", [0, 3, 40])
@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("A+ v0[]", [plus("A", "v0")]),
        ("A v0, A+ v1[]", [one("A", "v0"), plus("A", "v1")]),
        ("A v0, !A n, A v1", [one("A", "v0"), no("A", "n"), one("A", "v1")]),
    ],
)
def test_matches_of_one_clock_beside_matches_of_several(
    pattern: str, parts: list[Any], lower: int, width: int
) -> None:
    """One clock has probabilities of its own, and the other one more offsets than it has of these."""
    skewed, even = Clock(0, 1, (Fraction(1, 4), Fraction(3, 4))), Clock(lower, lower + width)
    events = [
        Event("A", id, clock.lower, clock.upper, None, clock=clock)
        for id, clock in enumerate([skewed, even, even, skewed])
    ]
    found = uc.match(table_of(events), f"PATTERN SEQ({pattern}) WITHIN 5").to_pylist()
    _assert_of_all_worlds(found, Query(seq(*parts), 5), events)


def _assert_of_all_worlds(found: list[dict[str, Any]], query: Query, events: list[Event]) -> None:
    """Assert that rows are the matches in all worlds, with their ranges and confidences."""
    wanted = {match.ids: match for match in answer(query, events)}
    names = [name for name in ("v0", "v1", "v2") if found and name in found[0]]
    got = {
        tuple(tuple(row[name]) if isinstance(row[name], list) else row[name] for name in names): row
        for row in found
    }
    assert got.keys() == wanted.keys()
    for ids, match in wanted.items():
        assert (got[ids]["range_lower"], got[ids]["range_upper"]) == (match.range_lower, match.range_upper)
        assert got[ids]["confidence"] == pytest.approx(float(match.confidence), rel=1e-9)


IN_GAPS = {
    "A v0, !N n, B v1": seq(one("A", "v0"), no("N", "n"), one("B", "v1")),
    "A v0, !N n, B v1, !M m, C v2": seq(
        one("A", "v0"), no("N", "n"), one("B", "v1"), no("M", "m"), one("C", "v2")
    ),
    "!N n, A v0, B v1, !M m": seq(no("N", "n"), one("A", "v0"), one("B", "v1"), no("M", "m")),
    "!N n, A v0": seq(no("N", "n"), one("A", "v0")),
    "A v0, B+ v1[], !N n": seq(one("A", "v0"), plus("B", "v1"), no("N", "n")),
}
"""Patterns, as text and for the oracle."""


@st.composite
def _laws(draw: st.DrawFn, size: int) -> tuple[Fraction, ...] | None:
    if size == 1 or draw(st.booleans()):
        return None
    shares = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size).filter(any))
    return tuple(Fraction(share, sum(shares)) for share in shares)


@st.composite
def _in_gaps(draw: st.DrawFn) -> list[Event]:
    """Draw events at uncertain times, and several events of each clock of what is forbidden."""
    clocks = []
    for _ in range(3):
        lower, size = draw(st.integers(-2, 1)), draw(st.integers(2, 3))
        clocks.append(Clock(lower, lower + size - 1, draw(_laws(size))))
    both = draw(st.booleans())
    kinds = [(kind, draw(sampled_from([None, None, clocks[2]]))) for kind in "ABC"]
    kinds += [("N", clocks[0]), ("N", clocks[0]), *[("N" if both else "M", clocks[1])] * 2]
    events = []
    for id, (kind, clock) in enumerate(kinds):
        own = draw(st.integers(0, 2)) + 3 * "ABC".index(kind) if kind in "ABC" else draw(st.integers(1, 6))
        width = draw(st.integers(0, 2)) if kind in "ABC" else draw(sampled_from([0, 0, 0, 1]))
        low, high = (0, 0) if clock is None else (clock.lower, clock.upper)
        chance = Fraction(1, 1 if kind in "ABC" else draw(sampled_from([1, 1, 2])))
        pmf = draw(_laws(width + 1))
        events.append(Event(kind, id, own + low, own + width + high, pmf, clock=clock, probability=chance))
    return events


@given(st.sampled_from(sorted(IN_GAPS)), st.integers(3, 12), _in_gaps())
def test_clocks_that_stand_in_one_gap(pattern: str, window: int, events: list[Event]) -> None:
    """Matches that are certain by their clocks are weighed that way, too."""
    with _fewer_offsets(), patch.object(held_clocks, "one_by_one", lambda *_: None):
        found = uc.match(table_of(events), f"PATTERN SEQ({pattern}) WITHIN {window}").to_pylist()
    _assert_of_all_worlds(found, Query(IN_GAPS[pattern], window), events)


def _events(*events: tuple[str, int, str | None], widest: int) -> pa.Table:
    """Return events of a type, at a time by a clock that is up to so many ticks off."""
    named = [clock is not None for _, _, clock in events]
    return pa.table(
        {
            "type": [type for type, _, _ in events],
            "id": list(range(len(events))),
            "lower": [at for _, at, _ in events],
            "upper": [at + widest * name for (_, at, _), name in zip(events, named, strict=True)],
            "source": pa.array([clock for _, _, clock in events], pa.string()),
            "offset_lower": [0 if name else None for name in named],
            "offset_upper": [widest if name else None for name in named],
        }
    )


@pytest.mark.parametrize("widest", [100, 3_000_000])
def test_the_number_of_ticks_does_not_matter_where_events_are_certain_by_their_clocks(widest: int) -> None:
    query = f"PATTERN SEQ(A a, !N n, B b) WITHIN {2 * widest}"
    certain = _events(
        ("A", 0, None), ("B", widest, None), ("N", 0, "z"), ("N", widest // 3, "z"), widest=widest
    )
    (row,) = uc.match(certain, query).to_pylist()
    # The first forbids but for the least and the largest offset, the other one for the least.
    assert row["confidence"] == pytest.approx(1 / (widest + 1), rel=1e-9)
    of_two = _events(("A", 0, "h"), ("B", 10, "h"), ("N", 5, "g"), ("N", 6, "g"), widest=widest)
    (row,) = uc.match(of_two, query).to_pylist()
    spoiled = sum(widest + 1 - abs(apart) for apart in range(-5, 5))
    assert row["confidence"] == pytest.approx(1 - spoiled / (widest + 1) ** 2, rel=1e-9)
    assert (row["range_lower"], row["range_upper"]) == (0, widest + 10)


def test_clocks_of_what_is_forbidden_are_gone_through_one_by_one() -> None:
    widest = 3_000_000
    readings = {"x": (5, 20), "y": (0, 30), "z": (0, 3)}
    forbidden = [("N", at, clock) for clock, known in readings.items() for at in known]
    query = f"PATTERN SEQ(A a, !N n, B b) WITHIN {2 * widest}"
    (row,) = uc.match(_events(("A", 0, None), ("B", 10, None), *forbidden, widest=widest), query).to_pylist()
    # The offsets at which an event of each clock is in the gap.
    expected = math.prod(1 - spoiling / (widest + 1) for spoiling in (5, 9, 10))
    assert row["confidence"] == pytest.approx(expected, rel=1e-9)
    assert (row["range_lower"], row["range_upper"]) == (0, 10)


def test_a_match_of_one_clock_and_what_others_forbid() -> None:
    widest = 300
    readings = {"x": (5, 20), "y": (0, 30), "z": (100, 103)}
    forbidden = [("N", at, clock) for clock, known in readings.items() for at in known]
    query = f"PATTERN SEQ(A a, !N n, B b) WITHIN {2 * widest}"
    (row,) = uc.match(_events(("A", 0, "h"), ("B", 10, "h"), *forbidden, widest=widest), query).to_pylist()
    offsets = np.arange(widest + 1)
    free = np.ones(len(offsets))
    for known in readings.values():
        apart = np.array(known)[:, None, None] + offsets - offsets[:, None]
        free *= 1 - ((apart > 0) & (apart < 10)).any(axis=0).mean(axis=1)
    assert row["confidence"] == pytest.approx(free.mean(), rel=1e-9)
    assert (row["range_lower"], row["range_upper"]) == (0, widest + 10)


def test_offsets_that_are_not_equally_likely_are_gone_through_one_by_one() -> None:
    widest, law = 300, [0.5] + [0.4 / 299] * 299 + [0.1]
    table = _events(("A", 0, None), ("B", 10, None), ("N", 0, "z"), ("N", 3, "z"), widest=widest)
    laws = [law if name else None for name in table["source"].to_pylist()]
    table = table.append_column("offset_pmf", pa.array(laws, pa.list_(pa.float64())))
    (row,) = uc.match(table, f"PATTERN SEQ(A a, !N n, B b) WITHIN {2 * widest}").to_pylist()
    # An event is in the gap but for offsets of 10 and more.
    assert row["confidence"] == pytest.approx(sum(law[10:]), rel=1e-9)


def test_choices_of_clocks_in_different_gaps_add_up() -> None:
    """Of events that are uncertain, too: without that it were a sum over 9 million choices, and an error."""
    widest = 2_999
    readings = {"x": ("N", (0, -6)), "y": ("M", (3, -20))}
    named = [(kind, at, clock) for clock, (kind, known) in readings.items() for at in known]
    table = _events(("A", 0, None), ("B", 10, None), ("C", 20, None), *named, widest=widest)
    table = table.set_column(3, "upper", pa.array([4, 14, 24, *table["upper"].to_pylist()[3:]]))
    asked: list[Any] = []

    def noted(*given: Any) -> Any:
        asked.append(clocks_in_gaps(*given))
        return asked[-1]

    with patch.object(held_clocks, "clocks_in_gaps", noted):
        (row,) = uc.match(table, f"PATTERN SEQ(A a, !N n, B b, !M m, C c) WITHIN {2 * widest}").to_pylist()
    (found,) = asked
    assert (len(found.held), len(found.apart)) == (0, 2)

    def free(clock: str, after: int, before: int) -> float:
        times = np.arange(widest + 1) + np.array(readings[clock][1])[:, None]
        return float((~((times > after) & (times < before)).any(axis=0)).mean())

    ticks = range(5)
    sums = [
        sum(free("x", a, 10 + b) for a in ticks) * sum(free("y", 10 + b, 20 + c) for c in ticks) / 25
        for b in ticks
    ]
    assert row["confidence"] == pytest.approx(sum(sums) / 5, rel=1e-9)
    assert (row["range_lower"], row["range_upper"]) == (0, 24)
