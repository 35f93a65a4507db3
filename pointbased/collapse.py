"""Match collapsing (Zhang et al., section 3, step 3): the point matches of a signature become one match.

The run loop adds the point matches of a signature up at its node as it finds them. A signature is complete
once every point of its last event has been seen, t_emit > e_l.upper: its point matches end there at the
latest, and so does everything forbidden in its gaps. (The paper waits for e_l.upper + W, which no
condition of these patterns needs.)

Where one event could have been taken in several gaps of a match, the gaps are coupled (Eq. 4) and the
product over gaps that the run loop forms is not the answer: given the match's own times the gaps are
disjoint, so such an event contributes 1 minus the sum over its gaps. Then the signature is weighed as a
whole (:func:`confidence.gap_confidence`): what was tried on its prefixes says what is forbidden in which gap.
So are all signatures under negation and contiguity, whose witnesses are looked up, and where skip till next
meets a Kleene component, whose events could nearly all have been taken earlier. A trailing negation can be
spoilt up to W ticks after the first event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence import gap_confidence, workspace
from confidence.budget import checkpoint, multiplications_per_call
from confidence.chain.tick_pairs import MOST_EDGES, enlarged
from confidence.gaps.coupled import INEXACT
from confidence.gaps.forbidden import COUPLED, DONE, NO_SPACE, SPENT, TOO_DEAR
from confidence.gaps.monte_carlo import sampled_confidence
from confidence.gaps.unions import Union
from confidence.kernel import kernel
from confidence.predicates.conditions import Conditions, Scratch, all_hold
from pointbased.automaton import Automaton
from pointbased.match_buffer import (
    CHILD,
    COMPLETE,
    COMPLETES,
    COMPONENT,
    DEPTH,
    EVENT,
    LOWER,
    MIXED,
    NEXT_COMPLETE,
    NONE,
    PARENT,
    PMF,
    RANGE_HIGH,
    RANGE_LOW,
    SIBLING,
    TAKEN,
    UPPER,
    Buffer,
    Candidates,
)
from pointbased.prefixes import recall
from pointbased.witnesses import Witnesses, stretch, without

__all__ = ["Collapse", "CostlySignatureError", "PointMatches", "no_matches"]

Int64 = NDArray[np.int64]

_ALL: Final = 0
_SPACE: Final = 1
_COSTLY: Final = 2
_PAUSED: Final = 3


class PointMatches(NamedTuple):
    """Matches that are final.

    Attributes
    ----------
    start : (m + 1,) int64
        The events of match n are at ``start[n] .. start[n + 1] - 1``.
    component, event : (k,) int64
        The component of each and its serial number, in the order of the match.
    lower, upper : (m,) int64
        Tight time ranges, ticks.
    confidence : (m,) float64
        Positive.
    std_error : (m,) float64
        Its standard error; 0 where it is exact.
    """

    start: Any
    component: Any
    event: Any
    lower: Any
    upper: Any
    confidence: Any
    std_error: Any

    def keep(self, chosen: slice | NDArray[np.bool_]) -> PointMatches:
        """Return some of the matches, of consecutive ones or where a mask is true."""
        sizes = np.diff(self.start)[chosen]
        start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        places = np.arange(start[-1]) + np.repeat(self.start[:-1][chosen] - start[:-1], sizes)
        return PointMatches(
            start,
            self.component[places],
            self.event[places],
            self.lower[chosen],
            self.upper[chosen],
            self.confidence[chosen],
            self.std_error[chosen],
        )

    @classmethod
    def joined(cls, parts: Sequence[PointMatches]) -> PointMatches:
        """Return the matches of several, of at least one."""
        if len(parts) == 1:
            return parts[0]
        shifts = np.cumsum([0, *(len(part.event) for part in parts)])
        starts = [part.start[1:] + shift for part, shift in zip(parts, shifts, strict=False)]
        return cls(
            np.concatenate([np.zeros(1, dtype=np.int64), *starts]),
            *(np.concatenate(columns) for columns in zip(*(part[1:] for part in parts), strict=True)),
        )


class CostlySignatureError(ValueError):
    """The confidence of a signature takes too many steps.

    Attributes
    ----------
    components, events : list of int
        The components and the serial numbers of its events.
    steps : int
    """

    def __init__(self, components: list[int], events: list[int], steps: int) -> None:
        self.components = components
        self.events = events
        self.steps = steps
        super().__init__(f"the confidence of the match of {events} takes {steps} steps")


_NONE = np.zeros(0, dtype=np.int64)
_NO_MATCHES = PointMatches(
    np.zeros(1, dtype=np.int64), _NONE, _NONE, _NONE, _NONE, np.zeros(0), np.zeros(0)
)  # fmt: skip


def no_matches() -> PointMatches:
    """Return no matches."""
    return _NO_MATCHES


@kernel
def _take_final(candidates, buffer, safe, reach, final):
    """Take the complete matches that nothing before ``safe`` or behind can change off the list.

    Parameters
    ----------
    reach : int64
        How many ticks after the first event a gap may end that lies behind the last one; -1 if none does.
    final : (m,) int64
        With room for all complete matches; the first ones are overwritten with their nodes.

    Returns
    -------
    found : int64
        How many they are.
    events : int64
        How many events they have.
    """
    node = buffer.node
    row = candidates.row
    found = 0
    events = 0
    previous = NONE
    n = buffer.counts[COMPLETE]
    while n != NONE:
        later = node[n, NEXT_COMPLETE]
        waits = row[node[n, TAKEN], UPPER] >= safe
        if reach >= 0 and not waits:
            root = n
            while node[root, PARENT] != NONE:
                root = node[root, PARENT]
            waits = row[node[root, TAKEN], UPPER] + reach >= safe
        if waits:
            previous = n
        else:
            if previous == NONE:
                buffer.counts[COMPLETE] = later
            else:
                node[previous, NEXT_COMPLETE] = later
            final[found] = n
            found += 1
            events += node[n, DEPTH] + 1
        n = later
    buffer.counts[COMPLETES] -= found
    return found, events


@kernel
def _write_sums(candidates, buffer, final, start, component, event, lower, upper, confidence, mixed):
    """Write the matches at some nodes as the run loop added them up.

    Parameters
    ----------
    start, component, event, lower, upper, confidence
        See :class:`PointMatches`; overwritten.
    mixed : (m,) bool
        Overwritten: whether events that several components take may be forbidden in them.
    """
    node = buffer.node
    row = candidates.row
    start[0] = 0
    for m in range(final.shape[0]):
        n = final[m]
        start[m + 1] = start[m] + node[n, DEPTH] + 1
        mixed[m] = False
        for place in range(start[m + 1] - 1, start[m] - 1, -1):
            component[place] = row[node[n, TAKEN], COMPONENT]
            event[place] = row[node[n, TAKEN], EVENT]
            mixed[m] = mixed[m] or (n != final[m] and node[n, MIXED] != 0)
            n = node[n, PARENT]
        lower[m] = node[final[m], RANGE_LOW]
        upper[m] = node[final[m], RANGE_HIGH]
        # The point matches of a certain match are rounded one by one.
        confidence[m] = min(buffer.confidence[final[m]], 1.0)


@kernel
def _is_own(row, own, event):
    """Return whether an event is one of the match's own."""
    found = False
    for c in own:
        found = found or row[c, EVENT] == event
    return found


@kernel
def _searches(candidates, witnesses, negations, contiguous, window, work, length, own):
    """Return where witnesses are looked for: rows of pool, gap, first and last (exclusive) place among them.

    Parameters
    ----------
    own : (d,) int64
        The candidates of the match; ``work.start`` has where each component's begin.
    """
    row = candidates.row
    size = own.shape[0]
    first_upper = row[own[0], UPPER]
    last_lower = row[own[size - 1], LOWER]
    rows = np.empty((negations.shape[0] + (size - 1 if contiguous else 0), 4), np.int64)
    for k in range(rows.shape[0]):
        pool = min(k, negations.shape[0])
        gap = k - negations.shape[0] + 1
        if k < negations.shape[0]:
            gap = size if negations[k] == length else work.start[negations[k]]
        above, until = last_lower, first_upper + window
        if gap == 0:
            above, until = last_lower - window, first_upper
        elif gap < size:
            above, until = row[own[gap - 1], LOWER], row[own[gap], UPPER]
        rows[k, 0], rows[k, 1] = pool, gap
        rows[k, 2], rows[k, 3] = stretch(witnesses, pool, candidates.group[own[0], pool], above, until)
    return rows


@kernel
def _forbidden(
    candidates, buffer, conditions, work, witnesses, next_match, negations, contiguous, window, path
):  # fmt: skip
    """Return the gap and the candidate of every event forbidden in a gap of a match.

    Returns
    -------
    gap : (k,) int64
        The place of the event behind the gap; the number of events for the gap behind the last.
    forbidden : (k,) int64
        Candidates, the rows of one event together.
    couples : bool
        Whether some event is forbidden in several gaps, or would be in one before its own place in the match.
    """
    row = candidates.row
    node = buffer.node
    size = path.shape[0]
    length = conditions.stages.shape[0]
    own = np.empty(size, np.int64)
    count = 0
    for d in range(size):
        own[d] = node[path[d], TAKEN]
        child = node[path[d], CHILD] if next_match and d < size - 1 else NONE
        while child != NONE:
            count += 1
            child = node[child, SIBLING]
    if negations.shape[0]:
        recall(candidates, buffer, conditions, work, path[size - 1])
    searches = _searches(candidates, witnesses, negations, contiguous, window, work, length, own)
    for k in range(searches.shape[0]):
        count += searches[k, 3] - searches[k, 2]
    work.steps[0] += count
    gap = np.empty(count, np.int64)
    forbidden = np.empty(count, np.int64)
    event = np.empty(count, np.int64)
    couples = False
    n = 0
    for d in range(1, size if next_match else 1):
        child = node[path[d - 1], CHILD]
        while child != NONE:
            c = node[child, TAKEN]
            if row[c, COMPONENT] == row[own[d], COMPONENT]:
                if not _is_own(row, own, row[c, EVENT]):
                    gap[n], forbidden[n], event[n] = d, c, row[c, EVENT]
                    n += 1
                elif child != path[d]:
                    couples = True
            child = node[child, SIBLING]
    for k in range(searches.shape[0]):
        pool, d = searches[k, 0], searches[k, 1]
        for x in range(searches[k, 2], searches[k, 3]):
            c = witnesses.row[x]
            if _is_own(row, own, row[c, EVENT]):
                continue
            if pool < negations.shape[0]:
                begin, end = conditions.negated[pool], conditions.negated[pool + 1]
                work.element[work.start[length + pool]] = c
                if begin < end and not all_hold(conditions, work, begin, end, -1):
                    continue
            gap[n], forbidden[n], event[n] = d, c, row[c, EVENT]
            n += 1
    order = np.argsort(event[:n])
    for i in range(1, n):
        couples = couples or event[order[i]] == event[order[i - 1]]
    return gap[order], forbidden[order], couples


@kernel
def _weigh(
    candidates, buffer, conditions, work, witnesses, next_match, negations, contiguous, always, final, chosen,
    done, window, most_steps, std_error, seed, budget, kernel_work, room, lower, upper, confidence, error,
):  # fmt: skip
    """Overwrite range and confidence of the matches whose signatures are weighed.

    Parameters
    ----------
    candidates : Candidates
    buffer : Buffer
    conditions : Conditions
    work : confidence.predicates.conditions.Scratch
    witnesses : Witnesses
    next_match : bool
        Whether what could have been taken is forbidden.
    negations : (n,) int64
        How many components stand before each negated one.
    contiguous : bool
    always : bool
        Whether the run loop did not weigh what is forbidden; else only coupled gaps are of interest.
    final : (m,) int64
        The nodes of the matches.
    chosen : (k,) int64
        The matches to look at.
    done : int64
        How many of them have been.
    window : int64
    most_steps : float64
        Most multiplications to spend on one.
    std_error : float64, seed : int64
        See :func:`confidence.gaps.monte_carlo.sampled_confidence`; a standard error of 0 allows exact values
        only.
    budget : float64
        Multiplications after which to pause, see :func:`confidence.budget.multiplications_per_call`.
    kernel_work : tuple
        From :func:`confidence.workspace`.
    room : tuple
        (q,) int64 three times and (q, d) bool: room for the forbidden events of one match.
    lower, upper : (m,) int64; confidence, error : (m,) float64
        A match that cannot happen gets the confidence 0; the error of an estimate is overwritten.

    Returns
    -------
    done : int64
    reason : int64
        _ALL, _SPACE if work arrays are too small, _COSTLY if match ``chosen[done]`` takes too many steps,
        _PAUSED.
    need : tuple of 4 int64
        For _SPACE the events of a match, edges, ticks and forbidden events needed; for _COSTLY the steps.
    """
    row = candidates.row
    node = buffer.node
    x_low, x_high, x_offset, x_gap = room
    spent = kernel_work[SPENT]
    spent[0] = 0.0
    work.steps[0] = 0
    for i in range(done, chosen.shape[0]):
        if spent[0] + float(work.steps[0]) >= budget:
            return i, _PAUSED, (0, 0, 0, 0)
        spent[0] += 1.0
        m = chosen[i]
        n = final[m]
        size = node[n, DEPTH] + 1
        path = np.empty(size, np.int64)
        for d in range(size - 1, -1, -1):
            path[d] = n
            n = node[n, PARENT]
        gap, forbidden, couples = _forbidden(
            candidates, buffer, conditions, work, witnesses, next_match, negations, contiguous, window, path
        )
        if not couples and (gap.shape[0] == 0 or not always):
            continue
        if size >= x_gap.shape[1] or gap.shape[0] > x_low.shape[0]:
            return i, _SPACE, (size, 0, 0, gap.shape[0])
        found = 0
        for k in range(gap.shape[0]):
            c = forbidden[k]
            if k == 0 or row[forbidden[k - 1], EVENT] != row[c, EVENT]:
                x_low[found], x_high[found], x_offset[found] = row[c, LOWER], row[c, UPPER], row[c, PMF]
                x_gap[found] = False
                found += 1
            x_gap[found - 1, gap[k]] = True
        own = np.empty((3, size), np.int64)
        for d in range(size):
            c = node[path[d], TAKEN]
            own[0, d], own[1, d], own[2, d] = row[c, LOWER], row[c, UPPER], row[c, PMF]
        status, value, first, last = gap_confidence(
            own[0], own[1], own[2], candidates.pmf, candidates.below, candidates.above, window, found, x_low,
            x_high, x_offset, x_gap, most_steps, kernel_work,
        )  # fmt: skip
        if status == NO_SPACE:
            return i, _SPACE, (size, first, last, found)
        if status == COUPLED and std_error > 0.0:
            status, value, error[m], first, last = sampled_confidence(
                own[0], own[1], window, x_low, x_high, x_offset, candidates.pmf, candidates.below,
                candidates.above, first, std_error, seed, most_steps, kernel_work,
            )  # fmt: skip
        if status in (TOO_DEAR, COUPLED):
            return i, _COSTLY, (int(min(value, float(MOST_EDGES))), 0, 0, 0)
        if status == INEXACT and not always:
            return i, _COSTLY, (int(most_steps), 0, 0, 0)
        if status == INEXACT:
            # Nothing can be in a gap: what the run loop added up is the answer, and never cancels.
            continue
        confidence[m] = value if status == DONE else 0.0
        lower[m] = first
        upper[m] = last
    return chosen.shape[0], _ALL, (0, 0, 0, 0)


class Collapse:
    """Makes matches of the point matches, with work arrays that grow as matches need them.

    Parameters
    ----------
    automaton : Automaton
    most_steps : float
        Most multiplications to spend on the confidence of one signature that is weighed as a whole.
    std_error : float
        Standard error of an estimate where the exact value takes more; 0: none is wanted.
    seed : int
    """

    def __init__(
        self, automaton: Automaton, most_steps: float, std_error: float = 0.0, seed: int = 0
    ) -> None:
        self._automaton = automaton
        self._limits = (most_steps, std_error, seed)
        self._negations = np.array(automaton.negations, dtype=np.int64)
        self._reach = automaton.window - 1 if automaton.components in automaton.negations else -1
        self._space = (8, 1024, 64, 64)
        self._work: Any = None
        self._split: tuple[Witnesses, list[Witnesses]] | None = None

    def _make_space(self) -> None:
        length, edges, ticks, events = self._space
        self._work = workspace(length, edges, ticks, events)
        numbers = np.empty((3, events), dtype=np.int64)
        self._room = (*numbers, np.zeros((events, length + 1), dtype=np.bool_))

    def release(
        self,
        candidates: Candidates,
        buffer: Buffer,
        conditions: Conditions,
        work: Scratch,
        witnesses: Witnesses,
        safe: int,
    ) -> PointMatches:
        """Return the matches that became final, each once.

        Parameters
        ----------
        candidates : Candidates
        buffer : Buffer
            Whose points before ``safe`` have all been fed.
        conditions : Conditions
            With the values of the candidates.
        work : confidence.predicates.conditions.Scratch
            For the longest prefix.
        witnesses : Witnesses
        safe : int
            No point, and no witness that begins, before this tick is missing.

        Raises
        ------
        CostlySignatureError
            If the confidence of a match takes more than ``most_steps``, and is not left to estimate.
        """
        room = int(buffer.counts[COMPLETES])
        if not room:
            return no_matches()
        nodes = np.empty(room, dtype=np.int64)
        count, events = _take_final(candidates, buffer, safe, self._reach, nodes)
        if not count:
            return no_matches()
        final = nodes[:count]
        component, event = np.empty((2, events), dtype=np.int64)
        lower, upper = np.empty((2, count), dtype=np.int64)
        start = np.empty(count + 1, dtype=np.int64)
        found = PointMatches(start, component, event, lower, upper, np.empty(count), np.zeros(count))
        mixed = np.empty(count, dtype=np.bool_)
        _write_sums(candidates, buffer, final, *found[:-1], mixed)
        always = self._automaton.weighs_signatures
        chosen = np.arange(count) if always else np.flatnonzero(mixed)
        if not len(chosen):
            return found
        if self._automaton.terms:
            found = self._united(candidates, buffer, conditions, work, witnesses, final, chosen, found)
        else:
            self._weigh(candidates, buffer, conditions, work, witnesses, always, final, chosen, found)
        possible = found.confidence > 0.0
        return found if possible.all() else found.keep(possible)

    def _united(
        self,
        candidates: Candidates,
        buffer: Buffer,
        conditions: Conditions,
        work: Scratch,
        witnesses: Witnesses,
        final: Int64,
        chosen: Int64,
        found: PointMatches,
    ) -> PointMatches:
        """Return the matches with the ranges and confidences of the union of their readings."""
        union = Union(len(found.lower))
        for term, left in zip(self._automaton.terms, self._left_by(witnesses), strict=True):
            lower, upper = found.lower.copy(), found.upper.copy()
            confidence, error = found.confidence.copy(), found.std_error.copy()
            own = found._replace(lower=lower, upper=upper, confidence=confidence, std_error=error)
            self._weigh(candidates, buffer, conditions, work, left, True, final, chosen, own)
            upper = np.where(confidence > 0.0, upper, lower - 1)
            union.add(term, (lower, upper), confidence, error)
        lower, upper, confidence, error = union.result()
        return found._replace(lower=lower, upper=upper, confidence=confidence, std_error=error)

    def _left_by(self, witnesses: Witnesses) -> list[Witnesses]:
        """Return for each term the witnesses of its negations, and those of contiguity."""
        if self._split is None or self._split[0] is not witnesses:
            pools = range(len(self._negations))
            left = [
                without(witnesses, [pool for pool in pools if pool not in term.negations])
                for term in self._automaton.terms
            ]
            self._split = witnesses, left
        return self._split[1]

    def _weigh(
        self,
        candidates: Candidates,
        buffer: Buffer,
        conditions: Conditions,
        work: Scratch,
        witnesses: Witnesses,
        always: bool,
        final: Int64,
        chosen: Int64,
        found: PointMatches,
    ) -> None:
        """Weigh some of the matches as wholes, see :func:`_weigh`."""
        kernel: Callable[..., tuple[int, int, tuple[int, ...]]] = _weigh
        automaton = self._automaton
        if self._work is None:
            self._make_space()
        done = 0
        while True:
            done, reason, need = kernel(
                candidates, buffer, conditions, work, witnesses, automaton.next_match, self._negations,
                automaton.contiguous, always, final, chosen, done, automaton.window, *self._limits,
                multiplications_per_call(), self._work, self._room, found.lower,
                found.upper, found.confidence, found.std_error,
            )  # fmt: skip
            if reason == _ALL:
                return
            if reason == _PAUSED:
                checkpoint()
                continue
            if reason == _COSTLY:
                m = chosen[done]
                own = slice(int(found.start[m]), int(found.start[m + 1]))
                raise CostlySignatureError(found.component[own].tolist(), found.event[own].tolist(), need[0])
            length, edges, ticks, others = enlarged(self._space, need)
            self._space = (length, edges, ticks, others)
            self._make_space()
