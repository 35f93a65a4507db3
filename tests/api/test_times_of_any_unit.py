"""Times of any unit and zone, with any tick: all that shows times agrees with the ticks."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from datetime import date
from itertools import product
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import uncertain_cep as uc
from tests.api.charts import values
from tests.needs import lacking
from tests.reporting.pages import data_of
from uncertain_cep.errors import TraceError

if importlib.util.find_spec("altair") is None:
    lacking("packages", "no altair: install the extra plot", whole_file=True)

UNITS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
BERLIN: Final = "Europe/Berlin"
ORIGIN: Final = int(np.datetime64("2026-10-25T00:59:54", "ns").astype(np.int64))
"""Six seconds before clocks in Berlin are set back."""

QUERY: Final = "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 12 s"
LOWER, UPPER = [0, 2, 2, 20, 22, 4], [4, 4, 6, 20, 26, 6]
"""In seconds behind the origin; times of two seconds are whole in every tick that is drawn."""

TICKS: Final = {"1s": 10**9, "2s": 2 * 10**9, "500ms": 5 * 10**8, "1ms": 10**6, "1us": 10**3, "1ns": 1}


def events_of(times: Callable[[list[int]], pa.Array]) -> pa.Table:
    """Return the events with their times, given in nanoseconds since 1970, as a column of some kind."""
    bounds = {
        name: times([ORIGIN + second * 10**9 for second in seconds])
        for name, seconds in (("lower", LOWER), ("upper", UPPER), ("at", LOWER))
    }
    return pa.table({"type": [*"ABBABN"], "id": [1, 2, 3, 4, 5, 6], "host": ["h"] * 6, **bounds})


def stamps(unit: str, zone: str | None = None) -> Callable[[list[int]], pa.Array]:
    """Return a function that makes timestamps of times in nanoseconds since 1970."""
    kind = pa.timestamp(unit, zone)
    return lambda times: pa.array([time // UNITS[unit] for time in times]).cast(kind)


def in_ticks(column: pa.ChunkedArray | pa.Array, tick: int) -> list[float]:
    """Return times in ticks of so many nanoseconds; what is no timestamp is in ticks already."""
    if not pa.types.is_timestamp(column.type):
        return [float(value) for value in column.to_pylist()]
    factor = UNITS[column.type.unit]
    return [value * factor / tick for value in column.cast(pa.int64()).to_pylist()]


def ticks_of_text(cell: str, tick: int) -> list[int]:
    """Return the ends of a range as `show` writes it, in ticks."""
    if "T" not in cell:
        return [int(part) for part in cell.split(" \N{EN DASH} ")]
    ends = cell.removesuffix("Z").replace("Z ", " ").split(" \N{EN DASH} ")
    if "T" not in ends[-1]:
        ends[-1] = f"{ends[0].partition('T')[0]}T{ends[-1]}"
    return [int(np.datetime64(end, "ns").astype(np.int64)) // tick for end in ends]


def matched(table: pa.Table, tick: str) -> list[Any]:
    """Return the rows of a table of matches with their times in ticks."""
    length = TICKS[tick]
    kept = [
        in_ticks(table.column(name), length)
        if name.startswith(("range", "bucket", "lower", "upper"))
        else table.column(name).to_pylist()
        for name in table.column_names
    ]
    return sorted(zip(*kept, strict=True), key=str)


def of_report(events: pa.Table, tick: str) -> Any:
    """Return the data of a page's script, with its origin in ticks."""
    facts = data_of(str(uc.report(events, QUERY, stamp="at", tick=tick)))
    clock = facts.pop("clock")
    if clock["kind"] == "stamp":
        assert clock["tick"] == TICKS[tick] / 1000
        nanoseconds = clock["ms"] * 10**6 + round(clock["us"] * 1000)
        clock = {"kind": "tick", "origin": str(nanoseconds // TICKS[tick])}
    return {"clock": clock, **facts}


def of_timeline(events: pa.Table, tick: str) -> Any:
    """Return the ends of the bars, boxes and shades of a drawing in ticks."""
    matches = uc.match(events, QUERY, tick=tick)
    layers = values(uc.plot.timeline(matches, events, QUERY, tick=tick))
    scale = 1.0 if pa.types.is_int64(events.schema.field("lower").type) else 1e6 / TICKS[tick]
    return [
        [
            (pytest.approx(row["begin"] * scale, rel=1e-12), row.get("probability"))
            for row in layer
            # Names of lanes have no times.
            if "begin" in row
        ]
        for layer in layers
    ]


def of_counts(events: pa.Table, tick: str) -> Any:
    matches = uc.match(events, QUERY, tick=tick)
    plain = pa.types.is_int64(events.schema.field("lower").type)
    every = 4 * 10**9 // TICKS[tick] if plain else "4 s"
    (bars,) = values(uc.plot.counts(matches, events, QUERY, every=every, tick=tick))
    scale = 1.0 if plain else 1e6 / TICKS[tick]
    return [(pytest.approx(bar["begin"] * scale, rel=1e-12), bar["expected"]) for bar in bars]


def of_show(events: pa.Table, tick: str) -> Any:
    rows = uc.show(uc.match(events, QUERY, tick=tick), QUERY).rows
    ranges = [ticks_of_text(cell, TICKS[tick]) for cell in rows.column("range").to_pylist()]
    return ranges, rows.column("probability").to_pylist()


def of_posteriors(events: pa.Table, tick: str) -> Any:
    laws_of_events = uc.posteriors(uc.match(events, QUERY, tick=tick), events, QUERY, tick=tick)
    quantiles = ("q025", "q25", "q50", "q75", "q975")
    times = {name: in_ticks(laws_of_events.column(name), TICKS[tick]) for name in quantiles}
    # Means are rounded to the unit of the result.
    means = [
        pytest.approx(mean, abs=0.5 + 1e-9) for mean in in_ticks(laws_of_events.column("mean"), TICKS[tick])
    ]
    return times, means, laws_of_events.column("pmf").to_pylist(), laws_of_events.column("id").to_pylist()


def of_events_of(events: pa.Table, tick: str) -> Any:
    events_of_matches = uc.events_of(uc.match(events, QUERY, tick=tick), events, QUERY, tick=tick)
    return matched(events_of_matches.drop_columns("at"), tick)


def of_with_matches(events: pa.Table, tick: str) -> Any:
    matches = uc.match(events, QUERY, tick=tick)
    whole = matched(uc.with_matches(events, matches, "M", tick=tick).select(["type", "lower", "upper"]), tick)
    if TICKS[tick] < 10**6:
        return whole
    last = uc.with_matches(events, matches, "M", at="last", query=QUERY, tick=tick)
    composed = last.filter(pc.equal(last.column("type"), "M"))
    # Where ticks are finer than the columns the list has every tick of the columns' interval.
    laws = [[p for p in law if p] for law in composed.column("pmf").to_pylist()]
    ends = [in_ticks(composed.column(name), TICKS[tick]) for name in ("lower", "upper")]
    return whole, ends, laws


def of_explain(events: pa.Table, tick: str) -> Any:
    text = uc.explain(QUERY, events, tick=tick, analyze=True)
    # What is left out says how long it took, and what types columns have.
    return [line for line in text.splitlines() if not line.startswith(("run ", "result ", "tick "))]


def of_validate(events: pa.Table, tick: str) -> Any:
    noted = {**(events.schema.metadata or {}), b"uncertain_cep.tick": tick.encode()}
    return uc.validate(events.replace_schema_metadata(noted), query=QUERY)


def of_stream(events: pa.Table, tick: str) -> Any:
    rows = []
    for evaluation in ("sliced", "selectivity"):
        matcher = uc.IncrementalMatcher(QUERY, events.schema, tick=tick, evaluation=evaluation)
        batches = [matcher.push(events.slice(k, 2)) for k in (0, 2, 4)] + [matcher.close()]
        rows.append(matched(pa.Table.from_batches(batches), tick))
    assert rows[0] == rows[1]
    return rows


def of_match(events: pa.Table, tick: str) -> Any:
    matches = pa.Table.from_batches(uc.iter_matches(events, QUERY, tick=tick))
    counted = uc.match(events, f"{QUERY} RETURN EXPECTED COUNT EVERY 4 s", tick=tick)
    return matched(matches, tick), matched(counted, tick)


WAYS: Final = {
    name.removeprefix("of_"): way
    for name, way in globals().items()
    if name.startswith("of_")
}  # fmt: skip

QUICK: Final = (
    ("s", None, "1us"),
    ("s", BERLIN, "1ms"),
    ("s", "UTC", "2s"),
    ("ms", BERLIN, "1us"),
    ("ms", None, "1ns"),
    ("us", BERLIN, "500ms"),
    ("ns", "UTC", "1ns"),
)
"""Every unit, kind of zone and tick once; all of them together are drawn with ``--thorough``."""

KINDS: Final = [
    pytest.param(*kind, marks=() if kind in QUICK else pytest.mark.thorough)
    for kind in product(UNITS, (None, "UTC", BERLIN), TICKS)
    if TICKS[kind[2]] % UNITS[kind[0]] == 0 or UNITS[kind[0]] % TICKS[kind[2]] == 0
]


@pytest.mark.parametrize(("unit", "zone", "tick"), KINDS)
def test_all_that_shows_times_says_what_ticks_give(unit: str, zone: str | None, tick: str) -> None:
    length = TICKS[tick]
    plain = events_of(lambda times: pa.array([time // length for time in times]))
    timed = events_of(stamps(unit, zone))
    for name, way in WAYS.items():
        assert way(timed, tick) == way(plain, tick), name


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_days_are_refused_with_what_to_do(way: Callable[[pa.Table, str], Any]) -> None:
    days = events_of(lambda times: pa.array([date(2026, 10, 25)] * len(times)))
    if way is WAYS["validate"]:
        (fault,) = way(days, "1s")
        assert "have to_intervals make them" in str(fault)
        return
    with pytest.raises(TraceError, match=r"its type is date32.*have to_intervals make them"):
        way(days, "1s")


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("unit", UNITS)
def test_frames_that_keep_times_in_another_unit(unit: str, library: str) -> None:
    """Polars knows no whole seconds, so that matches and events come in units of their own."""
    events = events_of(stamps(unit))
    matches = uc.match(events, QUERY)
    if library == "pandas":
        moved: Any = matches.to_pandas()
    else:
        import polars as pl

        moved = pl.from_arrow(matches)
    assert values(uc.plot.timeline(moved, events, QUERY)) == values(uc.plot.timeline(matches, events, QUERY))
    shown = uc.show(moved, QUERY).rows.column("range").to_pylist()
    assert shown == uc.show(matches, QUERY).rows.column("range").to_pylist()
