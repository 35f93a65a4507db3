"""Matches of sequences some of whose events share a clock: their times move together.

The search goes by the bounds of true times, which stay necessary: every world with shared clocks is one
without. What it finds is described anew where two events of a match name one clock, or where the time of
one is not uniform.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.shared.held import TOO_MANY, weigh_held
from confidence.shared.weighing import weigh_matches
from uncertain_cep.candidates.own_times import SharedClocks
from uncertain_cep.config import MOST_OFFSETS
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.operators.batch import MatchBatch

__all__ = ["too_many_offsets", "weighed"]

Int64 = NDArray[np.int64]


def weighed(clocks: SharedClocks, window: int, chunk: MatchBatch, wanted: bool) -> MatchBatch:
    """Return matches, whose events are rows, as their clocks let them be.

    Parameters
    ----------
    window : int
        WITHIN, ticks.
    chunk : MatchBatch
        With confidences of uniform, independent times, or without any.
    wanted : bool
        Whether confidences are.
    """
    own, events = clocks.own, chunk.events
    clock = own.clock[events]
    again = np.zeros(events.shape[1], dtype=np.bool_)
    for j in range(1, len(events)):
        for i in range(j):
            again |= (clock[i] == clock[j]) & (clock[i] >= 0)
    uneven = clocks.has_law[events].any(axis=0)
    if wanted and chunk.confidence is None:
        uneven |= ~again
    rigid, loose = np.flatnonzero(again & ~uneven), np.flatnonzero(uneven)
    if not len(rigid) + len(loose):
        return chunk
    lower, upper = chunk.lower.copy(), chunk.upper.copy()
    confidence = np.zeros(len(lower)) if chunk.confidence is None else chunk.confidence.copy()

    def into(which: Int64, found: Sequence[NDArray[Any]]) -> None:
        lower[which], upper[which], confidence[which] = found

    if len(rigid):
        found = _room(len(rigid))
        some = np.ascontiguousarray(events[:, rigid])
        weigh_matches(some, *clocks.rigid(), window, wanted, *found)
        into(rigid, found)
        loose = np.concatenate((loose, rigid[np.isnan(found[2])]))
    if len(loose):
        found = _room(len(loose))
        some = np.ascontiguousarray(events[:, loose])
        done = 0
        while done < len(loose):
            done = weigh_held(
                some, own, clocks.offsets, clocks.values, window, wanted, MOST_OFFSETS, done, *found
            )
            checkpoint()
        dear = np.flatnonzero(found[2] == TOO_MANY)
        if len(dear):
            rows = some[:, dear[0]]
            raise too_many_offsets(clocks, np.unique(own.clock[rows][own.clock[rows] >= 0]))
        into(loose, found)
    return replace(chunk, lower=lower, upper=upper, confidence=confidence if wanted else None).keep(
        lower <= upper
    )


def _room(count: int) -> tuple[Int64, Int64, NDArray[np.float64]]:
    return np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64), np.zeros(count)


def too_many_offsets(clocks: SharedClocks, which: Int64) -> ConfidenceCostError:
    """Return the error for a match that would take going through too many choices of offsets."""
    names = ", ".join(clocks.names[clock] for clock in which.tolist())
    widths = clocks.offsets.upper[which] - clocks.offsets.lower[which] + 1
    choices = int(min(float(np.prod(widths.astype(np.float64))), 2.0**62))
    return ConfidenceCostError(
        f"a match has several events of each of the clocks {names}, and its confidence is a sum over about "
        f"{choices:.1e} choices of their offsets, where at most {MOST_OFFSETS:.1e} are gone through: give a "
        "longer tick, tighter bounds of the clocks, or take times as independent, sources=False",
        choices,
        MOST_OFFSETS,
    )
