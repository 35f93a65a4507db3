"""Any frame in memory: the query is answered, or the frame is refused."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.fuzz.fuzzing import Fuzzer, allowed

QUERIES: Final = (
    "PATTERN SEQ(A a, B b) WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 seconds RETURN a.x, b.x",
    "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 5 ORDER BY CONFIDENCE DESC LIMIT 2",
    "PATTERN SEQ(A a, B b) WHERE a.x = 'a' AND b.x > 1 WITHIN 5",
)
_VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "text": ("A", "B", "a", "", "\ud83d\ude00", "1ms", "2026-01-05T08:00:00"),
    "int": (0, 1, 2, 3, 5, -1, 2**31, 2**61, 2**63 - 1, -(2**63)),
    "float": (0.0, 1.0, 2.5, -0.0, float("nan"), float("inf"), 1e300),
    "bool": (True, False),
    "time": tuple(dt.datetime(2026, 1, 5, 8, 0, second, tzinfo=dt.UTC) for second in range(5)),
    "list": ([0.5, 0.5], [1.0], [], [-1.0, 2.0], [float("nan")]),
    "decimal": (Decimal(1), Decimal(3), Decimal(10**20)),
    "bytes": (b"A", b"\xff"),
    "struct": ({"a": 1},),
}
_TYPES: Final = (
    *(pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32()),
    *(pa.float64(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.bool_(), pa.null()),
    *(pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("ns"), pa.date32(), pa.date64()),
    *(pa.time64("us"), pa.duration("ms"), pa.decimal128(9, 0), pa.decimal128(38, 2), pa.decimal256(50, 0)),
    *(pa.list_(pa.float64()), pa.list_view(pa.float64()), pa.struct({"a": pa.int64()})),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.int64())),
    *(
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.list_(pa.float64(), 2),
        pa.map_(pa.string(), pa.int64()),
    ),
)
_SOUND: Final[dict[str, tuple[Any, ...]]] = {
    "type": (["A", "B", "A", "B"],),
    "id": ([1, 2, 3, 4], ["a", "b", "c", "d"]),
    "lower": ([1, 2, 3, 9],),
    "upper": ([4, 5, 3, 9],),
    "x": ([1, 2, 2, 1], ["a", "b", "b", None], [None] * 4),
    "pmf": ([None, [0.25] * 4, None, [1.0]],),
    "tick": (["1s"] * 4, ["1ms"] * 4),
    "probability": ([1.0, 0.5, None, 0.0],),
    "source": (["h", "h", "g", None],),
    "offset_lower": ([0, 0, -1, None],),
    "offset_upper": ([0, 0, 0, None],),
    "sequence": ([1, 2, 3, None], [2, 1, 1, 1]),
    "ordered": ([True, True, None, None],),
    "offset_pmf": ([[1.0], [1.0], [0.5, 0.5], None],),
}


@dataclass(frozen=True)
class Given:
    """Columns, as the library that holds them, and what is asked of them."""

    columns: tuple[tuple[str, pa.Array], ...]
    library: str
    query: str
    options: tuple[tuple[str, Any], ...] = ()

    def frame(self) -> Any:
        """Return the frame; None if the library itself cannot hold the columns."""
        names = [name for name, _ in self.columns]
        table = pa.Table.from_arrays([values for _, values in self.columns], names=names)
        try:
            match self.library:
                case "pandas":
                    return table.to_pandas()
                case "pandas-arrow":
                    return table.to_pandas(types_mapper=pd.ArrowDtype)
                case "polars":
                    return pl.from_arrow(table)
                case "polars-lazy":
                    frame = pl.from_arrow(table)
                    assert isinstance(frame, pl.DataFrame)
                    return frame.lazy()
                case "reader":
                    return table.to_reader()
                case "batch":
                    batches = table.to_batches()
                    return batches[0] if batches else None
                case _:
                    return table
        except KeyboardInterrupt:
            raise
        except BaseException:
            # Polars panics, by no Exception, at types that it does not know.
            return None


def column(draw: random.Random, rows: int) -> pa.Array:
    """Return a column of any type, as far as Arrow can make it of drawn values."""
    kind = draw.choice(tuple(_VALUES))
    values = [None if draw.random() < 0.1 else draw.choice(_VALUES[kind]) for _ in range(rows)]
    try:
        made = pa.array(values)
        return made if draw.random() < 0.4 else made.cast(draw.choice(_TYPES))
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return pa.nulls(rows, draw.choice((pa.null(), pa.int64(), pa.string())))


def given(draw: random.Random) -> Given:
    """Return a frame of which most columns are sound."""
    rows = draw.choice((0, 1, 4, 4, 4))
    columns: list[tuple[str, pa.Array]] = []
    for name, sound in _SOUND.items():
        chance = draw.random()
        if chance < (0.04 if name in ("type", "id", "lower", "upper") else 0.5):
            continue
        if chance > 0.85:
            columns.append((name, column(draw, rows)))
            continue
        values = pa.array(draw.choice(sound)[:rows])
        if draw.random() < 0.3:
            with contextlib.suppress(pa.ArrowException):
                values = values.cast(draw.choice(_TYPES))
        columns.append((name, values))
    if columns and draw.random() < 0.05:
        columns.append(draw.choice(columns))
    draw.shuffle(columns)
    library = draw.choice(("table", "pandas", "pandas-arrow", "polars", "polars-lazy", "reader", "batch"))
    options: dict[str, Any] = {}
    if draw.random() < 0.3:
        ticks = ("1s", "1ms", "3ns", "99999w", dt.timedelta(seconds=1), np.timedelta64(5, "ms"), 100, "")
        options["tick"] = draw.choice(ticks)
    if draw.random() < 0.2:
        maps: tuple[Any, ...] = ({"type": "x"}, {"lower": "upper"}, {"pmf": "x"}, {"kind": "x"}, {"id": 3}, 5)
        options["names"] = draw.choice(maps)
    return Given(tuple(columns), library, draw.choice(QUERIES), tuple(options.items()))


def asked(case: Given) -> None:
    """Ask everything of a frame that takes one."""
    options = dict(case.options)
    tick = {name: value for name, value in options.items() if name == "tick"}
    calls: tuple[Any, ...] = (
        lambda frame: uc.match(frame, case.query, **options),
        lambda frame: list(uc.iter_matches(frame, case.query, **options)),
        lambda frame: uc.explain(case.query, frame, **options),
        lambda frame: uc.validate(frame, query=case.query, **tick),
        lambda frame: uc.to_intervals(frame, time="lower", uncertainty=uc.plus_minus(1), **options),
        lambda frame: uc.to_events(frame, "C"),
    )
    for call in calls:
        frame = case.frame()
        if frame is None:
            return
        allowed(lambda call=call, frame=frame: call(frame))  # type: ignore[misc]


def smaller(case: Given) -> Iterator[Given]:
    """Yield the frame with fewer columns, rows or options, and as a table."""
    if case.library != "table":
        yield replace(case, library="table")
    for number in range(len(case.options)):
        yield replace(case, options=case.options[:number] + case.options[number + 1 :])
    for number in range(len(case.columns)):
        yield replace(case, columns=case.columns[:number] + case.columns[number + 1 :])
    rows = len(case.columns[0][1]) if case.columns else 0
    for row in range(rows):
        kept = [other for other in range(rows) if other != row]
        yield replace(
            case,
            columns=tuple(
                (name, values.take(pa.array(kept, pa.int64())))
                for name, values in case.columns
                if not pa.types.is_run_end_encoded(values.type)
            ),
        )
    if case.query != QUERIES[0]:
        yield replace(case, query=QUERIES[0])


FRAMES = Fuzzer(given, asked, smaller)


def test_a_sample_of_frames() -> None:
    FRAMES.run(60, seed=1)


@pytest.mark.thorough
def test_frames() -> None:
    FRAMES.run(20_000)
