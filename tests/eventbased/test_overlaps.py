"""The greedy choice of intervals against its definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventbased import choose_non_overlapping

_ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 6)), max_size=12)


@given(_ROWS, st.randoms(use_true_random=False))
def test_choice(rows: list[tuple[int, int, int]], random: st.DataObject) -> None:
    rows = sorted(rows)
    partition = np.array([row[0] for row in rows], dtype=np.int64)
    lower = np.array([row[1] for row in rows], dtype=np.int64)
    upper = lower + np.array([row[2] for row in rows], dtype=np.int64)
    best = list(range(len(rows)))
    random.shuffle(best)  # type: ignore[attr-defined]
    kept: list[int] = []
    for i in best:
        if all(partition[i] != partition[j] or lower[i] > upper[j] or upper[i] < lower[j] for j in kept):
            kept.append(i)
    chosen = np.empty(len(rows), dtype=np.bool_)
    choose_non_overlapping(np.array(best, dtype=np.int64), partition, lower, upper, chosen)
    assert np.flatnonzero(chosen).tolist() == sorted(kept)
