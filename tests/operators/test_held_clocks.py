"""Patterns that forbid, repeat or order partially, on events that share clocks, against all worlds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from eventbased.gaps import fewer_offsets, held_clocks
from tests.cases.clocks import by_clocks
from tests.cases.existence import doubtful
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases, reading_cases
from tests.cases.options import option_cases
from tests.cases.times import timed_cases, timed_nested_cases


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
    always = patch.object(fewer_offsets, "_is_fewer", lambda _steps, _most: True)
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
