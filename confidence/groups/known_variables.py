"""How much is left open of a group's answer once one of its variables is known.

For each variable v with ticks t, of g(t) = P(at least k matches, given t): its mean, the mean of its square,
and how likely it is 0 or 1. The answer's Brier score is ``P (1 - P)``, and knowing v takes the variance of g
off it.

g is a polynomial of t on pieces, so that its square is one of twice the degree, and few ticks tell both sums.
A long piece is certain if g is at all these ticks; else its first and its last tick are looked at besides, so
that what is certain is told up to a few ticks of a long piece.
"""

from __future__ import annotations

from typing import Final

from confidence.budget import plain_checkpoint
from confidence.chain.pieces import add_point
from confidence.groups.absorbing import absorb
from confidence.groups.counting import COSTLY, READY, ROOM, bound, counted, load_group, set_bounds
from confidence.groups.holding import TOO_DEAR, append_piece, append_tick, degree_of, piece_starts, tying_most
from confidence.groups.literal_stack import is_open
from confidence.groups.problems import (
    CLOCK,
    EDGE,
    HIGH,
    LAW,
    LISTED,
    LOW,
    MARK,
    MOST_STEPS,
    NODES,
    OWN_HIGH,
    OWN_LOW,
    STAMP,
    STEPS,
)
from confidence.groups.simplifying import NO_ROOM, simplified
from confidence.kernel import kernel

__all__ = ["MEAN", "SQUARE", "SURE", "resolved_groups"]

MEAN: Final = 0
SQUARE: Final = 1
SURE: Final = 2
"""Columns of what is found of a variable."""

_SURE: Final = 1e-12
"""What is so near to 0 or 1 is certain."""

SHORT: Final = 32
"""Of a piece of so many ticks or fewer, each is looked at."""

_NEXT: Final = 0
_END: Final = 1
_DISTANCE: Final = 2
"""Columns of ``scratch.edges``, see ``holding``."""

_NODE: Final = 0
_EDGE: Final = 1
_SUM: Final = 2
"""Columns of ``scratch.path``, see ``holding``."""


@kernel
def resolved_groups(groups, begin, most_steps, budget, work, rooms, resolved, status, steps):
    """Fill what is left open of some groups, variable by variable; return the first that is not done.

    Parameters
    ----------
    groups : Groups
    begin : int64
        The first variable, counted over all groups.
    most_steps : int64
        How many steps a variable may take.
    budget : int64
        How many steps to take before coming back.
    work : Workspace
    rooms : tuple
        ``piece``, (n,) int64 for n ticks of the workspace; ``ends``, (2, p) int64 for p starts of pieces;
        ``group``, (v,) int64, the group of each variable.
    resolved : (v, 3) float64
        Written to: MEAN, SQUARE and SURE of each variable.
    status : (v,) int64
        Written to: READY, COSTLY, or ROOM if the workspace has too little for it; then the others behind it
        are not looked at.
    steps : (v,) int64
        Written to: how many steps each took.
    """
    spent = 0
    count = resolved.shape[0]
    for number in range(begin, count):
        if spent > budget:
            return number
        plain_checkpoint()
        group = rooms[2][number]
        if not load_group(groups, group, most_steps, work):
            status[number] = ROOM
            return number
        v = number - groups.variable_start[group] + 1
        status[number] = _resolved(v, work.variables, work.arena, work.scratch, rooms, resolved[number])
        steps[number] = work.arena.top[STEPS]
        spent += work.arena.top[STEPS]
        if status[number] == ROOM:
            return number
    return count


@kernel
def _resolved(v, variables, arena, scratch, rooms, sums):
    """Fill the sums of one variable of the group that is loaded; return its status."""
    top = arena.top
    count = top[LISTED]
    last = scratch.result.shape[0] - 1
    if simplified(0, count, variables, arena, scratch) == NO_ROOM:
        return ROOM
    if last == 1:
        absorb(count, variables, arena)
    if tying_most(count, top[LISTED], variables, arena, scratch) < 0 and top[LISTED] > count:
        return COSTLY
    nodes = top[NODES]
    if top[LISTED] == count or scratch.by_variable[MARK, v] != top[STAMP]:
        # Nothing that is open depends on it.
        by_clock = is_open(variables[CLOCK, v], variables)
        arena.tick[nodes] = variables[OWN_LOW, v] if by_clock else variables[LOW, v]
        arena.weight[nodes], rooms[0][nodes] = 1.0, 0
        top[NODES] = nodes + 1
    else:
        status = _append_nodes(v, variables, arena, scratch, rooms)
        if status != READY:
            return status
    return _summed(v, nodes, count, variables, arena, scratch, rooms[0], sums)


@kernel
def _append_nodes(v, variables, arena, scratch, rooms):
    """Append the ticks that tell the sums, with their weights, and note their pieces; return a status."""
    by_clock = is_open(variables[CLOCK, v], variables)
    low, high = variables[LOW, v], variables[HIGH, v]
    if by_clock:
        low, high = variables[OWN_LOW, v], variables[OWN_HIGH, v]
        pieces = _own_starts(v, variables, arena, scratch, rooms[1])
    else:
        pieces = piece_starts(v, variables, arena, scratch)
    if pieces < 0:
        return COSTLY
    # The law of a variable begins at its lower bound, which is that of its own time here.
    variables[LOW, v], variables[HIGH, v] = low, high
    for number in range(pieces):
        if arena.top[STEPS] > arena.top[MOST_STEPS]:
            return COSTLY
        first = scratch.start[number]
        last = scratch.start[number + 1] - 1 if number + 1 < pieces else high
        before = arena.top[NODES]
        degree = -1
        if last - first >= SHORT:
            degree = max(2 * degree_of(v, first, last, by_clock, variables, arena, scratch), -1)
        if not append_piece(v, first, last, degree, variables, arena, scratch):
            return COSTLY if arena.top[STEPS] > arena.top[MOST_STEPS] else ROOM
        by_nodes = degree > 0 and variables[LAW, v] < 0
        if by_nodes and not (append_tick(first, 0.0, arena) and append_tick(last, 0.0, arena)):
            return ROOM
        for node in range(before, arena.top[NODES]):
            rooms[0][node] = 2 * number + by_nodes
    return READY


@kernel
def _own_starts(v, variables, arena, scratch, ends):
    """Write where the pieces of an own time begin whose clock is open, ascending; return how many there are.

    ``TOO_DEAR`` if there are too many. The time is ``t_c + s``. Held at s, its literals are those of the
    clock c moved by s. A vertex comes or goes where a cycle of tight literals, or a path between two bounds,
    has the sum 0: it uses s once, as the difference of a bound on a path from the time, and one on a path
    from the clock. Both sides of each such tick begin a piece.
    """
    clock = variables[CLOCK, v]
    low, high = variables[OWN_LOW, v], variables[OWN_HIGH, v]
    scratch.start[0] = low
    count = 1
    ahead, behind = 0, 0
    for root in range(2):
        start, barred = (v, clock) if root == 0 else (clock, v)
        depth = 0
        arena.top[STAMP] += 1
        stamp = arena.top[STAMP]
        path = scratch.path
        path[0, _NODE], path[0, _EDGE], path[0, _SUM] = start, scratch.by_variable[EDGE, start], 0
        scratch.by_variable[MARK, start] = stamp
        if root == 1:
            for side in (LOW, HIGH):
                ends[1, behind] = variables[side, clock]
                behind += 1
        while depth >= 0:
            e = path[depth, _EDGE]
            if e < 0:
                scratch.by_variable[MARK, path[depth, _NODE]] = 0
                depth -= 1
                continue
            path[depth, _EDGE] = scratch.edges[e, _NEXT]
            arena.top[STEPS] += 1
            if arena.top[STEPS] > arena.top[MOST_STEPS]:
                return TOO_DEAR
            w = scratch.edges[e, _END]
            if w == barred:
                if root == 0:
                    # A cycle: t_c = t_v + sum.
                    point = -(path[depth, _SUM] + scratch.edges[e, _DISTANCE])
                    if count + 2 >= scratch.start.shape[0]:
                        return TOO_DEAR
                    count = add_point(scratch.start, count, point, low, high)
                    count = add_point(scratch.start, count, point + 1, low, high)
                continue
            if w and scratch.by_variable[MARK, w] == stamp:
                continue
            total = path[depth, _SUM] + scratch.edges[e, _DISTANCE]
            if not is_open(variables[CLOCK, w], variables):
                if max(ahead, behind) + 2 >= ends.shape[1]:
                    return TOO_DEAR
                for side in (LOW, HIGH):
                    if root == 0:
                        ends[0, ahead] = variables[side, w] - total
                        ahead += 1
                    else:
                        ends[1, behind] = variables[side, w] - total
                        behind += 1
            if w:
                depth += 1
                scratch.by_variable[MARK, w] = stamp
                path[depth, _NODE], path[depth, _EDGE] = w, scratch.by_variable[EDGE, w]
                path[depth, _SUM] = total
    for i in range(ahead):
        for j in range(behind):
            point = ends[0, i] - ends[1, j]
            arena.top[STEPS] += 1
            if count + 2 >= scratch.start.shape[0]:
                return TOO_DEAR
            count = add_point(scratch.start, count, point, low, high)
            count = add_point(scratch.start, count, point + 1, low, high)
    return count


@kernel
def _summed(v, nodes, count, variables, arena, scratch, piece, sums):
    """Fill the sums over the ticks from ``nodes`` on; return a status."""
    top, last = arena.top, scratch.result.shape[0] - 1
    stop = top[NODES]
    total, mean, square, sure, of_piece, ends = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    is_sure = True
    for node in range(nodes, stop):
        weight = arena.weight[node]
        _hold_own(v, arena.tick[node], variables)
        status = counted(0, count, variables, arena, scratch)
        if status != READY:
            return status
        g = min(scratch.result[last], 1.0)
        total += weight
        mean += weight * g
        square += weight * g * g
        here = g <= _SURE or g >= 1.0 - _SURE
        if piece[node] % 2 == 0:
            sure += weight if here else 0.0
            continue
        of_piece += weight
        is_sure = is_sure and here
        ends += 1.0 if here and weight == 0.0 else 0.0
        if node + 1 == stop or piece[node + 1] != piece[node]:
            sure += of_piece if is_sure else ends
            of_piece, ends, is_sure = 0.0, 0.0, True
    sums[MEAN], sums[SQUARE], sums[SURE] = mean / total, square / total, sure / total
    return READY


@kernel
def _hold_own(v, tick, variables):
    """Hold a variable at a tick of its own, and move the times by it if it is a clock."""
    clock = variables[CLOCK, v]
    if is_open(clock, variables):
        variables[OWN_LOW, v] = variables[OWN_HIGH, v] = tick
        set_bounds(v, variables[LOW, clock] + tick, variables[HIGH, clock] + tick, variables)
        return
    bound(v, tick, tick, variables)
