"""A stream evaluated slice by slice: matches that become final together are those of one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.config import EVER
from uncertain_cep.candidates.selection import reach_of, rows_taken, select
from uncertain_cep.candidates.span_candidates import with_some_ends
from uncertain_cep.config.tuning import FEW_HELD
from uncertain_cep.executor import constants_hold
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.streaming.early_rows import EarlyRows
from uncertain_cep.streaming.event_buffer import UniqueIds
from uncertain_cep.streaming.reoptimisation import Replanning
from uncertain_cep.streaming.single_events import Held, SlicedEvents

__all__ = ["EventsInReach", "SlicedEvaluation"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


class EventsInReach(NamedTuple):
    """Events in reach.

    Attributes
    ----------
    table : pyarrow.Table
    lower, upper : (n,) int64
        Their intervals, ticks.
    waits : (n,) bool
        Which may be the first component's event in matches that are not yielded yet.
    positive : (n,) bool
        Which a positive component can take; others matter to negated components or gaps.
    """

    table: pa.Table
    lower: Int64
    upper: Int64
    waits: Mask
    positive: Mask

    def keep(self, mask: Mask) -> EventsInReach:
        """Return the events where a mask is true."""
        return EventsInReach._make(
            (self.table.filter(pa.array(mask)), *(column[mask] for column in self[1:]))
        )

    @property
    def candidates(self) -> pa.Table:
        """The events that some component takes."""
        return self.table.filter(pa.array(self.positive))

    @classmethod
    def joined(cls, parts: list[EventsInReach]) -> EventsInReach:
        """Return the events of several parts, of at least one."""
        if len(parts) == 1:
            return parts[0]
        tables, *columns = zip(*parts, strict=True)
        return cls(pa.concat_tables(tables).combine_chunks(), *map(np.concatenate, columns))


class SlicedEvaluation:
    """The events in reach, and the matches that are final among them.

    A match is owned by the event of its first component. Once no unseen event is within the window of such an
    event, nor as near as one negated beside a set can be, all its matches are final. The events of which this
    became true together are a slice, which is evaluated as one table with the events in reach of it.

    Parameters
    ----------
    plan : EvaluationPlan
    schema : pyarrow.Schema
        Of the events.
    slice_length : int
        How many ticks the bound on unseen events moves on between the time when matches are final and the
        time when they are yielded; at least 1, with which they are yielded at once.
    early : EarlyRows or None
        Tells rows before their slice is due; None: none are.

    Attributes
    ----------
    planning : Replanning
        How the slices are evaluated.
    size : int
        How many events are held.
    early : EarlyRows or None
    """

    def __init__(
        self, plan: EvaluationPlan, schema: pa.Schema, slice_length: int, early: EarlyRows | None = None
    ) -> None:
        self._plan = plan
        self.planning = Replanning(plan)
        self.early = early
        # In order by their sequences, events can be at one tick.
        has_sequences = plan.names.sequence in plan.clock_columns(schema.names)
        self._branches = [
            branch
            for branch in plan.or_free
            if constants_hold(branch) and (has_sequences or branch.window >= branch.event_order.least_span)
        ]
        self._columns = list(plan.required_columns)
        self._back, self._reach = reach_of(plan)
        self._length = slice_length
        self._ids = UniqueIds(plan)
        nothing: Int64 = np.empty(0, dtype=np.int64)
        nobody: Mask = np.empty(0, dtype=np.bool_)
        empty = schema.empty_table().select(self._columns)
        self._parts = [EventsInReach(empty, nothing, nothing, nobody, nobody)]
        self._schema = empty.schema
        self._rows: list[tuple[Any, ...]] = []
        self._held: list[Held] = []
        self._earliest_end = EVER
        self.size = self._settled = 0

    @property
    def crowded(self) -> bool:
        """Whether so many events came that most of those held may be out of reach."""
        return self.size > 2 * self._settled + FEW_HELD

    def take(self, table: pa.Table, lower: Int64, upper: Int64) -> None:
        """Take the events that matter among those given; ``lower`` and ``upper`` are their intervals, ticks.

        Raises
        ------
        TraceError
            If an event has the id of another one in reach; then none is taken.
        """
        waits = np.zeros(table.num_rows, dtype=np.bool_)
        positive, needed = waits.copy(), waits.copy()
        whole = with_some_ends(table, self._plan.names) if self._plan.lasting else table
        for branch in self._branches:
            for j, rows in enumerate(select(branch, whole, lower, upper, lower, None).rows):
                positive[rows] = True
                if j == 0:
                    waits[rows] = True
            for negation in branch.negations:
                needed[rows_taken(branch, whole, negation.component)] = True
            if branch.query.strategy.endswith("contiguity"):
                needed[:] = True
        new = EventsInReach(table.select(self._columns), lower, upper, waits, positive)
        new = new.keep(positive | needed)
        self._ids.check(lambda: self.candidates, new.candidates)
        if len(new.lower):
            self._gather()
            self._parts.append(new)
            self.size += len(new.lower)
        self._took(new)

    def take_few(self, events: Sequence[Mapping[str, Any]], held: Sequence[Held]) -> bool:
        """Take the events that matter; return False, with nothing done, if an id may not be new."""
        id_ = self._plan.names.id
        ids = [event[id_] for event, one in zip(events, held, strict=True) if one.positive]
        if ids and not self._ids.takes(ids):
            return False
        for event, one in zip(events, held, strict=True):
            if one.positive or one.needed:
                self._rows.append(tuple(map(event.get, self._columns)))
                self._held.append(one)
                self.size += 1
                self._took_alone(one)
        return True

    def looking_at(self, schema: pa.Schema) -> SlicedEvents | None:
        """Return the checks of events before :meth:`take_few`; None if it takes none of this schema."""
        return SlicedEvents.of(self._plan, self._branches, schema)

    def _took(self, events: EventsInReach) -> None:
        """Learn when matches of new events can be due."""
        self._earliest_end = min(self._earliest_end, int(events.upper[events.waits].min(initial=EVER)))

    def _took_alone(self, event: Held) -> None:
        """Do what :meth:`_took` does for one event."""
        if event.waits:
            self._earliest_end = min(self._earliest_end, event.upper)

    def _gather(self) -> None:
        """Put the events that came one by one among the others."""
        if not self._rows:
            return
        values = zip(*self._rows, strict=True)
        columns = [pa.array(part, field.type) for part, field in zip(values, self._schema, strict=True)]
        lower, upper, waits, positive, _ = map(np.array, zip(*self._held, strict=True))
        table = pa.Table.from_arrays(columns, schema=self._schema)
        self._parts.append(EventsInReach(table, lower, upper, waits, positive))
        self._rows, self._held = [], []

    def _joined(self) -> EventsInReach:
        """Return all events held."""
        self._gather()
        return EventsInReach.joined(self._parts)

    @property
    def candidates(self) -> pa.Table:
        """The events held that a component takes."""
        return self._joined().candidates

    def earliest_end(self, safe: int) -> int:
        """Return a tick before which no match to come ends.

        It belongs to an event that waits, or is to come, and ends no earlier than this begins.
        """
        alone = [event.lower for event in self._held if event.waits]
        held = [int(part.lower[part.waits].min(initial=EVER)) for part in self._parts]
        return min([safe, *alone, *held])

    def is_due(self, safe: int) -> bool:
        """Return whether :meth:`advance` would do anything."""
        return self._has_final(safe) or (self.early is not None and self.early.is_due(safe))

    def advance(self, safe: int, *, at_once: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are due, as no event to come begins before the tick ``safe``.

        It is called where :meth:`is_due` says so; with ``at_once`` whatever is final or certain is due.
        """
        early = self.early
        if at_once or self._has_final(safe):
            rows = self._final_rows(safe)
            yield from rows if early is None else early.untold(rows)
        if early is None:
            return
        if safe == EVER:
            early.forget()
        elif at_once or early.is_due(safe):
            yield from self._certain_rows(early, safe)

    def _has_final(self, safe: int) -> bool:
        """Return whether rows are final that have waited long enough."""
        return safe == EVER or self.crowded or safe - self._earliest_end - self._reach >= self._length

    def _final_rows(self, safe: int) -> Iterator[pa.RecordBatch]:
        """Yield the matches of events of which all are final."""
        last = safe == EVER
        events = self._joined()
        owned = events.waits.copy() if last else events.waits & (events.upper < safe - self._reach)
        waiting = events.waits & ~owned
        self._keep(events, waiting, safe)
        if owned.any():
            begin = int(events.lower[owned].min()) - self._back
            end = int(events.upper[owned].max()) + self._reach
            near = (events.upper >= begin) & (events.lower <= end)
            yield from self.planning.execute(events.table.filter(pa.array(near)), owned[near])

    def _certain_rows(self, early: EarlyRows, safe: int) -> Iterator[pa.RecordBatch]:
        """Yield the matches that are certain, of events that wait."""
        events = self._joined()
        if events.waits.any():
            yield from early.certain(events.table, safe, owned=events.waits)

    def _keep(self, events: EventsInReach, waits: Mask, safe: int) -> None:
        """Keep the events in reach of the first events of matches to come."""
        first = EVER if safe == EVER else min(int(events.lower[waits].min(initial=EVER)), safe)
        self._parts = [events._replace(waits=waits).keep(events.upper >= first - self._back)]
        self.size = self._settled = len(self._parts[0].lower)
        self._earliest_end = int(events.upper[waits].min(initial=EVER))
