"""Matches of sequences some of whose events share a clock: their times move together.

The search goes by the bounds of true times, which stay necessary: every world with shared clocks is one
without. What it finds is described anew where two events of a match name one clock, or where the time of
one is not uniform.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, multiplications_per_call
from confidence.large_arrays import empty
from confidence.shared.held import TOO_MANY, weigh_held
from confidence.shared.weighing import RigidMatches
from eventbased.thresholds import needed
from eventbased.upper_bounds import bounds_by_clocks
from uncertain_cep.candidates.own_times import SharedClocks
from uncertain_cep.config.limits import MOST_OFFSETS
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import Threshold
from uncertain_cep.plurals import first_few

__all__ = ["LikelyMatches", "too_many_offsets", "weigher"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MULTIPLICATIONS_BY_CLOCKS: Final = 4_096
"""What a match of events that share clocks counts as, or a choice of offsets: so many are weighed at once."""


class LikelyMatches:
    """A filter of sequences, whose events share clocks, by the confidence that they can reach."""

    def __init__(self, clocks: SharedClocks, window: int) -> None:
        self._arguments = clocks.own.clock, *clocks.bounds(), window

    def __call__(self, chunk: MatchBatch, threshold: Threshold) -> Mask:
        """Return a mask of the matches of single events, which are rows, that are of interest."""
        length, count = chunk.events.shape
        return self.among(threshold, np.arange(count + 1) * length, chunk.events.T.ravel())

    def among(self, threshold: Threshold, start: Int64, rows: Int64) -> Mask:
        """Return a mask of matches of interest; their rows begin at ``start``, (k + 1,) int64."""
        found = np.empty(len(start) - 1)
        bounds_by_clocks(start, rows, *self._arguments, found)
        return np.asarray(found >= needed(threshold.least))


def weigher(
    clocks: SharedClocks, window: int, wanted: bool, ids: Int64 | None = None
) -> Callable[[MatchBatch], MatchBatch]:
    """Return a weigher for matches whose events share clocks.

    It takes over batches without confidences, whose ranges are those of independent times.

    Parameters
    ----------
    window : int
        WITHIN, ticks.
    wanted : bool
        Whether confidences are.
    ids : (n,) int64 or None
        What to return for each row; None: the row itself.
    """
    rigid = clocks.rigid()
    payload = (np.zeros(0, np.int64) if ids is None else ids).view()
    # Of one type for the kernel, whether Arrow holds it or not.
    payload.flags.writeable = False
    uneven = clocks.has_law if clocks.has_law.any() else None

    def weighed(chunk: MatchBatch) -> MatchBatch:
        events, lower, upper, count = chunk.events, chunk.lower, chunk.upper, len(chunk.lower)
        confidence = empty(count, np.float64)
        matches = RigidMatches(events, window, rigid, lower, upper, confidence)
        many = max(int(multiplications_per_call()) // _MULTIPLICATIONS_BY_CLOCKS, 1)
        # Part by part, as what is written is still in the processor's cache when it is read.
        for begin in range(0, count, many):
            checkpoint()
            part = begin, min(begin + many, count)
            left = matches.weigh(part, wanted)
            if left or uneven is not None:
                held = np.zeros(part[1] - begin, np.bool_)
                if wanted:
                    held |= np.isnan(confidence[begin : part[1]])
                if uneven is not None:
                    held |= uneven[events[:, begin : part[1]]].any(axis=0)
                _hold(clocks, window, events, wanted, lower, upper, confidence, begin + np.flatnonzero(held))
            matches.keep_possible(part, payload)
        kept, first, last, values = matches.columns()
        own = values if wanted else None
        # What the search noted of errors is about independent times; here all is exact.
        return replace(
            chunk, events=kept, lower=first, upper=last, confidence=own, std_error=None, at_most_one=False,
            at_least=0.0,
        )  # fmt: skip

    return weighed


def _hold(
    clocks: SharedClocks,
    window: int,
    events: Int64,
    wanted: bool,
    lower: Int64,
    upper: Int64,
    confidence: Float64,
    which: Int64,
) -> None:
    """Fill range and confidence of some matches by holding offsets."""
    some = np.ascontiguousarray(events[:, which])
    found = np.empty(len(which), np.int64), np.empty(len(which), np.int64), np.zeros(len(which))
    limits = MOST_OFFSETS, max(int(multiplications_per_call()) // _MULTIPLICATIONS_BY_CLOCKS, 1)
    done = 0
    while done < len(which):
        done = weigh_held(
            some, clocks.own, clocks.offsets, clocks.values, window, wanted, limits, done, *found
        )
        checkpoint()
    dear = np.flatnonzero(found[2] == TOO_MANY)
    if len(dear):
        several = clocks.own.clock[some[:, dear[0]]]
        raise too_many_offsets(clocks, np.unique(several[several >= 0]))
    lower[which], upper[which], confidence[which] = found


def too_many_offsets(clocks: SharedClocks, which: Int64) -> ConfidenceCostError:
    """Return the error for a match that would take going through too many choices of offsets."""
    names = first_few([clocks.names[clock] for clock in which.tolist()])
    widths = clocks.offsets.upper[which] - clocks.offsets.lower[which] + 1
    choices = int(min(float(np.prod(widths.astype(np.float64))), 2.0**62))
    return ConfidenceCostError(
        f"a match has several events of each of the clocks {names}, and its confidence is a sum over about "
        f"{choices:.1e} choices of their offsets, where at most {MOST_OFFSETS:.1e} are gone through: give a "
        "longer tick, tighter bounds of the clocks, or take times as independent, sources=False",
        choices,
        MOST_OFFSETS,
    )
