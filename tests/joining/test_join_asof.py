"""The last event before each event, against all worlds of the events, and pandas where times are certain."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.moments import Moment, moments, table_of, times_of
from tests.joining.sides import Trace, traces

Chances = dict[tuple[int, int | None], Fraction]


def partners(
    tick: int, ticks: dict[int, int], direction: str, gap: int, tolerance: int | None, ties: str
) -> list[int | None]:
    """Return the partners of an event at a tick among those that happened; [None] if there are none."""
    sign = {"backward": -1, "forward": 1}
    away = {r: (other - tick) * sign[direction] for r, other in ticks.items() if direction in sign}
    if direction == "nearest":
        away = {r: abs(other - tick) for r, other in ticks.items()}
    near = {r: d for r, d in away.items() if d >= gap and (tolerance is None or d <= tolerance)}
    if not near:
        return [None]
    nearest = [r for r, d in near.items() if d == min(near.values())]
    if ties == "all":
        return [*nearest]
    if before := [r for r in nearest if ticks[r] <= tick and direction != "forward"]:
        return [max(before)]
    return [min(nearest)]


Options = tuple[str, int, int | None, str]
"""The direction, the least and the most between the two, and who wins ties."""


def chances(
    left: list[Moment], right: list[Moment], clocks: dict[str, int], keyed: bool, options: Options
) -> Chances:
    """Return the probability of each pair, and of no partner."""
    expected: Chances = {}
    for row, event in enumerate(left):
        rows = [r for r, other in enumerate(right) if not keyed or (event.key and event.key == other.key)]
        for weight, (tick, *ticks) in times_of([event, *(right[r] for r in rows)], clocks):
            for happened in product((True, False), repeat=len(rows)):
                share = weight * event.probability
                for r, did in zip(rows, happened, strict=True):
                    share *= right[r].probability if did else 1 - right[r].probability
                there = {r: other for r, other, did in zip(rows, ticks, happened, strict=True) if did}
                for partner in partners(tick, there, *options) if share else ():
                    expected[row, partner] = expected.get((row, partner), Fraction()) + share
    return expected


@given(
    traces(),
    st.booleans(),
    st.sampled_from(["backward", "forward", "nearest"]),
    st.sampled_from([0, 1]),
    st.sampled_from([None, 0, 1, 3]),
    st.sampled_from(["one", "all"]),
)
def test_partners_are_those_of_all_worlds(
    trace: Trace, keyed: bool, direction: str, gap: int, tolerance: int | None, ties: str
) -> None:
    left, right, clocks = trace
    expected = chances(left, right, clocks, keyed, (direction, gap, tolerance, ties))
    try:
        joined = uc.join_asof(
            table_of(left, clocks),
            table_of(right, clocks),
            by="key" if keyed else None,
            direction=direction,
            allow_exact_matches=not gap,
            tolerance=tolerance,
            ties=ties,
        ).to_pylist()
    except uc.OptionError:
        is_uniform = not clocks and not any(event.has_pmf for event in [*left, *right])
        if direction != "nearest" or is_uniform:
            raise
        return
    assert [(row["left_id"], row["right_id"]) for row in joined] == sorted(
        expected, key=lambda pair: (pair[0], len(right) if pair[1] is None else pair[1])
    )
    for row in joined:
        exact = expected[row["left_id"], row["right_id"]]
        assert math.isclose(row["probability"], exact, rel_tol=1e-9), (row, exact)
    if ties == "one":
        for number, event in enumerate(left):
            whole = sum(row["probability"] for row in joined if row["left_id"] == number)
            assert math.isclose(whole, event.probability)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("uv")), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("uv")), min_size=1, max_size=6),
    st.sampled_from(["backward", "forward", "nearest"]),
    st.booleans(),
    st.sampled_from([None, 0, 2]),
)
def test_certain_times_are_joined_as_pandas_does(
    left: list[tuple[int, str]],
    right: list[tuple[int, str]],
    direction: str,
    exact: bool,
    tolerance: int | None,
) -> None:
    frames = []
    for side in (left, right):
        ticks, keys = zip(*sorted(side, key=lambda row: row[0]), strict=True)
        columns = {"id": range(len(side)), "lower": ticks, "upper": ticks, "type": "E", "key": keys}
        frames.append(pd.DataFrame(columns))
    options: dict[str, Any] = {
        "by": "key",
        "direction": direction,
        "allow_exact_matches": exact,
        "tolerance": tolerance,
    }
    joined = uc.join_asof(*frames, **options)
    expected = pd.merge_asof(*frames, on="lower", suffixes=("", "_r"), **options)
    assert joined["probability"].tolist() == [1.0] * len(left)
    assert joined["right_id"].fillna(-1).tolist() == expected["id_r"].fillna(-1).tolist()


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_a_side_without_rows(direction: Any) -> None:
    events = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [1, 3], "upper": [2, 4]})
    empty = events.slice(0, 0)
    assert uc.join_asof(empty, events, direction=direction).num_rows == 0
    assert uc.join_asof(events, empty, direction=direction).column("probability").to_pylist() == [1.0, 1.0]


def test_worked_facts() -> None:
    left = moments([1], [5], [5])
    right = moments([2, 3, 4], [3, 4, 0], [6, 5, 2])

    def told(**options: Any) -> list[float]:
        rows = {
            row["right_id"]: row["probability"] for row in uc.join_asof(left, right, **options).to_pylist()
        }
        return [rows.get(name, 0.0) for name in (2, 3, 4, None)]

    assert told() == pytest.approx([1 / 8, 7 / 8, 0, 0])
    assert told(allow_exact_matches=False) == pytest.approx([1 / 4, 1 / 2, 1 / 4, 0])
    assert told(direction="forward") == pytest.approx([3 / 8, 3 / 8, 0, 1 / 4])
    assert told(direction="nearest") == pytest.approx([1 / 8, 7 / 8, 0, 0])
    # Half a chance for one of them leaves a chance of none.
    left, right = moments([1], [0], [9]), moments([2, 3], [0, 3], [4, 7])
    assert told() == pytest.approx([41 / 125, 119 / 250, 0, 49 / 250])
    right = right.append_column("probability", pa.array([1.0, 0.5]))
    assert told() == pytest.approx([141 / 250, 119 / 500, 0, 99 / 500])


def test_clocks_move_together() -> None:
    def by(clock: str, count: int) -> dict[str, list[object]]:
        return {"source": [clock] * count, "offset_lower": [-5] * count, "offset_upper": [5] * count}

    right = moments([2, 3], [3, 7], [13, 17], **by("g", 2))
    rows = uc.join_asof(moments([1], [5], [15], **by("h", 1)), right).to_pylist()
    assert [row["probability"] for row in rows] == pytest.approx([40 / 121, 45 / 121, 36 / 121])
    (row,) = uc.join_asof(moments([1], [5], [15], **by("g", 1)), right).to_pylist()
    assert (row["right_id"], row["probability"]) == (2, pytest.approx(1.0))


def test_nearest_of_times_that_are_not_independent_is_refused() -> None:
    clock = {"source": ["g"] * 2, "offset_lower": [-5] * 2, "offset_upper": [5] * 2}
    by_clock = moments([2, 3], [3, 7], [13, 17], **clock)
    for right in (by_clock, moments([2], [3], [4], pmf=[[0.25, 0.75]])):
        with pytest.raises(
            uc.OptionError, match="direction='nearest' takes uniform times: row 1 of the left"
        ):
            uc.join_asof(moments([1], [5], [15]), right, direction="nearest")


def test_the_earlier_of_two_as_near_wins() -> None:
    (row,) = uc.join_asof(
        moments([1], [5], [5]), moments([2, 3], [6, 4], [6, 4]), direction="nearest"
    ).to_pylist()
    assert row["right_id"] == 3


def test_a_sequence_goes_before_the_row() -> None:
    source = {"source": ["f"] * 2, "sequence": [2, 1]}
    (row,) = uc.join_asof(moments([1], [5], [5]), moments([2, 3], [5, 5], [5, 5], **source)).to_pylist()
    assert row["right_id"] == 2
    (row,) = uc.join_asof(moments([1], [5], [5]), moments([2, 3], [5, 5], [5, 5])).to_pylist()
    assert row["right_id"] == 3


def test_work_grows_with_what_is_undecided() -> None:
    """A sure sample hides all before it, so that a long history is not looked at."""
    count = 20_000
    ticks = np.arange(count) * 10
    samples = moments(list(range(count)), ticks.tolist(), (ticks + 4).tolist())
    tasks = moments(list(range(count)), (ticks + 7).tolist(), (ticks + 7).tolist())
    joined = uc.join_asof(tasks, samples, timeout=60)
    assert joined["right_id"].to_pylist() == list(range(count))
    assert joined["probability"].to_pylist() == [1.0] * count


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"direction": "both"}, "direction='both' is unknown: use one of backward, forward, nearest"),
        ({"ties": "both"}, "ties='both' is unknown: use one of one, all"),
        ({"tolerance": "5s"}, "plain ticks of unknown length"),
        ({"by": "host"}, "host"),
        ({"left_at": "middle"}, "left_at='middle' is unknown: use one of begin, end"),
    ],
)
def test_wrong_calls(options: dict[str, Any], text: str) -> None:
    with pytest.raises(uc.UncertainCepError, match=text):
        uc.join_asof(moments([1], [0], [2]), moments([2], [1], [4]), **options)
