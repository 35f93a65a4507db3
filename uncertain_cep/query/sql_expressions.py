"""Expressions of MATCH_RECOGNIZE, in DEFINE and MEASURES, word by word as this language writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NoReturn

from uncertain_cep.query.expression_text import quote_name
from uncertain_cep.query.match_recognize import Tokens, Word, refuse_sql

__all__ = ["Scope", "length_in", "written"]

_CALL: Final = "\0"
"""Behind the name of a function, until its parenthesis is there."""
_AGGREGATES: Final = ("SUM", "AVG", "MIN", "MAX", "COUNT")
_KEYWORDS: Final = frozenset(
    {
        "AND", "OR", "NOT", "IN", "IS", "NULL", "BETWEEN", "LIKE", "ILIKE", "ESCAPE", "CASE", "WHEN", "THEN",
        "ELSE", "END", "TRUE", "FALSE", "AS",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables that an expression may speak of: in upper case, what they are called here, and lists."""

    text: str
    order: str
    names: dict[str, str]
    lists: frozenset[str]

    def mention(self, name: str) -> str:
        """Return the row of a variable that SQL means where it is complete: its last one."""
        called = self.names[name]
        return f"{called}[{called}.LEN]" if name in self.lists else called


def written(scope: Scope, name: str | None, words: Tokens, mention: str, before: str | None) -> str:
    """Return an expression as this language writes it.

    ``name`` is the variable of its DEFINE, whose row is ``mention`` and the one in front of it ``before``;
    None in MEASURES. A QueryError names what is not answered.
    """
    return _Expression(scope, name, words, mention, before).text()


def length_in(words: Tokens) -> str | None:
    """Return a length of time, such as INTERVAL '5' SECOND, as it is written here."""
    if len(words) != 3 or words[0].upper != "INTERVAL" or words[1].kind != "string":
        return None
    amount = words[1].text[1:-1].strip()
    return f"{amount} {words[2].text.lower()}" if amount.replace(".", "", 1).isdecimal() else None


class _Expression:
    """An expression of DEFINE or MEASURES, word by word."""

    def __init__(
        self, scope: Scope, name: str | None, words: Tokens, mention: str, before: str | None
    ) -> None:
        self._scope, self._name, self._words = scope, name, words
        self._mention, self._before, self._at = mention, before, 0

    def text(self) -> str:
        """Return the expression as it is written here."""
        parts = []
        while self._at < len(self._words):
            parts.append(self._part())
        text = ""
        for part in parts:
            # A function and its parenthesis stand together, a keyword and one apart.
            is_call = part == "(" and text.endswith(_CALL)
            text = text.removesuffix(_CALL)
            tight = not text or is_call or part in (")", ",", ".") or text.endswith(("(", "."))
            text += part if tight else f" {part}"
        return text

    def _word(self, ahead: int = 0) -> Word:
        place = self._at + ahead
        return self._words[place] if place < len(self._words) else Word("end", "", self._words[-1].place)

    def _refuse_word(self, message: str) -> NoReturn:
        refuse_sql(self._scope.text, self._word().place, message)

    def _part(self) -> str:
        word = self._word()
        if word.kind == "string":
            self._at += 1
            return word.text
        if word.text == "||":
            self._refuse_word("|| is written CONCAT(x, y)")
        if word.kind not in ("name", "quoted"):
            self._at += 1
            return word.text
        length = length_in(self._words[self._at : self._at + 3])
        if length is not None:
            self._at += 3
            return length
        if word.upper == "INTERVAL":
            self._refuse_word("INTERVAL takes one amount and one unit: INTERVAL '5' SECOND")
        if self._word(1).text == "(":
            return self._call()
        if self._word(1).text == ".":
            return self._column(word.name.upper(), self._word(2), 3)
        if word.kind == "name" and (word.upper in _KEYWORDS or self._word(1).kind == "string"):
            self._at += 1
            return word.upper
        return self._column(self._name, word, 1)

    def _column(self, variable: str | None, word: Word, count: int) -> str:
        scope = self._scope
        if variable is None:
            self._refuse_word(f"{word.name} is that of no variable: write A.{word.name}")
        if variable == self._name:
            mention = self._mention
        elif variable in scope.names:
            mention = scope.mention(str(variable))
        else:
            self._refuse_word(f"{variable} is no variable that has a row here")
        self._at += count
        return self._of(mention, word)

    def _of(self, mention: str, word: Word) -> str:
        if word.name == self._scope.order:
            if self._name is None:
                self._at -= 1
                self._refuse_word(f"{word.name} differs by world: take range_lower or range_upper of a match")
            return f"TIME({mention})"
        return f"{mention}.{quote_name(word.name)}"

    def _call(self) -> str:
        function = self._word().upper
        if function in ("NEXT", "CLASSIFIER", "MATCH_NUMBER"):
            says = {
                "NEXT": "the row behind: put the condition into the DEFINE of the variable that takes it",
                "CLASSIFIER": "which variable took a row: each has a column of the result",
                "MATCH_NUMBER": "a number that differs by world: leave it out, signatures tell matches apart",
            }
            self._refuse_word(f"{function}() is {says[function]}")
        if function in ("PREV", "FIRST", "LAST"):
            return self._navigated(function)
        if function in _AGGREGATES:
            return self._aggregate(function)
        self._at += 1
        return function if function in _KEYWORDS else function + _CALL

    def _inside(self) -> tuple[str | None, Word, int]:
        """Read ``(V.x)`` or ``(x)``, and return both parts and the number of words."""
        words = self._words[self._at + 1 :]
        qualified = len(words) > 4 and words[2].text == "."
        size = 5 if qualified else 3
        if len(words) < size or words[0].text != "(" or words[size - 1].text != ")":
            self._refuse_word(
                f"{self._word().upper} takes one column of one variable, such as A.x, and no offset but the "
                "1 of PREV(x, 1), and of LAST(A.x, 1) in the DEFINE of A"
            )
        return (words[1].name.upper(), words[3], size) if qualified else (self._name, words[1], size)

    def _has_offset(self, function: str) -> bool:
        """Leave an offset of 1 out, and return whether there was one."""
        words = self._words
        comma = self._at + (5 if self._word(3).text == "." else 3)
        if function == "FIRST" or [word.text for word in words[comma : comma + 3]] != [",", "1", ")"]:
            return False
        self._words = (*words[:comma], *words[comma + 2 :])
        return True

    def _navigated(self, function: str) -> str:
        has_offset = self._has_offset(function)
        variable, word, size = self._inside()
        scope = self._scope
        if function == "PREV":
            if variable != self._name or self._name is None:
                self._refuse_word("PREV takes the row of the DEFINE itself: PREV(x)")
            if self._before is None:
                self._refuse_word(
                    "PREV speaks of a row that no variable has: put a variable in front, next to this one"
                )
            mention = str(self._before)
        else:
            if variable is None or variable not in scope.names:
                self._refuse_word(f"{function} takes a column of a variable: {function}(A.{word.name})")
            name, called = str(variable), scope.names[str(variable)]
            if has_offset and name == self._name and size == 5 and name in scope.lists:
                self._at += 1 + size
                return self._one_before(called, word)
            if name == self._name:
                self._refuse_word(
                    f"{function} of the variable that is being taken: PREV({word.name}) is the row before"
                )
            if has_offset:
                self._refuse_word(f"LAST(A.{word.name}, 1) is the row before in the DEFINE of A+ alone")
            mention = scope.mention(name) if function == "LAST" or name not in scope.lists else f"{called}[1]"
        self._at += 1 + size
        return self._of(mention, word)

    def _one_before(self, called: str, word: Word) -> str:
        """Return ``LAST(V.x, 1)`` in the DEFINE of a run V: that of the row before, null at the first."""
        if self._mention != f"{called}[1]":
            return self._of(f"{called}[i-1]", word)
        if word.name == self._scope.order:
            self._refuse_word(f"LAST takes no time that may be null: PREV({word.name}) is the row before")
        column = self._of(self._mention, word)
        return f"NULLIF({column}, {column})"

    def _aggregate(self, function: str) -> str:
        if self._word(2).text == "*" or self._word(3).text == "*":
            self._refuse_word("COUNT(*) counts all rows of a match: count those of a variable, COUNT(A.x)")
        variable, word, _ = self._inside()
        scope = self._scope
        name = str(variable)
        if name not in scope.lists or name == self._name:
            self._refuse_word(
                f"{function} takes a column of a run that is complete, such as {function}(B.x) for B+"
            )
        self._at += 6
        return f"{function.lower()}({scope.names[name]}[].{quote_name(word.name)})"
