"""Events that share clocks, as they arrive: the answer is that of all worlds."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.clocks import by_clocks, in_sequence
from tests.cases.comparison import assert_answer
from tests.cases.language import LanguageCase, language_cases
from tests.executor import test_sequences as sequences
from tests.executor.test_shared_clocks import expected, table_of, text, traces
from tests.oracle import Event
from tests.streaming.arrivals import arrivals
from tests.streaming.batches import BUCKETS, Batches, notice
from tests.streaming.test_held_slices import streamed as batched
from tests.streaming.test_sliced import streamed as sliced
from uncertain_cep.streaming.stream_layout import CLOSE, StreamOptions


@given(
    st.sampled_from(["AB", "ABA", "AABB"]), st.integers(1, 14), traces(weighed=True), st.data(),
    st.sampled_from([None, 1, 3, 1000]), st.sampled_from(["auto", "point"]),
)  # fmt: skip
def test_a_stream_has_the_matches_of_all_worlds(
    types: str,
    window: int,
    events: list[Event],
    data: st.DataObject,
    slice_length: int | None,
    evaluation: str,
) -> None:
    stream = data.draw(arrivals(tuple(events)))
    table = table_of(list(stream.events))
    matcher = uc.IncrementalMatcher(
        text(types, window), table.schema, evaluation=evaluation, largest_interval=stream.largest,
        slice_length=slice_length,
    )  # fmt: skip
    parts, start = [], 0
    for cut, heartbeat in zip(stream.cuts, stream.heartbeats, strict=True):
        parts.append(matcher.push(table.slice(start, cut - start)))
        start = cut
        if heartbeat is not None:
            parts.append(matcher.heartbeat(heartbeat[0], of_type=heartbeat[1]))
    rows = pa.Table.from_batches([*parts, matcher.close()]).to_pylist()
    expected_by_ids = expected(types, window, events)
    got = {tuple(row[f"v{place}"] for place in range(len(types))): row for row in rows}
    assert got.keys() == expected_by_ids.keys()
    assert len(rows) == len(got)
    for ids, (lower, upper, confidence) in expected_by_ids.items():
        assert (got[ids]["range_lower"], got[ids]["range_upper"]) == (lower, upper)
        assert got[ids]["confidence"] == pytest.approx(float(confidence), rel=1e-9)


@given(
    st.sampled_from(["AB", "ABA"]), st.integers(2, 14), traces(), st.data(),
    st.sampled_from([None, 2, 40]), BUCKETS,
)  # fmt: skip
def test_batches_have_the_matches_of_all_worlds(
    types: str, window: int, events: list[Event], data: st.DataObject, slice_length: int | None, buckets: int
) -> None:
    table = table_of(sorted(events, key=lambda event: event.lower))
    batches = Batches(
        text(types, window), table.schema, StreamOptions(10, slice_length=slice_length, buckets=buckets)
    )
    middle = data.draw(st.integers(0, table.num_rows))
    batches.take(table.slice(0, middle), table.slice(middle))
    batches.take(notice(table.schema, CLOSE))
    expected_by_ids = expected(types, window, events)
    got = {tuple(row[f"v{place}"] for place in range(len(types))): row for row in batches.matches.to_pylist()}
    assert got.keys() == expected_by_ids.keys()
    for ids, (lower, upper, confidence) in expected_by_ids.items():
        assert (got[ids]["range_lower"], got[ids]["range_upper"]) == (lower, upper)
        assert got[ids]["confidence"] == pytest.approx(float(confidence), rel=1e-9)


@given(
    st.sampled_from([by_clocks, in_sequence]).flatmap(lambda kind: kind(language_cases(most=4))), st.data(),
    st.sampled_from([None, 1, 3]),
)  # fmt: skip
def test_what_forbids_and_repeats_over_a_stream(
    case: LanguageCase, data: st.DataObject, length: int | None
) -> None:
    note(case.text())
    stream = data.draw(arrivals(case.trace.events))
    assert_answer(case.rows(sliced(case.trace, stream, case.text(), length)), case.answer())


@given(
    st.sampled_from([by_clocks, in_sequence]).flatmap(lambda kind: kind(language_cases(most=4))), st.data()
)
def test_what_forbids_and_repeats_in_batches(case: LanguageCase, data: st.DataObject) -> None:
    note(case.text())
    assert_answer(case.rows(batched(data, case.trace, case.text())), case.answer())


def test_a_clock_with_other_bounds_is_told_when_its_events_meet() -> None:
    rows = [
        {"type": type, "id": id, "lower": 5, "upper": upper, "source": "h", "offset_lower": 0,
         "offset_upper": upper - 5}
        for id, (type, upper) in enumerate([("A", 8), ("B", 9)])
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows, table_of([]).schema)
    batches = Batches("PATTERN SEQ(A a, B b) WITHIN 9", table.schema, StreamOptions(10))
    batches.take(table.slice(0, 1))
    batches.take(table.slice(1))
    with pytest.raises(uc.TraceError, match="the clock has other bounds in other rows"):
        batches.take(notice(table.schema, CLOSE))


def test_a_clock_with_another_pmf_is_told_when_its_events_meet() -> None:
    laws = {"A": [0.5, 0.5, 0.0, 0.0], "B": [0.25] * 4}
    rows = [
        {"type": type, "id": id, "lower": 5, "upper": 8, "source": "h", "offset_lower": 0, "offset_upper": 3,
         "offset_pmf": laws[type]}
        for id, type in enumerate(laws)
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows)
    matcher = uc.IncrementalMatcher("PATTERN SEQ(A a, B b) WITHIN 9", table.schema, largest_interval=10)
    with pytest.raises(
        uc.TraceError, match=r"column 'offset_pmf', value 'h': the clock has another pmf in other"
    ):
        (matcher.push(table.slice(0, 1)), matcher.push(table.slice(1)), matcher.close())


def test_what_extends_runs_takes_times_as_independent() -> None:
    schema = table_of([]).schema
    query = "PATTERN SEQ(A a, B b) WITHIN 9"
    with pytest.raises(uc.OptionError, match=r"does not support events of one clock .* over a stream"):
        uc.IncrementalMatcher(query, schema, evaluation="any_state")
    assert uc.IncrementalMatcher(query, schema, evaluation="any_state", sources=False).state_size == 0
    snapshot = uc.IncrementalMatcher(query, schema).snapshot()
    with pytest.raises(uc.OptionError):
        uc.IncrementalMatcher(query, schema, sources=False, evaluation="sliced").restore(snapshot)


def test_events_of_one_tick_match_in_a_window_of_one_tick() -> None:
    table = pa.table({
        "type": ["A", "B"], "id": [0, 1], "lower": [0, 0], "upper": [2, 2], "source": ["s", "s"],
        "offset_lower": [0, 0], "offset_upper": [2, 2], "sequence": [0, 1],
    })  # fmt: skip
    query = text("AB", 1)
    for slice_length in (None, 1):
        matcher = uc.IncrementalMatcher(query, table.schema, slice_length=slice_length)
        parts = [matcher.push(table.slice(0, 1)), matcher.push(table.slice(1)), matcher.close()]
        assert pa.Table.from_batches(parts).equals(uc.match(table, query))
        assert sum(part.num_rows for part in parts) == 1


@given(
    st.sampled_from(["AB", "ABA"]), st.integers(1, 9), sequences.traces(ordered=False), st.data(),
    st.sampled_from([None, 1, 40]),
)  # fmt: skip
def test_sequences_break_ties_in_a_stream(
    types: str, window: int, events: list[Event], data: st.DataObject, slice_length: int | None
) -> None:
    events = sorted(events, key=lambda event: event.lower)
    table = sequences.table_of(events).drop_columns("ordered")
    query = text(types, window)
    expected = sequences.as_rows(uc.match(table, query))
    middle = data.draw(st.integers(0, table.num_rows))
    matcher = uc.IncrementalMatcher(query, table.schema, slice_length=slice_length)
    parts = [matcher.push(part) for part in (table.slice(0, middle), table.slice(middle))]
    assert sequences.as_rows(pa.Table.from_batches([*parts, matcher.close()])) == expected
    batches = Batches(query, table.schema, StreamOptions(10, slice_length=slice_length, buckets=2))
    batches.take(table.slice(0, middle), table.slice(middle))
    batches.take(notice(table.schema, CLOSE))
    assert sequences.as_rows(batches.matches.select(matcher.plan.output_schema.names)) == expected
