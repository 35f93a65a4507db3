"""The partners of left events whose times, and those of their candidates, are uniform and independent.

The probabilities of all partners are polynomials in the tick of the left event, between few bounds. So they
are summed over few ticks of each piece; what one tick gives say `latest_partners` and `nearest_partners`.
"""

from __future__ import annotations

from typing import NamedTuple

from confidence.budget import plain_checkpoint
from confidence.chain.piece_sums import piece_term, piece_terms, solves
from confidence.kernel import kernel
from confidence.timed.latest_partners import latest_at, pieces_of_x, write_cuts
from confidence.timed.nearest_partners import nearest_at, pieces_of_t

__all__ = ["PartnerRules", "partners"]


class PartnerRules(NamedTuple):
    """The rules by which candidates are partners.

    Attributes
    ----------
    is_nearest : bool
        Whether they may be on either side; else behind the left event none is.
    gap, reach : int64
        The least (0 or 1) and the most that lies between the two; up to UNBOUNDED. Of the latest one the gap
        is 0.
    all_tied : bool
        Whether all candidates that are as near are partners.
    """

    is_nearest: bool
    gap: int
    reach: int
    all_tied: bool


@kernel
def partners(low, high, rules, candidates, begin, budget, most_steps, work, partner, alone):
    """Fill the probability of each partner, and of none; return the next left event.

    Parameters
    ----------
    low, high : (n,) int64
        Bounds of the last tick at which a partner of each left event may be; of the nearest its own.
    rules : PartnerRules
    candidates : Candidates
    begin : int64
        The first left event.
    budget : int64
        How many steps, of some nanoseconds each, to take before coming back.
    most_steps : int64
        How many steps a left event may take.
    work : PartnerWork
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
        spent += _of_one(low[left], high[left], left, rules, candidates, most_steps, work, partner, alone)
    return low.shape[0]


@kernel
def _of_one(low, high, left, rules, candidates, most_steps, work, partner, alone):
    """Fill the probabilities of one left event; return how many steps that took."""
    first, last = candidates.begin[left], candidates.begin[left + 1]
    ticks = float(high - low + 1)
    for j in range(first, last):
        partner[j] = 0.0
    alone[left] = 0.0
    cuts = write_cuts(first, last, candidates, work.bounds)
    if rules.is_nearest:
        pieces = pieces_of_t(low, high, rules.reach, cuts, work)
    else:
        pieces = pieces_of_x(low, high, rules.reach, cuts, work)
    steps = 4 * max(cuts, pieces)
    for piece in range(pieces):
        start = work.starts[piece]
        end = work.starts[piece + 1] - 1 if piece + 1 < pieces else high
        degree = 1
        for j in range(first, last):
            degree += rules.is_nearest or candidates.low[j] <= end
        terms, nodes, apart = piece_terms(end - start + 1, degree, work.sums)
        steps += terms + (degree * degree * degree if solves(apart) else 0)
        for k in range(terms):
            tick, weight = piece_term(k, nodes, apart, work.sums)
            share = weight / ticks
            if rules.is_nearest:
                steps += nearest_at(
                    start + tick, share, left, rules.gap, rules.reach, rules.all_tied, candidates, cuts, work,
                    partner, alone,
                )  # fmt: skip
            else:
                steps += latest_at(
                    start + tick, share, left, rules.reach, rules.all_tied, candidates, cuts, work, partner,
                    alone,
                )  # fmt: skip
            if steps > most_steps:
                alone[left] = -1.0
                return steps
    return steps
