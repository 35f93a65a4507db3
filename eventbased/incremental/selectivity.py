"""Selectivity order: events wait until every component has some, then are fed, the rarest component first.

Zhang, Diao, Immerman, PVLDB 3(1), 2010, section 4.3. Candidates wait in a buffer for each partition and
component. A component is *there* if its buffer holds something, or if one of its events fed before can be
in a match with something unfed. Once all are there everything that waits is fed; so a match comes out
with the event that completes it, as in the any-state method. While one is missing, an event that
could not be together with an unseen event of that component is out of date and is dropped without ever
having become a run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.config import EVER, NEVER
from confidence.kernel import kernel
from confidence.pools import grown
from eventbased.incremental.candidate_pool import COMPONENT, LOWER, PARTITION, UPPER
from eventbased.incremental.method import IncrementalMethod

__all__ = ["Selectivity"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Buffers(NamedTuple):
    """The candidates that wait, in lists for each partition g and component j, at ``g * l + j``.

    Attributes
    ----------
    link : (c,) int64, waits : (c,) bool
        By candidate: the next one of the same buffer, or -1; whether it is in a buffer.
    first, last : (g * l,) int64
        First and last candidate of each buffer, or -1.
    fed_until : (g * l,) int64
        The largest lower bound of an event that a run with a candidate fed from there can still take, ticks.
    least : (g,) int64
        At most the smallest lower bound of what waits, ticks.
    seen : (l,) int64
        How many candidates of each component came.
    """

    link: Int64
    waits: Mask
    first: Int64
    last: Int64
    fed_until: Int64
    least: Int64
    seen: Int64


@kernel
def _missing(at, first, fed_until, least_lower):
    """Return whether nothing of a component can be with what waits in a partition or comes to it."""
    return first[at] < 0 and fed_until[at] < least_lower


@kernel
def _is_out_of_date(index, group, length, w, oldest, upper, component, first, fed_until, least_lower):
    """Return whether some component is missing that no event with ``lower >= oldest`` can fill in time."""
    j = component[index]
    for k in range(length):
        if k != j and _missing(group + k, first, fed_until, least_lower):
            latest = upper[index] + (w if k > j else 0) + k
            if latest < oldest:
                return True
    return False


@kernel
def _next_rarest(before, seen):
    """Return the component next in the order of how many candidates came, the rarest first. O(l)."""
    following = -1
    for k in range(seen.shape[0]):
        is_behind = before < 0 or (seen[before], before) < (seen[k], k)
        if is_behind and (following < 0 or seen[k] < seen[following]):
            following = k
    return following


@kernel
def wait_or_feed(indices, floor, length, w, candidates, buffers, order, bounds):
    """Put candidates into their buffers, drop what is out of date, empty the buffers of complete partitions.

    Parameters
    ----------
    indices : (k,) int64
        Of the candidates, by ascending lower bound.
    floor : (k + 1,) int64
        No candidate from the i-th on, nor any unseen event, has a smaller lower bound, ticks.
    length, w : int64
        Number of components l, and ``W - l``, ticks.
    candidates : (7, capacity) int64
        See :class:`eventbased.incremental.candidate_pool.CandidatePool`.
    buffers : Buffers
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
    link, waits, first, last = buffers.link, buffers.waits, buffers.first, buffers.last
    fed_until, least_lower = buffers.fed_until, buffers.least
    component, lower, upper = candidates[COMPONENT], candidates[LOWER], candidates[UPPER]
    partition = candidates[PARTITION]
    seen = buffers.seen
    for i in range(indices.shape[0]):
        seen[component[indices[i]]] += 1
    count = 0
    for i in range(indices.shape[0]):
        index = indices[i]
        oldest = floor[i + 1]
        g = partition[index]
        group = g * length
        at = group + component[index]
        link[index] = -1
        waits[index] = True
        if first[at] < 0:
            first[at] = index
        else:
            link[last[at]] = index
        last[at] = index
        least_lower[g] = min(least_lower[g], lower[index] + component[index])
        complete = True
        for k in range(length):
            complete = complete and not _missing(group + k, first, fed_until, least_lower[g])
        if not complete:
            for k in range(length):
                at = group + k
                while first[at] >= 0 and _is_out_of_date(
                    first[at], group, length, w, oldest, upper, component, first, fed_until, least_lower[g]
                ):
                    waits[first[at]] = False
                    first[at] = link[first[at]]
            continue
        begin = count
        k = -1
        for _ in range(length):
            k = _next_rarest(k, seen)
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
        least_lower[g] = EVER
        after = oldest
        for n in range(count - 1, begin - 1, -1):
            bounds[n, 1] = after
            after = min(after, lower[order[n]] + component[order[n]])
            bounds[n, 0] = after
    return count


@kernel
def _drop(oldest, length, w, candidates, buffers):
    """Drop everything that is out of date from all buffers, not only from their front."""
    link, waits, first, last = buffers.link, buffers.waits, buffers.first, buffers.last
    fed_until, least_lower = buffers.fed_until, buffers.least
    component, lower, upper = candidates[COMPONENT], candidates[LOWER], candidates[UPPER]
    for g in range(least_lower.shape[0]):
        group = g * length
        before = least_lower[g]
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
        least_lower[g] = smallest


@kernel
def _follow(mapping, buffers):
    """Move links and buffers to the new indices; what waits is kept, so that order is too."""
    link, waits, first, last = buffers.link, buffers.waits, buffers.first, buffers.last
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
    """Runs over events that wait for the rarest component, as counted while candidates come in."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        nothing, seen = np.zeros(0, dtype=np.int64), np.zeros(self.length, dtype=np.int64)
        self._buffers = Buffers(nothing, nothing > 0, nothing, nothing, nothing, nothing, seen)

    def _admit(self, partitions: int) -> None:
        before, known = len(self._buffers.least), len(self._buffers.first)
        least = grown(self._buffers.least, partitions)
        buffers = len(least) * self.length
        self._buffers = self._buffers._replace(
            least=least,
            first=grown(self._buffers.first, buffers),
            last=grown(self._buffers.last, buffers),
            fed_until=grown(self._buffers.fed_until, buffers),
        )
        least[before:] = EVER
        self._buffers.first[known:] = -1
        self._buffers.fed_until[known:] = NEVER

    def _arrive(self, indices: Int64, floor: Int64) -> tuple[Int64, Int64]:
        pool, count = self.pool.candidates, self.pool.count
        if count > len(self._buffers.link):
            self._buffers = self._buffers._replace(
                link=grown(self._buffers.link, count), waits=grown(self._buffers.waits, count)
            )
        order, bounds = np.empty(count, dtype=np.int64), np.empty((count, 2), dtype=np.int64)
        fed = wait_or_feed(indices, floor, self.length, self.w, pool, self._buffers, order, bounds)
        return order[:fed], bounds[:fed]

    def _waiting(self) -> Int64:
        return np.flatnonzero(self._buffers.waits[: self.pool.count])

    def _drop_out_of_date(self, safe: int) -> None:
        _drop(safe, self.length, self.w, self.pool.candidates, self._buffers)

    def _follow(self, mapping: Int64) -> None:
        _follow(mapping, self._buffers)

    def forget(self, partition: Int64) -> None:
        """Forget partitions that nothing is held of, so that their numbers can stand for others."""
        buffers = partition[:, None] * self.length + np.arange(self.length)
        self._buffers.fed_until[buffers] = NEVER
