"""Text that was written without quotes: where a query may mean one, and which."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncertain_cep.query.expression_text import RESERVED
from uncertain_cep.query.syntax import Attribute, Binary, Call, Expression, Position, Variable, expressions_in

__all__ = ["in_quotes", "texts_meant", "unquoted_at"]

_WORD: Final = r"[\w./:@%*^\\-]+"
_MOMENT: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:.+]+Z?"
_COMPARED: Final = re.compile(
    rf"(?:[=<>]|\b(?:I?LIKE|REGEXP)\b|\bIN\s*\((?:[^()]*,)?)\s*(?P<text>{_MOMENT}|{_WORD})", re.IGNORECASE
)
_COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
_TEXT_TAKEN: Final = ("in", "like", "ilike", "regexp", "between")


def in_quotes(text: str) -> str:
    """Return how to write a text."""
    return "'" + text.replace("'", "''") + "'"


def unquoted_at(text: str, place: int) -> str | None:
    """Return the text without quotes that a place of a query is in, or just behind; None if there is none.

    ``place`` is where the query could not be read. What stands there is taken for text if it is compared with
    something, and no number.
    """
    for match in _COMPARED.finditer(text):
        written = match["text"].rstrip(".")
        if not match.start("text") <= place <= match.end("text"):
            # The sign of a remainder takes what is behind it for an operand.
            behind = text[match.end("text") : place]
            if not (written.endswith("%") and place > match.end("text") and behind.isspace()):
                continue
        is_number = re.fullmatch(r"[0-9.]+[^\W\d]*", written) and written.count(".") < 2
        if written.lower() not in RESERVED and not is_number:
            return written
    return None


def texts_meant(expression: Expression, text: str) -> dict[Position, str]:
    """Return the names without a variable in a condition that may be text, each with the whole text.

    They are on the right side of a comparison. Of several names in one text, the others have an empty one.
    """
    texts: dict[Position, str] = {}
    lines = text.split("\n")
    for side in _compared_sides(expression):
        parts = list(expressions_in(side))
        if any(isinstance(part, Attribute) for part in parts):
            continue
        ends = (0, 0)
        names = [part for part in parts if isinstance(part, Variable)]
        for name in sorted(names, key=lambda name: (name.position.line, name.position.column)):
            line, column = name.position.line, name.position.column
            if (line, column) <= ends:
                texts[name.position] = ""
                continue
            written = re.match(_WORD, lines[line - 1][column - 1 :])
            run = name.name if written is None else written[0].rstrip(".")
            ends = line, column + len(run) - 1
            texts[name.position] = run
    return texts


def _compared_sides(expression: Expression) -> Iterator[Expression]:
    for part in expressions_in(expression):
        if isinstance(part, Binary) and part.operator in _COMPARISONS and not isinstance(part.left, Variable):
            yield part.right
        elif isinstance(part, Call) and part.function in _TEXT_TAKEN:
            yield from part.arguments[1:]
