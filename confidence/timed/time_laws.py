"""Sums of products of tables over the ticks of several times, one time after the other.

Summing over the times one by one, the one that ties the fewest others first, costs the largest table on the
way, not the number of worlds (variable elimination; Zhang and Poole, 1994). All terms are positive.
"""

from __future__ import annotations

from confidence.budget import plain_checkpoint
from confidence.kernel import kernel
from confidence.timed.tables import (
    CELLS,
    COUNT,
    LEFT,
    MOST,
    NONE,
    PRICE,
    TOO_MANY,
    VARIABLES,
    make_table,
    take_back,
)

__all__ = ["law_of"]


@kernel
def _near(tables, v):
    """Write the times that the tables left tie to one, in any order; return their number.

    Note how many cells they and the time itself have together.
    """
    axes, marks = tables.axes[0], tables.axes[3]
    depth = 0
    total = float(tables.size[v])
    at = tables.newest[v]
    while at != NONE:
        f = tables.table[at]
        if tables.alive[f]:
            for k in range(tables.place[f], tables.place[f] + tables.depth[f]):
                other = tables.axis[k]
                if other != v and marks[other] == 0:
                    marks[other] = 1
                    axes[depth] = other
                    depth += 1
                    total *= float(tables.size[other])
        at = tables.following[at]
    for d in range(depth):
        marks[axes[d]] = 0
    tables.price[v] = total
    return depth


@kernel
def _update(tables, v):
    """Set a leaf of the tree of prices, and the nodes above it."""
    nodes = tables.cheapest
    at = nodes.shape[0] // 2 + v
    nodes[at] = v if tables.axes[2, v] else NONE
    while at > 1:
        at //= 2
        nodes[at] = _cheaper(tables, nodes[2 * at], nodes[2 * at + 1])


@kernel
def _cheaper(tables, one, other):
    """Return the cheaper one of two times, the first of two that cost the same; NONE if both are."""
    if other == NONE or (one != NONE and tables.price[one] <= tables.price[other]):
        return one
    return other


@kernel
def _find_moves(tables, own, depth, out):
    """Sort the first ``own`` tables for a product over ``depth`` axes; return how many have the last one.

    These come last. For each axis its moves are noted, and those of table ``out``.
    """
    axes, number = tables.axes[0], tables.own[0]
    moves, count = tables.moves, 0
    inner = axes[depth - 1]
    # Of a table that has it, the last of all axes is the last.
    kept = 0
    for k in range(own):
        f = number[k]
        if tables.axis[tables.place[f] + tables.depth[f] - 1] != inner:
            tables.own[0, kept], tables.own[1, k - kept] = f, 0
            kept += 1
        else:
            tables.own[1, k - kept] = f
    for k in range(own - kept):
        tables.own[0, kept + k] = tables.own[1, k]
    for d in range(depth - 1):
        tables.first_move[d] = count
        for k in range(own):
            f = number[k]
            for at in range(tables.place[f], tables.place[f] + tables.depth[f]):
                if tables.axis[at] == axes[d]:
                    moves[0, count], moves[1, count] = k, tables.step[at]
                    count += 1
    tables.first_move[depth - 1] = count
    for d in range(depth):
        tables.axes[4, d] = 0
        for at in range(tables.place[out], tables.place[out] + tables.depth[out]):
            if tables.axis[at] == axes[d]:
                tables.axes[4, d] = tables.step[at]
    return own - kept


@kernel
def _multiply(tables, own, depth, out):
    """Add the product of the first ``own`` tables to a table, which has one axis less.

    ``tables.axes`` has all ``depth`` axes, ascending, at least one. O(cells * own).
    """
    cells, row, moves, first_move = tables.cells, tables.row, tables.moves, tables.first_move
    axes, index, out_step = tables.axes[0], tables.axes[1], tables.axes[4]
    number, at = tables.own[0], tables.own[1]
    rows = _find_moves(tables, own, depth, out)
    inner = depth - 1
    width = tables.size[axes[inner]]
    for d in range(depth):
        index[d] = 0
    for k in range(own):
        at[k] = tables.start[number[k]]
    to = tables.start[out]
    while True:
        plain_checkpoint()
        scale = 1.0
        for k in range(own - rows):
            scale *= cells[at[k]]
        if scale > 0.0:
            for t in range(width):
                row[t] = scale
            for k in range(own - rows, own):
                begin = at[k]
                for t in range(width):
                    row[t] *= cells[begin + t]
            if out_step[inner] > 0:
                for t in range(width):
                    cells[to + t] += row[t]
            else:
                total = 0.0
                for t in range(width):
                    total += row[t]
                cells[to] += total
        d = depth - 2
        while d >= 0:
            index[d] += 1
            for m in range(first_move[d], first_move[d + 1]):
                at[moves[0, m]] += moves[1, m]
            to += out_step[d]
            if index[d] < tables.size[axes[d]]:
                break
            for m in range(first_move[d], first_move[d + 1]):
                at[moves[0, m]] -= moves[1, m] * index[d]
            to -= out_step[d] * index[d]
            index[d] = 0
            d -= 1
        if d < 0:
            return


@kernel
def _sum_over(tables, v):
    """Replace the tables of a time by one of the others that it is tied to; return 0, FULL or TOO_MANY."""
    axes = tables.axes[0]
    depth = _near(tables, v)
    tables.limits[LEFT] -= tables.price[v]
    if tables.price[v] > tables.limits[MOST] or tables.limits[LEFT] < 0.0:
        tables.limits[PRICE] = tables.price[v]
        return TOO_MANY
    for d in range(1, depth):
        other, place = axes[d], d
        while place > 0 and axes[place - 1] > other:
            axes[place] = axes[place - 1]
            place -= 1
        axes[place] = other
    own = 0
    at = tables.newest[v]
    while at != NONE:
        f = tables.table[at]
        if tables.alive[f]:
            tables.own[0, own] = f
            own += 1
            tables.alive[f] = False
        at = tables.following[at]
    # From the oldest to the newest.
    for k in range(own // 2):
        tables.own[0, k], tables.own[0, own - 1 - k] = tables.own[0, own - 1 - k], tables.own[0, k]
    out = make_table(tables, axes, depth, 0.0)
    if out < 0:
        return out
    tables.alive[out] = True
    place = depth
    while place > 0 and axes[place - 1] > v:
        axes[place] = axes[place - 1]
        place -= 1
    axes[place] = v
    _multiply(tables, own, depth + 1, out)
    for k in range(tables.place[out], tables.place[out] + tables.depth[out]):
        other = tables.axis[k]
        if tables.axes[2, other]:
            _near(tables, other)
            _update(tables, other)
    return 0


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

    Notes
    -----
    O(cells * tables of a time + v log v), where each time is tied to a few others.
    """
    given, cells = tables.used[COUNT], tables.used[CELLS]
    is_left, nodes = tables.axes[2], tables.cheapest
    for f in range(given):
        tables.alive[f] = True
    width = nodes.shape[0] // 2
    for at in range(width):
        nodes[width + at] = NONE
    for v in range(tables.used[VARIABLES]):
        is_left[v] = v != kept and tables.size[v] > 1
        if is_left[v]:
            _near(tables, v)
            nodes[width + v] = v
    for at in range(width - 1, 0, -1):
        nodes[at] = _cheaper(tables, nodes[2 * at], nodes[2 * at + 1])
    status = 0
    while nodes[1] != NONE and status == 0:
        v = nodes[1]
        is_left[v] = 0
        _update(tables, v)
        status = _sum_over(tables, v)
    if status == 0:
        for t in range(tables.size[kept]):
            law[t] = 1.0
        for f in range(tables.used[COUNT]):
            if tables.alive[f]:
                begin, step = tables.start[f], 1 if tables.depth[f] > 0 else 0
                for t in range(tables.size[kept]):
                    law[t] *= tables.cells[begin + t * step]
    take_back(tables, given, cells)
    return status
