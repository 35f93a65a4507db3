"""Skip till next match on the join of candidates: pruning limits, and confidences with forbidden events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import CostlyMatchError, Limits, Pmfs
from eventbased.gaps.few_forbidden import FewForbidden
from eventbased.gaps.likely_limits import likely_limits
from eventbased.gaps.nearest import filter_gaps
from eventbased.gaps.next_match import Bytecode, EventArrays, NextConfidences, next_limits
from eventbased.gaps.survival_tables import Classes
from eventbased.joins.join_state import JoinBytecode
from eventbased.layout import Candidates
from uncertain_cep.candidates.existence import Existence
from uncertain_cep.candidates.layout import Layout
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.config.limits import MOST_CONFIDENCE_STEPS
from uncertain_cep.operators.costly_matches import too_dear
from uncertain_cep.plan import EvaluationPlan

__all__ = ["NextMatches"]

Int64 = NDArray[np.int64]


class NextMatches:
    """Matches under skip till next match among the candidates of one layout.

    The first order of the bytecode is that of the pattern; the table is for error messages.
    """

    limit: Int64
    """(n,) int64. For :func:`eventbased.join`."""

    def __init__(
        self,
        plan: EvaluationPlan,
        table: pa.Table,
        layout: Layout,
        bytecode: JoinBytecode,
        pmfs: ExplicitPmfs | None,
        existence: Existence | None = None,
    ) -> None:
        self._plan, self._table = plan, table
        candidates, rows, shared = layout.candidates, layout.rows, layout.shared
        lower, upper = candidates.lower, candidates.upper
        self._classes = Classes(
            candidates.first_class, candidates.class_start, candidates.class_stop, candidates.class_longest,
        )  # fmt: skip
        start = bytecode.start[0]
        self._plain = start[:-1] == start[1:]
        self.limit = np.empty(len(rows), dtype=np.int64)
        # An event that may not have happened rules out nothing that comes behind it.
        happened = existence is None
        prunable = self._plain & happened
        next_limits(*self._classes[:3], lower, upper, prunable, self.limit)
        offset = np.full(len(rows), -1) if pmfs is None else pmfs.offset[rows]
        values = np.zeros(0) if pmfs is None else pmfs.values
        self._pmfs = Pmfs.of(values, lower, upper, offset)
        self._events = EventArrays(lower, upper, rows, shared.event >= 0, offset, np.arange(len(rows)))
        self._others = self._events
        if existence is not None:
            self._pmfs, forbidding = existence.forbidding(self._pmfs, offset, rows)
            self._others = self._events._replace(pmf_offset=forbidding)
        self._few = None
        self._uniform = pmfs is None and happened
        if self._uniform and self._plain[1:].all():
            self._few = FewForbidden(len(plan.components), layout.w, lower, upper, rows, self._classes)
        self._candidates, self._w, self._shared = candidates, layout.w, shared.event
        self._bytecode = Bytecode(start, *bytecode[1:])
        # Where all intervals are equally long, the limits use all that one event in a gap tells.
        self._limits_suffice = not _vary(candidates)
        limits = Limits(float(MOST_CONFIDENCE_STEPS), *plan.estimates)
        self._confidences = NextConfidences(len(plan.components), layout.w, limits)

    def likely_limits(self, need: float) -> Int64:
        """Return :attr:`limit` for matches that can reach a confidence."""
        if not self._uniform:
            return self.limit
        return likely_limits(self._candidates, self._shared, self._plain, need, self.limit)

    def likely(self, matches: Int64, need: float) -> Int64:
        """Return the matches, (l, m) int64 candidates, that can reach a confidence.

        They are those of a join with :meth:`likely_limits`.
        """
        if not self._uniform or self._limits_suffice:
            return matches
        return filter_gaps(matches, self._candidates, self._events.event, self._w, self._plain, need)

    def describe(
        self,
        matches: Int64,
        lower: Int64,
        upper: Int64,
        confidence: NDArray[np.float64],
        std_error: NDArray[np.float64],
    ) -> None:
        """Fill time ranges and confidences of matches, (l, m) int64 candidates.

        A match that cannot happen gets an empty range; the standard error is 0 where a confidence is exact.
        """
        std_error[:] = 0.0
        left = np.ones(matches.shape[1], dtype=np.bool_)
        if self._few is not None:
            left = ~self._few.describe(matches, lower, upper, confidence)
        others, out = matches, (lower, upper, confidence, std_error)
        if not left.all():
            others = np.ascontiguousarray(matches[:, left])
            out = lower[left], upper[left], confidence[left], std_error[left]
        group = np.zeros(others.shape[1], dtype=np.int64)
        try:
            if len(group):
                self._confidences.describe(
                    others, group, self._events, self._others, self._classes, self._pmfs, self._bytecode, out
                )
        except CostlyMatchError as error:
            ids = self._table.column(self._plan.names.id).take(pa.array(error.events)).to_pylist()
            raise too_dear(self._plan, ids, error.steps) from None
        if others is not matches:
            lower[left], upper[left], confidence[left], std_error[left] = out
        shift = self._candidates.base[matches[0]]
        lower -= shift
        upper -= shift


def _vary(candidates: Candidates) -> bool:
    """Return whether intervals of some class differ in length."""
    return bool((candidates.class_shortest != candidates.class_longest).any())
