"""Joins of rows with right sides against every condition tried on every pair."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from eventbased import Candidates
from eventbased.joins.pipeline import joined, right_of_candidates, right_of_matches
from eventbased.joins.tree_join import BEFORE, BEHIND, NEXT_LEFT, NEXT_RIGHT, JoinInputs, JoinStep
from tests.cases.layouts import candidates_of
from tests.eventbased.test_pivot_join import components, feasible, no_predicates

Int64 = NDArray[np.int64]
Event = tuple[int, int, int]


def laid_out(events: list[list[Event]], slack: int) -> Candidates:
    partition = [np.array([p for p, _, _ in part]) for part in events]
    lower = [np.array([low for _, low, _ in part]) for part in events]
    upper = [np.array([low + size for _, low, size in part]) for part in events]
    return candidates_of(lower, upper, slack + len(events) + 2, partition, 3)


def inputs_of(layout: Candidates, codes: Int64, limit: Int64) -> JoinInputs:
    alone = np.full(len(layout.lower), -1)
    length = len(layout.first) - 1
    twin = np.zeros((0, length), np.int64)
    return JoinInputs(layout.lower, layout.upper, alone, twin, limit, codes, no_predicates(length))


def equated(*rows: tuple[int, int, int]) -> Int64:
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def on_pairs(*rows: tuple[int, int, int]) -> Int64:
    return np.array([(*row, 0) for row in rows], dtype=np.int64).reshape(-1, 4)


def spare(left: list[int], right: list[int], w: int) -> Int64:
    """In a sequence only the window leaves something: to those that are not before, or behind, all others."""
    rows = [(0 if s < min(right) else w, 0 if s > max(right) else w) for s in left]
    return np.array(rows, dtype=np.int64)


@given(
    components().filter(lambda found: len(found) == 3),
    st.integers(0, 30),
    st.permutations(range(3)),
    st.data(),
    st.sampled_from([1, 2, 1000]),
    st.sampled_from([1, 3, 64]),
)
def test_two_joins_find_every_choice_once(
    events: list[list[Event]],
    slack: int,
    order: list[int],
    data: st.DataObject,
    last_rows: int,
    block_rows: int,
) -> None:
    """In any order, the last component as candidates or joined with the one before it beforehand.

    The events of the first two components of the order have numbers that have to be equal, null if -1; few
    and dense, or sparse.
    """
    layout = laid_out(events, slack)
    first = layout.first
    far = data.draw(st.sampled_from([1, 10**9]))
    total = int(first[-1])
    codes = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=total, max_size=total)), np.int64)
    codes = np.where(codes > 0, codes * far, codes)
    everything = inputs_of(layout, codes, np.zeros(0, np.int64))
    least, most = int(layout.lower[:total].min()), int(layout.lower[:total].max())
    a, b, c = order

    def step(left: list[int], right: int, alike: bool) -> JoinStep:
        places = np.arange(first[right], first[right + 1])
        side = right_of_candidates(layout, right, codes[places] if alike else None, 2 * far + 1)
        own = equated((left[0], 0, 1)) if alike else equated()
        room = spare(left, [right], slack)
        return JoinStep(np.array(left), room, side, least, most, own, on_pairs(), False, 0, 0)

    begin = np.arange(first[a], first[a + 1])
    if data.draw(st.booleans()):
        steps = [step([a], b, True), step([a, b], c, False)]
    else:
        inner = step([b], c, False)
        rows = [
            block[[b, c]]
            for block in joined(3, b, np.arange(first[b], first[b + 1]), [inner], everything, 5, block_rows)
        ]
        places = np.concatenate([np.empty((2, 0), np.int64), *rows], axis=1)
        side = right_of_matches(everything, np.array([b, c]), places, codes[places[0]], 2 * far + 1)
        between = [
            (BEFORE if a < t else BEHIND, a, row) for row, t in enumerate((b, c)) if min(b, c) < a < max(b, c)
        ]
        steps = [
            JoinStep(
                np.array([a]),
                spare([a], [b, c], slack),
                side,
                least,
                most,
                equated((a, 0, 1)),
                on_pairs(*between),
                False,
                0,
                0,
            )
        ]
    blocks = list(joined(3, a, begin, steps, everything, last_rows, block_rows))
    assert all(0 < block.shape[1] <= last_rows for block in blocks)
    found = [tuple(match) for block in blocks for match in block.T.tolist()]
    place_of = {(j, int(layout.source[i])): i for j in range(3) for i in range(first[j], first[j + 1])}
    expected = []
    for choice in itertools.product(*(range(len(part)) for part in events)):
        places_of = [place_of[j, i] for j, i in enumerate(choice)]
        alike = codes[places_of[a]] == codes[places_of[b]] >= 0
        chosen = tuple(part[i] for part, i in zip(events, choice, strict=True))
        if alike and feasible(chosen, 3 + slack):
            expected.append(tuple(places_of))
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("kind", [NEXT_RIGHT, NEXT_LEFT])
def test_what_starts_after_the_limit_is_not_next(kind: int) -> None:
    """All times are certain; an event may be followed by those that start up to its limit."""
    layout = laid_out([[(0, 1, 0)], [(0, t, 0) for t in (3, 5, 7)], [(0, t, 0) for t in (9, 11)]], 20)
    limit = np.full(len(layout.lower), 2**63 - 1)
    # That of component 0 by those of 1 up to time 5, the last one of 1 by those of 2 up to time 9.
    limit[0], limit[3] = layout.lower[2], layout.lower[4]
    everything = inputs_of(layout, np.zeros(0, np.int64), limit)
    if kind == NEXT_RIGHT:
        rows = np.array([[1, 2, 3, 3], [4, 4, 4, 5]])
        side, left = right_of_matches(everything, np.array([1, 2]), rows), 0
        pairs, expected = on_pairs((NEXT_RIGHT, 0, 0)), [(1, 4), (2, 4)]
    else:
        rows = np.array([[0, 0, 0], [1, 2, 3]])
        side, left = right_of_matches(everything, np.array([0, 1]), rows), 2
        pairs, expected = on_pairs((NEXT_LEFT, 2, 1)), [(0, 1), (0, 1), (0, 2), (0, 2), (0, 3)]
    step = JoinStep(np.array([left]), np.array([[20, 20]]), side, -1000, 1000, equated(), pairs, False, 0, 0)
    begin = np.arange(layout.first[left], layout.first[left + 1])
    found = [
        tuple(row)
        for block in joined(3, left, begin, [step], everything, 4)
        for row in block[side.components].T.tolist()
    ]
    assert sorted(found) == expected


def test_an_event_is_taken_once() -> None:
    """The same event as candidate 0 of component 0 and 2 of component 1, beside others that overlap it."""
    layout = laid_out([[(0, 0, 9), (0, 1, 9)], [(0, 0, 9), (0, 1, 9)]], 20)
    twin = np.array([[0, 2], [1, 3]])
    everything = inputs_of(layout, np.zeros(0, np.int64), np.zeros(0, np.int64))
    everything = everything._replace(event=np.array([0, 1, 0, 1, *[-1] * 8]), twin=twin)
    side = right_of_candidates(layout, 1)
    step = JoinStep(np.array([0]), np.array([[20, 20]]), side, -1000, 1000, equated(), on_pairs(), True, 0, 0)
    (found,) = joined(2, 0, np.arange(2), [step], everything, 10)
    assert sorted(map(tuple, found.T.tolist())) == [(0, 3), (1, 2)]
