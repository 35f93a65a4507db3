"""Events that last: the engine gives the answer of all worlds, enumerated by fractions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cases.spans import RELATIONS, Answer, Condition, Lasting, Pair, SpanCase, span_cases
from uncertain_cep.weighers.elimination import Elimination

pytestmark = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")


def check(case: SpanCase, **options: Any) -> None:
    """Assert that the engine gives the answer of all worlds."""
    expected = case.answer()
    rows = uc.match(case.table(), case.text(), **options).to_pylist()
    answers = {tuple(row[name] for name, _ in case.variables): row for row in rows}
    assert len(answers) == len(rows)
    assert answers.keys() == expected.keys()
    for key, (low, high, probability) in expected.items():
        row = answers[key]
        assert (row["range_lower"], row["range_upper"]) == (low, high), key
        assert row["confidence"] == pytest.approx(float(probability), rel=1e-9, abs=0), key


KINDS: dict[str, st.SearchStrategy[SpanCase]] = {
    "spans": span_cases(),
    "clocks": span_cases(with_clocks=True),
    "negations": span_cases(negating=True),
    "negations by clocks": span_cases(with_clocks=True, negating=True),
    "negated spans": span_cases(negating=True, negated_lasts=True),
    "negated spans by clocks": span_cases(with_clocks=True, negating=True, negated_lasts=True),
    "laws": span_cases(with_laws=True),
    "laws by clocks": span_cases(with_clocks=True, with_laws=True),
    "laws and negations": span_cases(negating=True, with_laws=True),
    "laws of negated spans": span_cases(negating=True, negated_lasts=True, with_laws=True),
    "laws of negated spans by clocks": span_cases(
        with_clocks=True, negating=True, negated_lasts=True, with_laws=True
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_engine_is_the_worlds(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    note(f"{case.text()}\n{case.events}\n{case.clocks}")
    check(case)


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_counts_are_sums_of_confidences(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    note(f"{case.text()}\n{case.events}\n{case.clocks}")
    expected = sum((probability for _, _, probability in case.answer().values()), Fraction(0))
    (row,) = uc.match(case.table(), f"{case.text()} RETURN EXPECTED COUNT").to_pylist()
    assert row["expected_count"] == pytest.approx(float(expected), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_counts_by_bucket_are_those_of_the_worlds(kind: str, data: st.DataObject) -> None:
    """A match is in the bucket of its first begin."""
    case, every = data.draw(KINDS[kind]), data.draw(st.integers(1, 4))
    note(f"{case.text()}\n{case.events}\n{case.clocks}")
    expected = case.bucketed(every)
    rows = uc.match(case.table(), f"{case.text()} RETURN EXPECTED COUNT EVERY {every} ticks").to_pylist()
    assert {row["bucket"] for row in rows} == expected.keys()
    for row in rows:
        assert row["expected_count"] == pytest.approx(float(expected[row["bucket"]]), rel=1e-9)


def _alone(event: Lasting, case: SpanCase) -> Lasting:
    """Return an event as if its begin and its end did not move together: each by its bounds, or its law."""
    if event.clock is None:
        return event
    low, high = case.clocks[event.clock]
    width = high - low + 1
    offset = case.offset_laws.get(event.clock, (Fraction(1, width),) * width)
    laws = []
    for name, law in event.laws:
        total = [Fraction(0)] * (len(law) + width - 1)
        for (i, one), (k, other) in product(enumerate(law), enumerate(offset)):
            total[i + k] += one * other
        laws.append((name, law if name == "length" else tuple(total)))

    def moved(bounds: Pair | None) -> Pair | None:
        return None if bounds is None else (bounds[0] + low, bounds[1] + high)

    return replace(
        event, begin=moved(event.begin), end=moved(event.end), point=moved(event.point), clock=None,
        laws=tuple(laws),
    )  # fmt: skip


@FEWER
@given(case=span_cases(with_clocks=True, with_laws=True))
def test_times_that_count_as_independent_have_the_laws_of_their_own(case: SpanCase) -> None:
    note(f"{case.text()}\n{case.events}\n{case.clocks}\n{case.offset_laws}")
    alone = replace(case, events=tuple(_alone(event, case) for event in case.events), clocks={})
    expected = replace(alone, offset_laws={}).answer()
    rows = uc.match(case.table(), case.text(), sources=False).to_pylist()
    answers = {tuple(row[name] for name, _ in case.variables): row for row in rows}
    assert answers.keys() == expected.keys()
    for key, (low, high, probability) in expected.items():
        assert (answers[key]["range_lower"], answers[key]["range_upper"]) == (low, high)
        assert answers[key]["confidence"] == pytest.approx(float(probability), rel=1e-9)


def test_explain_knows_what_lasts() -> None:
    tasks = pa.table(
        {
            "type": ["Task", "P"], "id": [1, 2], "lower": [0, 4], "upper": [7, 5], "begin_lower": [0, None],
            "begin_upper": [4, None], "length_lower": [3, None], "length_upper": [3, None],
        }
    )  # fmt: skip
    query = "PATTERN AND(Task t, P p) WHERE t CONTAINS p WITHIN 100"
    assert "time condition   t CONTAINS p\n" in uc.explain(query, tasks)
    assert "took 1 match" in uc.explain(query, tasks, analyze=True)


def span(type_: str, number: int, *bounds: tuple[int, int] | None, **more: Any) -> Lasting:
    """Return a span by the bounds of its begin, end and length."""
    named: dict[str, Any] = dict(zip(("begin", "end", "length"), bounds, strict=False))
    return Lasting(type_, number, **named, **more)


def related(relation: str, one: str = "a", other: str = "b") -> Condition:
    """Return a relation between two variables."""
    return Condition(f"{one} {relation} {other}", (one, other), RELATIONS[relation])


AB = (("a", "A"), ("b", "B"))
RIGID = (span("A", 1, (0, 4), None, (3, 3)), span("B", 2, (2, 6), None, (2, 2)))
LOOSE = (span("A", 1, (0, 4), (3, 7)), span("B", 2, (2, 6), (5, 8)))
ALL_ON = (span("A", 1, (0, 4), (0, 4)), span("B", 2, (0, 4), (0, 4)))
CLOCKED = tuple(
    span(type_, number, (low, low), (high, high), clock="h")
    for type_, number, low, high in (("A", 1, 10, 14), ("B", 2, 14, 20))
)
BY_TWO = (CLOCKED[0], span("B", 2, (14, 14), (20, 20), clock="g"))
OFFSETS = {"g": (-5, 5), "h": (-5, 5)}
TASKS = (span("A", 1, (0, 4), None, (3, 3)), span("A", 2, (3, 7), None, (2, 2)))
FOLLOWING = (span("A", 1, (0, 3), None, (2, 2)), span("B", 2, (1, 6), None, (1, 1)))
LENGTH = Condition("DURATION(a) >= 3", ("a",), lambda x: x[1] - x[0] >= 3)
POINT = (span("A", 1, (0, 3), (2, 6)), Lasting("B", 2, point=(0, 6)))
INSIDE = (
    Lasting("A", 1, point=(0, 0)),
    span("B", 2, (10, 10), (10, 10)),
    Lasting("N", 3, point=(0, 2), probability=Fraction(1, 2)),
)
AROUND = (span("A", 1, (3, 3), (6, 6)), span("N", 2, (0, 4), (2, 9)))
GAP = (
    Lasting("A", 1, point=(0, 0)), Lasting("B", 2, point=(10, 10)), span("N", 3, (0, 2), (5, 9))
)  # fmt: skip
MINUTE = (span("A", 1, (20, 20), (25, 25)), span("B", 2, (1, 1), (60, 60)))
LATE = (span("A", 1, (55, 64), None, (5, 5)), span("B", 2, (1, 1), (60, 60)))


def pair(events: tuple[Lasting, ...], relation: str, clocks: Mapping[str, Pair] | None = None) -> SpanCase:
    """Return the case of a set of two events in a relation."""
    return SpanCase(events, clocks or {}, "AND", AB, (related(relation),))


FACTS: dict[str, tuple[SpanCase, Answer]] = {
    "rigid spans overlap": (pair(RIGID, "OVERLAPS"), {(1, 2): (0, 8, Fraction(19, 25))}),
    "one contains the other": (pair(RIGID, "CONTAINS"), {(1, 2): (1, 7, Fraction(7, 25))}),
    "one before the other": (pair(RIGID, "BEFORE"), {(1, 2): (0, 8, Fraction(6, 25))}),
    "the longer one inside": (pair(RIGID, "DURING"), {}),
    "ends by themselves overlap": (pair(LOOSE, "OVERLAPS"), {(1, 2): (0, 8, Fraction(181, 228))}),
    "ends by themselves contain": (pair(LOOSE, "CONTAINS"), {(1, 2): (0, 7, Fraction(39, 152))}),
    "ends by themselves, inside": (pair(LOOSE, "DURING"), {(1, 2): (2, 8, Fraction(15, 76))}),
    "all ends alike": (pair(ALL_ON, "OVERLAPS"), {(1, 2): (0, 4, Fraction(31, 45))}),
    "a minute around": (pair(MINUTE, "OVERLAPS"), {(1, 2): (1, 60, Fraction(1))}),
    "a minute at its end": (pair(LATE, "DURING"), {(1, 2): (1, 60, Fraction(1, 10))}),
    "one clock": (pair(CLOCKED, "OVERLAPS", OFFSETS), {(1, 2): (5, 25, Fraction(1))}),
    "one clock, before": (pair(CLOCKED, "BEFORE", OFFSETS), {}),
    "two clocks": (pair(BY_TWO, "OVERLAPS", OFFSETS), {(1, 2): (5, 25, Fraction(6, 11))}),
    "in sequence": (SpanCase(FOLLOWING, {}, "SEQ", AB), {(1, 2): (0, 7, Fraction(5, 12))}),
    "in sequence within": (SpanCase(FOLLOWING, {}, "SEQ", AB, (), 6), {(1, 2): (0, 7, Fraction(7, 24))}),
    "a length": (SpanCase(POINT, {}, "SEQ", AB[:1], (LENGTH,)), {(1,): (0, 6, Fraction(10, 19))}),
    "a length around a point": (
        SpanCase(POINT, {}, "AND", AB, (LENGTH, related("CONTAINS"))), {(1, 2): (0, 6, Fraction(50, 133))}
    ),
    "a gap begins at an end": (
        SpanCase(INSIDE, {}, "SEQ", AB, (), 100, ("n", "N", 1)), {(1, 2): (0, 10, Fraction(2, 3))}
    ),
    "no overlap": (
        SpanCase(AROUND, {}, "AND", AB[:1], (related("OVERLAPS", "n", "a"),), 100, ("n", "N", 1)),
        {(1,): (3, 6, Fraction(3, 37))},
    ),
    "no overlap with what may not be": (
        SpanCase(
            (AROUND[0], replace(AROUND[1], probability=Fraction(1, 2))), {}, "AND", AB[:1],
            (related("OVERLAPS", "n", "a"),), 100, ("n", "N", 1),
        ),
        {(1,): (3, 6, Fraction(20, 37))},
    ),
    "nothing inside": (
        SpanCase(AROUND, {}, "AND", AB[:1], (related("DURING", "n", "a"),), 100, ("n", "N", 1)),
        {(1,): (3, 6, Fraction(30, 37))},
    ),
    "wholly inside a gap": (
        SpanCase(GAP, {}, "SEQ", AB, (), 100, ("n", "N", 1)), {(1, 2): (0, 10, Fraction(1, 3))}
    ),
    "both ways round": (
        SpanCase(TASKS, {}, "AND", (("a", "A"), ("b", "A")), (related("OVERLAPS"),)),
        {(1, 2): (0, 9, Fraction(3, 5)), (2, 1): (0, 9, Fraction(3, 5))},
    ),
}  # fmt: skip


def test_matches_weighed_together_and_apart() -> None:
    """A match that nothing is forbidden is weighed apart, and has another order of its times then."""
    events = (Lasting("A", 1, point=(0, 1)), Lasting("N", 2, point=(0, 1)), span("A", 3, (0, 0), (0, 0)))
    ties = (related("CONTAINS"), related("AFTER", "n", "a"))
    check(SpanCase(events, {}, "AND", (("a", "ANY"), ("b", "A")), ties, 3, ("n", "N", 0)))


@pytest.mark.parametrize("name", FACTS)
def test_worked_facts(name: str) -> None:
    case, expected = FACTS[name]
    answer = case.answer()
    assert {key: row[2] for key, row in answer.items()} == {key: row[2] for key, row in expected.items()}
    if name not in ("a minute around", "a minute at its end", "one clock", "two clocks"):
        assert answer == expected
    check(case)


def _spans(**columns: list[int | None]) -> pa.Table:
    count = len(next(iter(columns.values())))
    bounds = {name: pa.array(values, pa.int64()) for name, values in columns.items()}
    return pa.table(
        {"type": ["A"] * count, "id": range(count), "lower": [0] * count, "upper": [9] * count, **bounds}
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"begin_lower": [0], "begin_upper": [4], "length_lower": [None], "length_upper": [None]},
            "needs two of",
        ),
        ({"begin_lower": [5], "begin_upper": [4], "end_lower": [5], "end_upper": [6]}, "is above"),
        ({"begin_lower": [5], "begin_upper": [6], "end_lower": [1], "end_upper": [2]}, "within all bounds"),
        ({"begin_lower": [5], "begin_upper": [None], "end_lower": [1], "end_upper": [2]}, "given together"),
        (
            {
                "begin_lower": [0], "begin_upper": [1], "end_lower": [1], "end_upper": [2],
                "length_lower": [5], "length_upper": [6],
            },
            "within all bounds",
        ),
    ],
)  # fmt: skip
def test_impossible_spans_are_refused(columns: dict[str, list[int | None]], message: str) -> None:
    with pytest.raises(uc.TraceError, match="row 1") as refused:
        uc.match(_spans(**columns), "PATTERN SEQ(A a) WITHIN 5")
    assert message in str(refused.value)
    assert [str(fault) for fault in uc.validate(_spans(**columns))] == str(refused.value).splitlines()


def test_validate_takes_spans_with_a_query() -> None:
    assert uc.validate(_spans(**_TWO), query="PATTERN SEQ(A a, A b) WITHIN 20") == []


LAWFUL: Final[dict[str, list[int | None]]] = {
    "begin_lower": [0],
    "begin_upper": [1],
    "length_lower": [1],
    "length_upper": [3],
}


@pytest.mark.parametrize(
    ("laws", "message"),
    [
        ({"begin_pmf": [[0.5, 0.6]]}, "the pmf does not sum to 1"),
        ({"begin_pmf": [[1.5, -0.5]]}, "a probability must be a number of at least 0"),
        ({"begin_pmf": [[1.0]]}, "the pmf has not as many probabilities as its bounds have ticks"),
        ({"begin_pmf": [[]]}, "the pmf has not as many probabilities as its bounds have ticks"),
        ({"end_pmf": [[1.0]]}, "end_pmf goes with its bounds: give both"),
        ({"begin_pmf": ["x"]}, "its type is string: a pmf is a list of numbers"),
        ({"pmf": [[0.1] * 10]}, "give begin_pmf, end_pmf or length_pmf"),
    ],
)
def test_laws_that_are_none_are_refused(laws: dict[str, list[Any]], message: str) -> None:
    events = _spans(**LAWFUL)
    for name, values in laws.items():
        events = events.append_column(name, pa.array(values))
    with pytest.raises(uc.TraceError, match="row 1") as refused:
        uc.match(events, "PATTERN SEQ(A a) WITHIN 20")
    assert message in str(refused.value)
    assert message in str(uc.validate(events)[0])


def test_laws_that_leave_no_pair_are_refused() -> None:
    """A begin is certain to be at 1, where the end, at 0, has passed."""
    events = _spans(begin_lower=[0], begin_upper=[1], end_lower=[0], end_upper=[1])
    laws = {"begin_pmf": [[0.0, 1.0]], "end_pmf": [[1.0, 0.0]]}
    for name, values in laws.items():
        events = events.append_column(name, pa.array(values))
    with pytest.raises(uc.TraceError, match="row 1: no begin and end are within all bounds"):
        uc.match(events, "PATTERN SEQ(A a) WITHIN 20")


def test_too_many_lengths_are_refused() -> None:
    size = 1_000_001
    events = _spans(begin_lower=[0], begin_upper=[1], length_lower=[0], length_upper=[size - 1])
    events = events.set_column(events.schema.get_field_index("upper"), "upper", pa.array([size]))
    events = events.append_column("length_pmf", pa.array([[1.0 / size] * size]))
    with pytest.raises(uc.ConfidenceCostError):
        uc.match(events, "PATTERN SEQ(A a) WHERE DURATION(a) > 5 WITHIN 20000000")


_TWO: dict[str, list[int | None]] = {
    "begin_lower": [0, 6],
    "begin_upper": [1, 7],
    "end_lower": [3, 8],
    "end_upper": [4, 9],
}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SEQ(A a, A b) WHERE TIME(b) - TIME(a) > 1 WITHIN 20", "which end?"),
        ("SEQ(A+ a[]) WITHIN 20", "they last"),
        ("SEQ(A a, A b) WHERE skip_till_next_match(a, b) WITHIN 20", "skip_till_next_match"),
    ],
)
def test_what_is_not_supported_is_refused(query: str, message: str) -> None:
    with pytest.raises((uc.OptionError, uc.QueryError)) as refused:
        uc.match(_spans(**_TWO), f"PATTERN {query}")
    assert message in str(refused.value)


@pytest.mark.parametrize("evaluation", ["any_state", "selectivity", "point"])
def test_methods_without_spans_name_the_one_that_takes_them(evaluation: Any) -> None:
    query = "PATTERN SEQ(A a, A b) WITHIN 20"
    with pytest.raises(uc.OptionError, match='leave it out, or use "query_order"'):
        uc.match(_spans(**_TWO), query, evaluation=evaluation)
    assert uc.match(_spans(**_TWO), query, evaluation="query_order").num_rows == 1


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("AND(A a, A b) WHERE a OVERLAPS b.x WITHIN 5", "OVERLAPS is between two variables"),
        ("AND(A a, A b) WHERE TIME(a.middle) < TIME(b.end) WITHIN 5", "TIME(a.begin) or TIME(a.end)"),
        ("AND(A a, A b) WHERE NOT (a CONTAINS b) WITHIN 5", "stands by itself"),
        ("AND(A a, A b) WHERE NOT (NOT (a OVERLAPS b)) WITHIN 5", "stands by itself"),
        ("AND(A a, A b) WHERE NOT (a OVERLAPS b AND a.id < b.id) WITHIN 5", "stands by itself"),
        ("AND(A a, A b) WHERE a.id < b.id OR NOT (a OVERLAPS b) WITHIN 5", "stands by itself"),
    ],
)
def test_relations_say_what_is_wrong(query: str, message: str) -> None:
    with pytest.raises(uc.UncertainCepError) as refused:
        uc.parse(f"PATTERN {query}")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SEQ(A a, !P n, A b) WHERE NOT (n OVERLAPS a) WITHIN 20",
            "n, which is negated: write two negations",
        ),
        ("AND(A a, P+ p[]) WHERE NOT (p OVERLAPS a) WITHIN 20", "p, which takes several events"),
    ],
)
def test_what_cannot_be_apart_is_refused(query: str, message: str) -> None:
    events = pa.table({"type": ["A", "P"], "id": [1, 2], "lower": [0, 2], "upper": [4, 6]})
    with pytest.raises(uc.QueryError) as refused:
        uc.match(events, f"PATTERN {query}")
    assert message in str(refused.value)


def test_points_that_are_apart() -> None:
    """On 5 ticks each, 3 of them of both: 3 of 25 worlds have them at one tick."""
    events = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 2], "upper": [4, 6], "x": [1, 1]})
    query = "PATTERN AND(A a, B b) WHERE NOT (a OVERLAPS b) WITHIN 20"
    (row,) = uc.match(events, query).to_pylist()
    assert row["confidence"] == pytest.approx(22 / 25)
    assert (row["range_lower"], row["range_upper"]) == (0, 6)
    assert "NOT (a OVERLAPS b)" in uc.explain(query, events)
    expected = uc.match(events, f"{query} RETURN EXPECTED COUNT").to_pylist()
    assert expected == [{"expected_count": pytest.approx(22 / 25)}]
    (row,) = uc.match(events, "PATTERN SEQ(A a, B b) WHERE NOT (a OVERLAPS b) WITHIN 20").to_pylist()
    assert row["confidence"] == pytest.approx(19 / 25)


@pytest.mark.parametrize("condition", ["NOT (a OVERLAPS b)", "a BEFORE b"])
def test_matches_without_confidences_are_the_same(condition: str) -> None:
    query = f"PATTERN AND(A a, A b) WHERE {condition} AND a.id < b.id WITHIN 20"
    ranges = [
        uc.match(_spans(**_TWO), query, confidence=confidence).select(
            ["a", "b", "range_lower", "range_upper"]
        )
        for confidence in (True, False)
    ]
    assert ranges[0].to_pylist() == ranges[1].to_pylist() != []


def test_points_have_relations_but_no_length() -> None:
    events = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 2], "upper": [4, 6]})
    matches = uc.match(events, "PATTERN AND(A a, B b) WHERE a BEFORE b WITHIN 20")
    assert matches["confidence"].to_pylist() == [19 / 25]
    with pytest.raises(uc.QueryError, match="a has no length"):
        uc.match(events, "PATTERN SEQ(A a, B b) WHERE DURATION(a) > 1 WITHIN 20")


def test_timestamps_and_durations() -> None:
    """Fact: 3 s from 0..4 s on overlap 2 s from 2..6 s on in 19 of 25 worlds."""
    stamps = pa.array([0, 2], pa.timestamp("s"))
    late = pa.array([4, 6], pa.timestamp("s"))
    lengths = pa.array([3, 2], pa.duration("s"))
    events = pa.table(
        {
            "type": ["A", "B"], "id": [1, 2], "lower": stamps, "upper": pa.array([7, 8], pa.timestamp("s")),
            "begin_lower": stamps, "begin_upper": late, "length_lower": lengths, "length_upper": lengths,
        }
    )  # fmt: skip
    matches = uc.match(events, "PATTERN AND(A a, B b) WHERE a OVERLAPS b WITHIN 1 minute", tick="1s")
    assert matches["confidence"].to_pylist() == pytest.approx([19 / 25])
    assert str(matches["range_upper"][0]) == "1970-01-01 00:00:08"


@pytest.mark.parametrize("kind", ["spans", "clocks"])
@FEWER
@given(data=st.data())
def test_sums_over_the_orders_of_times_are_the_worlds(kind: str, data: st.DataObject) -> None:
    """Make tables over ticks dear, so that chains take the matches."""
    case = data.draw(KINDS[kind])
    note(f"{case.text()}\n{case.events}\n{case.clocks}")
    price = Elimination.price
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Elimination, "price", lambda self, model: price(self, model) + 1e12)
        check(case)


def test_spans_of_many_ticks_overlap() -> None:
    """Of ends of a on 30,000 to 50,000 and begins of b on 35,000 to 55,000 those with a first are counted."""
    events = _spans(
        begin_lower=[0, 35_000], begin_upper=[20_000, 55_000], end_lower=[30_000, 60_000],
        end_upper=[50_000, 80_000],
    )  # fmt: skip
    events = events.set_column(events.schema.get_field_index("upper"), "upper", pa.array([50_000, 80_000]))
    before = sum(55_000 - max(end, 34_999) for end in range(30_000, 50_001))
    query = "PATTERN AND(A a, A b) WHERE a OVERLAPS b AND a.id < b.id WITHIN 100000"
    confidence = uc.match(events, query)["confidence"].to_pylist()
    assert confidence == [pytest.approx(1 - before / 20_001**2, rel=1e-9)]


def test_spans_of_a_certain_length_overlap_at_any_length() -> None:
    """Begins are on 100,000 ticks each; b begins at most 30,000 behind a, and a at most 20,000 behind b."""
    count = 100_000
    begin: list[int | None] = [0, 10_000]
    last: list[int | None] = [count - 1, 10_000 + count - 1]
    events = _spans(
        begin_lower=begin, begin_upper=last, length_lower=[30_000, 20_000], length_upper=[30_000, 20_000]
    )
    events = events.set_column(events.schema.get_field_index("upper"), "upper", pa.array([129_999, 129_999]))
    query = "PATTERN AND(A a, A b) WHERE a OVERLAPS b AND a.id < b.id WITHIN 1000000"
    # Of differences b - a, from 10,000 - (count - 1) to 10,000 + count - 1, each so often.
    ways = sum(count - abs(difference - 10_000) for difference in range(-20_000, 30_001))
    (row,) = uc.match(events, query).to_pylist()
    assert row["confidence"] == pytest.approx(ways / count**2, rel=1e-9)
    assert (row["range_lower"], row["range_upper"]) == (0, 129_999)


@pytest.mark.parametrize("relation", ["OVERLAPS", "CONTAINS", "BEFORE"])
@FEWER
@given(data=st.data())
def test_three_spans_of_certain_lengths(relation: str, data: st.DataObject) -> None:
    """Chains take them, with tables over ticks made dear."""
    events = tuple(
        span(type_, number, (low, low + data.draw(st.integers(0, 4))), None, (length, length))
        for number, type_ in enumerate("ABC")
        for low, length in [(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 4)))]
    )
    pairs = data.draw(st.lists(st.sampled_from(["ab", "bc", "ac"]), min_size=1, unique=True))
    conditions = tuple(related(relation, *names) for names in pairs)
    window = data.draw(st.sampled_from([6, 9, 100]))
    case = SpanCase(events, {}, "AND", (*AB, ("c", "C")), conditions, window)
    price = Elimination.price
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Elimination, "price", lambda self, model: price(self, model) + 1e12)
        check(case)


def test_a_span_by_a_clock_of_its_own_is_one_time() -> None:
    """By a clock that is off by up to 10**6 either way 500 ticks hold a moment in 501 of its offsets."""
    far = 1_000_000
    events = pa.table(
        {
            "type": ["A", "P"], "id": [1, 2], "lower": [-far, 100], "upper": [far + 500, 100],
            "begin_lower": [-far, None], "begin_upper": [far, None], "end_lower": [500 - far, None],
            "end_upper": [500 + far, None], "source": ["h", None], "offset_lower": [-far, None],
            "offset_upper": [far, None],
        }
    )  # fmt: skip
    query = "PATTERN AND(A a, P p) WHERE a CONTAINS p WITHIN 100000000"
    (row,) = uc.match(events, query).to_pylist()
    assert row["confidence"] == pytest.approx(501 / (2 * far + 1), rel=1e-9)
    assert (row["range_lower"], row["range_upper"]) == (-400, 600)
    weights = pa.array([[0.25, *[0.0] * (far - 1), 0.5, *[0.0] * (far - 1), 0.25], None])
    (row,) = uc.match(events.append_column("offset_pmf", weights), query).to_pylist()
    assert row["confidence"] == pytest.approx(0.5, rel=1e-9)


def test_events_of_other_types_are_left_out() -> None:
    """An error names the row of the event in the whole table."""
    wrong = _spans(begin_lower=[5, 5], begin_upper=[6, 6], end_lower=[1, 9], end_upper=[2, 9])
    types = pa.array(["A", "B"])
    events = wrong.set_column(0, "type", types)
    assert uc.match(events, "PATTERN SEQ(B b) WITHIN 50")["b"].to_pylist() == [1]
    turned = events.set_column(0, "type", pa.array(["B", "A"])).take([1, 0])
    with pytest.raises(uc.TraceError, match="row 2"):
        uc.match(turned, "PATTERN SEQ(B b) WITHIN 50")
