"""The functions of the language: what each takes and gives. They mean what DuckDB's of these names mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from uncertain_cep.query.checker import did_you_mean
from uncertain_cep.query.syntax import SelectionStrategy
from uncertain_cep.query.typed import (
    Aggregated,
    Apply,
    Column,
    Constant,
    Kind,
    TypedExpression,
    columns_in,
)

__all__ = [
    "ALIASES",
    "BETWEEN_EVENTS",
    "DATE_PARTS",
    "FUNCTIONS",
    "MOST_DIGITS",
    "PERIODS",
    "TYPES",
    "Function",
    "Parameter",
    "by_row",
    "date_part",
    "function_name",
    "is_of_one_event",
    "nearest_function",
    "speaks_of_one_event",
]

Parameter = Literal["number", "text", "time", "any", "whole constant", "text constant"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function: how it is written, the kinds that it takes, and the kind that it gives.

    ``gives`` is None where the operands have a kind in common, which is the result's. Of ``takes`` the first
    ``needed`` have to be there; with ``repeats`` the last may be given again and again.
    """

    written: str
    takes: tuple[Parameter, ...]
    gives: Kind | None
    needed: int = 1
    repeats: bool = False


FUNCTIONS: Final[dict[str, Function]] = {
    "abs": Function("ABS(x)", ("number",), None),
    "round": Function("ROUND(x, digits)", ("number", "whole constant"), None),
    "floor": Function("FLOOR(x)", ("number",), None),
    "ceil": Function("CEIL(x)", ("number",), None),
    "sqrt": Function("SQRT(x)", ("number",), "float"),
    "ln": Function("LN(x)", ("number",), "float"),
    "exp": Function("EXP(x)", ("number",), "float"),
    "power": Function("POWER(x, y)", ("number", "number"), "float", 2),
    "sign": Function("SIGN(x)", ("number",), "int"),
    "least": Function("LEAST(x, y, ...)", ("any",), None, repeats=True),
    "greatest": Function("GREATEST(x, y, ...)", ("any",), None, repeats=True),
    "coalesce": Function("COALESCE(x, y, ...)", ("any",), None, repeats=True),
    "nullif": Function("NULLIF(x, y)", ("any", "any"), None, 2),
    "lower": Function("LOWER(text)", ("text",), "string"),
    "upper": Function("UPPER(text)", ("text",), "string"),
    "trim": Function("TRIM(text)", ("text",), "string"),
    "length": Function("LENGTH(text)", ("text",), "int"),
    "substring": Function(
        "SUBSTRING(text, start, length)", ("text", "whole constant", "whole constant"), "string", 2
    ),
    "concat": Function("CONCAT(x, y, ...)", ("any",), "string", repeats=True),
    "starts_with": Function("STARTS_WITH(text, start)", ("text", "text"), "bool", 2),
    "contains": Function("CONTAINS(text, part)", ("text", "text"), "bool", 2),
    "shares": Function("SHARES(list, list)", ("any", "any"), "bool", 2),
    "replace": Function("REPLACE(text, old, new)", ("text", "text constant", "text constant"), "string", 3),
    "regexp_extract": Function(
        "REGEXP_EXTRACT(text, regex, group)", ("text", "text constant", "whole constant"), "string", 2
    ),
    "date_trunc": Function(
        "DATE_TRUNC(part, time, zone)", ("text constant", "time", "text constant"), "time", 2
    ),
    "hour": Function("HOUR(time, zone)", ("time", "text constant"), "int"),
    "dayofweek": Function("DAYOFWEEK(time, zone)", ("time", "text constant"), "int"),
}
"""By their names in lower case."""

ALIASES: Final = {
    "ceiling": "ceil", "pow": "power", "substr": "substring", "len": "length", "ifnull": "coalesce",
    "prefix": "starts_with", "datetrunc": "date_trunc",
}  # fmt: skip
"""Other names of functions."""

TYPES: Final[dict[str, Kind]] = {
    "bigint": "int", "int": "int", "integer": "int", "long": "int",
    "double": "float", "float": "float", "real": "float",
    "varchar": "string", "string": "string", "text": "string",
    "boolean": "bool", "bool": "bool",
}  # fmt: skip
"""What CAST makes values into. All whole numbers have 64 bits, as have all others."""

BETWEEN_EVENTS: Final = frozenset({"contains", "starts_with", "like", "has_item", "shares"})
"""Functions of texts and of lists that two events of a match may be compared by."""

DATE_PARTS: Final = (
    "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year",
)  # fmt: skip
"""What DATE_TRUNC begins anew with; a week begins on Monday."""

MOST_DIGITS: Final = 300
"""Most digits that ROUND keeps behind, or drops before, the point."""

_OTHERS: Final = ("cast", "avg", "sum", "min", "max", "count")
_STRATEGIES: Final = get_args(SelectionStrategy)

_FROM_A_ROW: Final = frozenset(
    {
        "like", "ilike", "regexp", "lower", "upper", "trim", "length", "substring", "concat", "starts_with",
        "contains", "replace", "regexp_extract", "items", "item", "has_item", "shares",
    }
)  # fmt: skip
_CHEAPER_FROM_A_ROW: Final = frozenset(
    {"sqrt", "ln", "exp", "power", "hour", "dayofweek", "date_trunc"}
)  # fmt: skip

ZONED: Final[dict[str, int]] = {"hour": 1, "dayofweek": 1, "date_trunc": 2}
"""Functions of times that take a time zone, and how many operands stand before it."""

PERIODS: Final[dict[str, int]] = {
    "microsecond": 10**3, "millisecond": 10**6, "second": 10**9, "minute": 60 * 10**9, "hour": 3600 * 10**9,
    "day": 86_400 * 10**9, "week": 7 * 86_400 * 10**9,
}  # fmt: skip
"""The parts of DATE_TRUNC that are all as long as each other: nanoseconds."""


def function_name(name: str) -> str:
    """Return the name of a function in lower case, and the usual one of several."""
    return ALIASES.get(name.lower(), name.lower())


def nearest_function(name: str) -> str:
    """Return the known function whose name is nearest to one, as a question behind a colon."""
    names = [
        function.upper() for function in (*FUNCTIONS, *ALIASES, "cast", "avg", "sum", "min", "max", "count")
    ]
    return did_you_mean(name.upper(), names) or did_you_mean(name.lower(), list(_STRATEGIES))


def by_row(expression: TypedExpression) -> bool:
    """Return whether an expression is a function that no predicate across events works out by itself.

    Its value is text, or comes from text or from the calendar, so it is computed from one row at a time.
    """
    if not isinstance(expression, Apply):
        return False
    if zone_of(expression) is not None:
        return True
    if expression.operator == "date_trunc":
        return date_part(expression) not in PERIODS
    if expression.operator == "cast":
        return "string" in (expression.kind, expression.operands[0].kind)
    return expression.operator in _FROM_A_ROW


def zone_of(expression: Apply) -> str | None:
    """Return the time zone in whose hours and days a function of times counts; None for UTC."""
    if expression.operator not in ZONED:
        return None
    zone = expression.operands[ZONED[expression.operator] :]
    return str(zone[0].value) if zone and isinstance(zone[0], Constant) else None


def date_part(expression: Apply) -> str:
    """Return the part that DATE_TRUNC begins anew with."""
    part = expression.operands[0]
    return str(part.value).lower().removesuffix("s") if isinstance(part, Constant) else ""


def is_of_one_event(expression: TypedExpression) -> bool:
    """Return whether a function is worth computing once a row, and its operands are those of one event."""
    worth = isinstance(expression, Apply) and expression.operator in _CHEAPER_FROM_A_ROW
    columns = columns_in(expression)
    # The function of an event that is not there, c[2] of one event, is not that of an event with nulls.
    is_there = not any(isinstance(column.index, int) for column in columns)
    return ((worth and is_there) or by_row(expression)) and speaks_of_one_event(columns)


def speaks_of_one_event(columns: tuple[Column, ...]) -> bool:
    """Return whether all columns are attributes of at most one event of a match."""
    events = {(column.variable, column.index) for column in columns}
    return len(events) <= 1 and not any(isinstance(column, Aggregated) for column in columns)
