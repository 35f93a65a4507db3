"""Spans of a certain length: their begin and their end are one time.

A world's end is its begin and the length, so that every literal of the end is one of the begin. Both times
are uniform: the pairs that are left, one for each tick that both can meet, are alike likely.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.timed.bounds import UNBOUND
from uncertain_cep.weighers.explicit import ExplicitMatches

__all__ = ["with_one_time_each"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

_FAR: Final = UNBOUND // 8
"""No difference of two times is so large: a bound of it is none, and stays what it is."""


Reach = tuple[Int64, Int64]
"""The tight range of each match, (k,) int64 twice."""


def with_one_time_each(part: ExplicitMatches) -> Iterator[tuple[ExplicitMatches, Reach | None]]:
    """Yield the matches of a batch, those with spans of a certain length without the times of their ends.

    The tight range of all times comes with these.

    Matches that are forbidden an event, or have explicit probabilities, stay as they are. The ticks of a
    batch are tight, so both times of a span can meet the same ones. O(k * literals).
    """
    lasting = dict(enumerate(part.shape.lasting, start=part.shape.total))
    columns = [e for e, (end, event) in enumerate(part.times.sides.tolist()) if lasting.get(end, -1) == event]
    count = len(part.which)
    is_rigid = np.broadcast_to(
        part.times.low[:, columns] == part.times.high[:, columns], (count, len(columns))
    )
    takes = (part.spoilers == 0) & (part.times.size > 0.0).all(axis=1)
    is_rigid = is_rigid & takes[:, None]
    if not is_rigid.any():
        yield part, None
        return
    code = is_rigid @ (1 << np.arange(len(columns), dtype=np.int64))
    for kind in np.unique(code).tolist():
        which = np.flatnonzero(code == kind)
        rigid = [column for place, column in enumerate(columns) if kind >> place & 1]
        some = part.some(which)
        yield _without_ends(some, rigid) if rigid else (some, None)


def _without_ends(part: ExplicitMatches, rigid: list[int]) -> tuple[ExplicitMatches, Reach]:
    """Return matches without the ends that some literals tie to their begins, and their range."""
    times = part.times
    size = times.size.copy()
    sides, low, high = times.sides.copy(), times.low.copy(), times.high.copy()
    for column in rigid:
        end, begin = times.sides[column].tolist()
        length = times.low[:, column]
        size[:, begin] *= size[:, end]
        for side, sign in ((0, -1), (1, 1)):
            moved = np.flatnonzero(sides[:, side] == end)
            for bound in (low, high):
                shifted = bound[:, moved] + sign * length[:, None]
                bound[:, moved] = np.where(np.abs(bound[:, moved]) < _FAR, shifted, bound[:, moved])
            sides[moved, side] = begin
    ends = {int(times.sides[column, 0]) for column in rigid}
    left = np.array([time for time in range(times.first.shape[1]) if time not in ends])
    number = np.zeros(times.first.shape[1], dtype=np.int64)
    number[left] = np.arange(len(left))
    # Tight ticks meet what is left of a span by itself.
    kept = np.flatnonzero(sides[:, 0] != sides[:, 1])
    without = times._replace(
        first=np.ascontiguousarray(times.first[:, left]), last=np.ascontiguousarray(times.last[:, left]),
        size=np.ascontiguousarray(size[:, left]), offset=np.ascontiguousarray(times.offset[:, left]),
        sides=number[sides[kept]], low=np.ascontiguousarray(low[:, kept]),
        high=np.ascontiguousarray(high[:, kept]), ends=times.ends[:, left],
    )  # fmt: skip
    return part._replace(times=without), (times.first.min(axis=1), times.last.max(axis=1))
