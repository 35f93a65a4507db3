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

from confidence.budget import plain_checkpoint
from confidence.chain.discrete_gauss import MOST_NODES, gauss_nodes
from confidence.kernel import kernel
from confidence.timed.piece_sums import PieceSums, piece_term, piece_terms

__all__ = ["UNBOUNDED", "Candidates", "LatestWork", "latest_partners", "write_cuts"]

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


class LatestWork(NamedTuple):
    """Work arrays for left events of up to c candidates."""

    cuts: Int64
    """(2, 4 c + 2) int64. Where pieces of x and of s begin."""
    active: Int64
    """(c,) int64. Candidates that may be the partner on a piece of s."""
    share: Float64
    """(3, c) float64. F_j(x); products of those before a candidate; and what it gives of a tie."""
    sums: PieceSums
    """Of pieces of x."""
    node: Float64
    node_weight: Float64
    """(w,) float64. Values of s, and their weights."""

    @classmethod
    def of(cls, candidates: int) -> LatestWork:
        """Return the arrays for left events of so many candidates."""
        return cls(
            np.zeros((2, 4 * candidates + 2), np.int64),
            np.zeros(candidates, np.int64),
            np.zeros((3, candidates)),
            PieceSums.of(candidates + 1),
            np.zeros(2 * MOST_NODES),
            np.zeros(2 * MOST_NODES),
        )


@kernel
def latest_partners(low, high, width, all_tied, candidates, begin, budget, most_steps, work, partner, alone):
    """Fill the probability of each partner, and of none; return the next left event.

    Parameters
    ----------
    low, high : (n,) int64
        Bounds of the last tick at which a partner of each left event may be.
    width : int64
        How many ticks before that one a partner may be at most; up to UNBOUNDED.
    all_tied : bool
        Whether candidates at one tick are all partners.
    candidates : Candidates
    begin : int64
        The first left event.
    budget : int64
        How many steps, of some nanoseconds each, to take before coming back.
    most_steps : int64
        How many steps a left event may take.
    work : LatestWork
    partner : (m,) float64
        Written to, for left events that happened; so is ``alone``.
    alone : (n,) float64
        Written to; -1 where a left event takes too many steps.

    Returns
    -------
    int64
    """
    spent = 0
    for left in range(begin, low.shape[0]):
        if spent > budget:
            return left
        plain_checkpoint()
        spent += _partners(
            low[left], high[left], left, width, all_tied, candidates, most_steps, work, partner, alone
        )
    return low.shape[0]


@kernel
def _partners(first_x, last_x, left, width, all_tied, candidates, most_steps, work, partner, alone):
    """Fill the probabilities of one left event; return how many steps that took."""
    first, last = candidates.begin[left], candidates.begin[left + 1]
    ticks = float(last_x - first_x + 1)
    for j in range(first, last):
        partner[j] = 0.0
    alone[left] = 0.0
    cuts = write_cuts(first, last, candidates, work.cuts[1])
    pieces = _pieces_of_x(first_x, last_x, width, cuts, work)
    steps = 4 * cuts
    for piece in range(pieces):
        start = work.cuts[0, piece]
        end = work.cuts[0, piece + 1] - 1 if piece + 1 < pieces else last_x
        degree = 1
        for j in range(first, last):
            degree += candidates.low[j] <= end
        terms, nodes, apart = piece_terms(end - start + 1, degree, work.sums)
        steps += terms + (degree * degree * degree if apart < 0 else 0)
        for k in range(terms):
            tick, weight = piece_term(k, nodes, apart, work.sums)
            x = start + tick
            steps += _at(x, weight / ticks, left, width, all_tied, candidates, cuts, work, partner, alone)
            if steps > most_steps:
                alone[left] = -1.0
                return steps
    return steps


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
def _pieces_of_x(first_x, last_x, width, count, work):
    """Write where the pieces of x begin: those of s, and these moved by the width; return their number."""
    starts, cuts = work.cuts[0], work.cuts[1]
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
def _at(x, weight, left, width, all_tied, candidates, cuts, work, partner, alone):
    """Add what one tick x gives; return how many steps that took."""
    first, last = candidates.begin[left], candidates.begin[left + 1]
    none = 1.0
    for j in range(first, last):
        share = _share(candidates, j, x)
        work.share[0, j - first] = share
        reached = 0.0 if width >= UNBOUNDED else _share(candidates, j, x - width - 1)
        none *= 1.0 - candidates.happened[j] * (share - reached)
    alone[left] += weight * none
    steps = 4 * (last - first)
    for piece in range(cuts - 1, -1, -1):
        start, end = work.cuts[1, piece], x
        if start > x:
            continue
        if piece + 1 < cuts:
            end = min(x, work.cuts[1, piece + 1] - 1)
        if width < UNBOUNDED:
            start = max(start, x - width)
        if start > end:
            return steps
        # Candidates that are later than the piece must not be there.
        later = weight
        active = 0
        for j in range(first, last):
            if candidates.low[j] > end:
                later *= 1.0 - candidates.happened[j] * work.share[0, j - first]
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
            happened, share = candidates.happened[j], work.share[0, j - first]
            # Ticks from its begin on; as a difference of whole numbers, which are large.
            ticks = float(start - candidates.low[j]) + work.node[k]
            there = 1.0 - happened * (share - (ticks + 1.0) / length)
            work.share[1, place] = before * happened / length
            # Not at s, either, where it wins a tie.
            work.share[2, place] = there if all_tied else 1.0 - happened * (share - ticks / length)
            before *= there
        behind = weight * work.node_weight[k]
        for place in range(active - 1, -1, -1):
            partner[work.active[place]] += behind * work.share[1, place]
            behind *= work.share[2, place]
    return 8 * max(nodes, 1) * active + 40 if nodes >= 0 else UNBOUNDED
