"""Times at the ends of what a tick can be, intervals that span all of it, windows as long as they may be.

Everything wraps silently in compiled code and loudly without the compiler, so this runs both ways.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, cases
from tests.cases.comparison import assert_answer, rows_of
from tests.cases.incremental import thresholds
from tests.cases.language import STRATEGIES, LanguageCase, language_cases
from tests.cases.naive import uniform_chain_mass
from tests.cases.nested import NestedCase, nested_cases
from tests.cases.sampling import FEWER
from tests.streaming.arrivals import arrivals
from tests.streaming.test_incremental import streamed
from uncertain_cep.config.limits import MAX_TICK
from uncertain_cep.query.binder import MAX_WINDOW
from uncertain_cep.testing.model import Event, Strategy

METHODS = ("query_order", "any_state", "selectivity")
_LONGEST = [MAX_TICK - 1, MAX_TICK, MAX_TICK + 1, MAX_WINDOW - 1, MAX_WINDOW]


@dataclass(frozen=True, slots=True, eq=False)
class WideEvent(Event):
    """An event with more ticks than can be gone through one by one: those alike to all others stand together.

    ``others`` are the ticks that the other events can have, and ``window`` is WITHIN: whether a world has a
    match depends on the tick only through its order with them, and through the window. Of ticks between
    two such places the first has its own probability, and the last that of the others, so that ranges are
    right too.
    """

    others: tuple[int, ...] = ()
    window: int = 1

    def ticks(self) -> list[tuple[int, Fraction]]:
        """Return the ticks that stand for all, each with its probability."""
        places = {self.lower, self.upper}
        for tick in self.others:
            for place in (tick, tick - self.window, tick + self.window):
                places.update(range(place - 1, place + 2))
        known = sorted(place for place in places if self.lower <= place <= self.upper)
        counts = dict.fromkeys(known, 1)
        for place, following in pairwise(known):
            between = following - place - 1
            if between:
                counts[place + 1] = 1
            if between > 1:
                counts[following - 1] = between - 1
        length = self.upper - self.lower + 1
        assert sum(counts.values()) == length
        return [(tick, Fraction(count, length)) for tick, count in sorted(counts.items())]


@st.composite
def far_events(draw: st.DrawFn, events: tuple[Event, ...], window: int) -> tuple[Event, ...]:
    """Draw where the events of a small trace are: at the ends of time, and one of them nearly everywhere."""
    if not events:
        return events
    least, most = min(event.lower for event in events), max(event.upper for event in events)
    shifts = draw(
        st.sampled_from([[-MAX_TICK - least], [MAX_TICK - most], [-MAX_TICK - least, MAX_TICK - most, 0]])
    )
    moved = []
    for event in events:
        shift = draw(st.sampled_from(shifts))
        # Few ticks, so that few worlds have to be looked at.
        upper = event.upper if event.pmf is not None else min(event.upper, event.lower + 1)
        moved.append(replace(event, lower=event.lower + shift, upper=upper + shift))
    wide = draw(st.integers(0, len(events)))
    if wide < len(events):
        # An explicit pmf beside it would have all its ticks gone through.
        moved = [replace(event, pmf=None) for event in moved]
        lower = draw(st.sampled_from([-MAX_TICK, -MAX_TICK, -MAX_TICK + 1, -1, 0]))
        upper = draw(st.sampled_from([MAX_TICK, MAX_TICK, MAX_TICK - 1, 0, 7]))
        found = moved[wide]
        others = tuple(
            tick for place, event in enumerate(moved) if place != wide for tick, _ in event.ticks()
        )
        moved[wide] = WideEvent(
            found.type, found.id, lower, upper, None, found.attributes, others=others, window=window
        )
    return tuple(moved)


def windows(short: int) -> st.SearchStrategy[int]:
    """Draw the short window of a case, or one of the longest."""
    return st.sampled_from([short, *_LONGEST])


@st.composite
def far_language_cases(draw: st.DrawFn, strategy: Strategy) -> LanguageCase:
    case = draw(language_cases(strategy, most=4))
    window = draw(windows(case.window))
    events = draw(far_events(case.trace.events, window))
    return replace(case, window=window, trace=replace(case.trace, events=events))


@st.composite
def far_nested_cases(draw: st.DrawFn) -> NestedCase:
    case = draw(nested_cases("SAO", most=4))
    window = draw(windows(case.window))
    events = draw(far_events(case.trace.events, window))
    return replace(case, window=window, trace=replace(case.trace, events=events))


@st.composite
def far_cases(draw: st.DrawFn, *, uniform: bool = False) -> Case:
    case = draw(cases(max_components=3, clocks=False))
    window = draw(windows(case.window))
    events = case.trace.events[:5]
    if uniform:
        events = tuple(replace(event, pmf=None) for event in events)
    return replace(case, window=window, trace=replace(case.trace, events=draw(far_events(events, window))))


_BOUNDS = [-MAX_TICK, -MAX_TICK + 1, -MAX_TICK + 5, -1, 0, 3, MAX_TICK - 5, MAX_TICK - 1, MAX_TICK]


@given(
    st.lists(
        st.tuples(st.sampled_from(_BOUNDS), st.sampled_from(_BOUNDS)).map(sorted), min_size=1, max_size=4
    ),
    st.sampled_from([1, 2, 5, *_LONGEST]),
    st.sampled_from(METHODS),
)
def test_any_number_of_long_intervals(intervals: list[list[int]], window: int, method: str) -> None:
    types = [f"T{place}" for place in range(len(intervals))]
    table = pa.table(
        {
            "type": types,
            "id": list(range(len(intervals))),
            "lower": [lower for lower, _ in intervals],
            "upper": [upper for _, upper in intervals],
        }
    )
    items = ", ".join(f"{name} v{place}" for place, name in enumerate(types))
    rows = uc.match(table, f"PATTERN SEQ({items}) WITHIN {window}", evaluation=method).to_pylist()
    exact = uniform_chain_mass([(lower, upper) for lower, upper in intervals], window)
    assert len(rows) == (exact > 0)
    for row in rows:
        assert math.isclose(row["confidence"], exact, rel_tol=1e-9)


_LATEST = MAX_TICK - 1


@pytest.mark.parametrize("pattern", ["SEQ(A a, B b)", "SEQ(A+ a[], B+ b[])", "SEQ(A a, !N n, B b)"])
def test_long_and_short_intervals_that_float64_does_not_tell_apart(pattern: str) -> None:
    table = pa.table(
        {"type": ["A", "B"], "id": [1, 2], "lower": [1 - MAX_TICK, _LATEST], "upper": [MAX_TICK, MAX_TICK]}
    )
    (row,) = uc.match(table, f"PATTERN {pattern} WITHIN {MAX_TICK + 1}").to_pylist()
    exact = uniform_chain_mass([(1 - MAX_TICK, MAX_TICK), (_LATEST, MAX_TICK)], MAX_TICK + 1)
    assert math.isclose(row["confidence"], exact, rel_tol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_long_chain_of_which_float64_does_not_hold_the_places(method: str) -> None:
    intervals = [
        (0, 2**60),
        (2**60 - 2, 2**60 + 1),
        (2**60 - 1, 2**60 + 2),
        (2**60, 2**60 + 3),
        (2**60, 2**60 + 4),
    ]
    columns = {"type": list("ABCDE"), "id": list(range(5))}
    bounds = {"lower": [low for low, _ in intervals], "upper": [high for _, high in intervals]}
    text = f"PATTERN SEQ(A a, B b, C c, D d, E e) WITHIN {MAX_WINDOW}"
    (row,) = uc.match(pa.table(columns | bounds), text, evaluation=method).to_pylist()
    assert math.isclose(row["confidence"], uniform_chain_mass(intervals, MAX_WINDOW), rel_tol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_an_interval_of_all_time(method: str) -> None:
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [-MAX_TICK] * 2, "upper": [MAX_TICK] * 2})
    found = uc.match(table, f"PATTERN SEQ(A a, B b) WITHIN {MAX_WINDOW}", evaluation=method).to_pylist()
    assert found == [{"a": 1, "b": 2, "range_lower": -MAX_TICK, "range_upper": MAX_TICK, "confidence": 0.5}]


_ALL = (-MAX_TICK, MAX_TICK)
_WRAPS = (0, 2**32 - 1)


@pytest.mark.parametrize(
    ("pattern", "events"),
    [
        # Two intervals of 2^32 ticks have 2^64 pairs of ticks, which is 0 in int64.
        ("SEQ(A a, !N n, B b, C c)", {"A": _WRAPS, "N": (5, 10), "B": _WRAPS, "C": _WRAPS}),
        ("SEQ(A a, !N n, B b, C c)", {"A": _ALL, "N": (5, 10), "B": _ALL, "C": _ALL}),
        ("AND(SEQ(A a, !N n, B b), C c)", {"A": _ALL, "B": _ALL, "C": _ALL, "N": _ALL}),
    ],
)
@pytest.mark.parametrize("window", [MAX_TICK, MAX_WINDOW])
def test_too_dear_is_said_before_the_work(
    pattern: str, events: dict[str, tuple[int, int]], window: int
) -> None:
    bounds = {"lower": [low for low, _ in events.values()], "upper": [high for _, high in events.values()]}
    table = pa.table({"type": list(events), "id": list(range(len(events)))} | bounds)
    with pytest.raises(uc.ConfidenceCostError):
        uc.match(table, f"PATTERN {pattern} WITHIN {window}")


@pytest.mark.parametrize("bounds", [_WRAPS, _ALL])
@pytest.mark.parametrize("window", [MAX_TICK, MAX_WINDOW])
def test_forbidden_events_between_two_times(bounds: tuple[int, int], window: int) -> None:
    """Sums over pieces: pairs of ticks without those that an event of six ticks is between."""
    low, high = bounds
    ticks = high - low + 1
    table = pa.table({"type": [*"ANB"], "id": [1, 2, 3], "lower": [low, 5, low], "upper": [high, 10, high]})
    (confidence,) = uc.match(table, f"PATTERN SEQ(A a, !N n, B b) WITHIN {MAX_WINDOW}")["confidence"]
    between = sum(Fraction((n - low) * (high - n), ticks**2) for n in range(5, 11)) / 6
    assert confidence.as_py() == pytest.approx(float(Fraction(ticks - 1, 2 * ticks) - between), rel=1e-12)
    before = uc.match(table, f"PATTERN SEQ(!N n, A a) WITHIN {window}")["confidence"].to_pylist()
    later = [max(min(n + window - 1, high) - n, 0) for n in range(5, 11)]
    expected = 1 - sum(Fraction(count, ticks) for count in later) / 6
    assert before == ([pytest.approx(float(expected), rel=1e-9)] if expected else [])


@pytest.mark.parametrize(("window", "expected"), [(MAX_TICK, 0.625), (MAX_WINDOW, 0.5)])
def test_a_forbidden_event_of_all_time(window: int, expected: float) -> None:
    table = pa.table({"type": [*"AN"], "id": [1, 2], "lower": [-MAX_TICK] * 2, "upper": [MAX_TICK] * 2})
    (confidence,) = uc.match(table, f"PATTERN SEQ(A a, !N n) WITHIN {window}")["confidence"].to_pylist()
    assert confidence == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("window", [1, 5, MAX_TICK, MAX_WINDOW])
def test_sets_of_all_time(window: int) -> None:
    ticks: int = 2 * MAX_TICK + 1

    def near(count: int) -> int:
        """Return how many choices of so many ticks are within the window."""
        choices: int = ticks**count
        if window <= ticks:
            choices = (ticks - window + 1) * window**count - (ticks - window) * (window - 1) ** count
        return choices

    table = pa.table({"type": [*"ABC"], "id": [1, 2, 3], "lower": [-MAX_TICK] * 3, "upper": [MAX_TICK] * 3})
    confidences = uc.match(table, f"PATTERN AND(A a, B b) WITHIN {window}")["confidence"].to_pylist()
    assert confidences == [pytest.approx(float(Fraction(near(2), ticks**2)), rel=1e-9)]
    # Of three ticks b is before c in half of those in which the two differ.
    confidences = uc.match(table, f"PATTERN AND(A a, SEQ(B b, C c)) WITHIN {window}")[
        "confidence"
    ].to_pylist()
    expected = Fraction(near(3) - near(2), 2 * ticks**3)
    assert confidences == ([pytest.approx(float(expected), rel=1e-9)] if expected else [])


def test_strategies_over_many_ticks() -> None:
    last = 2**32 - 1
    table = pa.table(
        {"type": ["A", *"BBB"], "id": [1, 2, 3, 4], "lower": [0, 0, 5, 5], "upper": [last, last, 9, 9]}
    )
    query = "PATTERN SEQ(A a, B b) WHERE {}(a, b) WITHIN " + str(MAX_TICK)
    with pytest.raises(uc.ConfidenceCostError):
        uc.match(table, query.format("skip_till_next_match"))
    ticks = last + 1
    # Pairs without those that one of two events at 5 to 9 is strictly between.
    spoilt = (
        sum(
            Fraction(low * (last - low) + high * (last - high) - low * (last - high), ticks**2)
            for low, high in (sorted(pair) for pair in product(range(5, 10), repeat=2))
        )
        / 25
    )
    expected = Fraction(ticks - 1, 2 * ticks) - spoilt
    first = uc.match(table, query.format("partition_contiguity"))["confidence"].to_pylist()[0]
    assert first == pytest.approx(float(expected), rel=1e-12)


def test_one_forbidden_event_takes_no_ticks() -> None:
    n = 2**32
    table = pa.table({"type": ["A", *"BB"], "id": [1, 2, 3], "lower": [0, 0, 5], "upper": [n - 1, n - 1, 9]})
    found = uc.match(table, f"PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN {MAX_TICK}")
    between = sum(Fraction(t, n) * Fraction(n - 1 - t, n) for t in range(5, 10)) / 5
    assert found["confidence"][0].as_py() == pytest.approx(float(Fraction(n - 1, 2 * n) - between), rel=1e-11)


def test_a_pmf_beside_an_interval_of_all_time() -> None:
    table = pa.table(
        {
            "type": ["A", "B"],
            "id": [1, 2],
            "lower": [-MAX_TICK, 0],
            "upper": [MAX_TICK, 1],
            "pmf": pa.array([None, [0.5, 0.5]], pa.list_(pa.float64())),
        }
    )
    with pytest.raises(uc.ConfidenceCostError):
        uc.match(table, f"PATTERN SEQ(A+ a[], B b) WITHIN {MAX_WINDOW}")


def check(case: LanguageCase | NestedCase) -> None:
    """Assert that the answer is the oracle's, or too dear because of 10^9 ticks that have to be gone through.

    These are an interval's, or those between two events one of which has probabilities.
    """
    try:
        case.check()
    except uc.ConfidenceCostError:
        events = case.trace.events
        spread = max(event.upper for event in events) - min(event.lower for event in events)
        listed = any(event.pmf is not None for event in events)
        assert (listed and spread > 10**9) or any(event.upper - event.lower > 10**9 for event in events)


@contextmanager
def unless_out_of_reach(case: Case) -> Iterator[None]:
    """Expect that a match of an event with probabilities and one more than 10^7 ticks away may be refused."""
    try:
        yield
    except uc.TraceError as error:
        if "too many to sum over" not in str(error):
            raise
        events = case.trace.events
        spread = max(event.upper for event in events) - min(event.lower for event in events)
        listed = any(event.pmf is not None for event in events)
        if not listed or spread <= 10**7:
            raise


@pytest.mark.parametrize("strategy", STRATEGIES)
@FEWER
@given(data=st.data())
def test_kleene_negation_and_contiguity(strategy: Strategy, data: st.DataObject) -> None:
    case: LanguageCase = data.draw(far_language_cases(strategy))
    note(case.text())
    note(repr(case.trace.table().to_pydict()))
    check(case)


@given(far_nested_cases())
def test_sets_and_branches(case: NestedCase) -> None:
    note(case.text())
    note(repr(case.trace.table().to_pydict()))
    check(case)


@given(far_cases(), st.sampled_from(METHODS))
def test_sequences(case: Case, method: str) -> None:
    note(case.script())
    with unless_out_of_reach(case):
        rows = rows_of(uc.match(case.trace.table(), case.text(), evaluation=method), case)
        assert_answer(rows, case.answer())


@given(
    far_cases(uniform=True), st.sampled_from(["HAVING CONFIDENCE >= 0.2", "ORDER BY CONFIDENCE DESC LIMIT 2"])
)
def test_pruned_searches(case: Case, control: str) -> None:
    note(case.script())
    having, tail = (control, "") if control.startswith("HAVING") else ("", control)
    found = uc.match(case.trace.table(), case.text(having, tail)).to_pylist()
    every = sorted((float(match.confidence) for match in case.answer()), reverse=True)
    expected = [value for value in every if value >= 0.2 * (1 - 1e-9)] if having else every[:2]
    confidences = sorted((row["confidence"] for row in found), reverse=True)
    assert confidences == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("evaluation", ["any_state", "selectivity", "query_order", "auto", "sliced"])
@FEWER
@given(case=far_cases(), data=st.data(), small=st.booleans())
def test_streams(evaluation: str, case: Case, data: st.DataObject, small: bool) -> None:
    note(case.script())
    stream = data.draw(arrivals(case.trace.events))
    with thresholds(small=small), unless_out_of_reach(case):
        found, late = streamed(case, stream, evaluation)
        assert not late.num_rows
        assert_answer(rows_of(found, case), case.answer())


@given(far_cases())
def test_explain(case: Case) -> None:
    note(case.script())
    assert uc.explain(case.text(), case.trace.table())


def test_a_closed_stream_keeps_no_event_of_all_time() -> None:
    events = {"type": ["A"], "id": [1], "lower": [-(2**61)], "upper": [2**61]}
    table = pa.table(events)
    matcher = uc.IncrementalMatcher(
        f"PATTERN AND(A+ a[], B b) WITHIN {2**61 + 1}", table.schema, evaluation="sliced"
    )
    matcher.push(table)
    assert matcher.state_size == 1
    matcher.close()
    assert matcher.state_size == 0


_EDGES = [
    sign * edge + shift
    for edge in (0, 2**53, MAX_TICK, 2**62, 2**63)
    for sign in (-1, 1)
    for shift in (-2, -1, 0, 1, 2)
    if -(2**63) <= sign * edge + shift < 2**63
]


@given(
    st.sampled_from(["<", "<=", "=", ">=", ">"]),
    st.lists(st.sampled_from(_EDGES), min_size=1, max_size=2),
    st.integers(0, 8),
    st.booleans(),
    st.sampled_from(["auto", "point"]),
)
def test_bounds_of_times_at_the_edges_of_int64(
    relation: str, parts: list[int], apart: int, alone: bool, evaluation: str
) -> None:
    """Bounds are exact sums, of literals and attributes, however large their parts are."""
    literal, value = parts[0], parts[1] if len(parts) > 1 else None
    events = pa.table(
        {"type": ["A", "B"], "id": [1, 2], "lower": [0, apart + 1], "upper": [0, apart + 1],
         "n": pa.array([0, value], pa.int64())}
    )  # fmt: skip
    left = "TIME(b)" if alone else "TIME(b) - TIME(a)"
    # A literal has no sign of its own: the smallest one is a difference.
    text = f"{literal}" if literal > -(2**63) else f"{literal + 1} - 1"
    more = "" if value is None else " + b.n"
    query = f"PATTERN SEQ(A a, B b) WHERE {left} {relation} {text}{more} WITHIN 10"
    bound = literal + (value or 0)
    tests = {
        "<": apart + 1 < bound, "<=": apart + 1 <= bound, "=": apart + 1 == bound,
        ">=": apart + 1 >= bound, ">": apart + 1 > bound,
    }  # fmt: skip
    note(query)
    found = uc.match(events, query, evaluation=evaluation)
    assert found.num_rows == tests[relation]


def test_lengths_beyond_64_bits_of_nanoseconds() -> None:
    times = pa.array([0, 5], pa.timestamp("ns"))
    events = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": times, "upper": times, "at": times})
    for bound, expected in (
        ("TIME(b) - TIME(a) <= 106751 days + 106751 days", 1),
        ("TIME(b) - TIME(a) >= 106751 days + 106751 days", 0),
        ("TIME(b) <= b.at + 106751 days + 106751 days", 1),
        ("TIME(b) >= b.at - 106751 days - 106751 days", 1),
        ("TIME(b) < b.at - 106751 days - 106751 days", 0),
        ("TIME(b) - TIME(a) <= 9223372036854775807 ns", 1),
    ):
        query = f"PATTERN SEQ(A a, B b) WHERE {bound} WITHIN 9 s"
        assert uc.match(events, query, tick="1ns").num_rows == expected, bound
