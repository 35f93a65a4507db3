"""Where an event may lie that some gaps of a match forbid, and which part of a Markov chain can carry that.

The *places* of an event are what its forbidden gaps leave: before one of the match's times, behind one, on
one, between two neighbouring ones, or a window away from the first or the last. Each depends on one time or
on two neighbours, so a node or an edge of a chain over the times carries it; the places on one node or edge
are a *group*. An event with one group weighs the chain. One with several couples its gaps (Eq. 4 of Zhang,
Diao, Immerman, PVLDB 3(1), 2010): the sum over the times splits into one chain for each choice of a group.
"""

from __future__ import annotations

from typing import Final

from confidence.budget import plain_checkpoint
from confidence.chain.distribution import DOUBTFUL, at_least, at_most, exactly, inside
from confidence.gaps.chains import Chain, chain_weight, next_choice, take_weights
from confidence.kernel import kernel

__all__ = ["free_of", "group_places", "list_places", "sum_over_groups", "weigh_group"]

AT_MOST: Final = 0
AT_LEAST: Final = 1
EXACTLY: Final = 2
INSIDE: Final = 3
BEHIND: Final = 4
AHEAD: Final = 5

KIND: Final = 0
AT: Final = 1
GROUP: Final = 2
SPOT: Final = 3

NONE: Final = -1
PAIR: Final = -2

PLACES: Final = 0
GROUPS: Final = 1
CHOSEN: Final = 2


@kernel
def _reaches(gaps, g, low, high, a, b, last, window):
    """Return whether an event is forbidden in gap g and can lie in it."""
    if not gaps[g]:
        return False
    if g == 0:
        return low < b[0] and high > a[last] - window
    if g > last:
        return high > a[last] and low < b[0] + window
    return low < b[g] and high > a[g - 1]


@kernel
def _first_that_reaches(values, stop, x):
    """Return the first index of ascending values, below ``stop``, whose value is > x; else ``stop``."""
    low, high = 0, stop
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def list_places(forbidden, x, bounds, length, window, places):
    """List where event x may lie; return how many places there are, -1 if nothing keeps it anywhere.

    O(log l), and the gaps from the first that it can lie in to the last.
    """
    a, b = bounds[0], bounds[1]
    low, high, gaps = forbidden.lower[x], forbidden.upper[x], forbidden.gaps[x]
    last = length - 1
    count = 0
    before = -1
    # Tight bounds ascend, so the gaps between two events that it can lie in follow one another.
    begin = max(_first_that_reaches(b, length, low), 1)
    end = _first_that_reaches(a, length, high - 1)
    following = 0
    while following <= last + 1:
        g = following
        following = max(g + 1, begin)
        if following > end:
            following = max(following, last + 1)
        if not _reaches(gaps, g, low, high, a, b, last, window):
            continue
        if before < 0:
            places[KIND, 0] = BEHIND if g == 0 else AT_MOST
            places[AT, 0] = last if g == 0 else g - 1
            # What did not happen is before everything.
            if forbidden.offset[x] <= DOUBTFUL or low <= (b[last] - window if g == 0 else b[g - 1]):
                count = 1
        else:
            for j in range(before, g):
                if j > before and low < b[j] and high > a[j - 1]:
                    places[KIND, count] = INSIDE
                    places[AT, count] = j
                    count += 1
                if low <= b[j] and high >= a[j]:
                    places[KIND, count] = EXACTLY
                    places[AT, count] = j
                    count += 1
        before = g
    if before < 0:
        return -1
    if high >= (a[0] + window if before > last else a[before]):
        places[KIND, count] = AHEAD if before > last else AT_LEAST
        places[AT, count] = 0 if before > last else before
        count += 1
    return count


@kernel
def _carrier(places, r, held):
    """Return the one time that a place depends on, PAIR if it depends on two, NONE if those are held."""
    at = places[AT, r]
    pair = places[KIND, r] == INSIDE and not held[at - 1]
    if held[at]:
        return at - 1 if pair else NONE
    return PAIR if pair else at


@kernel
def group_places(places, count, length, held, marks):
    """Gather the places of an event into groups that one edge or one node can carry; return their number.

    The spot of a group is the later event of its edge, or ``-1 - j`` for node j. Pairing neighbours from the
    left leaves the fewest groups of a path. Linear in the times from the first place to the last.
    """
    node, edge = marks[0], marks[1]
    begin, stop = length, 0
    for r in range(count):
        begin = min(begin, places[AT, r] - (places[KIND, r] == INSIDE))
        stop = max(stop, places[AT, r] + 1)
    for j in range(begin, min(stop + 2, length)):
        node[j] = edge[j] = -1
    groups = 0
    places[SPOT, 0] = -1
    for r in range(count):
        j = _carrier(places, r, held)
        if j == PAIR:
            edge[places[AT, r]] = groups
            places[SPOT, groups] = places[AT, r]
            groups += 1
        elif j >= 0:
            node[j] = 0
    for j in range(begin, stop):
        if node[j] < 0:
            continue
        if edge[j] >= 0:
            node[j] = edge[j]
        elif j + 1 < length and edge[j + 1] >= 0:
            node[j] = edge[j + 1]
        elif j + 1 < length and node[j + 1] >= 0 and not (j + 2 < length and edge[j + 2] >= 0):
            node[j] = edge[j + 1] = groups
            places[SPOT, groups] = j + 1
            groups += 1
        else:
            node[j] = groups
            places[SPOT, groups] = -1 - j
            groups += 1
    for r in range(count):
        j = _carrier(places, r, held)
        if j == PAIR:
            places[GROUP, r] = edge[places[AT, r]]
        else:
            places[GROUP, r] = node[j] if j >= 0 else 0
    return groups


@kernel
def _chance(kind, at, low, high, offset, pmfs, window, times):
    """Return the probability that an event lies at one of its places, given the times of the match.

    Beside the places around a time or between two, a whole window before the last time (BEHIND) or behind the
    first (AHEAD), where gaps at either end of a match end.
    """
    t = times[at]
    if kind == EXACTLY:
        return exactly(low, high, offset, pmfs.values, t)
    if kind == INSIDE:
        return inside(low, high, offset, pmfs.values, times[at - 1], t)
    if kind in (AT_MOST, BEHIND):
        return at_most(low, high, offset, pmfs.head, t if kind == AT_MOST else t - window)
    return at_least(low, high, offset, pmfs.tail, t if kind == AT_LEAST else t + window)


@kernel
def weigh_group(k, group, forbidden, pmfs, window, chain, work):
    """Multiply a chain's weights by the probability that a coupling event lies in a group. O(U^2).

    ``k`` is the event's place in ``work.coupled``; held times are those in ``work.times``.
    """
    places, held, times, side = work.places[k], work.held, work.times, work.side
    bounds, node, edge, _ = chain
    a, b = bounds[0], bounds[1]
    x = work.coupled[k]
    low, high, offset = forbidden.lower[x], forbidden.upper[x], forbidden.offset[x]
    spot = places[SPOT, group]
    pairs = spot >= 0
    j = spot if pairs else -1 - spot
    i = max(j - 1, 0)
    width = b[j] - a[j] + 1
    constant = 0.0
    for t in range(width):
        side[1, t] = 0.0
    if pairs:
        for s in range(b[i] - a[i] + 1):
            side[0, s] = 0.0
    both = False
    for r in range(work.counts[PLACES, k]):
        if places[GROUP, r] != group:
            continue
        kind, at = places[KIND, r], places[AT, r]
        carrier = _carrier(places, r, held)
        if carrier == PAIR:
            both = True
        elif carrier == NONE:
            constant += _chance(kind, at, low, high, offset, pmfs, window, times)
        else:
            row = 1 if carrier == j else 0
            for t in range(b[carrier] - a[carrier] + 1):
                times[carrier] = a[carrier] + t
                side[row, t] += _chance(kind, at, low, high, offset, pmfs, window, times)
    if not pairs:
        for t in range(width):
            node[j, t] *= constant + side[1, t]
        return
    for s in range(a[i], b[i] + 1):
        plain_checkpoint()
        row = bounds[2, j] + (s - a[i]) * width
        earlier = constant + side[0, s - a[i]]
        begin = max(0, s + 1 - a[j])
        if not both:
            for t in range(begin, width):
                edge[row + t] *= earlier + side[1, t]
            continue
        between = 0.0
        for t in range(begin, width):
            # Term by term, as a difference of running sums could cancel.
            if offset == -1 or t == begin:
                between = inside(low, high, offset, pmfs.values, s, a[j] + t)
            else:
                between += exactly(low, high, offset, pmfs.values, a[j] + t - 1)
            edge[row + t] *= earlier + side[1, t] + between


@kernel
def sum_over_groups(count, forbidden, pmfs, window, length, edges, work):
    """Return the weight over all choices of groups of the events that couple gaps."""
    chain = Chain(work.bounds, work.node[:length], work.edge, work.front)
    spare = chain
    if count > 0:
        spare = Chain(work.bounds, work.spare_node[:length], work.spare_edge, work.front)
    a, b = work.bounds[0], work.bounds[1]
    chosen = work.counts[CHOSEN]
    for k in range(count):
        chosen[k] = 0
    total = 0.0
    first_time = b[0] + 1
    last_time = a[length - 1] - 1
    while True:
        plain_checkpoint()
        if count > 0:
            take_weights(spare, chain, edges)
        for k in range(count):
            weigh_group(k, chosen[k], forbidden, pmfs, window, spare, work)
        weight, first, last = chain_weight(spare, window)
        if weight > 0.0:
            total += weight
            first_time = min(first_time, first)
            last_time = max(last_time, last)
        if not next_choice(chosen, work.counts[GROUPS], count):
            return total, first_time, last_time


@kernel
def free_of(count, forbidden, pmfs, window, work):
    """Return P(no event that couples gaps lies in one that forbids it), given ``work.times``. O(l count)."""
    free = 1.0
    for k in range(count):
        x = work.coupled[k]
        places = work.places[k]
        probability = 0.0
        for r in range(work.counts[PLACES, k]):
            probability += _chance(
                places[KIND, r], places[AT, r], forbidden.lower[x], forbidden.upper[x], forbidden.offset[x],
                pmfs, window, work.times,
            )  # fmt: skip
        free *= probability
    return free
