"""Rows that are told early are rows of the answer, each once; release tells all that are certain."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Trace
from tests.cases.comparison import RELATIVE_ERROR, assert_answer
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import nested_cases
from tests.cases.sampling import FEWER, sampled_from
from tests.cases.times import timed_cases
from tests.streaming.arrivals import arrivals, pushed
from tests.streaming.batches import BUCKETS, SLICE_LENGTHS, Batches, notice, plain
from tests.streaming.test_streamed_probabilities import KINDS, PAIR, SCHEMA, stays_open, streamable
from uncertain_cep.errors import OptionError
from uncertain_cep.streaming.stream_layout import CLOSE, HEARTBEAT, RELEASE, StreamOptions

LENGTHS = st.sampled_from([None, 1, 1, 2, 7])
EVERY = "RETURN PROBABILITY EVERY 10"
MATCHES: dict[str, st.SearchStrategy[Any]] = {
    "any": language_cases(most=5),
    "next": language_cases("skip_till_next_match", most=5),
    "partition": language_cases("partition_contiguity", most=5),
    "strict": language_cases("strict_contiguity", most=5),
    "times": timed_cases(),
    "nested": nested_cases("OAS"),
}


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data(), length=LENGTHS)
def test_a_group_is_told_once_and_never_taken_back(
    kind: str, data: st.DataObject, length: int | None
) -> None:
    """Also where the probability that is asked for is that of a group, or a bit more or less."""
    case = data.draw(KINDS[kind])
    grouping = streamable(data, case)
    answer = grouping.answer(case)
    threshold = float(data.draw(sampled_from([Fraction(1, 10), Fraction(1, 2), *answer.values()])))
    threshold *= data.draw(sampled_from([1.0, 1.0, 1 - 1e-6, 1 + 1e-6]))
    text = case.text(f"HAVING PROBABILITY >= {threshold:.17g} {grouping.clause}")
    note(f"{text}\n{case.trace.events}")
    stream = data.draw(arrivals(case.trace.events))
    if grouping.every is None and stays_open(case, text):
        return
    rows, matcher = pushed(stream, case.trace.types, text, slice_length=length, when="certain")
    assert not matcher.late_count
    expected = {key: value for key, value in answer.items() if value >= threshold * (1 - RELATIVE_ERROR)}
    records = rows.to_pylist()
    keys = [(tuple(record[name] for name in grouping.by), record.get("bucket")) for record in records]
    assert len(keys) == len(set(keys))
    assert set(keys) == expected.keys()
    for key, record in zip(keys, records, strict=True):
        if record["exact"]:
            assert math.isclose(record["probability"], expected[key], rel_tol=RELATIVE_ERROR)
        else:
            assert record["probability"] is None
            bound = record["probability_lower"]
            assert threshold * (1 - RELATIVE_ERROR) <= bound <= expected[key] * (1 + RELATIVE_ERROR)


@pytest.mark.parametrize("kind", MATCHES)
@FEWER
@given(data=st.data(), length=LENGTHS)
def test_a_match_that_is_certain_is_final(kind: str, data: st.DataObject, length: int | None) -> None:
    case = data.draw(MATCHES[kind])
    note(case.text())
    stream = data.draw(arrivals(case.trace.events))
    matches, matcher = pushed(
        stream, case.trace.types, case.text(), evaluation="sliced", slice_length=length, when="certain"
    )
    assert not matcher.late_count
    assert_answer(case.rows(matches), case.answer())


@pytest.mark.parametrize("kind", MATCHES)
@FEWER
@given(data=st.data(), length=LENGTHS, when=st.sampled_from(["final", "certain"]))
def test_release_tells_what_is_decided_by_a_known_end(
    kind: str, data: st.DataObject, length: int | None, when: str
) -> None:
    """And what comes later are the other matches of a table of all events."""
    case: LanguageCase = data.draw(MATCHES[kind])
    note(case.text())
    ordered = tuple(sorted(case.trace.events, key=lambda event: event.lower))
    table = Trace(ordered, case.trace.types).table(with_pmf=True)
    matcher = uc.IncrementalMatcher(
        case.text(), table.schema, evaluation="sliced", slice_length=length, when=when
    )
    bound = data.draw(st.integers(-2, 14))
    count = len([event for event in ordered if event.lower < bound])
    batches = [matcher.push(table.slice(0, count)), matcher.heartbeat(bound), matcher.release()]
    assert matcher.release().num_rows == 0
    if data.draw(st.booleans()):
        held = matcher.snapshot()
        matcher = uc.IncrementalMatcher(
            case.text(), table.schema, evaluation="sliced", slice_length=length, when=when
        )
        matcher.restore(held)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        decided = uc.match(table.slice(0, count), case.text(), known_until=bound - 1)
    signature = [name for name in decided.column_names if name != "confidence"]
    rows = pa.Table.from_batches(batches).select(signature).to_pylist()
    assert sorted(map(repr, rows)) == sorted(map(repr, decided.select(signature).to_pylist()))
    batches += [matcher.push(table.slice(count)), matcher.close()]
    assert_answer(case.rows(pa.Table.from_batches(batches)), case.answer())


def test_batches_ask_again_what_no_alternative_asks() -> None:
    """A condition on variables of two alternatives, of which no event is asked."""
    table = pa.table({"type": ["A"], "id": [1], "lower": [0], "upper": [0], "x": [0]})
    query = "PATTERN OR(SEQ(A a, B b), A c) WHERE a.x > c.x WITHIN 2"
    batches = Batches(query, table.schema, StreamOptions(0))
    batches.take(table, notice(table.schema, HEARTBEAT, 1))
    batches.take(notice(table.schema, RELEASE))
    assert batches.matches.num_rows == 1


@pytest.mark.parametrize("kind", MATCHES)
@FEWER
@given(data=st.data(), length=SLICE_LENGTHS, buckets=BUCKETS)
def test_batches_release_what_is_decided_by_a_known_end(
    kind: str, data: st.DataObject, length: int | None, buckets: int
) -> None:
    case: LanguageCase = data.draw(MATCHES[kind])
    note(case.text())
    ordered = tuple(sorted(case.trace.events, key=lambda event: event.lower))
    table = plain(Trace(ordered, case.trace.types).table(with_pmf=True))
    longest = max((event.upper - event.lower for event in ordered), default=0)
    length = None if length is None else length + max(longest, case.window) // 30
    options = StreamOptions(longest, slice_length=length, buckets=buckets)
    batches = Batches(case.text(), table.schema, options)
    bound = data.draw(st.integers(-2, 14))
    count = len([event for event in ordered if event.lower < bound])
    batches.take(table.slice(0, count), notice(table.schema, HEARTBEAT, bound))
    batches.take(notice(table.schema, RELEASE))
    batches.take(notice(table.schema, RELEASE))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", uc.UncertainCepWarning)
        decided = uc.match(table.slice(0, count), case.text(), known_until=bound - 1)
    signature = [name for name in decided.column_names if name != "confidence"]
    rows = batches.matches.select(signature).to_pylist()
    assert sorted(map(repr, rows)) == sorted(map(repr, decided.select(signature).to_pylist()))
    assert batches.counts["undecided"] == 0 or any("undecided" in str(one.message) for one in said)
    for place in range(count, table.num_rows):
        batches.take(table.slice(place, 1))
    batches.take(notice(table.schema, CLOSE))
    assert_answer(case.rows(batches.matches), case.answer())
    assert batches.held == 0
    assert batches.counts["late"] == 0


def test_a_bucket_is_told_before_it_is_final() -> None:
    """Bucket 0 is final at 109. The second pair makes 0.75 of 0.5."""
    query = f"{PAIR.replace('RETURN', 'HAVING PROBABILITY >= 0.6 RETURN')} EVERY 100"
    matcher = uc.IncrementalMatcher(query, SCHEMA, slice_length=1, when="certain")

    def pair(number: int, lower: int) -> pa.Table:
        rows = {"type": ["A", "B"], "id": [number, number + 1], "lower": [lower, lower]}
        rows["upper"] = [lower, lower + 1]
        return pa.table(rows, schema=SCHEMA)

    assert not matcher.push(pair(1, 10)).num_rows
    assert not matcher.heartbeat(12).num_rows
    assert not matcher.push(pair(3, 30)).num_rows
    bounds = {"probability_lower": 0.75, "probability_upper": 1.0}
    alerts = [{"bucket": 0, "probability": None, "exact": False, **bounds}]
    assert matcher.heartbeat(31).to_pylist() == alerts
    matcher.push(pair(5, 50))
    assert not matcher.heartbeat(60).num_rows
    assert not matcher.close().num_rows


def test_an_order_that_is_paid_is_told_when_no_cancellation_can_come_between() -> None:
    schema = pa.schema({"type": pa.string(), **dict.fromkeys(("id", "lower", "upper"), pa.int64())})
    query = "PATTERN SEQ(Order a, !Cancel n, Paid b) WITHIN 1000"
    rows = {"type": ["Order", "Paid"], "id": [1, 2], "lower": [0, 5], "upper": [0, 5]}
    for when, ticks in (("certain", 5), ("final", 1000)):
        matcher = uc.IncrementalMatcher(query, schema, slice_length=1, when=when)
        matcher.push(pa.table(rows, schema=schema))
        assert not matcher.heartbeat(ticks - 1).num_rows
        assert matcher.heartbeat(ticks).column("a").to_pylist() == [1]
        assert matcher.close().num_rows == 0


@pytest.mark.parametrize(
    ("clause", "options", "message"),
    [
        (EVERY, {}, "ask HAVING PROBABILITY >= x"),
        (f"HAVING PROBABILITY <= 0.5 {EVERY}", {}, "ask HAVING PROBABILITY >= x"),
        (f"HAVING NOT PROBABILITY >= 0.5 {EVERY}", {}, "ask HAVING PROBABILITY >= x"),
        (f"HAVING PROBABILITY >= 0.5 {EVERY}", {"approximate": 0.1}, "leave out approximate="),
        ("", {"evaluation": "query_order"}, "leave one of them out"),
    ],
)  # fmt: skip
def test_what_is_never_early_is_refused(clause: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        uc.IncrementalMatcher(f"PATTERN SEQ(A a, B b) WITHIN 10 {clause}", SCHEMA, when="certain", **options)
    with pytest.raises(OptionError, match="when='soon' is unknown: use final or certain"):
        uc.IncrementalMatcher("PATTERN SEQ(A a, B b) WITHIN 10", SCHEMA, when="soon")
