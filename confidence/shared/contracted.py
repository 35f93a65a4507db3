"""The probability that times follow each other, some of them of records whose order is known.

A time after the other is summed over. What is needed again is kept as an axis: the tick of a record of
which another one comes later in the match, and the first tick where the window binds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.shared.records import Records
from confidence.timed.factors import TooManyCellsError

__all__ = [
    "Apart",
    "Node",
    "contracted",
    "reversed_nodes",
    "step_between",
    "without_implied",
]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class Node(NamedTuple):
    """An event of a match."""

    first: int
    """The tick of the first probability."""
    law: Float64
    """Of the event alone, from there on."""
    least: int = 1
    """How many ticks it comes after the event ahead of it at least."""
    source: int = -1
    """Which records it belongs to; -1: none."""
    records: Records | None = None
    place: int = 0
    """Its place among them."""
    moved: int = 0
    """The tick that counts as 0 for them."""
    backward: bool = False
    """Whether ticks run backward, as :func:`reversed_nodes` makes them."""

    @property
    def last(self) -> int:
        """The tick of the last probability."""
        return self.first + len(self.law) - 1

    def follows(self, other: Node) -> bool:
        """Return whether it comes after another one in every world, as records do."""
        return self.source >= 0 and self.source == other.source


class Apart(NamedTuple):
    """Two events of a match, by their places, of which the other one is so many ticks after the one."""

    one: int
    other: int
    least: int
    most: int


def without_implied(nodes: Sequence[Node], window: int, kept: Collection[int] = ()) -> list[int]:
    """Return the events that decide whether a match in this order is one, those ``kept`` among them.

    Of records that come one after the other those in between follow from the first and the last one. Where
    the window does not bind, an event at either end that can be nowhere else says nothing.
    """
    found = list(range(len(nodes)))
    if nodes[-1].last - nodes[0].first < window:
        while len(found) > 1 and found[0] not in kept and _certain(nodes[found[0]], nodes[found[1]]):
            del found[0]
        while len(found) > 1 and found[-1] not in kept and _certain(nodes[found[-2]], nodes[found[-1]]):
            del found[-1]
    ends = {found[0], found[-1]}
    return [
        n
        for n in found
        if n in ends or n in kept or not (nodes[n].follows(nodes[n - 1]) and nodes[n + 1].follows(nodes[n]))
    ]


def _certain(one: Node, other: Node) -> bool:
    return other.follows(one) or one.last + other.least <= other.first


def reversed_nodes(nodes: Sequence[Node]) -> list[Node]:
    """Return the events of a match where time runs backward."""
    distances = [1, *(node.least for node in nodes[:0:-1])]
    return [
        node._replace(first=-node.last, law=node.law[::-1], least=step, backward=True)
        for node, step in zip(nodes[::-1], distances, strict=True)
    ]


def _is_apart(pair: Apart, one: Node, other: Node) -> NDArray[np.bool_]:
    """Return whether ticks of two nodes are as far apart as a pair asks, (ticks of one, of the other)."""
    spread = np.arange(len(other.law)) - np.arange(len(one.law))[:, None]
    spread += other.first - one.first
    near: NDArray[np.bool_] = (spread >= pair.least) & (spread <= pair.most)
    return near


def _links(nodes: Sequence[Node], pairs: Sequence[Apart]) -> tuple[dict[int, int], list[int]]:
    """Return the record before each one of its source, and for each node the last one that needs it."""
    seen: dict[int, int] = {}
    linked: dict[int, int] = {}
    until = list(range(len(nodes)))
    for j, node in enumerate(nodes):
        if node.records is not None:
            if node.source in seen:
                linked[j] = seen[node.source]
                until[seen[node.source]] = j
            seen[node.source] = j
    for pair in pairs:
        until[pair.one] = max(until[pair.one], pair.other)
    return linked, until


def contracted(
    nodes: Sequence[Node],
    window: int,
    most: int,
    possible: bool = False,
    by: int | None = None,
    apart: Sequence[Apart] = (),
) -> Float64:
    """Return the probability that events are a match, by the tick of the last one: (n,) float64.

    Parameters
    ----------
    nodes : sequence of Node
    window : int
        Their ticks are within so many.
    most : int
        Most cells of an array. Beyond these it is a TooManyCellsError.
    possible : bool
        Return 1 where the probability is positive instead, however small it is.
    by : int, optional
        By the tick of this event instead.
    apart : sequence of Apart
        What else is asked.
    """
    pairs = list(apart)
    if nodes[-1].last - nodes[0].first >= window:
        pairs.append(Apart(0, len(nodes) - 1, 0, window - 1))
    linked, until = _links(nodes, pairs)
    if by is not None:
        until[by] = len(nodes)
    table, axes = nodes[0].law, [0]
    for j in range(1, len(nodes)):
        node, before = nodes[j], nodes[j - 1]
        ticks = np.arange(len(node.law)) + (node.first - before.first)
        if until[j - 1] >= j:
            _allow(table.size * len(ticks), most)
            table = table[..., None] * (ticks - np.arange(len(before.law))[:, None] >= node.least)
            axes.append(j)
        else:
            sums = np.cumsum(table, axis=-1)
            sums = np.concatenate((np.zeros((*sums.shape[:-1], 1)), sums), axis=-1)
            table = sums[..., np.clip(ticks - node.least + 1, 0, len(before.law))]
            axes[-1] = j
        if j in linked:
            other = nodes[linked[j]]
            assert node.records is not None
            _allow(node.records.size**2, most)
            shape = [1] * len(axes)
            shape[axes.index(linked[j])], shape[-1] = len(other.law), len(node.law)
            table = table * _step(other, node).reshape(shape)
        else:
            table = table * node.law
        for pair in pairs:
            if pair.other == j:
                shape = [1] * len(axes)
                shape[axes.index(pair.one)], shape[-1] = len(nodes[pair.one].law), len(node.law)
                table = table * _is_apart(pair, nodes[pair.one], node).reshape(shape)
        over = tuple(place for place, axis in enumerate(axes[:-1]) if until[axis] <= j)
        table = table.sum(axis=over)
        axes = [axis for place, axis in enumerate(axes) if place not in over]
        if possible:
            table = (table > 0.0).astype(np.float64)
    return table.sum(axis=-1) if len(axes) > 1 else table


def step_between(one: Node, other: Node) -> Float64:
    """Return the law of a record's tick, by columns, given that of an earlier one of its source, by rows."""
    assert other.records is not None
    return _between(other.records, one, other, one.first, other.first)


def _step(other: Node, node: Node) -> Float64:
    """Return the law of a record's tick given that of the one of the same source ahead of it in the match."""
    assert node.records is not None
    if not node.backward:
        return step_between(other, node)
    step = _between(node.records, node, other, -node.last, -other.last)
    # Only whether it can be is asked of times that run backward.
    return ((step[::-1, ::-1].T > 0.0) & (node.law > 0.0)).astype(np.float64)


def _between(records: Records, one: Node, other: Node, first: int, begin: int) -> Float64:
    """Return the law of the ticks of a later record, from one on, given those of an earlier one."""
    rows, columns = first - one.moved, begin - one.moved
    step = records.step(one.place, other.place)
    return step[rows : rows + len(one.law), columns : columns + len(other.law)]


def _allow(cells: int, limit: int) -> None:
    if cells > limit:
        raise TooManyCellsError(cells)
