"""RETURN PROBABILITY EVERY of days of a time zone: a stream has the rows of all events together."""

from __future__ import annotations

import datetime as dt
import warnings
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st

import uncertain_cep as uc

UTC = dt.UTC
CHANGES = {
    "Europe/Prague": (dt.datetime(2024, 3, 31, tzinfo=UTC), dt.datetime(2024, 10, 27, tzinfo=UTC)),
    # Clocks skip midnight, or show it twice.
    "America/Sao_Paulo": (dt.datetime(2017, 10, 15, 3, tzinfo=UTC), dt.datetime(2018, 2, 18, tzinfo=UTC)),
    "Asia/Tokyo": (dt.datetime(2024, 3, 31, tzinfo=UTC),),
    "UTC": (dt.datetime(2024, 3, 31, tzinfo=UTC),),
}
SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("id", pa.int64()),
        *((name, pa.timestamp("s", "UTC")) for name in ("lower", "upper")),
    ]
)


@st.composite
def days(draw: st.DrawFn) -> tuple[uc.Query, pa.Table]:
    """Draw a query of buckets of days, and events around a change of clocks, in the order of their begins."""
    zone = draw(st.sampled_from(sorted(CHANGES)))
    change = draw(st.sampled_from(CHANGES[zone]))
    rows: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 9))):
        lower = change + dt.timedelta(hours=draw(st.integers(-60, 60)))
        upper = lower + dt.timedelta(hours=draw(st.sampled_from([0, 0, 1, 2, 5])))
        rows.append({"type": draw(st.sampled_from("AB")), "id": number, "lower": lower, "upper": upper})
    rows.sort(key=lambda row: row["lower"])
    clause = draw(st.sampled_from(["", " BY a", " OF AT LEAST 2 MATCHES"]))
    every = draw(st.sampled_from(["1 day", "2 days", "7 days"]))
    within = draw(st.sampled_from([1, 6, 30]))
    pattern = draw(st.sampled_from(["SEQ(A a, B b)", "SEQ(A a, !B b, A c)", "AND(A a, B b)"]))
    text = f"PATTERN {pattern} WITHIN {within} hours RETURN PROBABILITY{clause} EVERY {every}"
    return uc.parse(text, zone=zone), pa.Table.from_pylist(rows, SCHEMA)


def by_value(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


@given(days(), st.data())
def test_a_stream_has_the_days_of_all_events(case: tuple[uc.Query, pa.Table], data: st.DataObject) -> None:
    query, events = case
    note(f"{query}\n{events.to_pylist()}")
    length = data.draw(st.sampled_from([None, 1, 30, 1000]))
    matcher = uc.IncrementalMatcher(query, SCHEMA, tick="1h", slice_length=length)
    batches, start = [], 0
    while start < events.num_rows:
        count = data.draw(st.integers(1, 3))
        batches.append(matcher.push(events.slice(start, count)))
        start += count
        if start < events.num_rows and data.draw(st.booleans()):
            batches.append(matcher.heartbeat(events["lower"][start].as_py()))
    early = sum(batch.num_rows for batch in batches)
    batches.append(matcher.close())
    assert not matcher.late_count
    assert matcher.state_size == 0
    event(f"rows before the end: {min(early, 1)}")
    rows = by_value(pa.Table.from_batches(batches))
    with warnings.catch_warnings():
        # A drawn type may be without events.
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        expected = by_value(uc.match(events, query, tick="1h"))
    assert [row[:-1] for row in rows] == [row[:-1] for row in expected]
    assert [row[-1] for row in rows] == pytest.approx([row[-1] for row in expected])


def test_a_day_of_25_hours_is_final_when_it_has_ended() -> None:
    """27 October begins at 22:00 and ends at 23:00 of UTC; midnight of UTC is in neither."""
    query = uc.parse(
        "PATTERN SEQ(A a, B b) WITHIN 2 hours RETURN PROBABILITY EVERY 1 day", zone="Europe/Prague"
    )
    matcher = uc.IncrementalMatcher(query, SCHEMA, tick="1h", slice_length=1)

    def at(hour: int) -> dt.datetime:
        return dt.datetime(2024, 10, 26, tzinfo=UTC) + dt.timedelta(hours=hour)

    rows = [
        ("A", 1, at(22), at(22)),
        ("B", 2, at(22), at(23)),
        ("A", 3, at(46), at(46)),
        ("B", 4, at(46), at(47)),
    ]
    events = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    assert not matcher.push(events).num_rows
    assert not matcher.heartbeat(at(47)).num_rows
    (row,) = matcher.heartbeat(at(48)).to_pylist()
    assert row["bucket"] == at(22)
    assert row["probability"] == pytest.approx(1 - 0.5 * 0.5)
    assert not matcher.close().num_rows
