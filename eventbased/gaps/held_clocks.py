"""Confidences of searched matches whose events, or what may lie in their gaps, share clocks.

Given the offsets of the clocks that several of these events name, all times are independent, so that the
confidence is the mean of confidences given offsets. Those are of the kernels for independent times, with
bounds moved. Where all these events are of such clocks, only differences to the offset of one of them count:
nothing is held of one clock, and of two the sum is over the difference. Where many choices are left,
:mod:`eventbased.gaps.fewer_offsets` may know fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.chain.distribution import Pmfs
from confidence.config import EVER, FEWEST_DRAWS
from confidence.flat_lists import starts_of
from confidence.gaps.chains import Limits
from confidence.gaps.describing import numbered
from confidence.predicates.conditions import Conditions, Scratch
from confidence.shared.held import tight_range
from eventbased.gaps.clocks_in_gaps import clocks_in_gaps, weighed_by_gaps
from eventbased.gaps.fewer_offsets import Clocks, SplitOffsets, ends_of_segments, one_by_one
from eventbased.gaps.gap_events import (
    NOT_HELD,
    ForbiddenEvents,
    GapRules,
    HeldOffsets,
    MatchEvents,
    Placed,
    part_of,
    some_of,
)
from eventbased.gaps.in_reach import GapCandidates, InReach, in_reach

__all__ = ["HeldConfidences", "Inner", "TooManyOffsetsError"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_FEW_CHOICES: Final = 64
"""So many choices of offsets are gone through one by one, even where the confidence is constant between."""

_STEPS_OF_A_CHOICE: Final = 100
"""How many choices of offsets that kernels weigh one weighed by the gaps of clocks counts as."""

_AT_ONCE: Final = 1 << 15
"""Choices of offsets that matches are weighed for in one call."""

MOST_IN_REACH: int = 2**21
"""Events that decide on matches with clocks that are listed at a time: about 100 MB."""


def _at_once(matches: MatchEvents) -> int:
    """Return how many choices of offsets to weigh at once: each holds the events of a match once more."""
    longest = int(np.diff(matches.start).max(initial=1))
    return max(min(_AT_ONCE, MOST_IN_REACH // longest), 1)


def _in_steps(matches: Int64, total: Int64, step: int) -> Iterator[tuple[Int64, Int64]]:
    """Yield matches, each as often as it has choices of offsets, and numbers of these; so many at once."""
    ends = np.cumsum(total[matches])
    for begin in range(0, int(ends[-1]) if len(matches) else 0, step):
        number = np.arange(begin, min(begin + step, int(ends[-1])))
        match = np.searchsorted(ends, number, side="right")
        number -= (ends - total[matches])[match]
        yield matches[match], number


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


Inner = Callable[[MatchEvents, Int64, HeldOffsets | None], tuple[NDArray[Any], ...]]
"""Returns ranges of matches, which are among those given, and means of what is asked, given offsets."""


class _Pieces(NamedTuple):
    """Offsets, or differences of two, at the ends of segments in which nothing changes but the range."""

    start: Int64
    """(k + 1,) int64. Where those of each match begin; none: all values are gone through."""
    value: Int64
    share: Float64
    """Each (m,). Half the length of the segment: over one, probabilities are linear."""


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
    pieces: _Pieces


@dataclass(slots=True)
class HeldConfidences:
    """Ranges and confidences of searched matches, by those given offsets; see :meth:`describe`."""

    clocks: Clocks
    window: int
    is_set: bool
    """Whether components are partially ordered."""
    is_timed: bool
    is_anchored: bool
    """Whether there are conditions on times, and some on a time itself: then more counts than differences."""
    most: int
    """Most choices of offsets to be gone through for one match."""
    limits: Limits

    def describe(
        self,
        matches: MatchEvents,
        candidates: Placed,
        laws: tuple[Int64, Pmfs],
        forbidding: tuple[ForbiddenEvents, GapRules, Conditions, Scratch],
        inner: Inner,
        out: tuple[NDArray[Any], ...],
    ) -> None:
        """Fill ranges, confidences and, where there is room for them, standard errors.

        Parameters
        ----------
        laws : tuple of (rows,) int64, and Pmfs
            Those of events whose clocks are not held.
        forbidding
            What may lie in gaps, where, under which conditions, and room for these.
        inner : callable
            Weighs matches given offsets.

        Raises
        ------
        CostlyMatchError, TooManyOffsetsError
            If a match takes too many steps, or has too many choices of offsets.
        """
        begin, match_count = 0, len(matches.start) - 1
        while begin < match_count:
            rest = part_of(matches, begin, match_count)
            reach = self.in_reach(rest, candidates, laws[0], *forbidding, MOST_IN_REACH)
            stop = begin + len(reach.together)
            columns = tuple(column[begin:stop] for column in out)
            with numbered(np.arange(begin, stop)):
                self.mix(part_of(matches, begin, stop), candidates, reach, inner, columns, laws)
            begin = stop
        np.minimum(out[2], 1.0, out=out[2])

    def mix(
        self,
        matches: MatchEvents,
        candidates: Placed,
        reach: InReach,
        inner: Inner,
        out: tuple[NDArray[Any], ...],
        laws: tuple[Int64, Pmfs] | None = None,
    ) -> None:
        """Fill ranges of matches, and means over offsets of what ``inner`` gives for these.

        Parameters
        ----------
        out
            Ranges, then as many of the columns of ``inner`` as are wanted.
        laws : tuple of (rows,) int64, and Pmfs
            Those of events whose clocks are not held, if what is asked is a confidence: a product over what
            forbids, given the times of a match.
        """
        counts = np.diff(reach.start)
        alone = np.flatnonzero(counts == 0)
        if len(alone):
            some = matches if len(alone) == len(counts) else some_of(matches, alone)
            for column, value in zip(out, inner(some, alone, None), strict=False):
                column[alone] = value
        rest = np.flatnonzero(counts > 0)
        if not len(rest):
            return
        now = np.full(len(self.clocks.offsets.lower), NOT_HELD)
        choices = self._choices(rest, reach, bool(matches.boxes.shape[1]))
        split = {} if laws is None else self._split(rest, reach, matches, choices)
        by_gaps = dict(self._by_gaps(rest, reach, matches, candidates, choices, split, laws))
        dear = choices.total > self.most
        dear[[*split, *by_gaps]] = False
        if dear.any() and not (self.limits.std_error > 0.0 and len(out) > 3):
            held = choices.clocks[:, np.argmax(dear)]
            raise TooManyOffsetsError(held[held >= 0])
        sums = _Sums(len(rest), len(out) - 2)
        together = ~dear
        together[[*split, *by_gaps]] = False
        for which, number in _in_steps(np.flatnonzero(together), choices.total, _at_once(matches)):
            checkpoint()
            sums.add(*self._weighed(choices, which, number, matches, rest, now, inner))
        for n in np.flatnonzero(dear).tolist():
            checkpoint()
            sums.put(n, self._estimated(choices.clocks[:, n], matches, candidates, int(rest[n]), now, inner))
        for n, offsets in split.items():
            checkpoint()
            sums.put(n, self._one_by_one(offsets, matches, int(rest[n]), now, inner))
        for n, found in by_gaps.items():
            sums.put(n, (*found, 0.0))
        possible = sums.lower <= sums.upper
        out[0][rest] = np.where(possible, sums.lower, 0)
        out[1][rest] = np.where(possible, sums.upper, -1)
        for column, values in zip(out[2:], sums.means, strict=True):
            column[rest] = values

    def in_reach(
        self,
        matches: MatchEvents,
        candidates: Placed,
        offsets: Int64,
        pools: ForbiddenEvents,
        rules: GapRules,
        conditions: Conditions,
        scratch: Scratch,
        most: int = EVER,
    ) -> InReach:
        """Call :func:`eventbased.gaps.in_reach.in_reach`, by default for all matches."""
        return in_reach(
            matches, candidates, self.window, offsets, pools, rules, self.is_set, conditions, scratch,
            self.clocks.own, len(self.clocks.offsets.lower), most,
        )  # fmt: skip

    def _choices(self, rest: Int64, reach: InReach, is_boxed: bool) -> _Choices:
        """Return the choices of offsets of some matches."""
        start = reach.start
        counts = (start[rest + 1] - start[rest]).astype(np.int64)
        held = np.full((int(counts.max()), len(rest)), -1)
        for place in range(len(held)):
            there = counts > place
            held[place, there] = reach.clocks[start[rest[there]] + place]
        there = held >= 0
        known = np.where(there, held, 0)
        lower, upper = self.clocks.offsets.lower[known], self.clocks.offsets.upper[known]
        uniform = ((self.clocks.offsets.offset[known] < 0) | ~there).all(axis=0)
        together = reach.together[rest] & (uniform | (counts == 1)) & (not (is_boxed or self.is_anchored))
        first = np.where(together, lower - upper[0], lower)
        last = np.where(together, upper - lower[0], upper)
        first[0], last[0] = np.where(together, 0, first[0]), np.where(together, 0, last[0])
        sizes = np.where(there, last - first + 1, 1)
        total = np.prod(sizes.astype(np.float64), axis=0)
        single = (counts == np.where(together, 2, 1)) & (total > _FEW_CHOICES)
        many = np.flatnonzero(single) if not (is_boxed or self.is_timed) else rest[:0]
        pieces = self._pieces(rest, many, reach, held, together, total)
        numbers = np.diff(pieces.start)
        sizes = np.where(numbers > 0, 1, sizes)
        total = np.where(numbers > 0, numbers, np.minimum(total, float(self.most) + 1.0))
        return _Choices(held, first, sizes, total.astype(np.int64), together, pieces)

    def _pieces(
        self,
        rest: Int64,
        some: Int64,
        reach: InReach,
        held: Int64,
        together: NDArray[np.bool_],
        total: Float64,
    ) -> _Pieces:
        """Return the pieces of those matches, among some, whose events are certain given one offset."""
        parts: dict[int, tuple[Int64, Float64]] = {}
        for n in some.tolist():
            checkpoint()
            rows = np.unique(reach.events[reach.begin[rest[n]] : reach.begin[rest[n] + 1]])
            moving, other = held[[1, 0], n].tolist() if together[n] else (held[0, n], -1)
            ends = ends_of_segments(self.clocks, rows, moving, other, self.window, float(total[n]))
            if ends is not None:
                parts[n] = ends
        sizes = np.zeros(len(rest) + 1, np.int64)
        sizes[1 + np.array(list(parts), np.int64)] = [len(value) for value, _ in parts.values()]
        nothing = np.zeros(0, np.int64), np.zeros(0)
        values, shares = (np.concatenate(found) for found in zip(nothing, *parts.values(), strict=True))
        return _Pieces(np.cumsum(sizes), values, shares)

    def _split(
        self, rest: Int64, reach: InReach, matches: MatchEvents, choices: _Choices
    ) -> dict[int, SplitOffsets]:
        """Return the matches that take fewer steps with the clocks of forbidden events one by one."""
        found = {}
        for n in np.flatnonzero(choices.total > _FEW_CHOICES).tolist():
            checkpoint()
            begin, end = reach.begin[rest[n] : rest[n] + 2]
            behind = begin + matches.start[rest[n] + 1] - matches.start[rest[n]]
            held = choices.clocks[:, n]
            split = one_by_one(
                self.clocks, reach.events[begin:behind], reach.events[behind:end], held[held >= 0],
                self.window, not self.is_timed, float(choices.total[n]),
            )  # fmt: skip
            if split is not None:
                found[n] = split
        return found

    def _by_gaps(
        self,
        rest: Int64,
        reach: InReach,
        matches: MatchEvents,
        candidates: Placed,
        choices: _Choices,
        split: dict[int, SplitOffsets],
        laws: tuple[Int64, Pmfs] | None,
    ) -> Iterator[tuple[int, tuple[int, int, float]]]:
        """Yield the matches that have gaps with clocks of their own, and range and confidence of each."""
        if laws is None or self.is_set or self.is_timed:
            return
        offsets, pmfs = laws
        for n in np.flatnonzero(choices.total > _FEW_CHOICES).tolist():
            checkpoint()
            if n in split:
                continue
            own = slice(int(matches.start[rest[n]]), int(matches.start[rest[n] + 1]))
            begin, end = reach.begin[rest[n] : rest[n] + 2].tolist()
            others = GapCandidates(*reach.listed[:, begin + own.stop - own.start : end])
            place, held = matches.place[own], choices.clocks[:, n]
            rows, base = candidates.row[place], candidates.base[place]
            times = candidates.lower[place] - base, candidates.upper[place] - base, offsets[rows]
            total = int(choices.total[n])
            asked = clocks_in_gaps(
                self.clocks, rows, others, held[held >= 0], times[1] - times[0] + 1,
                math.inf if total > self.most else float(total), self.most / _STEPS_OF_A_CHOICE,
            )  # fmt: skip
            if asked is None:
                continue
            boxes = matches.boxes[:, own] if matches.boxes.shape[1] else matches.boxes
            found = weighed_by_gaps(
                self.clocks, asked, times, boxes, pmfs, self.window, self.limits.most_steps
            )
            if found is not None:
                yield n, found

    def _one_by_one(
        self, split: SplitOffsets, matches: MatchEvents, match: int, now: Int64, inner: Inner
    ) -> tuple[float, ...]:
        """Return range, confidence and standard error of a match, going through clocks one by one."""
        own = self.clocks.own
        cases, mine = split.value.shape
        # Where the other clocks are out of reach.
        tops = np.where(own.clock >= 0, own.upper + self.clocks.offsets.upper[own.clock], own.upper)
        far = int(tops.max()) + self.window + 1 - int(own.lower.min())
        without = np.concatenate((split.value, np.full((cases, len(split.others)), far)), axis=1)
        parts = [(without, np.zeros(cases, np.int64), np.arange(cases), np.ones(cases))]
        for number, (offsets, chances) in enumerate(split.others):
            case, place = np.nonzero(chances)
            given = without[case]
            given[:, mine + number] = offsets[case, place]
            parts.append((given, np.full(len(case), number + 1), case, chances[case, place]))
        values, kind, case, chance = (np.concatenate(column) for column in zip(*parts, strict=True))
        found = self._given(match, split.clocks, values, matches, now, inner)
        lower, upper, confidence, error = (np.concatenate(column) for column in zip(*found, strict=True))
        shape = len(split.others) + 1, cases
        means, errors, possible = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.bool_)
        np.add.at(means, (kind, case), chance * confidence)
        np.add.at(errors, (kind, case), chance * error)
        np.logical_or.at(possible, (kind, case), lower <= upper)
        # Each factor is given the match, whose confidence without them is the first one.
        shares = np.divide(means[1:], means[0], out=np.zeros_like(means[1:]), where=means[0] > 0.0)
        good = possible.all(axis=0) & (split.weight > 0.0)
        if not good.any():
            return 1, 0, 0.0, 0.0
        total = split.weight @ (means[0] * shares.prod(axis=0))
        earliest, latest = lower[:cases][good].min(), upper[:cases][good].max()
        return int(earliest), int(latest), float(total), float(split.weight @ errors.sum(axis=0))

    def _given(
        self, match: int, clocks: Int64, values: Int64, matches: MatchEvents, now: Int64, inner: Inner
    ) -> list[tuple[NDArray[Any], ...]]:
        """Return the answers of a match given offsets of some clocks, (n, c), a part at a time."""
        found = []
        step = _at_once(matches)
        for begin in range(0, len(values), step):
            checkpoint()
            part = values[begin : begin + step]
            start = np.arange(len(part) + 1) * len(clocks)
            held = HeldOffsets(self.clocks.own, start, np.tile(clocks, len(part)), part.ravel(), now)
            which = np.full(len(part), match)
            found.append(inner(some_of(matches, which), which, held))
        return found

    def _weighed(
        self,
        choices: _Choices,
        n: Int64,
        digit: Int64,
        matches: MatchEvents,
        rest: Int64,
        now: Int64,
        inner: Inner,
    ) -> tuple[Int64, Float64, tuple[NDArray[Any], ...]]:
        """Return matches, weights, and what is found for some choices."""
        held, sizes, together, number = choices.clocks[:, n], choices.sizes[:, n], choices.together[n], digit
        there = held >= 0
        clock = np.where(there, held, 0)
        lower, upper = self.clocks.offsets.lower[clock], self.clocks.offsets.upper[clock]
        value = np.empty_like(held)
        for place in range(len(held) - 1, -1, -1):
            value[place] = choices.first[place, n] + digit % sizes[place]
            digit = digit // sizes[place]
        at, pieces = choices.pieces.start[n] + number, choices.pieces
        cut = np.flatnonzero(pieces.start[n + 1] > pieces.start[n])
        value[together[cut].astype(np.int64), cut] = pieces.value[at[cut]]
        # Where the first clock's offset can be, with others at differences to it. At its least all are within
        # bounds, which say where forbidden events are looked for.
        low = np.where(there, lower - np.where(together, value, 0), lower[0]).max(axis=0)
        high = np.where(there, upper - np.where(together, value, 0), upper[0]).min(axis=0)
        value = np.where(together, value + low, value)
        apart = there & ~together
        # Any offset that the clock can have stands for those that are not asked for.
        chances = self.clocks.chance(clock, np.where(apart, value, lower))
        weight = np.where(apart, chances, 1.0).prod(axis=0)
        widths = np.where(there, upper - lower + 1, 1).prod(axis=0, dtype=np.float64)
        chance = np.maximum(high - low + 1, 0) / widths
        weight = np.where(together, np.where(there.sum(axis=0) == 1, 1.0, chance), weight)
        weight[cut] *= pieces.share[at[cut]]
        kept = np.flatnonzero(weight > 0.0)
        count = there[:, kept].sum(axis=0)
        start = starts_of(count)
        chosen = there[:, kept].T
        given = HeldOffsets(self.clocks.own, start, clock[:, kept].T[chosen], value[:, kept].T[chosen], now)
        which = rest[n[kept]]
        lowest, highest, *columns = inner(some_of(matches, which), which, given)
        # An empty range stays empty.
        highest = np.where(lowest <= highest, highest + np.where(together, high - low, 0)[kept], highest)
        return n[kept], weight[kept], (lowest, highest, *columns)

    def _estimated(
        self, held: Int64, matches: MatchEvents, candidates: Placed, match: int, now: Int64, inner: Inner
    ) -> tuple[float, ...]:
        """Return range, confidence and standard error of a match by drawing offsets.

        The range holds the tightest one: what forbidden events exclude is not taken off.
        """
        clocks = held[held >= 0]
        draws = max(FEWEST_DRAWS, math.ceil((0.5 / self.limits.std_error) ** 2))
        if draws > self.most:
            raise TooManyOffsetsError(clocks)
        place = matches.place[matches.start[match] : matches.start[match + 1]]
        own = candidates.row[place]
        known = np.concatenate(
            (self.clocks.offsets.lower[clocks], self.clocks.own.lower[own], self.clocks.own.upper[own])
        )
        random = np.random.default_rng([self.limits.seed, *(known % 2**32).tolist()])
        value = np.empty((len(clocks), draws), dtype=np.int64)
        for number, clock in enumerate(clocks.tolist()):
            lower, upper, law = (int(column[clock]) for column in self.clocks.offsets)
            if law < 0:
                value[number] = random.integers(lower, upper, draws, endpoint=True)
            else:
                chances = self.clocks.values[law : law + upper - lower + 1]
                value[number] = lower + random.choice(len(chances), draws, p=chances / chances.sum())
        drawn = self._given(match, clocks, value.T, matches, now, inner)
        found, errors = (np.concatenate(column) for column in list(zip(*drawn, strict=True))[2:4])
        base = candidates.base[place]
        low, high = candidates.lower[place] - base, candidates.upper[place] - base
        is_held = self.clocks.own.clock[own][:, None] == clocks
        mine = is_held.any(axis=1)
        low, high = (
            np.where(mine, self.clocks.own.lower[own], low),
            np.where(mine, self.clocks.own.upper[own], high),
        )
        _, lower, upper = tight_range(
            low, high, np.where(mine, is_held.argmax(axis=1), -1), self.clocks.offsets.lower[clocks],
            self.clocks.offsets.upper[clocks], self.window,
        )  # fmt: skip
        # One draw more at either end: a sample without spread is no proof of certainty.
        variance = float(found.var()) + 1.0 / draws + float((errors**2).mean())
        return int(lower), int(upper), float(found.mean()), math.sqrt(variance / draws)


class _Sums:
    """Sums over choices of offsets, match by match."""

    def __init__(self, count: int, columns: int) -> None:
        self.means = np.zeros((columns, count))
        self.lower = np.full(count, np.iinfo(np.int64).max)
        self.upper = np.full(count, np.iinfo(np.int64).min)

    def add(self, match: Int64, weight: Float64, found: tuple[NDArray[Any], ...]) -> None:
        """Add what is found for some choices, of these matches and weights."""
        lower, upper, *columns = found
        for mean, values in zip(self.means, columns, strict=False):
            np.add.at(mean, match, weight * values)
        possible = lower <= upper
        np.minimum.at(self.lower, match[possible], lower[possible])
        np.maximum.at(self.upper, match[possible], upper[possible])

    def put(self, match: int, found: tuple[float, ...]) -> None:
        """Set what is found of a match."""
        self.lower[match], self.upper[match] = int(found[0]), int(found[1])
        self.means[:, match] = found[2 : 2 + len(self.means)]
