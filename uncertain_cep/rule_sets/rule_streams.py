"""Rules over a stream: events in once, the alerts of all rules out as they become final."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.config import EVER
from uncertain_cep.boundary import public
from uncertain_cep.candidates.marginals import with_marginals
from uncertain_cep.candidates.span_times import check_spans
from uncertain_cep.config.limits import MAX_TICK
from uncertain_cep.errors import OptionError, UncertainCepError
from uncertain_cep.executor import check_table, ticks_of
from uncertain_cep.plan import Approximation, MatchOptions
from uncertain_cep.plan.known_until import shown_tick
from uncertain_cep.plan.lasting import schema_with_all_bounds, with_all_bounds
from uncertain_cep.rule_sets.events_by_type import EventsByType
from uncertain_cep.rule_sets.named_rules import Rules
from uncertain_cep.rule_sets.recent_events import RecentEvents
from uncertain_cep.rule_sets.rule_matching import joint_schema, rows_of
from uncertain_cep.rule_sets.running_rules import RunningRule, running_rules
from uncertain_cep.running.installation import VERSION
from uncertain_cep.running.resource_limits import Limits, looked_at
from uncertain_cep.streaming.duplicate_ids import duplicate_error
from uncertain_cep.streaming.given_events import events_given, length_of_tick, tick_given
from uncertain_cep.streaming.single_events import PlainEvents
from uncertain_cep.streaming.snapshots import packed_snapshot, unpacked_snapshot
from uncertain_cep.streaming.watermark import ArrivalPromise
from uncertain_cep.timeline.domain import Names
from uncertain_cep.traces.frames import takeable_type

__all__ = ["RuleMatcher"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
Alerts = list[tuple[str, pa.Table]]
"""Alerts with the names of their rules."""

_HELD: Final = (
    "late_count",
    "duplicate_count",
    "_length_of_tick",
    "_late",
    "_waiting",
    "_promise",
    "_recent",
)
"""The attributes that change with the events, beside those of rules."""


class RuleMatcher:
    """Finds the alerts of rules in events as they arrive.

    Events are checked once, and each rule gets those of the types that it names. All alerts returned until
    :meth:`close` together are the answer of ``uncertain_cep.match(events, rules)`` on all events but the late
    ones, and each rule has the alerts that it has alone, however the events are cut into calls. An alert is
    returned once, when no event to come can change it or the choice of the alerts that are told.

    Parameters
    ----------
    rules : Rules
        As :func:`uncertain_cep.rules` reads them.
    schema : pyarrow.Schema
        Of the events, as for :class:`uncertain_cep.IncrementalMatcher`; so are the other options.
    names : Names or mapping, optional
    tick : str, optional
    confidence : bool
    approximate : Approximation or float, optional
    undecided : {"error", "bounds"}
    sources : bool
    largest_interval : int, optional
        Largest ``upper - lower`` of any event, in ticks. Without it only heartbeats make alerts final that
        wait for what is to come.
    duplicates : {"error", "drop"}
        What to do about an event with the id of another one in reach of a rule, in its partition: this rule
        does not take it, and :meth:`push` raises a :class:`uncertain_cep.TraceError` that names it, or it is
        only counted.
    timeout : float, optional
        Seconds that one call may take for all rules. Beyond that it ends with a
        :class:`uncertain_cep.TimeLimitError`, and the matcher takes no more events.
    memory_limit : str or int, optional
        What this process may hold in memory while a call computes matches, such as ``"4GB"``.

    Attributes
    ----------
    rules : Rules
    schema, alert_schema : pyarrow.Schema
        Of the events, and of the alerts: ``rule``, and the columns of all rules.
    late_count : int
        Number of late events.
    duplicate_count : int
        Number of events that a rule did not take, as their ids were in use.

    Raises
    ------
    QueryError, TraceError
        If a rule cannot be answered on these columns: all faults of all rules at once.
    OptionError
        If an option has no such value, or a rule asks for what has no meaning before the stream has ended.

    Notes
    -----
    A rule with ``suppress`` holds an alert until no alert to come can have an earlier ``range_upper``: for a
    sequence of single events this is when no event to come begins earlier, else up to two windows later. It
    remembers a group until an alert of it may be told again, and longer while some were left out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> rules = uc.rules({"soon": "PATTERN SEQ(A a, B b) WITHIN 4", "not": "PATTERN SEQ(A a, !B b) WITHIN 4"})
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [2, 4]})
    >>> matcher = uc.RuleMatcher(rules, events.schema, largest_interval=1)
    >>> matcher.push(events).column("rule").to_pylist(), matcher.close().num_rows
    (['soon'], 0)
    """

    @public
    def __init__(
        self,
        rules: Rules,
        schema: pa.Schema,
        *,
        names: Names | Mapping[str, str] | None = None,
        tick: str | None = None,
        confidence: bool = True,
        approximate: Approximation | float | None = None,
        undecided: str = "error",
        sources: bool = True,
        largest_interval: int | None = None,
        duplicates: str = "error",
        timeout: float | None = None,
        memory_limit: str | int | None = None,
    ) -> None:
        if not len(rules):
            raise OptionError("there is no rule")
        if duplicates not in ("error", "drop"):
            raise OptionError(f"duplicates={duplicates!r} is unknown: use error or drop")
        self.schema = pa.schema(
            [field.with_type(takeable_type(field.type)) for field in schema], schema.metadata
        )
        self._options = MatchOptions(
            names=Names.of(names),
            tick=tick,
            sources=sources,
            confidence=confidence,
            approximate=Approximation.of(approximate),
            undecided=undecided,
            takes_spans=True,
        )
        self._of_events = schema_with_all_bounds(self.schema, self._options.names.lower)
        self.rules = rules
        self._running = running_rules(rules, self._of_events, self._options)
        plan = self._running[0].plan
        self._plan = plan
        self._plain = PlainEvents.of(plan, self._of_events)
        self._length_of_tick = plan.domain.tick_nanoseconds
        self._duplicates = duplicates
        self._limits = timeout, memory_limit
        Limits.of(*self._limits)
        self._largest = largest_interval
        self._promise = ArrivalPromise(largest_interval)
        self.late_count = self.duplicate_count = 0
        self._late: list[pa.Table] = []
        self._waiting: list[tuple[str, pa.Table]] = []
        self.alert_schema = self._joint_schema(self._running)
        self._recent = None if largest_interval is None else RecentEvents(self._of_events, largest_interval)
        self._closed = self._failed = False

    @property
    def late(self) -> pa.Table:
        """The late events, in the order of arrival, with all their columns, since :meth:`take_late`."""
        return pa.concat_tables([self.schema.empty_table(), *self._late])

    @property
    def safe(self) -> int:
        """No unseen event begins before this tick, unless it is late."""
        return self._promise.safe

    @property
    def state_size(self) -> int:
        """Candidates, runs, events and alerts held now, of all rules."""
        return sum(one.size for one in self._running)

    @property
    def counts(self) -> dict[str, dict[str, float]]:
        """By rule the ``matches`` that became final, those ``suppressed``, and how much is ``held``."""
        return {
            one.rule.name: {"matches": one.matches, "suppressed": one.suppressed, "held": one.size}
            for one in self._running[: len(self.rules)]
        }

    @property
    def safe_seconds(self) -> float | None:
        """The bound on unseen events in seconds since 1970; None if there is none yet, or times are ticks."""
        length = self._plan.domain.tick_nanoseconds
        if length is None or self._plan.domain.unit == "tick" or abs(self.safe) > MAX_TICK:
            return None
        return self.safe * length / 1e9

    def time_of(self, tick: int) -> str:
        """Return a tick as text: a time, where times are no ticks."""
        return "the beginning" if abs(tick) > MAX_TICK else shown_tick(tick, self._plan.domain)

    @public
    def take_late(self) -> pa.Table:
        """Return the late events since the last call, and drop them."""
        taken = self.late
        self._late.clear()
        return taken

    @public
    def push(self, events: Any) -> pa.RecordBatch:
        """Take events in the order of arrival, and return the alerts that became final.

        Parameters
        ----------
        events : pyarrow.Table or RecordBatch, pandas or Polars DataFrame, or mapping
            As for :meth:`uncertain_cep.IncrementalMatcher.push`.

        Returns
        -------
        pyarrow.RecordBatch
            Of ``alert_schema``: the rule, and its columns; those of other rules are null.

        Raises
        ------
        TraceError
            If the events are not as described; no event of the call is taken then. If a rule refuses events
            as their ids are in use, unless ``duplicates`` says otherwise; what became final comes with the
            next call.
        ConfidenceCostError
            If a confidence costs too much and no estimate is allowed. A note names the rule.
        OptionError
            If the stream was closed, or an earlier call failed while it computed matches.
        """
        self._check_open()
        plan = self._plan
        if isinstance(events, Mapping) and self._plain is not None:
            interval = self._plain.interval(events)
            if interval is not None and self._promise.takes_alone(*interval):
                return self._pushed_alone(events, *interval)
        table = events_given(events, self.schema)
        self._length_of_tick = length_of_tick(table, plan.names, self._length_of_tick)
        table = with_all_bounds(with_marginals(plan, table), plan.names.lower)
        check_table(plan, table)
        for one in self._running:
            if one.plan.lasting:
                check_spans(one.plan, table)
        lower, upper = ticks_of(table, plan.names.lower, plan), ticks_of(table, plan.names.upper, plan)
        promise = copy(self._promise)
        late = promise.arrive(lower, upper, table.column(plan.names.type))
        rows = np.flatnonzero(~late)
        self._promise = promise
        if late.any():
            self._late.append(table.select(self.schema.names).filter(pa.array(late)))
            self.late_count += int(late.sum())
        on_time = table if len(rows) == table.num_rows else table.take(pa.array(rows))
        if self._recent is not None:
            self._recent.take(on_time, lower[rows], upper[rows])
        alerts, again = self._taken(on_time, lower[rows], upper[rows], self._running)
        if again is None:
            return self._released(alerts)
        refused = np.zeros(table.num_rows, dtype=np.bool_)
        refused[rows[again]] = True
        return self._refusing(refused, table, alerts)

    @public
    def heartbeat(
        self, time: int | datetime | np.datetime64, *, of_type: str | None = None
    ) -> pa.RecordBatch:
        """Learn that no event is to come that could be before a time; return the alerts that became final.

        See :meth:`uncertain_cep.IncrementalMatcher.heartbeat`.
        """
        self._check_open()
        if of_type is not None and not isinstance(of_type, str):
            raise OptionError(f"of_type={of_type!r}: it must be the name of an event type")
        self._promise.heartbeat(tick_given(time, self._plan.domain), of_type)
        return self._released(self._each(lambda one: one.evaluation.advance(self._bound(one)), self._bound))

    @public
    def update(self, rules: Rules) -> int:
        """Ask other rules from now on, and return the tick from which they hold.

        Alerts whose ``range_upper`` is before this tick are those of the rules so far, all others those of
        the new ones, and so with the begins of buckets: as of two runs over all events that are cut at this
        tick. A rule that stays the same goes on. The tick is the bound on events to come, or later where
        alerts of rules that change were told, or where a longer window needs events that are gone.

        Parameters
        ----------
        rules : Rules

        Returns
        -------
        int
            Ticks.

        Raises
        ------
        QueryError, OptionError
            If a rule cannot be asked: then the rules so far go on. If the matcher has no
            ``largest_interval``, which says how far back events matter, or an answer that changes has no
            times to cut it by.
        """
        self._check_open()
        if self._recent is None:
            raise OptionError("update needs largest_interval=, which says how far back events matter")
        if not len(rules):
            raise OptionError("there is no rule")
        before = self._running[: len(self.rules)]
        staying = {one.rule.name: one for one in before for rule in rules if one.is_same(rule)}
        new = running_rules(
            [rule for rule in rules if rule.name not in staying], self._of_events, self._options
        )
        leaving = [one for one in before if one.rule.name not in staying]
        for one in (*new, *leaving):
            if not one.is_cut:
                raise OptionError(f"rule {one.rule.name!r}: its answer has no times to change it at")
        recent, safe = self._recent, self._promise.safe
        needed = [recent.horizon + one.reach + recent.longest for one in new]
        tick = max([safe, *needed, *(one.latest + 1 for one in leaving)])
        current = staying | {one.rule.name: one for one in new}
        running = [current[rule.name] for rule in rules] + leaving + self._running[len(before) :]
        self.alert_schema = self._joint_schema(running)
        self._running, self.rules, self._plan = running, rules, running[0].plan
        for one in leaving:
            one.until = tick
        for one in new:
            one.since = tick
        # Ids that were refused once are refused again, and told of once.
        self._waiting += self._taken(*recent.events(), new)[0]
        return tick

    @public
    def snapshot(self) -> bytes:
        """Return all that the matcher holds, as bytes from which another process can go on.

        See :meth:`uncertain_cep.IncrementalMatcher.snapshot`.
        """
        self._check_open()
        held = {name: getattr(self, name) for name in _HELD}
        count = len(self.rules)
        held["rules"] = [one.held for one in self._running[:count]]
        held["ending"] = [(one.rule, one.held) for one in self._running[count:]]
        return packed_snapshot(self._fingerprint, held)

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
            If these are no snapshot, or one of another version, rules, schema or options.
        """
        self._check_open()
        held = unpacked_snapshot(self._fingerprint, snapshot)
        for name in _HELD:
            setattr(self, name, held[name])
        ending = [rule for rule, _ in held["ending"]]
        current = self._running[: len(self.rules)]
        self._running = current + running_rules(ending, self._of_events, self._options)
        parts = held["rules"] + [part for _, part in held["ending"]]
        for one, part in zip(self._running, parts, strict=True):
            one.take_over(part)
        self.alert_schema = self._joint_schema(self._running)

    @public
    def close(self) -> pa.RecordBatch:
        """End the stream, and return the last alerts. No event can be pushed afterwards."""
        self._check_open()
        self._closed = True
        return self._released(self._each(lambda one: one.evaluation.close(), lambda _: EVER))

    @property
    def _fingerprint(self) -> dict[str, Any]:
        """The values that a snapshot must share with its matcher."""
        return {
            "version": VERSION,
            "rules": {
                rule.name: f"{rule.query.text_with_values}, suppress {rule.suppress}" for rule in self.rules
            },
            "schema": {field.name: str(field.type) for field in self.schema},
            "tick": self._plan.domain.describe(),
            "options": str(self._options),
            "largest_interval": self._largest,
        }

    def _joint_schema(self, running: Sequence[RunningRule]) -> pa.Schema:
        """Return the columns of the alerts of rules, and of those that wait."""
        schemas = [(one.rule.name, one.output_schema) for one in running]
        return joint_schema([*schemas, *((name, table.schema) for name, table in self._waiting)])

    def _bound(self, one: RunningRule) -> int:
        """Return a tick before which no event to come begins that matters to a rule."""
        return self._promise.bound_of(one.awaited)

    def _pushed_alone(self, event: Mapping[str, Any], lower: int, upper: int) -> pa.RecordBatch:
        """Take one event that is sound and on time."""
        promise, type_ = self._promise, event[self._plan.names.type]
        refused = False

        def push(one: RunningRule) -> pa.RecordBatch:
            nonlocal refused
            if one.types is not None and type_ not in one.types:
                return one.evaluation.advance(promise.safe)
            batch = one.evaluation.take_alone(event, promise)
            if batch is None:
                table = events_given(event, self.schema)
                bounds = np.array([[lower], [upper]])
                batch, again = one.evaluation.take_new(table, bounds[0], bounds[1], promise.safe)
                refused = refused or again is not None
            return batch

        promise.arrive_alone(lower)
        if self._recent is not None:
            self._recent.take_alone(event, lower, upper)
        alerts = self._each(push, lambda _: promise.safe)
        if not refused:
            return self._released(alerts)
        return self._refusing(np.ones(1, dtype=np.bool_), events_given(event, self.schema), alerts)

    def _taken(
        self, table: pa.Table, lower: Int64, upper: Int64, running: Sequence[RunningRule]
    ) -> tuple[Alerts, Mask | None]:
        """Take checked events on time; return the alerts, and a mask of events that a rule refused."""
        by_type = EventsByType(table, self._plan.names.type)
        parts: dict[frozenset[str] | None, tuple[pa.Table, Any]] = {}
        refused = np.zeros(table.num_rows, dtype=np.bool_)

        def take(one: RunningRule) -> pa.RecordBatch:
            if one.types not in parts:
                parts[one.types] = by_type.of(one.types)
            part, rows = parts[one.types]
            batch, again = one.evaluation.take_new(part, lower[rows], upper[rows], self._bound(one))
            if again is not None:
                refused[rows] |= again
            return batch

        alerts = self._each(take, self._bound, running)
        return alerts, refused if refused.any() else None

    def _each(
        self,
        act: Callable[[RunningRule], pa.RecordBatch],
        bound: Callable[[RunningRule], int],
        running: Sequence[RunningRule] | None = None,
    ) -> Alerts:
        """Let rules act, by default all, and return the alerts that are told."""
        alerts = []
        self._failed = True
        with looked_at(Limits.of(*self._limits)):
            for one in self._running if running is None else running:
                try:
                    answer = one.tell(act(one), bound(one))
                except UncertainCepError as error:
                    error.add_note(f"in rule {one.rule.name!r}")
                    raise
                if answer is not None and answer.num_rows:
                    alerts.append((one.rule.name, answer))
        self._failed = False
        self._tidy()
        return alerts

    def _tidy(self) -> None:
        """Drop rules that have ended, and events that no rule to come needs."""
        if len(self._running) > len(self.rules):
            current, ended = self._running[: len(self.rules)], self._running[len(self.rules) :]
            self._running = current + [one for one in ended if not one.has_ended(self._bound(one))]
        if self._recent is not None:
            reach = max(one.reach for one in self._running)
            self._recent.forget(self._promise.safe - reach - self._recent.longest)

    def _refusing(self, refused: Mask, table: pa.Table, alerts: Alerts) -> pa.RecordBatch:
        """Return alerts of a call some of whose events were refused; or keep them, and name these events."""
        self.duplicate_count += int(refused.sum())
        if self._duplicates == "drop":
            return self._released(alerts)
        self._waiting += alerts
        raise duplicate_error(self._plan, table, refused)

    def _released(self, alerts: Alerts) -> pa.RecordBatch:
        """Return alerts behind those that a call which refused an event has left."""
        schema = self.alert_schema
        parts = [rows_of(name, answer, schema) for name, answer in (*self._waiting, *alerts)]
        whole = pa.concat_tables([schema.empty_table(), *parts])
        self._waiting = []
        batches = whole.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=self.alert_schema)

    def _check_open(self) -> None:
        if self._failed:
            raise OptionError(
                "an earlier call failed while it computed matches, and these are lost: make another "
                "RuleMatcher, with the change that the error asked for"
            )
        if self._closed:
            raise OptionError("the stream was closed: make another RuleMatcher")
