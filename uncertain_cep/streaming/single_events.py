"""Few events, as plain values: which components can take each, and in which partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import Any, Final, NamedTuple

import pyarrow as pa

from uncertain_cep.config.limits import MAX_TICK
from uncertain_cep.expressions.scalar import INT64, Scalar, plain_attribute, scalar
from uncertain_cep.plan import EvaluationPlan, PlannedComponent
from uncertain_cep.timeline.domain import TimeDomain
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS

__all__ = ["Held", "PlainEvents", "SingleEvents", "SlicedEvents", "plain_rows"]

_KINDS: Final = (
    (pa.types.is_int64, int),
    (pa.types.is_float64, float),
    (pa.types.is_string, str),
    (pa.types.is_boolean, bool),
    (pa.types.is_date32, date),
    (pa.types.is_timestamp, datetime),
)
_ZONED_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH: Final = _ZONED_EPOCH.replace(tzinfo=None)
_MICROSECOND: Final = timedelta(microseconds=1)


class Held(NamedTuple):
    """An event that matters to a slice; see :class:`uncertain_cep.streaming.micro_batches.EventsInReach`."""

    lower: int
    upper: int
    waits: bool
    positive: bool
    needed: bool


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the events of a table as mappings of plain values; times of nanoseconds as of microseconds."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            # Python's own times have no nanoseconds, and those of pandas are not plain.
            coarse = pa.timestamp("us", field.type.tz)
            try:
                table = table.set_column(place, field.name, table.column(place).cast(coarse))
            except pa.ArrowInvalid:
                continue
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@dataclass(frozen=True, slots=True)
class PlainEvents:
    """Checks the values of few events, where all columns hold plain values.

    Events of which one has other values, or a fault, go through a table, whose checks name all faults.
    """

    model: tuple[str, str, str, str]
    """The columns of type, id, lower and upper."""
    kinds: Mapping[str, type]
    """Of each column."""
    units: Mapping[str, tuple[datetime, int]]
    """Of each column of timestamps, its epoch and the length of its unit, ns."""
    domain: TimeDomain

    @classmethod
    def of(cls, plan: EvaluationPlan, schema: pa.Schema) -> PlainEvents | None:
        """Return the checks of events of a schema; None if a column needs a table."""
        names = plan.names
        special = {names.pmf, names.tick, names.probability}
        if special & set(schema.names) or plan.clock_columns(schema.names) or plan.lasting:
            return None
        kinds, units = {}, {}
        for field in schema:
            kind = next((kind for is_kind, kind in _KINDS if is_kind(field.type)), None)
            if kind is None:
                return None
            kinds[field.name] = kind
            if kind is datetime:
                epoch = _EPOCH if field.type.tz is None else _ZONED_EPOCH
                units[field.name] = epoch, UNIT_NANOSECONDS[field.type.unit]
        of_times = int if plan.domain.unit == "tick" else datetime
        model_kinds = {names.type: str, names.id: int, names.lower: of_times, names.upper: of_times}
        if any(kinds.get(name) is not kind for name, kind in model_kinds.items()):
            return None
        of_interval = {schema.field(name).type for name in (names.lower, names.upper)}
        if len(of_interval) > 1 or (of_times is datetime and of_interval.pop().unit != plan.domain.unit):
            return None
        return cls((names.type, names.id, names.lower, names.upper), kinds, units, plan.domain)

    def intervals(self, events: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]] | None:
        """Return the intervals of events, ticks; None if they have to go through a table."""
        intervals = []
        for event in events:
            interval = self._interval(event)
            if interval is None:
                return None
            intervals.append(interval)
        if len(events) > 1 and len({event[self.model[1]] for event in events}) < len(events):
            # An id may stand in several partitions.
            return None
        return intervals

    def _interval(self, event: Mapping[str, Any]) -> tuple[int, int] | None:
        """Return the interval of an event, ticks; None if it has to go through a table."""
        kinds, units = self.kinds, self.units
        for name, value in event.items():
            kind = kinds.get(name)
            if value is None and kind is not None:
                continue
            if type(value) is not kind or (kind is int and value not in INT64):
                return None
            if units and name in units and self._in_units(name, value) is None:
                return None
        type_, id_, begin, end = map(event.get, self.model)
        if type_ is None or id_ is None or begin is None or end is None:
            return None
        lower, upper = begin, end
        if units:
            lower, upper = self._tick(self.model[2], begin), self._tick(self.model[3], end)
        if lower is None or upper is None or not -MAX_TICK <= lower <= upper <= MAX_TICK:
            return None
        return lower, upper

    def _in_units(self, name: str, time: Any) -> int | None:
        """Return a time in the unit of its column; None if it is between two, or its zone is amiss."""
        epoch, unit = self.units[name]
        if (time.tzinfo is None) is not (epoch.tzinfo is None):
            return None
        nanoseconds = (time - epoch) // _MICROSECOND * 1000
        units, behind = divmod(nanoseconds, unit)
        return units if behind == 0 and units in INT64 else None

    def _tick(self, name: str, time: Any) -> int | None:
        """Return a checked time in ticks; None if it is no whole number of them."""
        if name not in self.units:
            return int(time)
        units, domain = self._in_units(name, time), self.domain
        if units is None or units % domain.tick != 0:
            return None
        return int(units * domain.per_unit if domain.per_unit != 1 else units // domain.tick)


class _Rule(NamedTuple):
    """The events that a component can take: those of some types, or of all without any, where all holds."""

    types: frozenset[str]
    local: tuple[Scalar, ...]

    def takes(self, type_: str, event: Mapping[str, Any]) -> bool:
        """Return whether the component can take an event."""
        if self.types and type_ not in self.types:
            return False
        return all(predicate(event) is True for predicate in self.local)


def _rules_of(components: tuple[PlannedComponent, ...]) -> tuple[_Rule, ...] | None:
    """Return the rules of components; None if a predicate needs a table."""
    rules = []
    for part in components:
        local = [scalar(predicate, plain_attribute) for predicate in part.local]
        plain = tuple(condition for condition in local if condition is not None)
        if len(plain) < len(local):
            return None
        rules.append(_Rule(frozenset(part.types), plain))
    return tuple(rules)


@dataclass(frozen=True, slots=True)
class SingleEvents:
    """Looks at events for runs: which components can take them, and in which partition."""

    plan: EvaluationPlan
    rules: tuple[_Rule, ...]
    of_type: Mapping[str, tuple[int, ...]]
    """The components that take events of each type that the pattern names."""
    of_any: tuple[int, ...]
    """The components that take events of all other types."""

    @classmethod
    def of(cls, plan: EvaluationPlan, schema: pa.Schema) -> SingleEvents | None:
        """Return the rules for events of a schema; None if a column or a predicate needs a table."""
        plain, rules = PlainEvents.of(plan, schema), _rules_of(tuple(plan.components))
        if plain is None or rules is None or not _has_plain_keys(plan, plain):
            return None
        types = reduce(frozenset.union, (rule.types for rule in rules))
        of_type = {
            name: tuple(j for j, rule in enumerate(rules) if not rule.types or name in rule.types)
            for name in types
        }
        return cls(plan, rules, of_type, tuple(j for j, rule in enumerate(rules) if not rule.types))

    def look(self, event: Mapping[str, Any]) -> tuple[list[int], list[tuple[Any, ...]]] | None:
        """Return the components that can take an event; None if it has to go through a table.

        With them come, for each of these components, the values of the partition attributes.
        """
        components, keys = [], []
        type_ = event[self.plan.names.type]
        for j in self.of_type.get(type_, self.of_any):
            if self.rules[j].takes(type_, event):
                key = self.plan.partitioning.of_event(event, j)
                if None in key:
                    return None
                components.append(j)
                keys.append(key)
        return components, keys


@dataclass(frozen=True, slots=True)
class SlicedEvents:
    """Looks at events for slices: whether they matter, and may be first in a match."""

    type: str
    """The column of types."""
    branches: tuple[EvaluationPlan, ...]
    positive: tuple[tuple[_Rule, ...], ...]
    """Of the components of each branch."""
    negated: tuple[_Rule, ...]
    keeps_all: bool
    """Whether all events matter, as under contiguity."""

    @classmethod
    def of(
        cls, plan: EvaluationPlan, branches: list[EvaluationPlan], schema: pa.Schema
    ) -> SlicedEvents | None:
        """Return the rules for events of a schema; None if a column or a predicate needs a table."""
        plain = PlainEvents.of(plan, schema)
        positive = [_rules_of(tuple(branch.components)) for branch in branches]
        negated = _rules_of(tuple(one.component for branch in branches for one in branch.negations))
        rules = tuple(rules for rules in positive if rules is not None)
        if plain is None or negated is None or len(rules) < len(positive):
            return None
        if not all(_has_plain_keys(branch, plain) for branch in branches):
            return None
        keeps_all = any(branch.query.strategy.endswith("contiguity") for branch in branches)
        return cls(plan.names.type, tuple(branches), rules, negated, keeps_all)

    def look(self, event: Mapping[str, Any], interval: tuple[int, int]) -> Held | None:
        """Return how an event matters; None if it has to go through a table."""
        type_ = event[self.type]
        waits = positive = False
        for branch, rules in zip(self.branches, self.positive, strict=True):
            for j, rule in enumerate(rules):
                if rule.takes(type_, event):
                    if None in branch.partitioning.of_event(event, j):
                        return None
                    positive, waits = True, waits or j == 0
        needed = self.keeps_all or any(rule.takes(type_, event) for rule in self.negated)
        return Held(*interval, waits, positive, needed)


def _has_plain_keys(plan: EvaluationPlan, plain: PlainEvents) -> bool:
    """Return whether the keys of a plan are whole numbers or texts."""
    keys = {name for j, _ in enumerate(plan.components) for name in plan.partitioning.of_component(j)}
    return all(plain.kinds[name] in (int, str) for name in keys)
