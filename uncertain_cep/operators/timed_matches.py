"""Events that may lie in a gap of a match with conditions on times, one match after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import CostlyMatchError, Pmfs
from confidence.budget import checkpoint, steps_per_call
from confidence.chain.distribution import Intervals
from confidence.gaps.chains import room_for
from confidence.predicates.conditions import Conditions, Scratch
from confidence.timed.factors import TooManyCellsError
from eventbased.gaps.gap_events import (
    NO_OFFSETS,
    ForbiddenEvents,
    GapRules,
    Gathered,
    HeldOffsets,
    MatchEvents,
    Placed,
    by_counts,
)
from eventbased.gaps.shape_rules import NOT_DONE, forbidden_by_rule
from uncertain_cep.candidates.existence import Existence
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.weighers.one_match import TimedMatch
from uncertain_cep.weighers.shapes import Shapes
from uncertain_cep.weighers.templates import TimeTemplates

__all__ = ["TimedLists"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class TimedLists:
    """Lists of what may stand for a compressed Kleene component, under conditions on times.

    ``conditions`` decide what may.
    """

    def __init__(
        self,
        plan: EvaluationPlan,
        table: pa.Table,
        rules: GapRules,
        conditions: Conditions | None,
        window: int,
        existence: Existence | None = None,
    ) -> None:
        self._plan, self._conditions, self._window = plan, conditions, window
        self._templates = TimeTemplates(plan, table)
        self._shapes = Shapes(plan, self._templates, rules, conditions, window)
        self._mark = np.full(table.num_rows, -1, dtype=np.int64)
        self._room = 64
        self._probability = None if existence is None else existence.probability

    def describe_lists(
        self,
        matches: MatchEvents,
        candidates: Placed,
        offsets: Int64,
        pools: ForbiddenEvents,
        pmfs: Pmfs,
        scratch: Scratch,
        out: tuple[NDArray[Any], ...],
        list_start: Int64,
    ) -> Int64:
        """Fill ranges and sums of matches; return the rows of the events that can be in the gap of each.

        Parameters are those of :func:`eventbased.gaps.compressed.compressed_matches`.

        Raises
        ------
        CostlyMatchError
            If the tables of a match have too many cells.
        """
        rows: list[int] = []
        for counts, chosen in by_counts(matches, len(self._plan.components)):
            shape = self._shapes.of(counts)
            for n in chosen.tolist():
                checkpoint()
                match = TimedMatch(
                    self._templates,
                    shape,
                    matches,
                    n,
                    candidates,
                    offsets,
                    pmfs,
                    NO_OFFSETS,
                    self._probability,
                )
                gather = partial(self._gathered, pools, matches, n, candidates, scratch, offsets, NO_OFFSETS)
                with _costly(n):
                    found, out[0][n], out[1][n], out[2][:, n] = match.listed(gather)
                rows += found
                list_start[n + 1] = len(rows)
        return np.array(rows, dtype=np.int64)

    def _gathered(
        self,
        pools: ForbiddenEvents,
        matches: MatchEvents,
        n: int,
        candidates: Placed,
        scratch: Scratch,
        offsets: Int64,
        held: HeldOffsets,
        rule_rows: Int64,
    ) -> tuple[list[tuple[int, int, int, int]], NDArray[np.bool_]]:
        """Return the forbidden events of match n, see :data:`uncertain_cep.weighers.one_match.Gather`."""
        size = int(matches.start[n + 1] - matches.start[n])
        # Behind the events, as all_hold has the negated ones.
        start = len(scratch.element) - len(self._plan.negations)
        rule_rows[:, 3] = np.where(rule_rows[:, 3] < -1, start - rule_rows[:, 3] - 2, rule_rows[:, 3])
        progress = np.zeros(2, dtype=np.int64)
        match = Intervals(*np.empty((3, size), dtype=np.int64))
        kernel: Any = forbidden_by_rule
        while True:
            gathered = Gathered(self._mark, offsets, room_for(self._room, len(rule_rows)), held)
            found = NOT_DONE
            while found == NOT_DONE:
                checkpoint()
                scratch.steps[0] = 0
                found = kernel(
                    pools, matches, n, candidates, rule_rows, self._conditions, scratch, gathered, match,
                    steps_per_call(), progress,
                )  # fmt: skip
            if found >= 0:
                events = gathered.forbidden
                columns = events.event, events.offset, events.lower, events.upper
                laws = zip(*(column[:found].tolist() for column in columns), strict=True)
                return list(laws), events.gaps[:found]
            self._room *= 4


@contextmanager
def _costly(n: int) -> Iterator[None]:
    """Say that it is a match that takes too many cells."""
    try:
        yield
    except TooManyCellsError as error:
        raise CostlyMatchError(n, int(min(error.cells, 2.0**62))) from None
