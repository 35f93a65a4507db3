"""Syntax to typed expressions: columns found, kinds inferred, constants converted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal, cast

from uncertain_cep.query import syntax
from uncertain_cep.query.calls import Calls
from uncertain_cep.query.expression_text import OPERATOR_SIGNS, format_expression
from uncertain_cep.query.functions import BETWEEN_EVENTS, by_row, speaks_of_one_event
from uncertain_cep.query.kinds import NUMBERS, as_text, remedy, shown, text_columns, time_between
from uncertain_cep.query.parameters import guessed
from uncertain_cep.query.syntax import Expression
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
    columns_in,
)
from uncertain_cep.timeline.durations import parse_duration

__all__ = ["Binding"]

_OPERATORS: Final[dict[str, Operator]] = {
    sign.lower(): operator for operator, sign in OPERATOR_SIGNS.items() if operator not in ("negate", "not")
}
_NULL: Final = Constant(None, "null")
_KINDS: Final[dict[type, Kind]] = {
    bool: "bool", str: "string", float: "float", int: "int", syntax.Instant: "time",
}  # fmt: skip
_TIMED_ARITHMETIC: Final[dict[tuple[Kind, str, Kind], Kind]] = {
    ("time", "-", "time"): "duration",
    ("time", "+", "duration"): "time", ("time", "-", "duration"): "time", ("duration", "+", "time"): "time",
    ("duration", "+", "duration"): "duration", ("duration", "-", "duration"): "duration",
    ("duration", "*", "int"): "duration", ("int", "*", "duration"): "duration",
    ("duration", "/", "duration"): "float",
}  # fmt: skip


class Binding(Calls):
    """Binds expressions to one schema."""

    __slots__ = ()

    def condition(self, expression: Expression) -> TypedExpression | None:
        """Return a typed condition; None, with faults noted, if it is none."""
        typed = self.expression(expression)
        if typed is None:
            return None
        stack: list[TypedExpression] = [typed]
        while stack:
            part = stack.pop()
            between = isinstance(part, Apply) and part.operator in BETWEEN_EVENTS
            if by_row(part) and not between and not speaks_of_one_event(columns_in(part)):
                self.refuse(
                    f"{shown(part)} is worked out for one event at a time: compare events with each other, "
                    "such as LOWER(a.x) = LOWER(b.x) or CONTAINS(a.x, b.x), or return it",
                    expression.position,
                )
            stack.extend(part.operands if isinstance(part, Apply) else ())
        return self._boolean(typed, expression.position)

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
                column = self.column(expression.name, expression.position, expression.variable)
                if column is None:
                    return None
                name, kind = column
                return Column(expression.variable, name, kind, self.element(expression))
            case syntax.Aggregate():
                return self._aggregate(expression)
            case syntax.Unary():
                return self._unary(expression)
            case syntax.Binary():
                return self._binary(expression)
            case syntax.Call():
                return self._call(expression)
        self.refuse("this cannot be a part of an expression", expression.position)
        return None

    def _items(self, expression: Expression) -> tuple[Column, Kind] | None:
        """Return an attribute that is a list, and the kind of its elements; None, with a fault noted."""
        if not isinstance(expression, syntax.Attribute):
            self.refuse("a list is an attribute, such as b.items in a.x IN b.items", expression.position)
            return None
        column = self.list_column(expression.name, expression.position, expression.variable)
        if column is None:
            return None
        name, elements = column
        return Column(expression.variable, name, "list", self.element(expression)), elements

    def element(self, attribute: syntax.Attribute | syntax.Time) -> Element:
        """Return the event of its variable that a mention means."""
        index = "current" if attribute.index is None else attribute.index
        # The checker has refused the indexes that mean several events.
        return cast("Element", index) if attribute.variable in self.kleene else "single"

    def _aggregate(self, aggregate: syntax.Aggregate) -> TypedExpression | None:
        function, position = aggregate.function, aggregate.position
        span = cast("Literal['all', 'before']", aggregate.index)
        computed: TypedExpression | None = None
        if aggregate.operand is not None:
            computed = self.expression(aggregate.operand)
            if computed is None:
                return None
            computed = _of_each(computed, span)
            name, of = format_expression(computed), computed.kind
            if isinstance(computed, Column):
                name, computed = computed.name, None
        elif aggregate.name is None:
            return Aggregated(aggregate.variable, "", "int", function="count", span=span)
        else:
            column = self.column(aggregate.name, position)
            if column is None:
                return None
            name, of = column
        if function in ("avg", "sum", "stddev", "percentile") and of not in NUMBERS and of != "null":
            columns = ([name] if of == "string" else ()) if computed is None else text_columns(computed)
            self.refuse(
                f"{_called(aggregate)} needs numbers, but {name} is {KIND_NAMES[of]}", position, columns
            )
            return None
        if function in ("min", "max") and of == "bool":
            self.refuse("true and false have no order: use every(...) or any(...)", position)
            return None
        if function in ("any", "every") and of not in ("bool", "null"):
            self.refuse(f"{function} needs a condition, but {name} is {KIND_NAMES[of]}", position)
            return None
        kinds: dict[str, Kind] = {
            "count": "int", "distinct": "int", "avg": "float", "stddev": "float", "percentile": "float",
            "any": "bool", "every": "bool",
        }  # fmt: skip
        kind = kinds.get(function, "int" if function == "sum" and of == "null" else of)
        return Aggregated(
            aggregate.variable, name, kind, computed=computed, function=function, span=span, of=of,
            fraction=aggregate.fraction,
        )  # fmt: skip

    def _literal(self, literal: syntax.Literal) -> TypedExpression | None:
        value, name = literal.value, literal.parameter
        if isinstance(value, syntax.Untyped):
            value = guessed(value)
        if value is None:
            return _NULL if name is None else Constant(None, "null", name)
        if literal.kind == "ticks":
            message = "ticks count times: compare them with TIME(b) - TIME(a), and attributes with numbers"
            self.refuse(message, literal.position)
            return None
        kind = literal.kind or _KINDS.get(type(value))
        if kind is None:
            # What a caller gave for a parameter, and is no plain value.
            length: Any = value
            value, kind = parse_duration(length, what=f"${name}"), "duration"
        if kind == "int" and not -(2**63) <= int(value) < 2**63:
            message = "this whole number does not fit in 64 bits: write it with a decimal point"
            self.refuse(message, literal.position)
            return None
        if kind != "time":
            return Constant(value, kind, name)
        moment = self.moment(int(value), literal.position) if literal.local else int(value)
        return None if moment is None else Constant(moment, kind, name)

    def _unary(self, expression: syntax.Unary) -> TypedExpression | None:
        operand = self.expression(expression.operand)
        if operand is None:
            return None
        if expression.operator == "-":
            if operand.kind != "duration" and not self._number(operand, "-", expression.position):
                return None
            return Apply("negate", (operand,), operand.kind)
        condition = self._boolean(operand, expression.operand.position)
        return None if condition is None else Apply("not", (condition,), "bool")

    def _binary(self, expression: syntax.Binary) -> TypedExpression | None:
        left, right = self.expression(expression.left), self.expression(expression.right)
        if left is None or right is None:
            return None
        left, right = as_text(expression.left, left, right), as_text(expression.right, right, left)
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
        if "time" in (left.kind, right.kind):
            one = self._timed(left, right, expression.left.position)
            other = self._timed(right, left, expression.right.position)
            if one is None or other is None:
                return None
            left, right = one, other
        timed = _TIMED_ARITHMETIC.get((left.kind, sign, right.kind))
        if timed is not None:
            return Apply(_OPERATORS[sign], (left, right), timed)
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
        sides = (expression.left, expression.right)
        for side, compared in zip(sides, (right, left), strict=True):
            if isinstance(side, syntax.Literal) and side.value is None:
                opposite = "NOT " if sign == "!=" else ""
                self.remarks.append(
                    f"{shown(left)} {sign} {shown(right)} is never true: "
                    f"write {shown(compared)} IS {opposite}NULL"
                )
        if "null" in (left.kind, right.kind):
            return Apply(_OPERATORS[sign], (left, right), "bool")
        one = self._timed(left, right, expression.left.position)
        other = self._timed(right, left, expression.right.position)
        if one is None or other is None:
            return None
        left, right = one, other
        if left.kind != right.kind and not {left.kind, right.kind} <= NUMBERS:
            advice = time_between(left, right) or time_between(right, left)
            advice = advice or remedy(left, right) or remedy(right, left)
            self.refuse(
                f"{shown(left)} is {KIND_NAMES[left.kind]} and {shown(right)} {KIND_NAMES[right.kind]}: "
                f"they cannot be compared{advice}",
                expression.position,
                text_columns(left, right) if {left.kind, right.kind} & NUMBERS else (),
            )
            return None
        if left.kind == "bool" and sign not in ("=", "!="):
            self.refuse("true and false have no order: use = or !=", expression.position)
            return None
        return Apply(_OPERATORS[sign], (left, right), "bool")

    def _of_lists(self, call: syntax.Call) -> TypedExpression | None:
        """Return whether a value is in a list, or two lists have one in common."""
        is_item = call.function == "has_item"
        one, other = call.arguments[::-1] if is_item else call.arguments
        listed, value = self._items(one), self._valued(other) if is_item else self._items(other)
        if listed is None or value is None:
            return None
        (items, elements), (operand, kind) = listed, value
        first = Apply("items", (items,), "string")
        if is_item and kind == "null":
            return Apply("has_item", (first, operand), "null")
        # Of lists that are all empty nobody knows the kind.
        if kind != elements and "null" not in (kind, elements):
            what = [KIND_NAMES[each] for each in (elements, kind)]
            is_what = (
                f"{shown(operand)} is {what[1]}" if is_item else f"those of {shown(operand)} are {what[1]}"
            )
            self.refuse(
                f"the elements of {shown(items)} are {what[0]} each and {is_what}: "
                f"{'IN' if is_item else 'SHARES'} needs one kind",
                call.position,
            )
            return None
        second = Apply("item" if is_item else "items", (operand,), "string")
        return Apply("has_item" if is_item else "shares", (first, second), "bool")

    def _valued(self, expression: Expression) -> tuple[TypedExpression, Kind] | None:
        """Return a typed value and the kind of lists that it may be an element of; float for all numbers."""
        typed = self.expression(expression)
        return None if typed is None else (typed, "float" if typed.kind in NUMBERS else typed.kind)

    def _call(self, call: syntax.Call) -> TypedExpression | None:
        if call.function == "cast":
            return self._cast(call, self.expression(call.arguments[0]))
        if call.function in ("has_item", "shares"):
            return self._of_lists(call)
        operands = []
        for argument in call.arguments:
            typed = self.expression(argument)
            if typed is not None:
                operands.append(typed)
        return None if len(operands) < len(call.arguments) else self._called(call, operands)


def _of_each(expression: TypedExpression, span: Literal["all", "before"]) -> TypedExpression:
    """Return an expression over the events of a variable as one over each of them."""
    if isinstance(expression, Column):
        return replace(expression, index=span)
    if isinstance(expression, Apply):
        return replace(expression, operands=tuple(_of_each(operand, span) for operand in expression.operands))
    return expression


def _called(aggregate: syntax.Aggregate) -> str:
    return "median" if aggregate.fraction == 0.5 else aggregate.function
