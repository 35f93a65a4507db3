"""When the events of matches happened that sequences put in order: the law that enumerated worlds give."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.executor.test_sequences import IN_ORDER, table_of, times_of, traces
from tests.oracle import Event, Predicate, Query, answer_literally
from tests.oracle.strategies import Apart
from tests.reporting.pages import data_of
from tests.results.test_posteriors import check_law
from uncertain_cep.testing.model import Mention


def _check(table: pa.Table, query: str, window: int, events: list[Event], listed: bool) -> None:
    try:
        matches = uc.match(table, query)
    except uc.TraceError:
        assume(False)
        raise
    laws = times_of(matches, window, events)
    rows = iter(uc.posteriors(matches, table, query, pmf_ticks=1000 if listed else 0).to_pylist())
    lower = {event.id: event.lower for event in events}
    for joint in laws.values():
        for shares in joint:
            row = next(rows)
            law = {tick: share / sum(shares.values()) for tick, share in shares.items()}
            check_law({**row, "lower": lower[row["id"]]}, law, listed)
    assert next(rows, None) is None


@given(
    st.sampled_from(["A v0, B v1", "A v0, B v1, A v2", "A v0, B+ v1[]"]), st.integers(1, 9), traces(),
    st.booleans(),
)  # fmt: skip
def test_posteriors_are_those_of_the_worlds(
    pattern: str, window: int, events: list[Event], listed: bool
) -> None:
    _check(table_of(events), f"PATTERN SEQ({pattern}) WITHIN {window}", window, events, listed)


@given(
    st.sampled_from(["A v0, !B n, A v1", "A v0, B v1, A v2"]), st.integers(1, 9),
    traces(sources=1, total=True), st.booleans(),
)  # fmt: skip
def test_where_the_order_of_all_is_known(
    pattern: str, window: int, events: list[Event], listed: bool
) -> None:
    names = ", ".join(part.split()[-1] for part in pattern.split(", ") if "!" not in part)
    query = f"PATTERN SEQ({pattern}) WHERE skip_till_next_match({names}) WITHIN {window}"
    _check(table_of(events), query, window, events, listed)


@given(
    st.sampled_from(["A v0, B v1, !A n", "!B n, A v0, B v1"]),
    st.integers(1, 6),
    traces(sources=1, total=True, most=4),
    st.booleans(),
    st.integers(1, 5),
)
def test_what_spoils_matches_at_an_end(
    pattern: str, window: int, events: list[Event], listed: bool, every: int
) -> None:
    """The law of a time is that of confidences on the condition that it is at each of its ticks."""
    table, text = table_of(events), f"PATTERN SEQ({pattern}) WITHIN {window}"
    try:
        matches = uc.match(table, text)
    except uc.TraceError:
        assume(False)
        raise
    laws: dict[tuple[Any, Any], dict[int, Fraction]] = {}
    for name in ("v0", "v1"):
        for tick in range(min(event.lower for event in events), max(event.upper for event in events) + 1):
            at = Predicate((Mention.read(name),), Apart("=", tick))
            for found in answer_literally(Query(IN_ORDER[pattern], window, times=(at,)), events):
                laws.setdefault((found.ids, name), {})[tick] = found.confidence
    rows = iter(uc.posteriors(matches, table, text, pmf_ticks=1000 if listed else 0).to_pylist())
    lower = {event.id: event.lower for event in events}
    counts: dict[int, Fraction] = {}
    for match in matches.to_pylist():
        for name in ("v0", "v1"):
            law = laws[(match["v0"], match["v1"]), name]
            shares = {tick: share / sum(law.values()) for tick, share in law.items()}
            row = next(rows)
            check_law({**row, "lower": lower[row["id"]]}, shares, listed)
        for tick, share in laws[(match["v0"], match["v1"]), "v0"].items():
            counts[tick // every * every] = counts.get(tick // every * every, Fraction(0)) + share
    assert next(rows, None) is None
    buckets = uc.match(table, f"{text} RETURN EXPECTED COUNT EVERY {every}").to_pylist()
    assert {row["bucket"]: pytest.approx(row["expected_count"], rel=1e-9) for row in buckets} == counts


def _day(**columns: list[Any]) -> pa.Table:
    given: dict[str, list[Any]] = {
        "type": ["A", "B", "C"], "id": [1, 2, 3], "lower": [0, 0, 0], "upper": [23, 23, 23],
        "source": ["ward"] * 3, "offset_lower": [0] * 3, "offset_upper": [0] * 3, "sequence": [1, 2, 3],
        "ordered": [True] * 3,
    }  # fmt: skip
    return pa.table({**given, **columns})


def test_the_second_of_three_records_of_a_day_is_about_noon() -> None:
    query = "PATTERN SEQ(A a, B b, C c) WITHIN 24"
    rows = uc.posteriors(uc.match(_day(), query), _day(), query).to_pylist()
    assert [row["mean"] for row in rows] == [pytest.approx(23 * k / 4) for k in (1, 2, 3)]
    moved = _day(offset_lower=[-5] * 3, offset_upper=[5] * 3, lower=[-5] * 3, upper=[28] * 3)
    rows = uc.posteriors(uc.match(moved, query), moved, query).to_pylist()
    assert [row["mean"] for row in rows] == [pytest.approx(23 * k / 4) for k in (1, 2, 3)]


def test_rows_that_are_no_matches_are_named() -> None:
    query = "PATTERN SEQ(B b, A a) WITHIN 24"
    others = pa.table({"b": [2], "a": [1]})
    with pytest.raises(uc.OptionError, match="row 0 of the matches is no match of the query in any world"):
        uc.posteriors(others, _day(), query)


def test_reports_show_records() -> None:
    facts = data_of(uc.report(_day(), "PATTERN SEQ(A a, C c) WITHIN 9"))
    ((own, spoiling),) = facts["found_drawn"]
    assert len(own) == 2
    assert spoiling == []
