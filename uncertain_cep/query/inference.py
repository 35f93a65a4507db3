"""Syntax to typed expressions: columns found, kinds inferred, constants converted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final, Literal, cast

import pyarrow as pa

from uncertain_cep.errors import Fault
from uncertain_cep.query import syntax
from uncertain_cep.query.checker import did_you_mean
from uncertain_cep.query.expression_text import OPERATOR_SIGNS, format_expression
from uncertain_cep.query.parameters import guessed
from uncertain_cep.query.syntax import Expression, Position
from uncertain_cep.query.typed import (
    KIND_NAMES,
    Aggregated,
    Apply,
    Column,
    Constant,
    Element,
    Kind,
    Operator,
    TypedExpression,
    kind_of,
    parse_time,
)
from uncertain_cep.timedomain import Names

__all__ = ["Binding"]

_OPERATORS: Final[dict[str, Operator]] = {
    sign.lower(): operator for operator, sign in OPERATOR_SIGNS.items() if operator not in ("negate", "not")
}
_NUMBERS: Final[frozenset[Kind]] = frozenset({"int", "float"})
_NULL: Final = Constant(None, "null")
_KINDS: Final[dict[type, Kind]] = {
    bool: "bool", str: "string", float: "float", int: "int", syntax.Instant: "time",
}  # fmt: skip
_PARTS_OF_AN_EVENT: Final = ("type", "id", "lower", "upper", "pmf")
_NUMERAL: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_SHOWN_COLUMNS: Final = 20
_SHOWN_LENGTH: Final = 40


@dataclass(slots=True)
class Binding:
    """Binds expressions to one schema and collects the faults met on the way.

    By ``names``, ``a.type`` finds the type column whatever the trace calls it. ``kleene`` variables mean each
    of their events where they have no index.
    """

    schema: pa.Schema
    names: Names
    kleene: frozenset[str] = frozenset()
    faults: list[Fault] = field(default_factory=list)

    def refuse(self, message: str, position: Position) -> None:
        """Note a fault."""
        self.faults.append(Fault(message, position.line, position.column))

    @property
    def attributes(self) -> list[str]:
        """The columns that are attributes, and not parts of the model."""
        parts = (*_PARTS_OF_AN_EVENT, "tick")
        return [
            name for name in self.schema.names if name not in {getattr(self.names, part) for part in parts}
        ]

    def column(self, name: str, position: Position) -> tuple[str, Kind] | None:
        """Return the column an attribute stands for and its kind; None, with a fault noted, if none."""
        columns = self.schema.names
        if name not in columns and name in _PARTS_OF_AN_EVENT:
            name = getattr(self.names, name)
        if name not in columns:
            hint = did_you_mean(name, columns) or f": the trace has {_listed(columns)}"
            self.refuse(f"unknown attribute {name}{hint}", position)
            return None
        if columns.count(name) > 1:
            self.refuse(f"the trace has several columns named {name}: rename them", position)
            return None
        if name == self.names.tick:
            rename = 'rename the column, or map names={"tick": "..."}, to use an attribute of that name'
            self.refuse(
                f"{name} says how long a tick of the trace is, and is no attribute: {rename}", position
            )
            return None
        type_ = self.schema.field(name).type
        kind = kind_of(type_)
        if kind is None:
            usable = "numbers, strings, true/false and times"
            self.refuse(f"attribute {name} is of type {type_}: only {usable} can be used", position)
            return None
        return name, kind

    def condition(self, expression: Expression) -> TypedExpression | None:
        """Return a typed condition; None, with faults noted, if it is none."""
        typed = self.expression(expression)
        return None if typed is None else self._boolean(typed, expression.position)

    def expression(self, expression: Expression) -> TypedExpression | None:
        """Return a typed expression; None, with faults noted, if it has no meaning."""
        match expression:
            case syntax.Literal():
                return self._literal(expression)
            case syntax.Parameter():
                self.refuse(
                    f"no value for ${expression.name}: give it one in parameters=", expression.position
                )
                return None
            case syntax.Attribute():
                found = self.column(expression.name, expression.position)
                if found is None:
                    return None
                name, kind = found
                return Column(expression.variable, name, kind, self._element(expression))
            case syntax.Aggregate():
                return self._aggregate(expression)
            case syntax.Unary():
                return self._unary(expression)
            case syntax.Binary():
                return self._binary(expression)
        self.refuse("this cannot be a part of an expression", expression.position)
        return None

    def _element(self, attribute: syntax.Attribute) -> Element:
        index = "current" if attribute.index is None else attribute.index
        # The checker has refused the indexes that mean several events.
        return cast("Element", index) if attribute.variable in self.kleene else "single"

    def _aggregate(self, aggregate: syntax.Aggregate) -> TypedExpression | None:
        function, position = aggregate.function, aggregate.position
        span = cast("Literal['all', 'before']", aggregate.index)
        if aggregate.name is None:
            return Aggregated(aggregate.variable, "", "int", function="count", span=span)
        found = self.column(aggregate.name, position)
        if found is None:
            return None
        name, of = found
        if function in ("avg", "sum") and of not in _NUMBERS and of != "null":
            self.refuse(f"{function} needs numbers, but {aggregate.name} is {KIND_NAMES[of]}", position)
            return None
        if function in ("min", "max") and of == "bool":
            self.refuse(f"true and false have no order: {function} needs something else", position)
            return None
        kinds: dict[str, Kind] = {"count": "int", "avg": "float"}
        kind = kinds.get(function, "int" if function == "sum" and of == "null" else of)
        return Aggregated(aggregate.variable, name, kind, function=function, span=span, of=of)

    def _literal(self, literal: syntax.Literal) -> TypedExpression | None:
        value, name = literal.value, literal.parameter
        if isinstance(value, syntax.Untyped):
            value = guessed(value)
        if value is None:
            return _NULL if name is None else Constant(None, "null", name)
        kind = _KINDS.get(type(value))
        if kind is None:
            self.refuse(f"${name} is a length of time, and this takes a value", literal.position)
            return None
        if kind == "int" and not -(2**63) <= int(value) < 2**63:
            message = "this whole number does not fit in 64 bits: write it with a decimal point"
            self.refuse(message, literal.position)
            return None
        return Constant(int(value) if kind == "time" else value, kind, name)

    def _boolean(self, typed: TypedExpression, position: Position) -> TypedExpression | None:
        if typed.kind in ("bool", "null"):
            return typed
        self.refuse(
            f"{_shown(typed)} is {KIND_NAMES[typed.kind]}, not a condition: compare it with something",
            position,
        )
        return None

    def _number(self, typed: TypedExpression, sign: str, position: Position) -> bool:
        if typed.kind in _NUMBERS or typed.kind == "null":
            return True
        self.refuse(f"{sign} needs numbers, but {_shown(typed)} is {KIND_NAMES[typed.kind]}", position)
        return False

    def _unary(self, expression: syntax.Unary) -> TypedExpression | None:
        operand = self.expression(expression.operand)
        if operand is None:
            return None
        if expression.operator == "-":
            if not self._number(operand, "-", expression.position):
                return None
            return Apply("negate", (operand,), operand.kind)
        condition = self._boolean(operand, expression.operand.position)
        return None if condition is None else Apply("not", (condition,), "bool")

    def _binary(self, expression: syntax.Binary) -> TypedExpression | None:
        left, right = self.expression(expression.left), self.expression(expression.right)
        if left is None or right is None:
            return None
        left, right = _as_text(expression.left, left, right), _as_text(expression.right, right, left)
        operator = expression.operator
        if operator in ("and", "or"):
            sides = ((left, expression.left.position), (right, expression.right.position))
            met = [self._boolean(side, position) for side, position in sides]
            return Apply(_OPERATORS[operator], (left, right), "bool") if None not in met else None
        if operator in ("+", "-", "*", "/", "%"):
            return self._arithmetic(expression, left, right)
        return self._comparison(expression, left, right)

    def _arithmetic(
        self, expression: syntax.Binary, left: TypedExpression, right: TypedExpression
    ) -> TypedExpression | None:
        sign = expression.operator
        numbers = [self._number(operand, sign, expression.position) for operand in (left, right)]
        if not all(numbers):
            return None
        # What is always null still uses its variables: it fails for their events, and for no others.
        if "null" in (left.kind, right.kind):
            return Apply(_OPERATORS[sign], (left, right), "null")
        whole = left.kind == right.kind == "int" and sign != "/"
        return Apply(_OPERATORS[sign], (left, right), "int" if whole else "float")

    def _comparison(
        self, expression: syntax.Binary, left: TypedExpression, right: TypedExpression
    ) -> TypedExpression | None:
        sign = expression.operator
        if "null" in (left.kind, right.kind):
            return Apply(_OPERATORS[sign], (left, right), "bool")
        one = self._timed(left, right, expression.left.position)
        other = self._timed(right, left, expression.right.position)
        if one is None or other is None:
            return None
        left, right = one, other
        if left.kind != right.kind and not {left.kind, right.kind} <= _NUMBERS:
            self.refuse(
                f"{_shown(left)} is {KIND_NAMES[left.kind]} and {_shown(right)} {KIND_NAMES[right.kind]}: "
                f"they cannot be compared{_remedy(left, right) or _remedy(right, left)}",
                expression.position,
            )
            return None
        if left.kind == "bool" and sign not in ("=", "!="):
            self.refuse("true and false have no order: use = or !=", expression.position)
            return None
        return Apply(_OPERATORS[sign], (left, right), "bool")

    def _timed(
        self, constant: TypedExpression, other: TypedExpression, position: Position
    ) -> TypedExpression | None:
        """Return a text beside a time as a time, and all else as it is; None with a fault noted."""
        if other.kind != "time" or not isinstance(constant, Constant) or constant.kind != "string":
            return constant
        nanoseconds = parse_time(str(constant.value))
        if nanoseconds is None:
            message = "is no time: write ISO 8601, such as '2024-05-01T12:00:00Z' or '2024-05-01'"
            self.refuse(f"{_shown(constant)} {message}", position)
            return None
        return replace(constant, value=nanoseconds, kind="time")


def _as_text(given: Expression, typed: TypedExpression, other: TypedExpression) -> TypedExpression:
    """Return what may be a number or text as text beside text and times."""
    beside = other.kind in ("string", "time")
    if beside and isinstance(given, syntax.Literal) and isinstance(given.value, syntax.Untyped):
        return Constant(str(given.value), "string", given.parameter)
    return typed


def _remedy(one: TypedExpression, other: TypedExpression) -> str:
    if not isinstance(other, Constant):
        return ""
    if one.kind == "time":
        return ", write the time as ISO 8601 text such as '2024-05-01T12:00:00Z'"
    if one.kind == "bool":
        return ", write TRUE or FALSE"
    if one.kind == "string" and other.kind in _NUMBERS:
        return f", write '{_shown(other)}'"
    if one.kind in _NUMBERS and isinstance(other.value, str) and _NUMERAL.fullmatch(other.value):
        return f", write {other.value} without quotes"
    return ""


def _shown(typed: TypedExpression) -> str:
    text = format_expression(typed)
    return text if len(text) <= _SHOWN_LENGTH else f"{text[: _SHOWN_LENGTH - 3]}..."


def _listed(columns: list[str]) -> str:
    more = len(columns) - _SHOWN_COLUMNS
    return ", ".join(columns[:_SHOWN_COLUMNS]) + (f" and {more} more" if more > 0 else "")
