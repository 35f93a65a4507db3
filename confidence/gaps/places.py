"""Where an event may lie that some gaps of a match forbid, and which part of a Markov chain can carry that.

The *places* of an event are what its forbidden gaps leave: before one of the match's times, behind one, on
one, between two neighbouring ones, or a window away from the first or the last. Each depends on one time or
on two neighbours, so a node or an edge of a chain over the times carries it; the places on one node or edge
are a *group*. An event with one group weighs the chain; one with several couples it.
"""

from __future__ import annotations

from confidence.gaps.forbidden import AHEAD, AT_LEAST, AT_MOST, BEHIND, EXACTLY, INSIDE, chance
from confidence.kernel import kernel

__all__ = ["group_places", "list_places", "weigh_group"]


@kernel
def _reaches(x_gap, x, g, low, high, a, b, window):
    """Return whether event x is forbidden in gap g and can lie in it."""
    last = a.shape[0] - 1
    if not x_gap[x, g]:
        return False
    if g == 0:
        return low < b[0] and high > a[last] - window
    if g > last:
        return high > a[last] and low < b[0] + window
    return low < b[g] and high > a[g - 1]


@kernel
def list_places(x_gap, x, low, high, a, b, window, kind, at):
    """List where event x may lie; return how many places there are, -1 if nothing keeps it anywhere. O(l)."""
    last = a.shape[0] - 1
    count = 0
    before = -1
    for g in range(last + 2):
        if not _reaches(x_gap, x, g, low, high, a, b, window):
            continue
        if before < 0:
            kind[0] = BEHIND if g == 0 else AT_MOST
            at[0] = last if g == 0 else g - 1
            if low <= (b[last] - window if g == 0 else b[g - 1]):
                count = 1
        else:
            for j in range(before, g):
                if j > before and low < b[j] and high > a[j - 1]:
                    kind[count] = INSIDE
                    at[count] = j
                    count += 1
                if low <= b[j] and high >= a[j]:
                    kind[count] = EXACTLY
                    at[count] = j
                    count += 1
        before = g
    if before < 0:
        return -1
    if high >= (a[0] + window if before > last else a[before]):
        kind[count] = AHEAD if before > last else AT_LEAST
        at[count] = 0 if before > last else before
        count += 1
    return count


@kernel
def _is_edge(kind, at, held):
    """Return whether a place depends on two times that are not held."""
    return kind == INSIDE and not held[at] and not held[at - 1]


@kernel
def _node_of(kind, at, held):
    """Return the one time that a place depends on, -1 if that is held."""
    if not held[at]:
        return at
    return at - 1 if kind == INSIDE and not held[at - 1] else -1


@kernel
def group_places(kind, at, places, held, group, spot, marks):
    """Gather the places of an event into groups that one edge or one node can carry; return their number.

    ``spot[k]`` receives the later component of group k's edge, or ``-1 - j`` for node j; ``group`` the group
    of each place. Pairing neighbours from the left leaves the fewest groups of a path. O(l).
    """
    length = held.shape[0]
    node, edge = marks[0], marks[1]
    for j in range(length):
        node[j] = edge[j] = -1
    groups = 0
    for r in range(places):
        if _is_edge(kind[r], at[r], held):
            edge[at[r]] = groups
            spot[groups] = at[r]
            groups += 1
        else:
            j = _node_of(kind[r], at[r], held)
            if j >= 0:
                node[j] = 0
    for j in range(length):
        if node[j] < 0:
            continue
        if edge[j] >= 0:
            node[j] = edge[j]
        elif j + 1 < length and edge[j + 1] >= 0:
            node[j] = edge[j + 1]
        elif j + 1 < length and node[j + 1] >= 0 and not (j + 2 < length and edge[j + 2] >= 0):
            node[j] = edge[j + 1] = groups
            spot[groups] = j + 1
            groups += 1
        else:
            node[j] = groups
            spot[groups] = -1 - j
            groups += 1
    for r in range(places):
        j = _node_of(kind[r], at[r], held)
        if _is_edge(kind[r], at[r], held):
            group[r] = edge[at[r]]
        else:
            group[r] = node[j] if j >= 0 else 0
    return groups


@kernel
def weigh_group(
    wanted, spot, kind, at, places, group, held, low, high, offset, pmf, head, tail, window, bounds,
    edge_start, node, edge, t, side,
):  # fmt: skip
    """Multiply a chain's weights by the probability that an event lies at a place of one group. O(U^2)."""
    a, b = bounds[0], bounds[1]
    pairs = spot >= 0
    j = spot if pairs else -1 - spot
    i = j - 1
    constant = 0.0
    for k in range(b[j] - a[j] + 1):
        side[1, k] = 0.0
    if pairs:
        for k in range(b[i] - a[i] + 1):
            side[0, k] = 0.0
    both = False
    for r in range(places):
        if group[r] != wanted:
            continue
        own = _node_of(kind[r], at[r], held)
        if _is_edge(kind[r], at[r], held):
            both = True
        elif own < 0:
            constant += chance(kind[r], at[r], low, high, offset, pmf, head, tail, window, t)
        else:
            values = side[1] if own == j else side[0]
            for k in range(b[own] - a[own] + 1):
                t[own] = a[own] + k
                values[k] += chance(kind[r], at[r], low, high, offset, pmf, head, tail, window, t)
    if not pairs:
        for k in range(b[j] - a[j] + 1):
            node[j, k] *= constant + side[1, k]
        return
    width = b[j] - a[j] + 1
    for s in range(a[i], b[i] + 1):
        row = edge_start[j] + (s - a[i]) * width
        earlier = constant + side[0, s - a[i]]
        for k in range(max(0, s + 1 - a[j]), width):
            free = earlier + side[1, k]
            if both:
                t[i] = s
                t[j] = a[j] + k
                free += chance(INSIDE, j, low, high, offset, pmf, head, tail, window, t)
            edge[row + k] *= free
