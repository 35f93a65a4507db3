"""The events of a stream that matches to come may still name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.pools import grown
from uncertain_cep.config.tuning import FEW_HELD
from uncertain_cep.errors import TraceError
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.projection import shows_ids_alone
from uncertain_cep.traces.checks import check_ids

__all__ = ["RetainedEvents", "UniqueIds"]

Int64 = NDArray[np.int64]


class UniqueIds:
    """The check that new events have ids that no other event has."""

    def __init__(self, plan: EvaluationPlan) -> None:
        self._names = plan.names
        self._partition = plan.partition_attributes
        self._largest: int | None = None

    def check(self, retained: Callable[[], pa.Table], new: pa.Table) -> None:
        """Check that no new event has the id of a retained one in its partition.

        Parameters
        ----------
        retained : callable
            Returns the retained events; called only if the ids alone leave it open.
        new : pyarrow.Table
            Their ids are unique among themselves.

        Raises
        ------
        TraceError
            With each event whose id is that of a retained one.

        Notes
        -----
        O(new) for int64 ids that keep rising, else O(retained + new).
        """
        if self._rising(new.column(self._names.id)):
            return
        names = list(dict.fromkeys((self._names.id, *self._partition)))
        both = pa.concat_tables([retained().select(names), new.select(names)])
        faults = check_ids(both, self._names, partition=self._partition)
        if faults:
            # The row would be that of the retained event; the value says which event is meant.
            raise TraceError([replace(fault, row=None) for fault in faults])

    def takes(self, ids: Sequence[int]) -> bool:
        """Return whether ids, which differ, are new by their values alone, and learn them then."""
        if self._largest is not None and min(ids) <= self._largest:
            return False
        self._largest = max(ids)
        return True

    def _rising(self, ids: pa.ChunkedArray) -> bool:
        if not pa.types.is_int64(ids.type) or not len(ids):
            return False
        values = np.asarray(ids.to_numpy())
        largest_before = self._largest
        self._largest = max(
            int(values.max()), int(values.max()) if largest_before is None else largest_before
        )
        return largest_before is None or int(values.min()) > largest_before


class RetainedEvents:
    """The events in reach, numbered as they come, with the columns that the result shows.

    Parameters
    ----------
    plan : EvaluationPlan
    schema : pyarrow.Schema
        Of the events.
    """

    def __init__(self, plan: EvaluationPlan, schema: pa.Schema) -> None:
        names = dict.fromkeys((plan.names.id, *plan.partition_attributes, *plan.bound.returned_columns))
        if plan.bound.times or plan.bound.returns_times:
            names |= dict.fromkeys(plan.required_columns)
        if plan.names.probability in schema.names:
            names[plan.names.probability] = None
        self._names = tuple(names)
        self._table: pa.Table = pa.schema([schema.field(name) for name in names]).empty_table()
        self._alone: tuple[list[Any], ...] = tuple([] for _ in names)
        self._numbers: Int64 = np.zeros(0, dtype=np.int64)
        self._next = 0
        # Ids by number, from a first number on; None where the result shows more of an event than its id.
        ids_alone = shows_ids_alone(plan, schema) and plan.names.probability not in schema.names
        ids_alone = ids_alone and not plan.bound.times
        self._shown: Int64 | None = self._numbers if ids_alone else None
        self._shown_from = 0
        self._settled = 0
        self._ids = UniqueIds(plan)
        self._id = plan.names.id

    def __len__(self) -> int:
        return len(self._numbers) + len(self._alone[0])

    @property
    def table(self) -> pa.Table:
        """Ids, partition attributes and what RETURN mentions."""
        self._gather()
        return self._table

    def _gather(self) -> None:
        """Add the events that came one by one to the table."""
        if self._alone[0]:
            schema = self._table.schema
            columns = [
                pa.array(values, field.type) for values, field in zip(self._alone, schema, strict=True)
            ]
            self._next -= len(columns[0])
            for values in self._alone:
                values.clear()
            self.append(pa.Table.from_arrays(columns, schema=schema))

    def check_unique(self, table: pa.Table) -> None:
        """Check that no new event has the id of one that is retained; see :class:`UniqueIds`."""
        self._ids.check(lambda: self.table, table)

    def append(self, table: pa.Table) -> Int64:
        """Retain events and return their numbers, (n,) int64."""
        new = table.select(self._table.column_names)
        self._table = pa.concat_tables([self.table, new]).combine_chunks()
        numbers = np.arange(self._next, self._next + table.num_rows)
        self._numbers = np.concatenate((self._numbers, numbers))
        self._next += table.num_rows
        self._show(numbers - self._shown_from, new.column(self._id))
        return numbers

    def append_few(self, events: Sequence[Mapping[str, Any]]) -> range | None:
        """Retain events and return their numbers; None, without retaining any, if an id may not be new."""
        ids = [event[self._id] for event in events]
        if not self._ids.takes(ids):
            return None
        for name, values in zip(self._names, self._alone, strict=True):
            values += [event.get(name) for event in events]
        numbers = range(self._next, self._next + len(events))
        self._next = numbers.stop
        self._show(slice(numbers.start - self._shown_from, numbers.stop - self._shown_from), ids)
        return numbers

    def _show(self, places: Any, ids: Any) -> None:
        """Note the ids of the last events at their places."""
        if self._shown is not None:
            self._shown = grown(self._shown, self._next - self._shown_from)
            self._shown[places] = ids

    def named(self, numbers: Int64) -> tuple[Int64, bool]:
        """Return the ids of these events, or else their rows in ``table``; and whether these are ids."""
        if self._shown is None:
            return self.rows(numbers), False
        return self._shown[numbers - self._shown_from], True

    def rows(self, numbers: Int64) -> Int64:
        """Return the rows of ``table`` that hold the events of these numbers. O(numbers + span retained)."""
        self._gather()
        first = int(self._numbers[0])
        row = np.empty(self._next - first, dtype=np.int64)
        row[self._numbers - first] = np.arange(len(self._numbers))
        return np.asarray(row[numbers - first])

    @property
    def crowded(self) -> bool:
        """Whether so many events came that most of those retained may be out of reach."""
        return len(self) > 2 * self._settled + FEW_HELD

    def keep(self, numbers: Int64) -> None:
        """Drop all events but those of these numbers, which may repeat."""
        kept = np.unique(numbers)
        self._table = self.table.take(pa.array(self.rows(kept))) if len(kept) else self.table.slice(0, 0)
        if self._shown is not None:
            first = int(kept[0]) if len(kept) else self._next
            self._shown = self._shown[first - self._shown_from : self._next - self._shown_from].copy()
            self._shown_from = first
        self._numbers = kept
        self._settled = len(kept)
