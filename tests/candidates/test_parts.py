"""How many parts the candidates come in: fewer where all have as much work."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.candidates import parts
from uncertain_cep.config import EVEN_PARTS_PER_THREAD, PARTS_PER_THREAD
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
