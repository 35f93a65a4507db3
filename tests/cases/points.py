"""Feeding the point-based framework as the paper does: by the emit rule, and with certain times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confidence.pools import AttributeValues
from pointbased import Automaton, PointEvaluation, PointMatches

__all__ = ["EmitRule", "sase_matches"]

Int64 = NDArray[np.int64]


@dataclass(slots=True)
class EmitRule:
    """The events that have arrived, and the emit time that follows from them.

    An event that arrives later has ``upper >= now.lower``, so it happens at ``now.lower - U_max`` or later
    if no interval is longer than ``U_max``: the points before that tick, ``t_emit``, are complete.

    Attributes
    ----------
    longest : int
        ``U_max``, the largest ``upper - lower`` of the stream, ticks.
    latest_lower : int or None
        ``now.lower``, the largest lower bound seen; None before the first event.
    """

    longest: int
    latest_lower: int | None = None

    def observe(self, lower: Int64) -> None:
        """Note the arrival of events with these lower bounds, (k,) int64, ticks."""
        if len(lower):
            latest = int(lower.max())
            self.latest_lower = latest if self.latest_lower is None else max(self.latest_lower, latest)

    @property
    def safe(self) -> int | None:
        """``t_emit``: no unseen event has a smaller lower bound; None before the first event."""
        return None if self.latest_lower is None else self.latest_lower - self.longest


def sase_matches(
    automaton: Automaton,
    component: Int64,
    partition: Int64,
    time: Int64,
    event: Int64,
    values: AttributeValues | None = None,
    group: Int64 | None = None,
) -> PointMatches:
    """Run the automaton over events with certain times, as a SASE engine does.

    Parameters
    ----------
    automaton : Automaton
    component, partition, event : (k,) int64
        See :meth:`PointEvaluation.push`.
    time : (k,) int64
        Ticks, in any order; events of one tick are not before each other.
    values : AttributeValues or None
    group : (k, pools) int64 or None

    Returns
    -------
    PointMatches
        With confidence 1: those whose every gap is free of what the strategy and the negations forbid in it.
    """
    evaluation = PointEvaluation(automaton)
    evaluation.push(component, partition, time, time, event, None, values, None, group)
    return evaluation.close()
