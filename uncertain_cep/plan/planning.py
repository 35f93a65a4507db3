"""From a bound query to the plan that the executor runs, and what its result looks like."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import Fault, OptionError, QueryError, TraceError
from uncertain_cep.plan.clock_columns import (
    has_marginals,
    idle_columns,
    names_clocks,
    warn_of_idle_columns,
)
from uncertain_cep.plan.components import PlannedComponent, PlannedNegation
from uncertain_cep.plan.equivalence import Equivalences, PartitionKey, partition_keys
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.plan.grouping import ROW_FIELD, grouped_plan, of_matches, with_rows
from uncertain_cep.plan.joint_negations import refuse_negated_groups
from uncertain_cep.plan.known_until import end_in_ticks
from uncertain_cep.plan.lasting import refuse_lasting_events
from uncertain_cep.plan.once_a_row import once_a_row
from uncertain_cep.plan.options import PLANNERS, MatchOptions, of_grouped_matches
from uncertain_cep.plan.other_values import with_other_values
from uncertain_cep.plan.readings import Choice, Readings
from uncertain_cep.plan.result_columns import bound_having, bound_order
from uncertain_cep.plan.time_bounds import Distances, bound_predicates, distances_of, span_of
from uncertain_cep.plan.trees import parse_tree
from uncertain_cep.query import Query, bind, query_of
from uncertain_cep.query.binder import BoundComponent, BoundQuery, differences_of_bounds
from uncertain_cep.query.branches import (
    Branch,
    alternatives_of,
    has_countless_readings,
    is_linear,
    order_of,
)
from uncertain_cep.query.counted_set import as_pairs
from uncertain_cep.query.fewest_events import fewest_events
from uncertain_cep.query.next_as_any import next_as_any
from uncertain_cep.query.parameters import kinds_of
from uncertain_cep.query.parser import read_query
from uncertain_cep.query.repeated_groups import has_repeated_groups
from uncertain_cep.query.syntax import (
    Component,
    Conjunction,
    Disjunction,
    ExpectedCount,
    Pattern,
    Sequence,
    Time,
    expressions_in,
    spoken_in,
)
from uncertain_cep.query.typed import (
    Aggregated,
    Column,
    TypedExpression,
    attribute_names,
    columns_in,
    speaks_of_each_event,
    variables_of,
)
from uncertain_cep.query.walks import (
    attributes_in,
    compares_with_null,
    components_of,
    has_options,
    patterns_in,
)
from uncertain_cep.timeline.domain import ZONE_METADATA, TimeDomain, length_type, mean_length_type
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS, has_spans
from uncertain_cep.traces.checks import check_columns
from uncertain_cep.traces.source_order import check_order_columns

__all__ = [
    "COMPRESSED_COLUMNS",
    "asks_of_times",
    "beyond_plain",
    "make_plan",
    "plan_of_branch",
    "plan_of_reading",
    "remembered_plan",
]

COMPRESSED_COLUMNS: Final = ("p_nonempty", "expected_subsets", "expected_elements")
"""Columns of a result with ``kleene="compressed"``, behind the confidence."""

_TYPES: Final[dict[str, pa.DataType]] = {
    "int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_(),
    "null": pa.null(),
}  # fmt: skip

MOST_PLANS: Final = 64
"""Plans of query texts that a process remembers; the oldest goes first: `--only latency`."""


def make_plan(
    query: Query,
    schema: pa.Schema,
    options: MatchOptions = MatchOptions(),  # noqa: B008
    **changes: Any,
) -> EvaluationPlan:
    """Bind a query to the columns of an event table and plan its evaluation.

    ``changes`` are options by name, in place of those of ``options``.

    Raises
    ------
    QueryError, TraceError, OptionError
        For everything that can be told without reading an event.
    """
    if changes:
        options = replace(options, **changes)
    query = as_pairs(_in_zone_of(query, schema))
    # What may spoil a match behind the known end, and ties that sequences break, are asked of the strategy.
    if options.known_until is None and not (options.sources and options.names.sequence in schema.names):
        query = fewest_events(next_as_any(query))
    counted = query.expected_count
    if counted is not None:
        options.check_counting()
    refuse_lasting_events(schema, query, options)
    refuse_negated_groups(schema, query, options)
    domain = TimeDomain.of(schema, options.names, options.tick)
    faults = check_columns(schema, options.names)
    if options.sources:
        faults += check_order_columns(schema.names, options.names)
    if faults:
        raise TraceError(faults)
    bound = bind(query, schema, options.names, domain)
    if query.probability is not None:
        options.check_grouping()
        warn_of_idle_columns(schema, options, attributes_in(query) or ())
        plain = bind(of_matches(query), schema, options.names, domain)
        of_match = of_grouped_matches(options, weighs=query.probability.counted is None)
        by_row = _plan_of(with_rows(plain), schema.append(ROW_FIELD), domain, of_match)
        return grouped_plan(_plan_of(plain, schema, domain, of_match), by_row, bound, schema, options)
    options.check_of_matches()
    if counted is not None:
        matches = make_plan(replace(query, expected_count=None), schema, options)
        return _counting_plan(matches, bound, counted, schema)
    warn_of_idle_columns(schema, options, attributes_in(query) or ())
    return _plan_of(bound, schema, domain, options)


def _plan_of(
    bound: BoundQuery, schema: pa.Schema, domain: TimeDomain, options: MatchOptions
) -> EvaluationPlan:
    """Plan the evaluation of a bound query for matches."""
    pattern = bound.pattern
    repeats = has_repeated_groups(pattern)
    is_open = repeats or has_countless_readings(pattern)
    has_alternatives = not repeats and (is_open or isinstance(pattern, Sequence))
    alternatives = alternatives_of(pattern) if has_alternatives else ()
    readings = Readings(bound, alternatives, schema, _without_limit(options), frozenset(), not is_open)
    branches = tuple(map(readings.of, readings.covering)) if is_open else bound.branches()
    if len(branches) == 1 and not repeats:
        return _with_controls(_ordered(_planned(branches[0], schema, domain, options), options))
    if options.gives_tree:
        raise OptionError(
            f"planner={options.planner!r}: a tree is for one pattern, and OR(...) and options stand for "
            "several: name a planner"
        )
    if options.compressed:
        raise OptionError('kleene="compressed" needs a pattern without OR(...) and optional components')
    keys_of_branches = [partition_keys(branch).keys for branch in branches]
    shared = [key.name for key in keys_of_branches[0] if key.name is not None]
    shared = [name for name in shared if all(name in [key.name for key in keys] for keys in keys_of_branches)]
    if repeats or (is_open and not all(_has_known_keys(alternative.items) for alternative in alternatives)):
        shared = [name for name in shared if name in bound.equivalences]
    parts = [_branch_plan(branch, schema, domain, options, shared) for branch in branches]
    negated = sum(component.negated for component in bound.components)
    positive = len(bound.components) - negated
    keys = tuple(PartitionKey((name,) * positive, (name,) * negated) for name in shared)
    plan = _planned(bound, schema, domain, options, keys)
    # A condition on variables of two alternatives holds in each; those who plan again have to bind it.
    needed = dict.fromkeys(name for part in (*parts, plan) for name in part.required_columns)
    # Where a component is left out, what bounds its distances bounds the others' no more.
    window = bound.window if is_open else max(part.window for part in parts)
    plan = _with_controls(replace(plan, bound=replace(bound, window=window)))
    if is_open:
        # What splits the events of some readings alone says nothing of the others'.
        sure = bound.equivalences if bound.query.strategy == "skip_till_next_match" else shared
        parts = [
            replace(part, split_keys=tuple(key for key in part.split_keys if key.name in sure))
            for part in parts
        ]
    controlled = (replace(part, having=plan.having, sort_keys=plan.sort_keys) for part in parts)
    return replace(
        plan,
        branches=tuple(controlled),
        required_columns=tuple(needed),
        readings=replace(readings, keys=frozenset(shared)) if alternatives or repeats else None,
    )


def _without_limit(options: MatchOptions) -> MatchOptions:
    """Return options that can travel: what they say of how long and with which values is not of the plan."""
    return replace(options, limit=None, parameters=())


def _has_known_keys(items: tuple[tuple[Branch, ...], ...]) -> bool:
    """Return whether keys of readings with one option, or none, are keys of those with several.

    So it is where the only choices are components that may be left out, and another one is always there: what
    ties each of them to that ties all of them together.
    """
    always = any(len(item) == 1 and not _is_negation(item[0].pattern) for item in items)
    return always and all(len(item) == 1 or _is_option(item) for item in items)


def _is_negation(pattern: Pattern) -> bool:
    return all(component.negated for component in components_of(pattern))


def _is_option(item: tuple[Branch, ...]) -> bool:
    return len(item) == 2 and isinstance(item[1].pattern, Component) and not [*components_of(item[0].pattern)]


def _branch_plan(
    branch: BoundQuery, schema: pa.Schema, domain: TimeDomain, options: MatchOptions, shared: Collection[str]
) -> EvaluationPlan:
    """Return the plan of one branch of several; ``shared`` are the names of the keys of all of them."""
    keys = tuple(key for key in partition_keys(branch).keys if key.name in shared)
    return _ordered(_planned(branch, schema, domain, options, keys), options)


def plan_of_branch(
    branch: BoundQuery,
    schema: pa.Schema,
    domain: TimeDomain,
    options: MatchOptions,
    shared: Collection[str] | None = None,
) -> EvaluationPlan:
    """Return the plan of an OR-free query that is bound already, for a table with a schema.

    ``shared`` are the names of the keys of all branches, if it is one of several.
    """
    if shared is None:
        return _ordered(_planned(branch, schema, domain, options), options)
    return _branch_plan(branch, schema, domain, options, shared)


def plan_of_reading(plan: EvaluationPlan, choice: Choice) -> EvaluationPlan:
    """Return the plan of one reading of a plan that is open."""
    readings = plan.readings
    assert readings is not None
    plan_of_branch = _branch_plan(
        readings.of(choice), readings.schema, plan.domain, readings.options, readings.keys
    )
    return replace(plan_of_branch, having=plan.having, sort_keys=plan.sort_keys, known_until=plan.known_until)


def _with_controls(plan: EvaluationPlan) -> EvaluationPlan:
    """Return a plan with what HAVING and ORDER BY ask of the columns of its result."""
    query, schema = plan.query, plan.output_schema
    if query.having is None and not query.order_by:
        return plan
    if "confidence" not in schema.names:
        schema = schema.append(pa.field("confidence", pa.float64()))
    return replace(plan, having=bound_having(query, schema), sort_keys=bound_order(query, schema))


_what_matters: Final = attrgetter(
    *(field.name for field in fields(MatchOptions) if field.name not in ("limit", "parameters"))
)
_remembered: Final[dict[object, EvaluationPlan]] = {}


def _in_zone_of(query: Query, schema: pa.Schema) -> Query:
    """Return a query that counts hours and days in the zone of the events, unless it has one of its own."""
    zone = (schema.metadata or {}).get(ZONE_METADATA)
    return query if zone is None or query.zone is not None else replace(query, zone=zone.decode())


def remembered_plan(query: Query | str, schema: pa.Schema, options: MatchOptions) -> EvaluationPlan:
    """Return the plan of :func:`make_plan`; a text planned with this schema before is not even read.

    With parameters the plan is that of other values of the same kinds, with these in their places.
    """
    values = options.parameters
    if not isinstance(query, str):
        return make_plan(query_of(query, values), schema, options)
    # Schemas are equal whatever their metadata, which say how long a tick is.
    key: tuple[object, ...] = query, schema, tuple((schema.metadata or {}).items()), _what_matters(options)
    if values:
        key = *key, kinds_of(values, read_query(query).planning_parameters)
    try:
        plan = _remembered.get(key)
    except TypeError:
        # Extension types of users need no hash.
        return make_plan(query_of(query, values), schema, options)
    if plan is not None and values:
        plan = with_other_values(plan, dict(values))
    if plan is None:
        plan = make_plan(query_of(query, values), schema, options)
        if not _warned(plan) and not idle_columns(schema, options):
            while len(_remembered) >= MOST_PLANS:
                _remembered.pop(next(iter(_remembered)), None)
            _remembered[key] = plan
    return plan


def _warned(plan: EvaluationPlan) -> bool:
    """Return whether binding the query may have warned: of NULL, of bounds, or of ticks of unknown length."""
    query = plan.query
    if any(map(compares_with_null, spoken_in(query))) or differences_of_bounds(query, plan.names):
        return True
    clause = query.expected_count or query.probability
    lengths = query.window, None if clause is None else clause.every
    return not plan.domain.named and (
        bool(plan.bound.times) or any(length is not None and length.nanoseconds is None for length in lengths)
    )


def _planned(
    bound: BoundQuery,
    schema: pa.Schema,
    domain: TimeDomain,
    options: MatchOptions,
    given_keys: tuple[PartitionKey, ...] | None = None,
) -> EvaluationPlan:
    """Plan a query without regard to OR; for one branch of several, with the keys that all of them have."""
    names = options.names
    equivalences = partition_keys(bound)
    keys = equivalences.keys if given_keys is None else given_keys
    implied = [part for condition in bound.times for part in bound_predicates(condition, names, domain)]
    local, constant, joined = _placed_predicates(bound, (*equivalences.remaining, *implied))
    planned = [
        PlannedComponent(part.variable, part.types, tuple(local[part.variable]), part.kleene)
        for part in bound.components
    ]
    negated = [part.negated for part in bound.components]
    unnamed = [key for key in keys if key.name is None] if bound.query.non_overlapping else []
    lasting = has_spans(schema.names)
    if bound.times and is_linear(bound.pattern) and not (negated[0] or negated[-1] or lasting):
        singles = [part.variable for part in bound.components if not part.negated]
        if not any(part.kleene for part in bound.components):
            step = 0 if names_clocks(schema, options) and names.sequence in schema.names else 1
            bound = replace(bound, window=span_of(bound.times, singles, bound.window, domain, step))
    return EvaluationPlan(
        bound=bound,
        names=names,
        domain=domain,
        components=tuple(part for part, absent in zip(planned, negated, strict=True) if not absent),
        negations=tuple(
            PlannedNegation(part, place - sum(negated[:place]), bound.components[place].joint)
            for place, part in enumerate(planned)
            if negated[place]
        ),
        keys=keys,
        split_keys=equivalences.split,
        constant=tuple(constant),
        joined=tuple(map(once_a_row, joined)),
        evaluation=options.method,
        confidence=options.confidence,
        approximate=options.approximate,
        compressed=options.compressed,
        required_columns=_required_columns(bound, schema, options, equivalences, keys),
        output_schema=_output_schema(bound, keys, schema, domain, options),
        distances=None if lasting else _distances(bound, domain, options),
        lasting=lasting,
        clocks=names_clocks(schema, options),
        marginals=has_marginals(schema, options),
        known_until=end_in_ticks(options.known_until, domain),
        unnamed_keys=tuple(
            pa.field(
                f"partition by {' = '.join(key.columns)} ({number})", _plain_type(schema, key.columns[0])
            )
            for number, key in enumerate(unnamed, 1)
        ),
    )


def _placed_predicates(
    bound: BoundQuery, predicates: Iterable[TypedExpression]
) -> tuple[dict[str, list[TypedExpression]], list[TypedExpression], list[TypedExpression]]:
    """Return the predicates on events of each variable, those of no variable, and those across events."""
    local: dict[str, list[TypedExpression]] = {part.variable: [] for part in bound.components}
    constant, joined = [], []
    for predicate in predicates:
        mentioned = variables_of(predicate)
        if not mentioned:
            constant.append(predicate)
        elif len(mentioned) == 1 and all(map(speaks_of_each_event, columns_in(predicate))):
            local[next(iter(mentioned))].append(predicate)
        else:
            joined.append(predicate)
    return local, constant, joined


def _required_columns(
    bound: BoundQuery,
    schema: pa.Schema,
    options: MatchOptions,
    equivalences: Equivalences,
    keys: Iterable[PartitionKey],
) -> tuple[str, ...]:
    """Return the columns that an evaluation reads, each once."""
    names = options.names
    needed = [names.type, names.id, names.lower, names.upper]
    needed += [name for name in (names.pmf, names.probability) if name in schema.names]
    if has_spans(schema.names):
        needed += [*SPAN_COLUMNS, *(name for name in SPAN_LAWS if name in schema.names)]
    if names_clocks(schema, options):
        needed += names.of_clocks(schema.names)
    if has_marginals(schema, options):
        needed += [*names.clocks, *names.of_offset_laws(schema.names)]
    for key in (*keys, *equivalences.split):
        needed += [*key.columns, *filter(None, key.negated)]
    needed += bound.returned_columns
    for expression in (*equivalences.remaining, *bound.ties_of_negated):
        needed += sorted(attribute_names(expression))
    for condition in bound.times:
        needed += sorted(condition.attributes)
    return tuple(dict.fromkeys(needed))


def _distances(bound: BoundQuery, domain: TimeDomain, options: MatchOptions) -> Distances | None:
    """Return the distances of :func:`distances_of` for a plain sequence that skips till any match."""
    plain = not any(part.kleene or part.negated for part in bound.components)
    if not bound.times or not plain or not is_linear(bound.pattern) or options.compressed:
        return None
    if bound.query.strategy != "skip_till_any_match" or len(bound.components) < 2:
        return None
    return distances_of(bound.times, [part.variable for part in bound.components], options.names, domain)


def _ordered(plan: EvaluationPlan, options: MatchOptions) -> EvaluationPlan:
    """Return the plan of an OR-free pattern with its order; refuse what its evaluation does not answer."""
    pattern = plan.bound.pattern
    plan = plan if is_linear(pattern) else replace(plan, order=order_of(pattern))
    if plan.compressed:
        _check_compressed(plan)
    what = _beyond_plain(plan.bound.components, plan.query)
    if what is not None and plan.query.gap_strategies:
        what = "strategies of single gaps"
    if plan.order is not None:
        what = "event sets, AND(...)"
    of_clocks = what or plan.query.strategy
    if plan.evaluation == "point" and plan.order is None:
        what = 'kleene="compressed"' if plan.compressed else None
    if plan.clocks and not plan.is_free_sequence:
        if plan.bound.times:
            of_clocks = "conditions on times, TIME(...),"
        what = f"{of_clocks} with events that share clocks"
    if what is not None and plan.evaluation != "query_order":
        raise OptionError(f"evaluation={options.evaluation!r} does not support {what}: leave evaluation= out")
    if options.evaluation != "auto":
        return replace(plan, planner="none")
    if options.planner in PLANNERS:
        return replace(plan, planner=options.planner, latency_weight=options.latency_weight)
    tree = parse_tree(options.planner, _joinable(plan, options.planner))
    return replace(plan, planner="given", tree=tree)


def _joinable(plan: EvaluationPlan, planner: str) -> list[str]:
    """Return the variables that a tree is over."""
    if len(plan.singles) < 2:
        raise OptionError(
            f"planner={planner!r}: a tree joins components that take one event, and this pattern has "
            f"{len(plan.singles)} of them: leave planner= out"
        )
    return [plan.components[j].variable for j in plan.singles]


def _plain_type(schema: pa.Schema, name: str) -> pa.DataType:
    """Return the type of a column, of its values if it is dictionary-encoded."""
    dtype = schema.field(name).type
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _arrow_type(expression: TypedExpression, schema: pa.Schema) -> pa.DataType:
    is_taken = not isinstance(expression, Aggregated) or expression.function in ("min", "max")
    if isinstance(expression, Column) and expression.computed is None and is_taken:
        return _plain_type(schema, expression.name)
    if expression.kind in ("time", "duration"):
        # Spark knows microseconds only, and so no trace on Spark has more.
        types = [_plain_type(schema, name) for name in attribute_names(expression)]
        unit = "ns" if any(getattr(type_, "unit", None) == "ns" for type_ in types) else "us"
        return pa.duration(unit) if expression.kind == "duration" else pa.timestamp(unit)
    return _TYPES[expression.kind]


def _output_schema(
    bound: BoundQuery,
    keys: tuple[PartitionKey, ...],
    schema: pa.Schema,
    domain: TimeDomain,
    options: MatchOptions,
) -> pa.Schema:
    """Return the columns of a query's result on a trace with a schema, in order; keys with one name lead.

    Raises
    ------
    QueryError
        If two columns would have one name.
    """
    id_type = _plain_type(schema, options.names.id)
    ids = {
        component.variable: pa.list_(id_type) if component.kleene else id_type
        for component in bound.components
        if not component.negated
    }
    series = {component.variable for component in bound.components if component.kleene}
    fields = [(key.name, _plain_type(schema, key.name)) for key in keys if key.name is not None]
    fields += list(ids.items())
    for item in bound.returns:
        if item.expression is not None:
            fields.append((item.name, _arrow_type(item.expression, schema)))
        elif item.attribute is not None:
            type_ = _plain_type(schema, item.attribute)
            fields.append((item.name, pa.list_(type_) if item.variable in series else type_))
        elif item.between is not None:
            is_mean, tick = item.between.side == "mean", domain.tick_nanoseconds
            fields.append((item.name, mean_length_type(tick) if is_mean else length_type(tick)))
        elif item.variable is not None and item.name != item.variable:
            fields.append((item.name, ids[item.variable]))
    fields += [("range_lower", domain.arrow_type), ("range_upper", domain.arrow_type)]
    if options.confidence:
        fields.append(("confidence", pa.float64()))
        if options.compressed:
            fields += [(name, pa.float64()) for name in COMPRESSED_COLUMNS]
        if options.approximate is not None:
            fields += [("exact", pa.bool_()), ("std_error", pa.float64())]
    names = [name for name, _ in fields]
    places = {item.name: item.position for item in reversed(bound.query.returns)}
    faults = []
    for number, name in enumerate(names):
        if name in names[:number]:
            message = f"two columns of the result would be called {name!r}: rename the variable or use AS"
            place = places.get(name)
            faults.append(Fault(message, place.line if place else 1, place.column if place else 1))
    if faults:
        raise QueryError(faults, text=bound.query.text)
    return pa.schema(fields)


def _counting_plan(
    matches: EvaluationPlan, bound: BoundQuery, clause: ExpectedCount, schema: pa.Schema
) -> EvaluationPlan:
    """Return the plan that counts the matches of another.

    Raises
    ------
    QueryError
        If a match need not have one value of an attribute that counts are grouped by.
    """
    place = clause.position
    faults = [
        Fault(
            f"BY {name}: the events of a match need not agree on {name}, so it has no one group; equate it "
            f"across all components, by [{name}] in WHERE",
            place.line,
            place.column,
        )
        for name in bound.by
        if name not in matches.partition_attributes
    ]
    if faults:
        raise QueryError(faults, text=bound.query.text)
    fields = [(name, _plain_type(schema, name)) for name in bound.by]
    if bound.every is not None:
        fields.append(("bucket", matches.domain.arrow_type))
    return replace(
        matches,
        bound=replace(matches.bound, query=bound.query, by=bound.by, every=bound.every, days=bound.days),
        output_schema=pa.schema([*fields, ("expected_count", pa.float64())]),
        counted=matches,
    )


def asks_of_times(query: Query) -> bool:
    """Return whether a query has conditions on times."""
    return any(isinstance(part, Time) for condition in query.where for part in expressions_in(condition))


def beyond_plain(query: Query) -> str | None:
    """Return the part of a query that only the default evaluation answers, in process, or None."""
    if any(isinstance(pattern, Conjunction) for pattern in patterns_in(query.pattern)):
        return "event sets, AND(...)"
    if any(isinstance(pattern, Disjunction) for pattern in patterns_in(query.pattern)):
        return "alternative patterns, OR(...)"
    if has_repeated_groups(query.pattern):
        return "repeated groups"
    if has_options(query.pattern):
        return "optional components"
    if query.gap_strategies:
        return "strategies of single gaps"
    return _beyond_plain(components_of(query.pattern), query)


def _beyond_plain(components: Iterable[Component | BoundComponent], query: Query) -> str | None:
    """Return the same of a sequence of components under the query's strategy."""
    parts = list(components)
    if any(component.kleene for component in parts):
        return "Kleene components"
    if any(component.negated for component in parts):
        return "negation"
    return query.strategy if query.strategy.endswith("contiguity") else None


def _check_compressed(plan: EvaluationPlan) -> None:
    """Refuse a query whose Kleene events are more than a set of candidates, each for itself."""
    kleene = [component.variable for component in plan.components if component.kleene]
    mentioned = [
        column
        for expression in (*plan.joined, *(item.expression for item in plan.bound.returns))
        if expression is not None
        for column in columns_in(expression)
        if column.variable in kleene
    ]
    fault = None
    if not is_linear(plan.bound.pattern):
        fault = "a sequence, without AND and OR"
    elif len(kleene) != 1:
        fault = f"a query with one Kleene component, not {len(kleene)}"
    elif len(plan.components) == 1:
        fault = "a component besides the Kleene one"
    elif plan.negations:
        fault = "a query without negated components"
    elif plan.query.strategy != "skip_till_any_match":
        fault = f"skip_till_any_match, not {plan.query.strategy}"
    elif any(isinstance(column, Aggregated) or column.index != "current" for column in mentioned) or any(
        not condition.elements(kleene[0]) <= {"current"} for condition in plan.bound.times
    ):
        fault = f"conditions on {kleene[0]}[i] alone: a set has no first, last or aggregate"
    elif plan.bound.returns_times:
        fault = "no DURATION in RETURN: a row is many matches"
    elif plan.approximate is not None:
        fault = "exact confidences: leave approximate= out"
    if fault is not None:
        raise OptionError(f'kleene="compressed" needs {fault}')
