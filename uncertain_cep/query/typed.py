"""Expressions bound to a trace: every column is known and every node has a kind."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import pyarrow as pa

__all__ = [
    "KIND_NAMES",
    "Aggregated",
    "Apply",
    "Column",
    "Computed",
    "Constant",
    "Element",
    "Function",
    "Kind",
    "Operator",
    "TypedExpression",
    "attribute_names",
    "columns_in",
    "format_time",
    "is_list",
    "kind_of",
    "parse_time",
    "speaks_of_each_event",
    "variables_of",
]

Kind = Literal["int", "float", "string", "bool", "time", "duration", "list", "null"]
"""``list`` is that of columns whose elements are asked for; ``time`` is a timestamp or date column, compared
as whole nanoseconds, and ``duration`` what lies between two of them; ``null`` is that of NULL, of columns of
nothing else, and of arithmetic with either."""

Operator = Literal[
    "add", "subtract", "multiply", "divide", "remainder", "negate",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "and", "or", "not",
    "is_null", "in", "between", "like", "ilike", "regexp", "case", "coalesce", "nullif", "cast",
    "abs", "round", "floor", "ceil", "sqrt", "ln", "exp", "power", "sign", "least", "greatest",
    "lower", "upper", "trim", "length", "substring", "concat", "starts_with", "contains", "replace",
    "regexp_extract", "date_trunc", "hour", "dayofweek",
    "items", "item", "has_item", "shares",
]  # fmt: skip

Element = Literal["single", "first", "current", "previous", "last", "all", "before"] | int
"""Which event of a variable: its only one, or ``c[1]``, ``c[i]``, ``c[i-1]``, ``c[c.LEN]``; 2 and so on for
``c[2]``, -2 and so on for ``c[i-2]``. In what aggregates are computed of, each of ``c[]`` or ``c[..i-1]``."""

Function = Literal["avg", "sum", "min", "max", "count", "distinct", "stddev", "percentile", "any", "every"]


@dataclass(frozen=True, slots=True)
class Column:
    """The attribute ``name`` (a column of the trace) of an event bound to ``variable``.

    With ``computed`` it is the value of that expression over the attributes of the event, and ``name`` what
    it is known by.
    """

    variable: str
    name: str
    kind: Kind
    index: Element = "single"
    computed: TypedExpression | None = None

    @property
    def source(self) -> str | TypedExpression:
        """The source of its values, one for each row of the trace: the name, or the expression."""
        return self.computed or self.name


@dataclass(frozen=True, slots=True)
class Aggregated(Column):
    """An aggregate over the events of a Kleene variable: like a column, a value that a match provides.

    Nulls are left out, as in SQL: without any other value ``count`` is 0 and the others are null, and so is
    ``stddev``, that of a sample, of one value. The kind is int for ``count`` and ``distinct``, float for
    ``avg``, ``stddev`` and ``percentile``, else the attribute's, ``of``. ``count(c[])`` has an empty name and
    null for ``of``. The span is ``c[]``, or ``c[..i-1]``: the events before the current one.
    """

    function: Function = "count"
    span: Literal["all", "before"] = "all"
    of: Kind = "null"
    fraction: float | None = None
    """Of a percentile the share of values below it."""
    checked: bool = False
    """Whether it is a sum of whole numbers that may leave 64 bits."""


@dataclass(frozen=True, slots=True)
class Computed(Column):
    """The value of an expression of one event's attributes: computed once a row, and a column from then on.

    ``computed`` speaks of the columns alone: their variable is ``""``. The name is its text.
    """


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal, or the value of a parameter; ``value`` is None exactly for the kind ``null``."""

    value: int | float | str | bool | None
    kind: Kind
    parameter: str | None = None


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator or a function applied to its operands.

    Kinds: arithmetic is null if an operand is; else ``divide`` is always float, and the rest is int if both
    operands are int, else float. ``remainder`` takes the sign of the dividend; a zero divisor gives null.
    Comparisons, ``and``, ``or`` and ``not`` are bool with SQL's three-valued logic. The operands of ``case``
    are conditions, each with its value, and at last the value of ELSE. For functions see
    :mod:`uncertain_cep.query.functions`.
    """

    operator: Operator
    operands: tuple[TypedExpression, ...]
    kind: Kind
    checked: bool = False
    """Whether a whole number that it gives may leave 64 bits: then it is float64, for that row."""


def speaks_of_each_event(column: Column) -> bool:
    """Return whether an attribute is that of every event of its variable: ``a.x`` or ``c[i].x``."""
    return not isinstance(column, Aggregated) and column.index in ("single", "current")


TypedExpression = Column | Constant | Apply


def leaves_of(expression: TypedExpression) -> tuple[Column | Constant, ...]:
    """Return the columns, aggregates and constants of an expression, from left to right."""
    if isinstance(expression, Apply):
        return tuple(leaf for operand in expression.operands for leaf in leaves_of(operand))
    return (expression,)


def columns_in(expression: TypedExpression) -> tuple[Column, ...]:
    """Return the columns and aggregates of an expression, from left to right."""
    return tuple(leaf for leaf in leaves_of(expression) if isinstance(leaf, Column))


def attribute_names(expression: TypedExpression) -> frozenset[str]:
    """Return the attributes, columns of the trace, that an expression is computed from."""
    columns = columns_in(expression)
    names = {column.name for column in columns if column.name and column.computed is None}
    return frozenset(names).union(
        *(attribute_names(column.computed) for column in columns if column.computed)
    )


def with_variable(expression: TypedExpression, name: str, other: str) -> TypedExpression:
    """Return an expression with another variable in place of one."""
    if isinstance(expression, Apply):
        operands = tuple(with_variable(operand, name, other) for operand in expression.operands)
        return replace(expression, operands=operands)
    if isinstance(expression, Column) and expression.variable == name:
        return replace(expression, variable=other)
    return expression


def variables_of(expression: TypedExpression) -> frozenset[str]:
    """Return the variables that an expression mentions."""
    return frozenset(column.variable for column in columns_in(expression))


KIND_NAMES: Final[dict[Kind, str]] = {
    "int": "a whole number",
    "float": "a number",
    "string": "a string",
    "bool": "true or false",
    "time": "a time",
    "duration": "a length of time",
    "list": "a list",
    "null": "NULL",
}

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIME: Final = re.compile(
    r"\s*([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.([0-9]{1,9}))?)?)"
    r" ?(Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?)?\s*",
    re.IGNORECASE,
)


def kind_of(type_: pa.DataType) -> Kind | None:
    """Return the kind of a column's values, or None if expressions cannot use them.

    Every integer type is ``int``. Evaluation is in int64, so a uint64 value of 2**63 or more is a fault of
    the trace (as a float it would silently equal its neighbours, which is wrong for ids and hashes). Decimals
    are ``float``: exact decimal arithmetic is not offered. A timestamp without time zone is read as UTC.
    """
    if pa.types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if pa.types.is_integer(type_):
        return "int"
    if pa.types.is_float16(type_):
        return None
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "float"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return "string"
    if pa.types.is_boolean(type_):
        return "bool"
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return "time"
    if pa.types.is_duration(type_):
        return "duration"
    return "null" if pa.types.is_null(type_) else None


def is_list(type_: pa.DataType) -> bool:
    """Return whether the values of a column are lists."""
    kinds = pa.types
    tests = kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list, kinds.is_list_view
    return any(test(type_) for test in (*tests, kinds.is_large_list_view))


def parse_time(text: str) -> int | None:
    """Return the nanoseconds since 1970 of an ISO 8601 date or time; None if it is none or out of range.

    Without an offset the time is UTC. Representable are the years 1678 to 2261.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, offset = match.groups()
    whole = (clock or "00:00").partition(".")[0]
    zone = offset if offset and offset[0] in "+-" else "Z"
    try:
        moment = datetime.fromisoformat(f"{day}T{whole}{zone}")
        seconds = (moment - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None
    nanoseconds = seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))
    return nanoseconds if -(2**63) <= nanoseconds < 2**63 else None


def is_local(text: str) -> bool:
    """Tell whether the text of a time, see `parse_time`, has no offset."""
    match = _TIME.fullmatch(text)
    return match is not None and match[4] is None


def format_time(nanoseconds: int) -> str:
    """Return nanoseconds since 1970 as ISO 8601 text without offset, as short as is exact."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:09}".rstrip("0") if fraction else text
