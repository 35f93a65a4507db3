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

from typing import Final

import pointbased.columns as col
from confidence.kernel import kernel
from pointbased.columns import NONE, REFUSED
from pointbased.match_buffer import child_of, new_child, proceeds, refuses, table_full
from pointbased.runs import begin, gap_survival, room_wanted, take_plain, take_weighed

__all__ = ["DEEPER", "PAUSED", "match_points"]

DEEPER: Final = -1
PAUSED: Final = -2


@kernel
def _stop(cursor, group, move, node, previous):
    cursor[col.GROUP] = group
    cursor[col.MOVE] = move
    cursor[col.NODE] = node
    cursor[col.PREVIOUS] = previous


@kernel
def match_points(points, cursor, candidates, buffer, rules, conditions, work, gaps, most_steps):
    """Feed point events to the automaton, as far as the pools have room and the budget of a call goes.

    Parameters
    ----------
    points : PointEvents
        Behind all points fed before.
    cursor : (5,) int64
        Where to go on, by :mod:`pointbased.columns`: at first 0, 0, -1, -1, 0.
    candidates : StoredCandidates
    buffer : Buffer
    rules : pointbased.automaton.Rules
    conditions : Conditions
        With the values of the candidates.
    work : confidence.predicates.conditions.Scratch
    gaps : Gaps
        For the longest interval.
    most_steps : int64
        At least 1; see :func:`confidence.budget.steps_per_call`.

    Returns
    -------
    int64
        0 when all points were fed; PAUSED if it took ``most_steps``; else, before the call is repeated, there
        has to be room: for so many runs, a node and an entry, or, if it is ``DEEPER``, for longer prefixes in
        ``work``. The components of a tick go from the last to the first, so no point meets a run that ends at
        its own tick.
    """
    row = candidates.row
    moves, window = rules.moves, rules.window
    time, candidate = points.time, points.candidate
    by_first = rules.merging and not rules.weighs_runs
    deepest = work.element.shape[0] - (conditions.negated.shape[0] - 1)
    i = cursor[col.GROUP]
    work.steps[0] = 0
    tried = False
    while i < time.shape[0]:
        now = time[i]
        component = row[candidate[i], col.COMPONENT]
        partition = row[candidate[i], col.PARTITION]
        stop = i + 1
        while (
            stop < time.shape[0]
            and time[stop] == now
            and row[candidate[stop], col.COMPONENT] == component
            and row[candidate[stop], col.PARTITION] == partition
        ):
            stop += 1
        for e in range(rules.first_move[component] + cursor[col.MOVE], rules.first_move[component + 1]):
            source = moves[e, col.SOURCE]
            accepts = moves[e, col.ACCEPTS] != 0
            onward = moves[e, col.TAKES_ON] != 0 or moves[e, col.BEGINS_ON] != 0
            taking = moves[e, col.TAKING] != 0
            formula, formula_end = moves[e, col.FORMULA], moves[e, col.FORMULA_END]
            leave, leave_end = moves[e, col.LEAVE], moves[e, col.LEAVE_END]
            finish, finish_end = moves[e, col.FINISH], moves[e, col.FINISH_END]
            last = col.LAST_TAKE if taking else col.LAST_BEGIN
            from_group = partition * rules.states + source
            group = partition * rules.states + moves[e, col.TARGET]
            previous = cursor[col.PREVIOUS]
            p = cursor[col.NODE]
            if p == NONE and source > 0:
                p = buffer.heads[from_group]
            while p != NONE or source == 0:
                if tried and work.steps[0] >= most_steps:
                    _stop(cursor, i, e - rules.first_move[component], p, previous)
                    return PAUSED
                tried = True
                work.steps[0] += 1
                later = NONE if source == 0 else buffer.node[p, col.LATER]
                times = 0
                if source > 0:
                    if buffer.node[p, col.EXPIRES] < now or row[buffer.node[p, col.TAKEN], col.LIMIT] < now:
                        if previous == NONE:
                            buffer.heads[from_group] = later
                        else:
                            buffer.node[previous, col.LATER] = later
                        p = later
                        continue
                    if buffer.node[p, col.DEPTH] + 2 > deepest:
                        _stop(cursor, i, e - rules.first_move[component], p, previous)
                        return DEEPER
                    if buffer.node[p, last] < now or (
                        leave < leave_end
                        and not proceeds(candidates, buffer, conditions, work, p, leave, leave_end)
                    ):
                        previous = p
                        p = later
                        continue
                    if rules.weighs_runs:
                        times = gap_survival(candidates, buffer, p, now, gaps)
                    work.steps[0] += (1 + times + buffer.node[p, col.RUNS_COUNT]) * (stop - i)
                nodes_before = buffer.counts[col.NODES]
                for k in range(i + cursor[col.POINT], stop):
                    c = candidate[k]
                    full = buffer.counts[col.NODES] == buffer.node.shape[0] or table_full(
                        buffer.counts, buffer.table
                    )
                    room_needed = 1
                    if not full:
                        child = child_of(candidates, buffer, p, c)
                        if child == NONE:
                            # What the conditions are read from is handed on only where it is needed.
                            refused = False
                            if taking or formula < formula_end or row[c, col.SHARED] != 0:
                                refused = refuses(
                                    candidates, buffer, conditions, work, p, c, taking, formula, formula_end
                                )
                            child = new_child(candidates, buffer, p, c, refused, rules, e)
                        if child == REFUSED:
                            continue
                        room_needed = room_wanted(buffer, p, child)
                        full = onward and buffer.counts[col.RUNS] + room_needed > buffer.run_weight.shape[0]
                    if full:
                        _stop(cursor, i, e - rules.first_move[component], p, previous)
                        cursor[col.POINT] = k - i
                        return room_needed
                    complete = accepts and (
                        finish == finish_end
                        or proceeds(candidates, buffer, conditions, work, child, finish, finish_end)
                    )
                    if source == 0:
                        begin(candidates, buffer, child, group, complete, onward, window, by_first, now)
                    elif by_first:
                        take_plain(candidates, buffer, p, child, group, complete, onward, window, now)
                    else:
                        take_weighed(
                            candidates, buffer, gaps, p, child, group, complete, onward, window, now, times,
                            child < nodes_before, rules.merging,
                        )  # fmt: skip
                cursor[col.POINT] = 0
                if source == 0:
                    break
                previous = p
                p = later
            cursor[col.NODE] = NONE
            cursor[col.PREVIOUS] = NONE
        cursor[col.MOVE] = 0
        i = stop
    return 0
