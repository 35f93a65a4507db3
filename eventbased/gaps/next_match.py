"""Skip till next match: which events can be next at all, and the confidence that none came in between.

NELT, the Next Event's Latest Time (Zhang, Diao, Immerman, PVLDB 3(1), 2010, section 3.2): among the events
that component j + 1 can take and that start after event e ends, the smallest upper bound. Nothing that starts
later can follow e in any world, so the join need not enter it. It prunes; the confidence decides.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.chain.distribution import DOUBTFUL, Intervals, Pmfs
from confidence.chain.tick_pairs import MOST_EDGES, with_pairs
from confidence.chain.uniform import tight_bounds
from confidence.gaps import chains
from confidence.gaps.chains import BUDGET, COUPLED, DONE, NO_SPACE, SPENT, TOO_DEAR, Limits
from confidence.gaps.describing import ALL, COSTLY, PAUSED, SPACE, CostlyMatchError, Space
from confidence.gaps.forbidden import forbidden_confidence
from confidence.gaps.monte_carlo import weighed_gaps
from confidence.kernel import kernel
from confidence.predicates.bytecode import (
    STACK_DEPTH,
    UNRELATED,
    holds,
    leading_comparison,
    related,
    value_at,
)
from eventbased.config import FEW_FORBIDDEN, MOST_SPREAD
from eventbased.galloping import first_above
from eventbased.gaps.survival_tables import (
    Classes,
    SurvivalTables,
    crowded,
    new_tables,
    survive,
)

__all__ = ["Bytecode", "EventArrays", "NextConfidences", "next_confidences", "next_limits"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

SPREAD: Final = 4
"""The survival tables are too small for a gap."""

GAPS: Final = 5
"""Events couple the gaps of a match, for :func:`_coupled_confidence`."""

UNLIMITED: Final = 2**63 - 1


class EventArrays(NamedTuple):
    """Events as candidates of components; everything (n,).

    Attributes
    ----------
    lower, upper : int64
        Interval bounds minus the component's position, ticks, inclusive.
    event : int64
        Number of the event, the same wherever it is a candidate.
    shared : bool
        Whether it is a candidate of several components.
    pmf_offset : int64
        Where its probabilities start; -1 for uniform; of what may be forbidden ``DOUBTFUL`` or less for one
        that may not have happened.
    place : int64
        What stands for it in bytecode.
    """

    lower: Int64
    upper: Int64
    event: Int64
    shared: NDArray[np.bool_]
    pmf_offset: Int64
    place: Int64


class Bytecode(NamedTuple):
    """The predicates across components, as bytecode.

    Attributes
    ----------
    start : (l + 1,) int64
        The rows of ``code`` that decide whether a candidate of component j goes with components 0..j-1.
    code, ints, floats, nulls, slots
        See :func:`confidence.predicates.bytecode.holds`.
    """

    start: Int64
    code: Int64
    ints: Int64
    floats: Float64
    nulls: NDArray[np.bool_]
    slots: Int64


@kernel(allocates=True)
def next_limits(first_class, class_start, class_stop, lower, upper, prunable, out):
    """Write for each candidate of component j the largest A that a candidate of component j + 1 may have.

    Parameters
    ----------
    first_class, class_start, class_stop, lower, upper
        Of the layout, see :func:`eventbased.joins.pivot_join.join`.
    prunable : (l,) bool
        Whether every candidate of a component is forbidden before it, whatever the match holds so far.
    out : (n,) int64
        Overwritten. O(n log n).

    Notes
    -----
    An event x that begins after e of component j ends, and ends before y of component j + 1 begins, is
    between both in every world. So no match has e and y: x would be in its gap, or one of its events there.
    """
    length = first_class.shape[0] - 1
    for i in range(out.shape[0]):
        out[i] = UNLIMITED
    for j in range(length - 1):
        if not prunable[j + 1]:
            continue
        for c in range(first_class[j + 1], first_class[j + 2]):
            start, stop = class_start[c], class_stop[c]
            smallest = np.empty(stop - start + 1, np.int64)
            smallest[stop - start] = UNLIMITED
            for x in range(stop - 1, start - 1, -1):
                smallest[x - start] = min(smallest[x - start + 1], upper[x])
            hint = start
            for i in range(class_start[first_class[j]], class_stop[first_class[j + 1] - 1]):
                hint = first_above(lower, start, stop, upper[i] - 1, hint)
                out[i] = min(out[i], smallest[hint - start])


@kernel
def _keep_shared(start, stop, forbidden):
    """Drop from ``start`` on the forbidden events of one component alone; return where the others stop."""
    low, high, offset, event, gaps = forbidden
    kept = start
    for x in range(start, stop):
        if event[x] >= 0:
            low[kept], high[kept], offset[kept], event[kept] = low[x], high[x], offset[x], event[x]
            for g in range(gaps.shape[1]):
                gaps[kept, g] = gaps[x, g]
            kept += 1
    return kept


@kernel(allocates=True)
def next_confidences(
    matches, group, first_match, w, events, pool, classes, pmfs, bytecode, limits, work, forbidden, tables,
    untabled, out,
):  # fmt: skip
    """Fill range and confidence of matches whose gaps no event that could have been taken may have come in.

    Parameters
    ----------
    matches : (l, m) int64
        The candidates of each match, as places in ``events``.
    group : (m,) int64
        The partition of each match.
    first_match : int64
        The match to begin with.
    w : int64
        ``W - l``.
    events : EventArrays
        What the matches hold.
    pool : EventArrays
        What may be forbidden; ``place`` says what stands for a candidate in the bytecode.
    classes : Classes
        Of ``pool``.
    pmfs : Pmfs
    bytecode : Bytecode
    limits : Limits
    work : Workspace
    forbidden : confidence.gaps.chains.Forbidden
        Room for the forbidden events of one match.
    tables : SurvivalTables or None
        Of an earlier call with the same events, or new; or none are used.
    untabled : int64
        A match for which they are not used; -1 for none.
    out : tuple of (m,) int64 twice, float64 twice
        Range, confidence and its standard error, overwritten; the range is empty where the confidence is 0,
        the error 0 where it is exact.

    Returns
    -------
    done : int64
        Matches done; m if all are.
    reason : int64
        ALL, SPACE if the work arrays are too small, SPREAD if the tables are, COSTLY if match ``done`` takes
        too many steps, GAPS if :func:`_coupled_confidence` has to weigh it, PAUSED.
    need : tuple of 4 int64
        For SPACE as :func:`eventbased.gaps.gap_confidences.gap_confidences`; for SPREAD the ticks; for COSTLY
        the steps; for GAPS how many forbidden events there are, and 1 if tables hold others.
    """
    length, count = matches.shape
    out_lower, out_upper, out_confidence, out_error = out
    progress = work.progress
    match = Intervals(np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.int64))
    low, high = match.lower, match.upper
    chosen = np.empty(length, np.int64)
    bounds = np.empty((4, length), np.int64)
    a, b = bounds[2], bounds[3]
    whole = np.empty(STACK_DEPTH, np.int64)
    real = np.empty(STACK_DEPTH, np.float64)
    absent = np.empty(STACK_DEPTH, np.bool_)
    tabled = np.empty(length, np.bool_)
    tabled[0] = False
    inverse = np.empty(2 * MOST_SPREAD)
    code, ints, floats, nulls, slots = (
        bytecode.code, bytecode.ints, bytecode.floats, bytecode.nulls, bytecode.slots,
    )  # fmt: skip
    for n in range(first_match, count):
        if progress[SPENT] >= progress[BUDGET]:
            return n, PAUSED, (0, 0, 0, 0)
        progress[SPENT] += 1.0
        out_error[n] = out_confidence[n] = 0.0
        out_lower[n] = 0
        out_upper[n] = -1
        for k in range(length):
            i = matches[k, n]
            chosen[k] = i
            bounds[0, k] = events.lower[i]
            bounds[1, k] = events.upper[i]
            low[k] = events.lower[i] + k
            high[k] = events.upper[i] + k
            match.offset[k] = events.pmf_offset[i]
        if not tight_bounds(bounds[0], bounds[1], w, a, b):
            continue
        listed = 0
        certain = False
        weighed = False
        for j in range(1, length):
            if certain:
                break
            earliest = a[j - 1] + j - 1
            latest = b[j] + j
            row, row_stop = bytecode.start[j], bytecode.start[j + 1]
            weight = length + row_stop - row
            plain = row == row_stop
            relation, is_real, own_slot, other = leading_comparison(code, row, row_stop, slots, j)
            comparable, shift, null_shift, number, real_number = True, 0, 0, 0, 0.0
            if relation != UNRELATED:
                row += 1
                shift, null_shift = slots[own_slot, 1], slots[own_slot, 2]
                k = chosen[slots[other, 0]]
                comparable, number, real_number = value_at(
                    is_real, slots[other, 1] + k, slots[other, 2] + k, ints, floats, nulls
                )
            own_place = chosen[j]
            of_component = group[n] * length + j
            before = listed
            alone = 0
            for c in range(classes.first[of_component], classes.first[of_component + 1]):
                start, stop = classes.start[c], classes.stop[c]
                x = first_above(pool.lower, start, stop, earliest - j - classes.longest[c], start)
                begun = x
                while comparable and x < stop and pool.lower[x] + j < latest:
                    free = pool.upper[x] + j > earliest
                    if free and relation != UNRELATED:
                        place = pool.place[x]
                        free = related(
                            relation, is_real, shift + place, null_shift + place, ints, floats, nulls, number,
                            real_number,
                        )  # fmt: skip
                    for k in range(length):
                        free = free and pool.event[x] != events.event[matches[k, n]]
                    if free and row < row_stop:
                        chosen[j] = pool.place[x]
                        free = holds(
                            code, row, row_stop, ints, floats, nulls, slots, chosen, whole, real, absent
                        )
                        chosen[j] = own_place
                    if (
                        free
                        and pool.lower[x] + j > high[j - 1]
                        and pool.upper[x] + j < low[j]
                        and pool.pmf_offset[x] > DOUBTFUL
                    ):
                        certain = True
                        break
                    if free:
                        at = listed
                        if pool.shared[x]:
                            for q in range(listed):
                                if forbidden.event[q] == pool.event[x]:
                                    at = q
                        if at == listed:
                            if listed == forbidden.event.shape[0]:
                                return n, SPACE, (0, 0, 0, 2 * listed)
                            forbidden.lower[at] = pool.lower[x] + j
                            forbidden.upper[at] = pool.upper[x] + j
                            forbidden.offset[at] = pool.pmf_offset[x]
                            forbidden.event[at] = pool.event[x]
                            for k in range(forbidden.gaps.shape[1]):
                                forbidden.gaps[at, k] = False
                            listed += 1
                            if tables is not None and n != untabled and not pool.shared[x]:
                                forbidden.event[at] = -1
                                alone += 1
                        forbidden.gaps[at, j] = True
                    x += 1
                progress[SPENT] += float((x - begun) * weight)
            tabled[j] = False
            if tables is not None:
                spread = latest - earliest + 1
                tabled[j] = alone >= FEW_FORBIDDEN and spread <= MOST_SPREAD and plain
                if tabled[j]:
                    if spread > tables.free.shape[2]:
                        return n, SPREAD, (spread, 0, 0, 0)
                    listed = _keep_shared(before, listed, forbidden)
                    weighed = True
        if certain:
            # An event that is surely in between: the match is beyond NELT.
            continue
        if tables is not None and weighed:
            edges = 0
            for j in range(1, length):
                ticks = (a[j - 1] + j - 1, b[j - 1] + j - 1, a[j] + j, b[j] + j)
                at = edges
                edges = with_pairs(edges, ticks[1] - ticks[0] + 1, ticks[3] - ticks[2] + 1)
                if edges > work.edge.shape[0]:
                    break
                progress[SPENT] += float(edges - at)
                if not tabled[j]:
                    for e in range(at, edges):
                        work.edge[e] = 1.0
                    continue
                survive(
                    work.edge, at, j, group[n], ticks, (low[j], high[j], match.offset[j]),
                    not events.shared[matches[j, n]], pool, classes, pmfs, tables, inverse,
                )  # fmt: skip
        status, value, first, last = forbidden_confidence(
            match, a, b, pmfs, w + length, listed, forbidden, weighed, limits, work
        )
        if status == COUPLED:
            return n, GAPS, (listed, int(weighed), 0, 0)
        if status == TOO_DEAR:
            return n, COSTLY, (int(min(value, float(MOST_EDGES))), 0, 0, 0)
        if status == NO_SPACE:
            return n, SPACE, (0, first, last, 0)
        if status == DONE:
            out_confidence[n] = value
            out_lower[n] = first
            out_upper[n] = last
    return count, ALL, (0, 0, 0, 0)


@kernel(allocates=True)
def _coupled_confidence(matches, n, w, events, listed, pmfs, limits, work, forbidden, out):
    """Fill range and confidence of match n, some of whose forbidden events couple its gaps.

    Returns what :func:`next_confidences` does, that has found the events; ``n + 1`` matches are done then.
    """
    length = matches.shape[0]
    match = Intervals(np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.int64))
    for k in range(length):
        i = matches[k, n]
        match.lower[k] = events.lower[i] + k
        match.upper[k] = events.upper[i] + k
        match.offset[k] = events.pmf_offset[i]
    status, value, error, first, last = weighed_gaps(match, pmfs, w + length, listed, forbidden, limits, work)
    if status == chains.PAUSED:
        return n, GAPS, (listed, 0, 0, 0)
    if status == TOO_DEAR:
        return n, COSTLY, (int(min(value, float(MOST_EDGES))), 0, 0, 0)
    if status == NO_SPACE:
        return n, SPACE, (0, first, last, 0)
    if status == DONE:
        out[0][n], out[1][n], out[2][n], out[3][n] = first, last, value, error
    return n + 1, PAUSED, (0, 0, 0, 0)


class NextConfidences:
    """Confidences under skip till next match, with tables and work arrays that grow as matches need them.

    Tables are used where candidates are :func:`eventbased.gaps.survival_tables.crowded`.

    Parameters
    ----------
    length : int
        Components of the pattern.
    w : int
        ``W - length``.
    limits : Limits
    """

    def __init__(self, length: int, w: int, limits: Limits) -> None:
        self._length, self._w, self._limits = length, w, limits
        self._space = Space(length)
        self._spread = 64
        self.forget()

    def forget(self) -> None:
        """Drop the tables that matches share: there are other events, or more of them."""
        self._tables: SurvivalTables | None = None
        self._looked = False

    def describe(
        self,
        matches: Int64,
        group: Int64,
        own: EventArrays,
        others: EventArrays,
        classes: Classes,
        pmfs: Pmfs,
        bytecode: Bytecode,
        out: tuple[Int64, Int64, Float64, Float64],
    ) -> None:
        """Fill ranges, confidences and standard errors, see :func:`next_confidences`.

        What matches share is kept from call to call until :meth:`forget`.

        Raises
        ------
        CostlyMatchError
            If a match takes too many steps.
        """
        kernel: Any = next_confidences
        coupled: Any = _coupled_confidence
        space = self._space
        space.work.begin()
        if not self._looked:
            self._looked = True
            # A match divides its own event out, and what may not have happened has another factor there.
            happened = int(others.pmf_offset.min(initial=-1)) > DOUBTFUL
            if happened and crowded(classes, self._length, others.lower, others.upper):
                self._tables = new_tables(self._length, self._spread)
        done, reason, untabled = 0, PAUSED, -1
        need: tuple[int, ...] = ()
        while reason != ALL:
            if reason == GAPS:
                done, reason, need = coupled(
                    matches, done, self._w, own, need[0], pmfs, self._limits, space.work.go_on(),
                    space.forbidden, out,
                )  # fmt: skip
            else:
                done, reason, need = kernel(
                    matches, group, done, self._w, own, others, classes, pmfs, bytecode, self._limits,
                    space.work.go_on(), space.forbidden, self._tables, untabled, out,
                )  # fmt: skip
            if reason in (PAUSED, GAPS):
                checkpoint()
            if reason == GAPS and need[1]:
                # The tables hold events that have to be weighed with the others.
                untabled, reason = int(done), PAUSED
            elif reason == COSTLY:
                raise CostlyMatchError(done, need[0], own.event[matches[:, done]])
            elif reason == SPREAD:
                self._spread = 1 << (int(need[0]) - 1).bit_length()
                self._tables = new_tables(self._length, self._spread)
            elif reason == SPACE:
                space.grow(need)
