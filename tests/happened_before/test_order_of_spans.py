"""The order of events that last, against all worlds of two of them by exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, permutations, product

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cases.spans import Lasting, SpanCase, span_cases
from tests.operators.test_span_facts import spans

Orders = tuple[Fraction, Fraction, Fraction]

KINDS: dict[str, st.SearchStrategy[SpanCase]] = {
    "spans": span_cases(spare=2),
    "clocks": span_cases(with_clocks=True, spare=2),
    "laws": span_cases(with_laws=True, spare=2),
    "laws by clocks": span_cases(with_clocks=True, with_laws=True, spare=2),
}


def orders(x: Lasting, y: Lasting, case: SpanCase) -> Orders:
    """Return the probabilities of before, after and neither, over all worlds of two events."""
    chances_of = [Fraction(0)] * 3
    names = sorted(case.clocks)
    for offsets in product(*(range(low, high + 1) for low, high in (case.clocks[name] for name in names))):
        share, moved = Fraction(1), dict(zip(names, offsets, strict=True))
        for name, offset in moved.items():
            low, high = case.clocks[name]
            law = case.offset_laws.get(name)
            share *= Fraction(1, high - low + 1) if law is None else law[offset - low]
        by_x, by_y = (0 if one.clock is None else moved[one.clock] for one in (x, y))
        for (one, chance), (other, weight) in product(x.law().items(), y.law().items()):
            first, then = one[1] + by_x < other[0] + by_y, other[1] + by_y < one[0] + by_x
            chances_of[0 if first else 1 if then else 2] += share * chance * weight
    return chances_of[0], chances_of[1], chances_of[2]


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data(), pairs=st.sampled_from(["open", "all"]))
def test_pairs_of_spans_are_those_of_all_worlds(kind: str, data: st.DataObject, pairs: str) -> None:
    case = data.draw(KINDS[kind])
    note(f"{case.events}\n{case.clocks}\n{case.offset_laws}")
    rows = uc.order(case.table(), pairs=pairs).to_pylist()
    expected = {}
    for x, y in combinations(range(len(case.events)), 2):
        chances = orders(case.events[x], case.events[y], case)
        if pairs == "all" or max(chances[:2]) < 1:
            expected[frozenset((x, y))] = (x, chances)
    assert {frozenset((row["x"], row["y"])) for row in rows} == set(expected)
    assert len(rows) == len(expected)
    for row in rows:
        x, (before, after, neither) = expected[frozenset((row["x"], row["y"]))]
        if row["x"] != x:
            before, after = after, before
        for name, exact in (("before", before), ("after", after), ("neither", neither)):
            assert math.isclose(row[name], exact, rel_tol=1e-9, abs_tol=1e-15), (row, exact)
            assert (row[name] > 0.0) == (exact > 0), (row, exact)


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_covers_of_spans_are_the_reduction_of_what_is_certain(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    events = range(len(case.events))
    certain = {
        (x, y) for x, y in permutations(events, 2) if orders(case.events[x], case.events[y], case)[0] == 1
    }
    reduced = {(x, y) for x, y in certain if not any((x, z) in certain and (z, y) in certain for z in events)}
    covers = uc.order(case.table(), pairs="cover")
    assert {(row["x"], row["y"]) for row in covers.to_pylist()} == reduced
    assert covers.column("before").to_pylist() == [1.0] * len(reduced)


def test_a_span_among_points() -> None:
    """Fact 18."""
    events = spans(
        ("A", 1, (0, 2), None, None), ("A", 2, (2, 4), None, None), ("A", 3, (5, 6), None, None),
        ("A", 4, (3, 3), (4, 4), None),
    )  # fmt: skip
    rows = {(row["x"], row["y"]): row for row in uc.order(events).to_pylist()}
    assert rows.keys() == {(1, 2), (2, 4)}
    assert [rows[pair]["before"] for pair in ((1, 2), (2, 4))] == pytest.approx([8 / 9, 1 / 3])
    assert rows[2, 4]["neither"] == pytest.approx(2 / 3)
    covers = uc.order(events, pairs="cover").to_pylist()
    assert {(row["x"], row["y"]) for row in covers} == {(1, 4), (2, 3), (4, 3)}


def test_long_spans_cost_no_ticks() -> None:
    """A minute of microseconds, and a request somewhere around its end."""
    million = 1_000_000
    events = spans(
        ("M", 1, (0, 0), (60 * million, 60 * million), None),
        ("R", 2, (59 * million, 61 * million - 1), None, (million, million)),
    )
    (row,) = uc.order(events).to_pylist()
    assert row["before"] == pytest.approx((million - 1) / (2 * million), rel=1e-12)
    assert row["neither"] == pytest.approx((million + 1) / (2 * million), rel=1e-12)
    both_ways = spans(
        ("A", 1, (0, 2 * million), (million, 3 * million), None),
        ("B", 2, (0, 2 * million), (million, 3 * million), None),
    )
    (row,) = uc.order(both_ways).to_pylist()
    assert row["before"] == pytest.approx(row["after"], rel=1e-12)
    assert row["before"] + row["after"] + row["neither"] == pytest.approx(1.0, rel=1e-12)
