"""Planners: from a cost model to the order or tree in which events are put together.

Those of Kolchinsky and Schuster (PVLDB 2018, section 7.1). Orders: the pattern's, by frequency, greedy,
iterative improvement from a random or the greedy order, dynamic programming. Trees: ZStream over the
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

from uncertain_cep.config import MOST_MOVES, MOVES_AT_ONCE, PLANNER_SEED
from uncertain_cep.optimizer.cost_model import CostModel
from uncertain_cep.plan.trees import Join, Leaf, Tree, left_deep

__all__ = [
    "BY_NAME",
    "Planner",
    "dp_bushy",
    "dp_left_deep",
    "frequency",
    "greedy",
    "ii_greedy",
    "ii_random",
    "trivial",
    "zstream",
    "zstream_greedy",
]

Int64 = NDArray[np.int64]
Float = NDArray[np.float64]
Planner = Callable[[CostModel], Tree]


def trivial(model: CostModel) -> Tree:
    """Return the order of the pattern."""
    return left_deep(range(model.length))


def frequency(model: CostModel) -> Tree:
    """Return the components by rising number of candidates. O(l log l)."""
    return left_deep(np.argsort(model.numbers(model.singles)[2], kind="stable").tolist())


def _greedy_order(model: CostModel) -> list[int]:
    singles = model.singles
    order = [int(np.argmin(model.numbers(singles)[2]))]
    while len(order) < model.length:
        rest = np.array([j for j in range(model.length) if j not in order], dtype=np.int64)
        bound = np.full(len(rest), int(singles[order].sum()), dtype=np.int64)
        order.append(int(rest[np.argmin(model.join_costs(bound, singles[rest])[0])]))
    return order


def greedy(model: CostModel) -> Tree:
    """Return the order that begins with the rarest component and goes on with the cheapest step. O(l^2)."""
    return left_deep(_greedy_order(model))


@cache
def _moves(length: int) -> Int64:
    """Return what swapping two places, or cycling three, makes of 0..l-1: (m, l) int64."""
    found: list[tuple[list[int], list[int]]] = [([a, b], [b, a]) for a, b in combinations(range(length), 2)]
    for a, b, c in combinations(range(length), 3):
        found += [([a, b, c], [b, c, a]), ([a, b, c], [c, a, b])]
    moves = np.tile(np.arange(length), (len(found), 1))
    for move, (places, taken) in zip(moves, found, strict=True):
        move[places] = taken
    return moves


def _improved(model: CostModel, order: Sequence[int], rng: np.random.Generator) -> list[int]:
    """Return the local minimum that swaps and cycles lead to from an order."""
    best = np.array(order, dtype=np.int64)
    moves = _moves(model.length)
    if not len(moves):
        return [int(component) for component in best]
    cost = float(model.order_costs(best[None, :])[0])
    tried = 0
    improving = True
    while improving and tried < MOST_MOVES:
        improving = False
        shuffled = rng.permutation(len(moves))
        for start in range(0, len(moves), MOVES_AT_ONCE):
            neighbours = best[moves[shuffled[start : start + MOVES_AT_ONCE]]]
            costs = model.order_costs(neighbours)
            tried += len(neighbours)
            cheapest = int(np.argmin(costs))
            if costs[cheapest] < cost * (1.0 - 1e-12):
                best, cost = neighbours[cheapest], float(costs[cheapest])
                improving = True
                break
            if tried >= MOST_MOVES:
                break
    return [int(component) for component in best]


def ii_random(model: CostModel) -> Tree:
    """Return the local minimum of iterative improvement from a random order; the seed is fixed."""
    rng = np.random.default_rng(PLANNER_SEED)
    return left_deep(_improved(model, rng.permutation(model.length).tolist(), rng))


def ii_greedy(model: CostModel) -> Tree:
    """Return the local minimum of iterative improvement from the greedy order; the seed is fixed."""
    return left_deep(_improved(model, _greedy_order(model), np.random.default_rng(PLANNER_SEED)))


@cache
def _by_size(length: int) -> tuple[Int64, ...]:
    """Return the sets of 0..l components as bits, by their size."""
    masks = np.arange(1 << length, dtype=np.int64)
    sizes = np.bitwise_count(masks)
    return tuple(masks[sizes == size] for size in range(length + 1))


def dp_left_deep(model: CostModel) -> Tree:
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
            rest = holding ^ single
            costs = best[rest] + model.join_costs(rest, np.full(len(rest), single))[0]
            better = costs < best[holding]
            best[holding[better]] = costs[better]
            last[holding[better]] = j
    order: list[int] = []
    mask = model.whole
    while mask & (mask - 1):
        order.append(int(last[mask]))
        mask ^= 1 << order[-1]
    return left_deep([mask.bit_length() - 1, *reversed(order)])


def _spread(masks: Int64, size: int) -> Int64:
    """Return the proper parts, none empty, of sets of one size: (m, 2^size - 2) int64."""
    chosen = np.arange(1, (1 << size) - 1, dtype=np.int64)
    parts = np.zeros((len(masks), len(chosen)), dtype=np.int64)
    left = masks.copy()
    for bit in range(size):
        lowest = left & -left
        parts += lowest[:, None] * (chosen >> bit & 1)[None, :]
        left ^= lowest
    return parts


def dp_bushy(model: CostModel) -> Tree:
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


def zstream(model: CostModel) -> Tree:
    """Return the cheapest tree whose leaves are in the order of the pattern. O(l^3)."""
    return _over(model, range(model.length))


def zstream_greedy(model: CostModel) -> Tree:
    """Return the cheapest tree whose leaves are in the greedy order. O(l^3)."""
    return _over(model, _greedy_order(model))


BY_NAME: Final[Mapping[str, Planner]] = MappingProxyType({
    "trivial": trivial, "frequency": frequency, "greedy": greedy, "ii_random": ii_random,
    "ii_greedy": ii_greedy, "dp_left_deep": dp_left_deep, "dp_bushy": dp_bushy, "zstream": zstream,
    "zstream_greedy": zstream_greedy,
})  # fmt: skip
