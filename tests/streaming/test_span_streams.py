"""Streams of events that last: however they are cut, the matches are those of all worlds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cases.spans import Lasting, SpanCase, span_cases
from tests.streaming.batches import BUCKETS, Batches, notice
from tests.streaming.batches import plain as plain_columns
from uncertain_cep.plan import MatchOptions
from uncertain_cep.streaming.stream_layout import CLOSE, StreamOptions

pytestmark = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")


def _is_bound(case: SpanCase) -> bool:
    """Return whether the condition on what is negated says how far it can be from its match."""
    (condition,) = (one for one in case.conditions if "n" in one.variables)
    return any(word in condition.text for word in ("OVERLAPS", "CONTAINS", "DURING", " = "))


KINDS: dict[str, st.SearchStrategy[SpanCase]] = {
    "spans": span_cases(),
    "clocks": span_cases(with_clocks=True),
    "laws": span_cases(with_laws=True),
    "negations": span_cases(negating=True, kinds=("SEQ",)),
    "negated spans": span_cases(negating=True, negated_lasts=True, kinds=("SEQ",)),
    "negations by clocks": span_cases(with_clocks=True, negating=True, kinds=("SEQ",)),
    "beside a set": span_cases(negating=True, negated_lasts=True, kinds=("AND",)).filter(_is_bound),
    "laws beside a set, by clocks": span_cases(
        negating=True, negated_lasts=True, kinds=("AND",), with_clocks=True, with_laws=True
    ).filter(_is_bound),
}


def _pieces(data: st.DataObject, table: pa.Table) -> list[pa.Table]:
    """Cut events into calls, and some calls into events by themselves."""
    cuts = data.draw(st.lists(st.integers(0, table.num_rows), max_size=3).map(sorted), label="cuts")
    return [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_streams_are_the_worlds(kind: str, data: st.DataObject) -> None:
    """Events come in the order of their begins; a part of the matches comes before the end."""
    case = data.draw(KINDS[kind])
    note(f"{case.text()}\n{case.events}\n{case.clocks}")
    table = case.table().sort_by("lower")
    longest = pc.max(pc.subtract(table["upper"], table["lower"])).as_py()
    length = data.draw(st.sampled_from([None, 1, 3]), label="slice length")
    when = data.draw(st.sampled_from(["final", "certain"]), label="when") if "beside" in kind else "final"
    options: dict[str, Any] = {"largest_interval": longest, "slice_length": length, "when": when}
    matcher = uc.IncrementalMatcher(case.text(), table.schema, **options)
    rows: list[dict[str, Any]] = []
    for piece in _pieces(data, table):
        if data.draw(st.booleans(), label="one by one"):
            for event in piece.to_pylist():
                rows += matcher.push(event).to_pylist()
        else:
            rows += matcher.push(piece).to_pylist()
        if data.draw(st.booleans(), label="a snapshot"):
            held = matcher.snapshot()
            matcher = uc.IncrementalMatcher(case.text(), table.schema, **options)
            matcher.restore(held)
    rows += matcher.close().to_pylist()
    assert matcher.late_count == 0
    expected = case.answer()
    answers = {tuple(row[name] for name, _ in case.variables): row for row in rows}
    assert len(answers) == len(rows)
    assert answers.keys() == expected.keys()
    for key, (low, high, probability) in expected.items():
        assert (answers[key]["range_lower"], answers[key]["range_upper"]) == (low, high)
        assert answers[key]["confidence"] == pytest.approx(float(probability), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_batches_are_the_worlds(kind: str, data: st.DataObject) -> None:
    """As Spark evaluates them: pieces of slices, in parts of a state."""
    case = data.draw(KINDS[kind])
    note(f"{case.text()}\n{case.events}\n{case.clocks}")
    table = plain_columns(case.table().sort_by("lower"))
    longest = pc.max(pc.subtract(table["upper"], table["lower"])).as_py()
    every = data.draw(st.sampled_from([None, None, 3]), label="every")
    clause = "" if every is None else f"RETURN EXPECTED COUNT EVERY {every}"
    length = data.draw(st.sampled_from([None, 1, 3]), label="slice length")
    if length is not None:
        # Slices so short that an event would be in very many are refused.
        length += (case.window + longest) // 30
        length += -length % (every or 1)
    options = StreamOptions(longest, slice_length=length, buckets=data.draw(BUCKETS))
    batches = Batches(case.text(clause), table.schema, options, MatchOptions(takes_spans=True))
    for piece in _pieces(data, table):
        batches.take(piece)
    batches.take(notice(table.schema, CLOSE))
    assert (batches.counts["late"], batches.held) == (0, 0)
    rows = batches.matches.to_pylist()
    if every is not None:
        expected_counts = case.bucketed(every)
        assert {row["bucket"]: row["expected_count"] for row in rows} == {
            bucket: pytest.approx(float(count)) for bucket, count in expected_counts.items()
        }
        return
    expected = case.answer()
    answers = {tuple(row[name] for name, _ in case.variables): row for row in rows}
    assert len(answers) == len(rows)
    assert answers.keys() == expected.keys()
    for key, (low, high, probability) in expected.items():
        assert (answers[key]["range_lower"], answers[key]["range_upper"]) == (low, high)
        assert answers[key]["confidence"] == pytest.approx(float(probability), rel=1e-9)


def _tasks() -> pa.Table:
    """Return tasks of 3 ticks that begin 10 apart, by begin and length, without the columns of ends."""
    begins = range(0, 1000, 10)
    count = len(begins)
    return pa.table(
        {
            "type": ["T"] * count, "id": range(count), "lower": begins, "upper": [b + 4 for b in begins],
            "begin_lower": begins, "begin_upper": [b + 1 for b in begins], "length_lower": [3] * count,
            "length_upper": [3] * count,
        }
    )  # fmt: skip


def test_matches_come_before_the_end_and_state_stays_small() -> None:
    query = "PATTERN SEQ(T a, T b) WITHIN 15"
    tasks = _tasks()
    matcher = uc.IncrementalMatcher(query, tasks.schema, largest_interval=4, slice_length=1)
    early, largest = 0, 0
    for number in range(tasks.num_rows):
        early += matcher.push(tasks.slice(number, 1)).num_rows
        largest = max(largest, matcher.state_size)
    whole = uc.match(tasks, query)
    assert whole.num_rows == 99
    assert early >= 95
    assert largest <= 5
    assert early + matcher.close().num_rows == whole.num_rows


def test_rules_over_a_stream_take_them() -> None:
    query = "PATTERN SEQ(T a, T b) WITHIN 15"
    tasks = _tasks()
    rules = uc.rules({"soon": query, "long": "PATTERN SEQ(T a) WHERE DURATION(a) >= 3 WITHIN 15"})
    matcher = uc.RuleMatcher(rules, tasks.schema, largest_interval=4)
    alerts = [*matcher.push(tasks.slice(0, 50)).to_pylist(), *matcher.push(tasks.slice(50)).to_pylist()]
    alerts += matcher.close().to_pylist()
    assert sum(row["rule"] == "soon" for row in alerts) == 99
    assert sum(row["rule"] == "long" for row in alerts) == 100
    whole = uc.match(tasks, query)
    assert sorted(row["confidence"] for row in alerts if row["rule"] == "soon") == sorted(
        whole["confidence"].to_pylist()
    )


def test_late_events_keep_their_columns() -> None:
    tasks = _tasks()
    matcher = uc.IncrementalMatcher("PATTERN SEQ(T a, T b) WITHIN 15", tasks.schema, largest_interval=4)
    matcher.push(tasks.slice(50))
    matcher.push(tasks.slice(0, 1))
    assert matcher.late_count == 1
    assert matcher.late.schema.equals(tasks.schema)


@pytest.mark.parametrize(("lower", "upper", "column"), [(1, 4, "lower"), (0, 3, "upper")])
def test_bounds_of_the_whole_must_hold_begin_and_end(lower: int, upper: int, column: str) -> None:
    """Who cuts time by them would lose matches."""
    case = SpanCase((Lasting("A", 1, (0, 1), None, (3, 3)),), {}, "SEQ", (("a", "A"),))
    events = case.table()
    for name, value in (("lower", lower), ("upper", upper)):
        place = events.schema.get_field_index(name)
        events = events.set_column(place, name, pa.array([value], pa.int64()))
    matcher = uc.IncrementalMatcher(case.text(), events.schema)
    for call in (matcher.push, lambda table: uc.match(table, case.text())):
        with pytest.raises(uc.TraceError, match=f"row 1.*{column}"):
            call(events)


def test_methods_by_runs_are_refused() -> None:
    with pytest.raises(uc.OptionError, match="does not support events that last"):
        uc.IncrementalMatcher("PATTERN SEQ(T a, T b) WITHIN 5", _tasks().schema, evaluation="any_state")
