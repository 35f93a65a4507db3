"""Ranges and confidences of matches that nothing forbids, for all matches of one length in a few steps."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.chain.side_by_side import LENGTHS, confidences, tight_ranges
from eventbased.gaps.gap_events import GapRules, MatchEvents, Placed

__all__ = ["describe_free", "forbids"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_EACH: Final = 64
"""Passes over the events of matches, roughly, as steps of a kernel."""


def forbids(rules: GapRules) -> bool:
    """Return whether anything can be forbidden in a gap."""
    return bool(len(rules.negated)) or rules.between >= 0 or bool((rules.taking >= 0).any())


def describe_free(
    matches: MatchEvents,
    placed: Placed,
    offsets: Int64,
    window: int,
    wanted: bool,
    out: tuple[Int64, Int64, Float64],
) -> Int64:
    """Fill ranges and confidences of matches that nothing forbids.

    Parameters
    ----------
    matches : MatchEvents
        Without boxes.
    placed : Placed
    offsets : (rows,) int64
        Where the probabilities of an event start; -1 for uniform.
    window : int
        W, ticks.
    wanted : bool
        Whether confidences are.
    out
        See :func:`eventbased.gaps.gap_confidences.gap_confidences`.

    Returns
    -------
    (m,) int64
        The matches that this is not for, ascending: they have more events than chains are written out for,
        times that are not uniform, or a sum that cancels. Their places are overwritten, too.

    Notes
    -----
    O(l^3) a match.
    """
    out_lower, out_upper, out_confidence = out
    sizes = np.diff(matches.start)
    is_left = np.zeros(len(sizes), dtype=np.bool_)
    for size in np.unique(sizes).tolist():
        which = np.flatnonzero(sizes == size)
        if size > max(LENGTHS) or window < size:
            is_left[which] = True
            continue
        checkpoint(_EACH * size * len(which))
        position = np.arange(size)[:, None]
        places = matches.place[matches.start[which] + position]
        shift = placed.base[places] + position
        low, high = placed.lower[places] - shift, placed.upper[places] - shift
        first, last, can_be = tight_ranges(low, high, window - size)
        out_lower[which] = np.where(can_be, first, 0)
        out_upper[which] = np.where(can_be, last + size - 1, -1)
        values = np.where(can_be, 1.0, 0.0)
        if wanted and size > 1:
            values[can_be] = np.minimum(confidences(low[:, can_be], high[:, can_be], window - size), 1.0)
        out_confidence[which] = values
        is_left[which] = (offsets[placed.row[places]] >= 0).any(axis=0) | np.isnan(values)
    return np.flatnonzero(is_left)
