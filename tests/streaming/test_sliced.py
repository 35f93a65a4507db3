"""Streams evaluated slice by slice give the oracle's answer, whatever the construct, order and slices."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace, cases
from tests.cases.comparison import assert_answer, rows_of
from tests.cases.incremental import thresholds
from tests.cases.language import STRATEGIES as ALL_STRATEGIES
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from tests.cases.sampling import FEWER
from tests.cases.strategies import STRATEGIES, answer_of, text_of
from tests.cases.times import timed_cases, timed_sequences
from tests.streaming.arrivals import Stream, arrivals, pushed
from uncertain_cep.testing.model import Event, Strategy

_LENGTHS = st.sampled_from([None, 1, 1, 2, 3, 7, 1000])


def streamed(
    trace: Trace, stream: Stream, text: str, slice_length: int | None, evaluation: str = "sliced"
) -> pa.Table:
    """Return the output of a matcher for a stream that is evaluated slice by slice."""
    matches, matcher = pushed(stream, trace.types, text, evaluation=evaluation, slice_length=slice_length)
    assert not matcher.late_count
    return matches


@STRATEGIES
@FEWER
@given(case=cases(), data=st.data(), length=_LENGTHS, small=st.booleans())
def test_sequences(
    strategy: Strategy, case: Case, data: st.DataObject, length: int | None, small: bool
) -> None:
    note(case.script())
    stream = data.draw(arrivals(case.trace.events))
    with thresholds(small=small):
        matches = streamed(case.trace, stream, text_of(case, strategy), length)
    assert_answer(rows_of(matches, case), answer_of(case, strategy))


@pytest.mark.parametrize("strategy", ALL_STRATEGIES)
@FEWER
@given(data=st.data(), length=_LENGTHS, small=st.booleans())
def test_kleene_negation_and_contiguity(
    strategy: Strategy, data: st.DataObject, length: int | None, small: bool
) -> None:
    case: LanguageCase = data.draw(language_cases(strategy))
    note(case.text())
    stream = data.draw(arrivals(case.trace.events))
    with thresholds(small=small):
        matches = streamed(case.trace, stream, case.text(), length)
    assert_answer(case.rows(matches), case.answer())


@given(case=timed_cases(), data=st.data(), length=_LENGTHS, small=st.booleans())
def test_conditions_on_times(
    case: LanguageCase, data: st.DataObject, length: int | None, small: bool
) -> None:
    note(case.text())
    stream = data.draw(arrivals(case.trace.events))
    with thresholds(small=small):
        matches = streamed(case.trace, stream, case.text(), length)
    assert_answer(case.rows(matches), case.answer())


@pytest.mark.parametrize("evaluation", ["any_state", "selectivity", "query_order"])
@FEWER
@given(case=timed_sequences(), data=st.data())
def test_runs_take_conditions_on_times(evaluation: str, case: LanguageCase, data: st.DataObject) -> None:
    if case.strategy != "skip_till_any_match":
        with pytest.raises(uc.OptionError, match=r"conditions on times, TIME\(...\), under skip_till_next"):
            uc.IncrementalMatcher(case.text(), case.trace.table().schema, evaluation=evaluation)
        return
    note(case.text())
    stream = data.draw(arrivals(case.trace.events))
    matches = streamed(case.trace, stream, case.text(), None, evaluation)
    assert_answer(case.rows(matches), case.answer())


@given(case=nested_cases("OAS"), data=st.data(), length=_LENGTHS, small=st.booleans())
def test_sets_and_branches(case: NestedCase, data: st.DataObject, length: int | None, small: bool) -> None:
    note(case.text())
    stream = data.draw(arrivals(case.trace.events))
    with thresholds(small=small):
        matches = streamed(case.trace, stream, case.text(), length)
    assert_answer(case.rows(matches), case.answer())


@given(case=language_cases(), data=st.data())
def test_a_match_comes_out_as_soon_as_it_is_final(case: LanguageCase, data: st.DataObject) -> None:
    """With slices of one tick, all that was returned is the answer of what can no longer be in reach."""
    note(case.text())
    ordered = sorted(case.trace.events, key=lambda event: event.lower)
    trace = Trace(tuple(ordered), case.trace.types)
    table = trace.table(with_pmf=True)
    matcher = uc.IncrementalMatcher(case.text(), table.schema, evaluation="sliced", slice_length=1)
    bound = data.draw(st.integers(-2, 12))
    past_events = [event for event in ordered if event.lower < bound]
    pushed = matcher.push(table.slice(0, len(past_events)))
    rows = [row for batch in (pushed, matcher.heartbeat(bound)) for row in batch.to_pylist()]
    if case.components[0].negated or case.components[0].kleene:
        return
    expected = [
        match
        for match in replace(case, trace=trace).answer()
        if _event(ordered, case, match.partition, match.signature[0][1]).upper + case.window - 1 < bound
    ]
    assert len(rows) == len(expected)


def _event(events: list[Event], case: LanguageCase, partition: tuple[object, ...], id: object) -> Event:
    names = case.query().partition
    (event,) = [
        event for event in events if event.id == id and tuple(event[name] for name in names) == partition
    ]
    return event


@pytest.mark.parametrize(
    "pattern", ["SEQ(Order a, !Paid n)", "OR(SEQ(Paid p, Order q), SEQ(Order a, !Paid n))"]
)
def test_an_absence_is_told_when_it_is_certain(pattern: str) -> None:
    """An order at 7, not paid within 3,600 ticks: the last tick of its window is 3,606."""
    schema = pa.schema({"type": pa.string(), **dict.fromkeys(("id", "lower", "upper", "k"), pa.int64())})
    query = f"PATTERN {pattern} WHERE [k] WITHIN 3600"
    matcher = uc.IncrementalMatcher(query, schema, largest_interval=0)
    for order in range(3):
        matcher.push({"type": "Order", "id": order, "lower": 7 * order, "upper": 7 * order, "k": order})
    matcher.push({"type": "Paid", "id": 9, "lower": 20, "upper": 20, "k": 2})
    alerts = {tick: rows for tick in range(21, 7_300) if (rows := matcher.heartbeat(tick).num_rows)}
    assert alerts == {3_600: 1, 3_607: 1}
    assert matcher.close().num_rows == 0
