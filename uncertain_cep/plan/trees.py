"""In which order the events of a pattern are put together: trees over its positive components.

A leaf takes the candidates of one component, an inner node joins the partial matches of its two children. A
tree whose right children are all leaves is an order of the components (Kolchinsky and Schuster, PVLDB 2018,
sections 2.2, 2.3 and 3.1).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from uncertain_cep.errors import OptionError

__all__ = [
    "Join",
    "Leaf",
    "Tree",
    "components_of",
    "format_tree",
    "joins_of",
    "left_deep",
    "order_of",
    "parse_tree",
]


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


def parse_tree(text: str, variables: Sequence[str]) -> Tree:
    """Return the tree that a text such as ``((c a) b)`` stands for: each pair of brackets joins two parts.

    ``variables`` are those of the components that take one event, in pattern order, each of which has to
    stand in the tree once. Any other text raises OptionError, which says what is wrong and shows one that is
    right.
    """

    def fail(what: str) -> NoReturn:
        example = format_tree(left_deep(range(len(variables))), variables)
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise OptionError(f"planner={shown!r}: {what}. A tree over this pattern is, for example, {example}")

    number = {variable: component for component, variable in enumerate(variables)}
    whole: list[Tree] = []
    # The parts of the brackets that are open, the outermost first, on the list of whole trees.
    open_parts = [whole]
    used: Counter[str] = Counter()
    for token in re.findall(r"[()]|[^\s()]+", text):
        if token == "(":
            open_parts.append([])
        elif token == ")":
            if len(open_parts) == 1:
                fail("a bracket is closed that was not opened")
            parts = open_parts.pop()
            if len(parts) != 2:
                fail(f"brackets join two parts, and some here hold {len(parts)}")
            open_parts[-1].append(Join(parts[0], parts[1]))
        elif token in number:
            used[token] += 1
            open_parts[-1].append(Leaf(number[token]))
        else:
            fail(f"{token} is no variable of a component that takes one event")
    if len(open_parts) > 1:
        fail("a bracket is not closed")
    twice = [variable for variable in variables if used[variable] > 1]
    if twice:
        fail(f"{twice[0]} stands in it {used[twice[0]]} times")
    missing = [variable for variable in variables if not used[variable]]
    if missing:
        fail(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    if len(whole) != 1:
        fail(f"these are {len(whole)} trees, not one")
    return whole[0]
