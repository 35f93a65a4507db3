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

import pointbased.columns as col
from confidence.chain.distribution import Intervals, Pmfs
from confidence.chain.tick_pairs import MOST_EDGES
from confidence.flat_lists import taken
from confidence.gaps import chains
from confidence.gaps.chains import BUDGET, DONE, INEXACT, NO_SPACE, SPENT, TOO_DEAR, Limits
from confidence.gaps.describing import (
    ALL,
    COSTLY,
    PAUSED,
    SPACE,
    CostlyMatchError,
    Described,
    Space,
    describe_each,
)
from confidence.gaps.monte_carlo import weighed_gaps
from confidence.gaps.unions import Union
from confidence.kernel import kernel
from confidence.predicates.conditions import Conditions, Scratch, all_hold
from pointbased.automaton import Automaton
from pointbased.columns import NONE
from pointbased.match_buffer import Buffer, StoredCandidates, recall
from pointbased.witnesses import Witnesses, span_of, without

__all__ = ["NO_MATCHES", "Collapse", "CostlySignatureError", "PointMatches"]

Int64 = NDArray[np.int64]

_Inputs = tuple[StoredCandidates, Buffer, Conditions, Scratch]


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
        rows, start = taken(self.start, chosen)
        return PointMatches(
            start,
            self.component[rows],
            self.event[rows],
            *(column[chosen] for column in self[3:]),
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
NO_MATCHES: Final = PointMatches(
    np.zeros(1, dtype=np.int64), _NONE, _NONE, _NONE, _NONE, np.zeros(0), np.zeros(0)
)  # fmt: skip


@kernel
def _take_final(candidates, buffer, safe, reach, final):
    """Take complete matches off the list that nothing before ``safe`` or behind can change; return how many.

    Their nodes are written to ``final``, and how many events they have is returned too. A gap behind the last
    event may end ``reach`` ticks after the first one; -1: there is none.
    """
    node = buffer.node
    row = candidates.row
    taken = 0
    events = 0
    previous = NONE
    n = buffer.counts[col.COMPLETE]
    while n != NONE:
        later = node[n, col.NEXT_COMPLETE]
        waits = row[node[n, col.TAKEN], col.UPPER] >= safe
        if reach >= 0 and not waits:
            root = n
            while node[root, col.PARENT] != NONE:
                root = node[root, col.PARENT]
            waits = row[node[root, col.TAKEN], col.UPPER] + reach >= safe
        if waits:
            previous = n
        else:
            if previous == NONE:
                buffer.counts[col.COMPLETE] = later
            else:
                node[previous, col.NEXT_COMPLETE] = later
            final[taken] = n
            taken += 1
            events += node[n, col.DEPTH] + 1
        n = later
    buffer.counts[col.COMPLETES] -= taken
    return taken, events


@kernel
def _write_sums(candidates, buffer, nodes, matches, mixed):
    """Write the matches at some nodes as the run loop added them up.

    ``mixed``, (m,) bool, tells whether events that several components take may be forbidden in them.
    """
    node = buffer.node
    row = candidates.row
    matches.start[0] = 0
    for m in range(nodes.shape[0]):
        n = nodes[m]
        matches.start[m + 1] = matches.start[m] + node[n, col.DEPTH] + 1
        mixed[m] = False
        for i in range(matches.start[m + 1] - 1, matches.start[m] - 1, -1):
            matches.component[i] = row[node[n, col.TAKEN], col.COMPONENT]
            matches.event[i] = row[node[n, col.TAKEN], col.EVENT]
            mixed[m] = mixed[m] or (n != nodes[m] and node[n, col.MIXED] != 0)
            n = node[n, col.PARENT]
        matches.lower[m] = node[nodes[m], col.RANGE_LOW]
        matches.upper[m] = node[nodes[m], col.RANGE_HIGH]
        # The point matches of a certain match are rounded one by one.
        matches.confidence[m] = min(buffer.confidence[nodes[m]], 1.0)


@kernel
def _is_own(row, matched, event):
    """Return whether an event is one of the match's own."""
    is_taken = False
    for c in matched:
        is_taken = is_taken or row[c, col.EVENT] == event
    return is_taken


@kernel(allocates=True)
def _searches(candidates, witnesses, rules, work, length, matched):
    """Return where witnesses are looked for: rows of pool, gap, and the span among them."""
    row = candidates.row
    size = matched.shape[0]
    first_upper = row[matched[0], col.UPPER]
    last_lower = row[matched[size - 1], col.LOWER]
    negations, window = rules.negations, rules.window
    rows = np.empty((negations.shape[0] + (size - 1 if rules.contiguous else 0), 4), np.int64)
    for k in range(rows.shape[0]):
        pool = min(k, negations.shape[0])
        gap = k - negations.shape[0] + 1
        if k < negations.shape[0]:
            gap = size if negations[k] == length else work.start[negations[k]]
        above, until = last_lower, first_upper + window
        if gap == 0:
            above, until = last_lower - window, first_upper
        elif gap < size:
            above, until = row[matched[gap - 1], col.LOWER], row[matched[gap], col.UPPER]
        rows[k, 0], rows[k, 1] = pool, gap
        rows[k, 2], rows[k, 3] = span_of(witnesses, pool, candidates.group[matched[0], pool], above, until)
    return rows


@kernel(allocates=True)
def _forbidden(candidates, buffer, conditions, work, witnesses, rules, path):
    """Return the gap and the candidate of what is forbidden in gaps of a match, those of an event together.

    A gap is the index of the event behind it, or the number of events. Returned too is whether some event is
    forbidden in several gaps, or would be in one before its own place in the match.
    """
    row = candidates.row
    node = buffer.node
    size = path.shape[0]
    length, negated = conditions.stages.shape[0], rules.negations.shape[0]
    matched = np.empty(size, np.int64)
    count = 0
    for d in range(size):
        matched[d] = node[path[d], col.TAKEN]
        child = node[path[d], col.CHILD] if rules.next_match and d < size - 1 else NONE
        while child != NONE:
            count += 1
            child = node[child, col.SIBLING]
    if negated:
        recall(candidates, buffer, conditions, work, path[size - 1])
    searches = _searches(candidates, witnesses, rules, work, length, matched)
    for k in range(searches.shape[0]):
        count += searches[k, 3] - searches[k, 2]
    work.steps[0] += count
    gap = np.empty(count, np.int64)
    forbidden = np.empty(count, np.int64)
    event = np.empty(count, np.int64)
    couples = False
    n = 0
    for d in range(1, size if rules.next_match else 1):
        child = node[path[d - 1], col.CHILD]
        while child != NONE:
            c = node[child, col.TAKEN]
            if row[c, col.COMPONENT] == row[matched[d], col.COMPONENT]:
                if not _is_own(row, matched, row[c, col.EVENT]):
                    gap[n], forbidden[n], event[n] = d, c, row[c, col.EVENT]
                    n += 1
                elif child != path[d]:
                    couples = True
            child = node[child, col.SIBLING]
    for k in range(searches.shape[0]):
        pool, d = searches[k, 0], searches[k, 1]
        for x in range(searches[k, 2], searches[k, 3]):
            c = witnesses.row[x]
            if _is_own(row, matched, row[c, col.EVENT]):
                continue
            if pool < negated:
                begin, end = conditions.negated[pool], conditions.negated[pool + 1]
                work.element[work.start[length + pool]] = c
                if begin < end and not all_hold(conditions, work, begin, end, -1):
                    continue
            gap[n], forbidden[n], event[n] = d, c, row[c, col.EVENT]
            n += 1
    order = np.argsort(event[:n])
    for i in range(1, n):
        couples = couples or event[order[i]] == event[order[i - 1]]
    return gap[order], forbidden[order], couples


@kernel(allocates=True)
def _weigh(
    candidates, buffer, conditions, work, witnesses, rules, limits, weighing, room, nodes, chosen, done,
    matches,
):  # fmt: skip
    """Overwrite range and confidence of the ``chosen`` matches, from number ``done`` on, as whole signatures.

    A match that cannot happen gets the confidence 0. Returns what
    :func:`confidence.gaps.describing.describe_each` asks for; ``weighing`` and ``room`` are those of its
    space.
    """
    row = candidates.row
    node = buffer.node
    # What is forbidden in one gap at most was weighed by the run loop.
    always = rules.weighs_signatures
    progress = weighing.progress
    work.steps[0] = 0
    for i in range(done, chosen.shape[0]):
        if progress[SPENT] + float(work.steps[0]) >= progress[BUDGET]:
            return i, PAUSED, (0, 0, 0, 0)
        progress[SPENT] += 1.0
        m = chosen[i]
        n = nodes[m]
        size = node[n, col.DEPTH] + 1
        path = np.empty(size, np.int64)
        for d in range(size - 1, -1, -1):
            path[d] = n
            n = node[n, col.PARENT]
        gap, forbidden, couples = _forbidden(candidates, buffer, conditions, work, witnesses, rules, path)
        if not couples and (gap.shape[0] == 0 or not always):
            continue
        if size > room.gaps.shape[1] - 2 or gap.shape[0] > room.lower.shape[0]:
            return i, SPACE, (size, 0, 0, gap.shape[0])
        count = 0
        for k in range(gap.shape[0]):
            c = forbidden[k]
            if k == 0 or row[forbidden[k - 1], col.EVENT] != row[c, col.EVENT]:
                room.lower[count], room.upper[count] = row[c, col.LOWER], row[c, col.UPPER]
                room.offset[count] = row[c, col.PMF]
                for g in range(room.gaps.shape[1]):
                    room.gaps[count, g] = False
                count += 1
            room.gaps[count - 1, gap[k]] = True
        matched = np.empty((3, size), np.int64)
        for d in range(size):
            c = node[path[d], col.TAKEN]
            matched[0, d], matched[1, d], matched[2, d] = (
                row[c, col.LOWER],
                row[c, col.UPPER],
                row[c, col.PMF],
            )
        pmfs = Pmfs(candidates.pmf, candidates.head, candidates.tail)
        status, value, error, first, last = weighed_gaps(
            Intervals(matched[0], matched[1], matched[2]), pmfs, rules.window, count, room, limits, weighing
        )
        if status == NO_SPACE:
            return i, SPACE, (size, first, last, count)
        if status == chains.PAUSED:
            return i, PAUSED, (0, 0, 0, 0)
        if status == TOO_DEAR:
            return i, COSTLY, (int(min(value, float(MOST_EDGES))), 0, 0, 0)
        if status == INEXACT and not always:
            return i, COSTLY, (int(limits.most_steps), 0, 0, 0)
        if status == INEXACT:
            # Nothing can be in a gap: what the run loop added up is the answer, and never cancels.
            continue
        matches.confidence[m] = value if status == DONE else 0.0
        matches.std_error[m] = error
        matches.lower[m] = first
        matches.upper[m] = last
    return chosen.shape[0], ALL, (0, 0, 0, 0)


class Collapse:
    """Makes matches of the point matches.

    Parameters
    ----------
    automaton : Automaton
    most_steps : float
        Most multiplications to spend on the confidence of one signature that is weighed as a whole.
    std_error : float
        Standard error of an estimate where the exact value takes more; 0: none is wanted.
    seed : int
    """

    def __init__(self, automaton: Automaton, most_steps: float, std_error: float, seed: int) -> None:
        self._automaton = automaton
        self._rules = automaton.rules()
        self._limits = Limits(float(most_steps), std_error, seed)
        self._reach = automaton.window - 1 if automaton.components in automaton.negations else -1
        self._space: Space | None = None
        self._split: tuple[Witnesses, list[Witnesses]] | None = None

    def release(
        self,
        candidates: StoredCandidates,
        buffer: Buffer,
        conditions: Conditions,
        work: Scratch,
        witnesses: Witnesses,
        safe: int,
    ) -> PointMatches:
        """Return the matches that became final, each once.

        No point, and no witness that begins, before the tick ``safe`` is missing; ``work`` has room for the
        longest prefix.

        Raises
        ------
        CostlySignatureError
            If the confidence of a match takes more than ``most_steps``, and is not left to estimate.
        """
        nodes = np.empty(int(buffer.counts[col.COMPLETES]), dtype=np.int64)
        count, events = _take_final(candidates, buffer, safe, self._reach, nodes) if len(nodes) else (0, 0)
        if not count:
            return NO_MATCHES
        nodes = nodes[:count]
        lower, upper = np.empty((2, count), dtype=np.int64)
        component, event = np.empty((2, events), dtype=np.int64)
        start, confidence = np.empty(count + 1, dtype=np.int64), np.empty(count)
        matches = PointMatches(start, component, event, lower, upper, confidence, np.zeros(count))
        mixed = np.empty(count, dtype=np.bool_)
        _write_sums(candidates, buffer, nodes, matches, mixed)
        chosen = np.arange(count) if self._automaton.weighs_signatures else np.flatnonzero(mixed)
        if not len(chosen):
            return matches
        inputs = candidates, buffer, conditions, work
        if self._automaton.terms:
            matches = self._united(inputs, witnesses, nodes, chosen, matches)
        else:
            self._weigh(inputs, witnesses, nodes, chosen, matches)
        possible = matches.confidence > 0.0
        return matches if possible.all() else matches.keep(possible)

    def _united(
        self, inputs: _Inputs, witnesses: Witnesses, nodes: Int64, chosen: Int64, matches: PointMatches
    ) -> PointMatches:
        """Return the matches with the ranges and confidences of the union of their readings."""
        union = Union(len(matches.lower))
        for term, witnesses_of_term in zip(self._automaton.terms, self._left_by(witnesses), strict=True):
            part = PointMatches._make((*matches[:3], *(column.copy() for column in matches[3:])))
            self._weigh(inputs, witnesses_of_term, nodes, chosen, part)
            upper = np.where(part.confidence > 0.0, part.upper, part.lower - 1)
            union.add(term, (part.lower, upper), part.confidence, part.std_error)
        return PointMatches._make((*matches[:3], *union.result()))

    def _left_by(self, witnesses: Witnesses) -> list[Witnesses]:
        """Return for each term the witnesses of its negations, and those of contiguity."""
        if self._split is None or self._split[0] is not witnesses:
            pools = range(len(self._automaton.negations))
            witnesses_of_terms = [
                without(witnesses, [pool for pool in pools if pool not in term.negations])
                for term in self._automaton.terms
            ]
            self._split = witnesses, witnesses_of_terms
        return self._split[1]

    def _weigh(
        self, inputs: _Inputs, witnesses: Witnesses, nodes: Int64, chosen: Int64, matches: PointMatches
    ) -> None:
        """Weigh some of the matches as wholes, see :func:`_weigh`."""
        kernel: Callable[..., Described] = _weigh
        space = self._space = self._space or Space()
        space.work.begin()
        try:
            describe_each(
                lambda done: kernel(
                    *inputs, witnesses, self._rules, self._limits, space.work.go_on(), space.forbidden,
                    nodes, chosen, done, matches,
                ),
                space.grow,
            )  # fmt: skip
        except CostlyMatchError as error:
            m = chosen[error.match]
            events_of_match = slice(int(matches.start[m]), int(matches.start[m + 1]))
            events = matches.component[events_of_match].tolist(), matches.event[events_of_match].tolist()
            raise CostlySignatureError(*events, error.steps) from None
