"""Syntax to typed expressions: columns found, kinds inferred, constants converted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast

import pyarrow as pa

from uncertain_cep.durations import parse_duration
from uncertain_cep.errors import Fault, warn
from uncertain_cep.query import syntax
from uncertain_cep.query.checker import did_you_mean
from uncertain_cep.query.expression_text import OPERATOR_SIGNS, format_expression
from uncertain_cep.query.functions import (
    DATE_PARTS,
    FUNCTIONS,
    MOST_DIGITS,
    TYPES,
    Function,
    Parameter,
    by_row,
    speaks_of_one_event,
)
from uncertain_cep.query.parameters import guessed
from uncertain_cep.query.syntax import Expression, Position
from uncertain_cep.query.text_patterns import groups_of, like_regex, regex_fault
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
_PARTS_OF_AN_EVENT: Final = ("type", "id", "lower", "upper", "pmf", "probability")
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
    remarks: list[str] = field(default_factory=list)
    """What to warn of."""

    def refuse(self, message: str, position: Position) -> None:
        """Note a fault."""
        self.faults.append(Fault(message, position.line, position.column))

    def warn(self) -> None:
        """Warn of what is valid and hardly meant."""
        for remark in dict.fromkeys(self.remarks):
            warn(remark)

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
        if typed is None:
            return None
        stack: list[TypedExpression] = [typed]
        while stack:
            part = stack.pop()
            if by_row(part) and not speaks_of_one_event(columns_in(part)):
                self.refuse(
                    f"{_shown(part)} is worked out for one event at a time: compare events with each other, "
                    "such as LOWER(a.x) = LOWER(b.x), or return it",
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
                found = self.column(expression.name, expression.position)
                if found is None:
                    return None
                name, kind = found
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

    def element(self, attribute: syntax.Attribute | syntax.Time) -> Element:
        """Return which event of its variable a mention means."""
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
            found = self.column(aggregate.name, position)
            if found is None:
                return None
            name, of = found
        if function in ("avg", "sum", "stddev") and of not in _NUMBERS and of != "null":
            self.refuse(f"{function} needs numbers, but {name} is {KIND_NAMES[of]}", position)
            return None
        if function in ("min", "max") and of == "bool":
            self.refuse("true and false have no order: use every(...) or any(...)", position)
            return None
        if function in ("any", "every") and of not in ("bool", "null"):
            self.refuse(f"{function} needs a condition, but {name} is {KIND_NAMES[of]}", position)
            return None
        kinds: dict[str, Kind] = {
            "count": "int", "distinct": "int", "avg": "float", "stddev": "float", "any": "bool",
            "every": "bool",
        }  # fmt: skip
        kind = kinds.get(function, "int" if function == "sum" and of == "null" else of)
        return Aggregated(
            aggregate.variable, name, kind, computed=computed, function=function, span=span, of=of
        )

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
            if operand.kind != "duration" and not self._number(operand, "-", expression.position):
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
                    f"{_shown(left)} {sign} {_shown(right)} is never true: "
                    f"write {_shown(compared)} IS {opposite}NULL"
                )
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

    # Functions

    def _call(self, call: syntax.Call) -> TypedExpression | None:
        function, position = call.function, call.position
        if function == "cast":
            return self._cast(call)
        operands = []
        for argument in call.arguments:
            typed = self.expression(argument)
            if typed is not None:
                operands.append(typed)
        if len(operands) < len(call.arguments):
            return None
        beside = next((operand for operand in operands if operand.kind in ("string", "time")), None)
        if beside is not None:
            pairs = zip(call.arguments, operands, strict=True)
            operands = [_as_text(argument, operand, beside) for argument, operand in pairs]
        if function == "is_null":
            return Apply("is_null", tuple(operands), "bool")
        if function == "case":
            return self._case(call, operands)
        if function in ("in", "between"):
            found = self._alike(call, operands)
            if found is not None and function == "between" and found[1] == "bool":
                self.refuse("true and false have no order: BETWEEN needs something else", position)
                return None
            return None if found is None else Apply(cast("Operator", function), found[0], "bool")
        if function in ("like", "ilike", "regexp"):
            return self._matching(call, operands)
        return self._function(call, operands, FUNCTIONS[function])

    def _alike(
        self, call: syntax.Call, operands: list[TypedExpression], *, only: slice = slice(None)
    ) -> tuple[tuple[TypedExpression, ...], Kind] | None:
        """Return operands with texts beside times as times, and the kind that those chosen have in common."""
        chosen = operands[only]
        time = next((operand for operand in chosen if operand.kind == "time"), None)
        if time is not None:
            positions = [argument.position for argument in call.arguments[only]]
            timed = [self._timed(part, time, place) for part, place in zip(chosen, positions, strict=True)]
            if None in timed:
                return None
            chosen = [part for part in timed if part is not None]
        kinds = dict.fromkeys(operand.kind for operand in chosen if operand.kind != "null")
        kind: Kind = next(iter(kinds), "null")
        if kinds.keys() <= _NUMBERS:
            kind = "float" if "float" in kinds else kind
        elif len(kinds) > 1:
            first = {operand.kind: operand for operand in reversed(chosen)}
            one, other = (first[kind] for kind in list(kinds)[:2])
            self.refuse(
                f"{_shown(one)} is {KIND_NAMES[one.kind]} and {_shown(other)} {KIND_NAMES[other.kind]}: "
                f"{_spelled(call)} needs values of one kind{_remedy(one, other) or _remedy(other, one)}",
                call.position,
            )
            return None
        found = operands.copy()
        found[only] = chosen
        return tuple(found), kind

    def _case(self, call: syntax.Call, operands: list[TypedExpression]) -> TypedExpression | None:
        conditions = zip(operands[:-1:2], call.arguments[:-1:2], strict=True)
        met = [self._boolean(typed, written.position) for typed, written in conditions]
        values = [*range(1, len(operands), 2), len(operands) - 1]
        shown = replace(call, arguments=tuple(call.arguments[place] for place in values))
        found = self._alike(shown, [operands[place] for place in values])
        if None in met or found is None:
            return None
        for place, value in zip(values, found[0], strict=True):
            operands[place] = value
        return Apply("case", tuple(operands), found[1])

    def _cast(self, call: syntax.Call) -> TypedExpression | None:
        operand, type_ = self.expression(call.arguments[0]), cast("syntax.Literal", call.arguments[1])
        name = str(type_.value)
        kind = TYPES.get(name.lower())
        if kind is None:
            hint = did_you_mean(name.upper(), [known.upper() for known in TYPES])
            if name.lower() in ("timestamp", "date"):
                hint = f": write {name.upper()} '2024-05-01'"
            self.refuse(
                f"CAST knows no type {name}{hint or ': the types are ' + _TYPE_NAMES}", type_.position
            )
            return None
        if operand is None:
            return None
        if operand.kind in ("time", "duration"):
            self.refuse(
                f"{_shown(operand)} is {KIND_NAMES[operand.kind]}: CAST takes numbers, strings and booleans",
                call.position,
            )
            return None
        return Apply("cast", (operand,), "null" if operand.kind == "null" else kind)

    def _matching(self, call: syntax.Call, operands: list[TypedExpression]) -> TypedExpression | None:
        sign = _spelled(call)
        if not self._takes(sign, "text", operands[0], call.arguments[0].position):
            return None
        for operand, argument in zip(operands[1:], call.arguments[1:], strict=True):
            if not self._takes(sign, "text constant", operand, argument.position):
                return None
        function = cast("Operator", call.function)
        if "null" in [operand.kind for operand in operands]:
            return Apply(function, tuple(operands), "null")
        pattern, *escape = (str(cast("Constant", operand).value) for operand in operands[1:])
        if escape and (call.function == "regexp" or len(escape[0]) != 1):
            message = "ESCAPE takes one character, and belongs to LIKE: LIKE '100!%' ESCAPE '!'"
            self.refuse(message, call.arguments[2].position)
            return None
        if call.function != "regexp":
            try:
                pattern = like_regex(pattern, *escape, any_case=call.function == "ilike")
            except ValueError as error:
                self.refuse(f"{error}: double it", call.arguments[1].position)
                return None
        return Apply(function, tuple(operands), "bool") if self._is_regex(pattern, call) else None

    def _is_regex(self, pattern: str, call: syntax.Call) -> bool:
        fault = regex_fault(pattern)
        if fault is not None:
            message = f"{_spelled(call)} takes a regular expression of RE2, and this is none: {fault}"
            self.refuse(message, call.arguments[1].position)
        return fault is None

    def _takes(self, sign: str, wanted: Parameter, typed: TypedExpression, position: Position) -> bool:
        """Return whether a function takes an operand; note a fault if it does not."""
        if wanted == "any":
            return True
        needed = wanted.removesuffix(" constant")
        if needed == "number":
            return self._number(typed, sign, position)
        words = {"text": "text", "time": "a time", "whole": "a whole number"}[needed]
        kind: Kind = {"text": "string", "time": "time", "whole": "int"}[needed]  # type: ignore[assignment]
        if wanted != needed and not isinstance(typed, Constant):
            words = f"{words} written out"
        elif typed.kind in (kind, "null"):
            return True
        self.refuse(f"{sign} needs {words}, but {_shown(typed)} is {KIND_NAMES[typed.kind]}", position)
        return False

    def _function(
        self, call: syntax.Call, operands: list[TypedExpression], function: Function
    ) -> TypedExpression | None:
        takes = list(function.takes[: len(operands)])
        takes += takes[-1:] * (len(operands) - len(takes))
        sign, name = _spelled(call), cast("Operator", call.function)
        met = []
        for place, wanted in enumerate(takes):
            position = call.arguments[place].position
            if wanted == "time":
                # A text is a time where one is needed.
                timed = self._timed(operands[place], Constant(0, "time"), position)
                if timed is None:
                    return None
                operands[place] = timed
            met.append(self._takes(sign, wanted, operands[place], position))
        if not all(met):
            return None
        if "any" in takes and name != "concat":
            return self._choosing(call, operands)
        if name != "concat" and any(operand.kind == "null" for operand in operands):
            return Apply(name, tuple(operands), "null")
        if not self._constants_fit(call, operands):
            return None
        if function.gives is not None:
            return Apply(name, tuple(operands), function.gives)
        whole = operands[0].kind == "int"
        if name == "round" and len(operands) > 1 and whole and int(_value(operands[1]) or 0) < 0:
            whole = False
        elif name in ("round", "floor", "ceil") and whole:
            return operands[0]
        return Apply(name, tuple(operands), "int" if whole else "float")

    def _choosing(self, call: syntax.Call, operands: list[TypedExpression]) -> TypedExpression | None:
        """Return a function that gives one of its operands."""
        found = self._alike(call, operands)
        if found is None:
            return None
        name, (operands_, kind) = cast("Operator", call.function), found
        if name in ("least", "greatest") and kind == "bool":
            self.refuse(f"true and false have no order: {_spelled(call)} needs something else", call.position)
            return None
        return Apply(name, operands_, operands_[0].kind if name == "nullif" else kind)

    def _constants_fit(self, call: syntax.Call, operands: list[TypedExpression]) -> bool:
        """Return whether the constants that a function needs are in range; note a fault if one is not."""
        position = call.arguments[-1].position
        values = [_value(operand) for operand in operands]
        match call.function:
            case "round" if len(values) > 1 and abs(int(values[1] or 0)) > MOST_DIGITS:
                self.refuse(f"ROUND keeps or drops at most {MOST_DIGITS} digits", position)
            case "substring" if len(values) > 2 and int(values[2] or 0) < 0:
                self.refuse("the length of a SUBSTRING cannot be negative", position)
            case "date_trunc" if str(values[0]).lower().removesuffix("s") not in DATE_PARTS:
                self.refuse(
                    f"DATE_TRUNC knows these parts: {', '.join(DATE_PARTS)}", call.arguments[0].position
                )
            case "regexp_extract":
                if not self._is_regex(str(values[1]), call):
                    return False
                most = groups_of(str(values[1]))
                if len(values) < 3 or 0 <= int(values[2] or 0) <= most:
                    return True
                self.refuse(f"this regular expression has {most} groups", position)
            case _:
                return True
        return False


def _of_each(expression: TypedExpression, span: Literal["all", "before"]) -> TypedExpression:
    """Return an expression over the events of a variable as one over each of them."""
    if isinstance(expression, Column):
        return replace(expression, index=span)
    if isinstance(expression, Apply):
        return replace(expression, operands=tuple(_of_each(operand, span) for operand in expression.operands))
    return expression


def _as_text(given: Expression, typed: TypedExpression, other: TypedExpression) -> TypedExpression:
    """Return what may be a number or text as text beside text and times."""
    beside = other.kind in ("string", "time")
    if beside and isinstance(given, syntax.Literal) and isinstance(given.value, syntax.Untyped):
        return Constant(str(given.value), "string", given.parameter)
    return typed


_TIMED_ARITHMETIC: Final[dict[tuple[Kind, str, Kind], Kind]] = {
    ("time", "-", "time"): "duration",
    ("time", "+", "duration"): "time", ("time", "-", "duration"): "time", ("duration", "+", "time"): "time",
    ("duration", "+", "duration"): "duration", ("duration", "-", "duration"): "duration",
    ("duration", "*", "int"): "duration", ("int", "*", "duration"): "duration",
    ("duration", "/", "duration"): "float",
}  # fmt: skip
_TYPE_NAMES: Final = "BIGINT, DOUBLE, VARCHAR, BOOLEAN"


def _value(typed: TypedExpression) -> int | float | str | bool | None:
    return typed.value if isinstance(typed, Constant) else None


def _spelled(call: syntax.Call) -> str:
    """Return a function's name as a query writes it."""
    return call.function.upper()


def _remedy(one: TypedExpression, other: TypedExpression) -> str:
    if not isinstance(other, Constant):
        return ""
    if one.kind == "duration" and other.kind in _NUMBERS:
        return f", write {_shown(other)} seconds or another unit"
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
