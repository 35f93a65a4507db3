"""Tables over the ticks of several times, the factors of what a match asks of them.

What a match asks of its times falls apart into factors of few of them: the probability of each time, the
bounds of a difference, and what an event that must stay out of a gap leaves. Each time has a list of its
tables: where each of l events is tied to a few others, all are laid out in O(l) besides their cells.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
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
    "NONE",
    "PLACES",
    "PRICE",
    "SPENT",
    "TIGHT",
    "TOO_MANY",
    "VARIABLES",
    "Tables",
    "add_time",
    "clear",
    "make_table",
    "table_over",
    "tables",
    "take_back",
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
PLACES: Final = 6

NONE: Final = -1
"""Ends a list."""

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
    start, place, depth : (f,) int64
        Where the cells of each begin, where its times begin in ``axis``, and how many there are, ascending.
    axis, step, table, following : (n,) int64
        The times of the tables; how many cells apart the ticks of each are; its table; and the next place
        that has the same time, from the newest table to the oldest, NONE for none.
    newest, uses : (v + 1,) int64
        The first place that has each time, and how many have it; behind them those of tables of no time.
    size : (v,) int64
        The ticks of each time. No table depends on a time of one tick.
    used : (7,) int64
        How many tables, cells and times there are; of a match that the last call of a kernel began, the
        forbidden event that is next, the cell at which its table is to be gone on with, -1 for none, and
        whether all ticks are possible so far; and how many places are taken.
    limits : (5,) float64
        How many cells may still be gone through, how many at most at once, those of what was too many; the
        multiplications of this call, and after how many it comes back to Python.
    axes : (5, v) int64
        Work array: the times that are gone through, the tick at which each stands, whether it is left, marks,
        and how many cells of the result its ticks are apart.
    price : (v,) float64
        Work array: how many cells are gone through if the time is summed over next.
    cheapest : (2 w,) int64
        Work array: a tree whose leaves are the times left, and each inner node the cheaper one below it.
    own : (2, f) int64
        Work array: the tables that are multiplied, and the cell at which each stands.
    moves : (2, n) int64
        Work array: for one time after the other its tables of these, and the cells that a tick moves them by.
    first_move : (v + 1,) int64
        Work array: where the moves of each time begin.
    alive : (f,) bool
        Work array: the tables whose product is left.
    row : (u,) float64
        Work array, for the ticks of the longest time.
    """

    cells: Float64
    start: Int64
    place: Int64
    depth: Int64
    axis: Int64
    step: Int64
    table: Int64
    following: Int64
    newest: Int64
    uses: Int64
    size: Int64
    used: Int64
    limits: Float64
    axes: Int64
    price: Float64
    cheapest: Int64
    own: Int64
    moves: Int64
    first_move: Int64
    alive: NDArray[np.bool_]
    row: Float64


def tables(times: int, most_tables: int, cells: int, ticks: int) -> Tables:
    """Return room for so many times, of so many ticks, and tables of so many cells. Limits are looked at.

    A table of d times has at least 2^d cells, so two for each place. Where tables of no time take more, there
    is no room for the cells either, until more are asked for.
    """
    places = min(cells // 2 + times, 63 * most_tables)
    width = 1 << max(times - 1, 0).bit_length()
    checkpoint(8 * (cells + 6 * places + 6 * most_tables + 9 * times + 2 * width + ticks))
    start, place, depth = np.empty((3, most_tables), dtype=np.int64)
    axis, step, table, following = np.empty((4, places), dtype=np.int64)
    newest, uses = np.empty((2, times + 1), dtype=np.int64)
    return Tables(
        np.empty(cells), start, place, depth, axis, step, table, following, newest, uses,
        np.empty(times, dtype=np.int64), np.array([0, 0, 0, -1, -1, 0, 0]), np.zeros(5),
        np.zeros((5, times), dtype=np.int64), np.empty(times), np.empty(2 * width, dtype=np.int64),
        np.empty((2, most_tables), dtype=np.int64), np.empty((2, places), dtype=np.int64),
        np.empty(times + 1, dtype=np.int64), np.empty(most_tables, dtype=np.bool_), np.empty(ticks),
    )  # fmt: skip


@kernel
def clear(tables, times):
    """Leave no table, and so many times."""
    used = tables.used
    used[COUNT], used[CELLS], used[PLACES], used[VARIABLES] = 0, 0, 0, times
    for v in range(times):
        tables.newest[v], tables.uses[v] = NONE, 0
    tables.newest[tables.size.shape[0]] = NONE


@kernel
def add_time(tables, ticks):
    """Add a time of so many ticks, and return it."""
    added = tables.used[VARIABLES]
    tables.used[VARIABLES] = added + 1
    tables.size[added] = ticks
    tables.newest[added], tables.uses[added] = NONE, 0
    return added


@kernel
def make_table(tables, axes, depth, value):
    """Add a table over the first so many axes, ascending; return its number, FULL or TOO_MANY."""
    used = tables.used
    total = 1.0
    for d in range(depth):
        total *= float(tables.size[axes[d]])
    tables.limits[LEFT] -= total
    if total > tables.limits[MOST] or tables.limits[LEFT] < 0.0:
        tables.limits[PRICE] = total
        return TOO_MANY
    number, begin, place = used[COUNT], used[CELLS], used[PLACES]
    cells = int(total)
    if begin + cells > tables.cells.shape[0] or place + max(depth, 1) > tables.axis.shape[0]:
        tables.limits[PRICE] = float(begin) + total
        return FULL
    tables.start[number], tables.place[number], tables.depth[number] = begin, place, depth
    step = 1
    for d in range(depth - 1, -1, -1):
        v = axes[d]
        tables.axis[place + d], tables.step[place + d] = v, step
        step *= tables.size[v]
        _put_in_list(tables, v, place + d, number)
        tables.uses[v] += 1
    if depth == 0:
        _put_in_list(tables, tables.size.shape[0], place, number)
    for k in range(begin, begin + cells):
        tables.cells[k] = value
    used[COUNT], used[CELLS], used[PLACES] = number + 1, begin + cells, place + max(depth, 1)
    return number


@kernel
def _put_in_list(tables, v, place, table):
    tables.table[place] = table
    tables.following[place] = tables.newest[v]
    tables.newest[v] = place


@kernel
def take_back(tables, given, cells):
    """Give up all tables but the first so many, of so many cells."""
    used = tables.used
    for f in range(used[COUNT] - 1, given - 1, -1):
        place, depth = tables.place[f], tables.depth[f]
        for k in range(place, place + depth):
            tables.newest[tables.axis[k]] = tables.following[k]
            tables.uses[tables.axis[k]] -= 1
        if depth == 0:
            tables.newest[tables.size.shape[0]] = tables.following[place]
        used[PLACES] = place
    used[COUNT], used[CELLS] = given, cells


@kernel
def table_over(tables, axes, depth):
    """Return the number of the table over the first so many axes, ascending, of ones if it is new.

    FULL if there is no room for its cells, TOO_MANY if it has too many.
    """
    rarest = tables.size.shape[0]
    for d in range(depth):
        if d == 0 or tables.uses[axes[d]] < tables.uses[rarest]:
            rarest = axes[d]
    at = tables.newest[rarest]
    while at != NONE:
        f = tables.table[at]
        if tables.depth[f] == depth:
            alike = True
            for d in range(depth):
                alike = alike and tables.axis[tables.place[f] + d] == axes[d]
            if alike:
                return f
        at = tables.following[at]
    return make_table(tables, axes, depth, 1.0)
