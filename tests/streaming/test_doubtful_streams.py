"""Streams of events that may not have happened: the answer of the oracle by every method."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace, cases
from tests.cases.comparison import assert_answer, rows_of
from tests.cases.existence import doubtful
from tests.cases.language import STRATEGIES, LanguageCase, language_cases
from tests.cases.sampling import sampled_from
from tests.cases.strategies import answer_of, text_of
from tests.streaming import test_held_slices as held
from tests.streaming.arrivals import arrivals, pushed
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.streaming.stream_methods import INCREMENTAL_EVALUATIONS
from uncertain_cep.testing.model import Strategy

SCHEMA = pa.schema(
    [("type", pa.string()), ("id", pa.int64()), ("lower", pa.int64()), ("upper", pa.int64()),
     ("probability", pa.float64())]
)  # fmt: skip
NEXT = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 20"


def streamed(data: st.DataObject, trace: Trace, text: str, evaluation: str) -> pa.Table:
    """Return the matches of a trace whose events come in some way within the promise."""
    return pushed(data.draw(arrivals(trace.events)), trace.types, text, evaluation=evaluation)[0]


@given(doubtful(cases()), st.data(), sampled_from(INCREMENTAL_EVALUATIONS), sampled_from(STRATEGIES[:2]))
def test_sequences(case: Case, data: st.DataObject, evaluation: str, strategy: Strategy) -> None:
    note(case.script())
    if strategy == "skip_till_next_match" and "probability" in case.trace.table().column_names:
        evaluation = data.draw(st.sampled_from(["auto", "sliced", "point"]))
    matches = streamed(data, case.trace, text_of(case, strategy), evaluation)
    assert_answer(rows_of(matches, case), answer_of(case, strategy))


@given(doubtful(language_cases()), st.data(), sampled_from(["auto", "point"]))
def test_language(case: LanguageCase, data: st.DataObject, evaluation: str) -> None:
    note(case.text())
    assert_answer(case.rows(streamed(data, case.trace, case.text(), evaluation)), case.answer())


@given(doubtful(language_cases()), st.data())
def test_batches_of_a_held_stream(case: LanguageCase, data: st.DataObject) -> None:
    note(case.text())
    assert_answer(case.rows(held.streamed(data, case.trace, case.text())), case.answer())


def test_one_event_at_a_time() -> None:
    matcher = uc.IncrementalMatcher(NEXT, SCHEMA, largest_interval=5)
    events = [("A", 0, 0, 0, 0.5), ("B", 2, 1, 6, 0.5), ("B", 1, 10, 10, None)]
    rows = [
        row
        for event in events
        for row in matcher.push(dict(zip(SCHEMA.names, event, strict=True))).to_pylist()
    ]
    rows += matcher.close().to_pylist()
    assert {row["b"]: row["confidence"] for row in rows} == pytest.approx({1: 0.25, 2: 0.25})


@pytest.mark.parametrize("evaluation", ["any_state", "selectivity", "query_order"])
def test_runs_are_refused_where_what_is_next_may_not_have_happened(evaluation: str) -> None:
    with pytest.raises(OptionError, match="events that may not have happened under skip_till_next_match"):
        uc.IncrementalMatcher(NEXT, SCHEMA, evaluation=evaluation)
    uc.IncrementalMatcher(NEXT, SCHEMA.remove(4), evaluation=evaluation)


def test_what_is_no_probability_is_not_taken() -> None:
    matcher = uc.IncrementalMatcher(NEXT, SCHEMA, largest_interval=5)
    with pytest.raises(TraceError, match="a number from 0 to 1"):
        matcher.push(dict(zip(SCHEMA.names, ("A", 0, 0, 0, 1.5), strict=True)))
    matcher.push(dict(zip(SCHEMA.names, ("A", 0, 0, 0, 1.0), strict=True)))
    matcher.push(dict(zip(SCHEMA.names, ("B", 1, 3, 3, 0.75), strict=True)))
    assert matcher.close()["confidence"].to_pylist() == [0.75]
