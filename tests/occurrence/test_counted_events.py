"""RETURN PROBABILITY of at least n events of a set, against all worlds."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.counts.at_least import Laws, probability_of_at_least
from tests.cases.sampling import FEWER
from uncertain_cep.errors import ConfidenceCostError, QueryError
from uncertain_cep.occurrence import counted_events
from uncertain_cep.testing import table as table_of
from uncertain_cep.testing.model import Event

LOGINS = pa.table(
    {
        "type": ["Fail", "Fail", "Fail", "Fail", "Ok"],
        "id": [1, 2, 3, 4, 9],
        "lower": [0, 3, 6, 9, 13],
        "upper": [5, 9, 12, 13, 15],
        "user": ["u"] * 5,
    }
)


def test_three_failures_before_a_login() -> None:
    """All worlds have been enumerated: 0.7047619."""
    query = "PATTERN SEQ(AND(Fail{3,} f[]), Ok s) WHERE [user] WITHIN 10 RETURN PROBABILITY BY s"
    (row,) = uc.match(LOGINS, query).to_pylist()
    assert row == {"s": 9, "probability": pytest.approx(0.7047619, abs=5e-8)}


def worlds(
    events: list[Event], at_least: int, window: int, *, is_behind: bool, by: bool
) -> dict[Any, Fraction]:
    """Return how likely each B, or any, has at least so many A next to it within the window."""
    chances: dict[Any, Fraction] = {}
    laws = []
    for event in events:
        size = event.upper - event.lower + 1
        weights = event.pmf or (Fraction(1, size),) * size
        law = [(event.lower + n, event.probability * weight) for n, weight in enumerate(weights)]
        laws.append([*law, (None, 1 - event.probability)])
    for world in product(*laws):
        weight = math.prod(chance for _, chance in world)
        if not weight:
            continue
        ticks = [tick for tick, _ in world]
        matched = set()
        for anchor, tick in zip(events, ticks, strict=True):
            if anchor.type != "B" or tick is None:
                continue
            apart = [
                other - tick if is_behind else tick - other
                for event, other in zip(events, ticks, strict=True)
                if event.type == "A" and other is not None
            ]
            if sum(0 < ticks_apart < window for ticks_apart in apart) >= at_least:
                matched.add(anchor.id if by else None)
        for key in matched:
            chances[key] = chances.get(key, Fraction(0)) + weight
    return chances


@st.composite
def event_lists(draw: st.DrawFn) -> list[Event]:
    events = []
    for number in range(draw(st.integers(2, 6))):
        kind = "B" if number == 0 else draw(st.sampled_from("AAAB"))
        lower, size = draw(st.integers(0, 8)), draw(st.integers(1, 4))
        chance = draw(st.sampled_from([Fraction(1), Fraction(1), Fraction(1, 2)]))
        pmf = None
        if size > 1 and draw(st.integers(0, 3)) == 0:
            weights = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size).filter(any))
            pmf = tuple(Fraction(weight, sum(weights)) for weight in weights)
        events.append(Event(kind, number, lower, lower + size - 1, pmf=pmf, probability=chance))
    return events


@FEWER
@given(event_lists(), st.integers(2, 3), st.integers(2, 9), st.booleans(), st.booleans(), st.booleans())
def test_events_are_counted_in_all_worlds(
    events: list[Event], at_least: int, window: int, is_behind: bool, by: bool, is_open: bool
) -> None:
    counted = f"AND(A{{{at_least}{',' if is_open else ''}}} a[])"
    pattern = f"SEQ(B b, {counted})" if is_behind else f"SEQ({counted}, B b)"
    text = f"PATTERN {pattern} WITHIN {window} RETURN PROBABILITY {'BY b' if by else ''}"
    note(text)
    expected = worlds(events, at_least, window, is_behind=is_behind, by=by)
    rows = uc.match(table_of(events), text).to_pylist()
    assert {row.get("b"): row["probability"] for row in rows} == pytest.approx(
        {key: float(value) for key, value in expected.items()}, rel=1e-9
    )


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 300)), min_size=1, max_size=9), st.data())
def test_few_ticks_tell_the_sum_over_all(spans: list[tuple[int, int]], data: st.DataObject) -> None:
    """Pieces of polynomials against a sum tick by tick."""
    count, window = data.draw(st.integers(1, len(spans))), data.draw(st.integers(2, 500))
    low, size, is_behind = (
        data.draw(st.integers(0, 400)),
        data.draw(st.integers(1, 500)),
        data.draw(st.booleans()),
    )
    values = np.zeros(0)

    def laws(ticks: list[tuple[int, int]]) -> Laws:
        lower = np.array([first for first, _ in ticks])
        upper = np.array([first + length - 1 for first, length in ticks])
        return Laws(lower, upper, np.ones(len(ticks)), np.full(len(ticks), -1), values)

    whole = probability_of_at_least(laws([(low, size)]), laws(spans), count, window, is_behind, 10**9)
    by_tick = [
        probability_of_at_least(laws([(tick, 1)]), laws(spans), count, window, is_behind, 10**9)
        for tick in range(low, low + size)
    ]
    assert whole == pytest.approx(sum(by_tick) / size, rel=1e-9, abs=1e-300)


def test_the_cost_does_not_depend_on_the_length_of_a_tick() -> None:
    """Of 20 events that fill the window the number is binomial given the anchor; times of 10^9 ticks."""
    ticks = 10**9
    events = Laws(np.zeros(20, np.int64), np.full(20, ticks - 1), np.ones(20), np.full(20, -1), np.zeros(0))
    anchor = Laws(np.zeros(1, np.int64), np.full(1, ticks - 1), np.ones(1), np.full(1, -1), np.zeros(0))
    value = probability_of_at_least(anchor, events, 15, ticks, False, 10**6)
    # The anchor is the 16th or later of 21 that are alike: 6 of 21, but for ties.
    assert value == pytest.approx(6 / 21, rel=1e-6)


def test_thousands_of_events_are_counted() -> None:
    """3,000 events, each of them in the window with probability 1/2."""
    count = 3_000
    rows = {
        "type": ["A"] * count + ["B"],
        "id": list(range(count + 1)),
        "lower": [0] * count + [20],
        "upper": [19] * count + [20],
    }
    query = "PATTERN SEQ(AND(A{1500,} a[]), B b) WITHIN 11 RETURN PROBABILITY"
    (row,) = uc.match(pa.table(rows), query).to_pylist()
    expected = Fraction(sum(math.comb(count, n) for n in range(1_500, count + 1)), 2**count)
    assert row["probability"] == pytest.approx(float(expected), rel=1e-9)


def test_anchors_that_share_too_many_events_are_named_or_bounded() -> None:
    count = 40
    rows = {
        "type": ["A"] * count + ["B", "B"],
        "id": list(range(count + 2)),
        "lower": [0] * count + [22, 25],
        "upper": [30] * count + [30, 33],
    }
    query = "PATTERN SEQ(AND(A{9,} a[]), B b) WITHIN 20 RETURN PROBABILITY"
    events = pa.table(rows)
    with pytest.raises(ConfidenceCostError, match="80 possible matches"):
        uc.match(events, query)
    (row,) = uc.match(events, query, undecided="bounds").to_pylist()
    each = [one["probability"] for one in uc.match(events, f"{query} BY b").to_pylist()]
    assert row["probability"] is None
    assert row["probability_lower"] == pytest.approx(max(each))
    assert row["probability_upper"] == pytest.approx(min(1.0, sum(each)))


def test_choices_are_written_out_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways give the same answer where anchors share nothing."""
    query = "PATTERN SEQ(AND(Fail{2,} f[]), Ok s) WHERE [user] WITHIN 10 RETURN PROBABILITY BY s"
    (row,) = uc.match(LOGINS, query).to_pylist()
    monkeypatch.setattr(counted_events, "_closed", lambda *_: (None, 0.0, 1.0))
    (other,) = uc.match(LOGINS, query).to_pylist()
    assert other["probability"] == pytest.approx(row["probability"], rel=1e-9)


@pytest.mark.parametrize(
    ("pattern", "clauses", "message"),
    [
        ("SEQ(AND(A{2,} a[]), B b)", "WITHIN 9", "RETURN PROBABILITY"),
        ("AND(A{2,} a[])", "WITHIN 9 RETURN PROBABILITY", "not defined"),
        ("SEQ(AND(A{2,} a[], C c), B b)", "WITHIN 9 RETURN PROBABILITY", "not defined"),
        ("SEQ(AND(A* a[]), B b)", "WITHIN 9 RETURN PROBABILITY", "not defined"),
        (
            "SEQ(AND(A{2,} a[]), B b)",
            "WITHIN 9 RETURN PROBABILITY OF AT LEAST 2 MATCHES",
            "leave out OF AT LEAST",
        ),
        ("SEQ(AND(A{2,} a[]), B b)", "WHERE avg(a[].x) > 1 WITHIN 9 RETURN PROBABILITY", "single events"),
        (
            "SEQ(AND(A{2,} a[]), B b)",
            "WHERE TIME(b) - TIME(a[i]) > 1 WITHIN 9 RETURN PROBABILITY",
            "single events",
        ),
        ("SEQ(AND(A{2,} a[]), B b)", "WITHIN 9 RETURN PROBABILITY BY a", "several events"),
    ],
)
def test_faults(pattern: str, clauses: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        uc.parse(f"PATTERN {pattern} {clauses}")
