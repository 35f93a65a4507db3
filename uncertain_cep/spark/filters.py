"""Local predicates as Spark conditions, so that a scan drops the rows that no match can use.

The engine checks every predicate again. So a condition here may keep a row too many, but never drops one that
the engine would use. Where Spark and the engine could differ (sums beyond int64, sums of infinities), the row
is kept; what has no counterpart in Spark is left to the engine.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from uncertain_cep.candidates.diagnostics import negated_parts
from uncertain_cep.plan import EvaluationPlan, PlannedComponent
from uncertain_cep.query import typed
from uncertain_cep.query.expression_text import OPERATOR_SIGNS
from uncertain_cep.query.typed import attribute_names
from uncertain_cep.spark.dataframes import column
from uncertain_cep.timeline.lasting_columns import END_BOUNDS

__all__ = ["CandidateFilters", "candidate_filters", "condition", "is_candidate", "is_value"]

_EXACT_FLOAT: Final = 2**53
"""Up to this bound int64 and float64 arithmetic give the same."""

_INT64: Final = (-(2**63), 2**63 - 1)

_KINDS: Final[dict[typed.Kind, tuple[type[t.DataType], ...]]] = {
    "int": (t.ByteType, t.ShortType, t.IntegerType, t.LongType),
    "float": (t.FloatType, t.DoubleType),
    "bool": (t.BooleanType,),
}

_COMPARISONS: Final[dict[str, Callable[[Column, Column], Column]]] = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip

_PLAIN: Final[dict[str, Callable[[Column, Column], Column]]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "divide": f.try_divide, "remainder": f.try_mod,
}  # fmt: skip

# Under Spark's ANSI mode the plain operators raise where these give null.
_CHECKED: Final[dict[str, Callable[[Column, Column], Column]]] = {
    "add": f.try_add, "subtract": f.try_subtract, "multiply": f.try_multiply,
}  # fmt: skip

_SPARK_EXPRESSION_NODES: Final = 200
"""Spark walks expressions recursively; the few predicates above this size are left to the engine."""


@dataclass(frozen=True, slots=True)
class CandidateFilters:
    """Conditions that hold for every event that can take part in a match or forbid one; never null."""

    first: Column
    """As the event of the component by which a match belongs to a slice: the first one, unless that is a
    compressed Kleene component."""
    later: Column
    """As any other event of a match, or one that forbids it."""
    anywhere: Column
    """In either way; written so that a scan of Parquet can skip by types and keys."""
    keys: tuple[str, ...]
    """The columns on which all events of a match must agree."""
    components: tuple[tuple[Column, ...], ...]
    """For each OR-free pattern the conditions of its positive components, in pattern order. Components that
    take the same events share one object."""
    negated: Mapping[str, Column]
    """For negated variables with conditions the condition of their events, whatever the keys."""
    types: Mapping[str, Column]
    """For types that a component names beside others the condition to be of it."""

    @property
    def distinct(self) -> dict[int, Column]:
        """The conditions of components, each once, by the identity of the object."""
        return {id(takes): takes for branch in self.components for takes in branch}


def is_value(value: Column, dtype: t.DataType) -> Column:
    """Return the condition that a value can equal another one, which neither null nor NaN does."""
    is_float = isinstance(dtype, (t.FloatType, t.DoubleType))
    return value.isNotNull() & ~f.isnan(value) if is_float else value.isNotNull()


def candidate_filters(plan: EvaluationPlan, schema: t.StructType) -> CandidateFilters:
    """Return the conditions of a plan's components on a frame of this schema."""
    types = {part.name: part.dataType for part in schema.fields}
    branches = plan.or_free
    keys = plan.shared_keys
    agreed = [is_value(column(name), types[name]) for name in keys]
    nothing = f.lit(False)
    # Each step of making a column is a call of the JVM, and options have hundreds of components.
    made: dict[object, Column] = {}

    def kind(component: PlannedComponent) -> object:
        return component.types, component.local

    def takes(component: PlannedComponent) -> Column:
        if kind(component) not in made:
            parts = [*agreed, *_conditions(plan, component, types)]
            made[kind(component)] = reduce(operator.and_, parts, f.lit(True))
        return made[kind(component)]

    def any_takes(components: Sequence[PlannedComponent]) -> Column:
        each = {kind(component): takes(component) for component in components}
        return reduce(operator.or_, each.values(), nothing)

    firsts: list[PlannedComponent] = []
    laters: list[PlannedComponent] = []
    for branch in branches:
        further = list(branch.components)
        owner = further.pop(branch.owner)
        if owner.kleene:
            further.append(owner)
        further += [negation.component for negation in branch.negations]
        firsts.append(owner)
        laters += further
    first, later = any_takes(firsts), any_takes(laters)
    named = [component.types for component in (*firsts, *laters)]
    if plan.query.strategy in ("partition_contiguity", "strict_contiguity"):
        later = reduce(operator.and_, agreed, f.lit(True))
    elif all(named):
        agreed.append(column(plan.names.type).isin(*{name: None for part in named for name in part}))
    positive = {kind(component): component for branch in branches for component in branch.components}
    never_null = {same: f.coalesce(takes(component), nothing) for same, component in positive.items()}
    return CandidateFilters(
        first=f.coalesce(first, nothing),
        later=f.coalesce(later, nothing),
        anywhere=reduce(operator.and_, agreed, first | later),
        keys=keys,
        components=tuple(tuple(never_null[kind(part)] for part in branch.components) for branch in branches),
        negated={part.variable: is_candidate(plan, part, types) for part in negated_parts(plan)},
        types={
            name: f.coalesce(column(plan.names.type) == name, nothing)
            for part in plan.bound.components
            for name in (part.types if len(part.types) > 1 else ())
        },
    )


def is_candidate(plan: EvaluationPlan, part: PlannedComponent, types: dict[str, t.DataType]) -> Column:
    """Return the condition that an event can be taken by a component, whatever the keys; never null."""
    holds = reduce(operator.and_, _conditions(plan, part, types), f.lit(True))
    return f.coalesce(holds, f.lit(False))


def _conditions(plan: EvaluationPlan, part: PlannedComponent, types: dict[str, t.DataType]) -> list[Column]:
    """Return the conditions of a component on its events: its types, and those that Spark can evaluate."""
    parts = [column(plan.names.type).isin(*part.types)] if part.types else []
    # The engine works out bounds of ends that events do not have.
    local = [one for one in part.local if not (plan.lasting and attribute_names(one) & {*END_BOUNDS})]
    parts += [holds for predicate in local if (holds := condition(predicate, types)) is not None]
    return parts


def condition(predicate: typed.TypedExpression, types: dict[str, t.DataType]) -> Column | None:
    """Return a condition that holds wherever a predicate of one variable is true; None if there is none.

    ``types`` are those of the frame's columns.
    """
    if _size(predicate) > _SPARK_EXPRESSION_NODES:
        return None
    translation = _Translation(types)
    try:
        holds = translation.value(predicate)
    except _UntranslatableError:
        return None
    return reduce(operator.or_, translation.doubts, holds)


def _size(expression: typed.TypedExpression) -> int:
    if isinstance(expression, typed.Apply):
        return 1 + sum(map(_size, expression.operands))
    return 1


def _negated(constant: typed.Constant) -> typed.Constant:
    value = constant.value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _UntranslatableError
    return typed.Constant(-value, constant.kind)


class _UntranslatableError(Exception):
    """Raised for an expression that has no counterpart in Spark."""


@dataclass(slots=True)
class _Translation:
    """Translates one predicate, and collects the conditions under which Spark and the engine may differ."""

    types: dict[str, t.DataType]
    doubts: list[Column] = field(default_factory=list)

    def value(self, expression: typed.TypedExpression) -> Column:
        """Return the column of an expression's values, or raise `_UntranslatableError`."""
        if isinstance(expression, typed.Column):
            return self._attribute(expression)
        if isinstance(expression, typed.Constant):
            return self._constant(expression)
        if expression.operator in _COMPARISONS:
            left, right = (self._compared(operand) for operand in expression.operands)
            return _COMPARISONS[expression.operator](left, right)
        if expression.operator in ("in", "between"):
            value, *operands = map(self._compared, expression.operands)
            if expression.operator == "between":
                return value.between(*operands)
            return reduce(operator.or_, (value == other for other in operands))
        if expression.operator == "is_null" and isinstance(expression.operands[0], typed.Column):
            attribute = self._attribute(expression.operands[0])
            # For the engine NaN is null.
            absent = attribute.isNull()
            return absent | f.isnan(attribute) if expression.operands[0].kind == "float" else absent
        if expression.operator not in OPERATOR_SIGNS:
            raise _UntranslatableError
        if expression.operator == "negate" and isinstance(expression.operands[0], typed.Constant):
            return self._constant(_negated(expression.operands[0]))
        if expression.operator == "not":
            return ~self.value(expression.operands[0])
        if expression.operator in ("and", "or"):
            left, right = map(self.value, expression.operands)
            return left & right if expression.operator == "and" else left | right
        if expression.kind == "float":
            return self._float_arithmetic(expression.operator, expression.operands)
        return self._int_arithmetic(expression.operator, expression.operands)

    def _attribute(self, attribute: typed.Column) -> Column:
        spark_type = self.types[attribute.name]
        if attribute.kind == "string":
            # Strings of another collation compare in another way.
            if type(spark_type) is not t.StringType or spark_type != t.StringType():
                raise _UntranslatableError
        elif not isinstance(spark_type, _KINDS.get(attribute.kind, ())):
            raise _UntranslatableError
        return column(attribute.name)

    def _constant(self, constant: typed.Constant) -> Column:
        value = constant.value
        if value is None or constant.kind == "time":
            raise _UntranslatableError
        if isinstance(value, int) and not isinstance(value, bool):
            if not _INT64[0] <= value <= _INT64[1]:
                raise _UntranslatableError
            return f.lit(value).cast("long")
        return f.lit(value)

    def _compared(self, operand: typed.TypedExpression) -> Column:
        value = self.value(operand)
        if isinstance(operand, typed.Apply) and operand.kind == "float":
            # For Spark a NaN is equal to itself and above all numbers; for the engine it is neither.
            self.doubts.append(f.isnan(value))
        return value

    def _float_arithmetic(self, name: str, operands: Sequence[typed.TypedExpression]) -> Column:
        parts = [self.value(operand).cast("double") for operand in operands]
        return -parts[0] if name == "negate" else _PLAIN[name](*parts)

    def _int_arithmetic(self, name: str, operands: Sequence[typed.TypedExpression]) -> Column:
        parts = [self.value(operand).cast("long") for operand in operands]
        if name == "remainder":
            divisor = operands[1]
            if isinstance(divisor, typed.Constant) and divisor.value:
                return parts[0] % parts[1]
            return f.try_mod(*parts)
        if name == "negate":
            name, parts = "subtract", [f.lit(0).cast("long"), *parts]
        result = _CHECKED[name](*parts)
        large = (result >= _EXACT_FLOAT) | (result <= -_EXACT_FLOAT)
        # Null of operands that are not null: a number beyond int64.
        self.doubts.append(f.coalesce(large, parts[0].isNotNull() & parts[1].isNotNull()))
        return result
