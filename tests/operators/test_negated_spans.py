"""Negated events that last: their begins and ends are counted, so that no cost grows with their ticks."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.timed.drawn_times import DrawnPairs
from confidence.timed.forbidden_spans import Span
from tests.cases.sampling import FEWER
from tests.cases.spans import RELATIONS, Lasting, Pair, SpanCase, events_table, span_cases

pytestmark = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")


def pauses(ticks: int, count: int = 3) -> pa.Table:
    """Return a request with ends of eleven ticks, and pauses with ends of multiples of ``ticks``."""
    request = Lasting("A", 0, begin=(3 * ticks - 10, 3 * ticks), end=(6 * ticks, 6 * ticks + 10))
    pause = [Lasting("N", n + 1, begin=(0, 4 * ticks), end=(2 * ticks, 9 * ticks)) for n in range(count)]
    columns: dict[str, list[Any]] = {"type": [], "id": [], "lower": [], "upper": []}
    columns |= {f"{end}_{side}": [] for end in ("begin", "end") for side in ("lower", "upper")}
    for event in (request, *pause):
        assert event.begin is not None
        assert event.end is not None
        row = [event.type, event.id, event.begin[0], event.end[1], *event.begin, *event.end]
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    return pa.table(columns)


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_price_grows_with_the_ticks_of_what_is_negated(relation: str) -> None:
    prices = set()
    for ticks in (20, 1_000, 10**6, 10**8):
        query = f"PATTERN AND(A a, !N n) WHERE n {relation} a WITHIN {100 * ticks}"
        answer = json.loads(uc.explain(query, pauses(ticks), analyze=True, format="json"))
        uses = [use for use in _weighers(answer) if use["matches"]]
        prices.add(tuple((use["name"], use["matches"], use["ns"]) for use in uses))
    assert len(prices) == 1


def _weighers(answer: Any) -> list[Any]:
    """Return the weighers of matches, wherever they stand in the facts of a plan."""
    if isinstance(answer, list):
        return [use for part in answer for use in _weighers(part)]
    if not isinstance(answer, dict):
        return []
    return [*answer.get("weighers", []), *(use for part in answer.values() for use in _weighers(part))]


def test_pairs_of_many_ticks_are_exact() -> None:
    """Of 10^8 ticks: what is impossible is no match, and what is certain is certain."""
    ticks = 10**8
    query = f"PATTERN AND(A a, !N n) WHERE n OVERLAPS a WITHIN {100 * ticks}"
    (row,) = uc.match(pauses(ticks), query).to_pylist()
    begin, end = (0, 4 * ticks), (2 * ticks, 9 * ticks)

    def pairs(last_begin: int, first_end: int) -> int:
        """Return how many pairs begin and end no later, and no sooner."""
        return sum_of_ends(begin[0], min(begin[1], last_begin), max(end[0], first_end), end[1])

    def sum_of_ends(low: int, high: int, first: int, last: int) -> int:
        if low > high or first > last:
            return 0
        free = max(min(high, first) - low + 1, 0) * (last - first + 1)
        low = max(low, first + 1)
        count = max(high - low + 1, 0)
        return free + count * (last - low + 1) - count * (count - 1) // 2

    total = pairs(begin[1], end[0])
    expected = Fraction(0)
    for b, e in product(range(3 * ticks - 10, 3 * ticks + 1), range(6 * ticks, 6 * ticks + 11)):
        expected += Fraction(total - pairs(e, b), total) ** 3 / 121
    assert row["confidence"] == pytest.approx(float(expected), rel=1e-9)
    around = pauses(ticks).to_pylist()[:2]
    around[1] |= {"begin_upper": 2 * ticks, "end_lower": 7 * ticks}
    assert not uc.match(pa.Table.from_pylist(around), query).num_rows


def test_ends_of_too_many_ticks_are_an_error() -> None:
    query = f"PATTERN AND(A a, !N n) WHERE n OVERLAPS a WITHIN {2**50}"
    with pytest.raises(uc.OptionError, match="choose a longer tick"):
        uc.match(pauses(2**32), query)


spans = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 4), st.integers(0, 3))


def lasting(
    type_: str, number: int, drawn: tuple[int, int, int, int], weights: tuple[int, ...] = (), **more: Any
) -> Lasting:
    """Return an event of some begins and ends, with a pair that is possible, and weights of these."""
    begin, width, length, height = drawn
    first = begin + length
    laws = {"begin": weights[: width + 1], "end": weights[4 : height + 5]}
    more["laws"] = tuple(
        (name, tuple(Fraction(one, sum(law)) for one in law)) for name, law in laws.items() if law
    )
    return Lasting(type_, number, (begin, begin + width), (first, first + height), **more)


weights_of_ends = st.just(()) | st.tuples(*[st.integers(1, 3)] * 8)


@FEWER
@given(
    request=spans,
    pauses_drawn=st.lists(spans, min_size=1, max_size=2),
    relations=st.tuples(*[st.sampled_from(sorted(RELATIONS))] * 2),
    shortest=st.integers(0, 3),
    weights=weights_of_ends,
    happened=st.sampled_from([Fraction(1), Fraction(1, 2)]),
)
def test_several_negations_of_one_event(
    request: tuple[int, int, int, int],
    pauses_drawn: list[tuple[int, int, int, int]],
    relations: tuple[str, str],
    shortest: int,
    weights: tuple[int, ...],
    happened: Fraction,
) -> None:
    """Two rules forbid one event the union of their pairs, lengths included."""
    events = (
        lasting("A", 0, request),
        *(lasting("N", n, drawn, weights, probability=happened) for n, drawn in enumerate(pauses_drawn, 1)),
    )
    query = (
        f"PATTERN AND(A a, !N n, !N m) WHERE n {relations[0]} a AND m {relations[1]} a "
        f"AND DURATION(m) >= {shortest} WITHIN 100"
    )
    note(f"{query}\n{events}")

    def is_forbidden(pair: Pair, of: Pair) -> bool:
        first, second = (RELATIONS[relation](pair, of) for relation in relations)
        return first or (second and pair[1] - pair[0] >= shortest)

    expected = Fraction(0)
    for pair, weight in events[0].law().items():
        for event in events[1:]:
            inside = sum((w for p, w in event.law().items() if is_forbidden(p, pair)), Fraction(0))
            weight *= 1 - happened * inside
        expected += weight
    rows = uc.match(events_table(events, {}), query).to_pylist()
    assert len(rows) == (expected > 0)
    for row in rows:
        assert row["confidence"] == pytest.approx(float(expected), rel=1e-9)


@FEWER
@given(
    drawn=spans,
    ends=st.lists(st.tuples(*[st.integers(-1, 9)] * 6), min_size=1, max_size=3),
    weights=weights_of_ends,
)
def test_what_estimates_take_for_the_mass_of_rules(
    drawn: tuple[int, int, int, int], ends: list[tuple[int, ...]], weights: tuple[int, ...]
) -> None:
    """Draws add up the pairs that some rule forbids."""
    event = lasting("N", 0, drawn, weights)
    assert event.begin is not None
    assert event.end is not None
    rules, lengths, times = [], [], np.array([[2, 5]])
    for first, last, end, stop, low, high in ends:
        rules += [Span(((0, first - 2),), ((-1, last),), {}), Span(((-1, end),), ((0, stop - 2),), {})]
        lengths.append((low, high))
    law, each = event.law(), None
    if weights:
        begins, stops = (range(low, high + 1) for low, high in (event.begin, event.end))
        each = np.array([[float(law.get((b, e), 0)) for e in stops] for b in begins])
    pairs = DrawnPairs(event.begin, event.end, (0, 99), 0.5, lengths, each)
    for place, tick in enumerate(times[0].tolist()):
        inside = sum(
            chance
            for (b, e), chance in law.items()
            if any(
                first - 2 + tick <= b <= last and end <= e <= stop - 2 + tick and low <= e - b <= high
                for first, last, end, stop, low, high in ends
            )
        )
        mass = pairs.mass_inside(rules, times)[place]
        assert mass == pytest.approx(0.5 * float(inside), abs=1e-12)


def test_estimates_of_confidences_beside_negated_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    events, query = pauses(40), "PATTERN AND(A a, !N n) WHERE n DURING a WITHIN 4000"
    exact = uc.match(events, query)["confidence"][0].as_py()
    monkeypatch.setattr("uncertain_cep.weighers.elimination.MOST_CELLS_IN_TABLE", 16)
    with pytest.raises(uc.ConfidenceCostError):
        uc.match(events, query)
    (row,) = uc.match(events, query, approximate=0.01).to_pylist()
    assert not row["exact"]
    assert abs(row["confidence"] - exact) <= 6 * max(row["std_error"], 0.001)


def weighed(ticks: int) -> pa.Table:
    """Return a moment of 2 ``ticks``, and a pause whose begin and end have laws of so many, one behind."""
    law = np.arange(1, ticks + 1) / (ticks * (ticks + 1) / 2)
    columns: dict[str, list[Any]] = {
        "type": ["A", "N"], "id": [1, 2], "lower": [0, 0], "upper": [2 * ticks - 1] * 2,
        "begin_lower": [None, 0], "begin_upper": [None, ticks - 1], "begin_pmf": [None, law],
        "end_lower": [None, ticks], "end_upper": [None, 2 * ticks - 1], "end_pmf": [None, law],
    }  # fmt: skip
    return pa.table(columns)


def test_overlaps_need_the_laws_of_both_ends_alone() -> None:
    """All pairs at all ticks, 1.5 * 10^8, would take too long: so they do for what lies inside."""
    ticks, query = 420, "PATTERN AND(A a, !N n) WHERE {} WITHIN 2000"
    (row,) = uc.match(weighed(ticks), query.format("n OVERLAPS a")).to_pylist()
    up_to = np.cumsum(np.arange(1, ticks + 1) / (ticks * (ticks + 1) / 2))
    begun, ended = np.append(up_to, np.ones(ticks)), np.append(np.zeros(ticks + 1), up_to[:-1])
    assert row["confidence"] == pytest.approx(1.0 - float((begun * (1.0 - ended)).mean()), rel=1e-9)
    with pytest.raises(uc.ConfidenceCostError):
        uc.match(weighed(ticks), query.format("n BEFORE a AND TIME(n.end) >= TIME(a) - 500"))


def test_pairs_beyond_a_limit_are_refused() -> None:
    with pytest.raises(uc.OptionError, match="4,202,500 pairs of a begin and an end"):
        uc.match(weighed(2050), "PATTERN AND(A a, !N n) WHERE n OVERLAPS a WITHIN 9000")


def test_estimates_beside_negated_spans_with_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    events, query = weighed(12), "PATTERN AND(A a, !N n) WHERE n OVERLAPS a WITHIN 90"
    exact = uc.match(events, query)["confidence"][0].as_py()
    monkeypatch.setattr("uncertain_cep.weighers.elimination.MOST_CELLS_IN_TABLE", 4)
    (row,) = uc.match(events, query, approximate=0.01).to_pylist()
    assert not row["exact"]
    assert abs(row["confidence"] - exact) <= 6 * max(row["std_error"], 0.001)


def _last_tick(case: SpanCase, ticks: dict[str, Pair]) -> int:
    """Return the last tick at which an event can end that no one knows of, and that forbids a match."""
    assert case.negated is not None
    name, _, after = case.negated
    in_order = [ticks[variable] for variable, _ in case.variables]
    last = _ENDLESS
    if case.kind == "SEQ":
        first = min(begin for begin, _ in in_order)
        last = in_order[after][0] - 1 if after < len(in_order) else first + case.window - 1
    for condition in case.conditions:
        if name in condition.variables:
            ends = [
                end
                for end in range(_ENDLESS + 1)
                if any(condition.of({**ticks, name: (begin, end)}) for begin in range(-5, end + 1))
            ]
            last = min(last, max(ends, default=-1))
    return last


_ENDLESS: Final = 40


@FEWER
@given(
    case=span_cases(negating=True, negated_lasts=True, kinds=("SEQ",)).filter(
        lambda case: case.negated is not None and case.negated[2] == 1 and len(case.variables) == 2
    )
)
def test_until_forbids_what_is_between_two_events(case: SpanCase) -> None:
    note(f"{case.text()}\n{case.events}")
    assert case.negated is not None
    text = case.text().replace(" !N n,", "").replace(")", ") UNTIL N n", 1)
    for query in (case.text(), text):
        rows = uc.match(case.table(), query).to_pylist()
        answers = {tuple(row[name] for name, _ in case.variables): row["confidence"] for row in rows}
        expected = {ids: float(confidence) for ids, (*_, confidence) in case.answer().items()}
        assert answers == pytest.approx(expected, rel=1e-9)


@FEWER
@given(case=span_cases(negating=True, negated_lasts=True), until=st.integers(0, 9))
def test_known_end(case: SpanCase, until: int) -> None:
    """A match is left out if an event that ends behind the known end can forbid it."""
    note(f"{case.text()}\n{case.events}")
    answer = case.answer()
    undecided = set()
    for _, world in case.worlds():
        pairs = {event.id: pair for event, pair in world.items()}
        for ids, _ in case.matches(world):
            ticks = {name: pairs[number] for (name, _), number in zip(case.variables, ids, strict=True)}
            if _last_tick(case, ticks) > until:
                undecided.add(ids)
    rows = uc.match(case.table(), case.text(), known_until=until).to_pylist()
    answers = {tuple(row[name] for name, _ in case.variables): row["confidence"] for row in rows}
    assert answers.keys() == answer.keys() - undecided
    for ids, confidence in answers.items():
        assert confidence == pytest.approx(float(answer[ids][2]), rel=1e-9)


def test_a_bound_of_the_length_lets_an_overlap_be_decided() -> None:
    """A pause that begins before the request ends, at 50, may last: it is known at 60 if 10 is the most."""
    request = events_table((Lasting("A", 1, (20, 22), (45, 50)),), {})
    query = "PATTERN AND(A a, !N n) WHERE n OVERLAPS a {} WITHIN 100"
    assert not uc.match(request, query.format(""), known_until=90).num_rows
    for until, rows in ((60, 1), (59, 0)):
        bound = query.format("AND DURATION(n) <= 10")
        assert uc.match(request, bound, known_until=until).num_rows == rows
