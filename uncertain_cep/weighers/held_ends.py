"""Sequences whose forbidden spans all end at one time, such as that of UNTIL: it is held at few ticks."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, multiplications_per_call
from confidence.chain.distribution import DOUBTFUL
from confidence.gaps.describing import ALL, COSTLY
from confidence.kernel import always_compiled, runs_plain
from confidence.timed.bounds import UNBOUND
from confidence.timed.held_chains import describe_held, held_work
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.weigher import CANNOT, WRITTEN_OUT, Declined

__all__ = ["HeldChains"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MOST_CELLS: Final = 1 << 22
"""Ticks of all times of one match."""

_MOST_PLAIN: Final = 1 << 24
"""Multiplications of matches that plain Python takes some seconds for: to compile first takes no longer."""


class HeldChains:
    """Sums along two chains, for each of few ticks of the time at which all forbidden spans end."""

    name = "held chain"
    why = "takes sequences whose forbidden spans all end at one time: sums along the forbidden, it held"
    priced_above = WRITTEN_OUT
    takes_all = False

    def __init__(self, most_steps: float) -> None:
        self._most_steps = most_steps

    @classmethod
    def of(cls, pattern: MatchPattern) -> HeldChains:
        """Return the weigher for the matches of a pattern."""
        return cls(pattern.limits.most_steps)

    def price(self, model: MatchModel) -> Float64:
        """Return about how many multiplications each match takes, (k,) float64."""
        prices = np.full(model.count, CANNOT)
        for part in model.explicit:
            held = _held_time(part)
            if held >= 0:
                prices[part.which] = _multiplications(part, held)
        return prices

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        """Fill the answers of matches; return those that take too many steps."""
        declined: Declined = {}
        for part in model.explicit:
            held = _held_time(part)
            takes = (
                np.isfinite(_multiplications(part, held)) if held >= 0 else np.zeros(len(part.which), bool)
            )
            declined |= dict.fromkeys(part.which[~takes].tolist(), (CANNOT, self._most_steps))
            fit = part.some(np.flatnonzero(takes))
            answers = Columns.empty(len(fit.which))
            for place in _summed(fit, held, self._most_steps, answers):
                declined[int(fit.which[place])] = CANNOT, self._most_steps
            out.put(fit.which, answers)
        return declined


def _held_time(part: ExplicitMatches) -> int:
    """Return the time of fewest ticks that all spans of two times have in common; -1 if there is none."""
    forbidden, ends = part.forbidden, part.shape.ends
    length = part.times.first.shape[1]
    if length < 3 or not (ends[0, 0] and ends[1, -1]) or ends.sum() != 2:
        return -1
    common = set(range(length))
    is_tied = False
    for rule in np.unique(forbidden.rule).tolist():
        scope = {
            time
            for time in forbidden.sides[rule, : forbidden.constraints[rule]].ravel().tolist()
            if time >= 0
        }
        if len(scope) > 1:
            common &= scope
            is_tied = True
        if len(scope) > 2:
            return -1
    if not is_tied or not common:
        return -1
    return min(sorted(common), key=lambda time: float(part.sizes[:, time].sum()))


def _binding(part: ExplicitMatches) -> tuple[Mask, Mask]:
    """Return where a time may be too near behind an earlier one, and too far, (k, e) bool each.

    Not where what is asked of the neighbours between them says so already.
    """
    times = part.times
    later, earlier = times.sides.max(axis=1), times.sides.min(axis=1)
    turned = times.sides[:, 0] != later
    low, high = np.broadcast_arrays(times.low, times.high)
    low, high = np.where(turned, -high, low), np.where(turned, -low, high)
    nearest = times.first[:, later] - times.last[:, earlier]
    farthest = times.last[:, later] - times.first[:, earlier]
    step = np.full((len(low), part.shape.times), -float(UNBOUND))
    in_row = np.flatnonzero(later - earlier == 1)
    step[:, later[in_row]] = low[:, in_row]
    step[:, 0] = 0.0
    behind = np.cumsum(step, axis=1)
    implied = (later - earlier > 1) & (low <= behind[:, later] - behind[:, earlier])
    return (nearest < low) & ~implied, farthest > high


def _takes(part: ExplicitMatches, held: int) -> Mask:
    """Return a mask (k,) of matches whose times are bound to neighbours and to the held one alone."""
    i, j = part.times.sides.T
    near, far = _binding(part)
    # Behind its neighbour by no more than so much is not for sums that run along.
    unfit = far | (near & (np.abs(i - j) != 1))
    takes: Mask = ~(unfit & (i != held) & (j != held)).any(axis=1)
    takes &= part.sizes.sum(axis=1) <= _MOST_CELLS
    # Pairs of begins and ends are no polynomial of the degree of one time.
    takes[np.repeat(np.arange(len(takes)), part.spoilers)[part.lasting_spoilers]] = False
    return takes


def _margin(part: ExplicitMatches) -> Int64:
    """Return how near a bound each tick of the held time counts, (k,); -1 where that is everywhere."""
    times, forbidden = part.times, part.forbidden
    is_plain: Mask = np.asarray((times.size > 0.0).all(axis=1))
    for binds in _binding(part):
        bound = np.where(binds, np.minimum(np.abs(times.low), np.abs(times.high)), 0)
        is_plain &= (bound <= 1).all(axis=1)
    match = np.repeat(np.arange(len(is_plain)), part.spoilers)
    offset = forbidden.offset
    explicit = offset >= 0
    may_lack = offset <= DOUBTFUL
    explicit[may_lack] = part.pmfs.values[DOUBTFUL - offset[may_lack] + 1] >= 0.0
    is_plain[match[explicit]] = False
    count = forbidden.constraints[forbidden.rule][:, None]
    present = np.arange(forbidden.low.shape[1]) < count
    far = (forbidden.low > -UNBOUND) & (np.abs(forbidden.low) > 1)
    far |= (forbidden.high < UNBOUND) & (np.abs(forbidden.high) > 1)
    far |= (forbidden.sides[forbidden.rule] == -1).any(axis=2)
    of_rule = np.repeat(match, np.diff(forbidden.rule_start))
    is_plain[of_rule[(far & present).any(axis=1)]] = False
    return np.where(is_plain, times.first.shape[1] + part.spoilers + 1, -1)


def _multiplications(part: ExplicitMatches, held: int) -> Float64:
    """Return about how many multiplications each match takes, (k,) float64; CANNOT where it cannot."""
    sizes, margin, spoilers = part.sizes, _margin(part), part.spoilers
    bounds = 2 * (sizes.shape[1] - 1 + spoilers)
    few = bounds * (2 * margin + 1) + (bounds + 1) * (sizes.shape[1] + spoilers + 3)
    looked_at = np.where(margin < 0, sizes[:, held], np.minimum(sizes[:, held], few))
    steps: Float64 = looked_at * sizes.sum(axis=1) * (2.0 + spoilers)
    return np.where(_takes(part, held), steps, CANNOT)


def _summed(part: ExplicitMatches, held: int, most_steps: float, out: Columns) -> list[int]:
    """Fill ranges and confidences of matches; return the places of those that take too many steps."""
    if not len(part.which):
        return []
    forbidden, sizes = part.forbidden, part.sizes
    rules = int(np.diff(forbidden.rule_start).max(initial=1))
    degree = sizes.shape[1] - 1 + int(part.spoilers.max(initial=0))
    work = held_work(held, sizes, rules, forbidden.low.shape[1], degree)
    work.limits[0] = most_steps
    declined: list[int] = []
    kernel: Any = describe_held
    margin = _margin(part)
    done, reason = 0, COSTLY
    is_long = runs_plain() and float(_multiplications(part, held).sum()) > _MOST_PLAIN
    with always_compiled() if is_long else nullcontext():
        while reason != ALL:
            checkpoint()
            work.limits[1] = multiplications_per_call()
            done, reason = kernel(part.times, forbidden, part.pmfs, done, margin, work, tuple(out[:3]))
            if reason == COSTLY:
                declined.append(int(done))
                done += 1
    return declined
