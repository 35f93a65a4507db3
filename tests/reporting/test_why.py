"""Factors of a confidence: their product is it, and each is a conditional, by worlds in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.api.charts import values
from tests.cases.cases import cases
from tests.cases.clocks import by_clocks, in_order, in_sequence
from tests.cases.existence import doubtful
from tests.cases.language import language_cases
from tests.cases.negated_groups import group_cases
from tests.cases.nested import nested_cases
from tests.cases.options import option_cases
from tests.cases.repeats import repeated_cases
from tests.cases.sampling import FEWER
from tests.cases.times import timed_cases, timed_nested_cases
from tests.operators.test_until import until_cases
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.query import parse
from uncertain_cep.reporting.match_factors import steps_of_matches
from uncertain_cep.testing.model import Event

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "language": language_cases(most=4),
    "skip till next": language_cases("skip_till_next_match", most=4),
    "sets": nested_cases("SA", 4),
    "branches": nested_cases("SAO", 4),
    "options": option_cases(most=4),
    "times": timed_cases(most=4),
    "timed sets": timed_nested_cases(),
    "negated groups": group_cases(),
    "doubtful": doubtful(language_cases(most=4)),
    "clocks": by_clocks(language_cases(most=4)),
    "sequences of clocks": in_sequence(language_cases(most=4)),
    "until": until_cases(),
    "until in sequence": in_sequence(until_cases()) | in_order(until_cases()),
    "repeated groups": repeated_cases(largest=3),
}
PROVED = 8
"""Matches of a case that are looked at."""


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_the_product_of_the_factors_is_the_confidence(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    table, text = case.trace.table(), case.text()
    note(f"{text}\n{table.to_pydict()}")
    matches = uc.match(table, text)
    for number in range(min(matches.num_rows, PROVED)):
        row = matches.slice(number, 1)
        confidence = row["confidence"][0].as_py()
        result = uc.why(row, table, text)
        assert result.confidence == confidence
        assert result.factors[-1].product == confidence
        assert math.isclose(
            math.prod(factor.probability for factor in result.factors), confidence, rel_tol=1e-9
        )
        before = 1.0
        for factor in result.factors:
            assert 0.0 < factor.probability <= 1.0 + 1e-9
            assert factor.product == pytest.approx(before * factor.probability, rel=1e-9)
            before = factor.product


def _ordered(events: list[Event], window: int | None) -> Fraction:
    """Return P(events happened in this order, within a window), by all their ticks."""
    total = Fraction(0)
    for ticks in product(*(event.own_ticks() for event in events)):
        times = [tick for tick, _ in ticks]
        if all(one < other for one, other in pairwise(times)) and (
            window is None or times[-1] - times[0] < window
        ):
            total += math.prod((weight for _, weight in ticks), start=Fraction(1))
    return total * math.prod((event.probability for event in events), start=Fraction(1))


@FEWER
@given(data=st.data())
def test_each_factor_of_a_sequence_is_that_of_its_worlds(data: st.DataObject) -> None:
    case = data.draw(st.one_of(cases(), doubtful(cases())))
    table, text = case.trace.table(), case.text()
    note(f"{text}\n{table.to_pydict()}")
    matches = uc.match(table, text)
    for number in range(min(matches.num_rows, PROVED)):
        row = matches.slice(number, 1)
        listed = uc.events_of(row, table, text)
        places = [_place(case.trace.events, one) for one in listed.to_pylist()]
        if None in places:
            continue
        events = [case.trace.events[place] for place in places if place is not None]
        expected: list[Fraction] = []
        before = Fraction(1)
        for count, event in enumerate(events, 1):
            if event.probability < 1:
                expected.append(before * event.probability)
            if count > 1:
                expected.append(_ordered(events[:count], None))
            before = _ordered(events[:count], None)
        if len(events) > 1:
            expected.append(_ordered(events, case.query().window))
        products = [factor.product for factor in uc.why(row, table, text).factors]
        assert products[: len(expected)] == pytest.approx([float(one) for one in expected], rel=1e-9)


def _place(events: tuple[Event, ...], row: dict[str, Any]) -> int | None:
    """Return the number of the event of a row; None if it could be several."""
    same = [
        number
        for number, event in enumerate(events)
        if (event.id, event.type, event.lower, event.upper)
        == (row["id"], row["type"], row["lower"], row["upper"])
    ]
    return same[0] if len(same) == 1 else None


@pytest.mark.parametrize("kind", [name for name in KINDS if "clocks" not in name])
@FEWER
@given(data=st.data())
def test_factors_of_many_matches_are_those_of_each(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    table, text = case.trace.table(), case.text()
    note(f"{text}\n{table.to_pydict()}")
    matches = uc.match(table, text).slice(0, PROVED)
    plan = make_plan(parse(text), table.schema, MatchOptions())
    seen = []
    for steps in steps_of_matches(plan, table, matches, MatchOptions()):
        for k, n in enumerate(steps.match.tolist()):
            seen.append(n)
            alone = {
                factor.what: factor.product for factor in uc.why(matches.slice(n, 1), table, text).factors
            }
            together = dict(zip(steps.what, steps.product[:, k].tolist(), strict=True))
            assert together == pytest.approx({what: together[what] for what in together} | alone, rel=1e-9)
            # Beside matches whose events may not have happened, those that did have a factor of 1.
            assert set(together) - set(alone) <= {what for what in together if what.endswith(" happened")}
    assert sorted(seen) == list(range(matches.num_rows))


EVENTS = pa.table(
    {
        "type": ["A", "B", "C", "N"],
        "id": [1, 2, 3, 4],
        "lower": [0, 2, 6, 3],
        "upper": [5, 8, 12, 9],
        "probability": [0.5, None, 1.0, 0.3],
    }
)
QUERY = "PATTERN SEQ(A a, AND(B b, C c), !N n) WHERE TIME(b) - TIME(a) >= 2 WITHIN 9"


def test_factors_say_what_they_are_of() -> None:
    row = uc.match(EVENTS, QUERY, known_until=30).to_pylist()[0]
    result = uc.why(row, EVENTS, QUERY)
    assert [factor.what for factor in result.factors] == [
        "a happened", "a before b", "a before c", "all within 9 ticks", "TIME(b) - TIME(a) >= 2",
        "nothing forbidden happened in between",
    ]  # fmt: skip
    assert repr(result).startswith("why ")
    lists = uc.match(EVENTS, "PATTERN SEQ(A a, ANY+ b[], C c) WITHIN 20 ORDER BY CONFIDENCE DESC").to_pylist()
    longest = max(lists, key=lambda one: len(one["b"]))
    factors = uc.why(longest, EVENTS, "PATTERN SEQ(A a, ANY+ b[], C c) WITHIN 20").factors
    assert "b[1] before b[2]" in [factor.what for factor in factors]


def test_a_waterfall() -> None:
    pytest.importorskip("altair")
    result = uc.why(uc.match(EVENTS, QUERY, known_until=30), EVENTS, QUERY)
    (kept,) = values(uc.plot.why(result))
    assert [row["product"] for row in kept] == [factor.product for factor in result.factors]
    assert [row["before"] for row in kept] == [1.0, *(factor.product for factor in result.factors[:-1])]
    with pytest.raises(OptionError, match=r"uc\.why returned"):
        uc.plot.why(EVENTS)


@pytest.mark.parametrize(
    ("match", "message"),
    [
        ({"a": [1, 2], "b": [2, 2], "c": [3, 3], "confidence": [0.1, 0.1]}, "there are 2"),
        ({"a": [1], "b": [2], "c": [3]}, "no confidence"),
        ({"a": [1], "b": [2], "c": [3], "confidence": [0.9]}, "no match of the query"),
        ({"a": [9], "b": [2], "c": [3], "confidence": [0.1]}, "has the id 9"),
    ],
)
def test_errors(match: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        uc.why(pa.table(match), EVENTS, QUERY)
