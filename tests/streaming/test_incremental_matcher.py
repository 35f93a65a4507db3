"""The incremental matcher for its users, besides matches: faults, late events, times, bounded state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.config.limits import LONGEST_PMF_CHAIN
from uncertain_cep.streaming.stream_methods import INCREMENTAL_EVALUATIONS

SCHEMA = pa.schema(
    [("type", pa.string()), ("id", pa.string()), ("lower", pa.int64()), ("upper", pa.int64()),
     ("pmf", pa.list_(pa.float64())), ("k", pa.string()), ("x", pa.int64())]
)  # fmt: skip
PAIR = "PATTERN SEQ(A a, B b) WITHIN 10"


def event(type: str, id: str, lower: int, upper: int, **attributes: object) -> dict[str, Any]:
    return {"type": type, "id": id, "lower": lower, "upper": upper, **attributes}


def table(*events: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(events), schema=SCHEMA)


@pytest.mark.parametrize("evaluation", INCREMENTAL_EVALUATIONS)
def test_figure_1(evaluation: str) -> None:
    matcher = uc.IncrementalMatcher(
        "PATTERN SEQ(A a, B b, C c) WITHIN 4", SCHEMA, evaluation=evaluation, largest_interval=4
    )
    events = [event("A", "a1", 1, 5), event("C", "c2", 3, 5), event("B", "b3", 3, 5), event("C", "c4", 4, 8)]
    rows = [row for one in events for row in matcher.push(one).to_pylist()]
    rows += matcher.close().to_pylist()
    rows.sort(key=lambda row: row["c"])
    assert [(row["a"], row["b"], row["c"]) for row in rows] == [("a1", "b3", "c2"), ("a1", "b3", "c4")]
    assert [(row["range_lower"], row["range_upper"]) for row in rows] == [(1, 5), (1, 7)]
    assert [row["confidence"] for row in rows] == pytest.approx([25 / 225, 27 / 225], rel=1e-12)


def test_auto_returns_a_match_with_the_event_that_completes_it() -> None:
    matcher = uc.IncrementalMatcher(PAIR, SCHEMA)
    assert matcher.push(event("B", "b1", 5, 5)).num_rows == 0
    assert matcher.push(event("A", "a1", 1, 2)).to_pylist() == [
        {"a": "a1", "b": "b1", "range_lower": 1, "range_upper": 5, "confidence": 1.0}
    ]


def test_query_order_waits_for_the_heartbeat() -> None:
    matcher = uc.IncrementalMatcher(PAIR, SCHEMA, evaluation="query_order")
    assert matcher.push(table(event("B", "b1", 5, 6), event("A", "a1", 1, 2))).num_rows == 0
    assert matcher.heartbeat(5).num_rows == 0
    assert matcher.heartbeat(6).num_rows == 1
    assert matcher.close().num_rows == 0


def test_late_events_are_counted_and_handed_out_once() -> None:
    matcher = uc.IncrementalMatcher(PAIR, SCHEMA, largest_interval=4)
    matcher.push(event("A", "a1", 100, 104, k="u"))
    assert matcher.safe == 96
    assert matcher.push(event("B", "b1", 98, 99)).num_rows == 0  # ends before a1 begins
    assert matcher.push(event("B", "b2", 95, 101)).num_rows == 0  # longer than it was said
    assert matcher.push(event("B", "b3", 98, 101)).num_rows == 1
    assert matcher.late_count == 2
    assert matcher.take_late().column("id").to_pylist() == ["b1", "b2"]
    assert matcher.late.num_rows == 0
    assert matcher.late.schema == SCHEMA
    assert matcher.late_count == 2


@pytest.mark.parametrize("condition", ["a.k = b.k", "a.x = b.id AND a.k = b.k", "[k]", "a.x = b.x"])
def test_calls_with_no_event_that_is_on_time(condition: str) -> None:
    schema = SCHEMA.set(1, pa.field("id", pa.int64()))
    matcher = uc.IncrementalMatcher(f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 9", schema)
    assert matcher.push(schema.empty_table()).num_rows == 0
    matcher.heartbeat(50)
    assert matcher.push(event("A", "", 1, 2) | {"id": 1}).num_rows == 0
    assert matcher.late_count == 1


def test_heartbeats_of_every_type_together_are_one() -> None:
    matcher = uc.IncrementalMatcher(PAIR, SCHEMA, evaluation="query_order")
    assert matcher.push(table(event("B", "b1", 5, 6), event("A", "a1", 1, 2))).num_rows == 0
    assert matcher.heartbeat(50, of_type="A").num_rows == 0
    assert matcher.push(table(event("A", "a2", 49, 60), event("C", "c1", 49, 60))).num_rows == 0
    assert matcher.take_late().column("id").to_pylist() == ["a2"]
    assert matcher.heartbeat(6, of_type="B").num_rows == 1
    assert matcher.safe == 6
    with pytest.raises(uc.OptionError, match="of_type"):
        matcher.heartbeat(9, of_type=3)  # type: ignore[arg-type]


def test_only_heartbeats_make_events_late_where_arrival_order_is_not_relied_on() -> None:
    matcher = uc.IncrementalMatcher(PAIR, SCHEMA)
    matcher.push(event("A", "a1", 100, 104))
    matcher.push(event("A", "a2", 1, 1))
    assert matcher.late_count == 0
    matcher.heartbeat(50)
    matcher.push(event("A", "a3", 49, 60))
    matcher.push(event("A", "a4", 50, 60))
    assert matcher.late.column("id").to_pylist() == ["a3"]


def test_ids_are_unique_among_the_events_in_reach() -> None:
    matcher = uc.IncrementalMatcher(PAIR, SCHEMA)
    matcher.push(event("A", "a1", 1, 2))
    with pytest.raises(uc.TraceError, match="has this id") as caught:
        matcher.push(event("B", "a1", 3, 3))
    assert caught.value.faults[0].value == "'a1'"
    # It was not taken, and the stream goes on.
    assert matcher.push(event("B", "b1", 3, 3)).num_rows == 1


def test_ids_are_unique_within_a_partition() -> None:
    matcher = uc.IncrementalMatcher("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10", SCHEMA)
    matcher.push(event("A", "a1", 1, 2, k="u"))
    matcher.push(event("A", "a1", 1, 2, k="v"))
    assert matcher.push(event("B", "b1", 3, 3, k="v")).to_pylist()[0]["k"] == "v"
    with pytest.raises(uc.TraceError, match="has this id"):
        matcher.push(event("B", "a1", 1, 2, k="v"))


def test_rising_integer_ids_are_checked_too() -> None:
    schema = SCHEMA.set(1, pa.field("id", pa.int64()))
    matcher = uc.IncrementalMatcher(PAIR, schema)
    for id in (1, 2, 5):
        matcher.push(event("A", 0, 1, 2) | {"id": id})  # type: ignore[arg-type]
    matcher.push(event("A", 0, 1, 2) | {"id": 3})  # type: ignore[arg-type]
    with pytest.raises(uc.TraceError, match="has this id"):
        matcher.push(event("A", 0, 1, 2) | {"id": 2})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad",
    [
        event("A", "a1", 5, 4),
        event("A", "a1", 1, 2, pmf=[0.5, 0.4]),
        {"type": "A", "id": "a1", "lower": 1},
        {"type": "A", "id": "a1", "lower": 1, "upper": 2, "colour": "red"},
    ],
)
def test_events_are_checked_as_in_a_batch(bad: dict[str, Any]) -> None:
    matcher = uc.IncrementalMatcher(PAIR, SCHEMA)
    with pytest.raises(uc.TraceError):
        matcher.push(bad)
    assert matcher.state_size == 0


def test_no_value_of_an_event_is_cut_off() -> None:
    matcher = uc.IncrementalMatcher(PAIR, SCHEMA, largest_interval=0)
    for column, value in (("lower", 2.5), ("upper", np.float64(3.5)), ("x", 0.5), ("x", 1e300), ("k", 3)):
        with pytest.raises(uc.TraceError, match=f"column '{column}', value .* it is no value of type"):
            matcher.push({**event("A", "a", 3, 3), column: value})
    assert matcher.push({**event("A", "a", 3, 3), "x": 2.0}).num_rows == 0
    stamped = SCHEMA.set(2, pa.field("lower", pa.timestamp("s"))).set(3, pa.field("upper", pa.timestamp("s")))
    matcher = uc.IncrementalMatcher("PATTERN SEQ(A a) WITHIN 1 s", stamped, largest_interval=0, tick="1 s")
    whole = datetime(2026, 1, 1)
    with pytest.raises(uc.TraceError, match="column 'lower', value datetime"):
        matcher.push(event("A", "a", whole + timedelta(milliseconds=500), whole))  # type: ignore[arg-type]
    assert matcher.push(event("A", "a", whole, whole)).num_rows == 1  # type: ignore[arg-type]


def test_tables_are_read_by_name_and_cast_to_the_schema() -> None:
    matcher = uc.IncrementalMatcher(PAIR, SCHEMA)
    narrow = table(event("A", "a1", 1, 2)).set_column(3, "upper", pa.array([2], pa.int32()))
    matcher.push(narrow.select(reversed(narrow.column_names)))
    assert matcher.push(table(event("B", "b1", 3, 3)).to_batches()[0]).num_rows == 1
    with pytest.raises(uc.TraceError, match="lack it"):
        matcher.push(narrow.drop_columns(["x"]))
    with pytest.raises(uc.TraceError, match="not of the schema"):
        matcher.push(narrow.set_column(2, "lower", pa.array(["soon"])))


@pytest.mark.parametrize("clause", ["ORDER BY CONFIDENCE DESC LIMIT 3", "LIMIT 3"])
def test_order_by_and_limit_are_refused(clause: str) -> None:
    with pytest.raises(uc.OptionError, match="ORDER BY and LIMIT"):
        uc.IncrementalMatcher(f"{PAIR} {clause}", SCHEMA)


def test_options_are_checked() -> None:
    with pytest.raises(uc.OptionError, match="evaluation='never'"):
        uc.IncrementalMatcher(PAIR, SCHEMA, evaluation="never")
    for largest in (-1, 2.5, True, np.timedelta64(3, "s")):
        with pytest.raises(uc.OptionError, match=r"largest_interval=.* 0 or more whole ticks"):
            uc.IncrementalMatcher(PAIR, SCHEMA, largest_interval=largest)  # type: ignore[arg-type]
    with pytest.raises(uc.OptionError, match="names="):
        uc.IncrementalMatcher(PAIR, SCHEMA, names={"typ": "type"})
    components = ", ".join(f"A v{number}" for number in range(63))
    with pytest.raises(uc.OptionError, match="at most 62 components"):
        uc.IncrementalMatcher(f"PATTERN SEQ({components}) WITHIN 100", SCHEMA, evaluation="selectivity")
    with pytest.raises(uc.OptionError, match="any_state' does not support Kleene components over a stream"):
        uc.IncrementalMatcher("PATTERN SEQ(A+ a[], B b) WITHIN 10", SCHEMA, evaluation="any_state")
    for wrong in (0, True, 2.5):
        with pytest.raises(uc.OptionError, match="slice_length="):
            uc.IncrementalMatcher(PAIR, SCHEMA, slice_length=wrong)  # type: ignore[arg-type]
    with pytest.raises(uc.OptionError, match="slice_length does not go with evaluation='selectivity'"):
        uc.IncrementalMatcher(PAIR, SCHEMA, evaluation="selectivity", slice_length=4)


def test_auto_takes_every_pattern() -> None:
    components = ", ".join(f"ANY v{number}" for number in range(63))
    long = uc.IncrementalMatcher(f"PATTERN SEQ({components}) WITHIN 100", SCHEMA)
    for number in range(63):
        long.push(event("A", f"a{number}", number, number))
    assert long.close().num_rows == 1
    kleene = uc.IncrementalMatcher("PATTERN SEQ(A+ a[], !C n, B b) WITHIN 10", SCHEMA)
    kleene.push(table(event("A", "a1", 1, 1), event("A", "a2", 2, 2), event("B", "b1", 4, 4)))
    kleene.push(event("C", "c1", 3, 4))
    kleene.push(event("D", "d1", 20, 20))
    rows = sorted(kleene.heartbeat(30).to_pylist(), key=lambda row: len(row["a"]))
    assert [row["a"] for row in rows[-1:]] == [["a1", "a2"]]
    assert [row["confidence"] for row in rows] == pytest.approx([0.5, 0.5, 0.5])
    assert kleene.state_size == 0


def test_slices_come_out_when_they_are_long_enough() -> None:
    for length, first in ((1, 11), (5, 15)):
        matcher = uc.IncrementalMatcher(PAIR, SCHEMA, slice_length=length)
        matcher.push(table(event("A", "a1", 1, 1), event("B", "b1", 2, 2), event("A", "a2", 8, 8)))
        for bound in range(1, first):
            assert matcher.heartbeat(bound).num_rows == 0
        assert matcher.heartbeat(first).num_rows == 1
        assert matcher.state_size > 0
        assert matcher.heartbeat(40).num_rows == 0
        assert matcher.state_size == 0


def test_state_of_slices_is_bounded() -> None:
    query = "PATTERN SEQ(A a, !C n, B+ b[]) WHERE [k] WITHIN 10"
    matcher = uc.IncrementalMatcher(query, SCHEMA, largest_interval=3)
    everything, match_count, sizes = [], 0, []
    for start in range(0, 20_000, 500):
        ticks = np.arange(start, start + 500)
        events = pa.table(
            {
                "type": np.where(ticks % 7, np.where(ticks % 2, "B", "A"), "C"),
                "id": [f"e{tick}" for tick in ticks],
                "lower": ticks,
                "upper": ticks + 3,
                "pmf": pa.nulls(500, pa.list_(pa.float64())),
                "k": [f"k{tick // 4 % 50}" for tick in ticks],
                "x": ticks,
            }
        )
        everything.append(events)
        match_count += matcher.push(events).num_rows
        sizes.append(matcher.state_size)
    match_count += matcher.close().num_rows
    assert match_count == uc.match(pa.concat_tables(everything), query).num_rows > 1000
    assert max(sizes) < 1200


def test_nothing_is_held_of_events_that_begin_no_match() -> None:
    matcher = uc.IncrementalMatcher(PAIR, SCHEMA, evaluation="sliced", largest_interval=0)
    for start in range(0, 20_000, 500):
        ticks = range(start, start + 500)
        matcher.push(table(*(event("B", f"b{tick}", tick, tick) for tick in ticks)))
        assert matcher.state_size < 3000


def test_a_closed_stream_takes_nothing() -> None:
    matcher = uc.IncrementalMatcher(PAIR, SCHEMA)
    matcher.close()
    with pytest.raises(uc.OptionError, match="closed"):
        matcher.push(event("A", "a1", 1, 2))
    with pytest.raises(uc.OptionError, match="closed"):
        matcher.heartbeat(1)
    with pytest.raises(uc.OptionError, match="closed"):
        matcher.close()


@pytest.mark.parametrize("condition", ["1 = 2", "a.x > 0 AND 1 = 2"])
def test_a_condition_that_never_holds(condition: str) -> None:
    for pattern in ("A a", "A a, B b"):
        matcher = uc.IncrementalMatcher(f"PATTERN SEQ({pattern}) WHERE {condition} WITHIN 9", SCHEMA)
        assert matcher.push(table(event("A", "a1", 1, 2, x=1), event("B", "b1", 3, 3))).num_rows == 0
        assert matcher.close().num_rows == 0


def test_timestamps_and_ticks() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    times = pa.timestamp("us", "UTC")
    schema = pa.schema([("type", pa.string()), ("id", pa.int64()), ("lower", times), ("upper", times)])
    matcher = uc.IncrementalMatcher(
        "PATTERN SEQ(A a, B b) WITHIN 10 seconds", schema, tick="1s", evaluation="query_order"
    )

    def at(type: str, id: int, start: int, stop: int) -> dict[str, Any]:
        return {"type": type, "id": id, "lower": noon + timedelta(seconds=start),
                "upper": noon + timedelta(seconds=stop)}  # fmt: skip

    matcher.push(at("A", 1, 0, 1))
    matcher.push(at("B", 2, 1, 2))
    naive = np.datetime64("2026-03-01T12:00:01")
    assert matcher.heartbeat(naive).num_rows == 0
    match = matcher.heartbeat(noon + timedelta(seconds=2)).to_pylist()
    assert match[0]["range_lower"] == noon
    assert match[0]["range_upper"] == noon + timedelta(seconds=2)
    assert match[0]["confidence"] == pytest.approx(3 / 4)
    with pytest.raises(uc.OptionError, match="heartbeat"):
        matcher.heartbeat("soon")  # type: ignore[arg-type]
    ticks = uc.IncrementalMatcher(PAIR, SCHEMA)
    with pytest.raises(uc.OptionError, match="whole ticks"):
        ticks.heartbeat(noon)


@pytest.mark.parametrize("evaluation", INCREMENTAL_EVALUATIONS)
def test_a_chain_too_long_to_sum_over_is_an_error(evaluation: str) -> None:
    far = 2 * LONGEST_PMF_CHAIN
    matcher = uc.IncrementalMatcher(f"PATTERN SEQ(A a, B b) WITHIN {far}", SCHEMA, evaluation=evaluation)
    matcher.push(event("A", "a1", 0, 1, pmf=[0.5, 0.5]))
    end = event("B", "b1", 1, far)
    if evaluation == "point":
        matcher.push(end)
        with pytest.raises(uc.OptionError, match="goes through at most"):
            matcher.close()
    elif evaluation in ("query_order", "sliced"):
        matcher.push(end)
        with pytest.raises(uc.TraceError, match="explicit pmf reaches over"):
            matcher.close()
    else:
        with pytest.raises(uc.TraceError, match="explicit pmf reaches over"):
            matcher.push(end)
    # What was in the making is lost: going on would leave out matches without a word.
    for call in (partial(matcher.push, end), partial(matcher.heartbeat, far), matcher.close):
        with pytest.raises(uc.OptionError, match="an earlier call failed while it computed matches"):
            call()


@pytest.mark.parametrize("evaluation", ["any_state", "selectivity", "query_order"])
def test_partitions_strings_and_events_are_forgotten(evaluation: str) -> None:
    query = "PATTERN SEQ(A a, B b) WHERE a.k = b.k AND a.id != b.id WITHIN 10"
    matcher = uc.IncrementalMatcher(query, SCHEMA, evaluation=evaluation, largest_interval=3)
    match_count, sizes = 0, []
    for start in range(0, 40_000, 1000):
        ticks = np.arange(start, start + 1000)
        events = pa.table(
            {
                "type": np.where(ticks % 2, "B", "A"),
                "id": [f"e{tick}" for tick in ticks],
                "lower": ticks,
                "upper": ticks + 3,
                "pmf": pa.nulls(1000, pa.list_(pa.float64())),
                "k": [f"k{tick // 2}" for tick in ticks],
                "x": ticks,
            }
        )
        match_count += matcher.push(events).num_rows
        sizes.append(matcher.state_size)
    match_count += matcher.close().num_rows
    assert match_count == 20_000
    assert max(sizes[20:]) <= max(sizes[:20])
    assert len(matcher._evaluation._partitions) <= 4096
    evaluation_state = matcher._evaluation._by_runs
    assert evaluation_state is not None
    assert len(evaluation_state._predicates._strings) <= 16_384


def test_integers_that_leave_int64_compare_as_in_a_batch() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE a.x + b.x > 0 WITHIN 10"
    big = 2**62
    events = table(
        event("A", "a1", 1, 1, x=1), event("B", "b1", 2, 2, x=-1), event("B", "b2", 2, 2, x=5),
        event("A", "a2", 1, 1, x=big), event("B", "b3", 2, 2, x=big), event("B", "b4", 2, 2, x=-big),
    )  # fmt: skip
    matcher = uc.IncrementalMatcher(query, SCHEMA)
    rows = [row for part in range(6) for row in matcher.push(events.slice(part, 1)).to_pylist()]
    expected = uc.match(events, query).to_pylist()
    assert sorted((row["a"], row["b"]) for row in rows) == sorted((row["a"], row["b"]) for row in expected)


ROWS = [("A", "a1", 1), ("A", "a2", 2), ("B", "a1", 3), ("B", "b1", 4), ("B", "b1", 4), ("A", "a3", 6)]


@pytest.mark.parametrize("evaluation", ["auto", "sliced", "any_state", "query_order", "point"])
@pytest.mark.parametrize("duplicates", ["error", "drop"])
@pytest.mark.parametrize("size", [1, 2, 6])
def test_an_event_with_an_id_in_use_is_refused_alone(evaluation: str, duplicates: str, size: int) -> None:
    """The others of its call are taken, and their matches are returned once: then, or by the next call.

    A copy is dropped where copies are."""
    table = pa.Table.from_pylist([event(kind, id, tick, tick) for kind, id, tick in ROWS], schema=SCHEMA)
    sound = table.take(pa.array([0, 1, 3, 5]))
    expected = sorted(map(str, uc.match(sound, PAIR).to_pylist()))
    assert len(expected) == 2
    matcher = uc.IncrementalMatcher(
        PAIR, SCHEMA, evaluation=evaluation, duplicates=duplicates, largest_interval=9
    )
    rows: list[dict[str, Any]] = []
    refused = []
    for start in range(0, len(ROWS), size):
        try:
            rows += matcher.push(table.slice(start, size)).to_pylist()
        except uc.TraceError as error:
            refused += [fault.value for fault in error.faults]
            # What such a call left waiting goes on with a snapshot.
            other = uc.IncrementalMatcher(
                PAIR, SCHEMA, evaluation=evaluation, duplicates=duplicates, largest_interval=9
            )
            other.restore(matcher.snapshot())
            matcher = other
    rows += matcher.heartbeat(7).to_pylist() + matcher.close().to_pylist()
    assert sorted(map(str, rows)) == expected
    assert refused == (["'a1'", "'b1'"] if duplicates == "error" else ["'a1'"])
    assert matcher.duplicate_count == 2


def test_duplicates_is_error_or_drop() -> None:
    with pytest.raises(uc.OptionError, match="duplicates='keep' is unknown: use error or drop"):
        uc.IncrementalMatcher(PAIR, SCHEMA, duplicates="keep")
