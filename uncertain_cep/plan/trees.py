"""In which order the events of a pattern are put together: trees over its positive components.

A leaf takes the candidates of one component, an inner node joins the partial matches of its two children. A
tree whose right children are all leaves is an order of the components (Kolchinsky and Schuster, PVLDB 2018,
sections 2.2, 2.3 and 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Join", "Leaf", "Tree", "components_of", "format_tree", "joins_of", "left_deep", "order_of"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """The candidates of one component, by its number from 0."""

    component: int


@dataclass(frozen=True, slots=True)
class Join:
    """The partial matches of two disjoint sets of components, put together."""

    left: Tree
    right: Tree


Tree = Leaf | Join


def left_deep(order: Sequence[int]) -> Tree:
    """Return the tree that binds components one by one in the given order, of at least one."""
    tree: Tree = Leaf(order[0])
    for component in order[1:]:
        tree = Join(tree, Leaf(component))
    return tree


def order_of(tree: Tree) -> tuple[int, ...] | None:
    """Return the order that a tree stands for; None if some right child is no leaf."""
    backwards = []
    while isinstance(tree, Join):
        if not isinstance(tree.right, Leaf):
            return None
        backwards.append(tree.right.component)
        tree = tree.left
    return (tree.component, *reversed(backwards))


def components_of(tree: Tree) -> tuple[int, ...]:
    """Return the components of a tree's leaves, from left to right."""
    if isinstance(tree, Leaf):
        return (tree.component,)
    return components_of(tree.left) + components_of(tree.right)


def joins_of(tree: Tree) -> Iterator[Join]:
    """Yield the inner nodes of a tree, children before their parents, left ones first."""
    if isinstance(tree, Join):
        yield from joins_of(tree.left)
        yield from joins_of(tree.right)
        yield tree


def format_tree(tree: Tree, variables: Sequence[str]) -> str:
    """Return a tree in brackets, such as ``((c a) b)``."""
    if isinstance(tree, Leaf):
        return variables[tree.component]
    return f"({format_tree(tree.left, variables)} {format_tree(tree.right, variables)})"
