"""Pattern matching over point events (Zhang et al., section 3, step 2): the run loop of the automaton.

Skip till any is what runs, whatever the strategy of the query: a run stays where it is and a copy of it
takes the point. Two points of one event never meet in a run. Under skip till next a copy is weighed by the
probability that nothing that could have been taken happened in between (Eq. 2 and 3), and a prefix is left
alone once its NELT has passed: an event that can be next and starts after the prefix ends has happened by
then in every world. Points come in order of time, so the event that sets NELT has been tried by then: no run
has to be taken back, and all that hang on the prefix are left alone at once (appendix B.3).

A run that has taken events of a Kleene component is tried for a further one (TAKE) and for the next component
(PROCEED and BEGIN); NELT is apart for the two. Where events can be forbidden in several gaps, by negation,
by contiguity or next to each other in a Kleene component, the runs only say which signatures are possible;
collapsing weighs them. Under contiguity a prefix is left alone once an event that starts after it ends is
over: whatever comes then is no neighbour.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from confidence.kernel import kernel
from pointbased.automaton import (
    ACCEPTS,
    BEGINS_ON,
    FINISH,
    FINISH_END,
    FORMULA,
    FORMULA_END,
    LEAVE,
    LEAVE_END,
    SOURCE,
    TAKES_ON,
    TAKING,
    TARGET,
)
from pointbased.match_buffer import (
    COMPONENT,
    DEPTH,
    EXPIRES,
    LAST_BEGIN,
    LAST_TAKE,
    LATER,
    LIMIT,
    NODES,
    NONE,
    PARTITION,
    REFUSED,
    RUNS,
    RUNS_COUNT,
    SHARED,
    TAKEN,
    table_full,
)
from pointbased.prefixes import child_of, new_child, proceeds, refuses
from pointbased.runs import begin, room_wanted, take_plain, take_weighed
from pointbased.survival import gap_survival, probability

__all__ = ["DEEPER", "PAUSED", "Scratch", "match_points", "scratch_for"]

DEEPER: Final = -1
PAUSED: Final = -2


class Scratch(NamedTuple):
    """Work arrays of the run loop.

    Attributes
    ----------
    weight : (u,) float64
        By first time, u being the number of ticks of the longest interval.
    row_time, product, spoiled : (u,) int64, float64, int64
        See :func:`pointbased.survival.gap_survival`.
    """

    weight: Any
    row_time: Any
    product: Any
    spoiled: Any


def scratch_for(longest: int) -> Scratch:
    """Return work arrays for so many ticks in an interval."""
    return Scratch(
        np.empty(longest),
        np.empty(longest, dtype=np.int64),
        np.empty(longest),
        np.empty(longest, dtype=np.int64),
    )


@kernel
def match_points(
    time, candidate, place, candidates, buffer, heads, first_move, moves, states, window, conditions, work,
    scratch, most_steps, next_match, weighed, merging, nelt,
):  # fmt: skip
    """Feed point events to the automaton, as far as the pools have room and the budget of a call goes.

    Parameters
    ----------
    time, candidate : (m,) int64
        In the order of :class:`pointbased.expansion.PointEvents`, and behind all points fed before.
    place : (5,) int64
        Where to go on: the first point of a group, the move within its component (both 0 at first), the node
        and the one before it in their list (-1: from the head), and the point within the group.
    candidates : Candidates
    buffer : Buffer
    heads : (partitions * states,) int64
        First node of each partition and state that points are tried on, or -1. A node comes before those
        that it was reached from, so that no point meets a run that has just taken another of its tick.
    first_move, moves
        See :meth:`pointbased.automaton.Automaton.moves`.
    states : int64
    window : int64
    conditions : Conditions
        With the values of the candidates.
    work : confidence.predicates.conditions.Scratch
    scratch : Scratch
    most_steps : int64
        At least 1; see :func:`confidence.budget.steps_per_call`.
    next_match : bool
        Skip till next match.
    weighed : bool
        Whether runs are weighed by what skip till next forbids in their gaps.
    merging : bool
        Whether to merge runs with the same computation state.
    nelt : bool
        Whether to leave a prefix alone once its NELT has passed. It changes no answer.

    Returns
    -------
    int64
        0 when all points were fed; PAUSED if it took ``most_steps``; else, before the call is repeated, there
        has to be room: for so many runs, a node and an entry, or, if it is ``DEEPER``, for longer prefixes in
        ``work``. The components of a tick go from the last to the first, so no point meets a run that ends at
        its own tick.
    """
    row = candidates.row
    by_first = merging and not weighed
    deepest = work.element.shape[0] - (conditions.negated.shape[0] - 1)
    i = place[0]
    work.steps[0] = 0
    tried = False
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
        for e in range(first_move[component] + place[1], first_move[component + 1]):
            source = moves[e, SOURCE]
            accepts = moves[e, ACCEPTS] != 0
            onward = moves[e, TAKES_ON] != 0 or moves[e, BEGINS_ON] != 0
            taking = moves[e, TAKING] != 0
            asked, asked_end = moves[e, FORMULA], moves[e, FORMULA_END]
            leave, leave_end = moves[e, LEAVE], moves[e, LEAVE_END]
            finish, finish_end = moves[e, FINISH], moves[e, FINISH_END]
            last = LAST_TAKE if taking else LAST_BEGIN
            from_group = partition * states + source
            group = partition * states + moves[e, TARGET]
            previous = place[3]
            p = place[2]
            if p == NONE and source > 0:
                p = heads[from_group]
            while p != NONE or source == 0:
                if tried and work.steps[0] >= most_steps:
                    place[0], place[1], place[2], place[3] = i, e - first_move[component], p, previous
                    return PAUSED
                tried = True
                work.steps[0] += 1
                later = NONE if source == 0 else buffer.node[p, LATER]
                times = 0
                if source > 0:
                    if buffer.node[p, EXPIRES] < now or row[buffer.node[p, TAKEN], LIMIT] < now:
                        if previous == NONE:
                            heads[from_group] = later
                        else:
                            buffer.node[previous, LATER] = later
                        p = later
                        continue
                    if buffer.node[p, DEPTH] + 2 > deepest:
                        place[0], place[1], place[2], place[3] = i, e - first_move[component], p, previous
                        return DEEPER
                    if buffer.node[p, last] < now or (
                        leave < leave_end
                        and not proceeds(candidates, buffer, conditions, work, p, leave, leave_end)
                    ):
                        previous = p
                        p = later
                        continue
                    if weighed:
                        times = gap_survival(
                            candidates, buffer, p, now, scratch.row_time, scratch.product, scratch.spoiled
                        )
                    work.steps[0] += (1 + times + buffer.node[p, RUNS_COUNT]) * (stop - i)
                known = buffer.counts[NODES]
                for k in range(i + place[4], stop):
                    c = candidate[k]
                    full = buffer.counts[NODES] == buffer.node.shape[0] or table_full(
                        buffer.counts, buffer.table
                    )
                    wanted = 1
                    if not full:
                        child = child_of(candidates, buffer, p, c)
                        if child == NONE:
                            # What the conditions are read from is handed on only where it is needed.
                            refused = False
                            if taking or asked < asked_end or row[c, SHARED] != 0:
                                refused = refuses(
                                    candidates, buffer, conditions, work, p, c, taking, asked, asked_end
                                )
                            child = new_child(
                                candidates, buffer, p, c, refused, moves, e, window, next_match, nelt
                            )
                        if child == REFUSED:
                            continue
                        wanted = room_wanted(buffer, p, child)
                        full = onward and buffer.counts[RUNS] + wanted > buffer.run_weight.shape[0]
                    if full:
                        place[0], place[1], place[2], place[3] = i, e - first_move[component], p, previous
                        place[4] = k - i
                        return wanted
                    complete = accepts and (
                        finish == finish_end
                        or proceeds(candidates, buffer, conditions, work, child, finish, finish_end)
                    )
                    if source == 0:
                        begin(
                            candidates, buffer, heads, child, group, complete, onward, window, by_first, now
                        )
                    elif by_first:
                        take_plain(
                            buffer, heads, p, child, group, complete, onward, window,
                            probability(candidates, c, now), now,
                        )  # fmt: skip
                    else:
                        take_weighed(
                            candidates, buffer, heads, scratch, p, c, child, group, complete, onward, window,
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
