"""Skip till next match: which events can be next at all, and the confidence that none came in between.

NELT, the Next Event's Latest Time (Zhang, Diao, Immerman, PVLDB 3(1), 2010, section 3.2): among the events
that component j + 1 can take and that start after event e ends, the smallest upper bound. Nothing that starts
later can follow e in any world, so the join need not enter it. It prunes; the confidence decides.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, multiplications_per_call
from confidence.chain.tick_pairs import MOST_EDGES, enlarged, with_pairs
from confidence.chain.uniform import tight_bounds
from confidence.config import FEW_STEPS
from confidence.gaps.coupled import gap_confidence
from confidence.gaps.forbidden import (
    COUPLED,
    DONE,
    NO_SPACE,
    SPENT,
    TOO_DEAR,
    forbidden_confidence,
    workspace,
)
from confidence.gaps.monte_carlo import sampled_confidence
from confidence.kernel import kernel
from confidence.predicates.bytecode import STACK_DEPTH, holds
from eventbased.config import FEW_FORBIDDEN, MOST_SPREAD
from eventbased.gaps.survival_tables import SurvivalTables, crowded, new_tables, survive
from eventbased.joins.pivot_join import first_above

__all__ = ["CostlyMatchError", "EventArrays", "NextConfidences", "next_confidences", "next_limits"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

ALL: Final = 0
COSTLY: Final = 1
SPACE: Final = 2
SPREAD: Final = 3
GAPS: Final = 4
PAUSED: Final = 5

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
        Where its probabilities start; -1 for uniform.
    place : int64
        What stands for it in programs.
    """

    lower: Int64
    upper: Int64
    event: Int64
    shared: NDArray[np.bool_]
    pmf_offset: Int64
    place: Int64


@kernel
def next_limits(first_class, class_start, class_stop, lower, upper, event, twin, prunable, out):
    """Write for each candidate of component j the largest A that a candidate of component j + 1 may have.

    Parameters
    ----------
    first_class, class_start, class_stop, lower, upper, event, twin
        Of the layout, see :func:`eventbased.joins.pivot_join.join`.
    prunable : (l,) bool
        Whether every candidate of a component is forbidden before it, whatever the match holds so far.
    out : (n,) int64
        Overwritten. O(n log n).
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
                # An event that a later component of the match may hold is not forbidden then.
                later = False
                if event[x] >= 0:
                    for k in range(j + 2, length):
                        later = later or twin[event[x], k] >= 0
                smallest[x - start] = min(smallest[x - start + 1], UNLIMITED if later else upper[x])
            hint = start
            for i in range(class_start[first_class[j]], class_stop[first_class[j + 1] - 1]):
                hint = first_above(lower, start, stop, upper[i] - 1, hint)
                out[i] = min(out[i], smallest[hint - start])


@kernel
def _keep_shared(start, stop, low, high, offset, event, in_gap):
    """Drop from ``start`` on the forbidden events of one component alone; return where the others stop."""
    kept = start
    for x in range(start, stop):
        if event[x] >= 0:
            low[kept], high[kept], offset[kept], event[kept] = low[x], high[x], offset[x], event[x]
            in_gap[kept] = in_gap[x]
            kept += 1
    return kept


@kernel
def next_confidences(
    matches, group, first_match, w, own, others, first_class, class_start, class_stop, class_longest,
    pmf, head, tail, program_start, code, ints, floats, nulls, slots, most_steps, few_steps, budget, work,
    room, tables, untabled, out_lower, out_upper, out_confidence, out_error,
):  # fmt: skip
    """Fill range and confidence of matches whose gaps no event that could have been taken may have come in.

    Parameters
    ----------
    matches : (l, m) int64
        The candidates of each match, as places in ``own``.
    group : (m,) int64
        The partition of each match.
    first_match : int64
        The match to begin with.
    w : int64
        ``W - l``.
    own : EventArrays
        What the matches hold.
    others : EventArrays
        What may be forbidden; ascending ``lower`` within a class, and ``place`` says what stands for a
        candidate in the programs.
    first_class : (partitions * l + 1,) int64
        Classes of component j in partition g: ``first_class[g * l + j] .. first_class[g * l + j + 1] - 1``.
    class_start, class_stop, class_longest : (c,) int64
        Where a class starts and stops in ``others``, and its largest ``upper - lower``.
    pmf, head, tail : (k,) float64
        See :func:`confidence.gaps.forbidden.forbidden_confidence`.
    program_start : (l + 1,) int64
        The rows of ``code`` that decide whether a candidate of component j goes with components 0..j-1.
    code, ints, floats, nulls, slots
        See :func:`confidence.predicates.bytecode.holds`.
    most_steps, few_steps, work
        See :func:`confidence.gaps.forbidden.forbidden_confidence`.
    budget : float64
        Multiplications after which to pause, see :func:`confidence.budget.multiplications_per_call`.
    room : tuple
        (q,) int64 four times and (q, l + 1) bool: room for the forbidden events of one match.
    tables : SurvivalTables or None
        Of an earlier call with the same events, or new; or none are used.
    untabled : int64
        A match for which they are not used; -1 for none.
    out_lower, out_upper : (m,) int64; out_confidence, out_error : (m,) float64
        Overwritten; the range is empty where the confidence is 0, the error 0 where it is exact.

    Returns
    -------
    done : int64
        Matches done; m if all are.
    reason : int64
        ALL, SPACE if the work arrays are too small, SPREAD if the tables are, COSTLY if match ``done`` takes
        too many steps, GAPS if :func:`_coupled_confidence` has to weigh it, PAUSED.
    need : tuple of 3 int64
        For SPACE the edges, ticks and events needed; for SPREAD the ticks; for COSTLY the steps; for GAPS how
        many forbidden events ``room`` holds, and 1 if tables hold others.
    """
    length, count = matches.shape
    x_low, x_high, x_offset, x_event, x_gap = room
    chosen = np.empty(length, np.int64)
    shifted_low = np.empty(length, np.int64)
    shifted_high = np.empty(length, np.int64)
    a = np.empty(length, np.int64)
    b = np.empty(length, np.int64)
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    offset = np.empty(length, np.int64)
    whole = np.empty(STACK_DEPTH, np.int64)
    real = np.empty(STACK_DEPTH, np.float64)
    absent = np.empty(STACK_DEPTH, np.bool_)
    tabled = np.empty(length, np.bool_)
    tabled[0] = False
    inverse = np.empty(2 * MOST_SPREAD)
    spent = work[SPENT]
    spent[0] = 0.0
    for n in range(first_match, count):
        if spent[0] >= budget:
            return n, PAUSED, (0, 0, 0)
        spent[0] += 1.0
        for k in range(length):
            i = matches[k, n]
            chosen[k] = i
            shifted_low[k] = own.lower[i]
            shifted_high[k] = own.upper[i]
            low[k] = own.lower[i] + k
            high[k] = own.upper[i] + k
            offset[k] = own.pmf_offset[i]
        if not tight_bounds(shifted_low, shifted_high, w, a, b):
            out_error[n] = out_confidence[n] = 0.0
            out_lower[n] = 0
            out_upper[n] = -1
            continue
        found = 0
        certain = False
        for j in range(1, length):
            if certain:
                break
            earliest = a[j - 1] + j - 1
            latest = b[j] + j
            row, row_stop = program_start[j], program_start[j + 1]
            own_place = chosen[j]
            of_component = group[n] * length + j
            before = found
            alone = 0
            for c in range(first_class[of_component], first_class[of_component + 1]):
                stop = class_stop[c]
                x = first_above(
                    others.lower, class_start[c], stop, earliest - j - class_longest[c], class_start[c]
                )
                begun = x
                while x < stop and others.lower[x] + j < latest:
                    free = others.upper[x] + j > earliest
                    for k in range(length):
                        free = free and others.event[x] != own.event[matches[k, n]]
                    if free and row < row_stop:
                        chosen[j] = others.place[x]
                        free = holds(
                            code, row, row_stop, ints, floats, nulls, slots, chosen, whole, real, absent
                        )
                        chosen[j] = own_place
                    if free and others.lower[x] + j > high[j - 1] and others.upper[x] + j < low[j]:
                        certain = True
                        break
                    if free:
                        at = found
                        if others.shared[x]:
                            for q in range(found):
                                if x_event[q] == others.event[x]:
                                    at = q
                        if at == found:
                            if found == x_low.shape[0]:
                                return n, SPACE, (0, 0, 2 * found)
                            x_low[at] = others.lower[x] + j
                            x_high[at] = others.upper[x] + j
                            x_offset[at] = others.pmf_offset[x]
                            x_event[at] = others.event[x]
                            for k in range(x_gap.shape[1]):
                                x_gap[at, k] = False
                            found += 1
                            if tables is not None and n != untabled and not others.shared[x]:
                                x_event[at] = -1
                                alone += 1
                        x_gap[at, j] = True
                    x += 1
                spent[0] += float((x - begun) * (length + row_stop - row))
            tabled[j] = False
            if tables is not None:
                spread = latest - earliest + 1
                tabled[j] = alone >= FEW_FORBIDDEN and spread <= MOST_SPREAD and row == row_stop
                if tabled[j]:
                    if spread > tables.free.shape[2]:
                        return n, SPREAD, (spread, 0, 0)
                    found = _keep_shared(before, found, x_low, x_high, x_offset, x_event, x_gap)
        if certain:
            # An event that is surely in between: the match is beyond NELT.
            out_error[n] = out_confidence[n] = 0.0
            out_lower[n] = 0
            out_upper[n] = -1
            continue
        weighed = False
        for j in range(1, length):
            weighed = weighed or tabled[j]
        if tables is not None and weighed:
            edges = 0
            for j in range(1, length):
                start, stop = a[j - 1] + j - 1, b[j - 1] + j - 1
                next_start, next_stop = a[j] + j, b[j] + j
                at = edges
                edges = with_pairs(edges, stop - start + 1, next_stop - next_start + 1)
                if edges > work[1].shape[0]:
                    break
                spent[0] += float(edges - at)
                if not tabled[j]:
                    for e in range(at, edges):
                        work[1][e] = 1.0
                    continue
                of_component = group[n] * length + j
                survive(
                    work[1], at, j, group[n], start, stop, next_start, next_stop, low[j], high[j], offset[j],
                    not own.shared[matches[j, n]], others, first_class[of_component],
                    first_class[of_component + 1], class_start, class_stop, class_longest, head, tail, tables,
                    inverse,
                )  # fmt: skip
        status, value, first, last = forbidden_confidence(
            low, high, offset, a, b, pmf, head, tail, w + length, found, x_low, x_high, x_offset, x_gap,
            weighed, most_steps, few_steps, work,
        )  # fmt: skip
        if status == COUPLED:
            return n, GAPS, (found, int(weighed), 0)
        if status == TOO_DEAR:
            return n, COSTLY, (int(min(value, float(MOST_EDGES))), 0, 0)
        if status == NO_SPACE:
            return n, SPACE, (first, last, 0)
        out_error[n] = 0.0
        out_confidence[n] = value if status == DONE else 0.0
        out_lower[n] = first if status == DONE else 0
        out_upper[n] = last if status == DONE else -1
    return count, ALL, (0, 0, 0)


@kernel
def _coupled_confidence(
    match, w, own, found, pmf, head, tail, most_steps, std_error, seed, work, room, out_lower, out_upper,
    out_confidence, out_error,
):  # fmt: skip
    """Fill range and confidence of a match some of whose forbidden events couple its gaps.

    Parameters
    ----------
    match : (l,) int64
        Its candidates.
    w, own, pmf, head, tail, most_steps, work
        As for :func:`next_confidences`.
    found : int64
        How many forbidden events ``room`` holds.
    std_error : float64, seed : int64
        See :func:`confidence.gaps.monte_carlo.sampled_confidence`; a standard error of 0 allows exact values
        only.
    room : tuple
        As :func:`next_confidences` left it.
    out_lower, out_upper : (1,) int64; out_confidence, out_error : (1,) float64

    Returns
    -------
    reason : int64
        ALL, COSTLY if it takes too many steps.
    need : tuple of 3 int64
        For COSTLY the steps.
    """
    length = match.shape[0]
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    offset = np.empty(length, np.int64)
    for k in range(length):
        low[k] = own.lower[match[k]] + k
        high[k] = own.upper[match[k]] + k
        offset[k] = own.pmf_offset[match[k]]
    status, value, first, last = gap_confidence(
        low, high, offset, pmf, head, tail, w + length, found, room[0], room[1], room[2], room[4], most_steps,
        work,
    )  # fmt: skip
    error = 0.0
    if status == COUPLED and std_error > 0.0:
        status, value, error, first, last = sampled_confidence(
            low, high, w + length, room[0], room[1], room[2], pmf, head, tail, first, std_error, seed,
            most_steps, work,
        )  # fmt: skip
    if status in (TOO_DEAR, COUPLED):
        return COSTLY, (int(min(value, float(MOST_EDGES))), 0, 0)
    out_error[0] = error
    out_confidence[0] = value if status == DONE else 0.0
    out_lower[0] = first if status == DONE else 0
    out_upper[0] = last if status == DONE else -1
    return ALL, (0, 0, 0)


class CostlyMatchError(ValueError):
    """The confidence of a match takes too many steps.

    Attributes
    ----------
    match : int
        Which of those given.
    steps : int
    events : (l,) int64
        The numbers of its events.
    """

    def __init__(self, match: int, steps: int, events: Int64) -> None:
        self.match = match
        self.steps = steps
        self.events = events
        super().__init__(f"match {match} takes {steps} steps")


class NextConfidences:
    """Confidences under skip till next match, with tables and work arrays that grow as matches need them.

    Tables are used where candidates are :func:`eventbased.gaps.survival_tables.crowded`.

    Parameters
    ----------
    length : int
        Components of the pattern.
    w : int
        ``W - length``.
    most_steps : float
        Most multiplications for one match.
    std_error : float
        Standard error of an estimate where the exact value takes more; 0: none is wanted.
    seed : int
    few_steps : float
        Most multiplications for a match with coupled gaps before a cheaper way is looked for.
    """

    def __init__(
        self,
        length: int,
        w: int,
        most_steps: float,
        std_error: float = 0.0,
        seed: int = 0,
        few_steps: float = FEW_STEPS,
    ) -> None:
        self._length, self._w = length, w
        self._limits = (most_steps, std_error, seed)
        self._few_steps = few_steps
        self._space = (1024, 64, 64)
        self._make_space()
        self._spread = 64
        self.forget()

    def _make_space(self) -> None:
        edges, ticks, events = self._space
        self._work = workspace(self._length, edges, ticks, events)
        numbers = np.empty((4, events), dtype=np.int64)
        self._room = (*numbers, np.empty((events, self._length + 1), dtype=np.bool_))

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
        layout: tuple[Int64, Int64, Int64, Int64],
        pmfs: tuple[Float64, Float64, Float64],
        programs: tuple[Any, ...],
        out: tuple[Int64, Int64, Float64, Float64],
    ) -> None:
        """Fill ranges, confidences and standard errors, see :func:`next_confidences`.

        What matches share is kept from call to call until :meth:`forget`.

        Parameters
        ----------
        matches, group, own, others
        layout : tuple
            ``first_class, class_start, class_stop, class_longest``.
        pmfs : tuple
            ``pmf, head, tail``.
        programs : tuple
            ``program_start, code, ints, floats, nulls, slots``.
        out : tuple
            ``out_lower, out_upper, out_confidence, out_error``.

        Raises
        ------
        CostlyMatchError
            If a match takes too many steps.
        """
        kernel: Any = next_confidences
        if not self._looked:
            self._looked = True
            if crowded(*layout[:3], self._length, others.lower, others.upper):
                self._tables = new_tables(self._length, self._spread)
        coupled: Any = _coupled_confidence
        done, untabled = 0, -1
        while True:
            done, reason, need = kernel(
                matches, group, done, self._w, own, others, *layout, *pmfs, *programs, self._limits[0],
                self._few_steps, multiplications_per_call(), self._work, self._room, self._tables, untabled,
                *out,
            )  # fmt: skip
            if reason == ALL:
                return
            if reason == PAUSED:
                checkpoint()
                continue
            if reason == GAPS and need[1]:
                untabled = int(done)
                continue
            if reason == GAPS:
                reason, need = coupled(
                    np.ascontiguousarray(matches[:, done]), self._w, own, need[0], *pmfs, *self._limits,
                    self._work, self._room, *(column[done : done + 1] for column in out),
                )  # fmt: skip
                if reason == ALL:
                    checkpoint()
                    done += 1
                    continue
            if reason == COSTLY:
                raise CostlyMatchError(done, need[0], own.event[matches[:, done]])
            if reason == SPREAD:
                self._spread = 1 << (int(need[0]) - 1).bit_length()
                self._tables = new_tables(self._length, self._spread)
                continue
            edges, ticks, events = enlarged(self._space, need)
            self._space = (edges, ticks, events)
            self._make_space()
