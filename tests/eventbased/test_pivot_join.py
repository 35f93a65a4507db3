"""The layout's invariants, and the join against the feasibility condition tried on every choice."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from confidence.timed.bounds import UNBOUND, Bounds, tightened
from eventbased import (
    PASS,
    PAUSED,
    SharedEvents,
    join,
    matches_of_spans,
    start_join,
)
from eventbased.joins.join_state import SIZE, JoinBytecode, PivotInputs
from eventbased.joins.pivot_join import UNBOUND_GAP
from tests.cases.layouts import candidates_of
from uncertain_cep.expressions.bytecode import binding_orders

Event = tuple[int, int, int]


@st.composite
def components(draw: st.DrawFn) -> list[list[Event]]:
    """For each component some events: partition, lower and upper bound; lengths mixed or all alike."""
    lengths = draw(st.sampled_from([(0,), (3,), (0, 1, 40), (2, 300, 5000)]))
    event = st.tuples(st.integers(0, 2), st.integers(0, 60), st.sampled_from(lengths))
    return draw(st.lists(st.lists(event, min_size=1, max_size=12), min_size=2, max_size=4))


def feasible(chosen: tuple[Event, ...], window: int, most: Sequence[int] = ()) -> bool:
    length = len(chosen)
    if len({partition for partition, _, _ in chosen}) > 1:
        return False
    low = [lower - j for j, (_, lower, _) in enumerate(chosen)]
    high = [lower + size - j for j, (_, lower, size) in enumerate(chosen)]
    ordered = all(low[i] <= high[j] for i in range(length) for j in range(i, length))
    if not most:
        return ordered and max(low) <= min(high) + window - length
    bounds: Bounds = {(j, j - 1): (0, most[j]) for j in range(1, length)}
    last, first = length - 1, 0
    bounds[last, first] = 0, min(window - length, bounds.get((last, first), (0, UNBOUND))[1])
    return tightened(np.array(low), np.array(high), bounds) is not None


def no_predicates(length: int) -> JoinBytecode:
    """Return empty predicates."""
    none = np.zeros(0, np.int64)
    return JoinBytecode(
        np.zeros((length, length + 1), np.int64), np.zeros((0, 2), np.int64), none, np.zeros(0),
        np.zeros(0, np.bool_), np.zeros((0, 3), np.int64),
    )  # fmt: skip


@given(
    components(),
    st.integers(0, 30),
    st.sampled_from([1, 2, 7, 1000]),
    st.sampled_from([1, 3, 64]),
    st.sampled_from([1, 7, 2**22]),
    st.one_of(st.just([]), st.lists(st.sampled_from([0, 1, 5, 20, UNBOUND_GAP]), min_size=4, max_size=4)),
)
def test_every_feasible_choice_comes_out_once(
    events: list[list[Event]], slack: int, capacity: int, block_rows: int, steps: int, most: list[int]
) -> None:
    length = len(events)
    most = most[:length]
    window = length + slack
    partition = [np.array([p for p, _, _ in part]) for part in events]
    lower = [np.array([low for _, low, _ in part]) for part in events]
    upper = [np.array([low + size for _, low, size in part]) for part in events]
    layout = candidates_of(lower, upper, slack + length + 2, partition, 3)
    layout.check()
    total = len(layout.lower)
    alone = SharedEvents(np.full(total, -1), np.zeros(total, np.int64), np.zeros((0, length), np.int64))
    search = start_join(length, len(layout.class_start), block_rows)
    spans = np.empty((3, capacity + 1), np.int64)
    bytecode = no_predicates(length)
    orders = binding_orders(length)
    no_limit, most_apart = np.zeros(0, np.int64), np.array(most, np.int64)
    inputs = PivotInputs(slack, layout, alone, no_limit, most_apart, orders, bytecode)
    kernel: Any = join
    found: list[tuple[int, ...]] = []
    while True:
        count, size = kernel(inputs, search, steps, capacity, spans)
        if count == PAUSED:
            assert size == 0
            continue
        if size == 0:
            break
        assert size == spans[SIZE, :count].sum() <= capacity
        places = np.empty((length, size), np.int64)
        matches_of_spans(orders[search.state[PASS]], search.blocks, spans, np.arange(size), places)
        found += [tuple(match) for match in layout.source[places].T.tolist()]
    choices = itertools.product(*(range(len(part)) for part in events))
    expected = [
        choice
        for choice in choices
        if feasible(tuple(part[i] for part, i in zip(events, choice, strict=True)), window, most)
    ]
    assert sorted(found) == expected
