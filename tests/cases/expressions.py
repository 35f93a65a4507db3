"""Expressions as descriptions: each can be written in the query language and evaluated in plain Python.

The rules of evaluation are those of SEMANTICS 9 and of the language's documentation: SQL's three-valued
logic, ``/`` divides floats, ``%`` takes the sign of the dividend, a zero divisor gives null.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from hypothesis import strategies as st

from tests.cases.sampling import sampled_from
from uncertain_cep.testing.model import Event, Value

Kind = Literal["int", "float", "string", "bool", "clock"]
"""``clock`` is a time column: it may be compared with another one, nothing else."""

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SPELLINGS = {"=": ("=", "=="), "!=": ("!=", "<>")}
# How tightly an operator binds; an operand that binds less tightly needs parentheses.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _MINUS, _PRIMARY = range(8)
_LEVELS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}


@dataclass(frozen=True, slots=True)
class Attribute:
    """``variable.name``."""

    variable: str
    name: str

    def text(self) -> str:
        """Return it in the query language."""
        return f"{self.variable}.{self.name}"

    def value(self, events: Mapping[str, Event]) -> Value:
        """Return its value for the events bound to the variables; None is null."""
        value: Value = events[self.variable][self.name]
        return value

    def variables(self) -> frozenset[str]:
        """Return the variables it mentions."""
        return frozenset((self.variable,))


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal, with the way in which it is written."""

    constant: Value
    written: str

    def text(self) -> str:
        """Return it in the query language."""
        return self.written

    def value(self, _events: Mapping[str, Event]) -> Value:
        """Return its value for the events bound to the variables; None is null."""
        return self.constant

    def variables(self) -> frozenset[str]:
        """Return the variables it mentions."""
        return frozenset()


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator between two operands, or one (``not`` and ``negate``)."""

    operator: str
    operands: tuple[Expression, ...]
    spelling: str

    def text(self) -> str:
        """Return it in the query language."""
        if self.operator in _WRITTEN:
            return _WRITTEN[self.operator].format(*(f"({operand.text()})" for operand in self.operands))
        level = _level(self)
        # Operators group to the left, so only a right operand of the same level needs parentheses;
        # comparisons do not group at all, and two minus signs would begin a comment.
        ungrouped = level in (_COMPARISON, _MINUS)
        inner = [
            f"({operand.text()})"
            if _level(operand) < level or (_level(operand) == level and (place > 0 or ungrouped))
            else operand.text()
            for place, operand in enumerate(self.operands)
        ]
        if len(inner) == 1:
            return f"{self.spelling} {inner[0]}" if self.operator == "not" else f"-{inner[0]}"
        return f"{inner[0]} {self.spelling} {inner[1]}"

    def value(self, events: Mapping[str, Event]) -> Value:
        """Return its value for the events bound to the variables; None is null."""
        values = [operand.value(events) for operand in self.operands]
        if self.operator in _WRITTEN:
            return _function(self.operator, values)
        if self.operator in ("and", "or"):
            decisive = self.operator == "or"
            if decisive in values:
                return decisive
            return None if None in values else not decisive
        if None in values:
            return None
        if self.operator == "not":
            return not values[0]
        if self.operator in _COMPARISONS:
            return bool(_COMPARISONS[self.operator](values[0], values[1]))
        return _arithmetic(self.operator, values)

    def variables(self) -> frozenset[str]:
        """Return the variables it mentions."""
        return frozenset[str]().union(*(operand.variables() for operand in self.operands))


Expression = Attribute | Constant | Apply


# Each in parentheses of its own or of its name, so that it binds like a name.
_WRITTEN = {
    "is null": "({} IS NULL)", "in": "({} IN ({}, {}))", "between": "({} BETWEEN {} AND {})",
    "case": "CASE WHEN {} THEN {} ELSE {} END", "coalesce": "COALESCE({}, {})", "nullif": "NULLIF({}, {})",
    "abs": "ABS({})", "least": "LEAST({}, {})", "greatest": "GREATEST({}, {})", "floor": "FLOOR({})",
    "lower": "LOWER({})", "length": "LENGTH({})",
}  # fmt: skip


def _function(name: str, values: list[Value]) -> Value:
    """Return the value of a function."""
    present: list[Any] = [value for value in values if value is not None]
    first: Any = values[0]
    if name == "is null":
        return first is None
    if name == "case":
        return values[1] if first is True else values[2]
    if name == "coalesce":
        return present[0] if present else None
    if name in ("least", "greatest"):
        return (min if name == "least" else max)(present) if present else None
    if first is None:
        return None
    if name == "in":
        return True if first in present[1:] else None if None in values else False
    if name == "nullif":
        return None if first == values[1] else first
    if name == "between":
        outside = [value is not None and sign * first < sign * value for value, sign in _sides(values)]
        return False if any(outside) else None if None in values else True
    functions: dict[str, Callable[[Any], Value]] = {
        "abs": abs, "floor": _floor, "lower": str.lower, "length": len,
    }  # fmt: skip
    return functions[name](first)


def _floor(number: float) -> float:
    whole = isinstance(number, int) or not math.isfinite(number)
    return number if whole else float(math.floor(number))


def _sides(values: list[Value]) -> list[tuple[Any, int]]:
    return [(values[1], 1), (values[2], -1)]


def _level(expression: Expression) -> int:
    if isinstance(expression, Apply) and expression.operator in _WRITTEN:
        return _PRIMARY
    if not isinstance(expression, Apply):
        # A negative literal is written with a minus sign.
        return _MINUS if expression.text().startswith("-") else _PRIMARY
    levels = {"or": _OR, "and": _AND, "not": _NOT, "negate": _MINUS, **_LEVELS}
    return levels.get(expression.operator, _COMPARISON)


def _arithmetic(sign: str, values: list[Value]) -> Value:
    numbers = [value for value in values if isinstance(value, (int, float))]
    left, right = numbers[0], numbers[-1]
    if sign == "negate":
        return -left
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    if sign == "*":
        return left * right
    if right == 0:
        return None
    if sign == "/":
        return left / right
    if isinstance(left, int) and isinstance(right, int):
        remainder = abs(left) % abs(right)
        return remainder if left >= 0 else -remainder
    return math.fmod(left, right)


_CHOOSING = ("case", "coalesce", "least", "greatest")
_KINDS = {int: "int", float: "float", str: "string", bool: "bool", type(None): "null"}


def kind_of(expression: Expression, column: Callable[[str], str]) -> str:
    """Return the kind of an expression, from those of columns; ``null`` if it has no other value.

    What chooses among numbers is a float if one of them is, whichever it chooses: a column has one type.
    """
    if isinstance(expression, Attribute):
        return column(expression.name)
    if isinstance(expression, Constant):
        return _KINDS[type(expression.constant)]
    sign = expression.operator
    kinds = [kind_of(operand, column) for operand in expression.operands]
    if sign in ("nullif", "abs", "floor"):
        return kinds[0]
    if sign in _CHOOSING:
        operand_kinds = [kind for kind in kinds[sign == "case" :] if kind != "null"]
        return "float" if "float" in operand_kinds else (operand_kinds or ["null"])[0]
    if sign not in (*_LEVELS, "negate"):
        return {"length": "int", "lower": "string"}.get(sign, "bool")
    if "null" in kinds:
        return "null"
    return "float" if sign == "/" or "float" in kinds else "int"


def conjuncts(condition: Expression) -> list[Expression]:
    """Return the conditions that are joined by AND, as the query language sees them."""
    if isinstance(condition, Apply) and condition.operator == "and":
        return [part for operand in condition.operands for part in conjuncts(operand)]
    return [condition]


def literals(kind: Kind) -> st.SearchStrategy[Constant]:
    """Return constants of a kind, in the ways in which they can be written."""
    if kind == "int":
        return st.integers(-3, 12).map(lambda value: Constant(value, str(value)))
    if kind == "float":
        percents = sampled_from([0, 50, 95, 150]).map(
            # The double nearest to the exact value, whatever steps the engine takes to it.
            lambda percent: Constant(float(Fraction(percent, 100)), f"{percent}%")
        )
        decimals = sampled_from([0.0, 0.5, 1.0, 1.5, -0.25, 2.75]).map(
            lambda value: Constant(value, str(value))
        )
        return percents | decimals
    if kind == "string":
        return sampled_from(["u", "v", "w", "it's", ""]).map(
            lambda value: Constant(value, "'" + value.replace("'", "''") + "'")
        )
    return st.booleans().map(lambda value: Constant(value, "TRUE" if value else "FALSE"))


@st.composite
def values_of(
    draw: st.DrawFn, kind: Kind, variables: tuple[str, ...], columns: Mapping[str, Kind], depth: int
) -> Expression:
    """Draw an expression of a kind; an int may stand where a float may."""
    if kind != "clock" and depth > 0 and draw(st.integers(0, 5)) == 0:
        return draw(_chosen(kind, variables, columns, depth - 1))
    kinds: set[Kind] = {"int", "float"} if kind == "float" else {kind}
    names = sorted(name for name, column in columns.items() if column in kinds)
    choice = draw(st.integers(0, 9))
    if kind in ("int", "float") and depth > 0 and choice < 4:
        signs = ["+", "-", "*", "%"] if kind == "int" else ["+", "-", "*", "%", "/"]
        sign = draw(sampled_from([*signs, "negate"]))
        count = 1 if sign == "negate" else 2
        operands = tuple(draw(values_of(kind, variables, columns, depth - 1)) for _ in range(count))
        return Apply(sign, operands, sign)
    if kind != "clock" and (choice == 9 or not names):
        return draw(literals(kind))
    return Attribute(draw(sampled_from(variables)), draw(sampled_from(names)))


@st.composite
def _chosen(
    draw: st.DrawFn, kind: Kind, variables: tuple[str, ...], columns: Mapping[str, Kind], depth: int
) -> Expression:
    """Draw a function of a kind."""
    names = ["case", "coalesce", "nullif"]
    if kind in ("int", "float"):
        names += ["abs", "least", "greatest", "floor", "length"]
    if kind == "string":
        # One of two events cannot be worked out where it is compared.
        return Apply("lower", (draw(values_of("string", variables[:1], columns, 0)),), "")
    name = draw(sampled_from(names))
    if name == "length":
        return Apply(name, (draw(values_of("string", variables[:1], columns, 0)),), "")
    kinds = {"case": ["bool", kind, kind], "abs": [kind], "floor": [kind]}.get(name, [kind, kind])
    operands = [
        draw(
            conditions(variables, columns, depth)
            if part == "bool"
            else values_of(part, variables, columns, depth)
        )
        for part in kinds
    ]
    return Apply(name, tuple(operands), "")


@st.composite
def conditions(
    draw: st.DrawFn, variables: tuple[str, ...], columns: Mapping[str, Kind], depth: int = 2
) -> Expression:
    """Draw a condition that speaks of some of the variables."""
    choice = draw(st.integers(0, 9))
    if depth > 0 and choice < 3:
        sign = draw(sampled_from(["and", "or", "or", "not"]))
        count = 1 if sign == "not" else 2
        operands = tuple(draw(conditions(variables, columns, depth - 1)) for _ in range(count))
        return Apply(sign, operands, draw(sampled_from([sign, sign.upper()])))
    flags = sorted(name for name, kind in columns.items() if kind == "bool")
    if choice == 3 and flags:
        flag = Attribute(draw(sampled_from(variables)), draw(sampled_from(flags)))
        if draw(st.booleans()):
            return flag
        sign = draw(sampled_from(["=", "!="]))
        return Apply(sign, (flag, draw(literals("bool"))), sign)
    kinds: list[Kind] = ["int", "int", "float", "string"]
    if any(kind == "clock" for kind in columns.values()):
        kinds.append("clock")
    if choice == 4:
        # A comparison with NULL is never true, and neither is its NOT.
        left = draw(values_of("int", variables, columns, 0))
        name = draw(sampled_from(["is null", "in", "between", "="]))
        if name != "=":
            bounds = tuple(draw(values_of("int", variables, columns, 0)) for _ in range(2))
            return Apply(name, (left, *(bounds if name != "is null" else ())), "")
        return Apply("=", (left, Constant(None, "NULL")), "=")
    kind = draw(sampled_from(kinds))
    sign = draw(sampled_from(sorted(_COMPARISONS)))
    operands = tuple(draw(values_of(kind, variables, columns, depth)) for _ in range(2))
    return Apply(sign, operands, draw(sampled_from(_SPELLINGS.get(sign, (sign,)))))
