"""Binding: a checked query meets the columns of a trace, and every fault that shows is told at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import OptionError, QueryError, warn
from uncertain_cep.query.branches import Branch, ReadingTerm, branches_of
from uncertain_cep.query.checker import check
from uncertain_cep.query.gap_strategies import NamedGaps, named_gaps
from uncertain_cep.query.group_keys import GroupKey, bound_keys
from uncertain_cep.query.inference import Binding
from uncertain_cep.query.returned_times import (
    NO_LENGTH,
    OF_SINGLE_EVENTS,
    TimeBetween,
    times_between,
)
from uncertain_cep.query.span_relations import APART
from uncertain_cep.query.syntax import (
    AllAttributes,
    Attribute,
    Binary,
    Call,
    Component,
    Duration,
    Equivalence,
    Expression,
    Instant,
    Literal,
    Pattern,
    Position,
    Query,
    ReturnItem,
    Time,
    Variable,
    expressions_in,
)
from uncertain_cep.query.time_conditions import TimeCondition, TimeReference
from uncertain_cep.query.time_terms import Difference, differences_of
from uncertain_cep.query.typed import (
    Aggregated,
    Apply,
    Constant,
    Element,
    Kind,
    TypedExpression,
    attribute_names,
    columns_in,
    is_local,
    parse_time,
    variables_of,
)
from uncertain_cep.query.walks import components_of, has_options, with_leaves
from uncertain_cep.timeline.domain import DEFAULT_TICK, Names, TimeDomain
from uncertain_cep.timeline.durations import format_duration, parse_duration
from uncertain_cep.timeline.lasting_columns import has_spans
from uncertain_cep.timeline.local_days import Buckets, LocalDays, local_days

__all__ = [
    "MAX_WINDOW",
    "BoundComponent",
    "BoundQuery",
    "BoundReturn",
    "bind",
    "bind_row_condition",
    "differences_of_bounds",
]


@dataclass(frozen=True, slots=True)
class BoundComponent:
    """A component of ``SEQ``: the event types it takes (empty: any) and its variable."""

    variable: str
    types: tuple[str, ...]
    kleene: bool = False
    negated: bool = False
    joint: str = ""
    """The negated group that it stands in, see :class:`~uncertain_cep.query.syntax.Component`."""


@dataclass(frozen=True, slots=True)
class BoundReturn:
    """One output column: its name and either a typed expression or the id of a variable's event."""

    name: str
    expression: TypedExpression | None
    variable: str | None
    attribute: str | None = None
    """A column of the trace to return of the variable's event, or events, instead of the id."""
    between: TimeBetween | None = None
    """A time between two ends to return, which depends on the world."""


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query, or one branch of it without OR, bound to the columns of a trace."""

    query: Query
    components: tuple[BoundComponent, ...]
    """In pattern order."""
    predicates: tuple[TypedExpression, ...]
    """The conjuncts of WHERE except ``[attr]``; all of kind bool."""
    equivalences: tuple[str, ...]
    """The attributes of ``[attr]``, in the order written."""
    window: int
    """WITHIN, in ticks, at least 1."""
    returns: tuple[BoundReturn, ...]
    """Empty without RETURN."""
    pattern: Pattern
    """The query's, or that of a branch."""
    terms: tuple[ReadingTerm, ...] = ()
    """How the confidence of a branch's signatures is added up; empty if it is one OR-free pattern alone."""
    by: tuple[str, ...] = ()
    """The columns of ``RETURN EXPECTED COUNT BY``."""
    every: int | None = None
    """Its EVERY, in ticks, at least 1; of counts by ``days`` a length that all of these begin with."""
    days: LocalDays | None = None
    """The days of the query's time zone that EVERY means."""
    times: tuple[TimeCondition, ...] = ()
    """The conditions of WHERE on times."""
    left_out: frozenset[str] = frozenset()
    """Of a branch, the variables of lists that are empty, see :class:`Branch`."""
    gaps: NamedGaps | None = None
    """The strategies of single gaps, as negations."""
    is_reading: bool = False
    """Whether it is a branch of a pattern with optional components."""
    keys: tuple[GroupKey, ...] = ()
    """The names of ``RETURN PROBABILITY BY``."""
    places: tuple[tuple[str, tuple[str | None, ...]], ...] = ()
    """Of a reading, the columns of lists by iteration, each with those of its places; None: left out."""

    @property
    def buckets(self) -> Buckets | None:
        """The buckets of EVERY; None without one."""
        return None if self.every is None else Buckets(self.every, self.days)

    @property
    def ties_of_negated(self) -> tuple[TypedExpression, ...]:
        """The predicates that equate attributes of two components of a negated group."""
        joint = {part.variable for part in self.components if part.joint}
        spoken = [(part, variables_of(part)) for part in self.predicates] if joint else []
        return tuple(part for part, variables in spoken if len(variables) > 1 and variables <= joint)

    @property
    def returns_times(self) -> bool:
        """Whether RETURN asks for times between two ends."""
        return any(item.between is not None for item in self.returns)

    @property
    def returned_columns(self) -> tuple[str, ...]:
        """The columns of the trace that RETURN mentions."""
        columns = dict.fromkeys(item.attribute for item in self.returns if item.attribute is not None)
        shown = [item.expression for item in self.returns if item.expression is not None]
        columns |= dict.fromkeys(name for each in shown for name in sorted(attribute_names(each)))
        return tuple(columns)

    def branches(self) -> tuple[BoundQuery, ...]:
        """Return the query's branches without OR.

        Each has the predicates that it has all variables of. One with a negated variable, which is the
        only one there, so belongs to the readings that have it.
        """
        branches = map(self.of_branch, branches_of(self.pattern))
        return tuple(branch for branch in branches if branch is not None)

    def of_branch(self, branch: Branch) -> BoundQuery | None:
        """Return one branch of the query; None for a reading without any event, which is none."""
        names = {component.variable for component in components_of(branch.pattern)}
        if all(part.negated for part in self.components if part.variable in names):
            return None

        def has(expression: TypedExpression | None) -> bool:
            return expression is None or variables_of(expression) <= names

        return replace(
            self,
            components=tuple(part for part in self.components if part.variable in names),
            predicates=tuple(filter(has, self.predicates)),
            times=tuple(condition for condition in self.times if condition.variables <= names),
            returns=tuple(
                item
                for item in self.returns
                if has(item.expression)
                and (item.variable is None or item.variable in names)
                and (item.between is None or item.between.variables <= names)
            ),
            pattern=branch.pattern,
            terms=branch.terms if len(branch.terms) > 1 else (),
            left_out=branch.left_out,
            is_reading=has_options(self.pattern),
        )


MAX_WINDOW: Final = 2**62
"""The longest window, in ticks, so that a time plus a window stays within int64."""


def bind(query: Query, schema: pa.Schema, names: Names, domain: TimeDomain) -> BoundQuery:
    """Bind a query to the columns of a trace. WITHIN becomes ticks of the domain.

    A QueryError has every fault: unknown attributes, kinds that do not go together, a window that is not a
    whole number of ticks, and whatever `check` finds.
    """
    check(query)
    kleene = frozenset(component.variable for component in components_of(query.pattern) if component.kleene)
    binding = Binding(schema, names, kleene, zone=query.zone)
    counting = query.expected_count is not None or query.probability is not None
    predicates, equivalences, times = _bound_conditions(
        query, domain, binding, counting=counting, lasting=has_spans(schema.names)
    )
    for message in [] if counting else differences_of_bounds(query, names):
        warn(message)
    predicates += [bound for component in components_of(query.pattern) for bound in _bounds(component)]
    assert query.window is not None
    window = _ticks(query.window, domain, binding, "WITHIN", counting=counting)
    times = _apart(times, query, window, binding)
    by, every, days = _bound_expected_count(query, domain, binding)
    keys = bound_keys(query, binding)
    if query.probability is not None and query.probability.every is not None:
        every = _ticks(query.probability.every, domain, binding, "EVERY")
        days = _days(query.probability.every, every, query, domain, binding)
    variables = [component.variable for component in components_of(query.pattern)]
    returns = [bound for item in query.returns for bound in _bound_returns(item, query, variables, binding)]
    if binding.faults:
        raise QueryError(binding.faults, text=query.text)
    if not counting:
        binding.warn()
    gaps = named_gaps(query, predicates, times)
    predicates += gaps.predicates
    times += gaps.times
    return BoundQuery(
        query=query,
        components=tuple(
            BoundComponent(
                component.variable,
                tuple(dict.fromkeys(component.types)),
                component.kleene,
                component.negated,
                component.joint,
            )
            for component in components_of(gaps.pattern)
        ),
        predicates=tuple(predicates),
        equivalences=tuple(equivalences),
        window=window,
        returns=tuple(returns),
        pattern=gaps.pattern,
        gaps=gaps,
        by=by,
        every=every,
        days=days,
        times=tuple(times),
        keys=keys,
    )


def _bound_conditions(
    query: Query, domain: TimeDomain, binding: Binding, *, counting: bool, lasting: bool
) -> tuple[list[TypedExpression], dict[str, None], list[TimeCondition]]:
    """Return the predicates of WHERE, the attributes that it equates, and the conditions on times."""
    predicates: list[TypedExpression] = []
    equivalences: dict[str, None] = {}
    times: list[TimeCondition] = []
    bounds_of_until = {part.position for part in components_of(query.pattern) if part.needs}
    for number, condition in enumerate(query.where):
        if any(isinstance(part, Time) for part in expressions_in(condition)):
            differences = differences_of(with_leaves(condition, _counted))
            ends = [
                _bound_time_condition(
                    difference, condition.position, domain, binding, counting=counting, lasting=lasting
                )
                for difference in differences
            ]
            ends = [
                end if end is None or one.side is None else replace(end, apart=(number, one.side))
                for end, one in zip(ends, differences, strict=True)
            ]
            if condition.position in bounds_of_until:
                ends = [end and replace(end, is_order=True) for end in ends]
            # Times that cancel are mentioned, too.
            spoken = [part for part in expressions_in(condition) if isinstance(part, Time)]
            times += _as_one(
                [end for end in ends if end is not None],
                frozenset((part.variable, binding.element(part)) for part in spoken),
            )
        elif isinstance(condition, Equivalence):
            column = binding.column(condition.name, condition.position)
            if column is not None:
                equivalences[column[0]] = None
        else:
            typed = binding.condition(condition)
            if typed is not None:
                predicates.append(typed)
    return predicates, equivalences, times


def _apart(
    times: Sequence[TimeCondition], query: Query, window: int, binding: Binding
) -> list[TimeCondition]:
    """Return conditions on times, those of events that are apart with the bound that the window sets.

    Faults are noted of variables that cannot be apart.
    """
    spoken = {name for time in times if time.apart is not None for name in time.variables}
    if not spoken:
        return list(times)
    position = next(
        part.position
        for condition in query.where
        for part in expressions_in(condition)
        if isinstance(part, Call) and part.function == APART
    )
    for component in components_of(query.pattern):
        if component.variable in spoken and (component.negated or component.kleene):
            what = "is negated: write two negations, one BEFORE and one AFTER"
            if component.kleene:
                what = "takes several events: write what each of them is, BEFORE or AFTER"
            binding.refuse(f"NOT (.. OVERLAPS ..) of {component.variable}, which {what}", position)
    return [time if time.apart is None else replace(time, ticks=-min(window, 2**61)) for time in times]


def _as_one(ends: Sequence[TimeCondition], times: frozenset[tuple[str, Element]]) -> list[TimeCondition]:
    """Return the bounds that one condition consists of, each of which is asked where the whole is.

    ``times`` are the events whose times the condition mentions.
    """
    mentioned = times.union(*(end.mentions for end in ends))
    return [replace(end, beside=mentioned - end.mentions) for end in ends]


def _counted(leaf: Expression) -> Expression:
    """Return a number of ticks as conditions on times read it: a number."""
    return replace(leaf, kind=None) if isinstance(leaf, Literal) and leaf.kind == "ticks" else leaf


def _bounds(component: Component) -> Iterator[TypedExpression]:
    """Yield the conditions on the number of events of a repeated component."""
    if not component.kleene or component.by_iteration:
        return
    if component.most is not None:
        before = Aggregated(component.variable, "", "int", function="count", span="before")
        yield Apply("less", (before, Constant(component.most, "int")), "bool")
    if component.least > 1:
        every = Aggregated(component.variable, "", "int", function="count", span="all")
        yield Apply("greater_equal", (every, Constant(component.least, "int")), "bool")


def bind_row_condition(expression: Expression, schema: pa.Schema, *, text: str = "") -> TypedExpression:
    """Bind a condition on single rows, as `parse_row_condition` reads it, to a table's columns."""
    # The rows of a raw table have no tick yet.
    binding = Binding(schema, Names(tick=""))
    typed = binding.condition(expression)
    if typed is None or binding.faults:
        raise QueryError(binding.faults, text=text)
    binding.warn()
    return typed


def differences_of_bounds(query: Query, names: Names) -> list[str]:
    """Return a warning for each difference of interval bounds, where times may be meant."""
    bounds = {"lower", "upper", names.lower, names.upper}
    warnings = []
    for part in (part for condition in query.where for part in expressions_in(condition)):
        if not isinstance(part, Binary) or part.operator != "-":
            continue
        one, other = part.left, part.right
        if not isinstance(one, Attribute) or not isinstance(other, Attribute):
            continue
        if {one.name, other.name} <= bounds and one.variable != other.variable:
            warnings.append(
                f"{one.variable}.{one.name} - {other.variable}.{other.name} compares bounds of intervals, "
                "which are the same in every world: for the time between the two events write "
                f"TIME({one.variable}) - TIME({other.variable})"
            )
    return warnings


def _bound_time_condition(
    difference: Difference,
    position: Position,
    domain: TimeDomain,
    binding: Binding,
    *,
    counting: bool,
    lasting: bool,
) -> TimeCondition | None:
    """Return a condition with TIME in ticks; None, with faults noted, if its bound is none."""
    faults_before = len(binding.faults)
    ticks = nanoseconds = moment_count = 0
    numbers: list[tuple[int, TypedExpression]] = []
    moments: list[tuple[int, TypedExpression]] = []
    for sign, term in difference.terms:
        typed = binding.expression(term)
        if typed is None:
            continue
        if isinstance(typed, Constant) and typed.kind not in ("null", "bool"):
            length = _length_or_time(typed, difference.earlier is not None, binding, term.position)
            if isinstance(length, Instant):
                nanoseconds += sign * length
                moment_count += sign
            elif length is not None and length.nanoseconds is None and length.amount != int(length.amount):
                binding.refuse("a number of ticks must be whole: round it, or name a unit", length.position)
            elif length is not None:
                ticks += sign * _ticks(
                    length, domain, binding, difference.comparison, counting=counting, largest=None
                )
        elif any(isinstance(part, Aggregated) for part in columns_in(typed)):
            message = "an aggregate is no bound of a time: use attributes of single events"
            binding.refuse(message, term.position)
        elif typed.kind in ("time", "duration"):
            moments.append((sign, typed))
            moment_count += sign if typed.kind == "time" else 0
        elif typed.kind in ("int", "float", "null"):
            numbers.append((sign, typed))
        else:
            binding.refuse("a time is compared with times, lengths and numbers of ticks only", term.position)
    if len(binding.faults) == faults_before:
        _refuse_kinds(difference, position, domain, binding, moment_count, has_moments=bool(moments))
    later = _reference(difference.later, binding, lasting)
    earlier = None if difference.earlier is None else _reference(difference.earlier, binding, lasting)
    if later == earlier:
        binding.refuse(NO_LENGTH.format(later.variable), position)
    if len(binding.faults) > faults_before:
        return None
    return TimeCondition(
        later,
        earlier,
        difference.comparison,
        ticks,
        nanoseconds,
        _sum_of(numbers),
        tuple(moments),
    )


def _refuse_kinds(
    difference: Difference,
    position: Position,
    domain: TimeDomain,
    binding: Binding,
    moment_count: int,
    *,
    has_moments: bool,
) -> None:
    """Note as a fault what compares a time with a length, or the other way round."""
    is_moment = moment_count != 0
    if has_moments and domain.tick_nanoseconds is None:
        message = (
            "the times of this trace are plain ticks of unknown length: give the tick, such as tick='1ms'"
        )
        binding.refuse(message, position)
    elif difference.earlier is not None and is_moment:
        message = "the difference of two times is a length: compare it with a length, such as 5 seconds"
        binding.refuse(message, position)
    elif difference.earlier is None and domain.unit == "tick" and is_moment:
        message = "the times of this trace are whole numbers: compare TIME with a whole number of ticks"
        binding.refuse(message, position)
    elif difference.earlier is None and domain.unit != "tick" and moment_count != 1:
        shown = f"TIME({difference.later.variable})"
        message = f"{shown} is a time: compare it with one, such as TIMESTAMP '2026-01-05 08:00:00'"
        binding.refuse(message, position)


def _reference(time: Time, binding: Binding, lasting: bool) -> TimeReference:
    """Return the time of an event, or of one of its ends if events can last."""
    return TimeReference(time.variable, binding.element(time), time.part if lasting else None)


def _length_or_time(
    constant: Constant, is_difference: bool, binding: Binding, position: Position
) -> Duration | Instant | None:
    """Return the bound that a constant is of a time or of a difference; None, with a fault noted, if none."""
    value: Any = constant.value
    if constant.kind == "time":
        return Instant(value)
    if constant.kind in ("int", "float"):
        return Duration(value, None, None, position)
    try:
        if constant.kind == "string" and not (is_difference and constant.parameter is not None):
            moment = parse_time(value)
            if moment is not None and is_local(value):
                moment = binding.moment(moment, position)
                return None if moment is None else Instant(moment)
            if moment is not None:
                return Instant(moment)
            message = f"'{value}' is no time: write ISO 8601, such as TIMESTAMP '2024-05-01T12:00:00Z'"
            binding.refuse(message, position)
            return None
        nanoseconds = value
        if constant.kind == "string":
            nanoseconds = parse_duration(value, what=f"${constant.parameter}")
    except OptionError as error:
        binding.refuse(str(error), position)
        return None
    return Duration(nanoseconds, "ns", nanoseconds, position)


def _sum_of(terms: list[tuple[int, TypedExpression]]) -> TypedExpression | None:
    """Return the sum of signed numbers; None of none."""
    total: TypedExpression | None = None
    for sign, term in terms:
        if total is None:
            total = term if sign > 0 else Apply("negate", (term,), term.kind)
        else:
            kinds = {total.kind, term.kind}
            kind: Kind = "null" if "null" in kinds else "int" if kinds == {"int"} else "float"
            total = Apply("add" if sign > 0 else "subtract", (total, term), kind)
    return total


def _bound_returns(
    item: ReturnItem, query: Query, variables: list[str], binding: Binding
) -> list[BoundReturn]:
    expression = item.expression
    if isinstance(expression, Variable) and expression.name in variables:
        return [BoundReturn(item.name, None, expression.name)]
    if isinstance(expression, AllAttributes):
        variable = expression.variable
        return [BoundReturn(f"{variable}.{name}", None, variable, name) for name in binding.attributes]
    if (between := times_between(item.name, expression)) is not None:
        of = next(iter(between.values())).variables
        for part in components_of(query.pattern):
            if part.kleene and part.variable in of:
                binding.refuse(OF_SINGLE_EVENTS.format(part.variable), item.position)
        if len(of) == 1 and not has_spans(binding.schema.names):
            binding.refuse(NO_LENGTH.format(*of), item.position)
        return [BoundReturn(name, None, None, between=part) for name, part in between.items()]
    typed = binding.expression(expression)
    return [] if typed is None else [BoundReturn(item.name, typed, None)]


def _bound_expected_count(
    query: Query, domain: TimeDomain, binding: Binding
) -> tuple[tuple[str, ...], int | None, LocalDays | None]:
    """Return the columns of BY, and the ticks of EVERY.

    Counts of days of a time zone are sums of those of shorter buckets, which all such days begin with.
    """
    clause = query.expected_count
    if clause is None:
        return (), None, None
    columns = [binding.column(name, clause.position) for name in clause.by]
    every, days = None, None
    if clause.every is not None:
        every = _ticks(clause.every, domain, binding, "EVERY")
        days = _days(clause.every, every, query, domain, binding)
        every = every if days is None else days.common_length
    return tuple(column[0] for column in columns if column is not None), every, days


def _days(
    clause: Duration, every: int, query: Query, domain: TimeDomain, binding: Binding
) -> LocalDays | None:
    """Return the days of the query's zone that EVERY means, if it does."""
    try:
        return local_days(query.zone, every, domain.tick_nanoseconds)
    except OptionError as error:
        binding.refuse(str(error), clause.position)
        return None


def _ticks(
    duration: Duration,
    domain: TimeDomain,
    binding: Binding,
    clause: str,
    *,
    counting: bool = False,
    largest: int | None = MAX_WINDOW,
) -> int:
    """Return a length in ticks; 1, with a fault noted, if it is no whole number of them."""
    if duration.nanoseconds is None:
        ticks = int(duration.amount)
        # A query for counts is bound a second time without them, for its matches.
        if 0 < ticks < MAX_WINDOW and not domain.named and not counting:
            length = format_duration(ticks * DEFAULT_TICK)
            warn(
                f"{clause} {ticks} counts ticks of {domain.describe()} here, which is {length}: write a "
                f"unit, such as {clause} {ticks} seconds, or {clause} {length} if that is what is meant"
            )
    elif domain.tick_nanoseconds is None:
        binding.refuse(
            "the times of this trace are plain ticks of unknown length: give the tick, such as tick='1ms', "
            f"or write {clause} in ticks, such as {clause} {math.ceil(duration.amount)}",
            duration.position,
        )
        return 1
    else:
        ticks, remainder = divmod(duration.nanoseconds, domain.tick_nanoseconds)
        if remainder:
            length = format_duration(duration.nanoseconds)
            binding.refuse(
                f"{length} is not a whole number of ticks of {domain.describe()}: use a multiple of it, "
                "or a finer tick",
                duration.position,
            )
            return 1
    if largest is not None and ticks > largest:
        length = "the window" if clause == "WITHIN" else "a bucket"
        binding.refuse(f"{length} is longer than {largest} ticks", duration.position)
    return ticks
