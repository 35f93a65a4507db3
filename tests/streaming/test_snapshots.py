"""A matcher that goes on from a snapshot returns what the one would have that it was taken of."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace, cases
from tests.cases.comparison import assert_answer, rows_of
from tests.cases.language import LanguageCase, language_cases
from tests.cases.sampling import FEWER
from tests.cases.strategies import answer_of, text_of
from tests.streaming.arrivals import arrivals
from uncertain_cep.errors import OptionError
from uncertain_cep.streaming.stream_methods import INCREMENTAL_EVALUATIONS
from uncertain_cep.testing.model import Strategy

STRATEGIES: tuple[Strategy, ...] = ("skip_till_any_match", "skip_till_next_match")
PAIR = "PATTERN SEQ(A a, B b) WITHIN 10"
SCHEMA = pa.schema([("type", pa.string()), ("id", pa.int64()), ("lower", pa.int64()), ("upper", pa.int64())])


def resumed(data: st.DataObject, trace: Trace, text: str, evaluation: str) -> pa.Table:
    """Return the matches of a stream that goes to another matcher between some of its calls."""
    stream = data.draw(arrivals(trace.events))
    has_pmf = any(event.pmf is not None for event in trace.events)
    table = Trace(stream.events, trace.types).table(with_pmf=has_pmf)

    def made() -> uc.IncrementalMatcher:
        return uc.IncrementalMatcher(
            text, table.schema, evaluation=evaluation, largest_interval=stream.largest
        )

    matcher = made()
    batches = []
    start = 0
    for cut, heartbeat in zip(stream.cuts, stream.heartbeats, strict=True):
        batches.append(matcher.push(table.slice(start, cut - start)))
        start = cut
        if data.draw(st.booleans()):
            snapshot = matcher.snapshot()
            if data.draw(st.booleans()):
                # What the first one does later is nothing to the other one.
                matcher.close()
            matcher = made()
            matcher.restore(snapshot)
        if heartbeat is not None:
            batches.append(matcher.heartbeat(heartbeat[0], of_type=heartbeat[1]))
    batches.append(matcher.close())
    assert not matcher.late_count
    return pa.Table.from_batches(batches)


@pytest.mark.parametrize("evaluation", INCREMENTAL_EVALUATIONS)
@FEWER
@given(
    case=cases(), data=st.data(), strategy=st.sampled_from(["skip_till_any_match", "skip_till_next_match"])
)
def test_sequences(evaluation: str, case: Case, data: st.DataObject, strategy: Strategy) -> None:
    note(case.script())
    matches = resumed(data, case.trace, text_of(case, strategy), evaluation)
    assert_answer(rows_of(matches, case), answer_of(case, strategy))


@given(case=language_cases(), data=st.data())
def test_any_linear_pattern(case: LanguageCase, data: st.DataObject) -> None:
    note(case.text())
    assert_answer(case.rows(resumed(data, case.trace, case.text(), "sliced")), case.answer())


def test_late_events_are_held_as_well() -> None:
    first = uc.IncrementalMatcher(PAIR, SCHEMA, largest_interval=0)
    for tick in (9, 3):
        first.push({"type": "A", "id": tick, "lower": tick, "upper": tick})
    other = uc.IncrementalMatcher(PAIR, SCHEMA, largest_interval=0)
    other.restore(first.snapshot())
    assert (other.late_count, other.safe) == (1, 9)
    assert other.take_late().column("id").to_pylist() == [3]
    with pytest.raises(uc.TraceError, match="an earlier event has this id"):
        other.push({"type": "A", "id": 9, "lower": 10, "upper": 10})


def test_snapshots_of_something_else_are_refused() -> None:
    snapshot = uc.IncrementalMatcher(PAIR, SCHEMA).snapshot()
    other = uc.IncrementalMatcher(PAIR.replace("10", "9"), SCHEMA, largest_interval=4)
    with pytest.raises(OptionError, match=r"largest_interval was None and is 4; query was .* WITHIN 10'"):
        other.restore(snapshot)
    query = f"{PAIR} HAVING CONFIDENCE >= $least"
    blob = uc.IncrementalMatcher(query, SCHEMA, parameters={"least": 0.5}).snapshot()
    with pytest.raises(OptionError, match=r"query was .*\$least = 0.5' and is .*\$least = 0.75'"):
        uc.IncrementalMatcher(query, SCHEMA, parameters={"least": 0.75}).restore(blob)
    matcher = uc.IncrementalMatcher(PAIR, SCHEMA)
    for wrong, message in (
        (b"", "no snapshot"),
        (None, "no snapshot"),
        (snapshot[:-9], "cut off or changed"),
    ):
        with pytest.raises(OptionError, match=message):
            matcher.restore(wrong)  # type: ignore[arg-type]
    matcher.close()
    with pytest.raises(OptionError, match="the stream was closed"):
        matcher.snapshot()
    with pytest.raises(OptionError, match="the stream was closed"):
        matcher.restore(snapshot)


def test_a_snapshot_has_no_room_for_matches_to_come() -> None:
    """It took 2.3 MB, and that of 50 rules 73 MB each ten seconds."""
    matcher = uc.IncrementalMatcher(PAIR, SCHEMA, largest_interval=5)
    matcher.push({"type": "A", "id": 1, "lower": 0, "upper": 3})
    snapshot = matcher.snapshot()
    assert len(snapshot) < 200_000
    other = uc.IncrementalMatcher(PAIR, SCHEMA, largest_interval=5)
    other.restore(snapshot)
    rows = other.push({"type": "B", "id": 2, "lower": 4, "upper": 5}).to_pylist()
    assert [(row["a"], row["b"]) for row in rows] == [(1, 2)]
