"""A stream gives the batch's answer, whatever the arrival order, the calls it comes in, the heartbeats."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace, cases
from tests.cases.comparison import assert_answer, assert_same, rows_of
from tests.cases.incremental import thresholds
from tests.cases.sampling import FEWER
from tests.cases.strategies import STRATEGIES, answer_of, text_of
from tests.oracle.outputs import having
from tests.streaming.arrivals import Stream, arrivals, pushed
from uncertain_cep.streaming.stream_methods import INCREMENTAL_EVALUATIONS
from uncertain_cep.testing.model import Event, Strategy

EVALUATIONS = st.sampled_from(INCREMENTAL_EVALUATIONS)


def streamed(
    case: Case, stream: Stream, evaluation: str, having: str = "", text: str | None = None
) -> tuple[pa.Table, pa.Table]:
    """Return the matches of a stream, and the late events."""
    text = text or case.text(having)
    matches, matcher = pushed(stream, case.trace.types, text, evaluation=evaluation)
    assert matcher.late_count == matcher.late.num_rows
    return matches, matcher.late


@STRATEGIES
@pytest.mark.parametrize("evaluation", INCREMENTAL_EVALUATIONS)
@FEWER
@given(case=cases(), data=st.data(), small=st.booleans())
def test_a_stream_is_the_oracle(
    evaluation: str, strategy: Strategy, case: Case, data: st.DataObject, small: bool
) -> None:
    note(case.script())
    stream = data.draw(arrivals(case.trace.events))
    with thresholds(small=small):
        matches, late = streamed(case, stream, evaluation, text=text_of(case, strategy))
    assert not late.num_rows
    assert_answer(rows_of(matches, case), answer_of(case, strategy))


@given(case=cases(), data=st.data(), evaluation=EVALUATIONS, small=st.booleans())
def test_late_events_are_handed_out_and_the_answer_is_that_of_the_others(
    case: Case, data: st.DataObject, evaluation: str, small: bool
) -> None:
    note(case.script())
    legal = data.draw(arrivals(case.trace.events))
    stream = replace(legal, events=tuple(data.draw(st.permutations(legal.events))))
    late = _late(stream)
    with thresholds(small=small):
        matches, handed_out = streamed(case, stream, evaluation)
    assert handed_out.column("id").to_pylist() == [event.id for event in late]
    on_time = replace(
        case, trace=replace(case.trace, events=tuple(e for e in stream.events if e not in late))
    )
    assert_answer(rows_of(matches, case), on_time.answer())


def _late(stream: Stream) -> list[Event]:
    """Return the events that break the promise, one by one as the definition has it."""
    late = []
    said: dict[str | None, float] = {}
    seen: list[Event] = []
    start = 0
    for cut, heartbeat in zip(stream.cuts, stream.heartbeats, strict=True):
        for event in stream.events[start:cut]:
            breaks = any(event.lower < said.get(of_type, -math.inf) for of_type in (None, event.type))
            if stream.largest is not None:
                for other in seen:
                    breaks = breaks or other.lower > event.upper
                    breaks = breaks or event.lower < other.lower - stream.largest
            if breaks:
                late.append(event)
            else:
                seen.append(event)
        start = cut
        if heartbeat is not None:
            time, of_type = heartbeat
            said[of_type] = max(said.get(of_type, time), time)
    return late


@given(case=cases(), data=st.data(), evaluation=EVALUATIONS)
def test_having_holds_for_streams(case: Case, data: st.DataObject, evaluation: str) -> None:
    note(case.script())
    uniform = tuple(replace(event, pmf=None) for event in case.trace.events)
    case = replace(case, trace=Trace(uniform, case.trace.types))
    stream = data.draw(arrivals(case.trace.events))
    matches, _ = streamed(case, stream, evaluation, "HAVING CONFIDENCE >= 25%")
    assert_answer(rows_of(matches, case), having(case.answer(), Fraction(1, 4)))


@given(case=cases(returns=True), data=st.data(), evaluation=EVALUATIONS, small=st.booleans())
def test_a_stream_returns_the_columns_of_the_batch(
    case: Case, data: st.DataObject, evaluation: str, small: bool
) -> None:
    note(case.script())
    batch = uc.match(case.trace.table(), case.text())
    stream = data.draw(arrivals(case.trace.events))
    with thresholds(small=small):
        matches, _ = streamed(case, stream, evaluation)
    assert matches.schema == batch.schema
    assert_same(rows_of(matches, case), rows_of(batch, case))
    keys = [*case.query().partition, *case.variables]
    aliases = [alias for alias, _ in case.returns]

    def returned(table: pa.Table) -> dict[tuple[object, ...], list[object]]:
        rows = table.to_pylist()
        return {tuple(row[key] for key in keys): [row[alias] for alias in aliases] for row in rows}

    assert returned(matches) == returned(batch)


@given(case=cases(), data=st.data(), evaluation=EVALUATIONS)
def test_single_events_as_mappings_and_no_confidence(
    case: Case, data: st.DataObject, evaluation: str
) -> None:
    note(case.script())
    stream = data.draw(arrivals(case.trace.events))
    has_pmf = any(event.pmf is not None for event in case.trace.events)
    table = Trace(stream.events, case.trace.types).table(with_pmf=has_pmf)
    matcher = uc.IncrementalMatcher(
        case.text(), table.schema, evaluation=evaluation, confidence=False, largest_interval=stream.largest
    )
    rows = [matcher.push(row) for row in table.to_pylist()]
    matches = pa.Table.from_batches([*rows, matcher.close()])
    assert "confidence" not in matches.column_names
    assert_same(rows_of(matches, case), rows_of(uc.match(table, case.text(), confidence=False), case))
