"""Pattern matching over point events (Zhang et al., section 3, step 2): the run loop of the automaton.

Skip till any is what runs, whatever the strategy of the query: a run stays where it is and a copy of it
takes the point. Two points of one event never meet in a run. Under skip till next a copy is weighed by the
probability that nothing that could have been taken happened in between (Eq. 2 and 3), and a prefix is left
alone once its NELT has passed: an event that can be next and starts after the prefix ends has happened by
then in every world. Points come in order of time, so the event that sets NELT has been tried by then: no run
has to be taken back, and all that hang on the prefix are left alone at once (appendix B.3).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from confidence.programs import STACK_DEPTH
from pointbased.pools import (
    COMPONENT,
    EXPIRES,
    LATER,
    NODES,
    NONE,
    PARTITION,
    REFUSED,
    RUNS,
    table_full,
)
from pointbased.prefixes import child_of
from pointbased.runs import begin, room_wanted, take_plain, take_weighed
from pointbased.survival import gap_survival, probability

__all__ = ["Programs", "Scratch", "match_points", "scratch_for"]


class Programs(NamedTuple):
    """The arrays of :func:`confidence.programs.holds`, attribute values in the order of the candidates."""

    code: Any
    ints: Any
    floats: Any
    nulls: Any
    slots: Any


class Scratch(NamedTuple):
    """Work arrays of the run loop.

    Attributes
    ----------
    weight : (u,) float64
        By first time, u being the number of ticks of the longest interval.
    row_time, product, spoiled : (u,) int64, float64, int64
        See :func:`pointbased.survival.gap_survival`.
    chosen : (l,) int64
    whole, real, absent
        See :func:`confidence.programs.holds`.
    """

    weight: Any
    row_time: Any
    product: Any
    spoiled: Any
    chosen: Any
    whole: Any
    real: Any
    absent: Any


def scratch_for(components: int, longest: int) -> Scratch:
    """Return work arrays for so many components and ticks in an interval."""
    return Scratch(
        np.empty(longest),
        np.empty(longest, dtype=np.int64),
        np.empty(longest),
        np.empty(longest, dtype=np.int64),
        np.empty(components, dtype=np.int64),
        np.empty(STACK_DEPTH, dtype=np.int64),
        np.empty(STACK_DEPTH),
        np.empty(STACK_DEPTH, dtype=np.bool_),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def match_points(
    time, candidate, place, candidates, buffer, heads, edge_first, edges, accepting, window, programs,
    scratch, next_match, merging, nelt,
):  # fmt: skip
    """Feed point events to the automaton, as far as the pools have room.

    Parameters
    ----------
    time, candidate : (m,) int64
        In the order of :class:`pointbased.expansion.PointEvents`, and behind all points fed before.
    place : (5,) int64
        Where to go on: the first point of a group, the edge within its component (both 0 at first), the node
        and the one before it in their list (-1: from the head), and the point within the group.
    candidates : Candidates
    buffer : Buffer
    heads : (partitions * states,) int64
        First node of each partition and state that points are tried on, or -1.
    edge_first, edges
        See :meth:`pointbased.automaton.Automaton.consuming`.
    accepting : int64
        The last state.
    window : int64
    programs : Programs
    scratch : Scratch
    next_match : bool
        Skip till next match.
    merging : bool
        Whether to merge runs with the same computation state.
    nelt : bool
        Whether to leave a prefix alone once its NELT has passed. It changes no answer.

    Returns
    -------
    int64
        0 when all points were fed; else the number of runs to make room for, and a node and an entry, before
        the call is repeated. The components of a tick go from the last to the first, so no point meets a
        run that ends at its own tick.
    """
    row = candidates.row
    by_first = merging and not next_match
    i = place[0]
    while i < time.shape[0]:
        now = time[i]
        component = row[candidate[i], COMPONENT]
        partition = row[candidate[i], PARTITION]
        stop = i + 1
        while (
            stop < time.shape[0]
            and time[stop] == now
            and row[candidate[stop], COMPONENT] == component
            and row[candidate[stop], PARTITION] == partition
        ):
            stop += 1
        for e in range(edge_first[component] + place[1], edge_first[component + 1]):
            source = edges[e, 0]
            target = edges[e, 1]
            complete = target == accepting
            group = partition * accepting + target
            previous = place[3]
            p = place[2]
            if p == NONE and source > 0:
                p = heads[partition * accepting + source]
            while p != NONE or source == 0:
                later = NONE if source == 0 else buffer.node[p, LATER]
                times = 0
                if source > 0:
                    if buffer.node[p, EXPIRES] < now:
                        if previous == NONE:
                            heads[partition * accepting + source] = later
                        else:
                            buffer.node[previous, LATER] = later
                        p = later
                        continue
                    if next_match:
                        times = gap_survival(
                            candidates, buffer, p, now, scratch.row_time, scratch.product, scratch.spoiled
                        )
                known = buffer.counts[NODES]
                for k in range(i + place[4], stop):
                    c = candidate[k]
                    full = buffer.counts[NODES] == buffer.node.shape[0] or table_full(
                        buffer.counts, buffer.table
                    )
                    wanted = 1
                    if not full:
                        child = child_of(
                            candidates, buffer, programs, scratch, p, c, target, edges[e, 2], edges[e, 3],
                            window, next_match, nelt,
                        )  # fmt: skip
                        if child == REFUSED:
                            continue
                        wanted = room_wanted(buffer, p, child)
                        full = not complete and buffer.counts[RUNS] + wanted > buffer.run_weight.shape[0]
                    if full:
                        place[0], place[1], place[2], place[3] = i, e - edge_first[component], p, previous
                        place[4] = k - i
                        return wanted
                    if source == 0:
                        begin(candidates, buffer, heads, child, group, complete, window, by_first, now)
                    elif by_first:
                        take_plain(
                            buffer, heads, p, child, group, complete, window, probability(candidates, c, now),
                            now,
                        )  # fmt: skip
                    else:
                        take_weighed(
                            candidates, buffer, heads, scratch, p, c, child, group, complete, window,
                            probability(candidates, c, now), now, times, child < known, merging,
                        )  # fmt: skip
                place[4] = 0
                if source == 0:
                    break
                previous = p
                p = later
            place[2] = NONE
            place[3] = NONE
        place[1] = 0
        i = stop
    return 0
