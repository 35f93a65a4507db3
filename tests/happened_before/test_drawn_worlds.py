"""Drawn worlds are as likely as those that are enumerated with exact fractions, and no others are drawn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from datetime import datetime
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.shared.records import Records
from tests.cases.cases import Trace
from tests.cases.clocks import in_sequence
from tests.cases.language import LanguageCase, language_cases
from tests.cases.spans import Lasting, events_table
from uncertain_cep.testing.model import Clock, Event
from uncertain_cep.testing.worlds import worlds

BOUND = 5.0
"""Standard errors. Seeds are fixed."""

World = tuple[int | None, ...]
"""The tick of each event; None: it did not happen."""


def table_of(events: list[Event]) -> pa.Table:
    table = Trace(tuple(events), {}).table()
    ordered = [event.clock is not None and event.clock.ordered for event in events]
    return table.append_column("ordered", pa.array(ordered)) if any(ordered) else table


def assert_shares(counts: Mapping[Any, int], exact: Mapping[Any, Fraction]) -> None:
    assert sum(exact.values()) == 1
    assert counts.keys() <= exact.keys()
    n = sum(counts.values())
    for key, probability in exact.items():
        p = float(probability)
        error = math.sqrt(p * (1 - p) / n)
        assert abs(counts.get(key, 0) / n - p) <= BOUND * error + 1e-12, (key, p)


def enumerated(events: list[Event]) -> dict[World, Fraction]:
    exact: Counter[World] = Counter()
    for weight, world in worlds(events):
        exact[tuple(world.get(event) for event in events)] += weight  # type: ignore[assignment]
    return dict(exact)  # type: ignore[arg-type]


def ticks_of(frame: pa.Table, ids: list[Any]) -> World:
    assert frame["lower"].to_pylist() == frame["upper"].to_pylist()
    ticks = dict(zip(frame["id"].to_pylist(), frame["lower"].to_pylist(), strict=True))
    return tuple(ticks.get(one) for one in ids)


HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
SHARED, LAWFUL = Clock(-1, 1), Clock(0, 2, (HALF, Fraction(0), HALF))
IN_ORDER = Clock(0, 1, ordered=True)
TRACES: dict[str, list[Event]] = {
    "independent": [
        Event("A", 1, 0, 3),
        Event("B", 2, 2, 2),
        Event("B", 3, 4, 7, (Fraction(0), HALF, Fraction(0), HALF)),
        Event("B", 4, 1, 3, (QUARTER, QUARTER, HALF)),
    ],
    "may not have happened": [
        Event("A", 1, 0, 1, probability=QUARTER),
        Event("B", 2, 2, 3, (QUARTER, 3 * QUARTER), probability=HALF),
        Event("B", 3, 2, 3, probability=Fraction(0)),
    ],
    "clocks": [
        Event("A", 1, 2, 4, clock=SHARED),
        Event("B", 2, 3, 6, clock=SHARED),
        Event("B", 3, 3, 6, (QUARTER, 3 * QUARTER), clock=LAWFUL),
        Event("B", 4, 0, 2, clock=LAWFUL),
    ],
    "records alike": [Event("A", number, 0, 4, clock=IN_ORDER, sequence=number) for number in range(3)],
    "records": [
        Event("A", 0, 0, 3, clock=IN_ORDER, sequence=4),
        Event("A", 1, 0, 2, (QUARTER, 3 * QUARTER), clock=IN_ORDER, sequence=7, probability=HALF),
        Event("A", 2, 1, 4, (HALF, Fraction(0), HALF), clock=IN_ORDER, sequence=9),
        Event("A", 3, 2, 4, clock=IN_ORDER),
    ],
}


@pytest.mark.parametrize("name", TRACES)
def test_worlds_are_as_likely_as_they_are(name: str) -> None:
    events = TRACES[name]
    ids = [event.id for event in events]
    drawn = uc.draw_worlds(table_of(events), 4000, 1)
    assert_shares(Counter(ticks_of(world, ids) for world in drawn), enumerated(events))


@settings(deadline=None, max_examples=40)
@given(in_sequence(language_cases()), st.integers(0, 9))
def test_no_world_is_drawn_that_is_none(case: LanguageCase, seed: int) -> None:
    # Ids are unique within a partition alone.
    events = [Event(**{**fields_of(event), "id": place}) for place, event in enumerate(case.trace.events)]
    possible = enumerated(events)
    for world in uc.draw_worlds(table_of(events), 20, seed):
        assert ticks_of(world, [event.id for event in events]) in possible
        ticks = world["lower"].to_pylist()
        assert ticks == sorted(ticks)


def fields_of(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in event.__dataclass_fields__}


@pytest.mark.parametrize("name", TRACES)
def test_what_is_certain_holds_in_each_world(name: str) -> None:
    table = table_of(TRACES[name])
    if name.startswith("records"):
        table = table.drop_columns("ordered")
    rows = uc.order(table, pairs="all").to_pylist()
    for world in uc.draw_worlds(table, 50, 3):
        place = {one: at for at, one in enumerate(world["id"].to_pylist())}
        for row in rows:
            if row["before"] == 1.0 and {row["x"], row["y"]} <= place.keys():
                assert place[row["x"]] < place[row["y"]]


def test_sequences_break_the_ties_of_each_world() -> None:
    clock = Clock(-2, 2)
    events = [Event("A", n, 5 - 2, 5 + 2, clock=clock, sequence=9 - n) for n in range(4)]
    for world in uc.draw_worlds(table_of(events), 10, 0):
        assert world["id"].to_pylist() == [3, 2, 1, 0]
        assert uc.match(world, "PATTERN SEQ(A a, A b, A c, A d) WITHIN 1").num_rows == 1


QUERIES = (
    "PATTERN SEQ(A a, B b) WITHIN 4",
    "PATTERN SEQ(A a, !B n, B b) WITHIN 9",
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) AND TIME(b) - TIME(a) >= 2 WITHIN 9",
    "PATTERN SEQ(A a, B+ b[]) WITHIN 6",
)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("name", ["independent", "may not have happened", "clocks"])
def test_shares_of_worlds_are_confidences(name: str, query: str) -> None:
    events = table_of(TRACES[name])
    variables = [part for part in ("a", "b") if f" {part}" in query]

    def signatures(frame: pa.Table) -> list[Hashable]:
        return [repr([row[variable] for variable in variables]) for row in frame.to_pylist()]

    matches = uc.match(events, query)
    exact = dict(zip(signatures(matches), matches["confidence"].to_pylist(), strict=True))
    n = 300
    counts: Counter[Hashable] = Counter()
    for world in uc.draw_worlds(events, n, 11):
        counts.update(signatures(uc.match(world, query)))
    assert counts.keys() <= exact.keys()
    for key, p in exact.items():
        assert abs(counts[key] / n - p) <= BOUND * math.sqrt(p * (1 - p) / n) + 1e-12


SPANS = (
    Lasting("A", 1, begin=(0, 4), end=(2, 6), length=(2, 3)),
    Lasting("A", 2, begin=(0, 2), length=(1, 3), clock="h"),
    Lasting("A", 3, end=(4, 9), length=(5, 5), clock="h"),
    Lasting("A", 4, begin=(0, 3), end=(0, 3)),
    Lasting("A", 5, point=(1, 2), clock="h"),
)


def test_spans_have_all_their_pairs_alike_likely() -> None:
    clocks = {"h": (-1, 1)}
    table = events_table(SPANS, clocks)
    drawn = [
        {row["id"]: (row["begin_lower"], row["end_upper"]) for row in world.to_pylist()}
        for world in uc.draw_worlds(table, 4000, 2)
    ]
    for event in SPANS:
        offsets = range(-1, 2) if event.clock else range(1)
        pairs = list(product(event.pairs(), offsets))
        exact: Counter[tuple[int, int]] = Counter()
        for (begin, end), offset in pairs:
            exact[begin + offset, end + offset] += Fraction(1, len(pairs))  # type: ignore[assignment]
        assert_shares(Counter(world[event.id] for world in drawn), exact)  # type: ignore[arg-type]
    # Those of one clock move together: the length of 3 is known, and so is how far 5 may be from it.
    assert all(world[3][1] - world[3][0] == 5 for world in drawn)
    apart = {world[3][1] - world[5][0] for world in drawn}
    assert apart == {end - tick for end in range(4, 10) for tick in (1, 2)}


THIRD = Fraction(1, 3)
WEIGHED = (
    Lasting("A", 1, begin=(0, 2), end=(2, 5), laws=(("begin", (HALF, Fraction(0), HALF)),)),
    Lasting("A", 2, begin=(0, 2), length=(1, 3), laws=(("length", (QUARTER, Fraction(0), 3 * QUARTER)),)),
    Lasting(
        "A", 3, begin=(0, 2), end=(1, 3), length=(0, 2),
        laws=(
            ("begin", (THIRD,) * 3), ("end", (HALF, QUARTER, QUARTER)), ("length", (HALF, HALF, Fraction(0))),
        ),
    ),
    Lasting("A", 4, begin=(0, 3), end=(0, 3)),
    Lasting("A", 5, end=(4, 5), length=(1, 2), clock="h", laws=(("end", (QUARTER, 3 * QUARTER)),)),
)  # fmt: skip


def test_spans_have_the_probabilities_of_their_laws() -> None:
    table = events_table(WEIGHED, {"h": (-1, 1)})
    drawn = [
        {row["id"]: (row["begin_lower"], row["end_upper"]) for row in world.to_pylist()}
        for world in uc.draw_worlds(table, 4000, 5)
    ]
    for event in WEIGHED:
        offsets = range(-1, 2) if event.clock else range(1)
        exact: Counter[tuple[int, int]] = Counter()
        for ((begin, end), weight), offset in product(event.law().items(), offsets):
            exact[begin + offset, end + offset] += weight / len(offsets)  # type: ignore[assignment]
        assert_shares(Counter(world[event.id] for world in drawn), exact)  # type: ignore[arg-type]


def test_spans_are_matched_as_they_were_drawn() -> None:
    table = events_table(SPANS, {"h": (-1, 1)})
    query = "PATTERN AND(A a, A b) WHERE a.id = 1 AND b.id = 2 AND a OVERLAPS b WITHIN 20"
    (p,) = uc.match(table, query)["confidence"].to_pylist()
    n = 300
    share = sum(uc.match(world, query).num_rows for world in uc.draw_worlds(table, n, 4)) / n
    assert abs(share - p) <= BOUND * math.sqrt(p * (1 - p) / n)


@pytest.mark.parametrize("laws", [None, [(0, np.array([0.5, 0.0, 0.5])), (1, np.array([0.0, 1.0, 1.0]))]])
def test_records_are_drawn_by_their_laws(laws: Any) -> None:
    records, generator = Records(2, 4, laws), np.random.default_rng(0)
    drawn = np.array([records.draw(generator) for _ in range(3000)])
    assert (np.diff(drawn, axis=1) >= 0).all()
    for place in range(2):
        share = np.bincount(drawn[:, place], minlength=4) / 3000
        assert share == pytest.approx(records.time(place), abs=0.05)


def test_a_long_chain_of_records_is_drawn_at_once() -> None:
    ordered = Clock(0, 0, ordered=True)
    events = [Event("A", n, 0, 86_399, clock=ordered, sequence=n) for n in range(200)]
    (world,) = uc.draw_worlds(table_of(events), 1, 0)
    assert world["id"].to_pylist() == list(range(200))


def test_seeds() -> None:
    events = table_of(TRACES["clocks"])
    ten = list(uc.draw_worlds(events, 10, 5))
    assert ten == list(uc.draw_worlds(events, 12, 5))[:10]
    assert ten != list(uc.draw_worlds(events, 10, 6))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_kinds_of_frames_and_times(make: Any) -> None:
    events = make(
        {
            "type": ["A", "B"],
            "id": ["x", "y"],
            "lower": [datetime(2024, 5, 1, 0, 0, second) for second in (0, 4)],
            "upper": [datetime(2024, 5, 1, 0, 0, second) for second in (3, 9)],
            "tick": ["500ms"] * 2,
            "probability": [1.0, 1.0],
        }
    )
    worlds = list(uc.draw_worlds(events, 30, 0))
    for world in worlds:
        assert type(world) is type(events)
        assert "probability" not in world.columns
        assert uc.match(world, "PATTERN SEQ(A a, B b) WITHIN 10 s").shape[0] == 1
    ticks = {world["lower"][0] for world in worlds}
    assert len(ticks) > 4


def test_events_that_are_none() -> None:
    events = table_of([Event("A", 1, 0, 3)])
    assert [world.num_rows for world in uc.draw_worlds(events.slice(0, 0), 2, 0)] == [0, 0]
    calls: tuple[tuple[str, Any], ...] = (
        ("n=0: it must be a whole number, at least 1", lambda: uc.draw_worlds(events, 0, 0)),
        ("seed=-1: it must be a whole number", lambda: uc.draw_worlds(events, 1, -1)),
        ("n=True", lambda: uc.draw_worlds(events, True, 0)),
    )
    for message, call in calls:
        with pytest.raises(uc.OptionError, match=message):
            call()
    with pytest.raises(uc.TraceError, match="upper"):
        uc.draw_worlds(events.drop_columns("upper"), 1, 0)
