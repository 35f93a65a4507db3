"""Bounds and contradictions of difference constraints, against every choice of values in a box."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncertain_cep.clocks.differences import (
    UNBOUNDED,
    Differences,
    bounds_from_origin,
    first_contradiction,
    positive_cycle,
)
from uncertain_cep.errors import TraceError

MOST = 4
NODES = 4

EDGE = st.tuples(st.integers(1, NODES - 1), st.integers(1, NODES - 1), st.integers(-5, 5))
EDGES = st.lists(EDGE, max_size=8)
BOX = np.array(list(itertools.product(range(-MOST, MOST + 1), repeat=NODES - 1)))
OTHERS = np.arange(1, NODES)
GIVEN = Differences.of((0, OTHERS, -MOST), (OTHERS, 0, -MOST))


def worlds(edges: list[tuple[int, int, int]]) -> Any:
    """Return all values in the box that meet constraints."""
    holds = np.ones(len(BOX), np.bool_)
    for tail, head, weight in edges:
        holds &= BOX[:, head - 1] - BOX[:, tail - 1] >= weight
    return BOX[holds]


def start() -> Any:
    return np.zeros(NODES, np.int64)


@given(EDGES)
def test_bounds_are_those_of_all_solutions(edges: list[tuple[int, int, int]]) -> None:
    system = Differences.of(GIVEN, *edges)
    cycle, solution = positive_cycle(system, start())
    solutions = worlds(edges)
    assert (cycle is None) == (len(solutions) > 0)
    if cycle is not None:
        assert system.weight[cycle].sum() > 0
        assert (system.head[cycle] == np.roll(system.tail[cycle], -1)).all()
        return
    assert (solution[system.head] - solution[system.tail] >= system.weight).all()
    lower, upper = bounds_from_origin(system, NODES)
    assert lower[1:].tolist() == solutions.min(axis=0).tolist()
    assert upper[1:].tolist() == solutions.max(axis=0).tolist()


@given(EDGES)
def test_a_contradiction_is_that_of_the_first_claims_that_have_one(edges: list[tuple[int, int, int]]) -> None:
    claimed, solution = Differences.of(*edges), start()
    kept = np.ones(len(edges), np.bool_)
    expected: list[int] = []
    for number, edge in enumerate(edges):
        if len(worlds([*(edges[place] for place in expected), edge])):
            expected.append(number)
    while True:
        cycle, solution = first_contradiction(GIVEN, claimed, kept, solution)
        if cycle is None:
            break
        kept[cycle[cycle < len(edges)].max()] = False
    assert np.flatnonzero(kept).tolist() == expected


def test_what_nothing_ties_has_no_bounds() -> None:
    lower, upper = bounds_from_origin(Differences.of((0, 1, 3), (1, 2, -1)), 4)
    assert lower.tolist() == [0, 3, 2, UNBOUNDED]
    assert upper.tolist() == [0, ~UNBOUNDED, ~UNBOUNDED, ~UNBOUNDED]


def test_a_long_chain_takes_each_node_once() -> None:
    nodes = 2_000
    chain = np.arange(nodes - 1)
    lower, _ = bounds_from_origin(Differences.of((chain, chain + 1, 1)), nodes)
    assert lower.tolist() == list(range(nodes))
    closed = Differences.of((chain, chain + 1, 1), (nodes - 1, 0, 2 - nodes))
    cycle, _ = positive_cycle(closed, np.zeros(nodes, np.int64))
    assert cycle is not None
    assert len(cycle) == nodes


def test_times_too_far_apart_are_an_error() -> None:
    with pytest.raises(TraceError, match="too far apart"):
        positive_cycle(Differences.of((0, 1, 2**61 + 1)), np.zeros(2, np.int64))
