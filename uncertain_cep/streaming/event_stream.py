"""The common part of matchers over a stream: events checked once, late ones set aside, state as bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import Any, ClassVar, Final, Generic, NoReturn, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.boundary import public
from uncertain_cep.candidates.marginals import with_marginals
from uncertain_cep.candidates.span_times import check_spans
from uncertain_cep.errors import OptionError
from uncertain_cep.executor import check_table, ticks_of
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.streaming.arrived_rows import ArrivedRows
from uncertain_cep.streaming.duplicate_ids import duplicate_error
from uncertain_cep.streaming.given_events import events_given, length_of_tick, tick_given
from uncertain_cep.streaming.single_events import PlainEvents, plain_rows
from uncertain_cep.streaming.snapshots import packed_snapshot, unpacked_snapshot
from uncertain_cep.streaming.watermark import ArrivalPromise

__all__ = ["EventStream"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
AnswerT = TypeVar("AnswerT")

_FEW_ROWS: Final = 50
"""Events of a call up to which Python's own values are cheaper than arrays of them."""


class EventStream(ABC, Generic[AnswerT]):
    """Takes events as they arrive, and gives answers that became final to its callers, each once.

    A subclass computes the answers of events that are checked and on time, in parts of a kind of its own.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the events.
    plan : EvaluationPlan
        One of those that are evaluated: it tells the names of columns, and what a tick is.
    promise : ArrivalPromise
    duplicates : {"error", "drop"}
    """

    _HELD: ClassVar[tuple[str, ...]] = (
        "late_count", "duplicate_count", "_length_of_tick", "_late", "_waiting", "_promise",
    )  # fmt: skip
    """The attributes that change with the events, beside those that a subclass packs."""

    def __init__(
        self, schema: pa.Schema, plan: EvaluationPlan, promise: ArrivalPromise, duplicates: str
    ) -> None:
        if duplicates not in ("error", "drop"):
            raise OptionError(f"duplicates={duplicates!r} is unknown: use error or drop")
        self.schema, self._plan, self._promise = schema, plan, promise
        self._length_of_tick = plan.domain.tick_nanoseconds
        self.late_count = self.duplicate_count = 0
        self._late: list[pa.Table] = []
        self._waiting: list[AnswerT] = []
        self._copies = ArrivedRows(schema, plan.names.id) if duplicates == "drop" else None
        self._plain = PlainEvents.of(plan, schema)
        self._closed = False

    @property
    def late(self) -> pa.Table:
        """The late events, in the order of arrival, with all their columns, since :meth:`take_late`."""
        return pa.concat_tables([self.schema.empty_table(), *self._late])

    @public
    def take_late(self) -> pa.Table:
        """Return the late events since the last call, and drop them."""
        taken = self.late
        self._late.clear()
        return taken

    @public
    def push(self, events: Any) -> pa.RecordBatch:
        """Take events in the order of arrival, and return the matches or alerts that became final.

        Parameters
        ----------
        events : pyarrow.Table or RecordBatch, pandas or Polars DataFrame, or mapping
            With at least the columns of ``schema``; a mapping of column to value is one event. Large
            batches are cheaper by event than small ones; few events are looked at one by one.

        Returns
        -------
        pyarrow.RecordBatch
            With the columns of :func:`uncertain_cep.match`.

        Raises
        ------
        TraceError
            If the events are not as described; no event of the call is taken then. If one has the id of
            another one in reach (in its partition), and is no copy that is dropped; the other events are
            taken, and what became final with them comes with the next call. Or if a match with an
            explicit pmf reaches over too many ticks.
        ConfidenceCostError
            If a confidence costs too much and no estimate is allowed.
        OptionError
            If the stream was closed, or an earlier call failed while it computed matches.
        """
        self._check_open()
        taken = events if isinstance(events, Mapping) else events_given(events, self.schema)
        outcome = self._taken_as_few(taken)
        if outcome is None:
            taken = self._checked(taken)
            outcome = self._take_table(taken)
        answers, refused = outcome
        if refused is not None:
            self._refusing(refused, events_given(taken, self.schema), answers)
        return self._released(answers)

    @public
    def heartbeat(
        self, time: int | datetime | np.datetime64, *, of_type: str | None = None
    ) -> pa.RecordBatch:
        """Learn that no event is to come that could be before a time; return what became final.

        Parameters
        ----------
        time : int (ticks) or, for timestamp columns, a datetime, pandas Timestamp or numpy datetime64
        of_type : str, optional
            The type of the events that the heartbeat is about. Matches become final, and events are
            dropped, once the bounds of all types that the pattern names allow it.

        Raises
        ------
        OptionError
            If the time is none of these, or the stream was closed.
        TraceError, ConfidenceCostError
            As for :meth:`push`, for what became final.
        """
        self._check_open()
        if of_type is not None and not isinstance(of_type, str):
            raise OptionError(f"of_type={of_type!r}: it must be the name of an event type")
        self._promise.heartbeat(tick_given(time, self._plan.domain), of_type)
        return self._released(self._advance())

    @public
    def release(self) -> pa.RecordBatch:
        """Return the matches or alerts that no event to come can change, but which wait for others.

        They are those of :func:`uncertain_cep.match` with ``known_until`` at the bound on unseen events. None
        comes again. A run that ends before the stream does so tells what it knows.

        Raises
        ------
        OptionError, TraceError, ConfidenceCostError
            As for :meth:`push`.
        """
        self._check_open()
        return self._released(self._at_once())

    @public
    def snapshot(self) -> bytes:
        """Return all that the matcher holds, as bytes from which another process can go on.

        Raises
        ------
        OptionError
            If the stream was closed, or an earlier call failed while it computed matches.
        """
        self._check_open()
        held = {name: getattr(self, name) for name in self._HELD}
        if self._copies is not None:
            held["_copies"] = self._copies
        return packed_snapshot(self._fingerprint, held | self._packed())

    @public
    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a matcher that was made in the same way, instead of what this one holds.

        Parameters
        ----------
        snapshot : bytes
            What :meth:`snapshot` returned. It is a pickle, which can run any code: restore only your own.

        Raises
        ------
        OptionError
            If these are no snapshot, or one of another version, query or rules, schema or options.
        """
        self._check_open()
        held = unpacked_snapshot(self._fingerprint, snapshot)
        for name in self._HELD:
            setattr(self, name, held[name])
        if self._copies is not None:
            self._copies = held.get("_copies", self._copies)
        self._take_over(held)

    @public
    def close(self) -> pa.RecordBatch:
        """End the stream, and return the last matches or alerts. No event can be pushed afterwards.

        Raises
        ------
        OptionError, TraceError, ConfidenceCostError
            As for :meth:`push`.
        """
        self._check_open()
        self._closed = True
        return self._released(self._end())

    @property
    @abstractmethod
    def _failed(self) -> bool:
        """Whether computing matches ended with an error, so that no call can go on."""

    @property
    @abstractmethod
    def _fingerprint(self) -> dict[str, Any]:
        """The values that a snapshot must share with its matcher."""

    @property
    @abstractmethod
    def _lasting_plans(self) -> Sequence[EvaluationPlan]:
        """The plans that look at the ends of events that last."""

    @abstractmethod
    def _take_few(
        self,
        events: Sequence[Mapping[str, Any]],
        intervals: Sequence[tuple[int, int]],
        reached: tuple[int, int],
    ) -> tuple[list[AnswerT], Mask | None] | None:
        """Do as :meth:`_take` for few events by their plain values; return None if they need a table.

        ``reached`` is what the promise comes to behind them (:meth:`ArrivalPromise.behind`).
        """

    @abstractmethod
    def _take(
        self, table: pa.Table, lower: Int64, upper: Int64, promise: ArrivalPromise
    ) -> tuple[list[AnswerT], Mask | None]:
        """Take checked events on time; return the answers, and a mask of the events whose ids are in use.

        ``promise`` is that which holds behind these events.
        """

    @abstractmethod
    def _advance(self) -> list[AnswerT]:
        """Return the answers that became final as the promise has moved on."""

    @abstractmethod
    def _at_once(self) -> list[AnswerT]:
        """Return the answers that are final or certain, and would wait for others."""

    @abstractmethod
    def _end(self) -> list[AnswerT]:
        """Return the last answers, as nothing is to come."""

    @abstractmethod
    def _joined(self, answers: list[AnswerT]) -> pa.RecordBatch:
        """Return answers as they are shown."""

    @abstractmethod
    def _packed(self) -> dict[str, Any]:
        """Return all that changes with the events, beside what is common."""

    @abstractmethod
    def _take_over(self, held: Mapping[str, Any]) -> None:
        """Go on from what :meth:`_packed` returned."""

    def _taken_as_few(self, events: pa.Table | Mapping[str, Any]) -> tuple[list[AnswerT], Mask | None] | None:
        """Take events by their plain values, as :meth:`_take` does; return None if they need a table.

        They do if they are many, or one is late, may be a copy, or has a fault, which checks of a table name.
        """
        plain, copies = self._plain, self._copies
        if plain is None:
            return None
        if isinstance(events, Mapping):
            rows: Sequence[Mapping[str, Any]] = [events]
        elif 0 < events.num_rows <= _FEW_ROWS:
            rows = plain_rows(events)
        else:
            return None
        intervals = plain.intervals(rows)
        reached = None if intervals is None else self._promise.behind(intervals)
        if intervals is None or reached is None or not (copies is None or copies.has_none_of(rows)):
            return None
        taken = self._take_few(rows, intervals, reached)
        if taken is not None and copies is not None:
            copies.take_few(rows, intervals)
            copies.forget(self._promise.safe)
        return taken

    def _checked(self, events: Any) -> pa.Table:
        """Return events as a checked table, with ticks as long as those before."""
        plan = self._plan
        table = events_given(events, self.schema)
        self._length_of_tick = length_of_tick(table, plan.names, self._length_of_tick)
        table = with_marginals(plan, with_all_bounds(table, plan.names.lower))
        check_table(plan, table)
        for one in self._lasting_plans:
            check_spans(one, table)
        return table

    def _take_table(self, table: pa.Table) -> tuple[list[AnswerT], Mask | None]:
        """Take the events of a checked table that are on time, as :meth:`_take` does."""
        plan = self._plan
        lower, upper = ticks_of(table, plan.names.lower, plan), ticks_of(table, plan.names.upper, plan)
        promise = copy(self._promise)
        late = promise.arrive(lower, upper, table.column(plan.names.type))
        rows = np.flatnonzero(~late)
        if self._copies is not None:
            copied = self._copies.take(table, lower, upper, rows)
            self.duplicate_count += len(copied)
            rows = np.setdiff1d(rows, copied)
            # A copy of an event that begins before the bound is late.
            self._copies.forget(promise.safe)
        on_time = table if len(rows) == table.num_rows else table.take(pa.array(rows))
        answers, refused = self._take(on_time, lower[rows], upper[rows], promise)
        self._promise = promise
        if late.any():
            self._late.append(table.select(self.schema.names).filter(pa.array(late)))
            self.late_count += int(late.sum())
        if refused is None:
            return answers, None
        again = np.zeros(table.num_rows, dtype=np.bool_)
        again[rows[refused]] = True
        return answers, again

    def _refusing(self, refused: Mask, table: pa.Table, answers: list[AnswerT]) -> NoReturn:
        """Keep the answers of a call that refused events, and name these."""
        self.duplicate_count += int(refused.sum())
        self._waiting += answers
        raise duplicate_error(self._plan, table, refused)

    def _released(self, answers: list[AnswerT]) -> pa.RecordBatch:
        """Return answers behind those that a call which refused an event has left."""
        if self._waiting:
            answers = [*self._waiting, *answers]
            self._waiting = []
        return self._joined(answers)

    def _check_open(self) -> None:
        name = type(self).__name__
        if self._failed:
            raise OptionError(
                "an earlier call failed while it computed matches, and these are lost: make another "
                f"{name}, with the change that the error asked for"
            )
        if self._closed:
            raise OptionError(f"the stream was closed: make another {name}")
