"""When events that last began and ended, given their match: the laws that enumerated worlds give."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cases.spans import RELATIONS, Pair, SpanCase
from tests.operators.test_span_facts import spans
from tests.operators.test_spans import KINDS
from tests.results.test_posteriors import Law, check_law

pytestmark = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")


def laws_given(case: SpanCase) -> dict[tuple[int, ...], list[dict[Pair, Fraction]]]:
    """Return for each match the law of begin and end of each of its events."""
    laws_of: dict[tuple[int, ...], list[dict[Pair, Fraction]]] = {}
    for weight, world in case.worlds():
        ticks = {event.id: pair for event, pair in world.items()}
        for key, _ in case.matches(world):
            laws = laws_of.setdefault(key, [defaultdict(Fraction) for _ in key])
            for law, number in zip(laws, key, strict=True):
                law[ticks[number]] += weight
    return {
        key: [{pair: weight / sum(law.values()) for pair, weight in law.items() if weight} for law in laws]
        for key, laws in laws_of.items()
        if sum(laws[0].values())
    }


def of_end(law: dict[Pair, Fraction], end: int) -> Law:
    """Return the law of the begin, 0, or of the end, 1."""
    one_end: Law = defaultdict(Fraction)
    for pair, weight in law.items():
        one_end[pair[end]] += weight
    return dict(one_end)


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data(), listed=st.booleans())
def test_posteriors_of_spans_are_those_of_the_worlds(kind: str, data: st.DataObject, listed: bool) -> None:
    case = data.draw(KINDS[kind])
    note(f"{case.text()}\n{case.events}\n{case.clocks}\n{case.offset_laws}")
    laws, table = laws_given(case), case.table()
    matches = uc.match(table, case.text())
    lasts = {event.id: event.point is None for event in case.events}
    table_of_laws = uc.posteriors(matches, table, case.text(), pmf_ticks=100 if listed else 0)
    rows = iter(table_of_laws.to_pylist())
    names = [name for name, _ in case.variables]
    for number, record in enumerate(matches.to_pylist()):
        key = tuple(record[name] for name in names)
        for name, id_, law in zip(names, key, laws[key], strict=True):
            for time in ("begin", "end") if lasts[id_] else (None,):
                row = next(rows)
                assert (row["match"], row["variable"], row["id"], row["time"]) == (number, name, id_, time)
                exact = of_end(law, int(time == "end"))
                assert row["lower"] <= min(exact)
                assert max(exact) <= row["upper"]
                check_law(row, exact, listed)
    assert next(rows, None) is None


def test_sequences_without_conditions() -> None:
    """Nothing but the order is asked: closed forms for moments do not know the ends."""
    events = spans(("A", 1, (0, 3), None, (2, 2)), ("B", 2, (1, 6), None, (1, 1)))
    query = "PATTERN SEQ(A a, B b) WITHIN 100"
    rows = uc.posteriors(uc.match(events, query), events, query).to_pylist()
    # Fact 7: ten pairs of 24, with a's begin 3 ticks or more ahead.
    assert [row["pmf"] for row in rows[:2]] == [pytest.approx([0.4, 0.3, 0.2, 0.1])] * 2
    assert [row["lower"] for row in rows] == [0, 2, 1, 2]
    assert rows[3]["mean"] - rows[2]["mean"] == pytest.approx(1.0)


def test_a_point_in_a_span_tells_its_ends() -> None:
    """Fact 17: the span is longer where a point is in it; so it begins earlier, and ends later."""
    events = spans(("A", 1, (0, 3), (2, 6), None), ("B", 2, (0, 6), None, None))
    query = "PATTERN AND(A a, B b) WHERE a CONTAINS b WITHIN 100"
    rows = uc.posteriors(uc.match(events, query), events, query).to_pylist()
    means = {(row["variable"], row["time"]): row["mean"] for row in rows}
    assert means["a", "end"] - means["a", "begin"] == pytest.approx(
        float(sum(length * ways for length, ways in enumerate((2, 6, 12, 16, 15, 12, 7)))) / 70
    )
    assert [(row["variable"], row["time"]) for row in rows] == [("a", "begin"), ("a", "end"), ("b", None)]


@st.composite
def _bounds(draw: st.DrawFn) -> tuple[tuple[int, int], tuple[int, int] | None, tuple[int, int] | None]:
    """Draw bounds of begin, end and length of a span that lasts for many ticks."""
    low, longest = draw(st.integers(0, 60)), draw(st.integers(0, 90))
    begin = low, low + draw(st.integers(0, 150))
    end = begin[0] + longest, begin[1] + longest + draw(st.integers(0, 60))
    length = draw(st.integers(0, longest)), longest + draw(st.integers(0, 30))
    return begin, *draw(st.sampled_from([(end, None), (None, length), (end, length)]))


CONDITIONS = [*(f"a {relation} b" for relation in RELATIONS), "NOT (a OVERLAPS b)", "TIME(a.end) <= 70"]


@FEWER
@given(
    one=_bounds(),
    other=_bounds(),
    condition=st.sampled_from(CONDITIONS),
    window=st.sampled_from([100, 1000]),
)
def test_means_of_long_spans_are_those_of_ticks(one: Any, other: Any, condition: str, window: int) -> None:
    events = spans(("A", 1, *one), ("B", 2, *other))
    query = f"PATTERN AND(A a, B b) WHERE {condition} WITHIN {window}"
    matches = uc.match(events, query)
    by_ticks, by_pieces = (uc.posteriors(matches, events, query, pmf_ticks=ticks) for ticks in (10**6, 0))
    assert by_pieces["mean"].to_pylist() == pytest.approx(by_ticks["mean"].to_pylist(), rel=1e-9, abs=1e-7)


def test_a_minute_of_microseconds() -> None:
    """The means of long times come without their ticks."""
    million = 1_000_000
    events = spans(
        ("M", 1, (1, million), None, (60 * million, 60 * million)),
        ("R", 2, (30 * million, 90 * million), None, (million, 2 * million)),
    )
    query = f"PATTERN AND(M m, R r) WHERE r DURING m WITHIN {1000 * million}"
    rows = uc.posteriors(uc.match(events, query), events, query).to_pylist()
    assert [row["pmf"] for row in rows] == [None] * 4
    means = {(row["variable"], row["time"]): row["mean"] / million for row in rows}
    assert means["m", "end"] - means["m", "begin"] == pytest.approx(60.0, rel=1e-9)
    # The request begins at 30 s or later, and with its length it ends in the minute: a triangle of both.
    assert means["r", "begin"] == pytest.approx(44.5028738, rel=1e-6)
    assert means["r", "end"] == pytest.approx(46.0, rel=1e-6)
