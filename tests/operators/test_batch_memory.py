"""Memory of batches: a batch stays as it was, however it is held, and holds no more than its columns."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.kernel import always_compiled
from tests.cases.cut import THREADS


def events() -> pa.Table:
    lower = np.repeat(np.arange(60), 2)
    return pa.table(
        {
            "id": np.arange(100, 220),
            "type": ["A", "B"] * 60,
            "lower": lower,
            "upper": lower + np.arange(120) % 4,
        }
    )


QUERY: Final = "PATTERN SEQ(A a, B b) WITHIN 20"

KEPT: Final[list[Callable[[pa.RecordBatch], Any]]] = [
    lambda batch: batch,
    lambda batch: batch.slice(1, 3),
    lambda batch: batch.column(0),
    lambda batch: batch.column("confidence").to_numpy(),
    lambda batch: batch.column(2).to_numpy()[2:],
    lambda batch: pa.table([batch.column(3)], names=["latest"]),
]


def values(held: Any) -> list[Any]:
    return list(held.to_pylist()) if hasattr(held, "to_pylist") else [held.tolist()]


@given(THREADS, st.integers(1, 40), st.lists(st.sampled_from([*KEPT, None]), min_size=1, max_size=8))
def test_batches_stay_as_they_were(
    threads: int, batch_rows: int, ways: list[Callable[[pa.RecordBatch], Any] | None]
) -> None:
    """A batch that a caller holds is never overwritten by later ones."""
    held = []
    with always_compiled():
        for number, batch in enumerate(
            uc.iter_matches(events(), QUERY, batch_rows=batch_rows, threads=threads)
        ):
            way = ways[number % len(ways)]
            if way is not None:
                part = way(batch)
                held.append((part, values(part)))
            del batch
    assert all(values(part) == as_it_was for part, as_it_was in held)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_is_pickled_and_counted_without_the_room_behind_it(threads: int) -> None:
    with always_compiled():
        batch = next(iter(uc.iter_matches(events(), QUERY, threads=threads)))
    assert 0 < batch.num_rows < 2000
    held = 8 * batch.num_rows * batch.num_columns
    assert batch.nbytes == batch.get_total_buffer_size() == held
    pickled = pickle.dumps(batch)
    assert held < len(pickled) < held + 4000
    assert pickle.loads(pickled).equals(batch)
