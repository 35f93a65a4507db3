"""Matches as events that happened with their confidence, at the exact time of one of their events."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.existence import doubtful
from tests.cases.language import LanguageCase, entry, language_cases
from tests.cases.sampling import sampled_from
from uncertain_cep.errors import OptionError
from uncertain_cep.results import match_times
from uncertain_cep.testing.worlds import times_given

EVENTS = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
QUERY = "PATTERN SEQ(A a, B b) WITHIN 4"


def _new(events: pa.Table, query: str, at: str = "range") -> list[dict[str, Any]]:
    joined = uc.with_matches(events, uc.match(events, query), "Found", at=at, query=query)
    rows: list[dict[str, Any]] = joined.slice(events.num_rows).to_pylist()
    return rows


@given(doubtful(language_cases()), sampled_from(["first", "last", "variable"]), st.data())
def test_the_law_is_the_oracles(case: LanguageCase, at: str, data: st.DataObject) -> None:
    note(case.text())
    singles = [part.variable for part in case.components if not (part.negated or part.kleene)]
    if at == "variable":
        if not singles:
            return
        at = data.draw(st.sampled_from(singles))
    table = case.trace.table()
    expected = times_given(case.query(), case.trace.events)
    confidences = {(match.partition, match.signature): match.confidence for match in case.answer()}
    for row in _new(table, case.text(), at):
        variables = [part for part in case.components if not part.negated]
        signature = tuple((part.variable, entry(row[part.variable])) for part in variables)
        key = tuple(row[name] for name in case.query().partition), signature
        sizes = [len(ids) if isinstance(ids, tuple) else 1 for _, ids in signature]
        place = 0 if at == "first" else sum(sizes) - 1
        if at not in ("first", "last"):
            place = sum(sizes[: [part.variable for part in variables].index(at)])
        law = {tick: float(weight) for tick, weight in expected[key][place].items() if weight}
        found = dict(enumerate(row["pmf"], row["lower"]))
        assert row["upper"] == row["lower"] + len(row["pmf"]) - 1
        assert {tick: weight for tick, weight in found.items() if weight} == pytest.approx(law, rel=1e-9)
        assert row["probability"] == pytest.approx(float(confidences[key]), rel=1e-9)


def test_the_range_is_kept_by_default() -> None:
    (row,) = _new(EVENTS, QUERY)
    assert (row["lower"], row["upper"], row["probability"]) == (1, 4, 0.625)
    assert "pmf" not in row


def test_composed_confidences() -> None:
    """Of one match, what is composed is exact: P(a < b) and P(a < b < c)."""
    events = pa.concat_tables([EVENTS, pa.table({"type": ["C"], "id": [9], "lower": [4], "upper": [5]})])
    joined = uc.with_matches(events, uc.match(events, QUERY), "Found", at="last", query=QUERY)
    (row,) = uc.match(joined, "PATTERN SEQ(Found f, C c) WITHIN 9").to_pylist()
    (whole,) = uc.match(events, "PATTERN SEQ(A a, B b, C c) WITHIN 9").to_pylist()
    assert row["confidence"] == pytest.approx(whole["confidence"], rel=1e-12)
    assert Fraction(row["confidence"]).limit_denominator(100) == Fraction(7, 16)


def test_events_that_have_pmfs_and_probabilities() -> None:
    table = EVENTS.append_column("pmf", pa.array([None, [0.5, 0.5]], pa.large_list(pa.float64())))
    table = table.append_column("probability", pa.array([1, 1], pa.int32()))
    joined = uc.with_matches(table, uc.match(table, QUERY), "Found", at="b", query=QUERY)
    assert joined["probability"].to_pylist() == [1.0, 1.0, 0.625]
    assert joined["pmf"].to_pylist() == [None, [0.5, 0.5], [0.4, 0.6]]


def test_ticks_that_are_shorter_than_the_unit_of_the_times() -> None:
    events = EVENTS.set_column(2, "lower", EVENTS["lower"].cast(pa.timestamp("s")))
    events = events.set_column(3, "upper", EVENTS["upper"].cast(pa.timestamp("s")))
    query = "PATTERN SEQ(A a, B b) WITHIN 4 s"
    matches = uc.match(events, query, tick="500ms")
    joined = uc.with_matches(events, matches, "Found", at="first", query=query, tick="500ms")
    (row,) = joined.slice(2).to_pylist()
    assert joined.schema.field("lower").type == pa.timestamp("s")
    assert len(row["pmf"]) == 2 * int((row["upper"] - row["lower"]).total_seconds()) + 1
    assert sum(row["pmf"]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("pattern", "at", "message"),
    [
        ("SEQ(A a, B b)", "c", "a match of the pattern without c"),
        ("SEQ(A a, B+ b[])", "b", "b takes several events"),
        ("AND(A a, B b)", "last", "any of several events of AND"),
        ("SEQ(A a, AND(B b, B c))", "last", "any of several events of AND"),
    ],
)
def test_what_tells_no_time(pattern: str, at: str, message: str) -> None:
    events = pa.concat_tables([EVENTS, pa.table({"type": ["B"], "id": [9], "lower": [4], "upper": [5]})])
    query = f"PATTERN {pattern} WITHIN 9"
    with pytest.raises(OptionError, match=message):
        uc.with_matches(events, uc.match(events, query), "Found", at=at, query=query)


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = uc.match(EVENTS, QUERY)
    with pytest.raises(OptionError, match="give the query of the matches"):
        uc.with_matches(EVENTS, matches, "Found", at="last")
    monkeypatch.setattr(match_times, "MOST_TICKS_OF_A_LAW", 1)
    with pytest.raises(OptionError, match="has 2 ticks, and at most 1 are listed"):
        uc.with_matches(EVENTS, matches, "Found", at="last", query=QUERY)


def test_what_ends_a_pattern_with_and() -> None:
    query = "PATTERN SEQ(AND(A a, A c), B b) WITHIN 9"
    events = pa.concat_tables([EVENTS, pa.table({"type": ["A"], "id": [9], "lower": [1], "upper": [2]})])
    for row in _new(events, query, "last"):
        assert (row["lower"], row["upper"]) == (3, 4)
