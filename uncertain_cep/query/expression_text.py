"""Typed expressions back to text, as a query writes them."""

from __future__ import annotations

import re
from typing import Final

from uncertain_cep.query.typed import (
    Aggregated,
    Apply,
    Column,
    Constant,
    Operator,
    TypedExpression,
    format_time,
)

__all__ = ["CLAUSES", "OPERATOR_SIGNS", "RESERVED", "format_expression", "quote_name"]

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

_NEGATE: Final = 7
_ATOM: Final = 8
_BINDING: Final[dict[Operator, int]] = {
    "or": 1, "and": 2, "not": 3,
    "equal": 4, "not_equal": 4, "less": 4, "less_equal": 4, "greater": 4, "greater_equal": 4,
    "add": 5, "subtract": 5, "multiply": 6, "divide": 6, "remainder": 6, "negate": _NEGATE,
}  # fmt: skip

_INDEXES: Final = {"first": "1", "current": "i", "previous": "i-1"}


def format_expression(expression: TypedExpression) -> str:
    """Return an expression as a query would write it, with no more parentheses than needed."""
    return _format(expression)[0]


def _format(expression: TypedExpression) -> tuple[str, int]:
    if isinstance(expression, Column):
        if not expression.variable:
            return quote_name(expression.name, reserved=True), _ATOM
        if isinstance(expression, Aggregated):
            span = "[]" if expression.span == "all" else "[..i-1]"
            attribute = f".{quote_name(expression.name)}" if expression.name else ""
            return f"{expression.function}({expression.variable}{span}{attribute})", _ATOM
        if expression.index != "single":
            index = _INDEXES.get(expression.index, f"{expression.variable}.LEN")
            return f"{expression.variable}[{index}].{quote_name(expression.name)}", _ATOM
        return f"{expression.variable}.{quote_name(expression.name)}", _ATOM
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
        return f"'{format_time(int(value))}'"
    return repr(value)


def _apply(expression: Apply) -> tuple[str, int]:
    operator = expression.operator
    binding, sign = _BINDING[operator], OPERATOR_SIGNS[operator]
    if operator == "not":
        return f"NOT {_within(expression.operands[0], binding)}", binding
    if operator == "negate":
        # Tighter than itself, for `--` would begin a comment.
        return f"-{_within(expression.operands[0], _ATOM)}", binding
    left, right = expression.operands
    left_binding = binding + 1 if binding == _BINDING["equal"] else binding
    right_binding = binding if operator in ("and", "or") else binding + 1
    return f"{_within(left, left_binding)} {sign} {_within(right, right_binding)}", binding


def _within(expression: TypedExpression, least: int) -> str:
    text, binding = _format(expression)
    return text if binding >= least else f"({text})"
