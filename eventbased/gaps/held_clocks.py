"""Confidences of searched matches whose events, or what may lie in their gaps, share clocks.

Given the offsets of the clocks that several of these events name, all times are independent, so that the
confidence is the mean of confidences given offsets. Those are of the kernels for independent times, with
bounds moved. Where all these events are of such clocks, only differences to the offset of one of them count:
nothing is held of one clock, and of two the sum is over the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence import CostlyMatchError
from confidence.arrays import largest, smallest
from confidence.budget import checkpoint
from confidence.chain.distribution import Intervals, Pmfs
from confidence.config import FEWEST_DRAWS
from confidence.gaps.chains import Limits, room_for
from confidence.kernel import kernel
from confidence.predicates.conditions import Conditions, Scratch
from confidence.shared.held import Offsets, OwnTimes, tight_range
from eventbased.gaps.gap_events import (
    NOT_HELD,
    ForbiddenEvents,
    GapRules,
    Gathered,
    HeldOffsets,
    MatchEvents,
    Placed,
    collect,
    forbidden_in,
    some_of,
    take_match,
    unmark,
)

__all__ = ["HeldConfidences", "TooManyOffsetsError"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_AT_ONCE: Final = 1 << 15
"""Choices of offsets that matches are weighed for in one call."""


class TooManyOffsetsError(ValueError):
    """The confidence of a match is a sum over too many choices of offsets.

    Attributes
    ----------
    clocks : (c,) int64
        The clocks whose offsets are held.
    """

    def __init__(self, clocks: Int64) -> None:
        self.clocks = clocks
        super().__init__(f"clocks {clocks.tolist()} have too many offsets")


@kernel(allocates=True)
def _shared_in_reach(
    matches, first_match, candidates, window, pools, rules, is_set, conditions, scratch, gathered, own,
    counts, start, found_clocks, together,
):  # fmt: skip
    """List the clocks that several events of each match, and of what may lie in its gaps, name.

    Parameters
    ----------
    matches, candidates, window, pools, rules, conditions, scratch, gathered
        As for :func:`eventbased.gaps.gap_confidences.gap_confidences`; no offsets are held.
    first_match : int64
        The match to begin with.
    is_set : bool
        Whether components are partially ordered: then whatever may lie within the window of an event counts.
    own : OwnTimes
    counts : (c,) int64
        All 0, and so again at the end.
    start : (k + 1,) int64, found_clocks : (m,) int64
        Overwritten: the clocks of each match.
    together : (k,) bool
        Overwritten: whether all these events are of such clocks.

    Returns
    -------
    done : int64
        Matches done.
    events, clocks : int64
        How many events and clocks there has to be room for to go on; 0 if nothing is missing.
    """
    count = matches.start.shape[0] - 1
    forbidden = gathered.forbidden
    for n in range(first_match, count):
        size = matches.start[n + 1] - matches.start[n]
        if size + 2 > forbidden.gaps.shape[1]:
            return n, size + 2, 0
        match = Intervals(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64))
        bounds = np.empty((4, size), np.int64)
        take_match(matches, n, candidates, conditions, scratch, gathered, match)
        found = 0
        if is_set:
            above, until = smallest(match.lower) - window, largest(match.upper) + window
            length = rules.taking.shape[0]
            for k in range(rules.negated.shape[0]):
                asked = (scratch.start[length + k], conditions.negated[k], conditions.negated[k + 1], -1)
                if found >= 0:
                    found = collect(
                        pools, rules.negated[k], matches.place[matches.start[n]], above, until, 0, conditions,
                        scratch, asked, found, gathered,
                    )  # fmt: skip
        else:
            _, found = forbidden_in(
                pools, rules, conditions, matches, n, match, bounds, window, scratch, gathered
            )
        unmark(matches, n, candidates, found, gathered)
        if found < 0:
            return n, forbidden.event.shape[0] + 1, 0
        if start[n] + size + found > found_clocks.shape[0]:
            return n, 0, start[n] + size + found
        at = start[n]
        together[n] = True
        for again in range(3):
            for k in range(size + found):
                if k < size:
                    clock = own.clock[candidates.row[matches.place[matches.start[n] + k]]]
                else:
                    clock = own.clock[forbidden.event[k - size]]
                if clock < 0:
                    together[n] = False
                elif again == 0:
                    counts[clock] += 1
                elif again == 1 and counts[clock] == 1:
                    together[n] = False
                elif again == 1 and counts[clock] > 1:
                    found_clocks[at] = clock
                    at += 1
                    counts[clock] = -1
                elif again == 2:
                    counts[clock] = 0
        start[n + 1] = at
    return count, 0, 0


class _Choices(NamedTuple):
    """The choices of offsets of some matches."""

    clocks: Int64
    """(f, k) int64. The clocks held, -1 behind the last one."""
    first: Int64
    sizes: Int64
    """(f, k) int64. The least offset of each, or least difference to that of the first clock, and how many
    there are; 1 where there is no clock."""
    total: Int64
    """(k,) int64. Choices."""
    together: NDArray[np.bool_]
    """(k,) bool. Whether only differences count."""


@dataclass(slots=True)
class HeldConfidences:
    """Ranges and confidences of searched matches, by those of independent times; see :meth:`describe`."""

    inner: Any
    """What describes matches with independent times: it takes offsets held as a last argument."""
    own: OwnTimes
    offsets: Offsets
    values: Float64
    window: int
    is_set: bool
    """Whether components are partially ordered."""
    is_anchored: bool
    """Whether some condition is on a time itself: then more counts than differences."""
    most: int
    """Most choices of offsets to be gone through for one match."""
    limits: Limits

    def describe(
        self,
        matches: MatchEvents,
        candidates: Placed,
        offsets: Int64,
        pools: ForbiddenEvents,
        rules: Any,
        conditions: Conditions,
        pmfs: Pmfs,
        wanted: bool,
        scratch: Scratch,
        out: tuple[NDArray[Any], ...],
        all_rules: GapRules,
    ) -> None:
        """Fill ranges, confidences and, where there is room for them, standard errors.

        Parameters
        ----------
        offsets, pmfs
            The laws of events whose clocks are not held.
        rules
            What the inner one takes.
        all_rules : GapRules

        Raises
        ------
        CostlyMatchError, TooManyOffsetsError
            If a match takes too many steps, or has too many choices of offsets.
        """
        found = len(matches.start) - 1
        start, clocks, together = self._shared(
            matches, candidates, offsets, pools, all_rules, conditions, scratch
        )
        counts = np.diff(start)

        def inner(some: MatchEvents, which: Int64, held: HeldOffsets | None) -> tuple[NDArray[Any], ...]:
            """Return the columns of matches, which are among those given."""
            many = len(some.start) - 1
            columns = np.empty(many, np.int64), np.empty(many, np.int64), np.zeros(many), np.zeros(many)
            arguments = (some, candidates, offsets, pools, rules, conditions, pmfs, wanted, scratch)
            try:
                self.inner.describe(*arguments, columns[: len(out)], *([] if held is None else [held]))
            except CostlyMatchError as error:
                raise CostlyMatchError(int(which[error.match]), error.steps) from None
            return columns

        alone = np.flatnonzero(counts == 0)
        if len(alone):
            some = matches if len(alone) == found else some_of(matches, alone)
            for column, value in zip(out, inner(some, alone, None), strict=False):
                column[alone] = value
        rest = np.flatnonzero(counts > 0)
        if not len(rest):
            return
        now = np.full(len(self.offsets.lower), NOT_HELD)
        choices = self._choices(rest, start, clocks, together & (matches.boxes.shape[1] == 0))
        dear = choices.total > self.most
        estimated = self.limits.std_error > 0.0 and len(out) > 3
        if dear.any() and not estimated:
            held = choices.clocks[:, np.argmax(dear)]
            raise TooManyOffsetsError(held[held >= 0])
        sums = _Sums(len(rest))
        few = np.flatnonzero(~dear)
        ends = np.cumsum(choices.total[few])
        for begin in range(0, int(ends[-1]) if len(few) else 0, _AT_ONCE):
            checkpoint()
            number = np.arange(begin, min(begin + _AT_ONCE, int(ends[-1])))
            match = np.searchsorted(ends, number, side="right")
            number -= (ends - choices.total[few])[match]
            sums.add(*self._weighed(choices, few[match], number, matches, rest, now, inner))
        lower, upper, confidence, error = sums.lower, sums.upper, sums.confidence, sums.error
        for n in np.flatnonzero(dear).tolist():
            checkpoint()
            lower[n], upper[n], confidence[n], error[n] = self._estimated(
                choices.clocks[:, n], matches, candidates, int(rest[n]), now, inner
            )
        possible = lower <= upper
        out[0][rest] = np.where(possible, lower, 0)
        out[1][rest] = np.where(possible, upper, -1)
        out[2][rest] = np.where(possible, np.minimum(confidence, 1.0), 0.0)
        if len(out) > 3:
            out[3][rest] = error

    def _shared(
        self,
        matches: MatchEvents,
        candidates: Placed,
        offsets: Int64,
        pools: ForbiddenEvents,
        rules: GapRules,
        conditions: Conditions,
        scratch: Scratch,
    ) -> tuple[Int64, Int64, NDArray[np.bool_]]:
        """Return the clocks of each match that several of its events and of those in its gaps name."""
        found = len(matches.start) - 1
        mark = np.full(len(self.own.clock), -1, dtype=np.int64)
        counts = np.zeros(len(self.offsets.lower), dtype=np.int64)
        start = np.zeros(found + 1, dtype=np.int64)
        clocks = np.empty(4 * found + 64, dtype=np.int64)
        together = np.empty(found, dtype=np.bool_)
        events = 64
        shared: Any = _shared_in_reach
        done = 0
        gaps = int(np.diff(matches.start).max(initial=0)) + 4
        while done < found:
            gathered = Gathered(mark, offsets, room_for(events, gaps))
            done, more_events, more_clocks = shared(
                matches, done, candidates, self.window, pools, rules, self.is_set, conditions, scratch,
                gathered, self.own, counts, start, clocks, together,
            )  # fmt: skip
            checkpoint()
            events = max(events, 2 * more_events)
            if more_clocks:
                clocks = np.concatenate((clocks, np.empty(more_clocks, dtype=np.int64)))
        return start, clocks[: start[-1]], together

    def _choices(self, rest: Int64, start: Int64, clocks: Int64, together: NDArray[np.bool_]) -> _Choices:
        """Return the choices of offsets of some matches."""
        counts = (start[rest + 1] - start[rest]).astype(np.int64)
        held = np.full((int(counts.max()), len(rest)), -1)
        for place in range(len(held)):
            there = counts > place
            held[place, there] = clocks[start[rest[there]] + place]
        there = held >= 0
        known = np.where(there, held, 0)
        lower, upper = self.offsets.lower[known], self.offsets.upper[known]
        uniform = ((self.offsets.offset[known] < 0) | ~there).all(axis=0)
        apart = together[rest] & (uniform | (counts == 1)) & (not self.is_anchored)
        first = np.where(apart, lower - upper[0], lower)
        last = np.where(apart, upper - lower[0], upper)
        first[0], last[0] = np.where(apart, 0, first[0]), np.where(apart, 0, last[0])
        sizes = np.where(there, last - first + 1, 1)
        total = np.prod(sizes.astype(np.float64), axis=0)
        beyond = float(self.most) + 1.0
        return _Choices(held, first, sizes, np.minimum(total, beyond).astype(np.int64), apart)

    def _weighed(
        self,
        choices: _Choices,
        n: Int64,
        digit: Int64,
        matches: MatchEvents,
        rest: Int64,
        now: Int64,
        inner: Any,
    ) -> tuple[Int64, Float64, tuple[NDArray[Any], ...]]:
        """Return matches, weights, and ranges, confidences and errors of some choices."""
        held, sizes, apart = choices.clocks[:, n], choices.sizes[:, n], choices.together[n]
        there = held >= 0
        clock = np.where(there, held, 0)
        lower, upper = self.offsets.lower[clock], self.offsets.upper[clock]
        value = np.empty_like(held)
        for place in range(len(held) - 1, -1, -1):
            value[place] = choices.first[place, n] + digit % sizes[place]
            digit = digit // sizes[place]
        # Where the first clock's offset can be, with others at differences to it. At its least all are within
        # bounds, which say where forbidden events are looked for.
        low = np.where(there, lower - np.where(apart, value, 0), lower[0]).max(axis=0)
        high = np.where(there, upper - np.where(apart, value, 0), upper[0]).min(axis=0)
        value = np.where(apart, value + low, value)
        weight = self._weight(clock, there, value)
        widths = np.where(there, upper - lower + 1, 1).prod(axis=0, dtype=np.float64)
        chance = np.maximum(high - low + 1, 0) / widths
        weight = np.where(apart, np.where(there.sum(axis=0) == 1, 1.0, chance), weight)
        kept = np.flatnonzero(weight > 0.0)
        count = there[:, kept].sum(axis=0)
        start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(count)))
        chosen = there[:, kept].T
        given = HeldOffsets(self.own, start, clock[:, kept].T[chosen], value[:, kept].T[chosen], now)
        which = rest[n[kept]]
        lowest, highest, confidence, error = inner(some_of(matches, which), which, given)
        possible = lowest <= highest
        highest = highest + np.where(apart, high - low, 0)[kept]
        return n[kept], weight[kept], (lowest, highest, confidence, error, possible)

    def _weight(self, clock: Int64, there: NDArray[np.bool_], value: Int64) -> Float64:
        """Return the probability of offsets of clocks, each (f, k): (k,) float64."""
        lower, upper, law = (column[clock] for column in self.offsets)
        weight = 1.0 / (upper - lower + 1).astype(np.float64)
        if (law >= 0).any():
            weight = np.where(law >= 0, self.values[np.where(law >= 0, law + value - lower, 0)], weight)
        return np.asarray(np.where(there, weight, 1.0).prod(axis=0))

    def _estimated(
        self, held: Int64, matches: MatchEvents, candidates: Placed, match: int, now: Int64, inner: Any
    ) -> tuple[int, int, float, float]:
        """Return range, confidence and standard error of a match by drawing offsets.

        The range holds the tightest one: what forbidden events exclude is not taken off.
        """
        clocks = held[held >= 0]
        draws = max(FEWEST_DRAWS, math.ceil((0.5 / self.limits.std_error) ** 2))
        if draws > self.most:
            raise TooManyOffsetsError(clocks)
        place = matches.place[matches.start[match] : matches.start[match + 1]]
        own = candidates.row[place]
        known = np.concatenate((self.offsets.lower[clocks], self.own.lower[own], self.own.upper[own]))
        random = np.random.default_rng([self.limits.seed, *(known % 2**32).tolist()])
        value = np.empty((len(clocks), draws), dtype=np.int64)
        for number, clock in enumerate(clocks.tolist()):
            lower, upper, law = (int(column[clock]) for column in self.offsets)
            if law < 0:
                value[number] = random.integers(lower, upper, draws, endpoint=True)
            else:
                chances = self.values[law : law + upper - lower + 1]
                value[number] = lower + random.choice(len(chances), draws, p=chances / chances.sum())
        values, errors = [], []
        for begin in range(0, draws, _AT_ONCE):
            checkpoint()
            part = value[:, begin : begin + _AT_ONCE]
            many = part.shape[1]
            start = np.arange(many + 1) * len(clocks)
            given = HeldOffsets(self.own, start, np.tile(clocks, many), part.T.reshape(-1).copy(), now)
            which = np.full(many, match)
            _, _, confidence, error = inner(some_of(matches, which), which, given)
            values.append(confidence)
            errors.append(error)
        found = np.concatenate(values)
        base = candidates.base[place]
        low, high = candidates.lower[place] - base, candidates.upper[place] - base
        is_held = self.own.clock[own][:, None] == clocks
        mine = is_held.any(axis=1)
        low, high = np.where(mine, self.own.lower[own], low), np.where(mine, self.own.upper[own], high)
        _, lower, upper = tight_range(
            low, high, np.where(mine, is_held.argmax(axis=1), -1), self.offsets.lower[clocks],
            self.offsets.upper[clocks], self.window,
        )  # fmt: skip
        # One draw more at either end: a sample without spread is no proof of certainty.
        variance = float(found.var()) + 1.0 / draws + float((np.concatenate(errors) ** 2).mean())
        return int(lower), int(upper), float(found.mean()), math.sqrt(variance / draws)


class _Sums:
    """Sums over choices of offsets, match by match."""

    def __init__(self, count: int) -> None:
        self.confidence, self.error = np.zeros((2, count))
        self.lower = np.full(count, np.iinfo(np.int64).max)
        self.upper = np.full(count, np.iinfo(np.int64).min)

    def add(self, match: Int64, weight: Float64, found: tuple[NDArray[Any], ...]) -> None:
        """Add what is found for some choices, of these matches and weights."""
        lower, upper, confidence, error, possible = found
        np.add.at(self.confidence, match, np.where(possible, weight * confidence, 0.0))
        np.add.at(self.error, match, weight * error)
        np.minimum.at(self.lower, match[possible], lower[possible])
        np.maximum.at(self.upper, match[possible], upper[possible])
