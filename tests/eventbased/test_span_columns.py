"""Matches that are not likely enough are left out of the columns that a join fills."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventbased import MatchColumns, keep_likely
from eventbased.config import SPARE

_STRETCHES = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(1, 700)), max_size=9)


@given(
    _STRETCHES,
    _STRETCHES,
    st.sampled_from([1e-300, 0.25, 0.5, 0.5 + 2**-53, 1.0]),
    st.integers(1, 5),
    st.booleans(),
)
def test_likely_matches_are_kept_in_their_order(
    before: list[tuple[float, int]],
    stretches: list[tuple[float, int]],
    least: float,
    length: int,
    is_plain: bool,
) -> None:
    found = np.array([value for value, count in [*before, *stretches] for _ in range(count)])
    begin, end = sum(count for _, count in before), len(found)
    whole = np.arange((length + 2) * (end + SPARE)).reshape(length + 2, -1)
    confidence = np.append(found, np.full(SPARE, 1.0))
    columns = MatchColumns(
        whole[:length].copy(), whole[length].copy(), whole[length + 1].copy(), confidence, least
    )
    keep = getattr(keep_likely, "plain", keep_likely) if is_plain else keep_likely
    kept = int(keep(columns, begin, end))
    places = [*range(begin), *(i for i in range(begin, end) if found[i] >= least)]
    assert kept == len(places)
    for column, given_one in zip([*columns.events, columns.lower, columns.upper], whole, strict=True):
        assert column[:kept].tolist() == given_one[places].tolist()
    assert confidence[:kept].tolist() == found[places].tolist()
