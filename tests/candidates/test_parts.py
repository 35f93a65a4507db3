"""How many parts the candidates come in: fewer where all have as much work."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from uncertain_cep.candidates import parts
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.config.tuning import EVEN_PARTS_PER_THREAD, PARTS_PER_THREAD
from uncertain_cep.executor import candidates
from uncertain_cep.plan import make_plan

QUERY = "PATTERN SEQ(A a, B b) WITHIN 20"


def count_of(lower: np.ndarray[tuple[int], np.dtype[np.int64]], threads: int) -> int:
    n = len(lower)
    table = pa.table({"type": ["A", "B"] * (n // 2), "id": np.arange(n), "lower": lower, "upper": lower + 3})
    plan = make_plan(uc.parse(QUERY), table.schema)
    return len(parts.parts_of(plan, candidates(plan, table), threads))


@pytest.fixture(autouse=True)
def _few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LEAST_PART", 1)


@pytest.mark.parametrize("threads", [2, 5])
def test_even_events_come_in_few_parts_and_a_busy_hour_in_several(threads: int) -> None:
    even = np.arange(8000) * 10
    busy = np.sort(np.r_[even[:4000], 9000 + np.arange(4000)])
    assert count_of(even, threads) == EVEN_PARTS_PER_THREAD * threads
    assert count_of(busy, threads) == PARTS_PER_THREAD * threads


def test_a_long_call_has_parts_enough_to_say_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_IN_FEW_PARTS", 8000)
    assert count_of(np.arange(8000) * 10, 2) == PARTS_PER_THREAD * 2


def selections() -> st.SearchStrategy[tuple[Selection, int]]:
    """Draw candidates of two to four components that ascend, some intervals long, and which is the owner."""

    @st.composite
    def drawn(draw: st.DrawFn) -> tuple[Selection, int]:
        length = draw(st.integers(2, 4))
        lower, upper = [], []
        for _ in range(length):
            times = draw(st.lists(st.integers(-40, 40), min_size=1, max_size=24).map(sorted))
            sizes = draw(
                st.lists(st.sampled_from([0, 0, 1, 2, 30]), min_size=len(times), max_size=len(times))
            )
            lower.append(np.array(times, dtype=np.int64))
            upper.append(lower[-1] + sizes)
        rows = tuple(np.arange(len(times)) for times in lower)
        return Selection(rows, tuple(lower), tuple(upper), None, 1), draw(st.integers(0, length - 1))

    return drawn()


@given(selections(), st.integers(1, 50), st.integers(2, 9), st.data())
def test_each_event_of_the_owner_is_in_one_part_with_all_in_reach(
    drawn: tuple[Selection, int], window: int, count: int, data: st.DataObject
) -> None:
    """Also where neighbouring parts are joined."""
    selection, owner = drawn
    in_time = parts._InTime(selection, owner, window)
    all_cuts = in_time.cuts(count)
    joined = [parts._merged(all_cuts, data.draw(st.integers(1, len(all_cuts))))] if len(all_cuts) else []
    for cuts in (all_cuts, *joined):
        for event, (low, high) in enumerate(
            zip(selection.lower[owner].tolist(), selection.upper[owner].tolist(), strict=True)
        ):
            reached = [
                np.flatnonzero((lower < high + window) & (upper > low - window))
                for lower, upper in zip(selection.lower, selection.upper, strict=True)
            ]
            cuts_of_event = [cut for cut in cuts.tolist() if cut[0][owner] <= event < cut[1][owner]]
            assert len(cuts_of_event) <= 1
            if all(map(len, reached)):
                assert len(cuts_of_event) == 1
                for j, places in enumerate(reached):
                    if j != owner:
                        assert cuts_of_event[0][0][j] <= places[0]
                        assert places[-1] < cuts_of_event[0][1][j]


def test_parts_joined_are_those_of_so_few() -> None:
    even = np.arange(800) * 10
    selection = Selection((np.arange(800),) * 2, (even, even + 1), (even + 3, even + 4), None, 1)
    in_time = parts._InTime(selection, 0, 20)
    assert np.array_equal(parts._merged(in_time.cuts(8), 4), in_time.cuts(4))
    assert np.array_equal(parts._merged(in_time.cuts(8), 1), in_time.cuts(1))
