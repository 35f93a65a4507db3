"""Columns of the result in HAVING and ORDER BY."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import reduce
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import QueryError
from uncertain_cep.query import Query
from uncertain_cep.query.checker import OUTPUT_COLUMNS, did_you_mean
from uncertain_cep.query.inference import Binding
from uncertain_cep.query.syntax import Attribute, Expression, OrderItem, Position, Variable
from uncertain_cep.query.typed import Apply, Column, Constant, TypedExpression
from uncertain_cep.timeline.domain import Names

__all__ = ["SortKey", "bound_having", "bound_order", "least_confidence"]

_UNPLACED: Final = ("position", "percent")


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column of the result to order by."""

    column: str
    descending: bool


def bound_having(query: Query, schema: pa.Schema) -> TypedExpression | None:
    """Return the rest of HAVING over the columns of a result, which are those of a variable ``""``.

    Raises
    ------
    QueryError
        If it speaks of what is no column, or of kinds that do not go together.
    """
    if query.having is None:
        return None
    columns = _Columns(query, schema)
    conditions: list[TypedExpression] = []
    for condition in query.having.conditions:
        resolved = columns.resolved(condition)
        typed = None if resolved is None else columns.binding.condition(resolved)
        conditions += [] if typed is None else [typed]
    columns.check()
    columns.binding.warn()
    return reduce(_both, map(_compared, conditions))


def _both(one: TypedExpression, other: TypedExpression) -> Apply:
    return Apply("and", (one, other), "bool")


def _compared(expression: TypedExpression) -> TypedExpression:
    """Return a condition whose BETWEEN and IN are comparisons where they speak of the confidence."""
    if not isinstance(expression, Apply):
        return expression
    first, *operands_behind = operands = tuple(map(_compared, expression.operands))
    if first == CONFIDENCE and expression.operator == "between":
        low, high = operands_behind
        return _both(Apply("greater_equal", (first, low), "bool"), Apply("less_equal", (first, high), "bool"))
    if first == CONFIDENCE and expression.operator == "in":
        equal = (Apply("equal", (first, other), "bool") for other in operands_behind)
        return reduce(lambda one, other: Apply("or", (one, other), "bool"), equal)
    return replace(expression, operands=operands)


def bound_order(query: Query, schema: pa.Schema) -> tuple[SortKey, ...]:
    """Return the columns of ORDER BY; errors as of :func:`bound_having`."""
    columns = _Columns(query, schema)
    keys = [SortKey(name, item.descending) for item in query.order_by for name in columns.named(item)]
    columns.check()
    return tuple(keys)


def least_confidence(having: TypedExpression | None, *, negated: bool = False) -> float:
    """Return a bound that every confidence reaches that a condition, or the contrary of it, can keep."""
    if not isinstance(having, Apply):
        return 0.0
    operator, operands = having.operator, having.operands
    if operator == "not":
        return least_confidence(operands[0], negated=not negated)
    if operator in ("and", "or"):
        both = [least_confidence(operand, negated=negated) for operand in operands]
        return max(both) if (operator == "and") != negated else min(both)
    if len(operands) != 2:
        return 0.0
    for sign, (column, bound) in ((operator, operands), (_MIRRORED.get(operator), operands[::-1])):
        asks = sign in ("less", "less_equal") if negated else sign in ("greater", "greater_equal", "equal")
        if asks and column == CONFIDENCE and isinstance(bound, Constant) and bound.kind in ("int", "float"):
            return float(bound.value or 0.0)
    return 0.0


CONFIDENCE: Final = Column("", "confidence", "float")
_MIRRORED: Final = {
    "less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal",
    "equal": "equal",
}  # fmt: skip


class _Columns:
    """The columns of a result, by what a query calls them."""

    def __init__(self, query: Query, schema: pa.Schema) -> None:
        self.binding = Binding(schema, Names(tick=""))
        self._query = query
        self._names = schema.names
        self._shapes = {_shape(item.expression): item.name for item in query.returns}

    def check(self) -> None:
        """Raise all faults that were found."""
        if self.binding.faults:
            raise QueryError(list(dict.fromkeys(self.binding.faults)), text=self._query.text)

    def name_of(self, expression: Expression) -> str | None:
        """Return the column that an expression names; None if none."""
        name = self._shapes.get(_shape(expression))
        if isinstance(expression, Variable):
            folded = expression.name.lower()
            name = expression.name if expression.name in self._names else name
            name = folded if name is None and folded in OUTPUT_COLUMNS else name
        if isinstance(expression, Attribute) and name is None:
            name = f"{expression.variable}.{expression.name}"
        return name if name in self._names else None

    def named(self, item: OrderItem) -> Iterator[str]:
        """Yield the column that an item of ORDER BY names; note a fault if there is none."""
        name = self.name_of(item.expression)
        if name is None:
            self._refuse(item.text, item.position)
        else:
            yield name

    def resolved(self, expression: Expression) -> Expression | None:
        """Return an expression with columns in place of what names them; None with a fault noted."""
        name = self.name_of(expression)
        if name is not None:
            return Attribute("", name, None, expression.position)
        if isinstance(expression, Variable | Attribute):
            written = expression.name
            if isinstance(expression, Attribute):
                written = f"{expression.variable}.{written}"
            self._refuse(written, expression.position)
            return None
        changes: dict[str, Any] = {}
        for field in fields(expression):
            value: Any = getattr(expression, field.name)
            if isinstance(value, Position) or not (isinstance(value, tuple) or is_dataclass(value)):
                continue
            parts = [self.resolved(part) for part in (value if isinstance(value, tuple) else (value,))]
            if None in parts:
                return None
            changes[field.name] = tuple(parts) if isinstance(value, tuple) else parts[0]
        return replace(expression, **changes)

    def _refuse(self, written: str, position: Position) -> None:
        hint = did_you_mean(written, self._names) or f": it has {', '.join(self._names)}"
        self.binding.refuse(f"{written} is no column of the result{hint}, or add it to RETURN", position)


def _shape(part: Any) -> object:
    """Return the shape of an expression, wherever in the text it stands."""
    if isinstance(part, tuple):
        return tuple(map(_shape, part))
    if not is_dataclass(part):
        return type(part), part
    shape = [_shape(getattr(part, field.name)) for field in fields(part) if field.name not in _UNPLACED]
    return type(part), *shape
