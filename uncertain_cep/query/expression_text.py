"""Typed expressions back to text, as a query writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from uncertain_cep.query.typed import (
    Aggregated,
    Apply,
    Column,
    Computed,
    Constant,
    Element,
    Kind,
    Operator,
    TypedExpression,
    format_time,
)
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS

__all__ = ["CLAUSES", "OPERATOR_SIGNS", "RESERVED", "format_expression", "format_mention", "quote_name"]

CLAUSES: Final = ("PATTERN", "WHERE", "WITHIN", "HAVING", "RETURN", "OUTPUT", "ORDER BY", "LIMIT")
"""The clauses, in the order in which a query gives them."""

RESERVED: Final = frozenset(
    {
        "pattern", "seq", "and", "or", "not", "any", "where", "within", "having", "return", "as",
        "output", "order", "by", "limit", "true", "false", "null",
        "skip_till_any_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity",
    }
)  # fmt: skip
"""Words, in lower case, that cannot name a variable; an attribute or a type may have any name."""

_WORD: Final = re.compile(r"[^\W\d]\w*")


def quote_name(name: str, *, reserved: bool = False) -> str:
    """Return a name as a query writes it: in backticks unless it is a plain word.

    ``reserved`` tells whether it stands where a reserved word would be misread.
    """
    if _WORD.fullmatch(name) and not (reserved and name.lower() in RESERVED):
        return name
    return "`" + name.replace("`", "``") + "`"


OPERATOR_SIGNS: Final[dict[Operator, str]] = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "remainder": "%", "negate": "-",
    "equal": "=", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "and": "AND", "or": "OR", "not": "NOT",
}  # fmt: skip

CAST_NAMES: Final[dict[Kind, str]] = {
    "int": "BIGINT", "float": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN", "null": "VARCHAR",
}  # fmt: skip

_NEGATE: Final = 7
_ATOM: Final = 8
_BINDING: Final[dict[Operator, int]] = {
    "or": 1, "and": 2, "not": 3,
    "equal": 4, "not_equal": 4, "less": 4, "less_equal": 4, "greater": 4, "greater_equal": 4,
    "add": 5, "subtract": 5, "multiply": 6, "divide": 6, "remainder": 6, "negate": _NEGATE,
}  # fmt: skip

_INDEXES: Final[dict[object, str]] = {
    "first": "1", "current": "i", "previous": "i-1", "all": "", "before": "..i-1"
}  # fmt: skip


def format_mention(variable: str, element: Element) -> str:
    """Return an event of a variable as a query writes it, such as ``c[i]``."""
    if element == "single":
        return variable
    if isinstance(element, int):
        return f"{variable}[{element if element > 0 else f'i{element}'}]"
    return f"{variable}[{_INDEXES.get(element, f'{variable}.LEN')}]"


def format_expression(expression: TypedExpression) -> str:
    """Return an expression as a query would write it, with no more parentheses than needed."""
    return _format(expression)[0]


def _format(expression: TypedExpression) -> tuple[str, int]:
    if isinstance(expression, Column):
        if isinstance(expression, Computed) and expression.computed is not None:
            return _format(_of_event(expression.computed, expression))
        if not expression.variable:
            return quote_name(expression.name, reserved=True), _ATOM
        if isinstance(expression, Aggregated):
            span = "[]" if expression.span == "all" else "[..i-1]"
            attribute = f".{quote_name(expression.name)}" if expression.name else ""
            text = f"{expression.variable}{span}{attribute}"
            if expression.computed is not None:
                text = expression.name
            if expression.function == "distinct":
                return f"count(DISTINCT {text})", _ATOM
            if expression.function == "percentile":
                is_median = expression.fraction == 0.5
                return f"median({text})" if is_median else f"percentile({text}, {expression.fraction})", _ATOM
            return f"{expression.function}({text})", _ATOM
        mention = format_mention(expression.variable, expression.index)
        return f"{mention}.{quote_name(expression.name)}", _ATOM
    if isinstance(expression, Constant):
        text = _constant(expression)
        return text, _NEGATE if text.startswith("-") else _ATOM
    return _apply(expression)


def _constant(constant: Constant) -> str:
    value = constant.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if constant.kind == "time":
        keyword = "TIMESTAMP " if isinstance(constant, _Moment) else ""
        return f"{keyword}'{format_time(int(value))}'"
    if constant.kind == "duration":
        return _duration(int(value))
    return repr(value)


def _duration(nanoseconds: int) -> str:
    unit = next(unit for unit, size in reversed(UNIT_NANOSECONDS.items()) if nanoseconds % size == 0)
    return f"{nanoseconds // UNIT_NANOSECONDS[unit]} {unit}"


def _of_event(expression: TypedExpression, event: Column) -> TypedExpression:
    """Return an expression over columns as one over the attributes of an event."""
    if isinstance(expression, Apply):
        return replace(expression, operands=tuple(_of_event(part, event) for part in expression.operands))
    if isinstance(expression, Column):
        return replace(expression, variable=event.variable, index=event.index)
    return expression


def _apply(expression: Apply) -> tuple[str, int]:
    operator = expression.operator
    if operator not in OPERATOR_SIGNS:
        return _function(expression)
    binding, sign = _BINDING[operator], OPERATOR_SIGNS[operator]
    if operator == "not":
        return f"NOT {_within(expression.operands[0], binding)}", binding
    if operator == "negate":
        # Tighter than itself, for `--` would begin a comment.
        return f"-{_within(expression.operands[0], _ATOM)}", binding
    if binding != _BINDING["equal"]:
        expression = replace(expression, operands=_moments(expression.operands))
    left, right = expression.operands
    left_binding = binding + 1 if binding == _BINDING["equal"] else binding
    right_binding = binding if operator in ("and", "or") else binding + 1
    return f"{_within(left, left_binding)} {sign} {_within(right, right_binding)}", binding


_POSTFIX: Final = {"is_null": "IS NULL", "like": "LIKE", "ilike": "ILIKE", "regexp": "REGEXP"}


def _function(expression: Apply) -> tuple[str, int]:
    operator, operands = expression.operator, expression.operands
    comparison = _BINDING["equal"]
    first = _within(operands[0], comparison + 1)
    further = [_within(operand, comparison + 1) for operand in operands[1:]]
    if operator in _POSTFIX:
        text = " ".join([first, _POSTFIX[operator], *further[:1]])
        return f"{text} ESCAPE {further[1]}" if len(further) > 1 else text, comparison
    if operator in ("items", "item"):
        return _format(operands[0])
    if operator == "has_item":
        return f"{_within(operands[1], comparison + 1)} IN {first}", comparison
    if operator == "between":
        return f"{first} BETWEEN {further[0]} AND {further[1]}", comparison
    if operator == "in":
        return f"{first} IN ({', '.join(map(format_expression, operands[1:]))})", comparison
    shown = [format_expression(operand) for operand in _moments(operands)]
    if operator == "case":
        pairs = zip(shown[:-1:2], shown[1::2], strict=True)
        return " ".join(["CASE", *(f"WHEN {x} THEN {y}" for x, y in pairs), "ELSE", shown[-1], "END"]), _ATOM
    if operator == "cast":
        return f"CAST({shown[0]} AS {CAST_NAMES[expression.kind]})", _ATOM
    return f"{operator.upper()}({', '.join(shown)})", _ATOM


@dataclass(frozen=True, slots=True)
class _Moment(Constant):
    """A time that nothing beside it tells from a text."""


def _moments(operands: tuple[TypedExpression, ...]) -> tuple[TypedExpression, ...]:
    return tuple(
        _Moment(part.value, part.kind) if isinstance(part, Constant) and part.kind == "time" else part
        for part in operands
    )


def _within(expression: TypedExpression, loosest: int) -> str:
    text, binding = _format(expression)
    return text if binding >= loosest else f"({text})"
