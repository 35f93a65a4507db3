"""Conditions on a match that is found event by event: which of its events they mean, and when they are asked.

A condition is bytecode (:mod:`confidence.predicates.bytecode`) whose slots read *cells*. Before it is
interpreted, each cell gets the candidate that a mention stands for: the only event of a component, or the
first, current, previous or last of a Kleene component (SASE+, Agrawal et al., SIGMOD 2008). What speaks of
the current event of a Kleene component is asked of every one. Aggregates are kept for every prefix of a
component's events, so that each costs one step an event.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel
from confidence.predicates.bytecode import STACK_DEPTH, holds

__all__ = [
    "AVG",
    "CONSTANT_CELL",
    "COUNT",
    "CURRENT",
    "DISTINCT",
    "FIRST",
    "LAST",
    "MAX",
    "MIN",
    "NO_VALUES",
    "PERCENTILE",
    "PREVIOUS",
    "REAL",
    "STDDEV",
    "SUM",
    "WHOLE",
    "Conditions",
    "Scratch",
    "accumulate",
    "all_hold",
    "scratch",
]

FIRST: Final = 1
"""The first event of a component; 2 the second, and so on."""
CURRENT: Final = 0
PREVIOUS: Final = -1
"""The event before the current one; -2 the one before that, and so on."""
LAST: Final = 2**62

COUNT: Final = 0
SUM: Final = 1
MIN: Final = 2
MAX: Final = 3
AVG: Final = 4
DISTINCT: Final = 5
STDDEV: Final = 6
PERCENTILE: Final = 7
"""The least; it is this and the share of values below, in billionths."""

_BILLION: Final = 10**9

WHOLE: Final = 0
REAL: Final = 1
NO_VALUES: Final = 2

CONSTANT_CELL: Final = 0
"""The cell that is always 0: through it conditions read what no candidate provides."""

Int64 = NDArray[np.int64]


class Conditions(NamedTuple):
    """Compiled conditions; those asked together are neighbours.

    Attributes
    ----------
    code, ints, floats, nulls, slots
        See :func:`confidence.predicates.bytecode.holds`; the components of ``slots`` are cells. Aggregates
        are written to places of ``ints``, ``floats`` and ``nulls`` of their own.
    rows : (c + 1,) int64
        The rows of ``code`` of each condition.
    mention_start : (c + 1,) int64, mentions : (m, 3) int64
        For each condition: cell, component, and FIRST or the number of an event, CURRENT or how far behind
        it, or LAST. What is no event of the component is null.
    running_start : (c + 1,) int64, running : (r, 2) int64
        The Kleene components over whose events it runs, and from which one on (0: the first).
    aggregate_start : (c + 1,) int64, aggregates : (g, 6) int64
        Component, whether it ends before the current event, accumulator, whether it is float64, place among
        ``ints`` or ``floats``, place among ``nulls``.
    accumulator_start : (k + 1,) int64, accumulators : (q, 4) int64
        For each component: function, where the values of its candidates start in ``ints`` or ``floats``,
        where in ``nulls``, and whether the values are WHOLE, REAL, or NO_VALUES are looked at.
    stages : (l, 4) int64
        For each positive component the first condition asked of its first event alone, of every event, and
        of the component when it is complete; and the first that is none of these.
    negated : (n + 1,) int64
        The first condition of each negated component.
    """

    code: Int64
    ints: Int64
    floats: NDArray[np.float64]
    nulls: NDArray[np.bool_]
    slots: Int64
    rows: Int64
    mention_start: Int64
    mentions: Int64
    running_start: Int64
    running: Int64
    aggregate_start: Int64
    aggregates: Int64
    accumulator_start: Int64
    accumulators: Int64
    stages: Int64
    negated: Int64


class Scratch(NamedTuple):
    """Where conditions are worked out, for matches of at most d events.

    Attributes
    ----------
    element : (d + n,) int64
        The candidates of a match in order; behind them one for each negated component.
    start, stop : (l + n,) int64
        The places of a component in ``element``: those of component j are ``start[j] .. stop[j] - 1``.
    counted : (q, d) int64, whole : (q, d) int64, real : (q, d) float64
        For each accumulator, over the events of its component up to each: values that are not null, or how
        many of them differ, and their sum, smallest, largest, or standard deviation.
    cells, position, lowest, stack
        Work arrays.
    steps : (1,) int64
        Steps taken since it was set to 0, see :func:`confidence.budget.steps_per_call`.
    """

    element: Int64
    start: Int64
    stop: Int64
    counted: Int64
    whole: Int64
    real: NDArray[np.float64]
    cells: Int64
    position: Int64
    lowest: Int64
    stack: tuple[Int64, NDArray[np.float64], NDArray[np.bool_]]
    steps: Int64

    def deeper(self, conditions: Conditions, depth: int) -> Scratch:
        """Return the same for matches of at most ``depth`` events, which are more."""
        grown = scratch(conditions, depth)
        length, size = len(conditions.stages), self.counted.shape[1]
        grown.element[:size] = self.element[:size]
        grown.start[:length], grown.stop[:length] = self.start[:length], self.stop[:length]
        for new, old in ((grown.counted, self.counted), (grown.whole, self.whole), (grown.real, self.real)):
            new[:, :size] = old
        return grown


def scratch(conditions: Conditions, depth: int) -> Scratch:
    """Return a scratch for matches of at most ``depth`` events."""
    length, negated = len(conditions.stages), len(conditions.negated) - 1
    accumulators = len(conditions.accumulators)
    start = np.zeros(length + negated, dtype=np.int64)
    start[length:] = depth + np.arange(negated)
    cells = int(conditions.mentions[:, 0].max(initial=CONSTANT_CELL)) + 1
    return Scratch(
        element=np.zeros(depth + negated, dtype=np.int64),
        start=start,
        stop=start + 1,
        counted=np.zeros((accumulators, depth), dtype=np.int64),
        whole=np.zeros((accumulators, depth), dtype=np.int64),
        real=np.zeros((accumulators, depth), dtype=np.float64),
        cells=np.zeros(cells, dtype=np.int64),
        position=np.zeros(length + negated, dtype=np.int64),
        lowest=np.zeros(length + negated, dtype=np.int64),
        stack=(
            np.empty(STACK_DEPTH, dtype=np.int64),
            np.empty(STACK_DEPTH, dtype=np.float64),
            np.empty(STACK_DEPTH, dtype=np.bool_),
        ),
        steps=np.zeros(1, dtype=np.int64),
    )


@kernel(inline=True)
def accumulate(conditions, work, component, depth):
    """Bring the accumulators of a component up to its event at ``depth``.

    O(accumulators); DISTINCT and STDDEV look at the events before it again.
    """
    # Most components have none, and a call passes every array.
    if conditions.accumulator_start[component] < conditions.accumulator_start[component + 1]:
        _accumulate(conditions, work, component, depth)


@kernel
def _accumulate(conditions, work, component, depth):
    place = work.element[depth]
    first = work.start[component] == depth
    for q in range(conditions.accumulator_start[component], conditions.accumulator_start[component + 1]):
        function = conditions.accumulators[q, 0]
        origin = conditions.accumulators[q, 1]
        count = 0 if first else work.counted[q, depth - 1]
        whole = 0 if first else work.whole[q, depth - 1]
        real = 0.0 if first else work.real[q, depth - 1]
        kind = conditions.accumulators[q, 3]
        if kind == NO_VALUES:
            count += 1
        elif function == STDDEV:
            count, real = _deviation(conditions, work, component, depth, q)
        elif function == DISTINCT:
            if not conditions.nulls[conditions.accumulators[q, 2] + place]:
                count += _is_new(conditions, work, component, depth, q)
        elif not conditions.nulls[conditions.accumulators[q, 2] + place]:
            if kind == REAL:
                value = conditions.floats[origin + place]
                if function in (SUM, AVG):
                    real += value
                elif count == 0 or (value < real if function == MIN else value > real):
                    real = value
            else:
                number = conditions.ints[origin + place]
                if function in (SUM, AVG):
                    whole += number
                    real += float(number)
                elif count == 0 or (number < whole if function == MIN else number > whole):
                    whole = number
            count += 1
        work.counted[q, depth] = count
        work.whole[q, depth] = whole
        work.real[q, depth] = real


@kernel
def _deviation(conditions, work, component, depth, q):
    """Return how many values up to an event are not null, and their sample standard deviation.

    In two passes: a sum of squares would cancel.
    """
    origin, nulls = conditions.accumulators[q, 1], conditions.accumulators[q, 2]
    is_real = conditions.accumulators[q, 3] == REAL
    count = 0
    mean = 0.0
    squares = 0.0
    for again in range(2):
        for d in range(work.start[component], depth + 1):
            place = work.element[d]
            if not conditions.nulls[nulls + place]:
                value = (
                    conditions.floats[origin + place] if is_real else float(conditions.ints[origin + place])
                )
                if again == 0:
                    count += 1
                    mean += (value - mean) / count
                else:
                    squares += (value - mean) * (value - mean)
    return count, math.sqrt(squares / max(count - 1, 1))


@kernel
def _percentile(conditions, work, component, depth, q):
    """Return a percentile of the values up to an event, between the two next to it in proportion.

    Values are counted below each of them: lists are short, and this needs no room. O(values^2).
    """
    origin, nulls = conditions.accumulators[q, 1], conditions.accumulators[q, 2]
    is_real = conditions.accumulators[q, 3] == REAL
    share = (work.counted[q, depth] - 1) * (conditions.accumulators[q, 0] - PERCENTILE)
    below = share // _BILLION
    behind = min(below + 1, work.counted[q, depth] - 1)
    low = 0.0
    high = 0.0
    for d in range(work.start[component], depth + 1):
        place = work.element[d]
        if conditions.nulls[nulls + place]:
            continue
        value = conditions.floats[origin + place] if is_real else float(conditions.ints[origin + place])
        less = 0
        equal = 0
        for e in range(work.start[component], depth + 1):
            other_place = work.element[e]
            if not conditions.nulls[nulls + other_place]:
                other = (
                    conditions.floats[origin + other_place]
                    if is_real
                    else float(conditions.ints[origin + other_place])
                )
                less += other < value
                equal += other == value
        work.steps[0] += 2 * (depth + 1 - work.start[component])
        if less <= below < less + equal:
            low = value
        if less <= behind < less + equal:
            high = value
    return low + (high - low) * (float(share % _BILLION) / _BILLION)


@kernel
def _is_new(conditions, work, component, depth, q):
    """Return 1 if no event before the one at ``depth`` has its value, else 0."""
    origin, nulls = conditions.accumulators[q, 1], conditions.accumulators[q, 2]
    own_element = work.element[depth]
    for d in range(work.start[component], depth):
        place = work.element[d]
        if conditions.nulls[nulls + place]:
            continue
        if conditions.accumulators[q, 3] == REAL:
            same = conditions.floats[origin + place] == conditions.floats[origin + own_element]
        else:
            same = conditions.ints[origin + place] == conditions.ints[origin + own_element]
        if same:
            return 0
    return 1


@kernel
def _provide(conditions, work, c):
    """Put the candidates and aggregates that a condition mentions where its bytecode reads them."""
    for m in range(conditions.mention_start[c], conditions.mention_start[c + 1]):
        component = conditions.mentions[m, 1]
        kind = conditions.mentions[m, 2]
        depth = work.start[component]
        if kind == LAST:
            depth = work.stop[component] - 1
        elif kind > 0:
            depth += kind - 1
        else:
            depth += work.position[component] + kind
        # What is no event is null.
        work.cells[conditions.mentions[m, 0]] = work.element[depth] if depth < work.stop[component] else -1
    for g in range(conditions.aggregate_start[c], conditions.aggregate_start[c + 1]):
        component = conditions.aggregates[g, 0]
        depth = work.stop[component] - 1
        if conditions.aggregates[g, 1] == 1:
            depth = work.start[component] + work.position[component] - 1
        q = conditions.aggregates[g, 2]
        at = conditions.aggregates[g, 4]
        function = conditions.accumulators[q, 0]
        count = work.counted[q, depth]
        fewest = 0 if function in (COUNT, DISTINCT) else 2 if function == STDDEV else 1
        conditions.nulls[conditions.aggregates[g, 5]] = count < fewest
        if function in (COUNT, DISTINCT):
            conditions.ints[at] = count
        elif function >= PERCENTILE:
            conditions.floats[at] = _percentile(conditions, work, component, depth, q)
        elif function == AVG:
            conditions.floats[at] = work.real[q, depth] / float(max(count, 1))
        elif conditions.aggregates[g, 3] == 1:
            conditions.floats[at] = work.real[q, depth]
        else:
            conditions.ints[at] = work.whole[q, depth]


@kernel
def _holds(conditions, work, c, newest):
    first = conditions.running_start[c]
    stop = conditions.running_start[c + 1]
    for r in range(first, stop):
        component = conditions.running[r, 0]
        size = work.stop[component] - work.start[component]
        lowest = conditions.running[r, 1]
        if component == newest:
            lowest = max(lowest, size - 1)
        if lowest >= size:
            return True
        work.lowest[component] = lowest
        work.position[component] = lowest
    weight = 4 * (1 + conditions.rows[c + 1] - conditions.rows[c])
    while True:
        work.steps[0] += weight
        _provide(conditions, work, c)
        if not holds(
            conditions.code, conditions.rows[c], conditions.rows[c + 1], conditions.ints, conditions.floats,
            conditions.nulls, conditions.slots, work.cells, work.stack[0], work.stack[1], work.stack[2],
        ):  # fmt: skip
            return False
        r = first
        while r < stop:
            component = conditions.running[r, 0]
            work.position[component] += 1
            if work.position[component] < work.stop[component] - work.start[component]:
                break
            work.position[component] = work.lowest[component]
            r += 1
        if r == stop:
            return True


@kernel
def all_hold(conditions, work, begin, end, newest):
    """Return whether conditions ``begin .. end - 1`` hold of the events in ``work``.

    Parameters
    ----------
    conditions : Conditions
    work : Scratch
        With ``element``, ``start`` and ``stop`` set for all components they mention, and the accumulators up
        to what they ask for.
    begin, end : int64
    newest : int64
        A Kleene component of whose events only the last is asked, or -1.

    Returns
    -------
    bool
        O(number of combinations of the events that are run over).
    """
    c = begin
    while c < end and _holds(conditions, work, c, newest):
        c += 1
    return c >= end
