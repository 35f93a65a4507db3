"""Faults of a query that show without a trace, all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from uncertain_cep.errors import Fault, QueryError
from uncertain_cep.query.branches import (
    MOST_BRANCHES,
    MOST_TERMS,
    count_of_expansions,
    count_of_terms,
    has_countless_readings,
    is_linear,
    keeps_order,
    set_variables,
    some_expansions,
)
from uncertain_cep.query.counted_set import counted_faults, counted_set, with_plus
from uncertain_cep.query.expression_text import quote_name
from uncertain_cep.query.group_clause import probability_faults
from uncertain_cep.query.group_faults import group_faults
from uncertain_cep.query.negated_groups import joint_faults, ties_members
from uncertain_cep.query.repeated_groups import has_repeated_groups
from uncertain_cep.query.span_relations import length_ends
from uncertain_cep.query.spelling import nearest
from uncertain_cep.query.syntax import (
    Aggregate,
    AllAttributes,
    Attribute,
    Component,
    Conjunction,
    Duration,
    Equivalence,
    ExpectedCount,
    Expression,
    Option,
    Pattern,
    Position,
    Query,
    Time,
    Variable,
    expressions_in,
)
from uncertain_cep.query.time_terms import NoDifferenceError, differences_of
from uncertain_cep.query.unquoted import in_quotes, texts_meant
from uncertain_cep.query.walks import components_of, has_options, impossible_confidence, patterns_in
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS

__all__ = ["MOST_COMPONENTS", "MOST_TYPES", "OUTPUT_COLUMNS", "check", "did_you_mean"]

OUTPUT_COLUMNS: Final = ("range_lower", "range_upper", "confidence", "exact", "std_error")
"""Result columns that every query has, so no variable or output expression can have their names."""

MOST_COMPONENTS: Final = 200
"""Most components of a pattern, negated ones and those of all branches of OR included."""

MOST_TYPES: Final = 10_000
"""Most type names in a pattern."""

_LARGEST: Final = 2**63 - 1
_NO_TEXTS: Final[Mapping[Position, str]] = {}


def check(query: Query) -> None:
    """Refuse, by a QueryError with every fault, a query that no trace could make valid."""
    sizes = list(_size_faults(query.pattern))
    if sizes:
        raise QueryError(sizes, text=query.text)
    components = {component.variable: component for component in components_of(query.pattern)}
    faults = [
        *_pattern_faults(query.pattern),
        *group_faults(query, MOST_COMPONENTS),
        *joint_faults(query),
        *_set_faults(query),
        *_index_faults(query),
        *_strategy_faults(query),
        *_gap_faults(query),
        *_where_faults(query, components),
        *_return_faults(query, components),
        *_window_faults(query),
        *_output_faults(query),
    ]
    if faults:
        raise QueryError(faults, text=query.text)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ``": did you mean x?"``, see :func:`nearest`; "" if nothing is like the name."""
    name_meant = nearest(name, names)
    return "" if name_meant is None else f": did you mean {name_meant}?"


def _fault(message: str, position: Position) -> Fault:
    return Fault(message, position.line, position.column)


def _size_faults(pattern: Pattern) -> Iterator[Fault]:
    """Yield a fault for a pattern that would take minutes to plan; the other checks may, too."""
    components = list(components_of(pattern))
    if len(components) > MOST_COMPONENTS:
        message = (
            f"the pattern has {len(components):,} components, and at most {MOST_COMPONENTS} are answered"
        )
        yield _fault(message, components[MOST_COMPONENTS].position)
    names = 0
    for component in components:
        names += len(component.types)
        if names > MOST_TYPES:
            message = (
                f"the pattern names types more than {MOST_TYPES:,} times: write ANY and a condition, or give "
                "the events a type or an attribute that they share"
            )
            yield _fault(message, component.position)
            return


def _pattern_faults(pattern: Pattern) -> Iterator[Fault]:
    seen: set[str] = set()
    for component in components_of(pattern):
        name, position = component.variable, component.position
        if name in seen:
            yield _fault(f"variable {name} is declared twice: give each component its own", position)
        seen.add(name)
        if name in OUTPUT_COLUMNS:
            yield _fault(f"{name} is the name of an output column: give the variable another", position)
        if component.negated and component.least != 1:
            yield _fault(f"a negated component takes no event: write {name} without ?, * and {{}}", position)
        elif component.kleene and component.negated:
            yield _fault(f"a negated component is a single event: write {name} without + and []", position)


def _set_faults(query: Query) -> Iterator[Fault]:
    pattern = query.pattern
    count = count_of_expansions(pattern)
    if count > MOST_BRANCHES and not has_countless_readings(pattern):
        message = (
            f"OR and options make {count:,} patterns of this one, and at most {MOST_BRANCHES} are answered "
            "together: give some alternatives of OR a query of their own"
        )
        yield _fault(message, pattern.position)
        return
    terms = count_of_terms(pattern)
    if terms > MOST_TERMS:
        message = (
            f"OR chooses among so many negations that one confidence would be a sum of {terms:,} terms, and "
            f"at most {MOST_TERMS} are added: leave some of the negations out"
        )
        yield _fault(message, pattern.position)
        return
    if query.probability is not None and counted_set(pattern) is not None:
        yield from counted_faults(query)
        pattern = with_plus(pattern)
    in_sets = list(_repeated_in_sets(pattern))
    if in_sets:
        yield from in_sets
        return
    optional = has_options(pattern)
    readings = [
        expansion
        for expansion in some_expansions(pattern)
        if not optional or any(not component.negated for component in components_of(expansion))
    ]
    if not readings:
        yield _fault("no reading of the pattern takes an event", pattern.position)
    faults: dict[Fault, None] = {}
    for expansion in readings:
        faults.update(dict.fromkeys(_expansion_faults(expansion, query)))
    yield from faults


def _repeated_in_sets(pattern: Pattern) -> Iterator[Fault]:
    for item in patterns_in(pattern):
        if isinstance(item, Conjunction):
            if keeps_order(item):
                continue
            options = [node for node in patterns_in(item) if isinstance(node, Option)]
            if options:
                yield _fault("a group with ? stands in SEQ(...), not in AND(...)", options[0].position)
            for component in components_of(item):
                is_counted = component.kleene and component.most is not None and not component.by_iteration
                if component.least != 1 or is_counted:
                    message = (
                        f"{component.variable} stands in AND(...), where ?, * and {{}} are not defined: "
                        "write it as one event, or with +; SEQ(AND(A{n,} a[]), B b) counts events for "
                        "RETURN PROBABILITY"
                    )
                    yield _fault(message, component.position)


def _expansion_faults(expansion: Pattern, query: Query) -> Iterator[Fault]:
    """Yield the faults of one OR-free pattern; another may have the same ones."""
    components = list(components_of(expansion))
    if all(component.negated for component in components):
        where = "every component is negated"
        if len(components) < sum(1 for _ in components_of(query.pattern)):
            where = "every component of this branch is negated"
        yield _fault(f"{where}: a match needs at least one event", expansion.position)
    stack = [expansion]
    while stack:
        pattern = stack.pop()
        if isinstance(pattern, Component):
            continue
        stack.extend(pattern.items)
        if isinstance(pattern, Conjunction):
            if query.strategy != "skip_till_any_match" and not keeps_order(pattern):
                message = f"AND(...) is defined for skip_till_any_match only, not for {query.strategy}"
                yield _fault(message, pattern.position)
            yield from _negated_in_set_faults(
                pattern, components, query, has_ends=pattern is expansion and keeps_order(pattern)
            )


def _negated_in_set_faults(
    pattern: Conjunction, components: Sequence[Component], query: Query, *, has_ends: bool
) -> Iterator[Fault]:
    """Yield the faults of negated components of a set of an OR-free pattern with some components.

    Beside a set there is no gap: conditions on times alone say when an event forbids. ``has_ends``: its ends
    are those of the match.
    """
    if all(isinstance(item, Component) and item.negated for item in pattern.items):
        yield _fault("every component of this AND(...) is negated: it takes no event", pattern.position)
        return
    for item in pattern.items:
        if isinstance(item, Component):
            if item.negated and not _is_tied(item.variable, components, query):
                name = item.variable
                message = (
                    f"{name} is negated beside a set, which has no gap: tie it by a condition on times, such "
                    f"as TIME({name}) <= TIME({_positive(components)}), or let it stand between two "
                    "components of a SEQ(...)"
                )
                yield _fault(message, item.position)
            continue
        for edge in () if has_ends else (item.items[0], item.items[-1]):
            if isinstance(edge, Component) and edge.negated:
                message = (
                    f"{edge.variable} is negated: at an end of a SEQ(...) inside AND(...) there is no gap; "
                    "let it stand between two components, or beside the SEQ(...)"
                )
                yield _fault(message, edge.position)


def _positive(components: Sequence[Component]) -> str:
    """Return the time of a positive component, as a condition names it."""
    first = next(component for component in components if not component.negated)
    return f"{first.variable}[i]" if first.kleene else first.variable


def _is_tied(variable: str, components: Sequence[Component], query: Query) -> bool:
    """Return whether a condition ties the time of a negated variable to that of a positive one."""
    positive = {component.variable for component in components if not component.negated}
    names = {component.variable for component in components}
    for predicate in query.where:
        spoken = {part.variable for part in expressions_in(predicate) if isinstance(part, Time)}
        mentioned = {
            part.variable
            for part in expressions_in(predicate)
            if isinstance(part, Attribute | Aggregate | Time)
        }
        if variable in spoken and spoken & positive and mentioned <= names:
            return True
    return False


def _gap_faults(query: Query) -> Iterator[Fault]:
    """Yield the faults of strategies of single gaps."""
    components = {component.variable: component for component in components_of(query.pattern)}
    taken = [name for name, component in components.items() if not component.negated]
    neighbours = set(pairwise(taken))
    seen: set[tuple[str, str]] = set()
    for strategy in query.gap_strategies:
        shown = strategy.text
        if has_repeated_groups(query.pattern):
            message = (
                f"{shown}: gaps beside repeated groups cannot be named, as iterations have neighbours of "
                "their own; a strategy of all gaps lists all variables"
            )
            yield _fault(message, strategy.position)
            return
        if not is_linear(query.pattern):
            message = (
                f"{shown}: only a SEQ(...) of components has gaps that can be named; which events of a set "
                "are neighbours differs from match to match"
            )
            yield _fault(message, strategy.position)
            return
        if not strategy.gaps:
            yield _fault(f"{shown} names no gap: list two neighbours", strategy.position)
        for variable in strategy.variables:
            component = components.get(variable.name)
            if component is not None and (component.kleene or component.least != 1):
                message = (
                    f"{variable.name} may take another number of events than one, and has gaps of its own "
                    "between these: name gaps between single events"
                )
                yield _fault(message, variable.position)
            elif component is not None and variable.kleene:
                yield _fault(f"{variable.name} is a single event: write it without []", variable.position)
        for gap in strategy.gaps:
            if gap not in neighbours:
                message = (
                    f"{shown}: {gap[0]} and {gap[1]} are no neighbours; name some in the order of the "
                    f"pattern: {', '.join(taken)}"
                )
                yield _fault(message, strategy.position)
            elif gap in seen:
                yield _fault(
                    f"the gap between {gap[0]} and {gap[1]} has two strategies: keep one", strategy.position
                )
            seen.add(gap)


def _strategy_faults(query: Query) -> Iterator[Fault]:
    if query.strategy_position is None:
        return
    components = list(components_of(query.pattern))
    listed = [variable.name for variable in query.strategy_variables]
    # A negated component may be left out; everything else stands in the order of the pattern.
    expected = [
        component.variable
        for component in components
        if not component.negated or component.variable in listed
    ]
    if listed != expected:
        yield _fault(
            f"{query.strategy}({', '.join(listed)}) must list the variables of the pattern in its order: "
            f"{', '.join(expected)}",
            query.strategy_position,
        )
    single = {component.variable for component in components if not component.kleene}
    for variable in query.strategy_variables:
        if variable.kleene and variable.name in single:
            yield _fault(f"{variable.name} is a single event: write it without []", variable.position)


def _where_faults(query: Query, components: dict[str, Component]) -> Iterator[Fault]:
    for predicate in query.where:
        yield from _name_faults(predicate, components, texts_meant(predicate, query.text))
        yield from _negated_together_faults(predicate, components)
        yield from _time_faults(predicate)
        for part in expressions_in(predicate):
            if isinstance(part, Equivalence) and part is not predicate:
                message = f"[{part.name}] must be a condition by itself, joined to the others by AND"
                yield _fault(message, part.position)


def _time_faults(predicate: Expression) -> Iterator[Fault]:
    """Yield the fault of a predicate with TIME that is no time condition."""
    if any(isinstance(part, Time) for part in expressions_in(predicate)):
        try:
            differences_of(predicate)
        except NoDifferenceError as error:
            yield _fault(str(error), error.position)


def _time_in_result_faults(expression: Expression) -> Iterator[Fault]:
    """Yield the faults of times where a row has one value."""
    for part in expressions_in(expression):
        if isinstance(part, Time):
            message = (
                f"TIME({part.variable}) depends on the world: take range_lower or range_upper, return "
                "DURATION(a, b) alone, or ask posteriors when each event of a match happened"
            )
            yield _fault(message, part.position)


def _index_faults(query: Query) -> Iterator[Fault]:
    """Yield the faults of predicates and results that put the events of a set in an order."""
    if count_of_expansions(query.pattern) > MOST_BRANCHES and not has_countless_readings(query.pattern):
        return
    sets = frozenset[str]().union(*map(set_variables, some_expansions(query.pattern)))
    for expression in (*query.where, *(item.expression for item in query.returns)):
        for part in expressions_in(expression):
            if not isinstance(part, Attribute | Aggregate | Time) or part.variable not in sets:
                continue
            if part.index is not None and part.index not in ("current", "all"):
                name = part.variable
                message = (
                    f"{name} stands in AND(...), where its events have no order: use {name}[i], or an "
                    f"aggregate over {name}[]"
                )
                yield _fault(message, part.position)


def _negated_together_faults(predicate: Expression, components: dict[str, Component]) -> Iterator[Fault]:
    if ties_members(predicate, components) is not None:
        return
    first: str | None = None
    for part in expressions_in(predicate):
        if isinstance(part, Attribute | Aggregate | Time):
            component = components.get(part.variable)
            if component is None or not component.negated:
                continue
            first = first or part.variable
            if part.variable != first:
                message = (
                    f"{first} and {part.variable} are both negated: no two events stand for them that could "
                    "be compared, so compare each with events of the match"
                )
                if component.joint and component.joint == components[first].joint:
                    message = (
                        f"{first} and {part.variable} are both negated: compare each with events of the "
                        f"match, or tie all of their group by equalities, such as {first}.k = "
                        f"{part.variable}.k"
                    )
                yield _fault(message, part.position)
                return


def _name_faults(
    expression: Expression, components: dict[str, Component], texts: Mapping[Position, str] = _NO_TEXTS
) -> Iterator[Fault]:
    for part in expressions_in(expression):
        if isinstance(part, Variable):
            text = texts.get(part.position)
            # Of a text of several words one fault is enough.
            if text != "" or part.name in components:
                yield _bare_name_fault(part, components, text)
        elif isinstance(part, Attribute | Aggregate | AllAttributes | Time):
            yield from _reference_faults(part, components)


def _bare_name_fault(mention: Variable, components: dict[str, Component], text: str | None) -> Fault:
    """Return the fault of a name without a variable; ``text`` is what it may be meant for in quotes."""
    name = mention.name
    if name in components:
        message = (
            f"{name} is an event: name one of its attributes, such as {name}.id; "
            f"when it happened is TIME({name})"
        )
        return _fault(message, mention.position)
    attribute = f"{next(iter(components))}.{name}"
    message = f"{name} is no variable of the pattern; an attribute needs one, such as {attribute}"
    if text is not None:
        message = f"{name} is no variable of the pattern: text stands in quotes, {in_quotes(text)}"
        message += f"; an attribute needs a variable, such as {attribute}" if text == name else ""
    return _fault(message, mention.position)


def _reference_faults(
    mention: Attribute | Aggregate | AllAttributes | Time, components: dict[str, Component]
) -> Iterator[Fault]:
    component = components.get(mention.variable)
    if component is None:
        variables = f"the pattern has {', '.join(components)}"
        hint = did_you_mean(mention.variable, list(components)) if len(mention.variable) > 2 else ""
        yield _fault(f"unknown variable {mention.variable}{hint or f': {variables}'}", mention.position)
        return
    if isinstance(mention, AllAttributes):
        return
    if isinstance(mention, Aggregate) and not component.kleene and not component.negated:
        yield _fault(_single_in_aggregate(mention, component), mention.position)
        return
    if isinstance(mention, Aggregate) and mention.index not in ("all", "before"):
        message = f"an aggregate takes several events: {mention.variable}[] or {mention.variable}[..i-1]"
        yield _fault(message, mention.position)
    if mention.index is not None and not component.kleene:
        yield _fault(f"{mention.variable} is a single event: write it without an index", mention.position)
    elif isinstance(mention, Time) and (mention.index in ("all", "before") or isinstance(mention.index, int)):
        name = mention.variable
        message = f"{name} is several events: write TIME({name}[i]), TIME({name}[i-1]) or TIME({name}[1])"
        if not isinstance(mention.index, int):
            message = f"{name} is several events: write TIME({name}[i]), or TIME({name}[1])"
        yield _fault(message, mention.position)
    elif isinstance(mention, Attribute) and mention.index is not None and mention.index in ("all", "before"):
        several = f"{mention.variable}{'[]' if mention.index == 'all' else '[..i-1]'}"
        name = quote_name(mention.name)
        message = (
            f"{several} is several events: write {mention.variable}[i].{name} for each of them, or an "
            f"aggregate such as max({several}.{name})"
        )
        yield _fault(message, mention.position)


def _single_in_aggregate(aggregate: Aggregate, component: Component) -> str:
    """Return the cure for an aggregate over a single event."""
    name = component.variable
    types = " | ".join(map(quote_name, component.types)) or "ANY"
    types = f"({types})" if len(component.types) > 1 else types
    alone = f", or {name}.{quote_name(aggregate.name)} alone" if aggregate.name is not None else ""
    several = f"write {types}+ {name}[] in the pattern{alone}"
    return f"{name} is a single event, and an aggregate takes several: {several}"


def _return_faults(query: Query, components: dict[str, Component]) -> Iterator[Fault]:
    seen: set[str] = set()
    for item in query.returns:
        expression, name = item.expression, item.name
        whole = expression.name if isinstance(expression, Variable) else None
        if whole not in components:
            yield from _name_faults(expression, components)
        if length_ends(expression) is None:
            yield from _time_in_result_faults(expression)
        for part in expressions_in(expression):
            if isinstance(part, Equivalence):
                yield _fault(f"[{part.name}] is a condition: it belongs in WHERE", part.position)
            elif isinstance(part, Attribute | Aggregate | AllAttributes | Variable | Time):
                variable = part.name if isinstance(part, Variable) else part.variable
                component = components.get(variable)
                if component is not None and component.negated:
                    message = f"{variable} is negated: no event is bound to it that could be returned"
                    yield _fault(message, part.position)
                elif (
                    component is not None and component.kleene and not isinstance(part, AllAttributes | Time)
                ):
                    yield from _returned_series_faults(part)
        if name in OUTPUT_COLUMNS or (name in components and whole != name):
            yield _fault(f"the output has a column {name} already: name this one with AS", item.position)
        elif name in seen:
            yield _fault(f"two output columns are named {name}: name one with AS", item.position)
        seen.add(name)


def _returned_series_faults(mention: Attribute | Aggregate | Variable) -> Iterator[Fault]:
    """Yield a fault for what has one value for each element of a Kleene variable, where a row needs one."""
    if isinstance(mention, Aggregate) and mention.index == "before":
        variable = mention.variable
        message = f"{variable}[..i-1] ends at each event in turn: aggregate all of {variable}[] to return it"
        yield _fault(message, mention.position)
    elif isinstance(mention, Attribute) and (
        mention.index is None
        or mention.index in ("current", "previous")
        or (isinstance(mention.index, int) and mention.index < 0)
    ):
        variable, name = mention.variable, quote_name(mention.name)
        message = (
            f"{variable} is several events: return {variable}[1].{name}, {variable}[{variable}.LEN].{name} "
            f"or an aggregate such as max({variable}[].{name})"
        )
        yield _fault(message, mention.position)


def _window_faults(query: Query) -> Iterator[Fault]:
    if query.window is None and "WITHIN" not in {opened.clause for opened in query.open_clauses}:
        message = "WITHIN is missing: say how long a match may last, such as WITHIN 15 seconds"
        yield _fault(message, query.pattern.position)
    elif query.window is not None:
        yield from _length_faults(query.window, "a window of 0 holds no event: WITHIN")


def _length_faults(length: Duration, empty: str) -> Iterator[Fault]:
    if length.amount == 0:
        yield _fault(f"{empty} must be at least one tick", length.position)
    elif length.unit is None and not isinstance(length.amount, int):
        units = ", ".join(UNIT_NANOSECONDS)
        yield _fault(f"a number of ticks must be whole: round it, or name a unit ({units})", length.position)


def _confidence_fault(number: float, position: Position) -> Fault:
    return _fault(f"a confidence lies between 0 and 1 (or 0% and 100%), not at {number:g}", position)


def _output_faults(query: Query) -> Iterator[Fault]:
    if query.min_confidence is not None and not 0 <= query.min_confidence <= 1:
        yield _confidence_fault(query.min_confidence, query.position_of("HAVING"))
    conditions = () if query.having is None else query.having.conditions
    for expression in (*conditions, *(item.expression for item in query.order_by)):
        for part in expressions_in(expression):
            if isinstance(part, Equivalence):
                yield _fault(f"[{part.name}] is a condition on events: it belongs in WHERE", part.position)
            if (number := impossible_confidence(part)) is not None:
                yield _confidence_fault(float(number.value or 0), number.position)
        yield from _time_in_result_faults(expression)
    if query.limit is not None and not 1 <= query.limit <= _LARGEST:
        yield _fault(f"LIMIT must be from 1 to {_LARGEST}", query.position_of("LIMIT"))
    if query.expected_count is not None:
        yield from _expected_count_faults(query, query.expected_count)
    if query.probability is not None:
        yield from probability_faults(query, query.probability)


def _expected_count_faults(query: Query, count_clause: ExpectedCount) -> Iterator[Fault]:
    written = {clause for clause, _ in query.clause_positions}
    for clause, name, present in (
        ("HAVING", "HAVING", query.min_confidence is not None),
        ("OUTPUT", "OUTPUT NON OVERLAPPING", query.non_overlapping),
        ("ORDER BY", "ORDER BY", query.order_by_confidence),
        ("LIMIT", "LIMIT", query.limit is not None),
    ):
        if present or clause in written:
            message = f"{name} chooses among matches, and RETURN EXPECTED COUNT returns none"
            yield _fault(f"{message}: leave one of them out", query.position_of(clause))
    for name in dict.fromkeys(name for name in count_clause.by if count_clause.by.count(name) > 1):
        yield _fault(f"BY names {name} twice", count_clause.position)
    for name in sorted({"bucket", "expected_count"}.intersection(count_clause.by)):
        yield _fault(f"the output has a column {name} already: rename the attribute", count_clause.position)
    if count_clause.every is not None:
        yield from _length_faults(count_clause.every, "a bucket of 0 holds no time: EVERY")
