"""Matches that nothing is forbidden, whose literals put all times in one order and bind neighbours alone.

Where some times may come in either order, the match is a sum over the few orders that all of them can have:
a world's times, sorted, are one of these. Of times that tie, the one that a fixed order names first comes
first, so that a world is in one order alone (the linear extensions of a naturally labelled order).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, pieces
from confidence.timed.bounded_matches import describe_bounded
from confidence.timed.bounds import UNBOUND
from confidence.timed.cycles import CycleWork
from confidence.timed.summed_matches import SummedTimes, tighten_all
from confidence.timed.ticks import describe_by_ticks
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.rigid_spans import with_one_time_each
from uncertain_cep.weighers.weigher import CANNOT, WRITTEN_OUT, Declined

__all__ = ["EACH_EVENT", "BoundedChains", "Chains", "in_orders"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

EACH_EVENT: Final = 1_000.0
"""What an event of a match with uniform times counts as, in multiplications."""

_MOST_ORDERS: Final = 24
"""Orders of times that one match is summed over."""

_MOST_TIMES: Final = 8
"""Times that are put in several orders."""

_MOST_BITS: Final = 62
"""Bits of a mask that are a whole number."""

_EACH_TICK: Final = 20.0
"""What a tick of an event with explicit probabilities counts as."""


class BoundedChains:
    """Closed forms for uniform times, passes over the ticks for explicit probabilities."""

    name = "bounded chain"
    why = "takes times in one order or few, neighbours and the whole bound, nothing forbidden: closed forms"
    priced_above = WRITTEN_OUT
    takes_all = False

    def __init__(self, most_steps: float) -> None:
        self._most_steps = most_steps
        self._known: tuple[MatchModel, list[_InOneWay]] | None = None
        self._reach: list[tuple[Int64, Int64, Int64]] = []

    @classmethod
    def of(cls, pattern: MatchPattern) -> BoundedChains:
        """Return the weigher for the matches of a pattern."""
        return cls(pattern.limits.most_steps)

    def price(self, model: MatchModel) -> Float64:
        """Return about how many multiplications each match takes, (k,) float64."""
        found = np.full(model.count, CANNOT)
        for part, chains in self._ordered(model):
            each: float | Float64 = len(chains) * EACH_EVENT * part.times.first.shape[1]
            takes = part.spoilers == 0
            for one in chains:
                takes = takes & one.fits
            if len(part.pmfs.values):
                uniform = _is_uniform(part)
                each = np.where(uniform, each, len(chains) * _EACH_TICK * part.sizes.sum(axis=1))
                for one in chains:
                    takes &= uniform | ~one.window_binds()
            takes &= each <= self._most_steps
            found[part.which] = np.where(takes, each, CANNOT)
        return found

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        """Fill the answers of matches; return those whose sums cancel, or take too many pieces."""
        declined = np.ones(model.count, dtype=np.bool_)
        for part, chains in self._ordered(model):
            for which in _kinds(part):
                answers = _added([one.weighed(part, which, model.wanted) for one in chains])
                out.put(part.which[which], answers)
                declined[part.which[which]] = np.isnan(answers.confidence)
        for which, lower, upper in self._reach:
            # The times of some ends are left out.
            is_possible = out.lower[which] <= out.upper[which]
            out.lower[which[is_possible]], out.upper[which[is_possible]] = (
                lower[is_possible],
                upper[is_possible],
            )
        return dict.fromkeys(np.flatnonzero(declined).tolist(), (CANNOT, CANNOT))

    def _ordered(self, model: MatchModel) -> list[_InOneWay]:
        """Return the matches whose times are in few orders, by these, and their chains, made once."""
        if self._known is None or self._known[0] is not model:
            parts = [each for part in model.explicit for each in with_one_time_each(part)]
            self._reach = [(part.which, *reach) for part, reach in parts if reach is not None]
            self._known = model, [one for part, _ in parts for one in _by_orders(part)]
        return self._known[1]


def _added(answers: list[Columns]) -> Columns:
    """Return the answers of matches that are sums over the orders of their times."""
    if len(answers) == 1:
        return answers[0]
    found = Columns.empty(len(answers[0].lower))
    found.lower[:], found.upper[:] = UNBOUND, -UNBOUND
    for one in answers:
        is_possible = one.lower <= one.upper
        found.lower[:] = np.where(is_possible, np.minimum(found.lower, one.lower), found.lower)
        found.upper[:] = np.where(is_possible, np.maximum(found.upper, one.upper), found.upper)
        found.confidence[:] += np.where(is_possible | np.isnan(one.confidence), one.confidence, 0.0)
    nothing = found.lower > found.upper
    found.lower[nothing], found.upper[nothing] = 0, -1
    return found


def _by_orders(part: ExplicitMatches) -> Iterator[_InOneWay]:
    """Yield the matches of a batch whose times are in few orders, with a chain for each.

    Matches are apart by the times that are behind others, so that none depends on its neighbours.
    """
    if part.shape.is_chain:
        yield part, [Chains.of(part.times, np.arange(part.shape.times))]
    else:
        yield from in_orders(part)


def in_orders(part: ExplicitMatches) -> Iterator[_InOneWay]:
    """Yield the matches of a batch whose literals leave their times few orders, with a chain for each."""
    for behind, which in _behind(part):
        some = part.some(which)
        if (behind | behind.T | np.eye(len(behind), dtype=np.bool_)).all():
            yield some, [Chains.of(some.times, np.argsort(behind.sum(axis=1), kind="stable"))]
        elif len(behind) <= _MOST_TIMES:
            chains = [_in_order(some, behind, order) for order in _orders(behind)]
            if chains:
                yield some, chains


def _orders(behind: Mask) -> list[Int64]:
    """Return the orders that a partial order allows its times; none of more than ``_MOST_ORDERS``."""
    orders: list[Int64] = []
    begun: list[list[int]] = [[]]
    while begun:
        checkpoint()
        taken = begun.pop()
        if len(taken) == len(behind):
            orders.append(np.array(taken))
        free = [time for time in range(len(behind)) if time not in taken]
        begun += [[*taken, time] for time in free if not behind[time][free].any()]
        # Each order that is begun is one at least.
        if len(orders) + len(begun) > _MOST_ORDERS:
            return []
    return orders


def _in_order(part: ExplicitMatches, behind: Mask, order: Int64) -> Chains:
    """Return the chains of a batch for one order of its times, which excludes all others."""
    times = part.times
    label = np.empty(len(order), dtype=np.int64)
    label[np.argsort(behind.sum(axis=1), kind="stable")] = np.arange(len(order))
    steps = (label[order[1:]] < label[order[:-1]]).astype(np.int64)
    each = len(times.low)
    times = times._replace(
        sides=np.concatenate((times.sides, np.stack((order[1:], order[:-1]), axis=1))),
        low=np.concatenate((times.low, np.broadcast_to(steps, (each, len(steps)))), axis=1),
        high=np.concatenate((times.high, np.full((each, len(steps)), UNBOUND)), axis=1),
    )
    if len(part.pmfs.values):
        # Uniform times are tightened by their neighbours as they are weighed.
        tighten: Any = tighten_all
        times = times._replace(first=times.first.copy(), last=times.last.copy())
        tighten(times)
    return Chains.of(times, order)


def _kinds(part: ExplicitMatches) -> list[Int64]:
    """Return the matches whose times are all uniform, and the others; nothing for none."""
    if not len(part.pmfs.values):
        return [np.arange(len(part.which))]
    uniform = _is_uniform(part)
    return [which for which in (np.flatnonzero(uniform), np.flatnonzero(~uniform)) if len(which)]


def _is_uniform(part: ExplicitMatches) -> Mask:
    found: Mask = np.all(part.times.size > 0.0, axis=1)
    return found


def _behind(part: ExplicitMatches) -> Iterator[tuple[Mask, Int64]]:
    """Yield masks of the times behind others, (l, l) bool, and the matches for which they hold.

    A time is behind another one if the literals imply ``t_y - t_x >= 0``, through others or directly: the
    longest paths decide, O(l^3) for each match, or once where literals are the same for all. Matches whose
    literals cannot be met are left out.
    """
    times, count = part.times, part.times.first.shape[1]
    # Far below any path of bounds, and far enough above the end of int64.
    most = UNBOUND // (count + 1)
    each = len(times.low)
    for piece in pieces(np.full(each, float(count**3))):
        low, high = times.low[piece], times.high[piece]
        least = np.full((len(low), count, count), -most)
        least[:, np.arange(count), np.arange(count)] = 0
        for n, (i, j) in enumerate(times.sides.tolist()):
            least[:, i, j] = np.maximum(least[:, i, j], np.minimum(low[:, n], most))
            least[:, j, i] = np.maximum(least[:, j, i], np.minimum(-high[:, n], most))
        for k in range(count):
            np.maximum(least, least[:, :, k, None] + least[:, None, k, :], out=least)
            np.minimum(least, most, out=least)
        behind = least >= 0
        # Of times that are always equal any may come first.
        behind &= ~(behind.transpose(0, 2, 1) & (np.arange(count)[:, None] <= np.arange(count)))
        # Literals that cannot be met put a time behind itself.
        possible = np.flatnonzero((np.diagonal(least, axis1=1, axis2=2) <= 0).all(axis=1))
        masks = behind[possible].reshape(-1, count * count)
        if count * count <= _MOST_BITS:
            _, first, kind = np.unique(
                masks @ (1 << np.arange(count * count)), return_index=True, return_inverse=True
            )
        else:
            _, first, kind = np.unique(
                np.packbits(masks, axis=1), axis=0, return_index=True, return_inverse=True
            )
        for number, n in enumerate(possible[first].tolist()):
            which = piece.start + possible[kind.ravel() == number]
            yield behind[n], which if each > 1 else np.arange(len(part.which))


class Chains(NamedTuple):
    """Matches as chains: bounds of the differences of neighbours and of the whole.

    Attributes
    ----------
    times : SummedTimes
    order : (l,) int64
        The events from the first on.
    g, h : (k, l) or (1, l) int64
        Least and largest difference from the event before.
    window : (k,) or (1,) int64
        W, ticks.
    fits : (k,) or (1,) bool
        Whether no other literal binds.
    """

    times: SummedTimes
    order: Int64
    g: Int64
    h: Int64
    window: Int64
    fits: Mask

    @classmethod
    def of(cls, times: SummedTimes, order: Int64) -> Chains:
        """Return the chains of a batch whose times are in an order."""
        each, length = len(times.low), len(order)
        # Literals say of neighbours whether they may share a tick.
        g = np.zeros((each, length), dtype=np.int64)
        h = np.full((each, length), UNBOUND)
        window = np.full(each, UNBOUND)
        place = np.argsort(order)
        others = []
        for (i, j), low, high in zip(times.sides.tolist(), times.low.T, times.high.T, strict=True):
            later, earlier, least, most = int(place[i]), int(place[j]), low, high
            if later < earlier:
                later, earlier, least, most = earlier, later, -high, -low
            whole = (later, earlier) == (length - 1, 0)
            if later == earlier + 1:
                g[:, later] = np.maximum(g[:, later], least)
                if not whole:
                    h[:, later] = np.minimum(h[:, later], most)
            if whole:
                window = np.minimum(window, np.minimum(most, window) + 1)
            if later != earlier + 1:
                others.append((later, earlier, least, most, whole))
        # A window below 1 leaves nothing, whatever it is.
        window = np.maximum(window, 0)
        fits = np.ones(each, dtype=np.bool_)
        least = np.where(np.arange(length) > 0, np.minimum(g, UNBOUND // length), 0)
        behind = np.cumsum(least, axis=1)
        # What the window implies is no bound of its own.
        h = np.where(h >= (window - 1)[:, None] - (behind[:, -1:] - least), UNBOUND, h)
        for later, earlier, least, most, whole in others:
            between = behind[:, later] - behind[:, earlier]
            # A bound from below that neighbours imply, and one from above that the window implies.
            fits = np.logical_and(fits, least <= between)
            if not whole:
                fits = np.logical_and(fits, most >= window - 1 - (behind[:, -1] - between))
        return cls(times, order, g, h, window, fits)

    def some(self, which: Int64) -> Chains:
        """Return the chains of some matches, (m,), each as often as it is named."""
        g, h, window = (column if len(column) == 1 else column[which] for column in self[2:5])
        fits = self.fits if len(self.fits) == 1 else self.fits[which]
        return Chains(self.times.some(which), self.order, g, h, window, fits)

    def window_binds(self) -> Mask:
        """Return in which matches, (k,), tight ticks reach over the window."""
        reach = self.times.last[:, self.order[-1]] - self.times.first[:, self.order[0]]
        found: Mask = reach >= self.window
        return found

    def weighed(self, part: ExplicitMatches, which: Int64, wanted: bool) -> Columns:
        """Return the answers of some matches of a batch; the confidence is NaN where it has to be another."""
        times, length, order = self.times, len(self.order), self.order
        answers = Columns.empty(len(which))
        columns: Any = (times.first, times.last, times.size, times.offset)
        if len(which) < len(times.first):
            columns = (column[which] for column in columns)
        if (order != np.arange(length)).any():
            columns = (np.ascontiguousarray(column[:, order]) for column in columns)
        first, last, size, offset = columns
        impossible = (first > last).any(axis=1)
        bounds = [column if len(column) == 1 else column[which] for column in self[2:5]]
        kernel: Any = describe_bounded
        is_uniform = bool((size > 0.0).all())
        rest: tuple[Any, ...] = (
            wanted, np.empty((10, length), dtype=np.int64), np.empty((4, 2 * length + 1)),
            CycleWork.of(length),
        )  # fmt: skip
        cost = np.full(len(which), EACH_EVENT * length)
        if not is_uniform:
            kernel = describe_by_ticks
            longest = max(int((last - first).max()) + 1, 1)
            rest = np.empty((2, length), dtype=np.int64), np.empty((2, longest)), np.empty((2, longest))
            cost = _EACH_TICK * np.maximum(last - first + 1, 1).sum(axis=1).astype(np.float64)
        for piece in pieces(cost):
            weights = (size[piece],) if is_uniform else (offset[piece], size[piece], part.pmfs.values)
            kernel(
                first[piece], last[piece], *weights,
                *(column if len(column) == 1 else column[piece] for column in bounds), *rest,
                (answers.lower[piece], answers.upper[piece], answers.confidence[piece]),
            )  # fmt: skip
        answers.put(np.flatnonzero(impossible), Columns(*np.array([[0], [-1]]), *np.zeros((2, 1))))
        return answers


_InOneWay = tuple[ExplicitMatches, list[Chains]]
"""Matches whose times have the same orders, and their chains, one for each order."""
