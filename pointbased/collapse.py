"""Match collapsing (Zhang et al., section 3, step 3): the point matches of a signature become one match.

The run loop adds the point matches of a signature up at its node as it finds them. A signature is complete
once every point of its last event has been seen, t_emit > e_l.upper: its point matches end there at the
latest, and so does everything forbidden in its gaps. (The paper waits for e_l.upper + W, which no
condition of these patterns needs.)

Where one event could have been taken in several gaps of a match, the gaps are coupled (Eq. 4) and the
product over gaps that the run loop forms is not the answer: given the match's own times the gaps are
disjoint, so such an event contributes 1 minus the sum over its gaps. Then the signature is weighed as a whole
(:func:`confidence.gap_confidence`): what was tried on its prefixes says what is forbidden in which gap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from confidence import gap_confidence, workspace
from confidence.forbidden import COUPLED, DONE, NO_SPACE, TOO_DEAR
from confidence.gaps import INEXACT
from pointbased.pools import (
    CHILD,
    COMPLETE,
    COMPLETES,
    EVENT,
    LATER,
    LOWER,
    MIXED,
    NONE,
    PARENT,
    PMF,
    RANGE_HIGH,
    RANGE_LOW,
    SIBLING,
    TAKEN,
    UPPER,
)

__all__ = ["Collapse", "CostlySignatureError", "PointMatches", "no_matches"]

Int64 = NDArray[np.int64]

_ALL: Final = 0
_SPACE: Final = 1
_COSTLY: Final = 2


class PointMatches(NamedTuple):
    """Matches that are final.

    Attributes
    ----------
    events : (l, m) int64
        For each component the serial number of its event.
    lower, upper : (m,) int64
        Tight time ranges, ticks.
    confidence : (m,) float64
        Positive.
    """

    events: Any
    lower: Any
    upper: Any
    confidence: Any


class CostlySignatureError(ValueError):
    """The confidence of a signature takes too many steps.

    Attributes
    ----------
    events : list of int
        The serial numbers of its events.
    steps : int
    """

    def __init__(self, events: list[int], steps: int) -> None:
        self.events = events
        self.steps = steps
        super().__init__(f"the confidence of the match of {events} takes {steps} steps")


def no_matches(length: int) -> PointMatches:
    """Return no matches of a pattern with so many components."""
    none = np.zeros(0, dtype=np.int64)
    return PointMatches(np.zeros((length, 0), dtype=np.int64), none, none, np.zeros(0))


@njit(cache=True, nogil=True, error_model="numpy")
def _take_final(candidates, buffer, safe, final):
    """Take the complete matches whose last event is over before ``safe`` off the list.

    Parameters
    ----------
    final : (m,) int64
        With room for all complete matches; the first ones are overwritten with their nodes.

    Returns
    -------
    int64
        How many they are.
    """
    node = buffer.node
    found = 0
    previous = NONE
    n = buffer.counts[COMPLETE]
    while n != NONE:
        later = node[n, LATER]
        if candidates.row[node[n, TAKEN], UPPER] >= safe:
            previous = n
        else:
            if previous == NONE:
                buffer.counts[COMPLETE] = later
            else:
                node[previous, LATER] = later
            final[found] = n
            found += 1
        n = later
    buffer.counts[COMPLETES] -= found
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _write_sums(candidates, buffer, final, events, lower, upper, confidence, mixed):
    """Write the matches at some nodes as the run loop added them up.

    Parameters
    ----------
    events : (l, m) int64; lower, upper : (m,) int64; confidence : (m,) float64; mixed : (m,) bool
        Overwritten; ``mixed`` says whether events that several components take may be forbidden in them.
    """
    node = buffer.node
    length = events.shape[0]
    for m in range(final.shape[0]):
        mixed[m] = False
        n = final[m]
        for j in range(length - 1, -1, -1):
            events[j, m] = candidates.row[node[n, TAKEN], EVENT]
            mixed[m] = mixed[m] or (j < length - 1 and node[n, MIXED] != 0)
            n = node[n, PARENT]
        lower[m] = node[final[m], RANGE_LOW]
        upper[m] = node[final[m], RANGE_HIGH]
        # The point matches of a certain match are rounded one by one.
        confidence[m] = min(buffer.confidence[final[m]], 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _is_own(row, node, path, event):
    """Return whether an event is one of the match's own."""
    found = False
    for n in path:
        found = found or row[node[n, TAKEN], EVENT] == event
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _forbidden(candidates, node, path):
    """Return the gap and the candidate of every event forbidden in a gap of a match.

    Returns
    -------
    gap : (k,) int64
        The place of the event behind the gap.
    forbidden : (k,) int64
        Candidates, the rows of one event together.
    couples : bool
        Whether some event is forbidden in several gaps, or would be in one before its own place in the match.
    """
    row = candidates.row
    length = path.shape[0]
    count = 0
    for d in range(1, length):
        child = node[path[d - 1], CHILD]
        while child != NONE:
            count += 1
            child = node[child, SIBLING]
    gap = np.empty(count, np.int64)
    forbidden = np.empty(count, np.int64)
    event = np.empty(count, np.int64)
    couples = False
    n = 0
    for d in range(1, length):
        child = node[path[d - 1], CHILD]
        while child != NONE:
            c = node[child, TAKEN]
            if not _is_own(row, node, path, row[c, EVENT]):
                gap[n], forbidden[n], event[n] = d, c, row[c, EVENT]
                n += 1
            elif child != path[d]:
                couples = True
            child = node[child, SIBLING]
    order = np.argsort(event[:n])
    for i in range(1, n):
        couples = couples or event[order[i]] == event[order[i - 1]]
    return gap[order], forbidden[order], couples


@njit(cache=True, nogil=True, error_model="numpy")
def _weigh(
    candidates, buffer, final, chosen, done, window, most_steps, work, room, lower, upper, confidence
):  # fmt: skip
    """Overwrite range and confidence of the matches whose gaps are coupled.

    Parameters
    ----------
    final : (m,) int64
        Their nodes.
    chosen : (k,) int64
        The matches to look at.
    done : int64
        How many of them have been.
    window : int64
    most_steps : float64
        Most multiplications to spend on one.
    work : tuple
        From :func:`confidence.workspace`.
    room : tuple
        (q,) int64 three times and (q, d) bool: room for the forbidden events of one match.
    lower, upper : (m,) int64; confidence : (m,) float64
        A match that cannot happen gets the confidence 0.

    Returns
    -------
    done : int64
    reason : int64
        _ALL, _SPACE if work arrays are too small, _COSTLY if match ``chosen[done]`` takes too many steps.
    need : tuple of 4 int64
        For _SPACE the events of a match, edges, ticks and forbidden events needed; for _COSTLY the steps.
    """
    row = candidates.row
    node = buffer.node
    x_low, x_high, x_offset, x_gap = room
    for i in range(done, chosen.shape[0]):
        m = chosen[i]
        size = 0
        n = final[m]
        while n != NONE:
            size += 1
            n = node[n, PARENT]
        path = np.empty(size, np.int64)
        n = final[m]
        for d in range(size - 1, -1, -1):
            path[d] = n
            n = node[n, PARENT]
        gap, forbidden, couples = _forbidden(candidates, node, path)
        if not couples:
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
            x_high, x_offset, x_gap, most_steps, work,
        )  # fmt: skip
        if status == NO_SPACE:
            return i, _SPACE, (size, first, last, found)
        if status in (TOO_DEAR, COUPLED):
            return i, _COSTLY, (int(value), 0, 0, 0)
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
    length : int
        Components of the pattern.
    window : int
        W, ticks.
    most_steps : float
        Most multiplications to spend on the confidence of one signature whose gaps are coupled.
    """

    def __init__(self, length: int, window: int, most_steps: float) -> None:
        self._length = length
        self._window = window
        self._most_steps = most_steps
        self._space = (8, 1024, 64, 64)
        self._work: Any = None

    def _make_space(self) -> None:
        length, edges, ticks, events = self._space
        self._work = workspace(length, edges, ticks, events)
        numbers = np.empty((3, events), dtype=np.int64)
        self._room = (*numbers, np.zeros((events, length + 1), dtype=np.bool_))

    def release(self, candidates: Any, buffer: Any, safe: int) -> PointMatches:
        """Return the matches that became final, each once.

        Parameters
        ----------
        candidates : Candidates
        buffer : Buffer
            Whose points before ``safe`` have all been fed.
        safe : int
            No point before this tick is missing.

        Raises
        ------
        CostlySignatureError
            If events couple the gaps of a match too much.
        """
        room = int(buffer.counts[COMPLETES])
        if not room:
            return no_matches(self._length)
        nodes = np.empty(room, dtype=np.int64)
        final = nodes[: _take_final(candidates, buffer, safe, nodes)]
        events = np.empty((self._length, len(final)), dtype=np.int64)
        lower, upper = np.empty((2, len(final)), dtype=np.int64)
        confidence = np.empty(len(final))
        mixed = np.empty(len(final), dtype=np.bool_)
        _write_sums(candidates, buffer, final, events, lower, upper, confidence, mixed)
        if not mixed.any():
            return PointMatches(events, lower, upper, confidence)
        self._weigh_apart(
            candidates, buffer, final, np.flatnonzero(mixed), events, (lower, upper, confidence)
        )
        kept = confidence > 0.0
        return PointMatches(events[:, kept], lower[kept], upper[kept], confidence[kept])

    def _weigh_apart(
        self,
        candidates: Any,
        buffer: Any,
        final: Int64,
        chosen: Int64,
        events: Int64,
        out: tuple[Int64, Int64, NDArray[np.float64]],
    ) -> None:
        """Weigh some of the matches as wholes."""
        kernel: Callable[..., tuple[int, int, tuple[int, ...]]] = _weigh
        if self._work is None:
            self._make_space()
        done = 0
        while True:
            done, reason, need = kernel(
                candidates, buffer, final, chosen, done, self._window, self._most_steps, self._work,
                self._room, *out,
            )  # fmt: skip
            if reason == _ALL:
                return
            if reason == _COSTLY:
                raise CostlySignatureError(events[:, chosen[done]].tolist(), need[0])
            length, edges, ticks, others = (
                max(old, 2 * new if new > old else old) for old, new in zip(self._space, need, strict=True)
            )
            self._space = (length, edges, ticks, others)
            self._make_space()
