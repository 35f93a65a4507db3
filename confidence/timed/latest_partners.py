"""The probability of each of some uniform times to be the latest one that is not behind another one.

Let x be the last tick at which the partner of a left event may be. Candidate i at s is the partner iff
``x - width <= s <= x``, and no other candidate that happened is between s and x. F_j is the distribution of
candidate j, and q_j the probability that it happened. Given x and s the candidates are independent:

    prod_{j before i} (1 - q_j (F_j(x) - F_j(s)))  *  prod_{j behind i} (1 - q_j (F_j(x) - F_j(s - 1)))

Candidates behind i in the table win a tie. F_j is linear from the tick before its bounds to their end, 0
before and 1 behind. So the product is a polynomial in s between bounds, and few values tell its sum
(`confidence.chain.discrete_gauss`). That sum is a polynomial in x between bounds, and bounds moved by
``width``. Its degree is at most the number of candidates that begin before. There is no partner at x with
probability
``prod_j (1 - q_j (F_j(x) - F_j(x - width - 1)))``, a polynomial on the same pieces. No cost grows with ticks.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.chain.discrete_gauss import MOST_NODES, gauss_nodes
from confidence.chain.piece_sums import PieceSums
from confidence.kernel import kernel

__all__ = ["UNBOUNDED", "Candidates", "PartnerWork", "latest_at", "pieces_of_x", "write_cuts"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

UNBOUNDED: Final = 2**61
"""A width that leaves out nothing."""


class Candidates(NamedTuple):
    """The candidates of left events, those of one beside each other, in the order of their table.

    Attributes
    ----------
    begin : (n + 1,) int64
        Where those of each left event begin.
    low, high : (m,) int64
        Their bounds, ticks.
    happened : (m,) float64
        How likely they happened.
    """

    begin: Int64
    low: Int64
    high: Int64
    happened: Float64


class PartnerWork(NamedTuple):
    """Work arrays for left events of up to c candidates. Of the nearest x and s are t and d."""

    starts: Int64
    """(p,) int64. Where pieces of x begin."""
    bounds: Int64
    """(4 c + 2,) int64. Where distributions of candidates change, which is where pieces of s begin."""
    cuts: Int64
    """(4 c + 2,) int64. Where pieces of d begin."""
    active: Int64
    """(c,) int64. Candidates that may be the partner on a piece of s."""
    factor: Float64
    """(3, c) float64. F_j(x); products of those before a candidate; and what it gives of a tie."""
    sums: PieceSums
    """Of pieces of x."""
    node: Float64
    node_weight: Float64
    """(w,) float64. Values of s, and their weights."""

    @classmethod
    def of(cls, candidates: int, is_nearest: bool) -> PartnerWork:
        """Return the arrays for left events of so many candidates."""
        points = 4 * candidates + 2
        pieces = 12 * candidates * candidates + 24 * candidates + 4 if is_nearest else points
        return cls(
            np.zeros(pieces, np.int64),
            np.zeros(points, np.int64),
            np.zeros(points, np.int64),
            np.zeros(candidates, np.int64),
            np.zeros((3, candidates)),
            PieceSums.of(candidates + 1),
            np.zeros(2 * MOST_NODES),
            np.zeros(2 * MOST_NODES),
        )


@kernel
def write_cuts(first, last, candidates, cuts):
    """Write the ticks at which distributions of candidates change, ascending; return how many there are."""
    count = 0
    for j in range(first, last):
        for bound in (candidates.low[j], candidates.high[j] + 1):
            place = count
            while place > 0 and cuts[place - 1] >= bound:
                place -= 1
            if place < count and cuts[place] == bound:
                continue
            for k in range(count, place, -1):
                cuts[k] = cuts[k - 1]
            cuts[place] = bound
            count += 1
    return count


@kernel
def pieces_of_x(first_x, last_x, width, count, work):
    """Write where the pieces of x begin: those of s, and these moved by the width; return their number."""
    starts, cuts = work.starts, work.bounds
    starts[0] = first_x
    pieces, here, moved = 1, 0, 0
    if width >= UNBOUNDED:
        moved = count
    while here < count or moved < count:
        point = cuts[here] if here < count else UNBOUNDED
        later = cuts[moved] + width if moved < count else UNBOUNDED
        if point <= later:
            here += 1
        else:
            point = later
            moved += 1
        if starts[pieces - 1] < point <= last_x:
            starts[pieces] = point
            pieces += 1
    return pieces


@kernel
def _share(candidates, j, tick):
    """Return the probability that a candidate is at a tick or before."""
    low, high = candidates.low[j], candidates.high[j]
    if tick < low:
        return 0.0
    return 1.0 if tick >= high else float(tick - low + 1) / float(high - low + 1)


@kernel
def latest_at(x, weight, left, width, all_tied, candidates, cuts, work, partner, alone):
    """Add what one tick x gives; return how many steps that took."""
    first, last = candidates.begin[left], candidates.begin[left + 1]
    none = 1.0
    for j in range(first, last):
        share = _share(candidates, j, x)
        work.factor[0, j - first] = share
        reached = 0.0 if width >= UNBOUNDED else _share(candidates, j, x - width - 1)
        none *= 1.0 - candidates.happened[j] * (share - reached)
    alone[left] += weight * none
    steps = 4 * (last - first)
    for piece in range(cuts - 1, -1, -1):
        start, end = work.bounds[piece], x
        if start > x:
            continue
        if piece + 1 < cuts:
            end = min(x, work.bounds[piece + 1] - 1)
        if width < UNBOUNDED:
            start = max(start, x - width)
        if start > end:
            return steps
        # Candidates that are later than the piece must not be there.
        later = weight
        active = 0
        for j in range(first, last):
            if candidates.low[j] > end:
                later *= 1.0 - candidates.happened[j] * work.factor[0, j - first]
            elif candidates.high[j] >= start:
                work.active[active] = j
                active += 1
        steps += last - first
        if later == 0.0:
            return steps
        if active:
            steps += _on_piece(start, end, later, all_tied, active, first, candidates, work, partner)
    return steps


@kernel
def _on_piece(start, end, weight, all_tied, active, first, candidates, work, partner):
    """Add what a piece of s gives at one tick x; return how many steps that took."""
    nodes = gauss_nodes(end - start + 1, active - 1, work.node, work.node_weight)
    for k in range(nodes):
        before = 1.0
        for place in range(active):
            j = work.active[place]
            length = float(candidates.high[j] - candidates.low[j] + 1)
            happened, share = candidates.happened[j], work.factor[0, j - first]
            # Ticks from its begin on; as a difference of whole numbers, which are large.
            ticks = float(start - candidates.low[j]) + work.node[k]
            there = 1.0 - happened * (share - (ticks + 1.0) / length)
            work.factor[1, place] = before * happened / length
            # Not at s, either, where it wins a tie.
            work.factor[2, place] = there if all_tied else 1.0 - happened * (share - ticks / length)
            before *= there
        behind = weight * work.node_weight[k]
        for place in range(active - 1, -1, -1):
            partner[work.active[place]] += behind * work.factor[1, place]
            behind *= work.factor[2, place]
    return 8 * max(nodes, 1) * active + 40 if nodes >= 0 else UNBOUNDED
