"""Predicates compiled to the conditions that the backtracking search evaluates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.predicates.conditions import (
    AVG,
    CONSTANT_CELL,
    COUNT,
    CURRENT,
    DISTINCT,
    FIRST,
    LAST,
    MAX,
    MIN,
    NO_VALUES,
    PERCENTILE,
    PREVIOUS,
    REAL,
    STDDEV,
    SUM,
    WHOLE,
    Conditions,
)
from uncertain_cep.expressions.bytecode import BytecodeCompiler, Ranks, rank_strings, sums_of
from uncertain_cep.expressions.vectorised import Values
from uncertain_cep.expressions.whole_numbers import with_checks
from uncertain_cep.query.typed import (
    Aggregated,
    Column,
    Computed,
    Element,
    TypedExpression,
    columns_in,
    variables_of,
)

__all__ = ["compile_conditions"]

_FUNCTIONS: Final = {
    "count": COUNT, "sum": SUM, "min": MIN, "max": MAX, "avg": AVG, "distinct": DISTINCT, "stddev": STDDEV,
    "percentile": PERCENTILE, "any": MAX, "every": MIN,
}  # fmt: skip
_KINDS: Final[dict[object, int]] = {
    "single": FIRST, "first": FIRST, "current": CURRENT, "previous": PREVIOUS, "last": LAST
}  # fmt: skip


@dataclass(slots=True)
class _ConditionCompiler(BytecodeCompiler):
    """Compiles predicates whose slots read cells and aggregates instead of components."""

    cells: dict[tuple[str, Element], int] = field(default_factory=dict)
    origins: dict[Column, tuple[int, int]] = field(default_factory=dict)
    scratches: dict[Aggregated, tuple[int, int]] = field(default_factory=dict)

    def slot(self, column: Column) -> int:
        """Return the number of a column's or an aggregate's slot, a new one if there is none yet."""
        if column not in self.places:
            if isinstance(column, Aggregated):
                cell, (value, null) = CONSTANT_CELL, self.scratch(column)
            else:
                cell, (value, null) = self.cell(column), self.origin(column)
            self.slots.append((cell, value, null))
            self.places[column] = len(self.slots) - 1
        return self.places[column]

    def cell(self, column: Column) -> int:
        """Return the cell of the event that an attribute belongs to."""
        key = (column.variable, column.index)
        return self.cells.setdefault(key, len(self.cells) + CONSTANT_CELL + 1)

    def origin(self, column: Column) -> tuple[int, int]:
        """Return where the values of a column would start, and its nulls, for a candidate of place 0."""
        base = attribute_of(column)
        if base not in self.origins:
            values_of_base = self.values[base]
            first = int(self.first[self.components[base.variable]])
            value = self._keep(values_of_base.data, base.kind == "float")
            null = self._keep_nulls(values_of_base)
            self.origins[base] = value - first, null - first
        return self.origins[base]

    def scratch(self, aggregate: Aggregated) -> tuple[int, int]:
        """Return where an aggregate's value and null are written."""
        if aggregate not in self.scratches:
            value = self._keep(np.zeros(1), aggregate.kind == "float")
            null = self._keep_nulls(Values(np.zeros(1), None))
            self.scratches[aggregate] = value, null
        return self.scratches[aggregate]


def attribute_of(column: Column) -> Column:
    """Return the attribute behind a mention of one or several events: what is loaded for each candidate."""
    if isinstance(column, Computed):
        return replace(column, index="single")
    kind = column.of if isinstance(column, Aggregated) else column.kind
    return Column(column.variable, column.name, kind, computed=column.computed)


def compile_conditions(
    predicates: Sequence[TypedExpression],
    variables: Sequence[str],
    kleene: Sequence[bool],
    negated: Sequence[str],
    first: NDArray[np.int64],
    load: Callable[[Column], Values],
) -> Conditions:
    """Compile predicates for a layout of candidates.

    Parameters
    ----------
    predicates : sequence of TypedExpression
        Each mentions some variable, and at most one negated one.
    variables, negated : sequence of str
        Of the positive and of the negated components, in pattern order.
    kleene : sequence of bool
        Of the positive components.
    first : (l + n,) int64
        The place of the first candidate of each component, the negated ones behind the others.
    load : callable
        ``load(column) -> Values``: a column of index ``single``, one value for each candidate.
    """
    components = {variable: j for j, variable in enumerate([*variables, *negated])}
    values = {
        column: load(column)
        for column in dict.fromkeys(
            attribute_of(column)
            for predicate in predicates
            for column in columns_in(predicate)
            if column.name
        )
    }
    safe, ranks = _prepared(predicates, values)
    compiler = _ConditionCompiler(components, first, values, ranks)
    stages = _staged(safe, variables, kleene, negated)
    staged = [condition for conditions in stages for condition in conditions]
    ordered = [condition.predicate for condition in staged]
    rows = [0]
    for predicate in ordered:
        compiler.predicate(predicate)
        rows.append(len(compiler.rows))
    counts = np.cumsum([0, *map(len, stages)])
    length = len(variables)
    # These load attributes, which the arrays hold.
    operands = _operands(staged, compiler, components, kleene)
    return Conditions(
        **compiler.arrays(),
        **operands,
        rows=np.array(rows, dtype=np.int64),
        stages=np.array([counts[3 * j : 3 * j + 4] for j in range(length)], dtype=np.int64),
        negated=np.array(counts[3 * length :], dtype=np.int64),
    )


def _operands(
    staged: Sequence[_Staged],
    compiler: _ConditionCompiler,
    components: Mapping[str, int],
    kleene: Sequence[bool],
) -> dict[str, Any]:
    """Return the attributes and the aggregates that staged conditions read, by fields of ``Conditions``."""
    accumulators = _Accumulators(compiler, len(components))
    mentions, running, aggregates = [], [], []
    for condition in staged:
        columns = tuple(dict.fromkeys(columns_in(condition.predicate)))
        mentions.append(_mentions(columns, compiler))
        running.append(_running(columns, components, kleene, condition))
        aggregates.append(
            [accumulators.row(aggregate) for column in columns for aggregate in sums_of(column)]
        )
    table, starts = accumulators.table()
    order = accumulators.order()
    for rows in aggregates:
        for row in rows:
            row[2] = order[row[2]]
    operands = {"accumulator_start": starts, "accumulators": table}
    operands["mention_start"], operands["mentions"] = _flat(mentions, 3)
    operands["running_start"], operands["running"] = _flat(running, 2)
    operands["aggregate_start"], operands["aggregates"] = _flat(aggregates, 6)
    return operands


def _prepared(
    predicates: Sequence[TypedExpression], values: dict[Column, Values]
) -> tuple[list[TypedExpression], Ranks]:
    """Return the predicates with checks, and the ranks of texts; ``values`` become ranks."""
    ranks = rank_strings(values, predicates)

    def extremes(column: Column) -> tuple[int, int]:
        if isinstance(column, Aggregated) and column.function in ("count", "distinct"):
            return 0, 2**31
        values_of_column = values[attribute_of(column)]
        low, high = values_of_column.extremes
        if isinstance(column, Aggregated) and column.function == "sum":
            return min(low * len(values_of_column.data), low), max(high * len(values_of_column.data), high)
        return low, high

    return [with_checks(predicate, extremes) for predicate in predicates], ranks


class _Staged(NamedTuple):
    """A condition and the events that it is evaluated for: of a component (-1: none) from one on."""

    predicate: TypedExpression
    component: int = -1
    first_event: int = 0


def _staged(
    predicates: Iterable[TypedExpression],
    variables: Sequence[str],
    kleene: Sequence[bool],
    negated: Sequence[str],
) -> list[list[_Staged]]:
    """Return predicates by when they are evaluated.

    For each positive component: of its first event alone, of every event, when it is complete; then for each
    negated component. What mentions ``c[2]`` is known when the component is complete, and evaluated for every
    event from the second on too, so as not to go on for nothing.
    """
    stages: list[list[_Staged]] = [[] for _ in range(3 * len(variables) + len(negated))]
    for predicate in predicates:
        mentioned = variables_of(predicate)
        absent = [n for n, variable in enumerate(negated) if variable in mentioned]
        if absent:
            stages[3 * len(variables) + absent[0]].append(_Staged(predicate))
            continue
        last = max(variables.index(variable) for variable in mentioned)
        parts = [column for column in columns_in(predicate) if column.variable == variables[last]]
        whole = any(
            column.span == "all" if isinstance(column, Aggregated) else column.index == "last"
            for column in parts
        )
        initial = all(not isinstance(column, Aggregated) and column.index == "first" for column in parts)
        stage = 2 if whole else 0 if kleene[last] and initial else 1
        numbers = [column.index for column in parts if isinstance(column.index, int)]
        if stage == 1 and max(numbers, default=0) > 0:
            stages[3 * last + 1].append(_Staged(predicate, last, max(numbers) - 1))
            stage = 2
        stages[3 * last + stage].append(_Staged(predicate))
    return stages


def _mentions(columns: Iterable[Column], compiler: _ConditionCompiler) -> list[list[int]]:
    rows: dict[int, list[int]] = {}
    for column in columns:
        if not isinstance(column, Aggregated):
            cell = compiler.cell(column)
            kind = column.index if isinstance(column.index, int) else _KINDS[column.index]
            rows[cell] = [cell, compiler.components[column.variable], kind]
    return list(rows.values())


def _running(
    columns: Iterable[Column], components: Mapping[str, int], kleene: Sequence[bool], condition: _Staged
) -> list[list[int]]:
    """Return the Kleene components that columns use event by event, and from which event on."""
    first_events: dict[int, int] = (
        {} if condition.component < 0 else {condition.component: condition.first_event}
    )
    for column in columns:
        component = components[column.variable]
        if component >= len(kleene) or not kleene[component]:
            continue
        if isinstance(column, Aggregated):
            first_event = 1 if column.span == "before" else None
        elif isinstance(column.index, int):
            first_event = -column.index if column.index < 0 else None
        else:
            first_event = {"current": 0, "previous": 1}.get(column.index)
        if first_event is not None:
            first_events[component] = max(first_events.get(component, 0), first_event)
    return [[component, first_event] for component, first_event in first_events.items()]


class _Accumulators:
    """The accumulators of some aggregates; those of one component come to lie side by side."""

    def __init__(self, compiler: _ConditionCompiler, components: int) -> None:
        self._compiler = compiler
        self._components = components
        self._numbers: dict[tuple[str, str, str, float | None], int] = {}
        self._rows: list[tuple[int, tuple[int, int, int, int]]] = []

    def row(self, aggregate: Aggregated) -> list[int]:
        """Return the row of an aggregate, with a provisional number of its accumulator."""
        compiler = self._compiler
        component = compiler.components[aggregate.variable]
        key = (aggregate.variable, aggregate.name, aggregate.function, aggregate.fraction)
        if key not in self._numbers:
            self._numbers[key] = len(self._rows)
            value, null = compiler.origin(aggregate) if aggregate.name else (0, 0)
            kind = (REAL if aggregate.of == "float" else WHOLE) if aggregate.name else NO_VALUES
            function = _FUNCTIONS[aggregate.function] + round((aggregate.fraction or 0.0) * 10**9)
            counted = (function, value, null, kind)
            self._rows.append((component, counted))
        value, null = compiler.scratch(aggregate)
        real = int(aggregate.kind == "float")
        return [component, int(aggregate.span == "before"), self._numbers[key], real, value, null]

    def order(self) -> list[int]:
        """Return the final number of each accumulator."""
        by_component = sorted(range(len(self._rows)), key=lambda number: self._rows[number][0])
        return [by_component.index(number) for number in range(len(self._rows))]

    def table(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of the accumulators in their final order, and where each component's start."""
        rows = sorted(self._rows, key=lambda row: row[0])
        owners = [component for component, _ in rows]
        starts = np.searchsorted(owners, np.arange(self._components + 1)).astype(np.int64)
        return np.array([row for _, row in rows], dtype=np.int64).reshape(-1, 4), starts


def _flat(rows: Sequence[Sequence[Sequence[int]]], width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    starts = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    table = np.array([row for rows_of_group in rows for row in rows_of_group], dtype=np.int64).reshape(
        -1, width
    )
    return starts, table
