"""Match windows: candidates that no match can hold, as no others are near them in a possible order."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.large_arrays import empty
from eventbased import partition_bases
from eventbased.config import LONGEST_LINE
from eventbased.match_windows import grouped, restricted, touching, union
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.config.tuning import WORTH_A_LOOK
from uncertain_cep.plan import EvaluationPlan

__all__ = ["feasible", "time_differences"]

Int64 = NDArray[np.int64]

_ALWAYS: Final = np.array([[-(2**62)], [2**62]], dtype=np.int64)
_NONE: Final = np.empty(0, dtype=np.int64)

_WINDOW_SAMPLE: Final = 256
"""Candidates of each component that tell whether the others are worth a look."""

WORTH_DROPPING: Final = 0.1
"""Share of the sampled candidates that must be out of reach of the rarest component's."""


def feasible(plan: EvaluationPlan, selection: Selection) -> Selection:
    """Return the candidates that can be in a match as far as order, window and keys go; without OR.

    Every candidate of every match stays, in the order it had. So does every candidate that a match's gap
    forbids under skip till next match: where it happens between ``e[j-1]`` and ``e[j]``, the events ``e1 ..
    e[j-1]``, it and ``e[j+1] .. el`` are in order and within the window as well. What negations and
    contiguity forbid is no candidate, and is not looked for here. The selection itself is returned if little
    of it can be dropped: if it is small, or if of a sample of the candidates fewer than a tenth are out of
    reach of those of the rarest component.

    Notes
    -----
    A component's event can happen only where some candidate of it covers the time, and where each other
    component has a candidate that can happen before it, or behind it, within the window (the necessary match
    conditions of Cadonna, Gamper and Böhlen, EDBT, section 4.3, with "is before" read as "can be before").
    Those times are unions of intervals, cut down by one another from the rarest component on: O(n l^2) for as
    many segments as candidates, O(n) where these are dense; O(n log n) more if the candidates of a partition
    do not come in the order of time. To go on until nothing changes drops hardly more, and takes longer.
    """
    if not plan.match_windows or selection.empty or len(plan.components) < 2:
        return selection
    if sum(map(len, selection.rows)) < WORTH_A_LOOK:
        return selection
    earliest, latest = selection.extremes
    window = min(plan.window, latest - earliest + 1)
    lags = time_differences(plan, window)
    order = sorted(range(len(selection.rows)), key=lambda j: len(selection.rows[j]))
    rarest = order[0]
    shift, line, _ = partition_bases(
        selection.lower, selection.upper, selection.partition, selection.partitions, window + 2,
        selection.extremes,
    )  # fmt: skip
    if line > LONGEST_LINE:
        return selection
    parts = {rarest: _Part.of(selection, rarest, shift)}
    times = {rarest: parts[rarest].times()}
    if not _worth_while(selection, shift, times[rarest], order, lags):
        return selection
    for j in order[1:]:
        allowed = _ALWAYS
        for i in times:
            allowed = restricted(allowed, times[i], lags[i, j], -lags[j, i])
        parts[j] = _Part.of(selection, j, shift).at(allowed)
        restricted_times = restricted(parts[j].times(), allowed, 0, 0)
        for i in times:
            times[i] = restricted(times[i], restricted_times, lags[j, i], -lags[i, j])
        times[j] = restricted_times
    return selection.take([parts[j].touching(times[j]) for j in range(len(order))])


def time_differences(plan: EvaluationPlan, window: int) -> Int64:
    """Return by how many ticks the event of one component follows that of another at least, (l, l) int64.

    ``t[j] - t[i] >= lags[i, j]`` for any events of two components in every match within ``window`` ticks;
    negative unless i comes before j: then it is 1, and 1 more for each component that has to lie between.
    Where conditions bound the differences of neighbours, it is the longest path over all of these bounds.
    """
    length = len(plan.components)
    between = plan.event_order.least_apart()
    first, last = between.max(axis=0), between.max(axis=1)
    # What is before the one and what is behind the other has to fit the window too.
    reach = window - 1 - first[None, :] - last[:, None]
    lags: Int64 = np.where(between > 0, between, -reach)
    for i, j, low, high in plan.table_distances:
        lags[i, j] = max(lags[i, j], min(low, window))
        lags[j, i] = max(lags[j, i], min(-high, window))
    for k in range(length if plan.table_distances else 0):
        # No path is longer, unless no match fits.
        lags = np.minimum(np.maximum(lags, lags[:, k, None] + lags[None, k, :]), max(length, window))
    return lags


def _worth_while(selection: Selection, shift: Int64, times: Int64, order: list[int], lags: Int64) -> bool:
    """Return whether enough candidates are out of reach of some times of the rarest component."""
    rarest = order[0]
    sampled = kept = 0
    for j in order[1:]:
        allowed = restricted(_ALWAYS, times, lags[rarest, j], -lags[j, rarest])
        part = _Part.sample(selection, j, shift)
        sampled += len(part.lower)
        kept += len(part.touching(allowed))
    return sampled - kept >= WORTH_DROPPING * sampled


class _Part(NamedTuple):
    """Candidates of a component, by their places in a selection, and the shift of each partition."""

    place: Int64 | None
    lower: Int64
    upper: Int64
    partition: Int64
    shift: Int64

    @classmethod
    def sample(cls, selection: Selection, component: int, shift: Int64) -> _Part:
        """Return some candidates of a component, every so many."""
        return cls.of(selection, component, shift, max(selection.sizes[component] // _WINDOW_SAMPLE, 1))

    @classmethod
    def of(cls, selection: Selection, component: int, shift: Int64, step: int = 1) -> _Part:
        """Return the candidates of a component, or one of so many."""
        partition = _NONE if selection.partition is None else selection.partition[component]
        lower, upper, partition = (
            np.ascontiguousarray(column[::step])
            for column in (selection.lower[component], selection.upper[component], partition)
        )
        return cls(None, lower, upper, partition, shift)

    def times(self) -> Int64:
        """Return the segments that they cover."""
        lower, upper = empty(len(self.lower)), empty(len(self.upper))
        if not grouped(self.lower, self.upper, self.partition, self.shift, lower, upper):
            order = np.argsort(lower, kind="stable")
            lower, upper = lower[order], upper[order]
        return union(lower, upper)

    def touching(self, times: Int64) -> Int64:
        """Return the places of those that can happen at some times."""
        places = empty(len(self.lower))
        hint = np.zeros(len(self.shift), dtype=np.int64)
        count = touching(self.lower, self.upper, self.partition, self.shift, times, hint, places)
        return places[:count] if self.place is None else self.place[places[:count]]

    def at(self, times: Int64) -> _Part:
        """Return the part of a whole component that can happen at some times."""
        place = self.touching(times)
        partition = self.partition[place] if len(self.partition) else _NONE
        return _Part(place, self.lower[place], self.upper[place], partition, self.shift)
