"""The choice of a variable of listed matches to hold, and of its ticks.

Given its tick t, P(n matches) is a polynomial of t on pieces. They begin where t, or the tick before it, is a
bound of a variable less the sum of the distances along a path of undecided literals to it: only there a
vertex of one of the polytopes comes or goes. A polytope is empty where a path of lower bounds alone says so;
the first literal of such a path tells on which side of that tick the next piece begins. Where a vertex goes
and none is empty, both polynomials have the value of that tick. The degree is at most the number of variables
that undecided literals lead to. Times with probabilities of single ticks among them leave no pieces but
ticks.
"""

from __future__ import annotations

from typing import Final

from confidence.chain.piece_sums import PieceSums, piece_term, piece_terms, solves
from confidence.chain.pieces import add_point
from confidence.groups.literal_stack import is_open, literal_at
from confidence.groups.problems import (
    CLOCK,
    EDGE,
    HIGH,
    LAW,
    LOW,
    MARK,
    MOST_STEPS,
    NODES,
    NUMBER,
    OWN_HIGH,
    OWN_LOW,
    SIZE,
    STAMP,
    STEPS,
)
from confidence.groups.simplifying import NO_ROOM
from confidence.kernel import kernel

__all__ = ["TOO_DEAR", "append_piece", "append_tick", "degree_of", "held_ticks", "piece_starts", "tying_most"]

TOO_DEAR: Final = -2

_NEXT: Final = 0
_END: Final = 1
_DISTANCE: Final = 2
_IS_UPPER: Final = 3
"""Columns of ``scratch.edges``: of an edge from v to w, ``t_w >= t_v + distance``, or ``<=``."""

_NODE: Final = 0
_EDGE: Final = 1
_SUM: Final = 2
_LOW: Final = 3
_HIGH: Final = 4
_SIDE: Final = 5
"""Columns of ``scratch.path``: a variable, its next edge, its time less that of the held one, between which
ticks of the held one all on the path are within bounds, and whether the first edge is an upper bound."""


@kernel
def tying_most(begin, end, variables, arena, scratch):
    """Gather the undecided literals of listed matches as edges; return the variable that most of them tie.

    -1 if that takes more steps than the group may. Of several the one with fewest ticks. A time by a clock
    that is not held cannot be held. If no literal ties two variables, the one that most literals bound.
    """
    arena.top[STAMP] += 1
    count, edges = 0, 0
    for place in range(begin, end):
        match = arena.listed[place]
        first, last = arena.literal[arena.term[match]], arena.literal[arena.term[match + 1]]
        arena.top[STEPS] += last - first
        if arena.top[STEPS] > arena.top[MOST_STEPS]:
            return -1
        for k in range(first, last):
            x, y, distance = literal_at(k, arena)
            count = _reach(x, count, variables, arena, scratch)
            count = _reach(y, count, variables, arena, scratch)
            edges = _add_edge(x, y, distance, 0, edges, arena, scratch)
            edges = _add_edge(y, x, -distance, 1, edges, arena, scratch)
            scratch.by_variable[NUMBER, x] += 1
            scratch.by_variable[NUMBER, y] += 1
            if x and y:
                scratch.by_variable[SIZE, x] += 1
                scratch.by_variable[SIZE, y] += 1
    for k in range(count):
        v = scratch.touched[k]
        clock = variables[CLOCK, v]
        if is_open(clock, variables):
            scratch.by_variable[SIZE, clock] += 1
            edges = _add_edge(clock, v, variables[OWN_LOW, v], 0, edges, arena, scratch)
            edges = _add_edge(clock, v, variables[OWN_HIGH, v], 1, edges, arena, scratch)
            edges = _add_edge(v, clock, -variables[OWN_LOW, v], 1, edges, arena, scratch)
            edges = _add_edge(v, clock, -variables[OWN_HIGH, v], 0, edges, arena, scratch)
    best = -1
    for k in range(count):
        v = scratch.touched[k]
        if (
            v
            and not is_open(variables[CLOCK, v], variables)
            and (best < 0 or _is_better(v, best, variables, scratch))
        ):
            best = v
    return best


@kernel
def _is_better(v, best, variables, scratch):
    """Return whether to hold one variable, rather than another one."""
    if scratch.by_variable[SIZE, v] != scratch.by_variable[SIZE, best]:
        return scratch.by_variable[SIZE, v] > scratch.by_variable[SIZE, best]
    if (
        scratch.by_variable[SIZE, v] == 0
        and scratch.by_variable[NUMBER, v] != scratch.by_variable[NUMBER, best]
    ):
        return scratch.by_variable[NUMBER, v] > scratch.by_variable[NUMBER, best]
    return variables[HIGH, v] - variables[LOW, v] < variables[HIGH, best] - variables[LOW, best]


@kernel
def _reach(v, count, variables, arena, scratch):
    """Note a variable, and its clock if that is not held, once each; return how many there are."""
    for _ in range(2):
        if scratch.by_variable[MARK, v] != arena.top[STAMP]:
            scratch.by_variable[MARK, v] = arena.top[STAMP]
            scratch.touched[count] = v
            scratch.by_variable[SIZE, v] = scratch.by_variable[NUMBER, v] = 0
            scratch.by_variable[EDGE, v] = -1
            count += 1
        clock = variables[CLOCK, v]
        if not is_open(clock, variables):
            break
        v = clock
    return count


@kernel
def _add_edge(v, w, distance, is_upper, edges, arena, scratch):
    """Add an edge, unless it is there already or leads away from the constant; return how many there are."""
    if v == 0:
        return edges
    rows = scratch.edges
    e = scratch.by_variable[EDGE, v]
    while e >= 0:
        if rows[e, _END] == w and rows[e, _DISTANCE] == distance and rows[e, _IS_UPPER] == is_upper:
            return edges
        arena.top[STEPS] += 1
        e = rows[e, _NEXT]
    rows[edges, _NEXT], rows[edges, _END] = scratch.by_variable[EDGE, v], w
    rows[edges, _DISTANCE], rows[edges, _IS_UPPER] = distance, is_upper
    scratch.by_variable[EDGE, v] = edges
    return edges + 1


@kernel
def held_ticks(v, variables, arena, scratch):
    """Append the ticks to hold a variable at, with their weights; return how many there are.

    The weights are numbers of ticks, or probabilities if it has a law of its own. ``NO_ROOM`` if they do not
    fit, ``TOO_DEAR`` if there are too many pieces, or paths to find them by.
    """
    pieces = piece_starts(v, variables, arena, scratch)
    if pieces < 0:
        return pieces
    before = arena.top[NODES]
    for number in range(pieces):
        if arena.top[STEPS] > arena.top[MOST_STEPS]:
            return TOO_DEAR
        first = scratch.start[number]
        last = scratch.start[number + 1] - 1 if number + 1 < pieces else variables[HIGH, v]
        degree = degree_of(v, first, last, False, variables, arena, scratch)
        if not append_piece(v, first, last, degree, variables, arena, scratch):
            return TOO_DEAR if arena.top[STEPS] > arena.top[MOST_STEPS] else NO_ROOM
    return arena.top[NODES] - before


@kernel
def drawn_tick(v, variables, arena, scratch):
    """Append the one tick that is drawn for a variable; return how many there are, or ``NO_ROOM``."""
    low, high, law = variables[LOW, v], variables[HIGH, v], variables[LAW, v]
    share = scratch.share[v]
    if law < 0:
        ticks = high - low + 1
        tick = min(low + int(share * float(ticks)), high)
        return 1 if append_tick(tick, float(ticks), arena) else NO_ROOM
    total = 0.0
    for place in range(law, law + high - low + 1):
        total += scratch.values[place]
    chosen, reached = high, 0.0
    for tick in range(low, high + 1):
        chance = scratch.values[law + tick - low]
        reached += chance
        if chance > 0.0:
            chosen = tick
            if reached > share * total:
                break
    return 1 if append_tick(chosen, 1.0, arena) else NO_ROOM


@kernel
def piece_starts(v, variables, arena, scratch):
    """Write where the pieces of a variable begin, ascending; return how many there are, or ``TOO_DEAR``."""
    path, start, edges = scratch.path, scratch.start, scratch.edges
    start[0] = variables[LOW, v]
    count = 1
    arena.top[STAMP] += 1
    depth = 0
    path[0, _NODE], path[0, _EDGE], path[0, _SUM] = v, scratch.by_variable[EDGE, v], 0
    path[0, _LOW], path[0, _HIGH] = variables[LOW, v], variables[HIGH, v]
    scratch.by_variable[MARK, v] = arena.top[STAMP]
    while depth >= 0:
        e = path[depth, _EDGE]
        if e < 0:
            scratch.by_variable[MARK, path[depth, _NODE]] = 0
            depth -= 1
            continue
        path[depth, _EDGE] = edges[e, _NEXT]
        arena.top[STEPS] += 1
        if arena.top[STEPS] > arena.top[MOST_STEPS]:
            return TOO_DEAR
        w = edges[e, _END]
        if scratch.by_variable[MARK, w] == arena.top[STAMP] and w:
            continue
        behind = path[depth, _SUM] + edges[e, _DISTANCE]
        is_upper = path[depth, _SIDE] if depth else edges[e, _IS_UPPER]
        begin_tick, end_tick = path[depth, _LOW], path[depth, _HIGH]
        # The bounds of a time by a clock that is not held are edges of their own.
        ends = 2 if variables[LOW, variables[CLOCK, w]] == variables[HIGH, variables[CLOCK, w]] else 0
        for side in range(ends):
            point = (variables[LOW, w] if side == 0 else variables[HIGH, w]) - behind
            if begin_tick <= point <= end_tick:
                if count + 1 >= start.shape[0]:
                    return TOO_DEAR
                begin = point if is_upper else point + 1
                count = add_point(start, count, begin, variables[LOW, v], variables[HIGH, v])
        begin_tick, end_tick = (
            max(begin_tick, variables[LOW, w] - behind),
            min(end_tick, variables[HIGH, w] - behind),
        )
        if w and begin_tick <= end_tick:
            depth += 1
            scratch.by_variable[MARK, w] = arena.top[STAMP]
            path[depth, _NODE], path[depth, _EDGE], path[depth, _SUM] = (
                w,
                scratch.by_variable[EDGE, w],
                behind,
            )
            path[depth, _LOW], path[depth, _HIGH], path[depth, _SIDE] = begin_tick, end_tick, is_upper
    return count


@kernel
def degree_of(v, first, last, by_all, variables, arena, scratch):
    """Return how many variables one is tied to on some of its ticks; -1: one of these has a law.

    ``by_all`` says that all its literals count, whatever the ticks.
    """
    edges, queue = scratch.edges, scratch.touched
    arena.top[STAMP] += 1
    stamp = arena.top[STAMP]
    scratch.by_variable[MARK, v] = scratch.by_variable[MARK, 0] = stamp
    queue[0] = v
    done, count = 0, 1
    has_law = False
    while done < count:
        u = queue[done]
        done += 1
        e = scratch.by_variable[EDGE, u]
        while e >= 0:
            w = edges[e, _END]
            arena.top[STEPS] += 1
            if scratch.by_variable[MARK, w] != stamp and (
                u != v or by_all or _is_open(e, w, first, last, variables, edges)
            ):
                scratch.by_variable[MARK, w] = stamp
                queue[count] = w
                count += 1
                has_law = has_law or variables[LAW, w] >= 0
            e = edges[e, _NEXT]
    return -1 if has_law else count - 1


@kernel
def _is_open(e, w, first, last, variables, edges):
    """Return whether a literal is undecided while a variable that it ties is within some of its ticks."""
    distance = edges[e, _DISTANCE]
    if edges[e, _IS_UPPER]:
        return variables[HIGH, w] > first + distance and variables[LOW, w] <= last + distance
    return variables[LOW, w] < last + distance and variables[HIGH, w] >= first + distance


@kernel
def append_piece(v, first, last, degree, variables, arena, scratch):
    """Append the ticks that tell the sum over a piece, with their weights; return whether there is room.

    Degree -1: each tick. There is no room for more ticks than steps are left.
    """
    law = variables[LAW, v]
    ticks = last - first + 1
    if law >= 0 and degree == 0:
        total = 0.0
        for tick in range(first, last + 1):
            total += scratch.values[law + tick - variables[LOW, v]]
        return total == 0.0 or append_tick(first, total, arena)
    if law >= 0:
        if not _affords(ticks, arena):
            return False
        for tick in range(first, last + 1):
            weight = scratch.values[law + tick - variables[LOW, v]]
            if weight > 0.0 and not append_tick(tick, weight, arena):
                return False
        return True
    sums = PieceSums(scratch.weights, scratch.points, scratch.matrix)
    terms, nodes, apart = piece_terms(ticks, ticks if degree < 0 else degree, sums)
    if not _affords(terms + (degree * degree if solves(apart) else 0), arena):
        return False
    for k in range(terms):
        tick, weight = piece_term(k, nodes, apart, sums)
        if not append_tick(first + tick, weight, arena):
            return False
    return True


@kernel
def _affords(ticks, arena):
    """Spend a step for each of some ticks; return whether the group may take so many."""
    arena.top[STEPS] += ticks
    return arena.top[STEPS] <= arena.top[MOST_STEPS]


@kernel
def append_tick(tick, weight, arena):
    """Append a tick with its weight; return whether there is room."""
    place = arena.top[NODES]
    if place >= arena.tick.shape[0]:
        return False
    arena.tick[place], arena.weight[place] = tick, weight
    arena.top[NODES] = place + 1
    return True
