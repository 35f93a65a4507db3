"""Ranges and confidences of the matches of a join: kernels, pmfs, what is next, and exact arithmetic."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from confidence.budget import pieces
from confidence.chain.exact import redo_exactly
from confidence.chain.side_by_side import Chains, new_chains
from confidence.large_arrays import empty
from eventbased import (
    JoinState,
    confidences_of_matches,
    confidences_of_spans,
    describe_chosen,
    describe_uncertain,
    filter_matches,
    filter_spans,
    matches_of_spans,
)
from eventbased.joins.join_state import JoinBytecode
from eventbased.thresholds import needed
from uncertain_cep.candidates.layout import Layout
from uncertain_cep.config.limits import LONGEST_PMF_CHAIN
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext, Threshold
from uncertain_cep.operators.costly_matches import long_chain

if TYPE_CHECKING:
    from uncertain_cep.operators.joined_times import TimedChoices
    from uncertain_cep.operators.next_match import NextMatches

__all__ = ["MatchDescription", "matches_among"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


def matches_among(ordered: Int64, search: JoinState, spans: Int64, which: Int64) -> Int64:
    """Return the candidates of those matches of spans that have these numbers, ascending: (l, m) int64."""
    chosen = np.empty((len(ordered), len(which)), dtype=np.int64)
    matches_of_spans(ordered, search.blocks, spans, which, chosen)
    return chosen


class MatchDescription:
    """From the candidates of matches of one layout to their ranges and confidences.

    What the strategy asks of events that come in between is in the first order of the bytecode.
    """

    limit: Int64
    """(n,) int64, or (0,). For :func:`eventbased.join`."""
    is_next: bool
    """Whether the strategy is skip till next match."""
    is_uniform: bool
    """Whether no interval has a pmf, and every match of the join is one of the query."""
    has_errors: bool
    """Whether confidences may be estimates."""
    wanted: bool
    """Whether confidences are."""
    computed: bool
    """Whether confidences are filled."""
    longest: Int64
    """(l,) int64. Largest ``upper - lower`` of a candidate of each component."""
    chains: Chains | None
    """Room for those of uniform intervals."""

    def __init__(self, context: ExecutionContext, layout: Layout, bytecode: JoinBytecode) -> None:
        plan, pmfs, threshold = context.plan, context.pmfs, context.threshold
        self._plan, self._layout, self._pmfs, self._threshold = plan, layout, pmfs, threshold
        none = np.empty(0, dtype=np.int64)
        self.is_next = plan.query.strategy == "skip_till_next_match"
        self.is_uniform = pmfs is None and not self.is_next and context.conditioned is None
        self.wanted = context.with_confidence
        self.computed = self.wanted or self.is_next
        self.chains = new_chains(len(plan.components), layout.w) if self.wanted else None
        timed = context.conditioned
        # Both import much that most joins do without.
        self._timed: TimedChoices | None = None
        if timed is not None:
            from uncertain_cep.operators.joined_times import TimedChoices

            # By the ticks as they were before candidates were moved.
            span = replace(context, plan=timed).span
            log = None if context.counters is None else context.counters.weighed
            self._timed = TimedChoices(timed, context.table, layout.rows, context.ticks, pmfs, span, log)
        self.has_errors = self.is_next or self._timed is not None
        self._next: NextMatches | None = None
        if self.is_next:
            from uncertain_cep.operators.next_match import NextMatches

            self._next = NextMatches(plan, context.table, layout, bytecode, pmfs, context.existence)
        self.limit = none if self._next is None else self._next.limit
        self._offset = none if pmfs is None else pmfs.offset[layout.rows]
        self._ranks = none
        if threshold is not None and threshold.ranks is not None:
            self._ranks = threshold.ranks[layout.rows]
        candidates = layout.candidates
        equally_long = candidates.class_shortest == candidates.class_longest
        self.longest = np.maximum.reduceat(candidates.class_longest, candidates.first_class[:-1])
        self._even = np.logical_and.reduceat(equally_long, candidates.first_class[:-1]) & (pmfs is None)

    def _least(self, threshold: Threshold) -> tuple[float, Int64, int]:
        """Return the threshold as it is now: the least confidence, ranks, and the last of them."""
        last = np.iinfo(np.int64).max if threshold.last_rank is None else threshold.last_rank
        return threshold.least, self._ranks, last

    def likely_limits(self, threshold: Threshold) -> Int64:
        """Return :attr:`limit` for matches that can pass a threshold."""
        return self.limit if self._next is None else self._next.likely_limits(needed(threshold.least))

    def filtered_spans(
        self, ordered: Int64, search: JoinState, spans: Int64, found: int, threshold: Threshold
    ) -> Int64:
        """Return the candidates of those of ``found`` matches that can pass a threshold, (l, m) int64."""
        candidates = self._layout.candidates
        if self.chains is not None and self.is_uniform:
            # Side by side, confidences themselves cost less than bounds of each.
            exact = empty(found, np.float64)
            confidences_of_spans(
                ordered, search, spans, spans.shape[1], self._layout.w, candidates, self.longest, self.chains,
                exact,
            )  # fmt: skip
            least, ranks, last = self._least(threshold)
            chosen = matches_among(ordered, search, spans, np.flatnonzero(~(exact < needed(least))))
            return np.ascontiguousarray(chosen[:, ranks[chosen[0]] <= last]) if len(ranks) else chosen
        chosen = np.empty((len(ordered), found), dtype=np.int64)
        size = filter_spans(
            ordered, search.blocks, spans, self._layout.w, candidates.lower, candidates.upper, self._offset,
            self._even, *self._least(threshold), chosen,
        )  # fmt: skip
        return self._likely(chosen[:, :size], threshold)

    def _likely(self, chosen: Int64, threshold: Threshold) -> Int64:
        """Return the matches that can pass a threshold in spite of what they forbid."""
        # One layout, so that the kernels it is handed to are compiled once.
        chosen = np.ascontiguousarray(chosen)
        return chosen if self._next is None else self._next.likely(chosen, needed(threshold.least))

    def filtered(self, chosen: Int64) -> Int64:
        """Return the matches, (l, m) int64, that can pass the threshold, if there is one."""
        if self._threshold is None:
            return chosen
        candidates = self._layout.candidates
        kept = np.empty(chosen.shape[1], dtype=np.bool_)
        filter_matches(
            chosen, self._layout.w, candidates.lower, candidates.upper, self._offset,
            *self._least(self._threshold), kept,
        )  # fmt: skip
        return self._likely(chosen[:, kept], self._threshold)

    def fill(
        self, chosen: Int64, lower: Int64, upper: Int64, confidence: Float64, std_error: Float64
    ) -> None:
        """Fill ranges, confidences and standard errors of matches, (l, m) int64 candidates.

        A match that cannot happen gets an empty range. Confidences, at most 1, are filled only if
        ``computed``, standard errors only if ``has_errors``.

        Raises
        ------
        ConfidenceCostError
            If the confidence of a match takes too many steps.
        TraceError
            If a match with an explicit pmf reaches over more than ``LONGEST_PMF_CHAIN`` ticks.
        """
        self._fill(chosen, lower, upper, confidence, std_error)
        if self.computed:
            np.minimum(confidence, 1.0, out=confidence)

    def _fill(
        self, chosen: Int64, lower: Int64, upper: Int64, confidence: Float64, std_error: Float64
    ) -> None:
        if self._next is not None:
            self._next.describe(chosen, lower, upper, confidence, std_error)
            return
        if self._timed is not None:
            self._timed.describe(chosen, self.wanted, (lower, upper, confidence, std_error))
            return
        candidates, w = self._layout.candidates, self._layout.w
        describe_chosen(chosen, w, candidates.lower, candidates.upper, candidates.base, lower, upper)
        if self.wanted:
            confidences_of_matches(chosen, w, candidates.lower, candidates.upper, self.chains, confidence)
        if self._pmfs is not None:
            # A window that may bind takes a product of matrices for each tick.
            ticks = (upper - lower + 1).astype(np.float64)
            for part in pieces(ticks * np.where(ticks > self._plan.window, len(chosen) ** 2, len(chosen))):
                too_long = describe_uncertain(
                    np.ascontiguousarray(chosen[:, part]), w, candidates.lower, candidates.upper,
                    candidates.base, self._offset, self._pmfs.values, LONGEST_PMF_CHAIN, self.wanted,
                    lower[part], upper[part], confidence[part],
                )  # fmt: skip
                if too_long >= 0:
                    raise long_chain(self._plan.names.pmf)
        if self.wanted:
            redo_exactly(confidence, self._plan.window, partial(self._intervals, chosen))

    def _intervals(self, chosen: Int64, n: int) -> tuple[Int64, Int64, None]:
        """Return the bounds of the events of match n."""
        candidates, own = self._layout.candidates, chosen[:, n]
        position = candidates.position
        return candidates.lower[own] + position, candidates.upper[own] + position, None

    def batch(
        self,
        events: Int64,
        lower: Int64,
        upper: Int64,
        confidence: Float64,
        std_error: Float64,
        at_least: float = 0.0,
    ) -> MatchBatch:
        """Return filled columns without matches that cannot happen; no confidence is below ``at_least``."""
        wanted = confidence if self.wanted else None
        found = MatchBatch(
            events,
            lower,
            upper,
            wanted,
            std_error if self.has_errors else None,
            at_most_one=True,
            at_least=at_least,
        )
        return found if self.is_uniform else found.keep(lower <= upper)
