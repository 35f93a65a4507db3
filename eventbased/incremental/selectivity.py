"""Selectivity order: events wait until every component has some, then are fed, the rarest component first.

Zhang, Diao, Immerman, PVLDB 3(1), 2010, section 4.3. Candidates wait in a buffer for each partition and
component. A component is *there* if its buffer holds something, or if one of its events fed before can be
in a match with something unfed. Once all are there everything that waits is fed; so a match comes out
with the event that completes it, as in the any-state method. While one is missing, an event that
could not be together with an unseen event of that component is out of date and is dropped without ever
having become a run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel
from eventbased.incremental.candidate_pool import grown
from eventbased.incremental.method import EVER, NEVER, IncrementalMethod

__all__ = ["Selectivity"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@kernel
def _missing(group, k, first, fed_until, least):
    """Return whether nothing of component k can be with what waits in a partition or comes to it."""
    return first[group + k] < 0 and fed_until[group + k] < least


@kernel
def _is_out_of_date(place, group, length, w, oldest, upper, component, first, fed_until, least):
    """Return whether some component is missing that no event with ``lower >= oldest`` can fill in time."""
    j = component[place]
    for k in range(length):
        if k != j and _missing(group, k, first, fed_until, least):
            latest = upper[place] + (w if k > j else 0) + k
            if latest < oldest:
                return True
    return False


@kernel
def wait_or_feed(
    places, floor, length, w, rarest, component, partition, lower, upper, link, waits, first, last, fed_until,
    least, order, bounds,
):  # fmt: skip
    """Put candidates into their buffers, drop what is out of date, empty the buffers of complete partitions.

    Parameters
    ----------
    places : (k,) int64
        The candidates, by ascending lower bound.
    floor : (k + 1,) int64
        No candidate from the i-th on, nor any unseen event, has a smaller lower bound, ticks.
    length, w : int64
        Number of components l, and ``W - l``.
    rarest : (l,) int64
        The components, the rarest first.
    component, partition, lower, upper : (c,) int64
        Of the candidates, by place; bounds minus position.
    link : (c,) int64, waits : (c,) bool
        The next candidate of the same buffer, or -1; whether it is in a buffer.
    first, last : (g * l,) int64
        First and last candidate of the buffer of partition g and component j, at ``g * l + j``, or -1.
    fed_until : (g * l,) int64
        The largest lower bound of an event that a run with a candidate fed from there can still take.
    least : (g,) int64
        At most the smallest lower bound of what waits.
    order : (n,) int64, bounds : (n, 2) int64
        Overwritten: what to feed, and its floors (:func:`eventbased.incremental.run_pool.feed`); n is at
        least all that waits and arrives.

    Returns
    -------
    int64
        How many to feed.

    Notes
    -----
    O(l^2) for each candidate: each waits once, and is dropped or fed once.
    """
    count = 0
    for i in range(places.shape[0]):
        place = places[i]
        oldest = floor[i + 1]
        g = partition[place]
        group = g * length
        at = group + component[place]
        link[place] = -1
        waits[place] = True
        if first[at] < 0:
            first[at] = place
        else:
            link[last[at]] = place
        last[at] = place
        least[g] = min(least[g], lower[place] + component[place])
        complete = True
        for k in range(length):
            complete = complete and not _missing(group, k, first, fed_until, least[g])
        if not complete:
            for k in range(length):
                at = group + k
                while first[at] >= 0 and _is_out_of_date(
                    first[at], group, length, w, oldest, upper, component, first, fed_until, least[g]
                ):
                    waits[first[at]] = False
                    first[at] = link[first[at]]
            continue
        begin = count
        for s in range(length):
            k = rarest[s]
            at = group + k
            p = first[at]
            while p >= 0:
                order[count] = p
                waits[p] = False
                count += 1
                # With the last component filled, an earlier one is lacking, and has to come before it.
                reach = upper[p] + length - 2 if k == length - 1 else upper[p] + w + length - 1
                fed_until[at] = max(fed_until[at], reach)
                p = link[p]
            first[at] = -1
        least[g] = EVER
        after = oldest
        for n in range(count - 1, begin - 1, -1):
            bounds[n, 1] = after
            after = min(after, lower[order[n]] + component[order[n]])
            bounds[n, 0] = after
    return count


@kernel
def _drop(oldest, length, w, component, lower, upper, link, waits, first, last, fed_until, least):
    """Drop everything that is out of date from all buffers, not only from their front."""
    for g in range(least.shape[0]):
        group = g * length
        before = least[g]
        smallest = EVER
        for k in range(length):
            at = group + k
            p = first[at]
            first[at] = -1
            kept = -1
            while p >= 0:
                following = link[p]
                # The front of this buffer stands for itself while it is gone through.
                if _is_out_of_date(p, group, length, w, oldest, upper, component, first, fed_until, before):
                    waits[p] = False
                else:
                    if kept < 0:
                        first[at] = p
                    else:
                        link[kept] = p
                    link[p] = -1
                    kept = p
                    smallest = min(smallest, lower[p] + k)
                p = following
            last[at] = kept
        least[g] = smallest


@kernel
def _follow(mapping, link, waits, first, last):
    """Move links and buffers to the new places; what waits is kept, so that order is too."""
    for old in range(mapping.shape[0]):
        new = mapping[old]
        if new >= 0:
            waits[new] = waits[old]
            link[new] = mapping[link[old]] if link[old] >= 0 else -1
    for at in range(first.shape[0]):
        if first[at] >= 0:
            first[at] = mapping[first[at]]
            last[at] = mapping[last[at]]


class Selectivity(IncrementalMethod):
    """Runs over events that wait for the rarest component.

    Parameters
    ----------
    *arguments, **options
        As for :class:`eventbased.incremental.method.IncrementalMethod`.

    Notes
    -----
    How rare a component is is counted as candidates come in.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._seen: Int64 = np.zeros(self.length, dtype=np.int64)
        self._link: Int64 = np.zeros(0, dtype=np.int64)
        self._waits: Mask = np.zeros(0, dtype=np.bool_)
        self._first: Int64 = np.zeros(0, dtype=np.int64)
        self._last: Int64 = np.zeros(0, dtype=np.int64)
        self._fed_until: Int64 = np.zeros(0, dtype=np.int64)
        self._least: Int64 = np.zeros(0, dtype=np.int64)

    def _admit(self, partitions: int) -> None:
        before = len(self._least)
        self._least = grown(self._least, partitions)
        self._least[before:] = EVER
        buffers = len(self._least) * self.length
        known = len(self._first)
        self._first, self._last = grown(self._first, buffers), grown(self._last, buffers)
        self._fed_until = grown(self._fed_until, buffers)
        self._first[known:] = -1
        self._fed_until[known:] = NEVER

    def _arrive(self, places: Int64, floor: Int64) -> tuple[Int64, Int64]:
        pool, count = self.pool.arrays, self.pool.count
        self._link, self._waits = grown(self._link, count), grown(self._waits, count)
        self._seen += np.bincount(pool.component[places], minlength=self.length)
        order, bounds = np.empty(count, dtype=np.int64), np.empty((count, 2), dtype=np.int64)
        fed = wait_or_feed(
            places, floor, self.length, self.w, np.argsort(self._seen, kind="stable"), pool.component,
            pool.partition, pool.lower, pool.upper, self._link, self._waits, self._first, self._last,
            self._fed_until, self._least, order, bounds,
        )  # fmt: skip
        return order[:fed], bounds[:fed]

    def _waiting(self) -> Int64:
        return np.flatnonzero(self._waits[: self.pool.count])

    def _drop_out_of_date(self, safe: int) -> None:
        pool = self.pool.arrays
        _drop(
            safe, self.length, self.w, pool.component, pool.lower, pool.upper, self._link, self._waits,
            self._first, self._last, self._fed_until, self._least,
        )  # fmt: skip

    def _follow(self, mapping: Int64) -> None:
        _follow(mapping, self._link, self._waits, self._first, self._last)

    def forget(self, partition: Int64) -> None:
        """Forget partitions that nothing is held of, so that their numbers can stand for others."""
        buffers = partition[:, None] * self.length + np.arange(self.length)
        self._fed_until[buffers] = NEVER
