"""Colours for queries: a lexer for Pygments."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

__all__ = ["QueryLexer"]


class QueryLexer(RegexLexer):
    """The query language, in blocks of ``sase``."""

    name = "SASE+"
    aliases: ClassVar = ["sase"]
    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r"--[^\n]*", Comment.Single),
            (r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", String),
            (r"`[^`]*`", Name),
            (
                words(
                    (
                        "PATTERN", "WHERE", "WITHIN", "HAVING", "RETURN", "ORDER BY", "LIMIT", "OUTPUT",
                        "EVERY", "PARTITION", "BY", "AS", "DESC", "ASC", "OF", "AT", "LEAST", "MATCHES",
                        "EXPECTED", "COUNT", "PROBABILITY", "CONFIDENCE", "NON OVERLAPPING", "NON",
                        "OVERLAPPING", "ORDER",
                    ),
                    prefix=r"(?i)\b", suffix=r"\b",
                ),
                Keyword,
            ),
            (r"(?i)\b(?:SEQ|AND|OR|NOT|ANY|IN|IS|BETWEEN|LIKE|ILIKE|OVERLAPS|CONTAINS|DURING|BEFORE|AFTER)\b",
             Keyword.Reserved),
            (r"(?i)\b(?:TRUE|FALSE|NULL)\b", Keyword.Constant),
            (r"\$\w+", Name.Variable),
            (r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?%?", Number),
            (r"\w+(?=\()", Name.Function),
            (r"[^\W\d]\w*", Name),
            (r"[-+*/%<>=!|?]+", Operator),
            (r"[()\[\]{},.;:]", Punctuation),
        ]
    }  # fmt: skip
