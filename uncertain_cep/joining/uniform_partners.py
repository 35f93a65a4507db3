"""The partners of left events whose times, and those of their candidates, are uniform and independent."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, steps_per_call
from confidence.kernel import plain_for
from confidence.timed.latest_partners import UNBOUNDED, Candidates, PartnerWork
from confidence.timed.partners import PartnerRules, partners
from uncertain_cep.config.limits import MOST_CONFIDENCE_STEPS
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.executor.checked_events import CheckedEvents
from uncertain_cep.running.compiling import plain_seconds

__all__ = ["Reach", "are_uniform", "uniform_partners"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Reach(NamedTuple):
    """Where a partner may be: backward, mirrored so that it is, or on either side.

    Attributes
    ----------
    low, high : (n,) int64
        Bounds of all events, ticks.
    gap : int
        The least that lies between the two.
    width : int or None
        How much more it may be.
    all_tied : bool
        Whether right events that are as near are all partners.
    is_nearest : bool
        Whether it may be on either side.
    """

    low: Int64
    high: Int64
    gap: int
    width: int | None
    all_tied: bool
    is_nearest: bool


def are_uniform(events: CheckedEvents, x: Int64, y: Int64, count: int) -> Mask:
    """Return for which left events all times that matter are uniform, and independent of each other.

    Parameters
    ----------
    events : CheckedEvents
        The left ones first.
    x, y : (m,) int64
        The left events, and the right ones among all events, of pairs.
    count : int
        How many left events there are.

    Returns
    -------
    (n,) bool
    """
    times = events.times
    sound = np.ones(len(times.lower), dtype=np.bool_)
    if times.pmfs is not None:
        sound &= times.pmfs.offset < 0
    moved = np.full(len(sound), -1)
    if (offsets := times.offsets) is not None:
        width = (offsets.high - offsets.low)[offsets.clock]
        moved = np.where(width > 0, offsets.clock, -1)
        # A time by a clock is a sum: uniform if one of the two is certain.
        sound &= (moved < 0) | ((times.upper - times.lower == width) & (offsets.law[offsets.clock] < 0))
    uniform = sound[:count].copy()
    uniform[x[~sound[y]]] = False
    uniform[x[(moved[y] >= 0) & (moved[y] == moved[x])]] = False
    clocked = np.flatnonzero(moved[y] >= 0)
    order = clocked[np.lexsort((moved[y[clocked]], x[clocked]))]
    left, clock = x[order], moved[y[order]]
    uniform[left[1:][(left[1:] == left[:-1]) & (clock[1:] == clock[:-1])]] = False
    return uniform


def uniform_partners(
    reach: Reach, left: Int64, x: Int64, y: Int64, probability: Float64
) -> tuple[Float64, Float64]:
    """Return the probabilities of pairs to be partners, and of left events to have none.

    Parameters
    ----------
    reach : Reach
    left : (n,) int64
        Left events, ascending.
    x, y : (m,) int64
        The left and the right event of each pair, by left events; those of one in the order of the table: the
        last one wins a tie.
    probability : (e,) float64
        How likely each event happened.

    Returns
    -------
    (m,) float64, (n,) float64

    Raises
    ------
    ConfidenceCostError
        If a left event has too many candidates.
    """
    begin = np.searchsorted(x, np.append(left, np.iinfo(np.int64).max))
    candidates = Candidates(begin, reach.low[y], reach.high[y], probability[y])
    largest = int(np.diff(begin).max(initial=0))
    partner, alone = np.zeros(len(x)), np.zeros(len(left))
    low, high = reach.low[left], reach.high[left]
    width = UNBOUNDED if reach.width is None else min(max(reach.width, -1), UNBOUNDED)
    rules, work = PartnerRules(False, 0, width, reach.all_tied), PartnerWork.of(largest, reach.is_nearest)
    if reach.is_nearest:
        furthest = reach.gap + width if width < UNBOUNDED else width
        rules = PartnerRules(True, reach.gap, furthest, reach.all_tied)
    else:
        low, high = low - reach.gap, high - reach.gap
    done = 0
    with plain_for(plain_seconds(len(x), _KERNELS)):
        while done < len(left):
            checkpoint()
            limits = done, steps_per_call(), MOST_CONFIDENCE_STEPS
            done = partners(low, high, rules, candidates, *limits, work, partner, alone)
    if (dear := np.flatnonzero(alone < 0.0)).size:
        row = int(left[dear[0]])
        message = (
            f"row {row + 1} of the left table can have {begin[dear[0] + 1] - begin[dear[0]]} partners, whose "
            "probabilities take too long: join by= more columns, give a tolerance=, or narrower times"
        )
        raise ConfidenceCostError(message, MOST_CONFIDENCE_STEPS + 1, MOST_CONFIDENCE_STEPS)
    return partner * probability[x], alone * probability[left]


_KERNELS: Final = ("joins",)
