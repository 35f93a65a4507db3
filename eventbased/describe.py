"""Matches of the pivot join, from its partial matches to events, tight time ranges and confidences."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import steps_per_call
from confidence.chain.pmf import chain_confidence_pmf, support_range
from confidence.chain.side_by_side import CHAINS, LENGTHS, Chains, fill_confidences
from confidence.chain.uniform import chain_confidence
from confidence.kernel import kernel
from eventbased import spans_written_out
from eventbased.config import MATCH_CUBES, SPARE, WHOLE_BATCHES
from eventbased.joins.join_state import BEGIN, PARENT, PASS, SIZE, JoinState, PivotInputs, trace_back
from eventbased.layout import Candidates
from eventbased.span_chains import SpanWork
from eventbased.span_columns import MatchColumns, keep_likely, matches_unweighed

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

__all__ = [
    "MatchFinder",
    "confidences_of_matches",
    "confidences_of_spans",
    "describe_uncertain",
    "matches_of_spans",
]

_CONFIDENCES: Final[dict[int, Any]] = {
    length: getattr(spans_written_out, f"confidences_of_{length}") for length in LENGTHS
}

_MATCHES: Final[dict[int, Any]] = {
    length: getattr(spans_written_out, f"matches_of_{length}") for length in WHOLE_BATCHES
}


@kernel
def _chains_of_matches(chosen, begin, lower, upper, chains):
    """Write the bounds of matches from ``begin`` on side by side; return of how many."""
    bounds, place = chains.bounds, chains.place
    length, count = chosen.shape
    size = min(count - begin, CHAINS)
    for n in range(size):
        base = lower[chosen[0, begin + n]]
        for j in range(length):
            i = chosen[j, begin + n]
            bounds[2 * j, n] = float(lower[i] - base)
            bounds[2 * j + 1, n] = float(upper[i] - base)
        place[n] = begin + n
    return size


@kernel(allocates=True)
def _confidences_one_by_one(chosen, w, lower, upper, out):
    """Fill the confidences of matches that are not written side by side."""
    length, count = chosen.shape
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    bounds = np.empty((6, length), np.int64)
    floats = np.empty((4, 2 * length + 1), np.float64)
    for n in range(count):
        for j in range(length):
            low[j] = lower[chosen[j, n]]
            high[j] = upper[chosen[j, n]]
        out[n] = chain_confidence(low, high, w, bounds[4], bounds[5], bounds[:4], floats)


def confidences_of_matches(
    chosen: Int64, w: int, lower: Int64, upper: Int64, chains: Chains | None, out: Float64
) -> None:
    """Fill the confidences of matches as if all intervals were uniform.

    Parameters
    ----------
    chosen : (l, m) int64
        The candidates of each match.
    w : int
        ``W - l``.
    lower, upper : (n,) int64
        Bounds minus position of the candidates, ticks.
    chains : Chains or None
        See :func:`confidence.chain.side_by_side.new_chains`.
    out : (m,) float64
        Overwritten. A confidence of NaN asks for exact arithmetic.
    """
    if chains is None:
        out[:] = np.nan
    else:
        for begin in range(0, chosen.shape[1], CHAINS):
            fill_confidences(chains, _chains_of_matches(chosen, begin, lower, upper, chains), w, out)
    again = np.flatnonzero(np.isnan(out))
    if len(again):
        values = np.empty(len(again))
        _confidences_one_by_one(np.ascontiguousarray(chosen[:, again]), w, lower, upper, values)
        out[again] = values


class MatchFinder:
    """Finds matches by the join, and fills their columns as if all intervals were uniform.

    Parameters
    ----------
    inputs, search, spans
        As for :func:`eventbased.joins.pivot_join.join`. ``spans`` has more columns than there is room for
        matches.
    payload : (n + SPARE,) int64
        What to write as each candidate's event.
    longest : (l,) int64
        Largest ``upper - lower`` of a candidate of each component.
    is_open : bool
        Whether confidences are asked for, and some interval is longer than a tick. If not, each is 1.
    chains : Chains or None
        See :func:`confidence.chain.side_by_side.new_chains`.
    """

    def __init__(
        self,
        inputs: PivotInputs,
        search: JoinState,
        spans: Int64,
        payload: Int64,
        longest: Int64,
        is_open: bool,
        chains: Chains | None,
    ) -> None:
        self._inputs, self._search = inputs, search
        self._spans, self._payload = spans, payload
        self._longest, self._is_open, self._chains = longest, is_open, chains
        self._kernel = _MATCHES.get(len(inputs.order)) if is_open and chains is not None else None

    def fill(self, columns: MatchColumns, filled: int) -> tuple[int, int, int, bool]:
        """Fill columns from ``filled`` on.

        Parameters
        ----------
        columns : MatchColumns
            Overwritten from ``filled`` on, without matches that are less likely than ``columns.least``. A
            confidence of NaN asks for :func:`confidences_of_matches`, and then for exact arithmetic; no match
            from ``begun`` on is left out then.
        filled : int
            How many matches the columns hold already; there is room for one more.

        Returns
        -------
        begun : int
            Where the matches of the last call of the join begin; ``spans`` are theirs.
        filled : int
            How many matches the columns hold now. If they have room left, there are no more matches, the
            steps of one call (:func:`confidence.budget.steps_per_call`) were taken, some confidence is NaN,
            or there are as many as are weighed at a time.
        count : int
            The number of spans of the last call of the join: 0 if there are no more matches, or PAUSED.
        lost : bool
            Whether a confidence from ``begun`` on is NaN; none before is.

        Notes
        -----
        O(matches) beside the join; for each span and column a few whole vectors are written, without a
        branch. It is one call of one kernel, or two: between two of them a thread waits for the interpreter.
        """
        if self._kernel is None:
            return self._in_two_calls(columns, filled)
        begun, filled, count, lost = map(
            int,
            self._kernel(
                self._inputs, self._search, steps_per_call(), self._spans, self._payload, self._longest,
                self._chains, columns, filled,
            ),
        )  # fmt: skip
        return begun, filled, count, lost > 0

    def _in_two_calls(self, columns: MatchColumns, filled: int) -> tuple[int, int, int, bool]:
        w, candidates, _, _, _, order, _ = self._inputs
        search = self._search
        begin, room = filled, columns
        if self._is_open:
            most_weighed = max(MATCH_CUBES // len(order) ** 3, 1)
            room = columns._replace(lower=columns.lower[: filled + most_weighed + SPARE])
        # Numba types a kernel at its calls.
        kernel: Any = matches_unweighed
        begun, filled, count, _ = map(
            int,
            kernel(
                self._inputs,
                search,
                steps_per_call(),
                self._spans,
                self._payload,
                self._is_open,
                room,
                filled,
            ),
        )
        confidences = columns.confidence[begin:filled]
        if not self._is_open or not len(confidences):
            confidences[:] = 1.0
            return begun, filled, count, False
        if self._chains is None:
            confidences[:] = np.nan
            return begun, filled, count, True
        ordered = order[search.state[PASS]]
        lost = confidences_of_spans(
            ordered, search, self._spans, count, w, candidates, self._longest, self._chains, confidences
        )
        if columns.least > 0.0 and not lost:
            filled = int(keep_likely(columns, begin, filled))
        return begun, filled, count, lost


def confidences_of_spans(
    ordered: Int64, search: JoinState, spans: Int64, count: int, w: int, candidates: Candidates,
    longest: Int64, chains: Chains, out: Float64,
) -> bool:  # fmt: skip
    """Fill the confidences of the matches of some spans as if all were uniform; return whether any is NaN.

    Parameters
    ----------
    ordered : (l,) int64
        The components in the order in which they were bound; the last one is the first or the last of the
        pattern.
    spans : (3, m) int64, count : int64
        What :func:`eventbased.joins.pivot_join.join` wrote, and how many columns of it are in use, at least
        1.
    out : (m,) float64
        See :func:`confidence.chain.side_by_side.fill_confidences`.
    search, w, candidates, longest, chains
        As for :class:`MatchFinder`.
    """
    length = ordered.shape[0]
    work = SpanWork(np.zeros(3, np.int64), np.empty((2, length), np.int64), np.empty(2 * length))
    lost = _CONFIDENCES[length](
        ordered, search.blocks, spans, count, work, candidates.lower, candidates.upper,
        longest[ordered[length - 1]], chains, float(w), out,
    )  # fmt: skip
    return bool(lost)


@kernel(allocates=True)
def matches_of_spans(ordered, blocks, spans, which, out):
    """Write the candidates of some matches of spans to ``out``, (l, m) int64. O(l m + spans).

    ``which`` are their numbers, (m,) int64, ascending.
    """
    length = ordered.shape[0]
    chosen = np.empty(length, np.int64)
    k = -1
    begin = stop = 0
    for n in range(which.shape[0]):
        if which[n] >= stop:
            while which[n] >= stop:
                k += 1
                begin = stop
                stop += spans[SIZE, k]
            trace_back(ordered, blocks, length - 2, spans[PARENT, k], chosen)
        chosen[ordered[length - 1]] = spans[BEGIN, k] + which[n] - begin
        for s in range(length):
            out[s, n] = chosen[s]


@kernel(allocates=True)
def describe_uncertain(
    chosen,
    w,
    lower,
    upper,
    base,
    pmf_offset,
    pmf,
    longest,
    with_confidence,
    out_lower,
    out_upper,
    out_confidence,
):
    """Correct range and confidence of the matches with explicit probabilities.

    Parameters
    ----------
    chosen : (l, m) int64
        The candidates of each match.
    w, lower, upper, base, with_confidence, out_lower, out_upper, out_confidence
        Window, bounds and bases of the layout, and the output as it was filled as if all intervals were
        uniform. A match that the probabilities exclude gets an empty range.
    pmf_offset : (n,) int64
        Where the probabilities of a candidate start in ``pmf``; -1 for uniform.
    pmf : (m,) float64
    longest : int64
        Most ticks between the earliest and the latest time of a match that are worth a pass.

    Returns
    -------
    int64
        The first match that reaches over more than ``longest`` ticks, or -1.
    """
    length = chosen.shape[0]
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    offset = np.empty(length, np.int64)
    for n in range(chosen.shape[1]):
        explicit = False
        for k in range(length):
            i = chosen[k, n]
            offset[k] = pmf_offset[i]
            explicit = explicit or offset[k] >= 0
            low[k] = lower[i] + k
            high[k] = upper[i] + k
        if explicit:
            first, last = support_range(low, high, offset, pmf, w + length)
            shift = base[chosen[0, n]]
            out_lower[n] = first - shift
            out_upper[n] = last - shift
            if with_confidence and first <= last:
                if last - first > longest:
                    return n
                out_confidence[n] = chain_confidence_pmf(low, high, offset, pmf, w + length, first, last)
    return -1
