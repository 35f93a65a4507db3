"""A stream in batches has the oracle's answer, whatever is in which batch, partition, slice and part."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.config import EVER
from tests.cases.cases import Case, Trace, cases
from tests.cases.comparison import assert_answer, rows_of
from tests.cases.language import STRATEGIES as ALL_STRATEGIES
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases, reading_cases
from tests.cases.options import timed_option_cases
from tests.cases.sampling import FEWER, sampled_from
from tests.cases.strategies import STRATEGIES, answer_of, text_of
from tests.results.test_counts_and_overlaps import assert_counts, clause_of, disjoint_cases, groups
from tests.streaming.arrivals import Stream, arrivals
from tests.streaming.batches import BUCKETS, SLICE_LENGTHS, Batches, notice, plain
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.plan import MatchOptions
from uncertain_cep.query import branches
from uncertain_cep.streaming.stream_layout import CLOSE, HEARTBEAT, StreamOptions
from uncertain_cep.testing.model import Event, Strategy
from uncertain_cep.testing.patterns import components

SCHEMA = pa.schema([("type", pa.string()), ("id", pa.int64()), ("lower", pa.int64()), ("upper", pa.int64())])
PAIR = "PATTERN SEQ(A a, B b) WITHIN 10"


def events(*rows: tuple[str, int, int, int]) -> pa.Table:
    """Return a table of types, ids and bounds."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def streamed(data: st.DataObject, trace: Trace, text: str, kleene: str = "matches") -> pa.Table:
    """Return the matches of a trace that arrives in some way within the promise."""
    arrival: Stream = data.draw(arrivals(trace.events))
    has_pmf = any(event.pmf is not None for event in trace.events)
    table = plain(Trace(arrival.events, trace.types).table(with_pmf=has_pmf))
    longest = max((event.upper - event.lower for event in trace.events), default=0)
    largest = longest if arrival.largest is None else arrival.largest
    length = data.draw(SLICE_LENGTHS)
    if length is not None:
        # Slices so short that an event would be in very many are refused.
        window = uc.parse(text).window
        assert window is not None
        length += int(max(largest, window.amount)) // 30
    options = StreamOptions(largest, slice_length=length, buckets=data.draw(BUCKETS))
    batches = Batches(text, table.schema, options, MatchOptions(kleene=kleene))
    start = 0
    # Without the promise nothing but the end and heartbeats may follow on a batch.
    cuts = arrival.cuts if arrival.largest is not None else arrival.cuts[-1:]
    for cut, heartbeat in zip(cuts, arrival.heartbeats, strict=False):
        middle = data.draw(st.integers(start, cut))
        parts = [table.slice(start, middle - start), table.slice(middle, cut - middle)]
        if heartbeat is not None and arrival.largest is not None:
            time, of_type = heartbeat
            parts.append(notice(table.schema, HEARTBEAT + (f":{of_type}" if of_type else ""), time))
        batches.take(*parts)
        start = cut
    batches.take(notice(table.schema, CLOSE))
    assert batches.counts["late"] == 0
    assert batches.counts["events"] == table.num_rows
    assert batches.counts["matches"] == batches.matches.num_rows
    assert batches.held == 0
    return batches.matches


@STRATEGIES
@FEWER
@given(case=cases(), data=st.data())
def test_sequences(strategy: Strategy, case: Case, data: st.DataObject) -> None:
    note(case.script())
    matches = streamed(data, case.trace, text_of(case, strategy))
    assert_answer(rows_of(matches, case), answer_of(case, strategy))


@pytest.mark.parametrize("strategy", ALL_STRATEGIES)
@FEWER
@given(data=st.data())
def test_kleene_negation_and_contiguity(strategy: Strategy, data: st.DataObject) -> None:
    case: LanguageCase = data.draw(language_cases(strategy))
    note(case.text())
    assert_answer(case.rows(streamed(data, case.trace, case.text())), case.answer())


@given(case=st.one_of(nested_cases("OAS"), reading_cases()), data=st.data())
def test_sets_branches_and_readings(case: NestedCase, data: st.DataObject) -> None:
    note(case.text())
    assert_answer(case.rows(streamed(data, case.trace, case.text())), case.answer())


@FEWER
@given(case=timed_option_cases(most=4), data=st.data(), planned=st.sampled_from([2, 256]))
def test_options(case: NestedCase, data: st.DataObject, planned: int) -> None:
    note(case.text())
    with patch.object(branches, "MOST_BRANCHES", planned):
        matches = streamed(data, case.trace, case.text())
    assert_answer(case.rows(matches), case.answer())


@given(data=st.data(), case=st.one_of(cases(), language_cases()))
def test_lateness_is_judged_by_what_held_when_the_batch_began(
    data: st.DataObject, case: Case | LanguageCase
) -> None:
    """Read off its definition (SEMANTICS 8); the answer is that of the other events."""
    arrived = list(data.draw(st.permutations(case.trace.events)))
    longest = max((event.upper - event.lower for event in arrived), default=0)
    largest = data.draw(st.sampled_from([0, max(longest - 1, 0), longest, longest + 1]))
    has_pmf = any(event.pmf is not None for event in arrived)
    table = plain(Trace(tuple(arrived), case.trace.types).table(with_pmf=has_pmf))
    batches = Batches(case.text(), table.schema, StreamOptions(largest, buckets=data.draw(BUCKETS)))
    cuts = data.draw(st.sets(st.integers(1, max(len(arrived), 1)), max_size=4)) | {len(arrived)}
    late: list[Event] = []
    kept: list[Event] = []
    said: list[tuple[int, str | None]] = []
    start = 0
    for cut in sorted(cuts):
        arrived_now, start = arrived[start:cut], cut
        beats = data.draw(
            st.lists(st.tuples(st.integers(-2, 12), st.sampled_from([None, "A", "B"])), max_size=1)
        )
        notices = [
            notice(table.schema, HEARTBEAT + (f":{name}" if name else ""), time) for time, name in beats
        ]
        batches.take(table.slice(cut - len(arrived_now), len(arrived_now)), *notices)
        broken = [event for event in arrived_now if _is_late(event, largest, kept, said)]
        late += broken
        kept += [event for event in arrived_now if event not in broken]
        said += beats
    batches.take(notice(table.schema, CLOSE))
    late_rows = (
        batches.rows("late").select(["late_type", "late_id", "range_lower", "range_upper"]).to_pylist()
    )
    expected = [(event.type, event.id, event.lower, event.upper) for event in late]
    assert sorted(map(repr, (tuple(row.values()) for row in late_rows))) == sorted(map(repr, expected))
    assert batches.counts["late"] == len(late)
    answer = replace(case, trace=replace(case.trace, events=tuple(kept))).answer()
    matches = batches.matches
    assert_answer(rows_of(matches, case) if isinstance(case, Case) else case.rows(matches), answer)
    assert batches.held == 0


def _is_late(event: Event, largest: int, kept: list[Event], said: list[tuple[int, str | None]]) -> bool:
    if event.upper - event.lower > largest:
        return True
    if any(event.lower < time and of_type in (None, event.type) for time, of_type in said):
        return True
    return any(event.upper < e.lower or event.lower < e.lower - largest for e in kept)


@given(
    case=st.one_of(cases(max_components=3), disjoint_cases()), data=st.data(), every=sampled_from([1, 2, 7])
)
def test_counts_come_out_by_bucket(case: Case, data: st.DataObject, every: int) -> None:
    by = data.draw(groups(case))
    text = case.text("", clause_of(by, every))
    note(text)
    assert_counts(streamed(data, case.trace, text), case.answer(), case, by, every)


def test_a_match_waits_for_its_slice_only() -> None:
    batches = Batches(PAIR, SCHEMA, StreamOptions(2, slice_length=10, buckets=3))
    batches.take(events(("A", 1, 0, 1), ("B", 2, 4, 5)))
    batches.take(events(("C", 3, 12, 12)))
    assert batches.matches.num_rows == 0
    # Its event ends at 1, and a match reaches over nine ticks more; all that comes begins at 11 or later.
    batches.take(events(("C", 4, 13, 13)))
    assert batches.matches.to_pylist() == [
        {"a": 1, "b": 2, "range_lower": 0, "range_upper": 5, "confidence": 1.0}
    ]


def test_an_idle_stream_moves_on_with_the_clock_on_the_wall() -> None:
    options = StreamOptions(0, idle_after="5ms", slice_length=10)
    batches = Batches(PAIR, SCHEMA, options, MatchOptions(tick="1ms"))
    batches.take(events(("A", 1, 0, 0), ("B", 2, 4, 4)))
    batches.idle()
    assert batches.matches.num_rows == 0
    batches.idle()
    assert batches.matches.num_rows == 1
    batches.take(events(("B", 3, 13, 13), ("B", 4, 14, 14)))
    assert batches.rows("late").column("late_id").to_pylist() == [3]


def test_a_stream_that_has_not_begun_does_not_move() -> None:
    batches = Batches(PAIR, SCHEMA, StreamOptions(0, idle_after="5ms"), MatchOptions(tick="1ms"))
    batches.take(notice(SCHEMA, HEARTBEAT + ":A", 3))
    batches.idle()
    batches.take(events(("B", 3, -9, -9)))
    assert batches.counts["late"] == 0


def test_times_are_rounded_to_milliseconds() -> None:
    schema = SCHEMA.set(2, pa.field("lower", pa.timestamp("us"))).set(
        3, pa.field("upper", pa.timestamp("us"))
    )

    def at(id: int, microsecond: int) -> pa.Table:
        row = {"type": "A", "id": id, "lower": microsecond, "upper": microsecond}
        return pa.Table.from_pylist([row], schema=SCHEMA).cast(schema)

    batches = Batches("PATTERN SEQ(A a, B b) WITHIN 1 s", schema, StreamOptions("1 ms"))
    batches.take(at(1, 5900))
    batches.take(at(2, 5000), at(3, 4999))
    assert batches.rows("late").column("late_id").to_pylist() == [3]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_ids_used_twice(cut: int) -> None:
    twice = events(("A", 1, 0, 1), ("B", 2, 4, 5), ("B", 2, 4, 5))
    dropping = Batches(PAIR, SCHEMA, StreamOptions(5, duplicates="drop", slice_length=3, buckets=2))
    refusing = Batches(PAIR, SCHEMA, StreamOptions(5, slice_length=3))
    for batches in (dropping, refusing):
        batches.take(twice.slice(0, cut))
        batches.take(twice.slice(cut))
    dropping.take(notice(SCHEMA, CLOSE))
    assert dropping.matches.num_rows == 1
    assert dropping.counts["duplicates"] == 1
    with pytest.raises(TraceError, match="column 'id', value 2: an earlier event has this id"):
        refusing.take(notice(SCHEMA, CLOSE))
    other = Batches(PAIR, SCHEMA, StreamOptions(5, duplicates="drop"))
    other.take(events(("A", 1, 0, 1), ("B", 2, 4, 5), ("B", 2, 4, 6)))
    with pytest.raises(TraceError, match="id"):
        other.take(notice(SCHEMA, CLOSE))


def test_state_of_another_stream_is_refused() -> None:
    batches = Batches(PAIR, SCHEMA, StreamOptions(5, buckets=2))
    batches.take(events(("A", 1, 0, 1)))
    for text, options, message in (
        (PAIR.replace("10", "11"), StreamOptions(5, buckets=2), "query was .*WITHIN 10' and is .*WITHIN 11'"),
        (PAIR, StreamOptions(6, buckets=2), "largest_interval was 5 and is 6; slice_length was"),
        (PAIR, StreamOptions(5, buckets=3), "buckets was 2 and is 3"),
    ):
        changed = Batches(text, SCHEMA, options)
        changed.parts = batches.parts
        with pytest.raises(OptionError, match=message):
            changed.take(events(("A", 2, 0, 1)))


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        (f"{PAIR} ORDER BY CONFIDENCE DESC", {}, "ORDER BY and LIMIT choose among all"),
        (f"{PAIR} LIMIT 3", {}, "ORDER BY and LIMIT choose among all"),
        (f"{PAIR} OUTPUT NON OVERLAPPING", {}, "NON OVERLAPPING needs all matches"),
        (f"{PAIR} RETURN EXPECTED COUNT", {}, "EVERY 1 hour"),
        (PAIR, {"largest_interval": None}, "a stream needs largest_interval="),
        (PAIR, {"largest_interval": -1}, "it must be 0 or more whole ticks"),
        (PAIR, {"largest_interval": "5 s"}, "plain ticks of unknown length"),
        (PAIR, {"largest_interval": "soon"}, "is not a length of time"),
        (PAIR, {"idle_after": "5 s"}, "idle_after='5 s': the times of this stream are plain ticks"),
        (PAIR, {"idle_after": "0 s"}, "idle_after must be longer than 0"),
        (PAIR, {"duplicates": "keep"}, "duplicates='keep' is unknown"),
        (PAIR, {"slice_length": 0}, "slice_length=0: it must be a whole number, at least 1"),
        (PAIR, {"buckets": True}, "buckets=True"),
        (PAIR, {"metrics": ""}, "metrics='': it must be a name"),
        (PAIR.replace("10", "1000"), {"slice_length": 1}, "each event would be kept in up to 1,0"),
        ("PATTERN SEQ(A kind, B late_id) WITHIN 10", {}, "kind, late_id: the rows of a stream have columns"),
    ],
)
def test_what_a_stream_cannot_do(text: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        _ = Batches(text, SCHEMA, StreamOptions(**({"largest_interval": 5} | options))).layout.output_schema


def test_events_that_are_none_are_refused() -> None:
    batches = Batches(PAIR, SCHEMA, StreamOptions(5))
    for wrong in (events(("A", 1, 3, 2)), notice(SCHEMA, HEARTBEAT), notice(SCHEMA, "A", 3)):
        with pytest.raises(TraceError):
            batches.take(wrong)
    ticked = pa.schema([*SCHEMA, pa.field("tick", pa.string())])
    row = {"type": "A", "id": 1, "lower": 1, "upper": 2, "tick": "2ms"}
    with pytest.raises(TraceError, match='give tick="2ms"'):
        Batches(PAIR, ticked, StreamOptions(5), MatchOptions(tick="1ms")).take(
            pa.Table.from_pylist([row], schema=ticked)
        )


COMPONENTS = {
    "PATTERN SEQ(A a, B b) WITHIN 5": "AB",
    "PATTERN SEQ(A a, !N n, B b) WHERE [key] WITHIN 5": "AB",
    "PATTERN OR(SEQ(A a, B b), SEQ(C c, B d)) WHERE [key] WITHIN 4": "ABC",
}
"""The types of the events whose ids are used once, in the third and the second with the same key."""


@pytest.mark.parametrize("text", COMPONENTS)
@FEWER
@given(data=st.data())
def test_ids_are_unique_over_all_that_is_held(text: str, data: st.DataObject) -> None:
    row = st.tuples(
        sampled_from(["A", "B", "C", "N"]),
        st.integers(0, 5),
        st.integers(0, 9),
        st.integers(0, 2),
        sampled_from([None, 1, 2]),
    )
    drawn_rows = data.draw(st.lists(row, min_size=2, max_size=9))
    rows: list[dict[str, Any]] = []
    for of_type, id, gap, length, key in drawn_rows:
        lower = gap + (rows[-1]["lower"] if rows else 0)
        rows.append({"type": of_type, "id": id, "lower": lower, "upper": lower + length, "key": key})
    if data.draw(st.booleans()):
        for row_ in rows:
            row_["id"] = f"é{row_['id']}"
    table = pa.Table.from_pylist(rows)
    table = table.set_column(4, "key", table.column("key").cast(pa.int64()))
    drops = data.draw(st.booleans())
    options = StreamOptions(
        2,
        duplicates="drop" if drops else "error",
        slice_length=data.draw(SLICE_LENGTHS),
        buckets=data.draw(BUCKETS),
    )
    batches = Batches(text, table.schema, options)
    layout = batches.layout
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows) - 1), max_size=4)))
    bounds = {}
    message = None
    try:
        for start, stop in pairwise([0, *cuts, len(rows)]):
            for number in range(start, stop):
                bounds[number] = batches.bound
            batches.take(table.slice(start, stop - start))
        batches.take(notice(table.schema, CLOSE))
    except TraceError as error:
        message = str(error)
    pairs = [(first, second) for second in range(len(rows)) for first in range(second)]
    twice = [
        (first, second)
        for first, second in pairs
        if rows[first]["id"] == rows[second]["id"]
        and {rows[first]["type"], rows[second]["type"]} <= set(COMPONENTS[text])
        and ("[key]" not in text or rows[first]["key"] == rows[second]["key"] is not None)
        and not (drops and rows[first] == rows[second])
    ]
    # The first one is in the slice that it begins in at least.
    together = [
        (first, second)
        for first, second in twice
        if bounds.get(second, -EVER) < (rows[first]["lower"] // layout.length + 1) * layout.length
    ]
    if together:
        assert message is not None
    if message is not None:
        assert twice
        assert "has this id" in message
    else:
        assert batches.held == 0


def test_counts_of_sets_whose_first_event_is_any_of_them() -> None:
    """A match of a set is in the bucket of its earliest event, here not that of the first variable."""
    table = events(("A", 1, 12, 14), ("B", 2, 5, 6))
    query = "PATTERN AND(A a, B b) WITHIN 20 RETURN EXPECTED COUNT EVERY 10"
    batches = Batches(query, SCHEMA, StreamOptions(5, slice_length=10, buckets=1), MatchOptions())
    batches.take(table)
    batches.take(notice(SCHEMA, CLOSE))
    assert (
        batches.matches.select(["bucket", "expected_count"]).to_pylist() == uc.match(table, query).to_pylist()
    )
    assert uc.match(table, query).to_pylist() == [{"bucket": 0, "expected_count": 1.0}]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), min_size=1, max_size=5),
    st.integers(2, 12),
    st.none() | st.integers(1, 40),
    st.booleans(),
)
def test_an_absence_is_told_by_the_batch_that_decides_it(
    orders: list[tuple[int, int]], window: int, length: int | None, drops: bool
) -> None:
    """It is decided when nothing to come is within a window of the order, whatever its slice still holds."""
    options = StreamOptions(4, slice_length=length, buckets=1, duplicates="drop" if drops else "error")
    batches = Batches(f"PATTERN SEQ(A a, !B n) WITHIN {window}", SCHEMA, options, MatchOptions())
    rows = [("A", number, lower, lower + long) for number, (lower, long) in enumerate(orders)]
    batches.take(events(*rows, *(rows if drops else [])))
    begin = max(lower for lower, _ in orders)
    for tick in range(begin - 4, begin + window + 6):
        batches.take(notice(SCHEMA, HEARTBEAT, tick))
        decided = [number for _, number, _, upper in rows if upper + window - 1 < tick]
        assert sorted(batches.matches.column("a").to_pylist()) == decided
    batches.take(notice(SCHEMA, CLOSE))
    assert sorted(batches.matches.column("a").to_pylist()) == [*range(len(orders))]
    assert batches.counts["duplicates"] == (len(orders) if drops else 0)
    assert batches.held == 0


@pytest.mark.parametrize("strategy", ALL_STRATEGIES)
@FEWER
@given(data=st.data(), length=SLICE_LENGTHS, buckets=BUCKETS)
def test_absences_of_any_pattern_come_once_and_before_the_end(
    strategy: Strategy, data: st.DataObject, length: int | None, buckets: int
) -> None:
    ends_in_absence = language_cases(strategy).filter(lambda case: components(case.pattern)[-1].negated)
    case: LanguageCase = data.draw(ends_in_absence)
    note(case.text())
    trace = Trace(tuple(sorted(case.trace.events, key=lambda event: event.lower)), case.trace.types)
    table = plain(trace.table(with_pmf=any(event.pmf is not None for event in trace.events)))
    largest = max((event.upper - event.lower for event in trace.events), default=0)
    window = case.window
    length = None if length is None else length + max(largest, window) // 30
    batches = Batches(case.text(), table.schema, StreamOptions(largest, slice_length=length, buckets=buckets))
    start = 0
    while start < table.num_rows:
        count = data.draw(st.integers(1, 3))
        said = notice(table.schema, HEARTBEAT, trace.events[start].lower)
        batches.take(table.slice(start, count), said)
        start += count
    last = max((event.upper for event in trace.events), default=0)
    for tick in range(last - window, last + window + 1, data.draw(st.integers(1, 3))):
        batches.take(notice(table.schema, HEARTBEAT, tick))
    batches.take(notice(table.schema, HEARTBEAT, last + window))
    assert batches.counts["late"] == 0
    assert_answer(case.rows(batches.matches), case.answer())
    before = batches.counts["matches"]
    batches.take(notice(table.schema, CLOSE))
    assert batches.counts["matches"] == before
    assert batches.held == 0


def test_state_that_has_told_no_absence_before_its_slice_was_final_goes_on() -> None:
    """An older version kept four figures of a slice."""
    batches = Batches("PATTERN SEQ(A a, !B n) WITHIN 5", SCHEMA, StreamOptions(0, buckets=1))
    batches.take(events(("A", 1, 0, 0), ("A", 2, 3, 3)))
    (part,) = batches.parts.values()
    assert part.index is not None
    index = json.loads(part.index)
    index["slices"] = {number: figures[:4] for number, figures in index["slices"].items()}
    part.index = json.dumps(index)
    batches.take(notice(SCHEMA, HEARTBEAT, 5))
    assert batches.matches.column("a").to_pylist() == [1]
    batches.take(notice(SCHEMA, HEARTBEAT, 9))
    assert batches.matches.column("a").to_pylist() == [1, 2]
