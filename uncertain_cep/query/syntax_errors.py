"""What a user reads when a text does not follow the grammar."""

from __future__ import annotations

import re
from typing import Final

from lark import UnexpectedInput

from uncertain_cep.errors import QuerySyntaxError
from uncertain_cep.query.words import CLAUSES, RESERVED

__all__ = ["WORDS", "syntax_error"]

_OPERAND: Final = frozenset(
    {"NAME", "QUOTED", "NUMBER", "PERCENT", "STRING", "TRUE", "FALSE", "NULL", "NOT", "MINUS", "LPAR", "LSQB"}
    | {"AGGREGATE", "STRATEGY"}
)
_ARITHMETIC: Final = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "REMAINDER"})
_COMPARISON: Final = frozenset({"COMPARATOR", "GREATER_EQUAL"})

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
    "AGGREGATE": "an aggregate",
    "STRATEGY": "a selection strategy",
    "NOT": "NOT",
    "TRUE": "TRUE",
    "FALSE": "FALSE",
    "NULL": "NULL",
    "INDEX_FIRST": "1",
    "INDEX_CURRENT": "i",
    "INDEX_PREVIOUS": "i-1",
    "INDEX_LAST": "v.LEN for the variable v",
    "INDEX_BEFORE": "..i-1",
    "LIST_MARK": "[]",
    "PLUS": "+",
    "MINUS": "-",
    "STAR": "*",
    "SLASH": "/",
    "REMAINDER": "%",
    "COMPARATOR": "a comparison",
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
    "CONFIDENCE": "CONFIDENCE",
    "EXPECTED": "EXPECTED COUNT",
    "COUNT": "COUNT",
    "RETURN": "RETURN",
    "EVERY": "EVERY",
    "OUTPUT": "OUTPUT",
    "NON": "NON",
    "OVERLAPPING": "OVERLAPPING",
    "ORDER": "ORDER BY",
    "BY": "BY",
    "DESC": "DESC",
    "LIMIT": "LIMIT",
    "$END": "the end",
}

_FOUND: Final = re.compile(
    r"""[^\W\d]\w*|[0-9][\w.]*|[<>=!]+|&+|[|]+|'[^'\n]*'|"[^"\n]*"|`[^`\n]*`|.""", re.DOTALL
)
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
    """Return the error to raise for text that lark could not read.

    Parameters
    ----------
    error : lark.UnexpectedInput
        As raised by the LALR parser.
    text : str
        The text that was read.
    what : str
        What the text should be: ``query`` or ``condition``.
    """
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
        line, column, message = token.end_line, token.end_column, f"the {what} ends too early"
    return QuerySyntaxError(message, text=text, line=line, column=column, expected=_expected(accepted))


def _unexpected(text: str, position: int, accepted: frozenset[str], what: str) -> str:
    match = _FOUND.match(text, position)
    found = match[0] if match else ""
    if text[max(position - 1, 0) : position + 1] in ("=>", "=<"):
        found = text[position - 1 : position + 1]
    shown = found if len(found) <= 40 else f"{found[:40]}..."
    return f"unexpected {_quoted(shown)}{_reason(found, accepted, what)}"


def _quoted(found: str) -> str:
    return f"'{found}'" if found.isprintable() and "'" not in found else ascii(found)


def _expected(accepted: frozenset[str]) -> list[str]:
    words = []
    rest = set(accepted)
    if accepted >= {"NAME", "STRING"}:
        words.append("an expression" if "NOT" in accepted else "a value")
        rest -= _OPERAND
    if accepted >= {"PLUS", "STAR"}:
        words.append("an operator (+ - * / %)")
        rest -= _ARITHMETIC
    if accepted >= _COMPARISON:
        words.append("a comparison (= != < <= > >=)")
        rest -= _COMPARISON
    return words + [word for terminal, word in WORDS.items() if terminal in rest and word]


def _reason(found: str, accepted: frozenset[str], what: str) -> str:
    if found in _SPELLINGS:
        return f": write {_SPELLINGS[found]}"
    if found in _COMPARISONS and "AND" in accepted:
        return ": comparisons do not chain, join them with AND (x < y AND y < z)"
    if what == "query" and "$END" in accepted and found.upper() in _CLAUSE_STARTS:
        return f": the clauses are {', '.join(CLAUSES)}, in this order and each once"
    if found.lower() in RESERVED and "NAME" in accepted:
        if what == "condition":
            return f": it is a reserved word, write `{found}` if it is a column"
        if "STRING" not in accepted:
            return ": it is a reserved word and cannot name a variable"
    return ""
