"""Query text to syntax tree."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from lark import Lark, UnexpectedInput

from uncertain_cep.errors import Fault, QueryError, QuerySyntaxError
from uncertain_cep.query import syntax
from uncertain_cep.query.builder import build
from uncertain_cep.query.checker import check
from uncertain_cep.query.syntax_errors import syntax_error
from uncertain_cep.query.traversal import expressions_in
from uncertain_cep.query.words import quote_name

__all__ = ["MOST_CHARACTERS", "parse", "parse_row_condition", "read_query"]


MOST_CHARACTERS: Final = 200_000
"""Most characters of a query, which takes about a second to read then."""


@cache
def _grammar() -> Lark:
    # Building the tables takes a fraction of a second, so once a process and not at import.
    return Lark(
        files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8"),
        parser="lalr",
        start=["query", "row_condition"],
        propagate_positions=True,
        maybe_placeholders=False,
    )


def _read(text: str, start: Literal["query", "row_condition"], what: str) -> object:
    if len(text) > MOST_CHARACTERS:
        message = f"the {what} has {len(text):,} characters, and at most {MOST_CHARACTERS:,} are read"
        raise QuerySyntaxError(message, text=text, line=1, column=1)
    grammar = _grammar()
    try:
        tree = grammar.parse(text, start=start)
    except UnexpectedInput as error:
        raise syntax_error(error, text, what=what) from None
    return build(tree, text)


def parse(text: str) -> syntax.Query:
    """Read a query and check all that can be checked without a trace.

    Parameters
    ----------
    text : str
        Such as ``PATTERN SEQ(A a, B b) WHERE a.key = b.key WITHIN 15 seconds``.

    Raises
    ------
    QuerySyntaxError
        If the text does not follow the grammar, or has too many characters.
    QueryError
        If it does but cannot be answered; all faults at once.
    """
    query = read_query(text)
    check(query)
    return query


def read_query(text: str) -> syntax.Query:
    """Read a query without checking it: also what the grammar knows but no engine answers yet.

    Raises
    ------
    QuerySyntaxError
        If the text does not follow the grammar.
    """
    query = _read(text, "query", "query")
    assert isinstance(query, syntax.Query)
    return query


def parse_row_condition(text: str) -> syntax.Expression:
    """Read a condition on the columns of a single row, such as ``result = 'SUCCESS' AND size > 0``.

    Columns are named alone, in backticks where the name is not a plain word or is reserved; the syntax
    is otherwise that of WHERE.

    Returns
    -------
    Expression
        In which each column is an :class:`~uncertain_cep.query.syntax.Attribute` with variable ``""``.

    Raises
    ------
    QuerySyntaxError
        If the text does not follow the grammar.
    QueryError
        If it uses what only a pattern has, such as ``a.size`` or ``[size]``; all faults at once.
    """
    expression: Any = _read(text, "row_condition", "condition")
    faults = [
        Fault(
            f"{part} belongs to a pattern: a condition on one row names columns alone, such as size > 0",
            found.position.line,
            found.position.column,
        )
        for found in expressions_in(expression)
        if (part := _part_of_pattern(found)) is not None
    ]
    if faults:
        raise QueryError(faults, text=text)
    return _with_columns(expression)


def _part_of_pattern(expression: syntax.Expression) -> str | None:
    match expression:
        case syntax.Attribute():
            return f"{expression.variable}.{quote_name(expression.name)}"
        case syntax.Aggregate():
            return f"{expression.function}(...)"
        case syntax.Equivalence():
            return f"[{quote_name(expression.name)}]"
    return None


def _with_columns(expression: syntax.Expression) -> syntax.Expression:
    match expression:
        case syntax.Variable():
            return syntax.Attribute("", expression.name, None, expression.position)
        case syntax.Unary():
            return replace(expression, operand=_with_columns(expression.operand))
        case syntax.Binary():
            return replace(
                expression, left=_with_columns(expression.left), right=_with_columns(expression.right)
            )
    return expression
