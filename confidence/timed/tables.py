"""Sums of products of tables over the ticks of several times, one time after the other.

What a match asks of its times falls apart into factors of few of them: the probability of each time, the
bounds of a difference, and what an event that must stay out of a gap leaves. Summing over the times one by
one, the one that ties the fewest others first, costs the largest table on the way, not the number of worlds
(variable elimination; Zhang and Poole, 1994). All terms are positive.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import plain_checkpoint
from confidence.kernel import kernel

__all__ = [
    "AT",
    "BUDGET",
    "CELLS",
    "COUNT",
    "FULL",
    "LATER",
    "LEFT",
    "MOST",
    "NEXT",
    "PRICE",
    "SPENT",
    "TIGHT",
    "TOO_MANY",
    "VARIABLES",
    "Tables",
    "law_of",
    "table_over",
    "tables",
]

FULL: Final = -1
TOO_MANY: Final = -2
LATER: Final = -3

COUNT: Final = 0
CELLS: Final = 1
VARIABLES: Final = 2
NEXT: Final = 3
AT: Final = 4
TIGHT: Final = 5

LEFT: Final = 0
MOST: Final = 1
PRICE: Final = 2
SPENT: Final = 3
BUDGET: Final = 4

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class Tables(NamedTuple):
    """Tables over the ticks of some times, the last of its times the fastest to change.

    Attributes
    ----------
    cells : (m,) float64
        One table behind the other.
    start : (f,) int64
        Where each begins.
    stride : (f, v) int64
        How many cells apart the ticks of each time are; 0 where the table does not depend on it.
    key : (f,) int64
        How many times the table depends on, the first and the last.
    size : (v,) int64
        The ticks of each time. No table depends on a time of one tick.
    used : (6,) int64
        How many tables, cells and times there are; and of a match that the last call of a kernel began, the
        forbidden event that is next, the cell at which its table is to be gone on with, -1 for none, and
        whether all ticks are possible so far.
    limits : (5,) float64
        How many cells may still be gone through, how many at most at once, those of what was too many; the
        multiplications of this call, and after how many it comes back to Python.
    axes : (4, v) int64
        Work array: the times that are gone through, the tick at which each stands, whether it is left, and
        marks.
    price : (v,) float64
        Work array: how many cells are gone through if the time is summed over next.
    own : (2, f) int64
        Work array: the tables that are multiplied, and the cell at which each stands.
    alive : (f,) bool
        Work array: the tables whose product is left.
    row : (u,) float64
        Work array, for the ticks of the longest time.
    """

    cells: Float64
    start: Int64
    stride: Int64
    key: Int64
    size: Int64
    used: Int64
    limits: Float64
    axes: Int64
    price: Float64
    own: Int64
    alive: NDArray[np.bool_]
    row: Float64


def tables(times: int, most_tables: int, cells: int, ticks: int) -> Tables:
    """Return room for so many times, of so many ticks, and tables of so many cells."""
    return Tables(
        np.empty(cells),
        np.empty(most_tables, dtype=np.int64),
        np.empty((most_tables, times), dtype=np.int64),
        np.empty(most_tables, dtype=np.int64),
        np.empty(times, dtype=np.int64),
        np.array([0, 0, 0, -1, -1, 0]),
        np.zeros(5),
        np.empty((4, times), dtype=np.int64),
        np.empty(times),
        np.empty((2, most_tables), dtype=np.int64),
        np.empty(most_tables, dtype=np.bool_),
        np.empty(ticks),
    )


@kernel
def _key(tables, axes, count):
    """Return a key that differs for tables over one or two other times, and mostly for more."""
    times = tables.size.shape[0]
    return (count * times + axes[0]) * times + axes[count - 1] if count > 0 else 0


@kernel
def _made(tables, axes, count, value):
    """Add a table over the first so many axes, ascending; return its number, FULL or TOO_MANY."""
    total = 1.0
    for d in range(count):
        total *= float(tables.size[axes[d]])
    tables.limits[LEFT] -= total
    if total > tables.limits[MOST] or tables.limits[LEFT] < 0.0:
        tables.limits[PRICE] = total
        return TOO_MANY
    found = tables.used[COUNT]
    begin = tables.used[CELLS]
    cells = int(total)
    if begin + cells > tables.cells.shape[0]:
        tables.limits[PRICE] = float(begin) + total
        return FULL
    tables.start[found] = begin
    tables.key[found] = _key(tables, axes, count)
    for v in range(tables.used[VARIABLES]):
        tables.stride[found, v] = 0
    step = 1
    for d in range(count - 1, -1, -1):
        tables.stride[found, axes[d]] = step
        step *= tables.size[axes[d]]
    for k in range(begin, begin + cells):
        tables.cells[k] = value
    tables.used[COUNT] = found + 1
    tables.used[CELLS] = begin + cells
    return found


@kernel
def table_over(tables, axes, count):
    """Return the number of the table over the first so many axes, ascending, of ones if it is new.

    FULL if there is no room for its cells, TOO_MANY if it has too many.
    """
    key = _key(tables, axes, count)
    for f in range(tables.used[COUNT]):
        if tables.key[f] == key:
            alike = True
            for d in range(count):
                alike = alike and tables.stride[f, axes[d]] > 0
            if alike:
                return f
    return _made(tables, axes, count, 1.0)


@kernel
def _mark(tables, v):
    """Mark the times that the tables left tie to one, and note how many cells these have together."""
    marks, stride = tables.axes[3], tables.stride
    variables = tables.used[VARIABLES]
    for other in range(variables):
        marks[other] = 0
    for f in range(tables.used[COUNT]):
        if tables.alive[f] and stride[f, v] > 0:
            for other in range(variables):
                if stride[f, other] > 0:
                    marks[other] = 1
    total = float(tables.size[v])
    for other in range(variables):
        if marks[other] and other != v:
            total *= float(tables.size[other])
    tables.price[v] = total


@kernel
def _multiply(tables, own, depth, out):
    """Add the product of the first ``own`` tables to a table, which has one axis less.

    ``tables.axes`` has all ``depth`` axes, ascending, at least one. O(cells * own).
    """
    cells, row, stride = tables.cells, tables.row, tables.stride
    axes, index = tables.axes[0], tables.axes[1]
    number, at = tables.own[0], tables.own[1]
    inner = axes[depth - 1]
    width = tables.size[inner]
    for d in range(depth):
        index[d] = 0
    for k in range(own):
        at[k] = tables.start[number[k]]
    to = tables.start[out]
    while True:
        plain_checkpoint()
        scale = 1.0
        for k in range(own):
            if stride[number[k], inner] == 0:
                scale *= cells[at[k]]
        if scale > 0.0:
            for t in range(width):
                row[t] = scale
            for k in range(own):
                if stride[number[k], inner] > 0:
                    begin = at[k]
                    for t in range(width):
                        row[t] *= cells[begin + t]
            if stride[out, inner] > 0:
                for t in range(width):
                    cells[to + t] += row[t]
            else:
                total = 0.0
                for t in range(width):
                    total += row[t]
                cells[to] += total
        d = depth - 2
        while d >= 0:
            axis = axes[d]
            index[d] += 1
            for k in range(own):
                at[k] += stride[number[k], axis]
            to += stride[out, axis]
            if index[d] < tables.size[axis]:
                break
            index[d] = 0
            for k in range(own):
                at[k] -= stride[number[k], axis] * tables.size[axis]
            to -= stride[out, axis] * tables.size[axis]
            d -= 1
        if d < 0:
            return


@kernel
def law_of(tables, kept, law):
    """Write the sum of the product of all tables over all times but one, for each tick of that.

    Parameters
    ----------
    tables : Tables
        Those that are made on the way are given up at the end.
    kept : int64
        The time that is not summed over.
    law : (u,) float64
        Overwritten, as far as that time has ticks.

    Returns
    -------
    int64
        FULL if there is no room for the cells on the way, TOO_MANY if these are too many; else 0.
    """
    given, cells = tables.used[COUNT], tables.used[CELLS]
    axes, is_left, marks, price = tables.axes[0], tables.axes[2], tables.axes[3], tables.price
    variables = tables.used[VARIABLES]
    for f in range(given):
        tables.alive[f] = True
    left = 0
    for v in range(variables):
        is_left[v] = v != kept and tables.size[v] > 1
        if is_left[v]:
            left += 1
            _mark(tables, v)
    status = 0
    while left > 0 and status == 0:
        following = -1
        for v in range(variables):
            if is_left[v] and (following < 0 or price[v] < price[following]):
                following = v
        _mark(tables, following)
        is_left[following] = 0
        left -= 1
        own = 0
        for f in range(tables.used[COUNT]):
            if tables.alive[f] and tables.stride[f, following] > 0:
                tables.own[0, own] = f
                own += 1
                tables.alive[f] = False
        depth = 0
        for v in range(variables):
            if marks[v] and v != following:
                axes[depth] = v
                depth += 1
        tables.limits[LEFT] -= price[following]
        if price[following] > tables.limits[MOST] or tables.limits[LEFT] < 0.0:
            tables.limits[PRICE] = price[following]
            status = TOO_MANY
        else:
            status = _made(tables, axes, depth, 0.0)
        if status >= 0:
            out = status
            status = 0
            tables.alive[out] = True
            place = depth
            while place > 0 and axes[place - 1] > following:
                axes[place] = axes[place - 1]
                place -= 1
            axes[place] = following
            _multiply(tables, own, depth + 1, out)
            for v in range(variables):
                if is_left[v] and tables.stride[out, v] > 0:
                    _mark(tables, v)
    if status == 0:
        for t in range(tables.size[kept]):
            law[t] = 1.0
        for f in range(tables.used[COUNT]):
            if tables.alive[f]:
                step = tables.stride[f, kept]
                for t in range(tables.size[kept]):
                    law[t] *= tables.cells[tables.start[f] + t * step]
    tables.used[COUNT], tables.used[CELLS] = given, cells
    return status
