"""Planners: from a cost model to the order or tree in which events are joined.

They are those of Kolchinsky and Schuster (PVLDB 2018, section 7.1). Orders: the pattern's, by frequency,
greedy, iterative improvement from a random or the greedy order, dynamic programming. Trees: ZStream over the
pattern's or the greedy order of leaves, dynamic programming over all sets of components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.optimizer.cost_model import CostModel
from uncertain_cep.plan.trees import Join, Leaf, Tree, left_deep

__all__ = ["BY_NAME"]

Int64 = NDArray[np.int64]
Float = NDArray[np.float64]

_MOVES_AT_ONCE: Final = 64
"""Moves of iterative improvement whose costs are computed together; the best of them is taken."""

_MOST_MOVES: Final = 1024
"""Moves that one run of iterative improvement tries before it is content with what it has."""

_PLANNER_SEED: Final = 20180
"""Of iterative improvement, so that a plan depends on the statistics alone."""


def _by_frequency(model: CostModel) -> list[int]:
    """Return the components by rising number of candidates. O(l log l)."""
    order: list[int] = np.argsort(model.numbers(model.singles)[2], kind="stable").tolist()
    return order


def _greedy_order(model: CostModel) -> list[int]:
    """Return the order that begins with the rarest component and goes on with the cheapest step. O(l^2)."""
    singles = model.singles
    order = [int(np.argmin(model.numbers(singles)[2]))]
    while len(order) < model.length:
        unplaced = np.array([j for j in range(model.length) if j not in order], dtype=np.int64)
        bound = np.full(len(unplaced), int(singles[order].sum()), dtype=np.int64)
        order.append(int(unplaced[np.argmin(model.join_costs(bound, singles[unplaced])[0])]))
    return order


@cache
def _moves(length: int) -> Int64:
    """Return 0..l-1 after each swap of two places and each cycle of three: (m, l) int64."""
    exchanges: list[tuple[list[int], list[int]]] = [
        ([a, b], [b, a]) for a, b in combinations(range(length), 2)
    ]
    for a, b, c in combinations(range(length), 3):
        exchanges += [([a, b, c], [b, c, a]), ([a, b, c], [c, a, b])]
    moves = np.tile(np.arange(length), (len(exchanges), 1))
    for move, (places, taken) in zip(moves, exchanges, strict=True):
        move[places] = taken
    return moves


def _improved(model: CostModel, order: Sequence[int] | None = None) -> list[int]:
    """Return the local minimum that swaps and cycles lead to from an order, by default a random one."""
    rng = np.random.default_rng(_PLANNER_SEED)
    best = np.array(rng.permutation(model.length) if order is None else order, dtype=np.int64)
    moves = _moves(model.length)
    if not len(moves):
        return [int(component) for component in best]
    cost = float(model.order_costs(best[None, :])[0])
    tried = 0
    improving = True
    while improving and tried < _MOST_MOVES:
        improving = False
        shuffled = rng.permutation(len(moves))
        for start in range(0, len(moves), _MOVES_AT_ONCE):
            neighbours = best[moves[shuffled[start : start + _MOVES_AT_ONCE]]]
            costs = model.order_costs(neighbours)
            tried += len(neighbours)
            cheapest = int(np.argmin(costs))
            if costs[cheapest] < cost * (1.0 - 1e-12):
                best, cost = neighbours[cheapest], float(costs[cheapest])
                improving = True
                break
            if tried >= _MOST_MOVES:
                break
    return [int(component) for component in best]


@cache
def _by_size(length: int) -> tuple[Int64, ...]:
    """Return the sets of 0..l components as bits, by their size."""
    masks = np.arange(1 << length, dtype=np.int64)
    sizes = np.bitwise_count(masks)
    return tuple(masks[sizes == size] for size in range(length + 1))


def _best_order(model: CostModel) -> list[int]:
    """Return the cheapest order. O(2^l l)."""
    length = model.length
    best = np.zeros(1 << length)
    last = np.zeros(1 << length, dtype=np.int64)
    for masks in _by_size(length)[2:]:
        best[masks] = np.inf
        # Of two orders that cost the same, that of the pattern.
        for j in reversed(range(length)):
            single = np.int64(1 << j)
            holding = masks[(masks & single) != 0]
            before = holding ^ single
            costs = best[before] + model.join_costs(before, np.full(len(before), single))[0]
            better = costs < best[holding]
            best[holding[better]] = costs[better]
            last[holding[better]] = j
    order: list[int] = []
    mask = model.whole
    while mask & (mask - 1):
        order.append(int(last[mask]))
        mask ^= 1 << order[-1]
    return [mask.bit_length() - 1, *reversed(order)]


def _spread(masks: Int64, size: int) -> Int64:
    """Return the proper parts, none empty, of sets of one size: (m, 2^size - 2) int64."""
    chosen = np.arange(1, (1 << size) - 1, dtype=np.int64)
    parts = np.zeros((len(masks), len(chosen)), dtype=np.int64)
    remaining = masks.copy()
    for bit in range(size):
        lowest = remaining & -remaining
        parts += lowest[:, None] * (chosen >> bit & 1)[None, :]
        remaining ^= lowest
    return parts


def _best_tree(model: CostModel) -> Tree:
    """Return the cheapest tree of all. O(3^l l), as right subtrees cost less near a tree's first leaf."""
    length = model.length
    best = np.zeros((length, 1 << length))
    split = np.zeros((length, 1 << length), dtype=np.int64)
    everything = np.arange(1, 1 << length, dtype=np.int64)
    seen = np.ones((length, 1 << length))
    for first in range(length):
        seen[first, 1:] = model.looked_at(first, everything)
    for size, masks in enumerate(_by_size(length)):
        if size < 2:
            continue
        left = _spread(masks, size)
        right = masks[:, None] ^ left
        joining, sorting = (
            costs.reshape(left.shape) for costs in model.join_costs(left.reshape(-1), right.reshape(-1))
        )
        rows = np.arange(len(masks))
        for first in range(length):
            costs = seen[first, masks, None] * joining + seen[first, right] * sorting
            costs += best[first, left] + best[first, right]
            # A set that holds the first leaf begins with it.
            costs[(right >> first & 1).astype(np.bool_)] = np.inf
            cheapest = np.argmin(costs, axis=1)
            best[first, masks], split[first, masks] = costs[rows, cheapest], left[rows, cheapest]

    def tree(mask: int) -> Tree:
        if not mask & (mask - 1):
            return Leaf(mask.bit_length() - 1)
        left = int(split[first, mask])
        return Join(tree(left), tree(mask ^ left))

    first = int(np.argmin(best[:, model.whole]))
    return tree(model.whole)


def _over(model: CostModel, order: Sequence[int]) -> Tree:
    """Return the cheapest tree whose leaves, from left to right, are in an order. O(l^3)."""
    length = len(order)
    bits = [1 << component for component in order]
    # Of the leaves i..j-1.
    masks = np.zeros((length + 1, length + 1), dtype=np.int64)
    best = np.zeros((length + 1, length + 1))
    split = np.zeros((length + 1, length + 1), dtype=np.int64)
    for i in range(length):
        for j in range(i + 1, length + 1):
            masks[i, j] = masks[i, j - 1] | bits[j - 1]
    model.numbers(masks[masks > 0])
    for size in range(2, length + 1):
        for i in range(length - size + 1):
            j = i + size
            middle = np.arange(i + 1, j)
            costs = model.costs_behind(order[0], masks[i, middle], masks[middle, j])
            costs += best[i, middle] + best[middle, j]
            cheapest = int(np.argmin(costs))
            best[i, j], split[i, j] = costs[cheapest], middle[cheapest]

    def tree(i: int, j: int) -> Tree:
        if j - i == 1:
            return Leaf(order[i])
        middle = int(split[i, j])
        return Join(tree(i, middle), tree(middle, j))

    return tree(0, length)


BY_NAME: Final[Mapping[str, Callable[[CostModel], Tree]]] = MappingProxyType(
    {
        "trivial": lambda model: left_deep(range(model.length)),
        "frequency": lambda model: left_deep(_by_frequency(model)),
        "greedy": lambda model: left_deep(_greedy_order(model)),
        "ii_random": lambda model: left_deep(_improved(model)),
        "ii_greedy": lambda model: left_deep(_improved(model, _greedy_order(model))),
        "dp_left_deep": lambda model: left_deep(_best_order(model)),
        "dp_bushy": _best_tree,
        "zstream": lambda model: _over(model, range(model.length)),
        "zstream_greedy": lambda model: _over(model, _greedy_order(model)),
    }
)
"""The planners, each from a cost model to a tree; see the module."""
