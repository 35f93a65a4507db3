"""The events that several components can take, against looking at every pair of candidates."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventbased.config import SPARE
from eventbased.joins.join_state import COMPONENT_BITS
from tests.eventbased.test_narrowing import laid_out
from uncertain_cep.candidates.layout import shared_events


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True), min_size=2, max_size=6),
    st.sampled_from([0, 2**40]),
)
def test_they_are_those_with_equal_rows(parts: list[list[int]], low: int) -> None:
    rows = np.concatenate([np.array(part) for part in parts]) + low
    shared = shared_events(laid_out([[(0, 0)] * len(part) for part in parts]), rows)
    component = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    places = [np.flatnonzero(rows == row) for row in rows]
    several = [len(found) > 1 for found in places]
    assert (shared.event >= 0).tolist() == several
    # Each has a number of its own.
    assert sorted(set(shared.event[several].tolist())) == list(range(len(shared.twin)))
    for i, found in enumerate(places):
        expected = np.full(len(parts), -1)
        if several[i]:
            expected[component[found]] = found
            assert shared.twin[shared.event[i]].tolist() == expected.tolist()
        bits = sum(1 << j % COMPONENT_BITS for j in component[found].tolist()) if several[i] else 0
        assert shared.fills[i] == bits
    assert shared.fills[len(rows) :].tolist() == [0] * SPARE
