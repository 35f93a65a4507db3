"""Lists laid end to end, against lists of lists."""

from __future__ import annotations

from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from confidence.flat_lists import counting, end_to_end, starts_of, taken

LISTS = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6)


def flat(lists: list[list[int]]) -> tuple[list[int], list[int]]:
    """Return the entries of lists, and where each list begins."""
    return list(chain.from_iterable(lists)), [sum(map(len, lists[:n])) for n in range(len(lists) + 1)]


@given(LISTS, st.data())
def test_some_lists_are_taken_in_any_order(lists: list[list[int]], data: st.DataObject) -> None:
    entries, start = flat(lists)
    which = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=6)) if lists else []
    places, starts = taken(np.array(start), np.array(which, dtype=np.int64))
    assert ([entries[n] for n in places], starts.tolist()) == flat([lists[n] for n in which])
    mask = [n in which for n in range(len(lists))]
    places, starts = taken(np.array(start), np.array(mask, dtype=np.bool_))
    assert ([entries[n] for n in places], starts.tolist()) == flat([lists[n] for n in sorted({*which})])


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4)), max_size=6))
def test_spans_are_laid_end_to_end(spans: list[tuple[int, int]]) -> None:
    first, sizes = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    numbers, starts = end_to_end(first, sizes)
    laid = [list(range(begin, begin + size)) for begin, size in spans]
    assert (numbers.tolist(), starts.tolist()) == flat(laid)
    assert starts_of(sizes).tolist() == starts.tolist()
    assert counting(sizes).tolist() == flat([list(range(size)) for _, size in spans])[0]
