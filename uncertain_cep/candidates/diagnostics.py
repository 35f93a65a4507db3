"""Diagnostics of sound queries on some events that may not do what was meant: each once in a call."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.candidates.diagnosed_events import EventsLookedAt, TableEvents
from uncertain_cep.candidates.selection import type_mask
from uncertain_cep.config.limits import MOST_COMPARED_TYPES
from uncertain_cep.errors import warn
from uncertain_cep.plan import EvaluationPlan, PlannedComponent
from uncertain_cep.plan.derived import once_a_plan
from uncertain_cep.plan.equivalence import partition_keys
from uncertain_cep.plan.known_until import shown_tick
from uncertain_cep.plurals import counted, shortened
from uncertain_cep.query import format_expression
from uncertain_cep.query.expression_text import OPERATOR_SIGNS, quote_name
from uncertain_cep.query.syntax import Aggregate, Attribute, Binary, Literal, Option, expressions_in
from uncertain_cep.query.typed import Apply, Column, Constant, TypedExpression, kind_of, variables_of
from uncertain_cep.query.walks import components_of, patterns_in
from uncertain_cep.timeline.domain import TimeDomain
from uncertain_cep.traces.instants import warn_of_naive

__all__ = ["EMPTY_TRACE", "Diagnostics", "negated_parts"]

EMPTY_TRACE: Final = (
    "the trace has no events: is it the right file, and do its rows pass the schema's conditions?"
)

_MOST_SAID: Final = 5
"""Missing types that are named one by one."""

_MOST_SHOWN: Final = 8
"""Types that a message lists."""

_COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")

_LONGEST: Final = 200
"""Characters of conditions in a message."""

_LARGEST_SHARE: Final = 2.0
"""A column that goes beyond this and is compared with a percentage may count in percent."""


class Diagnostics:
    """Warns, each time once, of what one call that matches or explains meets; counts candidates for it.

    A cheap look: a type that occurs is found at its first event, columns are sampled, and ``candidates``, of
    each positive variable, are those that the evaluation selects anyway.
    """

    def __init__(self) -> None:
        self.candidates: dict[str, int] = {}
        self._plan: EvaluationPlan | None = None
        self._looked = self._empty = False
        self._missing: frozenset[str] = frozenset()
        self._lock = Lock()
        self._undecided = 0
        self._partly = False
        self._end: tuple[TimeDomain, int] | None = None
        self.last_tick: int | None = None
        """The last tick of any event, where only some of the events are at hand."""

    def about(self, plan: EvaluationPlan) -> None:
        """Learn of the plan of the whole query, before those of its branches."""
        if self._plan is None:
            self._plan = plan
            for message in _of_options(plan):
                warn(message)

    def look(self, table: pa.Table) -> None:
        """Look through the events of the call, a sound table, the first time it is there."""
        if not self._looked and self._plan is not None:
            self.look_at(TableEvents(self._plan, table))

    def look_at(self, events: EventsLookedAt) -> None:
        """Look through the events of the call, wherever they are, once."""
        plan = self._plan
        if self._looked or plan is None:
            return
        self._looked = True
        if events.is_empty():
            self._empty = True
            warn(EMPTY_TRACE)
            return
        missing = events.missing(_types_named(plan))
        self._missing = frozenset(missing)
        if missing:
            there = events.types()
            for name in missing[:_MOST_SAID]:
                warn(f"no event of type {quote_name(name)}{_instead(name, there)}")
            if len(missing) > _MOST_SAID:
                warn(f"no event of {len(missing) - _MOST_SAID:,} more types that the pattern names")
        for message in _percentages(plan, events):
            warn(message)
        _look_at_zones(plan, events.schema)
        self._look_at_negations(plan, events)

    def _look_at_negations(self, plan: EvaluationPlan, events: EventsLookedAt) -> None:
        """Warn of negated variables that no event can be; nobody else counts these beforehand."""
        for part in negated_parts(plan):
            if not self._told(part) and not events.has_candidate(part):
                warn(f"{_no_candidate(part, ())}, so that the negation forbids nothing")

    def counted(self, plan: EvaluationPlan, sizes: Sequence[int]) -> None:
        """Learn how many candidates the components of an OR-free pattern have, in pattern order."""
        keys = plan.partitioning.labels
        for part, size in zip(plan.components, sizes, strict=True):
            before = self.candidates.get(part.variable)
            self.candidates[part.variable] = max(size, before or 0)
            if not size and before is None and not self._told(part) and not self._empty:
                warn(f"{_no_candidate(part, keys)}: check its type and conditions")

    def undecided(self, domain: TimeDomain, end: int, count: int, *, partly: bool = False) -> None:
        """Learn of matches with a gap that can end behind a tick, the known end or the last event.

        ``partly`` says that not all matches have been looked at.
        """
        with self._lock:
            self._undecided += count
            self._partly |= partly
            self._end = domain, end

    def finish(self) -> None:
        """Warn of what shows only once all matches are found."""
        plan, count = self._plan, self._undecided
        if not count or plan is None or self._end is None:
            return
        # What a limit or an order does not ask for need not have been looked at.
        partly = self._partly or plan.query.limit is not None
        self._undecided, self._partly = 0, False
        domain, end = self._end
        shown = shown_tick(end, domain)
        several = f"{'at least ' if partly else ''}{counted(count, 'match', 'matches')}"
        if plan.known_until is not None:
            warn(
                f"{several} left out as undecided: a gap can end behind known_until, {shown}, where more "
                "events may be"
            )
        else:
            warn(
                f"{several} with a negation whose gap can end behind the last event of the trace, {shown}: "
                "no event is taken to be there; if the trace was cut off, known_until= (--known-until) "
                "leaves out what is undecided"
            )

    def _told(self, part: PlannedComponent) -> bool:
        """Return whether it was said already why a component takes none: of its types, or of NULL."""
        absent = bool(part.types) and self._missing.issuperset(part.types)
        return absent or any(map(_compares_with_null, part.local))

    def summary(self) -> str:
        """Return how many candidates each component has, or why nobody looked for them, in one line."""
        plan = self._plan
        if self._empty or plan is None:
            return "candidates: none, for the trace has no events"
        if self.candidates:
            return "candidates: " + ", ".join(f"{name} {size:,}" for name, size in self.candidates.items())
        parts = plan.or_free
        constants = dict.fromkeys(
            format_expression(predicate) for part in parts for predicate in part.constant
        )
        if constants:
            return f"candidates: not looked for, as this is not true of any events: {' AND '.join(constants)}"
        length = min(len(part.components) for part in parts)
        longer = f"{length} events in a row take {length} ticks, more than WITHIN {plan.window:,}"
        return f"candidates: not looked for, as {longer}"


@once_a_plan
def _of_options(plan: EvaluationPlan) -> list[str]:
    """Return warnings of predicates and partitions that change silently without optional components."""
    parts = {component.variable: component for component in components_of(plan.query.pattern)}
    optional = {name for name, component in parts.items() if not component.least}
    groups = [node for node in patterns_in(plan.query.pattern) if isinstance(node, Option)]
    optional |= {part.variable for group in groups for part in components_of(group) if not part.negated}
    said: dict[str, None] = {}
    for predicate in plan.bound.predicates if optional else ():
        mentioned = variables_of(predicate)
        absent = [name for name in mentioned if name in parts and parts[name].negated]
        if absent and (left_out := sorted(mentioned & optional)):
            text = format_expression(predicate)
            message = (
                f"{text} is not evaluated where {left_out[0]} is left out: every {absent[0]} forbids there"
            )
            said[message] = None
    keys = {
        frozenset(part.variable for part in branch.components): {
            frozenset(zip((part.variable for part in branch.components), key.columns, strict=True))
            for key in partition_keys(branch.bound).keys
        }
        for branch in (plan.or_free if optional else ())
    }
    for whole, tied in keys.items():
        for name in sorted(whole & optional):
            remaining = whole - {name}
            for key in tied if len(remaining) > 1 and remaining in keys else ():
                if frozenset(node for node in key if node[0] != name) not in keys[remaining]:
                    shown = " = ".join(f"{variable}.{column}" for variable, column in sorted(key))
                    said[
                        f"{shown} goes by way of {name}: where {name} is left out, nothing ties the others"
                    ] = None
    return list(said)


def _instead(name: str, there: Sequence[str]) -> str:
    """Return the types that may be meant by a name that none has, as the end of a message."""
    by_letters: dict[str, str] = {}
    for type_name in there[:MOST_COMPARED_TYPES]:
        by_letters.setdefault(type_name.casefold().strip(), type_name)
    near = difflib.get_close_matches(name.casefold(), by_letters, 2)
    if near:
        return f"; did you mean {' or '.join(quote_name(by_letters[letters]) for letters in near)}?"
    if len(there) <= _MOST_SHOWN:
        return f"; the types are {', '.join(map(quote_name, there))}"
    count = f"{len(there):,}" if len(there) <= MOST_COMPARED_TYPES else f"more than {MOST_COMPARED_TYPES:,}"
    return f"; there are {count} types, such as {', '.join(map(quote_name, there[:_MOST_SHOWN]))}"


def _types_named(plan: EvaluationPlan) -> list[str]:
    """Return the types that a pattern names, each once."""
    return list(dict.fromkeys(name for part in plan.bound.components for name in part.types))


def negated_parts(plan: EvaluationPlan) -> list[PlannedComponent]:
    """Return the negated components that have conditions of their own, each variable once."""
    parts: dict[str, PlannedComponent] = {}
    for branch in plan.or_free:
        for negation in branch.negations:
            part = negation.component
            if part.local and "(" not in part.variable:
                parts.setdefault(part.variable, part)
    return list(parts.values())


def _compares_with_null(predicate: TypedExpression) -> bool:
    """Return whether binding a predicate has warned that it is never true."""
    return (
        isinstance(predicate, Apply)
        and OPERATOR_SIGNS.get(predicate.operator) in _COMPARISONS
        and any(isinstance(side, Constant) and side.value is None for side in predicate.operands)
    )


def _no_candidate(part: PlannedComponent, keys: Sequence[str]) -> str:
    """Return the conditions that keep every event from being taken by a component."""
    conditions_failed = [f"meets {format_expression(predicate)}" for predicate in part.local]
    conditions_failed += [f"has a value of {key}" for key in keys]
    named = " or ".join(map(quote_name, part.types[:_MOST_SHOWN]))
    if len(part.types) > _MOST_SHOWN:
        named += f" or {len(part.types) - _MOST_SHOWN:,} more"
    types = f"of type {named}" if part.types else "of them"
    conditions = " and ".join(conditions_failed) or "is there"
    shown = shortened(conditions, _LONGEST)
    return f"no event can be {part.variable}: none {types} {shown}"


def _look_at_zones(plan: EvaluationPlan, schema: pa.Schema) -> None:
    """Warn of times with a zone that are compared with times without one."""
    for times in _compared_times(plan):
        warn_of_naive((format_expression(part), schema.field(part.name).type) for part in times)


@once_a_plan
def _compared_times(plan: EvaluationPlan) -> list[list[Column]]:
    """Return the columns of times that stand in one operation, two by two."""
    found_times = []
    pending = list(plan.bound.predicates)
    while pending:
        expression = pending.pop()
        if not isinstance(expression, Apply):
            continue
        pending.extend(expression.operands)
        times = [part for part in expression.operands if isinstance(part, Column) and part.kind == "time"]
        if len(times) == 2:
            found_times.append(times)
    return found_times


def _percentages(plan: EvaluationPlan, events: EventsLookedAt) -> Iterator[str]:
    """Yield a warning for each column that is compared with a percentage and goes far beyond 1."""
    types = {part.variable: part.types for part in plan.bound.components}
    said = set[str]()
    for variable, name, share in _shares(plan):
        largest = None if name in said else _most(plan, events, types.get(variable, ()), name)
        if largest is None or not largest > _LARGEST_SHARE:
            continue
        said.add(name)
        yield (
            f"{100 * share:g}% is {share:g}, but {variable}.{quote_name(name)} goes up to {largest:,g}: "
            f"if it counts in percent, compare it with {100 * share:g}"
        )


@once_a_plan
def _shares(plan: EvaluationPlan) -> list[tuple[str, str, float]]:
    """Return variables, their attributes, and the percentages that these are compared with."""
    shares = []
    for compared in (part for condition in plan.query.where for part in expressions_in(condition)):
        if not isinstance(compared, Binary) or compared.operator not in _COMPARISONS:
            continue
        for value, percentage in ((compared.left, compared.right), (compared.right, compared.left)):
            # 0% is 0, whatever a column counts in.
            if not isinstance(percentage, Literal) or not percentage.percent or not percentage.value:
                continue
            if isinstance(value, Aggregate) and value.function not in ("avg", "min", "max"):
                continue
            if isinstance(value, Attribute | Aggregate) and value.name is not None:
                shares.append((value.variable, value.name, float(percentage.value)))
    return shares


def _most(plan: EvaluationPlan, events: EventsLookedAt, types: tuple[str, ...], name: str) -> float | None:
    """Return how far a column of numbers goes among events of some types; of a large table, in a sample."""
    if name not in events.schema.names or kind_of(events.schema.field(name).type) not in ("int", "float"):
        return None
    rows = events.sample(list(dict.fromkeys((plan.names.type, name))))
    mask = type_mask(rows, plan.names.type, types, {})
    column = rows.column(name) if mask is None else rows.column(name).filter(pa.array(mask))
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    # NaN is no number to compare with; Arrow's maximum leaves it out.
    largest = pc.max(column).as_py()
    return None if largest is None else float(largest)
