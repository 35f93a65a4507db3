"""The same stamps give the same answer from every kind of frame and file, whatever their unit."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from uncertain_cep.traces import TraceSchema, read_traces

US = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1, "date32": 86_400 * 10**6, "date64": 86_400 * 10**6}
"""Microseconds between the stamps that are drawn for a unit."""

DAY = 86_400 * 10**6
EPOCH = dt.datetime(1970, 1, 1)
FIRST = 1_717_200_000 * 10**6 // DAY * DAY

Bounds = tuple[int, int]
Answer = set[tuple[int, int, float]]


def at_most(first: Bounds, second: Bounds, distance: int) -> int:
    """Count the pairs of ticks of two intervals with second - first <= distance, in closed form."""

    def up_to(n: int) -> int:
        return n * (n + 1) // 2 if n > 0 else 0

    def summed(shift: int) -> int:
        return up_to(first[1] + shift) - up_to(first[0] + shift - 1)

    return summed(distance - second[0] + 1) - summed(distance - second[1])


def expected(stamps: list[int], by: int, tick: int, window: int) -> Answer:
    """Return the matches of SEQ(A a, B b): even places are A, odd ones B; all lengths in microseconds."""
    bounds = [((at - by) // tick, (at + by) // tick) for at in stamps]
    matches = set()
    for a, b in itertools.product(range(0, len(stamps), 2), range(1, len(stamps), 2)):
        first, second = bounds[a], bounds[b]
        pairs = at_most(first, second, window // tick - 1) - at_most(first, second, 0)
        total = (first[1] - first[0] + 1) * (second[1] - second[0] + 1)
        if pairs:
            matches.add((a, b, float(f"{float(Fraction(pairs, total)):.9g}")))
    return matches


def raw_table(stamps: list[int], unit: str) -> pa.Table:
    """Return rows of stamps, given in microseconds, in a column of a unit."""
    if unit.startswith("date"):
        dates = [(EPOCH + dt.timedelta(microseconds=at)).date() for at in stamps]
        column = pa.array(dates, pa.date32() if unit == "date32" else pa.date64())
    else:
        column = pa.array([at * 1000 if unit == "ns" else at // US[unit] for at in stamps], pa.int64())
        column = column.cast(pa.timestamp(unit))
    kinds = ["AB"[row % 2] for row in range(len(stamps))]
    return pa.table({"type": kinds, "id": range(len(stamps)), "at": column})


def frames_of(table: pa.Table) -> Iterator[Any]:
    """Yield a table as each kind of frame in this process."""
    yield table
    yield table.to_pandas()
    if table.schema.field("at").type != pa.date64():
        # Polars has no such type, and takes it for milliseconds.
        yield pl.from_arrow(table)


def texts(stamps: list[int], unit: str) -> list[str]:
    """Return stamps as a logger of such stamps would write them."""
    texts_of_stamps = []
    for at in stamps:
        time = EPOCH + dt.timedelta(microseconds=at)
        form = "%Y-%m-%d" if unit.startswith("date") else "%Y-%m-%d %H:%M:%S"
        texts_of_stamps.append(time.strftime(form) + (f".{time:%f}" if time.microsecond else ""))
    return texts_of_stamps


def files_of(folder: Path, table: pa.Table, stamps: list[int], unit: str) -> Iterator[Path]:
    """Write a table as a file of each format."""
    pq.write_table(table, folder / "raw.parquet")
    yield folder / "raw.parquet"
    rows = zip(table["type"].to_pylist(), table["id"].to_pylist(), texts(stamps, unit), strict=True)
    lines = list(rows)
    (folder / "raw.csv").write_text(
        "type,id,at\n" + "".join(f"{kind},{id_},{at}\n" for kind, id_, at in lines), encoding="utf-8"
    )
    yield folder / "raw.csv"
    (folder / "raw.jsonl").write_text(
        "".join(json.dumps({"type": kind, "id": id_, "at": at}) + "\n" for kind, id_, at in lines),
        encoding="utf-8",
    )
    yield folder / "raw.jsonl"


def answer(matches: Any) -> Answer:
    """Return the rows of a result of any kind."""
    table = pa.Table.from_pandas(matches) if isinstance(matches, pd.DataFrame) else matches
    rows = table.to_dicts() if isinstance(table, pl.DataFrame) else table.to_pylist()
    return {(row["a"], row["b"], float(f"{row['confidence']:.9g}")) for row in rows}


@st.composite
def traces(draw: st.DrawFn) -> tuple[str, list[int], str | None, int, int, int]:
    """Draw a unit, stamps, a tick or none, and the lengths of a tick, of plus/minus and the window."""
    unit = draw(st.sampled_from(list(US)))
    step = US[unit]
    days = unit.startswith("date")
    stamps = [FIRST + at * step for at in draw(st.lists(st.integers(-3, 3), min_size=2, max_size=5))]
    if unit in ("us", "ns", "ms") and draw(st.booleans()):
        # Whole seconds all but the last, which has a fraction.
        stamps = [FIRST + (at - FIRST) // step * 10**6 for at in stamps[:-1]] + stamps[-1:]
        step = 10**6
    ticks = {None: 1, "1us": 1, "1ms": 10**3}
    ticks |= {"1s": 10**6, "1d": DAY} if days else {"100ms": 10**5}
    tick = draw(st.sampled_from(list(ticks)))
    length = DAY if days and tick is None else ticks[tick]
    by = draw(st.sampled_from([0, length, step // 2, step, 3 * length])) // length * length
    window = draw(st.sampled_from([2 * length, step, step + length, 2 * step + 2 * by + length]))
    return unit, stamps, tick, length, by, max(2 * length, window // length * length)


@pytest.mark.filterwarnings("ignore:.*certain times share a tick:uncertain_cep.UncertainCepWarning")
@given(case=traces())
def test_every_kind_of_frame_and_file_gives_the_answer(
    case: tuple[str, list[int], str | None, int, int, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    unit, stamps, tick, length, by, window = case
    table = raw_table(stamps, unit)
    query = f"PATTERN SEQ(A a, B b) WITHIN {window} us"
    answer_expected = expected(stamps, by, length, window)
    for frame in frames_of(table):
        events = uc.to_intervals(frame, time="at", uncertainty=uc.plus_minus(f"{by}us"), tick=tick)
        assert answer(uc.match(events, query)) == answer_expected
    folder = tmp_path_factory.mktemp("kinds")
    schema = TraceSchema.from_flags(time="at", uncertainty=f"plus_minus:{by}us", tick=tick)
    for path in files_of(folder, table, stamps, unit):
        assert answer(uc.match(read_traces(path, schema), query)) == answer_expected, path.suffix


@pytest.mark.filterwarnings("ignore:.*certain times share a tick:uncertain_cep.UncertainCepWarning")
@given(case=traces())
def test_the_tick_survives_frames_joins_and_files(
    case: tuple[str, list[int], str | None, int, int, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    unit, stamps, tick, length, by, window = case
    raw = raw_table(stamps, unit)
    query = f"PATTERN SEQ(A a, B b) WITHIN {window} us"
    answer_expected = expected(stamps, by, length, window)
    events = uc.to_intervals(raw, time="at", uncertainty=uc.plus_minus(f"{by}us"), tick=tick)
    events = events.drop_columns(["at"])
    keys = pa.table({"type": ["A", "B"], "colour": ["red", "green"]})
    pandas, polars = events.to_pandas(), pl.DataFrame(events)
    folder = tmp_path_factory.mktemp("kinds")
    pacsv.write_csv(events, folder / "events.csv")
    pq.write_table(events, folder / "events.parquet")
    pandas.to_parquet(folder / "pandas.parquet")
    polars.write_ndjson(folder / "events.jsonl")
    frames = [
        events,
        events.replace_schema_metadata(None),
        events.join(keys, "type"),
        pandas.merge(keys.to_pandas(), on="type"),
        pd.concat([pandas.iloc[:1], pandas.iloc[1:]]),
        polars.join(pl.DataFrame(keys), on="type"),
        *(read_traces(path) for path in sorted(folder.iterdir())),
    ]
    for frame in frames:
        assert answer(uc.match(frame, query)) == answer_expected
    batches = list(uc.iter_matches(polars, query))
    assert (
        answer(pa.Table.from_batches(batches, uc.match(polars, query).to_arrow().schema)) == answer_expected
    )
