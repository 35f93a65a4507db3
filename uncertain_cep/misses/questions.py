"""A question of misses: the query without what only orders its answer, and the events."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.event_times import EventTimes, event_times
from uncertain_cep.candidates.existence import existence
from uncertain_cep.candidates.marginals import with_marginals
from uncertain_cep.candidates.own_times import OffsetBounds, offsets_named
from uncertain_cep.errors import UncertainCepWarning
from uncertain_cep.executor import check_table, execute_within
from uncertain_cep.misses.span_ends import SpanEnds
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan, plan_of_branch
from uncertain_cep.query import Query, bind
from uncertain_cep.query.binder import BoundQuery
from uncertain_cep.timeline.domain import TimeDomain
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS, format_duration

__all__ = ["ABSENT", "ROW", "Choice", "Question", "quietly"]

Int64 = NDArray[np.int64]

ROW: Final = "uncertain_cep.misses.row"
"""The column with the numbers of the events, which stand for ids."""

ABSENT: Final = "uncertain_cep.misses.absent"
"""The name of a column that no table has."""

Choice = dict[str, tuple[int, ...]]
"""The rows of the events of each variable that takes some."""


@contextmanager
def quietly() -> Iterator[None]:
    """Leave out our warnings: the query itself has warned of what there is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncertainCepWarning)
        yield


def length_text(nanoseconds: int) -> str:
    """Return a length of time as people write it, with at most three decimals where it is so exact.

    >>> [length_text(n) for n in (15 * 10**9, 4_204_000_000, 204_000_000, 60 * 10**9, 1_000_000_001)]
    ['15s', '4.204s', '204ms', '1min', '1000000.001us']
    """
    for unit in ("s", "ms", "us"):
        length = UNIT_NANOSECONDS[unit]
        amount = Decimal(nanoseconds) / length
        if nanoseconds >= length and nanoseconds % length and not amount * 1000 % 1:
            return f"{amount.normalize():f}{unit}"
    return format_duration(nanoseconds)


def bare(query: Query) -> Query:
    """Return a query without what chooses among its matches or says how they are shown."""
    shown = {"returns": (), "expected_count": None, "probability": None}
    chosen = {"min_confidence": None, "limit": None, "non_overlapping": False, "having": None}
    return replace(query, **shown, **chosen, order_by_confidence=False, order_by=())  # type: ignore[arg-type]


@dataclass(frozen=True)
class Question:
    """A query and events, on which the engine is asked about branches of the query."""

    plan: EvaluationPlan
    table: pa.Table
    """The events, with the column `ROW`."""
    options: MatchOptions
    window: int
    """WITHIN, in ticks, as the query has it."""

    @classmethod
    def of(cls, query: Query, table: pa.Table, options: MatchOptions) -> Question:
        """Return the question of a query about a table of events.

        Raises
        ------
        QueryError, TraceError, OptionError
            As :func:`uncertain_cep.match` does.
        """
        table = table.append_column(ROW, pa.array(np.arange(table.num_rows), pa.int64()))
        options = replace(options, confidence=True, max_matches=None)
        plan = make_plan(bare(query), table.schema, options)
        check_table(plan, table)
        with quietly():
            window = bind(bare(query), table.schema, options.names, plan.domain).window
        return cls(plan, table, options, window)

    @cached_property
    def branches(self) -> tuple[EvaluationPlan, ...]:
        """The plans without OR and options that stand for the query; of countless readings some.

        Of events that are not to overlap one is before the other: a plan for each of both.
        """
        return tuple(side for branch in self.plan.or_free for side in self._sides(branch))

    def _sides(self, branch: EvaluationPlan) -> Iterator[EvaluationPlan]:
        """Yield a branch, or one for each order of the events that are not to overlap."""
        apart = [part.apart for part in branch.bound.times if part.apart is not None]
        numbers = list(dict.fromkeys(number for number, _ in apart))
        if not numbers:
            yield branch
            return
        for chosen in product((0, 1), repeat=len(numbers)):
            held = set(zip(numbers, chosen, strict=True))
            times = tuple(
                part if part.apart is None else replace(part, apart=None, comparison=">=", ticks=1)
                for part in branch.bound.times
                if part.apart is None or part.apart in held
            )
            yield plan_of_branch(
                replace(branch.bound, times=times, window=self.window), self.table.schema, self.plan.domain,
                self.options, self.plan.shared_attributes,
            )  # fmt: skip

    def plan_of(
        self, bound: BoundQuery, options: MatchOptions, table: pa.Table, domain: TimeDomain | None = None
    ) -> EvaluationPlan:
        """Return the plan of an OR-free query that gives the numbers of rows for ids."""
        options = replace(options, names=replace(options.names, id=ROW))
        return plan_of_branch(
            bound, table.schema, domain or self.plan.domain, options, self.plan.shared_attributes
        )

    def choices(
        self, plan: EvaluationPlan, table: pa.Table, limit: int
    ) -> Iterator[tuple[Choice, dict[str, Any]]]:
        """Yield matches of an OR-free plan: rows by variable, and all columns."""
        options = replace(self.options, batch_rows=max(limit, 1), threads=1)
        for batch in execute_within(plan, table, options, None):
            for record in batch.to_pylist():
                values = {part.variable: record[part.variable] for part in plan.components}
                yield (
                    {name: tuple(row) if isinstance(row, list) else (row,) for name, row in values.items()},
                    record,
                )

    @cached_property
    def offsets(self) -> OffsetBounds | None:
        """The clocks of the events; None if they name none, or these are not looked at."""
        return self._event_times.offsets

    @cached_property
    def times(self) -> tuple[Int64, Int64]:
        """Bounds of the times of all events, ticks, without those of probability 0 at the ends."""
        return self._event_times.lower, self._event_times.upper

    @property
    def ends(self) -> SpanEnds | None:
        """The begins and ends of events; None if no event lasts."""
        return self._times_and_ends[1]

    @property
    def is_countless(self) -> bool:
        """Whether the query has more readings than those looked at."""
        return self.plan.open_readings is not None

    def near(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return the rows of the events that can be at ticks from the one to the other, and of those beside.

        Where sequences tell an order all events are: any may be in order with those.
        """
        if self.plan.clock_names.sequence is not None:
            return np.arange(self.table.num_rows)
        lower, upper = self.times
        return np.flatnonzero((upper >= begin) & (lower <= end))

    def reach(self) -> int:
        """Return the ticks that a match can span, of a trace that is shorter than the window no more."""
        lower, upper = self.times
        return min(self.window, int(upper.max()) - int(lower.min()) + 1)

    @property
    def _event_times(self) -> EventTimes:
        return self._times_and_ends[0]

    @cached_property
    def _times_and_ends(self) -> tuple[EventTimes, SpanEnds | None]:
        table = with_marginals(self.plan, self.table)
        if not self.plan.lasting:
            return event_times(self.plan, table), None
        ends, times = SpanEnds.of(self.plan, table, offsets_named(self.plan, table))
        return times, ends

    @cached_property
    def probability(self) -> NDArray[np.float64]:
        """(n,) float64. The probability that each event happened."""
        exists = existence(self.table, self.plan.names.probability)
        return np.ones(self.table.num_rows) if exists is None else exists.probability

    def id_of(self, row: int) -> Any:
        """Return the id of an event."""
        return self.table.column(self.plan.names.id)[row].as_py()

    def type_of(self, row: int) -> str:
        """Return the type of an event."""
        return str(self.table.column(self.plan.names.type)[row].as_py())

    def duration(self, ticks: int | None) -> str | None:
        """Return a number of ticks as a length of time; None if that is not known."""
        length = self.plan.domain.tick_nanoseconds
        return None if ticks is None or length is None else length_text(ticks * length)

    def amount(self, ticks: int) -> str:
        """Return a number of ticks in words."""
        return self.duration(ticks) or f"{ticks:,} tick{'' if ticks == 1 else 's'}"
