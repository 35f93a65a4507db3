"""RETURN PROBABILITY of streams: the rows of all buckets, or of all first events, are those of worlds."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.clocks import by_clocks
from tests.cases.existence import doubtful
from tests.cases.grouped import Grouping, assert_probabilities, groupings
from tests.cases.language import language_cases
from tests.cases.nested import nested_cases, reading_cases
from tests.cases.options import option_cases
from tests.cases.sampling import FEWER, sampled_from
from tests.cases.times import timed_cases
from tests.streaming.arrivals import arrivals, pushed
from tests.streaming.test_held_slices import streamed
from uncertain_cep.errors import ConfidenceCostError, OptionError
from uncertain_cep.testing.patterns import components

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "language": language_cases(most=4),
    "skip till next": language_cases("skip_till_next_match", most=5),
    "sets and branches": st.sampled_from(["SAO", "SA", "A"]).flatmap(lambda kinds: nested_cases(kinds, 4)),
    "readings": reading_cases(4),
    "options": option_cases(most=4),
    "times": timed_cases(most=4),
    "doubtful": doubtful(language_cases(most=4)),
    "clocks": by_clocks(language_cases(most=4)),
}


def streamable(data: st.DataObject, case: Any) -> Grouping:
    """Draw a grouping with EVERY, or by a first event."""
    grouping: Grouping = data.draw(groupings(case.query()))
    if grouping.every is not None or data.draw(st.booleans()):
        return replace(grouping, every=grouping.every or data.draw(sampled_from([1, 2, 3, 7, 100])))
    first = next((part for part in components(case.query().pattern) if not part.negated), None)
    assume(first is not None and not first.kleene and first.least > 0)
    assert first is not None
    return replace(grouping, by=(*case.query().partition, first.variable))


def stays_open(case: Any, text: str) -> bool:
    """Return whether a stream refuses a query by a first event, which another reading may not have."""
    try:
        uc.IncrementalMatcher(text, case.trace.table(with_pmf=True).schema)
    except OptionError as error:
        return "until the stream ends" in str(error)
    return False


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data(), length=st.sampled_from([None, 1, 2, 7, 1000]))
def test_a_matcher_returns_the_rows_of_worlds(kind: str, data: st.DataObject, length: int | None) -> None:
    case = data.draw(KINDS[kind])
    grouping = streamable(data, case)
    text = case.text(grouping.clause)
    note(f"{text}\n{case.trace.events}")
    stream = data.draw(arrivals(case.trace.events))
    if grouping.every is None and stays_open(case, text):
        return
    rows, matcher = pushed(stream, case.trace.types, text, slice_length=length)
    assert not matcher.late_count
    assert_probabilities(rows, grouping.answer(case), grouping)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "clocks"])
@FEWER
@given(data=st.data())
def test_batches_return_the_rows_of_worlds(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    grouping = streamable(data, case)
    text = case.text(grouping.clause)
    note(f"{text}\n{case.trace.events}")
    if grouping.every is None and stays_open(case, text):
        return
    rows = streamed(data, case.trace, text)
    assert_probabilities(
        rows.select([*grouping.by, *(["bucket"] if grouping.every else []), "probability"]),
        grouping.answer(case),
        grouping,
    )


SCHEMA = pa.schema([("type", pa.string()), ("id", pa.int64()), ("lower", pa.int64()), ("upper", pa.int64())])
PAIR = "PATTERN SEQ(A a, B b) WITHIN 10 RETURN PROBABILITY"


def test_a_bucket_comes_out_as_soon_as_it_is_final() -> None:
    """Bucket 0 has first times up to 9, and its matches end by 18."""
    matcher = uc.IncrementalMatcher(f"{PAIR} EVERY 10", SCHEMA, slice_length=1)
    events = {"type": ["A", "B", "A"], "id": [1, 2, 3], "lower": [1, 5, 9], "upper": [4, 5, 12]}
    assert not matcher.push(pa.table(events, schema=SCHEMA)).num_rows
    assert not matcher.heartbeat(18).num_rows
    assert matcher.heartbeat(19).to_pylist() == [{"bucket": 0, "probability": 1.0}]
    # The third one may still begin a match in the next bucket.
    assert matcher.state_size == 1
    last = {"type": ["B"], "id": [4], "lower": [20], "upper": [20]}
    assert not matcher.push(pa.table(last, schema=SCHEMA)).num_rows
    assert matcher.close().to_pylist() == [{"bucket": 10, "probability": 0.5}]


def test_a_first_event_comes_out_with_its_matches() -> None:
    matcher = uc.IncrementalMatcher(
        "PATTERN SEQ(A a, B b) WITHIN 10 HAVING PROBABILITY >= 0.5 RETURN PROBABILITY BY a",
        SCHEMA,
        slice_length=1,
    )
    events = {"type": ["A", "B", "B"], "id": [1, 2, 3], "lower": [1, 1, 1], "upper": [4, 4, 4]}
    assert not matcher.push(pa.table(events, schema=SCHEMA)).num_rows
    assert not matcher.heartbeat(13).num_rows
    (row,) = matcher.heartbeat(14).to_pylist()
    assert row["a"] == 1
    # Four equally likely times each: P(no B is later) is the mean of the squares of (1..4) / 4.
    assert row["probability"] == pytest.approx(1 - 30 / 64)
    assert not matcher.close().num_rows


@pytest.mark.parametrize("clause", ["", " BY b", " BY a.type", " OF AT LEAST 2 MATCHES"])
def test_groups_that_stay_open_are_refused(clause: str) -> None:
    with pytest.raises(OptionError, match=r"until the stream ends: add buckets, .* EVERY 1 hour, or BY a$"):
        uc.IncrementalMatcher(PAIR + clause, SCHEMA)


@pytest.mark.parametrize(
    ("pattern", "clause"),
    [("OR(SEQ(A a, B b), SEQ(C c, D d))", "BY a"), ("SEQ(A? a, B b)", "BY a"), ("SEQ(A+ a[], B b)", "BY b")],
)
def test_nulls_are_a_group_that_stays_open(pattern: str, clause: str) -> None:
    with pytest.raises(OptionError, match=r"EVERY 1 hour$"):
        uc.IncrementalMatcher(f"PATTERN {pattern} WITHIN 10 RETURN PROBABILITY {clause}", SCHEMA)


def test_a_snapshot_goes_on() -> None:
    text = f"{PAIR} EVERY 10"
    first, second = (uc.IncrementalMatcher(text, SCHEMA, slice_length=1) for _ in range(2))
    events = {"type": ["A", "B", "A"], "id": [1, 2, 3], "lower": [1, 5, 9], "upper": [4, 5, 12]}
    first.push(pa.table(events, schema=SCHEMA))
    first.heartbeat(19)
    second.restore(first.snapshot())
    last = pa.table({"type": ["B"], "id": [4], "lower": [20], "upper": [20]}, schema=SCHEMA)
    assert second.push(last).num_rows == first.push(last).num_rows == 0
    assert second.close().to_pylist() == first.close().to_pylist() == [{"bucket": 10, "probability": 0.5}]


@pytest.mark.compiled
def test_a_dense_stream_stops_with_its_error() -> None:
    """All events of a bucket are in reach of each other: its 45,168 matches tie, and it is soon given up."""
    draw = np.random.default_rng(1)
    lower = np.sort(draw.integers(0, 900, 300))
    kinds = draw.choice(["A", "B", "C"], 300).tolist()
    table = pa.table({"type": kinds, "id": range(300), "lower": lower, "upper": lower + 100})
    query = "PATTERN SEQ(A a, B b, C c) WITHIN 40 RETURN PROBABILITY EVERY 1000"
    seconds = []
    # The first one may compile kernels.
    for _ in range(2):
        matcher = uc.IncrementalMatcher(query, table.schema, largest_interval=100)
        began = time.process_time()
        matcher.push(table)
        with pytest.raises(ConfidenceCostError, match="bucket that begins at 0 takes more than"):
            matcher.close()
        seconds.append(time.process_time() - began)
        with pytest.raises(OptionError, match="an earlier call failed"):
            matcher.push(table)
    assert seconds[-1] < 2.0
