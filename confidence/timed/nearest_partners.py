"""The probability of each of some uniform times to be the one nearest to another one, on either side.

Given the tick t of the left event, a candidate at distance d is the partner iff no other one that happened is
nearer, or wins a tie. The earlier side wins a tie; before t the last row wins one, behind it the first one.

Given t and d the candidates are independent. Their distributions are linear in both between bounds. So the
sum over d is one of polynomials, between the distances of t to bounds (`confidence.chain.discrete_gauss`). It
is a polynomial in t, of a degree of at most the number of candidates, but for where two of these distances
change places: at half sums of two bounds, at bounds, and at bounds moved by the tolerance. No cost grows with
ticks.
"""

from __future__ import annotations

from confidence.chain.discrete_gauss import gauss_nodes
from confidence.chain.pieces import add_point
from confidence.kernel import kernel
from confidence.timed.latest_partners import UNBOUNDED

__all__ = ["nearest_at", "pieces_of_t"]


@kernel
def pieces_of_t(low, high, reach, cuts, work):
    """Write where the pieces of t begin; return how many there are.

    Two distances change places at a tick or between two: pieces begin there, and at the two ticks behind.
    """
    starts, bounds = work.starts, work.bounds
    starts[0] = low
    if low == high:
        return 1
    count = 1
    for i in range(cuts):
        for shift in range(3):
            count = 1 + add_point(starts[1:], count - 1, bounds[i] - 1 + shift, low, high)
            if reach < UNBOUNDED:
                count = 1 + add_point(starts[1:], count - 1, bounds[i] - reach - 2 + shift, low, high)
                count = 1 + add_point(starts[1:], count - 1, bounds[i] + reach - 1 + shift, low, high)
        for j in range(i, cuts):
            half = (bounds[i] + bounds[j] - 1) // 2
            for shift in range(3):
                count = 1 + add_point(starts[1:], count - 1, half + shift, low, high)
    return count


@kernel
def _count(x, low, length):
    """Return how many ticks of an interval from ``low`` on are at x or before, x between ticks included."""
    return min(max(x - low + 1.0, 0.0), length)


@kernel
def nearest_at(t, weight, left, gap, reach, all_tied, candidates, cuts, work, partner, alone):
    """Add what one tick t of the left event gives; return how many steps that took."""
    first, last = candidates.begin[left], candidates.begin[left + 1]
    none = 1.0
    for j in range(first, last):
        # Ticks from its begin on: as differences of whole numbers, which are large.
        here = float(t - candidates.low[j])
        length = float(candidates.high[j] - candidates.low[j] + 1)
        furthest = float(reach)
        near = _count(here - float(gap), 0.0, length) - _count(here - furthest - 1.0, 0.0, length)
        near += _count(here + furthest, 0.0, length) - _count(here, 0.0, length)
        none *= 1.0 - candidates.happened[j] * near / length
    alone[left] += weight * none
    pieces = _pieces_of_d(t, gap, reach, cuts, work)
    steps = 4 * (last - first) + 8 * pieces
    for piece in range(pieces):
        start = work.cuts[piece]
        end = work.cuts[piece + 1] - 1 if piece + 1 < pieces else reach
        active = 0
        for j in range(first, last):
            low, high = candidates.low[j], candidates.high[j]
            active += (low <= t - start <= high) or (low <= t + start <= high)
            # Surely there, and nearer than the piece.
            is_nearer = low > t - start and high < t + start and (gap == 0 or low > t or high < t)
            if is_nearer and candidates.happened[j] == 1.0:
                return steps
        steps += 2 * (last - first)
        if active:
            steps += _on_piece(start, end, t, weight, gap, all_tied, active, left, candidates, work, partner)
    return steps


@kernel
def _pieces_of_d(t, gap, reach, cuts, work):
    """Write where the pieces of the distance begin, ascending; return how many there are."""
    starts, bounds = work.cuts, work.bounds
    if reach < gap:
        return 0
    starts[0] = gap
    count = 1
    before, behind = cuts - 1, 0
    is_one = gap == 0 and reach >= 1
    while before >= 0 or behind < cuts or is_one:
        point = t - bounds[before] + 1 if before >= 0 else 2 * UNBOUNDED
        other = bounds[behind] - t if behind < cuts else 2 * UNBOUNDED
        if is_one and point >= 1 and other >= 1:
            point = 1
            is_one = False
        elif point <= other:
            before -= 1
        else:
            point = other
            behind += 1
        if starts[count - 1] < point <= reach:
            starts[count] = point
            count += 1
    return count


@kernel
def _on_piece(start, end, t, weight, gap, all_tied, active, left, candidates, work, partner):
    """Add what a piece of the distance gives at one tick t; return how many steps that took."""
    first, last = candidates.begin[left], candidates.begin[left + 1]
    nodes = gauss_nodes(end - start + 1, active - 1, work.node, work.node_weight)
    for k in range(nodes):
        before, behind = 1.0, 1.0
        for j in range(first, last):
            length = float(candidates.high[j] - candidates.low[j] + 1)
            happened = candidates.happened[j] / length
            here = float(t - candidates.low[j])
            back = float(t - start - candidates.low[j]) - work.node[k]
            front = float(t + start - candidates.low[j]) + work.node[k]
            # How many of its ticks are before t and behind it, up to the distance, and nearer.
            earlier, later = _count(here - float(gap), 0.0, length), _count(here, 0.0, length)
            up_to, ahead = earlier - _count(back - 1.0, 0.0, length), _count(front, 0.0, length) - later
            near, near_ahead = 0.0, 0.0
            if start > 0:
                near = earlier - _count(back, 0.0, length)
                near_ahead = _count(front - 1.0, 0.0, length) - later
            place = j - first
            work.factor[0, place], work.factor[1, place] = before, behind
            nearer = 1.0 - happened * (near + near_ahead)
            work.factor[2, place] = nearer if all_tied else 1.0 - happened * (up_to + near_ahead)
            before *= nearer
            behind *= nearer if all_tied else 1.0 - happened * (up_to + ahead)
        share = weight * work.node_weight[k]
        for j in range(last - 1, first - 1, -1):
            low, high = candidates.low[j], candidates.high[j]
            part = share * candidates.happened[j] / float(high - low + 1)
            if low <= t - start <= high:
                partner[j] += part * work.factor[0, j - first]
            if start > 0 and low <= t + start <= high:
                partner[j] += part * work.factor[1, j - first]
            share *= work.factor[2, j - first]
    return 16 * max(nodes, 1) * (last - first) + 40 if nodes >= 0 else UNBOUNDED
