"""Events laid out on one time line: each candidate keeps its event, and classes are what joins rely on."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from eventbased import Concatenated, lay_out, partition_bases
from eventbased.config import SPARE

_SIZES = st.one_of(st.just(3), st.sampled_from([0, 1, 3, 4, 2**20]), st.just(2**40))
_EVENTS = st.lists(st.tuples(st.integers(-9, 99), _SIZES, st.integers(0, 2)), min_size=1, max_size=9)


def _numbers(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


@given(
    st.lists(_EVENTS, min_size=1, max_size=4),
    st.data(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 1]),
)
def test_each_candidate_is_an_event_where_it_was(
    parts: list[list[tuple[int, int, int]]], data: st.DataObject, ascend: bool, one: bool, step: int
) -> None:
    """Other events lie between those of two components, as in a stretch of a selection."""
    parts = [sorted(part) if ascend else part for part in parts]
    begin, end, held = [], [], []
    for part in parts:
        held += data.draw(_EVENTS)
        begin.append(len(held))
        held += part
        end.append(len(held))
    low, size, number = (_numbers(list(column)) for column in zip(*held, strict=True))
    partition = [_numbers([p for _, _, p in part]) for part in parts]
    lower = [_numbers([low for low, _, _ in part]) for part in parts]
    upper = [_numbers([low + size for low, size, _ in part]) for part in parts]
    shift, _, covered = partition_bases(lower, upper, None if one else partition, 1 if one else 3, 7)
    rows = 1000 + np.arange(len(held))[::-1]
    none = np.empty(0, dtype=np.int64)
    events = Concatenated(rows, low, low + size, none if one else number, _numbers(begin), _numbers(end))
    candidates, row = lay_out(events, shift, covered, step)
    candidates.check()
    assert candidates.first.tolist() == np.cumsum([0, *map(len, parts)]).tolist()
    assert candidates.position.tolist() == [step * j for j in range(len(parts))]
    for j, part in enumerate(parts):
        here = slice(candidates.first[j], candidates.first[j + 1])
        source = candidates.source[here]
        assert sorted(source.tolist()) == list(range(len(part)))
        assert row[here].tolist() == rows[begin[j] : end[j]][source].tolist()
        base = shift[np.zeros(len(part), np.int64) if one else partition[j]][source]
        assert candidates.base[here].tolist() == base.tolist()
        assert candidates.lower[here].tolist() == (lower[j][source] + base - j * step).tolist()
        assert candidates.upper[here].tolist() == (upper[j][source] + base - j * step).tolist()
    for column in (
        candidates.lower,
        candidates.upper,
        candidates.highest,
        candidates.source,
        candidates.base,
    ):
        assert column[len(row) :].tolist() == [0] * SPARE
