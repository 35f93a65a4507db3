"""The answer does not depend on the frame, the type of the ids, the origin or the unit of time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, cases
from tests.cases.comparison import assert_answer, assert_same, rows_of
from uncertain_cep.testing.model import Identifier

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def _through_reader(table: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2))


@pytest.mark.parametrize(
    ("convert", "result"),
    [
        (lambda table: table.to_pandas(), pd.DataFrame),
        (lambda table: table.to_pandas(types_mapper=pd.ArrowDtype), pd.DataFrame),
        (pl.from_arrow, pl.DataFrame),
        (_through_reader, pa.Table),
        (lambda table: pa.concat_tables([table[:1], table[1:3], table[3:]]), pa.Table),
    ],
    ids=["pandas", "pandas with Arrow types", "polars", "reader", "chunked"],
)
@given(case=cases())
def test_frames_of_every_kind(convert: Callable[[pa.Table], Any], result: type, case: Case) -> None:
    note(case.script())
    matches = uc.match(convert(case.trace.table()), case.text())
    assert isinstance(matches, result)
    assert_answer(rows_of(matches, case), case.answer())


@given(cases(), st.sampled_from([-(10**6), 10**9, 1_700_000_000_000_000_000, -(2**60)]))
def test_the_origin_of_time_does_not_matter(case: Case, shift: int) -> None:
    note(case.script())
    note(f"shift={shift}")
    matches = uc.match(case.trace.table(shift=shift), case.text())
    assert_answer(rows_of(matches, case, to_tick=lambda tick: tick - shift), case.answer())


@given(cases(ids=False))
def test_the_type_of_the_ids_does_not_matter(case: Case) -> None:
    note(case.script())
    renamed: dict[Identifier, Identifier] = {
        event.id: int(event.id[1:]) * 10**15 - 7 if isinstance(event.id, str) else f"ü{event.id}"
        for event in case.trace.events
    }
    back = {new: old for old, new in renamed.items()}
    matches = uc.match(case.trace.table(rename=renamed.__getitem__), case.text())
    assert_answer(rows_of(matches, case, to_id=back.__getitem__), case.answer())


@given(
    cases(),
    st.sampled_from(
        [("s", 1), ("s", 60), ("ms", 1), ("ms", 100), ("us", 1), ("us", 250), ("ns", 1), ("ns", 10**8)]
    ),
    st.sampled_from([None, "UTC", "Europe/Berlin"]),
    st.booleans(),
)
def test_timestamps_with_a_tick_are_as_int64_ticks(
    case: Case, unit_and_tick: tuple[str, int], timezone: str | None, with_unit: bool
) -> None:
    note(case.script())
    unit, tick = unit_and_tick
    per_second = 10**9 // _NANOSECONDS[unit]
    # A whole number of ticks after 1970, in October 2023.
    origin = 1_697_000_000 * per_second // tick * tick
    table = case.trace.table()
    for name in ("lower", "upper"):
        raw = pa.array([origin + value * tick for value in table.column(name).to_pylist()], pa.int64())
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, raw.cast(pa.timestamp(unit, timezone)))
    text = case.text(within=f"{case.window * tick} {unit}") if with_unit else case.text()
    matches = uc.match(table, text, tick=f"{tick}{unit}")
    assert matches.schema.field("range_lower").type == pa.timestamp(unit, timezone)
    for name in ("range_lower", "range_upper"):
        place = matches.schema.get_field_index(name)
        matches = matches.set_column(place, name, matches.column(name).cast(pa.int64()))
    assert_answer(rows_of(matches, case, to_tick=lambda value: (value - origin) // tick), case.answer())


@given(cases())
def test_other_names_for_the_columns(case: Case) -> None:
    note(case.script())
    assume(not any(name in case.text() for name in (".id", ".type", ".lower", ".upper")))
    names = {"type": "kind", "id": "number", "lower": "from", "upper": "to"}
    table = case.trace.table()
    renamed = table.rename_columns([names.get(name, name) for name in table.column_names])
    assert_same(
        rows_of(uc.match(renamed, case.text(), names=names), case),
        rows_of(uc.match(table, case.text()), case),
    )


def test_datetime_ranges_come_back_in_pandas() -> None:
    frame = pd.DataFrame(
        {
            "type": ["A", "B"],
            "id": [1, 2],
            "lower": [datetime(2024, 5, 1), datetime(2024, 5, 1, 0, 0, 1)],
            "upper": [datetime(2024, 5, 1, 0, 0, 1), datetime(2024, 5, 1, 0, 0, 2)],
        }
    )
    matches = uc.match(frame, "PATTERN SEQ(A a, B b) WITHIN 1 minute", tick="1s")
    assert matches["range_lower"][0] == pd.Timestamp("2024-05-01")
    assert matches["range_upper"][0] == pd.Timestamp("2024-05-01 00:00:02")
    assert matches["confidence"][0] == 0.75
