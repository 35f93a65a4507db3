"""Every weigher gives the oracle's answer wherever it has a price, and so does one that is added."""

from __future__ import annotations

from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.budgets import budget
from tests.cases.clocks import by_clocks
from tests.cases.existence import doubtful
from tests.cases.language import PatternCase, language_cases
from tests.cases.nested import nested_cases
from tests.cases.sampling import FEWER
from tests.cases.times import timed_cases, timed_nested_cases
from tests.weighers.forcing import CountedWorlds, forced
from uncertain_cep.weighers import explicit
from uncertain_cep.weighers.bounded_chains import BoundedChains
from uncertain_cep.weighers.elimination import Elimination
from uncertain_cep.weighers.gap_chains import GapChains
from uncertain_cep.weighers.held_ends import HeldChains
from uncertain_cep.weighers.order_ideals import Ideals
from uncertain_cep.weighers.two_times import TwoTimes

BUILDS: Final[dict[str, Any]] = {
    "gap chain": GapChains.of,
    "ideals": Ideals.of,
    "bounded chain": BoundedChains.of,
    "two times": TwoTimes.of,
    "held chain": HeldChains.of,
    "elimination": Elimination.of,
    "counted worlds": CountedWorlds.of,
}


@st.composite
def any_cases(draw: st.DrawFn) -> PatternCase:
    """Draw a case with any constructs: strategies, sets, times, existence, clocks."""
    cases: list[st.SearchStrategy[Any]] = [
        language_cases(),
        nested_cases("AAS"),
        timed_cases(),
        timed_nested_cases(),
    ]
    chosen = draw(st.sampled_from(cases))
    kind = draw(st.sampled_from(["plain", "plain", "doubtful", "clocks"]))
    if kind == "doubtful":
        chosen = doubtful(chosen)
    elif kind == "clocks":
        chosen = by_clocks(chosen)
    case: PatternCase = draw(chosen)
    return case


@pytest.mark.parametrize("name", BUILDS)
@FEWER
@given(case=any_cases())
def test_a_forced_weigher_is_the_oracle(name: str, case: PatternCase) -> None:
    note(case.text())
    with forced(BUILDS[name]):
        case.check()


@FEWER
@given(
    case=any_cases(),
    steps=st.sampled_from([1, 3, 7]),
    of_one=st.sampled_from([1, 2, 64]),
    of_all=st.sampled_from([1, 3, 1 << 14]),
    at_once=st.sampled_from([1, 2, 1 << 20]),
)
def test_matches_are_written_out_in_any_pieces(
    case: PatternCase, steps: int, of_one: int, of_all: int, at_once: int
) -> None:
    """Events that a match forbids are listed in calls of any length, and in room that grows."""
    note(case.text())
    with (
        budget(steps),
        patch.object(explicit, "_FIRST_OF_ONE", of_one),
        patch.object(explicit, "_FIRST_ROOM", of_all),
        patch.object(explicit, "_MOST_SPOILERS", at_once),
        patch.object(explicit, "_MOST_BOUNDS", at_once),
        forced(Elimination.of),
    ):
        case.check()


QUERIES: Final = {
    "gap chain": "SEQ(A a, !N n, B b)",
    "ideals": "AND(A a, B b)",
    "bounded chain": "SEQ(A a, B b) WHERE TIME(b) - TIME(a) <= 6",
    "two times": "SEQ(A a, !N n, B b) WHERE TIME(n) - TIME(a) <= 3",
    "held chain": "SEQ(A a, N m, B b) UNTIL U u",
    "elimination": "AND(A a, B b) WHERE TIME(b) - TIME(a) <= 6",
    "counted worlds": "SEQ(A a, !N n, B b) WHERE TIME(n) - TIME(a) <= 2",
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_forced_weigher_takes_matches(name: str) -> None:
    columns = {"type": ["A", "N", "B", "U"], "id": [1, 2, 3, 4], "lower": [0, 3, 5, 2], "upper": [4, 6, 9, 8]}
    events = pa.table(columns)
    query = f"PATTERN {QUERIES[name]} WITHIN 20"
    (expected,) = uc.match(events, query).to_pylist()
    with forced(BUILDS[name]) as taken:
        (found,) = uc.match(events, query).to_pylist()
    assert taken.count > 0
    assert found["confidence"] == pytest.approx(expected["confidence"], rel=1e-9)
    assert (found["range_lower"], found["range_upper"]) == (expected["range_lower"], expected["range_upper"])


def _pair(ticks: int) -> pa.Table:
    return pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 10], "upper": [ticks, ticks + 10]})


@pytest.mark.parametrize("ticks", [6_000, 1_000_000])
@pytest.mark.parametrize("least", [1, 3])
def test_a_set_whose_times_are_put_in_order_is_a_chain(ticks: int, least: int) -> None:
    ordered = f"WHERE TIME(b) - TIME(a) >= {least} WITHIN {2 * ticks}"
    chain = uc.match(_pair(ticks), f"PATTERN SEQ(A a, B b) {ordered}").to_pylist()
    assert uc.match(_pair(ticks), f"PATTERN AND(A a, B b) {ordered}").to_pylist() == chain
    if (ticks, least) == (6_000, 3):
        assert chain[0]["confidence"] == pytest.approx(0.501249, abs=1e-6)


@FEWER
@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5)), min_size=3, max_size=3),
    st.permutations("abc"),
    st.integers(1, 3),
    st.integers(3, 12),
)
def test_any_order_of_a_set_that_conditions_give_is_the_sequence(
    spans: list[tuple[int, int]], order: list[str], least: int, window: int
) -> None:
    events = pa.table(
        {
            "type": ["A", "B", "C"],
            "id": [0, 1, 2],
            "lower": [lower for lower, _ in spans],
            "upper": [lower + length for lower, length in spans],
        }
    )
    one, two, three = order
    times = f"WHERE TIME({two}) - TIME({one}) >= {least} AND TIME({three}) > TIME({two}) WITHIN {window}"
    sequence = ", ".join(f"{name.upper()} {name}" for name in order)
    found = uc.match(events, f"PATTERN AND(A a, B b, C c) {times}").to_pylist()
    expected = uc.match(events, f"PATTERN SEQ({sequence}) {times}").to_pylist()
    assert [row["confidence"] for row in found] == pytest.approx([row["confidence"] for row in expected])
    assert [(row["range_lower"], row["range_upper"]) for row in found] == [
        (row["range_lower"], row["range_upper"]) for row in expected
    ]
