"""Query text to syntax tree."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final, Literal

from lark import Lark, UnexpectedInput

from uncertain_cep.boundary import public
from uncertain_cep.errors import Fault, OptionError, QueryError, QuerySyntaxError
from uncertain_cep.files.cache_folder import cache_folder
from uncertain_cep.query import syntax
from uncertain_cep.query.builder import build
from uncertain_cep.query.checker import check, did_you_mean
from uncertain_cep.query.expression_text import CLAUSES, RESERVED, quote_name
from uncertain_cep.query.foreign import as_written_here
from uncertain_cep.query.parameters import Parameters, with_values
from uncertain_cep.query.spelling import unit_meant
from uncertain_cep.query.syntax import expressions_in
from uncertain_cep.query.unquoted import in_quotes, unquoted_at
from uncertain_cep.query.walks import with_leaves
from uncertain_cep.timeline.durations import unit_nanoseconds
from uncertain_cep.timeline.zones import check_zone

__all__ = [
    "MOST_CHARACTERS",
    "WORDS",
    "parse",
    "parse_row_condition",
    "query_of",
    "read_query",
    "syntax_error",
]

MOST_CHARACTERS: Final = 200_000
"""Most characters of a query, which takes about a second to read then."""


@cache
def _grammar() -> Lark:
    # Making the tables takes a tenth of a second: once, and lark names what it keeps by grammar and version.
    options: dict[str, Any] = {
        "parser": "lalr",
        "start": ["query", "row_condition"],
        "propagate_positions": True,
        "maybe_placeholders": False,
    }
    grammar = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    with suppress(OSError, RuntimeError):
        folder = cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"grammar-{sha256(grammar.encode()).hexdigest()[:16]}-{sys.version_info.minor}.tables"
        return Lark(grammar, cache=str(folder / name), **options)
    return Lark(grammar, **options)


def _read(text: str, start: Literal["query", "row_condition"], what: str) -> object:
    _check_text(text, what)
    if len(text) > MOST_CHARACTERS:
        message = f"the {what} has {len(text):,} characters, and at most {MOST_CHARACTERS:,} are read"
        raise QuerySyntaxError(message, text=text, line=1, column=1)
    grammar = _grammar()
    try:
        tree = grammar.parse(text, start=start)
    except UnexpectedInput as error:
        raise syntax_error(error, text, what=what) from None
    return build(tree, text)


def _check_text(text: Any, what: str) -> None:
    if not isinstance(text, str):
        raise OptionError(f"a {what} is text, and this is a {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        before = text[: error.start]
        line, column = before.count("\n") + 1, error.start - (before.rfind("\n") + 1) + 1
        message = f"{text[error.start]!a} is half of a character: no text holds it alone"
        raise QuerySyntaxError(message, text=text, line=line, column=column) from None


@public
def parse(text: str, *, zone: str | None = None) -> syntax.Query:
    """Read a query and check all that can be checked without a trace.

    Parameters
    ----------
    text : str
        Such as ``PATTERN SEQ(A a, B b) WHERE a.key = b.key WITHIN 15 seconds``.
    zone : str, optional
        The time zone, such as ``"Europe/Prague"``, in which HOUR, DAYOFWEEK and DATE_TRUNC count, EVERY so
        many days begins, and times without an offset are meant. Default: UTC.

    Raises
    ------
    OptionError
        If it is no text, or there is no such zone.
    QuerySyntaxError
        If the text does not follow the grammar, or has too many characters.
    QueryError
        If it does but cannot be answered; all faults at once.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> uc.parse("PATTERN SEQ(A a, B b) WITHIN 4 ORDER BY CONFIDENCE DESC LIMIT 20").limit
    20
    """
    _check_text(text, "query")
    if _FILE_NAME.fullmatch(text) or (len(text) < _LONGEST_NAME and os.path.isfile(text)):
        raise OptionError(_named_file(text))
    check_zone(zone)
    query = read_query(text)
    check(query)
    return query if zone is None else replace(query, zone=zone)


_FILE_NAME: Final = re.compile(r"(?i)\S+\.(?:sase|query|cep|epl|sql|txt)")
_LONGEST_NAME: Final = 4_096


def _named_file(name: object) -> str:
    return (
        f"{name} is the name of a file, and a query is text: read it, as in "
        f'Path("{name}").read_text(); the command line takes names of files'
    )


def query_of(query: syntax.Query | str, values: Parameters = ()) -> syntax.Query:
    """Return a query that is given as such or as text, see `parse`, with the values of its parameters."""
    if isinstance(query, syntax.Query):
        return with_values(query, values)
    if isinstance(query, os.PathLike):
        raise OptionError(_named_file(os.fspath(query)))
    if not isinstance(query, str):
        raise OptionError(
            f"a query is text, or what parse makes of it, and this is a {type(query).__name__}; several are "
            'given by name, as uc.rules({"name": query})'
        )
    return with_values(parse(query), values)


# Whoever asks one query of several traces has it read once.
@lru_cache(maxsize=16)
def read_query(text: str) -> syntax.Query:
    """Read a query without checking it: also what the grammar knows but no engine answers."""
    query = _read(text, "query", "query")
    assert isinstance(query, syntax.Query)
    return query


def parse_row_condition(text: str) -> syntax.Expression:
    """Read a condition on the columns of a single row, such as ``result = 'SUCCESS' AND size > 0``.

    Columns are named alone, in backticks where the name is not a plain word or is reserved; each becomes an
    ``Attribute`` of variable ``""``. The syntax is otherwise that of WHERE; a QueryError lists what only a
    pattern has, such as ``a.size`` or ``[size]``.
    """
    expression: Any = _read(text, "row_condition", "condition")
    faults = [
        Fault(
            f"{part} belongs to a pattern: a condition on one row names columns alone, such as size > 0",
            expression.position.line,
            expression.position.column,
        )
        for expression in expressions_in(expression)
        if (part := _part_of_pattern(expression)) is not None
    ]
    if faults:
        raise QueryError(faults, text=text)
    return with_leaves(expression, _with_column)


def _part_of_pattern(expression: syntax.Expression) -> str | None:
    match expression:
        case syntax.Attribute():
            return f"{expression.variable}.{quote_name(expression.name)}"
        case syntax.Aggregate():
            return f"{expression.function}(...)"
        case syntax.Equivalence():
            return f"[{quote_name(expression.name)}]"
        case syntax.Parameter():
            return f"${expression.name}"
        case syntax.Time():
            part = f".{expression.part}" if expression.part else ""
            return f"TIME({expression.variable}{part})"
    return None


def _with_column(expression: syntax.Expression) -> syntax.Expression:
    if isinstance(expression, syntax.Variable):
        return syntax.Attribute("", expression.name, None, expression.position)
    return expression


_OPERAND: Final = frozenset(
    {"NAME", "QUOTED", "NUMBER", "PERCENT", "STRING", "TRUE", "FALSE", "NULL", "NOT", "MINUS", "LPAR", "LSQB"}
    | {"AGGREGATE", "PERCENTILE", "PARAMETER", "STRATEGY", "FUNCTION", "CASE", "CAST", "MOMENT", "TIME"}
)
_ARITHMETIC: Final = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "REMAINDER"})
_COMPARISON: Final = frozenset(
    {"COMPARATOR", "GREATER_EQUAL", "RELATION", "IS", "IN", "BETWEEN", "LIKE", "ILIKE", "REGEXP", "NOT"}
)

# Every terminal, in the order in which what was expected is listed; "" is not worth a mention.
WORDS: Final = {
    "PATTERN": "PATTERN",
    "SEQ": "SEQ(...)",
    "NEGATION": "!",
    "ANY": "ANY",
    "WORD": "a name",
    "QUOTED": "",
    "NAME": "a variable",
    "NUMBER": "a number",
    "UNIT": "a unit of time",
    "PERCENT": "",
    "STRING": "a string",
    "PARAMETER": "",
    "AGGREGATE": "an aggregate",
    "PERCENTILE": "an aggregate",
    "TIME": "TIME(...)",
    "STRATEGY": "a selection strategy",
    "NOT": "NOT",
    "_UNTIL": "",
    "TRUE": "TRUE",
    "FALSE": "FALSE",
    "NULL": "NULL",
    "FUNCTION": "", "CAST": "", "CASE": "", "MOMENT": "", "LENGTH": "",
    "IS": "IS", "IN": "IN", "BETWEEN": "BETWEEN", "LIKE": "LIKE", "ILIKE": "ILIKE", "REGEXP": "REGEXP",
    "_SEMICOLON": "", "ESCAPE": "", "WHEN": "WHEN", "THEN": "THEN", "ELSE": "ELSE", "END": "END",
    "INDEX_FIRST": "1",
    "INDEX_CURRENT": "i",
    "INDEX_PREVIOUS": "i-1",
    "INDEX_LAST": "v.LEN for the variable v",
    "INDEX_BEFORE": "..i-1",
    "LIST_MARK": "[]",
    "PLUS": "+",
    "MINUS": "-",
    "STAR": "*",
    "QUESTION": "?",
    "SLASH": "/",
    "REMAINDER": "%",
    "COMPARATOR": "a comparison",
    "RELATION": "a relation",
    "GREATER_EQUAL": ">=",
    "DOT": ".",
    "COMMA": "a comma",
    "VBAR": "|",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "LBRACE": "{",
    "RBRACE": "}",
    "AND": "AND",
    "OR": "OR",
    "AS": "AS",
    "WHERE": "WHERE",
    "WITHIN": "WITHIN",
    "HAVING": "HAVING",
    "EXPECTED": "EXPECTED COUNT",
    "COUNT": "COUNT",
    "PROBABILITY": "PROBABILITY",
    "OF": "OF AT LEAST",
    "AT": "AT LEAST",
    "LEAST": "LEAST",
    "MATCHES": "MATCHES",
    "RETURN": "RETURN",
    "EVERY": "EVERY",
    "OUTPUT": "OUTPUT",
    "NON": "NON",
    "OVERLAPPING": "OVERLAPPING",
    "ORDER": "ORDER BY",
    "BY": "BY",
    "ASC": "ASC",
    "DESC": "DESC",
    "DISTINCT": "",
    "LIMIT": "LIMIT",
    "$END": "the end",
}  # fmt: skip

_FOUND: Final = re.compile(
    r"""[^\W\d]\w*|[0-9][\w.]*|[<>=!]+|&+|[|]+|'[^'\n]*'|"[^"\n]*"|`[^`\n]*`|.""", re.DOTALL
)
_ISO_LENGTH: Final = re.compile(r"PT?([0-9]+[YMWDHS]T?)+", re.IGNORECASE)
_UNCLOSED: Final = re.compile(r"""'[^'\n]*(?!')$|"[^"\n]*(?!")$|`[^`\n]*(?!`)$""", re.MULTILINE)
_COMPARISONS: Final = frozenset({"=", "==", "!=", "<>", "<", "<=", ">", ">="})
_CLAUSE_STARTS: Final = frozenset(clause.split()[0] for clause in CLAUSES)
_SPELLINGS: Final = {
    "&": "AND", "&&": "AND", "||": "OR", "~": "!", "=<": "<=", "=>": ">=", "===": "=", "!==": "!=",
    "\N{LOGICAL AND}": "AND", "\N{LOGICAL OR}": "OR", "\N{NOT SIGN}": "NOT",
    "\N{LESS-THAN OR EQUAL TO}": "<=", "\N{GREATER-THAN OR EQUAL TO}": ">=", "\N{NOT EQUAL TO}": "!=",
    "\N{LEFT SINGLE QUOTATION MARK}": "'", "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"', "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
}  # fmt: skip


def syntax_error(error: UnexpectedInput, text: str, *, what: str) -> QuerySyntaxError:
    """Return the error to raise for text, a ``query`` or a ``condition``, that lark could not read."""
    accepted = frozenset(error.interactive_parser.accepts())  # type: ignore[no-untyped-call]
    token = getattr(error, "token", None)
    if token is None or token.type != "$END":
        line, column, position = error.line, error.column, getattr(error, "pos_in_stream", 0)
        if _UNCLOSED.match(text, position):
            accepted, message = frozenset(), f"this {text[position]} is not closed on its line"
        else:
            message = _unexpected(text, position, accepted, what)
    elif token.end_line is None:
        line, column, message = 1, 1, f"the {what} is empty"
    else:
        message = f"the {what} ends too early{_misspelt(text) or as_written_here(text, len(text))}"
        line, column = token.end_line, token.end_column
    return QuerySyntaxError(message, text=text, line=line, column=column, expected=_expected(accepted))


def _unexpected(text: str, position: int, accepted: frozenset[str], what: str) -> str:
    match = _FOUND.match(text, position)
    token = match[0] if match else ""
    if text[max(position - 1, 0) : position + 1] in ("=>", "=<"):
        token = text[position - 1 : position + 1]
    shown = token if len(token) <= 40 else f"{token[:40]}..."
    reason = (
        _reason(token, accepted, what)
        or _as_text(text, position, what)
        or as_written_here(text, position, farthest=0)
        or _nearest(token, accepted)
        or as_written_here(text, position)
    )
    return f"unexpected {_quoted(shown)}{reason or _misspelt(text[:position])}"


def _misspelt(before: str) -> str:
    """Return the clause that the last word of a text is meant for, if it was read as a unit of time."""
    word = re.search(r"[0-9]\s+([^\W\d]\w+)(?:\s+[0-9]+)?\s*$", before)
    if word is None or unit_nanoseconds(word[1]) is not None:
        return ""
    hint = did_you_mean(word[1].upper(), sorted(_CLAUSE_STARTS))
    return f" behind {_quoted(word[1])}{hint}" if hint else ""


def _as_text(text: str, position: int, what: str) -> str:
    """Return the text that may be meant, in quotes."""
    written = unquoted_at(text, position) if what == "query" else None
    return "" if written is None else f": text and times stand in quotes, {in_quotes(written)}"


def _nearest(token: str, accepted: frozenset[str]) -> str:
    """Return the keyword, or behind a number the unit, that a word may be meant for."""
    if not token.isidentifier():
        return ""
    words = [word.partition("(")[0] for terminal, word in WORDS.items() if terminal in accepted]
    keywords = [word for part in words for word in part.split() if word.isalpha() and word.isupper()]
    hint = "" if token.upper() in keywords else did_you_mean(token.upper(), keywords)
    return hint or (unit_meant(token) if "LENGTH" in accepted else "")


def _quoted(token: str) -> str:
    return f"'{token}'" if token.isprintable() and "'" not in token else ascii(token)


def _expected(accepted: frozenset[str]) -> list[str]:
    words = []
    remaining = set(accepted)
    if accepted >= {"NUMBER", "$END"}:
        # A length may go on, 1 min 30 s, where it may end as well.
        remaining -= {"NUMBER"}
    if accepted >= {"LSQB", "COMMA", "RPAR"}:
        # So a component ends; it is seldom one of a repeated group.
        remaining -= {"LSQB"}
    if accepted >= {"NAME", "STRING"}:
        words.append("an expression" if "NOT" in accepted else "a value")
        remaining -= _OPERAND
    if accepted >= _ARITHMETIC:
        words.append("an operator (+ - * / %)")
        remaining -= _ARITHMETIC
    if accepted >= _COMPARISON:
        words.append("a comparison (= != < <= > >= IS IN BETWEEN LIKE ILIKE REGEXP)")
        remaining -= _COMPARISON
    return words + [word for terminal, word in WORDS.items() if terminal in remaining and word]


def _reason(token: str, accepted: frozenset[str], what: str) -> str:
    if token in _SPELLINGS:
        return f": write {_SPELLINGS[token]}"
    if (token == ":" and "UNIT" in accepted) or (_ISO_LENGTH.fullmatch(token) and "NUMBER" in accepted):
        return ": a length is a number and a unit, or several, such as 1 min 30 s"
    if token in _COMPARISONS and "AND" in accepted:
        return ": comparisons do not chain, join them with AND (x < y AND y < z)"
    if what == "query" and accepted == {"$END"}:
        return ": a query ends with ; and each query stands by itself"
    if what == "query" and "$END" in accepted and token.upper() in _CLAUSE_STARTS:
        return f": the clauses are {', '.join(CLAUSES)}, in this order and each once"
    if token[:1] in ("'", '"') and len(token) > 1 and "STRING" not in accepted:
        if "NUMBER" in accepted or ("QUOTED" in accepted and token[1:-1].isidentifier()):
            return ": write it without quotes"
        if "QUOTED" in accepted:
            return f": a name that is no word stands between backticks, `{token[1:-1]}`"
    if token.lower() in RESERVED and "NAME" in accepted:
        if what == "condition":
            return f": it is a reserved word, write `{token}` if it is a column"
        if "STRING" not in accepted:
            return ": it is a reserved word and cannot name a variable"
    return ""
