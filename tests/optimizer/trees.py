"""Trees over components: all there are, and random ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from uncertain_cep.optimizer.cardinality import mask_of
from uncertain_cep.optimizer.cost_model import CostModel
from uncertain_cep.plan.trees import Join, Leaf, Tree, components_of, joins_of, left_deep


def every_tree(components: tuple[int, ...]) -> Iterator[Tree]:
    """Yield every tree over some components, left and right told apart."""
    if len(components) == 1:
        yield Leaf(components[0])
    for size in range(1, len(components)):
        for part in combinations(components, size):
            remaining = tuple(component for component in components if component not in part)
            for left in every_tree(part):
                for right in every_tree(remaining):
                    yield Join(left, right)


def every_tree_over(leaves: tuple[int, ...]) -> Iterator[Tree]:
    """Yield every tree whose leaves are these, from left to right."""
    if len(leaves) == 1:
        yield Leaf(leaves[0])
    for middle in range(1, len(leaves)):
        for left in every_tree_over(leaves[:middle]):
            for right in every_tree_over(leaves[middle:]):
                yield Join(left, right)


def random_order(rng: np.random.Generator, length: int) -> Tree:
    return left_deep(rng.permutation(length).tolist())


def random_tree(rng: np.random.Generator, length: int) -> Tree:
    def over(components: list[int]) -> Tree:
        if len(components) == 1:
            return Leaf(components[0])
        middle = int(rng.integers(1, len(components)))
        return Join(over(components[:middle]), over(components[middle:]))

    return over(rng.permutation(length).tolist())


def estimated_nodes(model: CostModel, tree: Tree) -> dict[tuple[int, ...], float]:
    """Return the estimated number of partial matches of each node, by its leaves from left to right."""
    order = components_of(tree)
    keys = [*((j,) for j in order), *map(components_of, joins_of(tree))]
    masks = np.array([mask_of(key) for key in keys], dtype=np.int64)
    numbers = model.looked_at(order[0], masks) * model.numbers(masks)[2]
    return dict(zip(keys, numbers.tolist(), strict=True))
