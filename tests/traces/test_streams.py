"""The synthetic stream of the paper."""

from __future__ import annotations

import time
from bisect import bisect_left

import numpy as np
import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.traces.streams import value_stream


def test_the_stream_is_the_papers() -> None:
    stream = value_stream(2500, half_interval=7)
    assert stream.schema == pa.schema(
        [
            ("type", pa.string()),
            ("id", pa.int64()),
            ("lower", pa.int64()),
            ("upper", pa.int64()),
            ("value", pa.int64()),
        ]
    )
    assert stream.to_pylist() == [
        {"type": "E", "id": i, "lower": i - 7, "upper": i + 7, "value": i % 1000 + 1} for i in range(2500)
    ]


def test_each_key_sees_a_stream_of_its_own() -> None:
    keyed = value_stream(700, keys=7, series=30, spacing=3, half_interval=2)
    alone = value_stream(100, series=30, spacing=3, half_interval=2)
    for key in range(7):
        events_of_key = keyed.filter(pa.compute.equal(keyed["key"], key))
        assert events_of_key["id"].to_pylist() == list(range(key, 700, 7))
        assert events_of_key.select(["lower", "upper", "value"]) == alone.select(["lower", "upper", "value"])


def test_a_stretched_stream_is_the_same_in_another_unit_of_time() -> None:
    stream, stretched = value_stream(300), value_stream(300, spacing=100, half_interval=500)
    assert np.array_equal(np.asarray(stretched["lower"]), 100 * np.asarray(stream["lower"]))
    assert np.array_equal(np.asarray(stretched["upper"]), 100 * np.asarray(stream["upper"]))
    assert stretched["value"] == stream["value"]


def test_the_seed_chooses_the_long_intervals() -> None:
    first = value_stream(20_000, long_share=0.01, long_half_interval=2000, seed=4)
    assert first == value_stream(20_000, long_share=0.01, long_half_interval=2000, seed=4)
    assert first != value_stream(20_000, long_share=0.01, long_half_interval=2000, seed=5)
    assert value_stream(20_000, long_share=0.01) == value_stream(20_000, long_share=0.01, seed=0)
    length = np.asarray(first["upper"]) - np.asarray(first["lower"])
    assert set(length.tolist()) == {10, 4000}
    assert 150 <= int((length == 4000).sum()) <= 250
    assert np.array_equal(np.asarray(first["upper"]) + np.asarray(first["lower"]), 2 * np.arange(20_000))


def test_no_events_make_an_empty_table_of_the_same_columns() -> None:
    assert value_stream(0, keys=3).schema == value_stream(5, keys=3).schema
    assert value_stream(0).num_rows == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": -1}, "n must be 0 or more"),
        ({"half_interval": -1}, "half_interval must be 0 or more"),
        ({"series": 0}, "series must be 1 or more"),
        ({"keys": 0}, "keys must be 1 or more"),
        ({"spacing": 0}, "spacing must be 1 or more"),
        ({"seed": -3}, "seed must be 0 or more"),
        ({"long_half_interval": -1}, "long_half_interval must be 0 or more"),
        ({"long_share": 1.5}, "long_share must be from 0 to 1"),
        ({"spacing": 2**60}, "too long for int64"),
    ],
)
def test_an_option_out_of_range_is_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(uc.OptionError, match=message):
        value_stream(**{"n": 10, **options})


@pytest.mark.thorough
def test_ten_million_events_take_about_a_second() -> None:
    begin = time.process_time()
    value_stream(10_000_000, keys=100, long_share=0.01)
    assert time.process_time() - begin < 60


def _brute_force(stream: pa.Table, divisors: tuple[int, ...], window: int) -> set[tuple[int, ...]]:
    """All sequences of events that some choice of ticks puts in order within the window."""
    names = ("id", "lower", "upper", "value")
    rows = list(zip(*(np.asarray(stream[name]).tolist() for name in names), strict=True))
    rows.sort(key=lambda row: row[1])
    longest = max(row[2] - row[1] for row in rows)
    # Each partial sequence with, for every possible first tick, the earliest tick its last event can have.
    partial: list[tuple[tuple[int, ...], dict[int, int]]] = [((), {})]
    for divisor in divisors:
        candidates = [row for row in rows if row[3] % divisor == 0]
        lowers = [row[1] for row in candidates]
        longer = []
        for ids, earliest in partial:
            begin = bisect_left(lowers, min(earliest.values()) - longest) if ids else 0
            end = bisect_left(lowers, max(earliest) + window) if ids else len(candidates)
            for event, lower, upper, _ in candidates[begin:end]:
                reached = {
                    first: max(last + 1, lower)
                    for first, last in (
                        earliest or {tick: tick - 1 for tick in range(lower, upper + 1)}
                    ).items()
                    if max(last + 1, lower) <= min(upper, first + window - 1)
                }
                if reached and event not in ids:
                    longer.append(((*ids, event), reached))
        partial = longer
    return {ids for ids, _ in partial}


QUERY = """
PATTERN SEQ(E a, E b, E c)
WHERE a.value % 10 = 0 AND b.value % 11 = 0 AND c.value % 13 = 0 AND skip_till_any_match(a, b, c)
WITHIN 100
"""


@pytest.mark.parametrize("half_interval", [0, 5])
def test_matches_of_a_short_stream_by_brute_force(half_interval: int) -> None:
    stream = value_stream(3000, half_interval=half_interval)
    matches = uc.match(stream, QUERY, confidence=False)
    signatures = set(zip(*(matches[name].to_pylist() for name in "abc"), strict=True))
    assert matches.num_rows == len(signatures)
    assert signatures == _brute_force(stream, (10, 11, 13), 100)


# A value such as 110 fits two components. If one event could fill both, there would be 5,556,673 at 5.
@pytest.mark.thorough
@pytest.mark.parametrize(("half_interval", "total"), [(0, 3_330_811), (5, 5_393_680)])
def test_known_totals_of_a_million_events(half_interval: int, total: int) -> None:
    batches = uc.iter_matches(value_stream(1_000_000, half_interval=half_interval), QUERY, confidence=False)
    assert sum(batch.num_rows for batch in batches) == total
