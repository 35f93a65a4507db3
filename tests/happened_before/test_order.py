"""The order of two events, against all worlds of the two by exact fractions."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.moments import Moment, clocked_moments, moments, table_of, times_of
from uncertain_cep.happened_before.pair_probabilities import uniform_pairs

Trace = tuple[list[Moment], dict[str, int]]
"""Events, and how wide the offset of each clock is."""


@st.composite
def traces(draw: st.DrawFn, largest: int = 5) -> Trace:
    """Draw events, and the clocks of which some are."""
    clocks = {name: draw(st.integers(0, 3)) for name in "gh"}
    return draw(st.lists(clocked_moments((None, *clocks)), min_size=2, max_size=largest)), clocks


def orders(x: Moment, y: Moment, clocks: dict[str, int]) -> tuple[Fraction, Fraction, Fraction]:
    """Return the probabilities of before, after and neither, over all worlds of two events."""
    before = after = neither = Fraction()
    for weight, (first, second) in times_of([x, y], clocks):
        rank = 0
        if x.clock is not None and x.clock == y.clock and x.sequence is not None and y.sequence is not None:
            rank = x.sequence - y.sequence
        if (first, rank) < (second, 0):
            before += weight
        elif (first, rank) > (second, 0):
            after += weight
        else:
            neither += weight
    return before, after, neither


def same_key(events: list[Moment], x: int, y: int, keyed: bool) -> bool:
    return not keyed or (events[x].key is not None and events[x].key == events[y].key)


@given(traces(), st.booleans(), st.sampled_from(["open", "all"]), st.sampled_from([None, 0, 1, 3]))
def test_pairs_are_those_of_all_worlds(trace: Trace, keyed: bool, pairs: str, within: int | None) -> None:
    events, clocks = trace
    table = table_of(events, clocks, sequences=True)
    rows = uc.order(table, by="key" if keyed else None, within=within, pairs=pairs).to_pylist()
    lower, upper = (table.column(name).to_pylist() for name in ("lower", "upper"))
    # Without ticks of probability 0 at the ends.
    for n, event in enumerate(events):
        lower[n] += next(k for k, weight in enumerate(event.weights) if weight)
        upper[n] -= next(k for k, weight in enumerate(reversed(event.weights)) if weight)
    expected = {}
    for x, y in combinations(range(len(events)), 2):
        chances = orders(events[x], events[y], clocks)
        near = within is None or max(lower[x] - upper[y], lower[y] - upper[x]) <= within
        is_expected = max(chances[:2]) < 1 if pairs == "open" else near
        if same_key(events, x, y, keyed) and is_expected:
            expected[frozenset((x, y))] = (x, chances)
    assert {frozenset((row["x"], row["y"])) for row in rows} == set(expected)
    assert len(rows) == len(expected)
    for row in rows:
        x, (before, after, neither) = expected[frozenset((row["x"], row["y"]))]
        if row["x"] != x:
            before, after = after, before
        for name, exact in (("before", before), ("after", after), ("neither", neither)):
            assert math.isclose(row[name], exact, rel_tol=1e-9, abs_tol=1e-15), (row, exact)
        if keyed:
            assert row["key"] == events[x].key
    doubts = [row["before"] * row["after"] for row in rows]
    assert doubts == sorted(doubts, reverse=True)


@given(traces(largest=7), st.booleans())
def test_covers_are_the_reduction_of_what_is_certain(trace: Trace, keyed: bool) -> None:
    events, clocks = trace
    certain = {
        (x, y)
        for x, y in permutations(range(len(events)), 2)
        if same_key(events, x, y, keyed) and orders(events[x], events[y], clocks)[0] == 1
    }
    reduced = {
        (x, y)
        for x, y in certain
        if not any((x, z) in certain and (z, y) in certain for z in range(len(events)))
    }
    covers = uc.order(table_of(events, clocks, sequences=True), by=["key"] if keyed else None, pairs="cover")
    assert covers.column("before").to_pylist() == [1.0] * covers.num_rows
    assert len(covers) == len(reduced)
    assert {(row["x"], row["y"]) for row in covers.to_pylist()} == reduced


@pytest.mark.parametrize(
    ("readings", "width"),
    [
        # The second event is between: by bounds; by bounds and the clock; the other way round; by the clock.
        ([(0, "g"), (5, None), (9, "g")], 1),
        ([(0, None), (5, "g"), (6, "g")], 3),
        ([(0, "g"), (1, "g"), (5, None)], 3),
        ([(0, "g"), (2, "g"), (5, "g")], 3),
    ],
)
def test_what_is_between_is_no_cover(readings: list[tuple[int, str | None]], width: int) -> None:
    certain = (Fraction(1),)
    events = [Moment(at, certain, False, clock, None, None, Fraction(1)) for at, clock in readings]
    covers = uc.order(table_of(events, {"g": width}), pairs="cover").to_pylist()
    assert [(row["x"], row["y"]) for row in covers] == [(0, 1), (1, 2)]


@given(st.lists(st.integers(-(10**15), 10**15) | st.integers(-3, 3), min_size=4, max_size=4))
def test_closed_forms_are_exact(ticks: list[int]) -> None:
    a, b, c, d = min(ticks[:2]), max(ticks[:2]), min(ticks[2:]), max(ticks[2:])
    sizes = (b - a + 1) * (d - c + 1)

    def earlier(a: int, b: int, c: int, d: int) -> Fraction:
        below = max(min(b, c - 1) - a + 1, 0)
        first, last = max(a, c), min(b, d - 1)
        series = (d - first + d - last) * (last - first + 1) // 2 if first <= last else 0
        return Fraction(below * (d - c + 1) + series, sizes)

    expected = earlier(a, b, c, d), earlier(c, d, a, b), Fraction(max(min(b, d) - max(a, c) + 1, 0), sizes)
    assert sum(expected) == 1
    bounds = (np.array([tick]) for tick in (a, b, c, d))
    for value, exact in zip(uniform_pairs(*bounds), expected, strict=True):
        assert math.isclose(value[0], exact, rel_tol=1e-14)


def events_of(lower: list[int], upper: list[int], **columns: Any) -> pa.Table:
    return moments(list(range(1, len(lower) + 1)), lower, upper, **columns)


def test_worked_facts() -> None:
    events = events_of([0, 2, 5], [2, 4, 6])
    assert [tuple(row.values()) for row in uc.order(events).to_pylist()] == [(1, 2, 8 / 9, 0.0, 1 / 9)]
    covers = uc.order(events, pairs="cover").to_pylist()
    assert [(row["x"], row["y"]) for row in covers] == [(1, 3), (2, 3)]
    # Existence and types do not matter.
    doubtful = events.append_column("probability", pa.array([0.5, 0.25, 1.0]))
    assert uc.order(doubtful).equals(uc.order(events))


def test_kinds_of_frames_and_times() -> None:
    start = datetime(2026, 3, 1, 8, tzinfo=UTC)
    lower = [start + timedelta(seconds=n) for n in (0, 5, 60)]
    upper = [time + timedelta(seconds=9) for time in lower]
    table = pa.table({"type": ["A"] * 3, "id": ["x", "y", "z"], "lower": lower, "upper": upper})
    whole = uc.order(table, tick="1s", pairs="all")
    assert uc.order(table.to_pandas(), tick="1s", pairs="all").equals(whole.to_pandas())
    assert uc.order(pl.from_arrow(table), tick="1s", pairs="all").equals(pl.from_arrow(whole))
    near = uc.order(table, tick="1s", pairs="all", within="45s").to_pylist()
    assert [(row["x"], row["y"]) for row in near] == [("x", "y")]
    assert len(uc.order(table, tick="1s", pairs="all", within="46.5s")) == 2
    assert len(uc.order(table, tick="1s", pairs="cover", within=46)) == 1
    assert isinstance(uc.order(table.to_pandas(), tick="1s"), pd.DataFrame)
    assert uc.order(table.slice(0, 0)).column_names == ["x", "y", "before", "after", "neither"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"pairs": "some"}, "pairs='some' is unknown: use open, all, cover"),
        ({"by": "host"}, "'host'"),
        ({"within": "5s"}, "plain ticks of unknown length"),
        ({"within": -1}, "at least 0"),
    ],
)
def test_wrong_calls(options: dict[str, Any], text: str) -> None:
    with pytest.raises(uc.UncertainCepError, match=text):
        uc.order(events_of([0, 2], [2, 4]), **options)


def test_key_named_as_a_column_of_the_result() -> None:
    with pytest.raises(uc.OptionError, match="rename it"):
        uc.order(events_of([0], [2], before=[1]), by="before")


def test_overlapping_records_of_an_ordered_source_are_refused() -> None:
    clock = {"source": ["f"] * 2, "offset_lower": [0, 0], "offset_upper": [0, 0], "sequence": [1, 2]}
    events = events_of([0, 0], [23, 23], **clock)
    assert uc.order(events).to_pylist()[0]["before"] == pytest.approx(300 / 576)
    with pytest.raises(uc.OptionError, match="ordered source f overlap"):
        uc.order(events.append_column("ordered", pa.array([True, True])))


def test_limits_hold() -> None:
    count = 40_000
    events = events_of([0] * count, [9] * count)
    with pytest.raises(uc.MemoryLimitError):
        uc.order(events, memory_limit="2GB")
