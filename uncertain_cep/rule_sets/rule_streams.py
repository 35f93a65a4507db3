"""Rules over a stream: events in once, the alerts of all rules out as they become final."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.config import EVER
from uncertain_cep.boundary import our_error, public
from uncertain_cep.config.limits import MAX_TICK
from uncertain_cep.errors import MemoryLimitError, OptionError, TimeLimitError, UncertainCepError, warn
from uncertain_cep.plan import Approximation, EvaluationPlan, MatchOptions
from uncertain_cep.plan.known_until import shown_tick
from uncertain_cep.plan.lasting import schema_with_all_bounds
from uncertain_cep.rule_sets.events_by_type import EventsByType
from uncertain_cep.rule_sets.named_rules import Rule, Rules
from uncertain_cep.rule_sets.rule_changes import text_of
from uncertain_cep.rule_sets.rule_matching import joint_schema, rows_of
from uncertain_cep.rule_sets.running_rules import RunningRule, running_rules
from uncertain_cep.running.installation import VERSION
from uncertain_cep.running.resource_limits import Limits, looked_at
from uncertain_cep.streaming.event_stream import EventStream
from uncertain_cep.streaming.recent_events import RecentEvents
from uncertain_cep.streaming.stream_methods import check_when
from uncertain_cep.streaming.watermark import ArrivalPromise
from uncertain_cep.timeline.domain import Names
from uncertain_cep.traces.frames import takeable_type

__all__ = ["RuleMatcher"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
Alert = tuple[str, pa.Table]
"""Alerts of one rule, with its name."""


class RuleMatcher(EventStream[Alert]):
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
        What to do about a copy of an event, the same in all columns: with ``drop`` it is only counted. An
        event with the id of another one in reach of a rule, in its partition, is not taken by this rule, and
        :meth:`push` raises a :class:`uncertain_cep.TraceError` that names it.
    when : {"final", "certain"}
        When an alert is told, as for :class:`uncertain_cep.IncrementalMatcher`. Rules with
        ``RETURN PROBABILITY`` that do not ask ``HAVING PROBABILITY >= x`` tell what is final.
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
        Number of copies, and of events that a rule did not take, as their ids were in use.

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

    An error while a rule computes matches ends this rule: a warning names it, ``failures`` keeps it, its
    alerts that were not told are lost, and the other rules go on. :meth:`update` asks it again, also if it
    is the same.

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
        when: str = "final",
        timeout: float | None = None,
        memory_limit: str | int | None = None,
    ) -> None:
        _check_rules(rules)
        schema = pa.schema([field.with_type(takeable_type(field.type)) for field in schema], schema.metadata)
        self._options = MatchOptions(
            names=Names.of(names),
            tick=tick,
            sources=sources,
            confidence=confidence,
            approximate=Approximation.of(approximate),
            undecided=undecided,
            takes_spans=True,
        )
        self._of_events = schema_with_all_bounds(schema, self._options.names.lower)
        check_when(when, "auto")
        self._when = when
        self.rules = rules
        self._running = self._begun(rules)
        super().__init__(schema, self._running[0].plan, ArrivalPromise(largest_interval), duplicates)
        self._limits = timeout, memory_limit
        Limits.of(*self._limits)
        self._largest = largest_interval
        self.alert_schema = self._joint_schema(self._running)
        self._recent = None if largest_interval is None else RecentEvents(self._of_events, largest_interval)
        self._broken = False

    @property
    def safe(self) -> int:
        """No unseen event that matters to a rule begins before this tick, unless it is late."""
        return min(self._bound(one) for one in self._running)

    @property
    def state_size(self) -> int:
        """Candidates, runs, events and alerts held now, of all rules."""
        return sum(one.size for one in self._running)

    @property
    def counts(self) -> dict[str, dict[str, float]]:
        """By rule ``matches`` that became final, ``suppressed`` ones, state ``held``, ``failed``: 0 or 1."""
        return {
            one.rule.name: {
                "matches": one.matches,
                "suppressed": one.suppressed,
                "held": one.size,
                "failed": int(bool(one.failure)),
            }
            for one in self._running[: len(self.rules)]
        }

    @property
    def undecided_count(self) -> int:
        """How many matches of all rules events to come could spoil, at the last look for certain alerts."""
        return sum(one.evaluation.undecided_count for one in self._running)

    @property
    def failures(self) -> dict[str, str]:
        """By the rules that have failed, what happened."""
        running = self._running[: len(self.rules)]
        return {one.rule.name: one.failure for one in running if one.failure}

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
        _check_rules(rules)
        before = self._running[: len(self.rules)]
        staying = {one.rule.name: one for one in before for rule in rules if one.is_same(rule)}
        new = self._begun(rule for rule in rules if rule.name not in staying)
        leaving = [one for one in before if one.rule.name not in staying]
        for one in (*new, *leaving):
            if not one.is_cut:
                raise OptionError(f"rule {one.rule.name!r}: its answer has no times to change it at")
        recent, safe = self._recent, self.safe
        needed = [recent.horizon + one.reach + recent.longest for one in new]
        # None before the tick of an earlier change, at which rules begin or end.
        changes = [end for one in self._running for end in (one.since, one.until) if end != EVER]
        tick = max([safe, *needed, *changes, *(one.latest + 1 for one in leaving)])
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

    def _begun(self, rules: Iterable[Rule]) -> list[RunningRule]:
        return running_rules(rules, self._of_events, self._options, self._when)

    @property
    def _failed(self) -> bool:
        return self._broken

    @property
    def _lasting_plans(self) -> Sequence[EvaluationPlan]:
        return [one.plan for one in self._running if one.plan.lasting]

    @property
    def _fingerprint(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "rules": {rule.name: text_of(rule) for rule in self.rules},
            "schema": {field.name: str(field.type) for field in self.schema},
            "tick": self._plan.domain.describe(),
            "options": str(self._options),
            "largest_interval": self._largest,
            "when": self._when,
        }

    def _packed(self) -> dict[str, Any]:
        count = len(self.rules)
        return {
            "_recent": self._recent,
            "rules": [one.held for one in self._running[:count]],
            "ending": [(one.rule, one.held) for one in self._running[count:]],
        }

    def _take_over(self, held: Mapping[str, Any]) -> None:
        self._recent = held["_recent"]
        ending = [rule for rule, _ in held["ending"]]
        current = self._running[: len(self.rules)]
        self._running = current + self._begun(ending)
        parts = held["rules"] + [part for _, part in held["ending"]]
        for one, part in zip(self._running, parts, strict=True):
            one.take_over(part)
        self.alert_schema = self._joint_schema(self._running)

    def _advance(self) -> list[Alert]:
        return self._each(lambda one: one.evaluation.advance(self._bound(one)), self._bound)

    def _at_once(self) -> list[Alert]:
        return self._each(lambda one: one.evaluation.release(self._bound(one)), self._bound)

    def _end(self) -> list[Alert]:
        return self._each(lambda one: one.evaluation.close(), lambda _: EVER)

    def _joined(self, answers: list[Alert]) -> pa.RecordBatch:
        schema = self.alert_schema
        parts = [rows_of(name, answer, schema) for name, answer in answers]
        batches = pa.concat_tables([schema.empty_table(), *parts]).combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema)

    def _joint_schema(self, running: Sequence[RunningRule]) -> pa.Schema:
        """Return the columns of the alerts of rules, and of those that wait."""
        schemas = [(one.rule.name, one.output_schema) for one in running]
        return joint_schema([*schemas, *((name, table.schema) for name, table in self._waiting)])

    def _bound(self, one: RunningRule) -> int:
        """Return a tick before which no event to come begins that matters to a rule."""
        return self._promise.bound_of(one.awaited)

    def _take_few(
        self,
        events: Sequence[Mapping[str, Any]],
        intervals: Sequence[tuple[int, int]],
        reached: tuple[int, int],
    ) -> tuple[list[Alert], Mask | None]:
        self._promise.move(reached)
        if self._recent is not None:
            self._recent.take_few(events, intervals)
        of_type: dict[str, list[int]] = {}
        for place, event in enumerate(events):
            of_type.setdefault(event[self._plan.names.type], []).append(place)
        refused = np.zeros(len(events), dtype=np.bool_)

        def take(one: RunningRule) -> pa.RecordBatch:
            types = of_type if one.types is None else one.types & of_type.keys()
            places = sorted(place for type_ in types for place in of_type[type_])
            part, bounds = [events[place] for place in places], [intervals[place] for place in places]
            batch = one.evaluation.take_few(part, bounds, self._bound(one))
            if batch is None:
                lower, upper = np.array(bounds).T
                table = pa.Table.from_pylist(part, schema=self.schema)
                batch, again = one.evaluation.take_new(table, lower, upper, self._bound(one))
                if again is not None:
                    refused[places] |= again
            return batch

        alerts = self._each(take, self._bound)
        return alerts, refused if refused.any() else None

    def _take(
        self, table: pa.Table, lower: Int64, upper: Int64, promise: ArrivalPromise
    ) -> tuple[list[Alert], Mask | None]:
        self._promise = promise
        if self._recent is not None:
            self._recent.take(table, lower, upper)
        return self._taken(table, lower, upper, self._running)

    def _taken(
        self, table: pa.Table, lower: Int64, upper: Int64, running: Sequence[RunningRule]
    ) -> tuple[list[Alert], Mask | None]:
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
    ) -> list[Alert]:
        """Let rules act, by default all, and return the alerts that are told."""
        alerts, failed = [], []
        self._broken = True
        with looked_at(Limits.of(*self._limits)):
            for one in self._running if running is None else running:
                if one.failure:
                    continue
                try:
                    answer = one.tell(act(one), bound(one))
                except Exception as error:
                    answer = one.fail(_of_rule(error, one.rule.name))
                    failed.append(one)
                if answer is not None and answer.num_rows:
                    alerts.append((one.rule.name, answer))
        self._broken = False
        self._tidy()
        for one in failed:
            warn(
                f"rule {one.rule.name!r} has failed, and tells nothing from now on; the others go on. "
                f"update(rules) asks it again. {one.failure}"
            )
        return alerts

    def _tidy(self) -> None:
        """Drop rules that have ended, and events that no rule to come needs."""
        if len(self._running) > len(self.rules):
            current, ended = self._running[: len(self.rules)], self._running[len(self.rules) :]
            self._running = current + [one for one in ended if not one.has_ended(self._bound(one))]
        if self._recent is not None:
            reach = max(one.reach for one in self._running)
            self._recent.forget(self._promise.safe - reach - self._recent.longest)


def _check_rules(rules: Any) -> None:
    if not isinstance(rules, Rules):
        raise OptionError(f"rules= takes what uc.rules(...) returns, not {type(rules).__name__}")
    if not len(rules):
        raise OptionError("there is no rule")


def _of_rule(error: Exception, name: str) -> UncertainCepError:
    """Return the error that ends a rule alone; raise one that is of the whole call."""
    if isinstance(error, Warning):
        raise error
    of_rule = error if isinstance(error, UncertainCepError) else our_error(error)
    if isinstance(of_rule, TimeLimitError | MemoryLimitError):
        of_rule.add_note(f"in rule {name!r}")
        raise of_rule
    return of_rule
