"""Rows of a stream that are told before all rows of their slice are final, each once.

A row is *certain* once no event to come can take it out of the answer. Let no unseen event begin before the
tick ``safe``. Then all events up to T = safe - 1 are known; where sequences put events of one tick in order,
those up to T = safe - 2 with all that can be before them.

*Matches.* A match of seen events is decided if none of its gaps ends behind T in a world in which it is a
match (:mod:`uncertain_cep.plan.gap_ends`). An unseen event is at T + 1 or later in each world, so it is in
none of these gaps, and times of events do not depend on each other but by offsets, whose law an event to come
does not change. So in each world seen events alone say whether a decided match is one: its row is final.
Without negations and under skip till any match there are no gaps, and each match of seen events is decided.

*Probabilities.* Let N be the number of matches of a group, and bucket, in a world, and D that of those that
are decided. Each decided match is a match whatever is to come, and its group is told by the attributes of its
events. So D <= N, hence P(D >= k) <= P(N >= k). The left side is computed from seen events: it is a lower
bound of the answer, and the one of a later tick is no less, as a decided match stays decided. A condition of
HAVING that asks of the probability nothing but ``>= x`` and ``> x``, joined by AND and OR, and is met by a
lower bound, is met by the probability. Where skip till next match is read as skip till any match, and fewer
events in place of repeated ones, the probabilities of the two queries are the same, and so are these bounds.

Two probabilities that are computed in different ways differ by rounding. So a bound has to reach x with half
of the tolerance of HAVING to spare.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.config import EVER
from uncertain_cep.candidates.diagnosed_events import EventsLookedAt
from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.config.tolerances import CONFIDENCE_TOLERANCE
from uncertain_cep.errors import ConfidenceCostError, UncertainCepWarning
from uncertain_cep.executor import execute
from uncertain_cep.occurrence.undecided_rows import is_met_by_more
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.grouping import BOUND_COLUMNS
from uncertain_cep.plan.result_columns import CONFIDENCE
from uncertain_cep.query import Query
from uncertain_cep.results.having import rows_kept
from uncertain_cep.timeline.domain import TimeDomain
from uncertain_cep.traces.held_rows import naming_no_rows

__all__ = ["EarlyRows", "why_not_early"]

_Rows = TypeVar("_Rows", pa.RecordBatch, pa.Table)
_NEVER_LOOKED: Final = -(2**62)


def why_not_early(plan: EvaluationPlan) -> str:
    """Return why no row is certain before it is final; an empty text if one may be."""
    if plan.approximate is not None:
        return "an estimate is no bound: leave out approximate="
    if plan.is_grouped and (plan.having is None or not is_met_by_more(plan.having)):
        return (
            "a probability may still rise: ask HAVING PROBABILITY >= x, which stays true, and nothing else "
            "of the probability"
        )
    return ""


class EarlyRows:
    """Tells rows that are certain, and keeps in mind which, as they come again with those of their slice.

    Parameters
    ----------
    plan : EvaluationPlan
        One against which :func:`why_not_early` has nothing.
    query : Query
        As it was written.
    schema : pyarrow.Schema
        Of the events.
    options : MatchOptions
    length : int or None
        How many ticks the bound on unseen events moves on between two looks; None: only callers look.

    Attributes
    ----------
    undecided_count : int
        Matches that were undecided at the last look.
    """

    def __init__(
        self,
        plan: EvaluationPlan,
        query: Query,
        schema: pa.Schema,
        options: MatchOptions,
        length: int | None,
    ) -> None:
        self._plan, self._length = plan, length
        self._written = query, schema, options
        self._decided_plan: EvaluationPlan | None = None
        self._looked = _NEVER_LOOKED
        self.undecided_count = 0
        self._counts: Counter[tuple[Any, ...]] = Counter()
        self._has_sequences = plan.names.sequence in plan.clock_columns(schema.names)
        columns = plan.batch_schema
        if plan.is_grouped:
            columns = pa.schema(list(columns)[: len(plan.bound.keys) + (plan.bound.every is not None)])
        # Floating-point columns of a match follow from its events, up to rounding.
        is_key = [plan.is_grouped or not pa.types.is_floating(field.type) for field in columns]
        self._key = [field.name for field, keeps in zip(columns, is_key, strict=True) if keeps]

    @property
    def size(self) -> int:
        """How many rows were told that are to come again."""
        return self._counts.total()

    def is_due(self, safe: int) -> bool:
        """Return whether it is time to look, as no event to come begins before the tick ``safe``."""
        return self._length is not None and safe != EVER and safe - self._looked >= self._length

    def certain(
        self,
        table: pa.Table,
        safe: int,
        owned: NDArray[np.bool_] | None = None,
        buckets: tuple[int, int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are certain and were not told; parameters as for ``execute``.

        A row that costs too much is left to those that are final.
        """
        self._looked = safe
        plan, undecided = self._plan_until(safe - 2 if self._has_sequences else safe - 1), _Undecided()
        try:
            with naming_no_rows(plan.names, plan.partition_attributes):
                batches = list(execute(plan, table, owned=owned, buckets=buckets, diagnostics=undecided))
        except ConfidenceCostError:
            return
        self.undecided_count = undecided.count
        before = self._counts.copy()
        for batch in batches:
            rows = self._reached(batch) if plan.is_grouped else batch
            new = _counted(rows, self._keys(rows), before, counted=False)
            self._counts.update(self._keys(new))
            yield new

    def untold(self, batches: Iterable[_Rows]) -> Iterator[_Rows]:
        """Yield rows that are final, but for those that were told."""
        for batch in batches:
            counts = self._counts
            yield _counted(batch, self._keys(batch), counts, counted=False) if counts else batch
        self._counts = +self._counts

    def remember(self, rows: pa.Table) -> None:
        """Remember rows that were told, of the columns of :meth:`certain`."""
        self._counts.update(self._keys(rows))

    def remembered(self, rows: pa.Table) -> pa.Table:
        """Select the rows that were told and are to come again."""
        return _counted(rows, self._keys(rows), self._counts.copy(), counted=True)

    def forget(self) -> None:
        """Forget all rows, as none is to come."""
        self._counts.clear()
        self.undecided_count = 0

    def _plan_until(self, end: int) -> EvaluationPlan:
        """Return the plan of the rows that are certain where all events up to a tick are known."""
        if self._decided_plan is None:
            self._decided_plan = self._made()
        plan = self._decided_plan
        return plan if plan.known_until is None else _known_until(plan, end)

    def _made(self) -> EvaluationPlan:
        """Return that plan, with some known end if anything can spoil a match."""
        plan = self._plan
        query, schema, options = self._written
        if any(part.forbids for part in plan.or_free):
            end = 0 if plan.domain.unit == "tick" else "1970-01-01"
            options = replace(options, known_until=end)
        with warnings.catch_warnings():
            # They were given with the plan of final rows.
            warnings.simplefilter("ignore", UncertainCepWarning)
            made = make_plan(query, schema, options, evaluation="auto")
        return replace(made, having=None) if made.is_grouped else made

    def _reached(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the groups whose lower bound meets HAVING, with what is known of their probabilities."""
        having, names = self._plan.having, rows.schema.names
        assert having is not None
        place = names.index(BOUND_COLUMNS[0]) - 2
        bound = rows.column(BOUND_COLUMNS[0])
        lowered = rows.set_column(
            place, CONFIDENCE.name, pc.multiply(bound, 1.0 - 0.5 * CONFIDENCE_TOLERANCE)
        )
        rows = rows.filter(pa.array(rows_kept(having, lowered, {})))
        count = rows.num_rows
        columns = {
            names[place]: pa.nulls(count, pa.float64()),
            "exact": pa.array(np.zeros(count, dtype=np.bool_)),
            BOUND_COLUMNS[1]: pa.array(np.ones(count)),
        }
        return pa.RecordBatch.from_arrays(
            [columns.get(name, rows.column(name)) for name in names], schema=rows.schema
        )

    def _keys(self, rows: pa.RecordBatch | pa.Table) -> list[tuple[Any, ...]]:
        """Return a key of each row, the same whenever it comes."""
        columns = [list(map(_hashable, rows.column(name).to_pylist())) for name in self._key]
        return list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows


class _Undecided(Diagnostics):
    """Counts undecided matches, and says nothing: of some events of a stream nothing follows."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def about(self, plan: EvaluationPlan) -> None:
        """Learn nothing."""

    def look_at(self, events: EventsLookedAt) -> None:
        """Look at nothing."""

    def counted(self, plan: EvaluationPlan, sizes: Sequence[int]) -> None:
        """Count no candidates."""

    def undecided(self, domain: TimeDomain, end: int, count: int, *, partly: bool = False) -> None:  # noqa: ARG002
        """Count matches."""
        self.count += count


def _known_until(plan: EvaluationPlan, end: int) -> EvaluationPlan:
    """Return a plan with a known end, in place of another one."""
    return replace(
        plan,
        known_until=end,
        by_row=None if plan.by_row is None else _known_until(plan.by_row, end),
        branches=tuple(_known_until(branch, end) for branch in plan.branches),
    )


def _counted(
    rows: _Rows, keys: list[tuple[Any, ...]], counts: Counter[tuple[Any, ...]], *, counted: bool
) -> _Rows:
    """Return the rows that are counted, or the others, and count these down."""
    kept = np.full(rows.num_rows, not counted)
    for place, key in enumerate(keys):
        if counts[key]:
            counts[key] -= 1
            kept[place] = counted
    return rows if kept.all() else rows.filter(pa.array(kept))


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return "NaN" if value != value else value
