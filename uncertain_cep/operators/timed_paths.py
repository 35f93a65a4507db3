"""Matches whose conditions bound times, differences of neighbours, and the whole: many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import pieces
from confidence.timed.bounded_matches import describe_bounded
from confidence.timed.bounds import UNBOUND
from confidence.timed.cycles import CycleWork
from confidence.timed.ticks import describe_by_ticks
from eventbased.gaps.gap_events import MatchEvents, Placed
from uncertain_cep.operators.time_templates import Instance, TimeTemplates

__all__ = ["describe_paths"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class _Paths(NamedTuple):
    """Matches of l events: the ticks of each, bounds of the differences from the one before, and windows.

    The bounds and windows have one row for all matches where they do not depend on events.
    """

    lower: Int64
    upper: Int64
    g: Int64
    h: Int64
    window: Int64

    @classmethod
    def of(
        cls,
        lower: Int64,
        upper: Int64,
        asked: Sequence[Instance],
        templates: TimeTemplates,
        window: int,
        rows: Int64,
    ) -> _Paths:
        """Return matches with (k, l) int64 intervals and rows, under conditions."""
        each = len(lower) if any(instance.events for instance in asked) else 1
        g, h = np.full((each, lower.shape[1]), 1), np.full((each, lower.shape[1]), UNBOUND)
        windows = np.full(each, window)
        for instance in asked:
            low, high = templates.bounds_of_all(instance, rows[:each])
            later, earlier = instance.later, instance.earlier
            if 0 <= later == earlier - 1:
                later, earlier, low, high = earlier, later, -high, -low
            if earlier < 0:
                lower[:, later] = np.maximum(lower[:, later], low)
                upper[:, later] = np.minimum(upper[:, later], high)
            elif later == earlier + 1:
                g[:, later], h[:, later] = np.maximum(g[:, later], low), np.minimum(h[:, later], high)
            else:
                windows = np.where(low > high, 0, np.minimum(windows, high + 1))
        return cls(lower, upper, g, h, windows)

    def part(self, chosen: slice) -> list[Int64]:
        """Return the columns of some of them."""
        return [np.ascontiguousarray(column[chosen]) if len(column) > 1 else column for column in self]


def describe_paths(
    asked: Sequence[Instance],
    templates: TimeTemplates,
    window: int,
    matches: MatchEvents,
    chosen: Int64,
    candidates: Placed,
    offsets: Int64,
    values: Float64,
    wanted: bool,
    out: tuple[NDArray[Any], ...],
) -> Int64:
    """Fill ranges and confidences of matches with the same numbers of events; return those that are left.

    Left are those of which a confidence takes too many pieces, or where events with explicit probabilities
    meet a window that binds.
    """
    total = int(matches.start[chosen[0] + 1] - matches.start[chosen[0]])
    event = matches.start[chosen][:, None] + np.arange(total)
    place = matches.place[event]
    rows, base = candidates.row[place], candidates.base[place]
    lower, upper = candidates.lower[place] - base, candidates.upper[place] - base
    size, offset = (upper - lower + 1).astype(np.float64), lower
    kinds: list[tuple[Any, bool]] = [(slice(None), True)]
    if len(values):
        offset = offsets[rows]
        size[offset >= 0] = 0.0
        offset = offset - lower
        uniform = (size > 0).all(axis=1)
        kinds = [(uniform, True), (~uniform, False)]
    if matches.boxes.shape[1]:
        lower, upper = np.maximum(lower, matches.boxes[0][event]), np.minimum(upper, matches.boxes[1][event])
    left = [chosen[:0]]
    for kind, is_uniform in kinds:
        own = chosen[kind]
        if not len(own):
            continue
        paths = _Paths.of(lower[kind], upper[kind], asked, templates, window, rows[kind])
        found = np.empty((2, len(own)), dtype=np.int64)
        confidence = np.empty(len(own))
        kernel: Any = describe_bounded
        rest: tuple[Any, ...] = (
            wanted, np.empty((10, total), dtype=np.int64), np.empty((4, 2 * total + 1)), CycleWork.of(total),
        )  # fmt: skip
        cost = np.full(len(own), 1000.0 * total)
        if not is_uniform:
            kernel = describe_by_ticks
            longest = max(int((paths.upper - paths.lower).max()) + 1, 1)
            rest = np.empty((2, total), dtype=np.int64), np.empty((2, longest)), np.empty((2, longest))
            cost = 20.0 * (paths.upper - paths.lower + 1).sum(axis=1).astype(np.float64)
        for part in pieces(cost):
            low, high, *bounds = paths.part(part)
            weights = [np.ascontiguousarray(size[kind][part])]
            if not is_uniform:
                weights = [np.ascontiguousarray(offset[kind][part]), *weights, values]
            kernel(low, high, *weights, *bounds, *rest, (found[0][part], found[1][part], confidence[part]))
        out[0][own], out[1][own], out[2][own] = found[0], found[1], confidence
        left.append(own[np.isnan(confidence)])
    return np.concatenate(left)
