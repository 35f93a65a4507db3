"""Events pushed one by one as mappings are what tables of one row are, call by call."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace, cases
from tests.cases.sampling import FEWER
from tests.cases.strategies import STRATEGIES, text_of
from tests.streaming.arrivals import arrivals, by_tables
from uncertain_cep.streaming.single_events import SingleEvents
from uncertain_cep.testing.model import Strategy

SCHEMA = pa.schema({"type": pa.string(), **dict.fromkeys(("id", "lower", "upper", "x"), pa.int64())})


@STRATEGIES
@pytest.mark.parametrize("evaluation", ["any_state", "selectivity", "query_order", "sliced"])
@FEWER
@given(case=cases(), data=st.data())
def test_a_mapping_is_a_table_of_one_row(
    evaluation: str, strategy: Strategy, case: Case, data: st.DataObject
) -> None:
    note(case.script())
    stream = data.draw(arrivals(case.trace.events))
    alone = data.draw(st.lists(st.booleans(), min_size=len(stream.events), max_size=len(stream.events)))
    table = Trace(stream.events, case.trace.types).table()
    matchers = [
        uc.IncrementalMatcher(
            text_of(case, strategy), table.schema, evaluation=evaluation, largest_interval=stream.largest
        )
        for _ in range(2)
    ]
    by_tables(matchers[1])
    beats = dict(zip(stream.cuts, stream.heartbeats, strict=True))
    for number, row in enumerate(table.to_pylist()):
        pushed_event: Any = row if alone[number] else table.slice(number, 1)
        assert matchers[0].push(pushed_event).equals(matchers[1].push(table.slice(number, 1)))
        beat = beats.get(number + 1)
        if beat is not None:
            first, second = (matcher.heartbeat(beat[0], of_type=beat[1]) for matcher in matchers)
            assert first.equals(second)
    assert matchers[0].state_size == matchers[1].state_size
    assert matchers[0].late.equals(matchers[1].late)
    assert matchers[0].close().equals(matchers[1].close())


def matcher(condition: str = "") -> uc.IncrementalMatcher:
    query = f"PATTERN SEQ(A a, B b) {condition} WITHIN 9"
    return uc.IncrementalMatcher(query, SCHEMA, largest_interval=9)


def event(**changes: Any) -> dict[str, Any]:
    return {"type": "A", "id": 1, "lower": 0, "upper": 2, "x": 1} | changes


@pytest.mark.parametrize(
    "changes",
    [{"lower": None}, {"type": 3}, {"x": 2**63}, {"lower": 3}, {"y": 1}, {"id": "1"}, {"upper": 2**62}],
    ids=str,
)
def test_faults_are_found_and_nothing_is_taken(changes: dict[str, Any]) -> None:
    one = matcher()
    with pytest.raises(uc.TraceError):
        one.push(event(**changes))
    assert one.push(event()).num_rows == 0
    assert one.push(event(type="B", id=2, lower=3, upper=4)).num_rows == 1


def test_an_id_in_reach_is_found_whichever_way_it_came() -> None:
    one = matcher()
    one.push(event(id=5))
    for again in (event(id=5, lower=1), pa.Table.from_pylist([event(id=5, lower=1)], schema=SCHEMA)):
        with pytest.raises(uc.TraceError, match="has this id"):
            one.push(again)
    one.push(event(id=4, lower=1))
    with pytest.raises(uc.TraceError, match="has this id"):
        one.push(event(id=4, lower=1))


def test_what_is_plain_is_looked_at_alone() -> None:
    def looks(query: str, schema: pa.Schema = SCHEMA) -> bool:
        plan = uc.IncrementalMatcher(query, schema).plan
        return SingleEvents.of(plan, schema) is not None

    assert looks("PATTERN SEQ(A a, B b) WHERE a.x % 3 = 0 AND [x] WITHIN 9")
    assert not looks("PATTERN SEQ(A a, B b) WITHIN 9", SCHEMA.append(pa.field("pmf", pa.list_(pa.float64()))))
    assert looks("PATTERN SEQ(A a, B b) WITHIN 9", SCHEMA.append(pa.field("d", pa.date32())))
    assert not looks("PATTERN SEQ(A a, B b) WITHIN 9", SCHEMA.append(pa.field("d", pa.duration("s"))))


MIXED = pa.schema(
    {
        "type": pa.string(), "id": pa.int64(), "lower": pa.int64(), "upper": pa.int64(),
        "x": pa.int64(), "y": pa.float64(), "s": pa.string(), "f": pa.bool_(),
    }
)  # fmt: skip
QUERIES = [
    "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9",
    "PATTERN SEQ(A a, B b) WHERE b.x - a.x > 0 OR a.y * b.x < b.y WITHIN 9",
    "PATTERN SEQ(A a, B b, A c) WHERE a.s < b.s AND c.x + a.x != b.x WITHIN 12",
    "PATTERN SEQ(A a, B b) WHERE (a.f = b.f OR a.f IS NULL) AND a.s != 'n' WITHIN 9",
    "PATTERN SEQ(A a, B b) WHERE a.s IN ('m', b.s) OR b.y IS NULL WITHIN 9",
    "PATTERN SEQ(A a, !C n, B b) WHERE n.x > a.x WITHIN 9",
    "PATTERN SEQ(A a, B+ b[]) WHERE b[i].x > b[i-1].x AND [s] WITHIN 9",
    "PATTERN OR(SEQ(A a, B b), SEQ(B c, A d)) WHERE a.x < b.x AND c.y < d.y WITHIN 9",
    "PATTERN AND(A a, B b) WHERE a.x < b.x WITHIN 9",
    "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) AND a.x < 3 WITHIN 9",
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) AND b.x != a.x WITHIN 9",
    "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9 RETURN PROBABILITY AS p EVERY 4 ticks",
    "PATTERN SEQ(A a, B b) WHERE TIME(b) - TIME(a) >= 2 WITHIN 9",
    "PATTERN SEQ(A a) WHERE a.x > 1 WITHIN 9",
]
WHOLE = st.sampled_from([0, 1, 2, 3, -1, 7, 8, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]) | st.none()
REAL = st.sampled_from([0.0, -0.0, 0.5, 1e300, float("inf"), float("nan")]) | st.none()


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw events in an order that keeps the promise for intervals of at most 3 ticks, but for a few."""
    now, drawn = 0, []
    for number in range(draw(st.integers(1, 12))):
        now += draw(st.integers(0, 4))
        lower = now - draw(st.sampled_from([0, 0, 0, 1, 5]))
        drawn.append(
            {
                "type": draw(st.sampled_from("ABC")),
                "id": number if draw(st.integers(0, 9)) else 0,
                "lower": lower,
                "upper": lower + draw(st.integers(0, 3)),
                "x": draw(WHOLE),
                "y": draw(REAL),
                "s": draw(st.sampled_from(["m", "n", "\u00e9", "", None])),
                "f": draw(st.sampled_from([True, False, None])),
            }
        )
    return drawn


def answer(one: uc.IncrementalMatcher, pushed: Any) -> Any:
    """Return the matches of a push as rows, or its error."""
    try:
        return repr(one.push(pushed).to_pylist())
    except uc.TraceError as error:
        return str(error)


@pytest.mark.parametrize("query", [*QUERIES, "PATTERN SEQ(A a, B b) WHERE a.f = b.f AND [s] WITHIN 9"])
@settings(deadline=None)
@given(events=rows(), data=st.data())
def test_values_of_several_events(query: str, events: list[dict[str, Any]], data: st.DataObject) -> None:
    """Conditions on two events, whatever the values are: as by tables, also from a snapshot on."""
    alone, tables = (uc.IncrementalMatcher(query, MIXED, largest_interval=3) for _ in range(2))
    by_tables(tables)
    cut = data.draw(st.integers(0, len(events)))
    for number, event in enumerate(events):
        if number == cut:
            held = alone.snapshot()
            alone = uc.IncrementalMatcher(query, MIXED, largest_interval=3)
            alone.restore(held)
        mapping = dict(event)
        first = answer(alone, mapping)
        # The caller may use its mapping for the next event.
        mapping.clear()
        assert first == answer(tables, pa.Table.from_pylist([event], schema=MIXED))
        assert alone.state_size == tables.state_size
    assert alone.late.num_rows == tables.late.num_rows
    assert repr(alone.close().to_pylist()) == repr(tables.close().to_pylist())


def pushed_rows(one: uc.IncrementalMatcher | uc.RuleMatcher, events: list[dict[str, Any]]) -> Any:
    """Return the rows that a push of a table tells, in order, or its error."""
    try:
        return repr(one.push(pa.Table.from_pylist(events, schema=MIXED)).to_pylist())
    except uc.TraceError as error:
        return str(error)


def matcher_of(queries: list[str], **options: Any) -> uc.IncrementalMatcher | uc.RuleMatcher:
    if len(queries) == 1:
        return uc.IncrementalMatcher(queries[0], MIXED, largest_interval=3, **options)
    rules = uc.rules({f"r{number}": query for number, query in enumerate(queries)})
    return uc.RuleMatcher(rules, MIXED, largest_interval=3, **options)


@pytest.mark.parametrize(
    ("queries", "when"),
    [*(([query], "final") for query in QUERIES), (["PATTERN SEQ(A a, !C n, B b) WITHIN 3"], "certain"),
     (QUERIES[:-3], "final"), (QUERIES[:-3], "certain")],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)}: {value[0]}",
)  # fmt: skip
@FEWER
@given(events=rows(), duplicates=st.sampled_from(["error", "drop"]), data=st.data())
def test_few_events_are_taken_as_many_are(
    queries: list[str], when: str, events: list[dict[str, Any]], duplicates: str, data: st.DataObject
) -> None:
    """Call by call: matches, late events, ids in use, copies, a fault of the last event."""
    small, large = (matcher_of(queries, when=when, duplicates=duplicates) for _ in range(2))
    by_tables(large)
    if duplicates == "drop":
        times = [data.draw(st.integers(1, 2)) for _ in events]
        events = [event for event, count in zip(events, times, strict=True) for _ in range(count)]
    begin = 0
    while begin < len(events):
        end = begin + data.draw(st.integers(1, 5))
        faulty = [*events[begin:end], events[begin] | {"lower": 3, "upper": 2}]
        assert pushed_rows(small, faulty) == pushed_rows(large, faulty)
        assert pushed_rows(small, events[begin:end]) == pushed_rows(large, events[begin:end])
        assert small.safe == large.safe
        begin = end
    assert repr(small.late.to_pylist()) == repr(large.late.to_pylist())
    assert (small.state_size, small.duplicate_count) == (large.state_size, large.duplicate_count)
    assert repr(small.close().to_pylist()) == repr(large.close().to_pylist())


def test_an_event_without_a_text_takes_the_place_of_a_forgotten_one() -> None:
    one = uc.IncrementalMatcher("PATTERN SEQ(A a, B b) WHERE b.s > a.s WITHIN 9", MIXED, largest_interval=1)
    texts = [f"m{number:04}" for number in range(1100)] + [None] * 30 + ["a", "b"]
    events = [
        {"type": "AB"[number % 2], "id": number, "lower": number, "upper": number, "s": text}
        for number, text in enumerate(texts)
    ]
    one.push(pa.Table.from_pylist(events[:1100], schema=MIXED))
    assert [one.push(event).num_rows for event in events[1100:]] == [0] * 31 + [1]


@pytest.mark.parametrize("confidence", [True, False])
@pytest.mark.parametrize("tick", [None, "2s"])
def test_rows_that_were_given_out_stay(tick: str | None, confidence: bool) -> None:
    """More rows than are slices of one batch, of a query that shows ids alone, kept until the end."""
    times = pa.int64() if tick is None else pa.timestamp("s")
    schema = pa.schema({"type": pa.string(), "id": pa.int64(), "lower": times, "upper": times})
    at: list[Any] = list(range(403))
    if tick is not None:
        at = [datetime(2026, 3, 1) + timedelta(seconds=2 * n) for n in at]
    events = [{"type": "AB"[n % 2], "id": n, "lower": at[n], "upper": at[n + 3]} for n in range(400)]
    query = f"PATTERN SEQ(A a, B b) WITHIN {9 if tick is None else '18 seconds'}"
    one = uc.IncrementalMatcher(query, schema, tick=tick, largest_interval=3, confidence=confidence)
    pushed = pa.Table.from_batches([*map(one.push, events), one.close()])
    whole = uc.match(pa.Table.from_pylist(events, schema), query, tick=tick, confidence=confidence)
    order = [("a", "ascending"), ("b", "ascending")]
    assert pushed.num_rows > 600
    assert pushed.sort_by(order).equals(whole.sort_by(order))


TIMES = st.sampled_from([0, 1, 999, 1_000, 1_500, 2_000_000, 10_000_000, -1]).map(
    lambda us: datetime(2026, 3, 1) + timedelta(microseconds=us)
)
ZONES = st.sampled_from([None, UTC, timezone(timedelta(hours=2))])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Prague"])
@pytest.mark.parametrize("tick", [None, "1ms", "2s"])
@settings(deadline=None, max_examples=20)
@given(times=st.lists(st.tuples(TIMES, ZONES, TIMES), min_size=1, max_size=6))
def test_points_in_time(unit: str, zone: str | None, tick: str | None, times: list[Any]) -> None:
    stamp = pa.timestamp(unit, zone)
    schema = pa.schema(
        {"type": pa.string(), "id": pa.int64(), "lower": stamp, "upper": stamp, "d": pa.date32(), "t": stamp}
    )
    query = "PATTERN SEQ(A a, B b) WITHIN 20 seconds"
    alone, tables = (uc.IncrementalMatcher(query, schema, tick=tick) for _ in range(2))
    by_tables(tables)
    for number, (begin, place, end) in enumerate(times):
        event = {
            "type": "AB"[number % 2], "id": number, "lower": begin.replace(tzinfo=place),
            "upper": max(begin, end).replace(tzinfo=place), "d": begin.date(), "t": end.replace(tzinfo=place),
        }  # fmt: skip
        finer = pa.schema(
            [(one.name, pa.timestamp("us", zone) if one.type == stamp else one.type) for one in schema]
        )
        try:
            row: Any = pa.Table.from_pylist([event], schema=finer).cast(schema)
        except (pa.ArrowException, ValueError):
            with pytest.raises(uc.TraceError, match="it is no value of type"):
                alone.push(event)
            continue
        assert answer(alone, event) == answer(tables, row)
    assert repr(alone.close().to_pylist()) == repr(tables.close().to_pylist())


@pytest.mark.parametrize("query", QUERIES[:-1])
def test_plain_events_need_no_table(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But where a whole number or a text is the first of its size or kind, for which conditions change."""
    tables = []
    whole = uc.IncrementalMatcher._take_table

    def take_table(one: uc.IncrementalMatcher, table: pa.Table) -> Any:
        tables.append(table)
        return whole(one, table)

    monkeypatch.setattr(uc.IncrementalMatcher, "_take_table", take_table)
    one = uc.IncrementalMatcher(query, MIXED, largest_interval=3)
    for number in range(200):
        one.push(
            {
                "type": "AB"[number % 2], "id": number, "lower": number, "upper": number, "x": number,
                "y": number / 2, "s": "mno"[number % 3],
            }
        )  # fmt: skip
    assert len(tables) <= 24
