"""MATCH_RECOGNIZE of SQL (ISO 9075-2, row pattern recognition), read: its clauses, and PATTERN as a tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NoReturn

from uncertain_cep.errors import Fault, QueryError, QuerySyntaxError

__all__ = [
    "Alternatives",
    "Group",
    "Node",
    "Quantifier",
    "Recognition",
    "Row",
    "Tokens",
    "Word",
    "read_sql",
    "refuse_sql",
]

_TOKEN: Final = re.compile(
    r"""(?P<space>(?:\s|--[^\n]*|/\*(?s:.*?)\*/)+)
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")+"|`[^`]+`)
    |(?P<name>[^\W\d]\w*)
    |(?P<number>(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<sign>\{-|-\}|<>|!=|<=|>=|\|\||[^\s\w])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word, number, text or sign of the query, and where it stands."""

    kind: Literal["string", "quoted", "name", "number", "sign", "end"]
    text: str
    place: int

    @property
    def upper(self) -> str:
        """The word in upper case; a quoted one is no keyword."""
        return self.text.upper() if self.kind == "name" else self.text

    @property
    def name(self) -> str:
        """The name that it stands for; without quotes in any case."""
        return self.text[1:-1].replace('""', '"') if self.kind == "quoted" else self.text


Tokens = tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Quantifier:
    """From ``fewest`` to ``upper`` (None: any number), as few as it takes if ``reluctant``."""

    fewest: int
    upper: int | None
    reluctant: bool

    @property
    def text(self) -> str:
        """The quantifier as written."""
        signs = {(0, 1): "?", (0, None): "*", (1, None): "+"}
        times = f"{self.fewest}" if self.fewest == self.upper else f"{self.fewest},{self.upper or ''}"
        sign = signs.get((self.fewest, self.upper), f"{{{times}}}")
        return sign + "?" * self.reluctant


ONCE: Final = Quantifier(1, 1, reluctant=False)


@dataclass(frozen=True, slots=True)
class Row:
    """A variable of PATTERN."""

    name: str
    word: Word
    times: Quantifier = ONCE


@dataclass(frozen=True, slots=True)
class Group:
    """Parts in a row, in parentheses."""

    parts: tuple[Node, ...]
    word: Word
    times: Quantifier = ONCE


@dataclass(frozen=True, slots=True)
class Alternatives:
    """``A | B``: the first that fits."""

    parts: tuple[Node, ...]
    word: Word
    times: Quantifier = ONCE


Node = Row | Group | Alternatives


@dataclass(frozen=True, slots=True)
class Recognition:
    """The clauses of a MATCH_RECOGNIZE."""

    text: str
    partition: tuple[str, ...]
    order: str
    measures: tuple[tuple[Tokens, str], ...]
    skip: Tokens
    """The words behind AFTER MATCH; empty without it."""
    pattern: tuple[Node, ...]
    within: Tokens
    define: dict[str, Tokens]
    """By variable, in upper case."""


def refuse_sql(text: str, place: int, message: str) -> NoReturn:
    """Raise the QueryError of what stands at a place of a text."""
    line, column = _position(text, place)
    raise QueryError([Fault(message, line, column)], text=text)


def read_sql(text: str) -> Recognition:
    """Return the clauses of a MATCH_RECOGNIZE.

    Raises
    ------
    QuerySyntaxError
        If it is none.
    QueryError
        If it has a construct that is not answered; the message says what is, instead.
    """
    return _Reader(text).read()


def _position(text: str, place: int) -> tuple[int, int]:
    return text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)


def _words(text: str) -> list[Word]:
    words: list[Word] = []
    place = 0
    while place < len(text):
        matched = _TOKEN.match(text, place)
        if matched is None:
            line, column = _position(text, place)
            message = f"{text[place]!r} cannot be read here"
            raise QuerySyntaxError(message, text=text, line=line, column=column)
        kind = str(matched.lastgroup)
        if kind != "space":
            words.append(Word(kind, matched[0], place))  # type: ignore[arg-type]
        place = matched.end()
    return [*words, Word("end", "", len(text))]


_OF_PATTERN: Final = {
    "^": "^ is no condition on an event: a match may begin anywhere",
    "$": "$ is no condition on an event: write what must not follow as a negation, SEQ(A a, !B b)",
    "{-": "{- -} hides rows of ALL ROWS PER MATCH, and a match is one row: leave the braces out",
}
_AFTER_PATTERN: Final = ("WITHIN", "SUBSET", "DEFINE")


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._all, self._at = text, _words(text), 0

    @property
    def _word(self) -> Word:
        return self._all[self._at]

    def _next(self) -> Word:
        self._at += 1
        return self._all[self._at - 1]

    def _accept(self, *keywords: str) -> bool:
        """Read keywords or signs if they stand here."""
        here = [word.upper for word in self._all[self._at : self._at + len(keywords)]]
        if here != list(keywords):
            return False
        self._at += len(keywords)
        return True

    def _expect(self, *keywords: str) -> None:
        if not self._accept(*keywords):
            self._fail(" ".join(keywords))

    def _fail(self, expected: str) -> NoReturn:
        line, column = _position(self._text, self._word.place)
        here = f"{self._word.text!r} stands here" if self._word.text else "the query ends here"
        message = f"{here}, where MATCH_RECOGNIZE has {expected}"
        raise QuerySyntaxError(message, text=self._text, line=line, column=column, expected=(expected,))

    def _refuse_word(self, message: str, word: Word | None = None) -> NoReturn:
        refuse_sql(self._text, (word or self._word).place, message)

    def _named(self) -> str:
        if self._word.kind not in ("name", "quoted"):
            self._fail("a name")
        return self._next().name

    def read(self) -> Recognition:
        if self._accept("SELECT"):
            if not self._accept("*"):
                self._refuse_word("SELECT takes * alone: MEASURES say what is returned of a match")
            self._expect("FROM")
            self._named()
        self._expect("MATCH_RECOGNIZE", "(")
        partition = self._names() if self._accept("PARTITION", "BY") else ()
        order = self._ordered()
        measures = self._measures() if self._accept("MEASURES") else ()
        self._one_row()
        skip = self._until("PATTERN") if self._accept("AFTER", "MATCH") else ()
        self._expect("PATTERN", "(")
        pattern = self._parts()
        self._expect(")")
        within = self._until("SUBSET", "DEFINE", ")") if self._accept("WITHIN") else ()
        if self._word.upper == "SUBSET":
            self._refuse_word("SUBSET is not answered: name each variable of it in MEASURES and DEFINE")
        define = self._definitions() if self._accept("DEFINE") else {}
        self._expect(")")
        self._behind()
        return Recognition(self._text, partition, order, measures, skip, pattern, within, define)

    def _names(self) -> tuple[str, ...]:
        names = [self._named()]
        while self._accept(","):
            names.append(self._named())
        return tuple(names)

    def _ordered(self) -> str:
        self._expect("ORDER", "BY")
        order = self._named()
        self._accept("ASC")
        if self._word.text == ",":
            self._refuse_word(
                "ORDER BY takes the time alone: a column that orders events of one time is their sequence: "
                'name their source, too, and the column with names={"sequence": ...}'
            )
        if self._word.upper == "DESC":
            self._refuse_word("ORDER BY takes rising times: write the pattern the other way round")
        return order

    def _one_row(self) -> None:
        if self._word.upper == "ALL":
            self._refuse_word(
                "ALL ROWS PER MATCH: write ONE ROW PER MATCH, and uc.events_of gives a row for each event"
            )
        if self._accept("ONE"):
            self._expect("ROW", "PER", "MATCH")

    def _behind(self) -> None:
        if self._accept("AS") or self._word.kind in ("name", "quoted"):
            if self._word.upper in ("WHERE", "GROUP", "ORDER", "LIMIT", "HAVING", "JOIN"):
                self._refuse_word(f"{self._word.upper} behind MATCH_RECOGNIZE: ask the frame of matches")
            self._named()
        self._accept(";")
        if self._word.kind != "end":
            self._refuse_word("nothing may follow MATCH_RECOGNIZE(...): ask the frame of matches")

    def _until(self, *stops: str) -> Tokens:
        """Return the words up to one of some at this depth of parentheses."""
        words: list[Word] = []
        depth = 0
        while depth or self._word.upper not in stops:
            if self._word.kind == "end":
                self._fail(" or ".join(stops))
            depth += (self._word.text == "(") - (self._word.text == ")")
            words.append(self._next())
        return tuple(words)

    def _measures(self) -> tuple[tuple[Tokens, str], ...]:
        measures = []
        while True:
            words = self._until("AS", ",", "ONE", "ALL", "AFTER", "PATTERN")
            self._expect("AS")
            measures.append((words, self._named()))
            if not self._accept(","):
                return tuple(measures)

    def _definitions(self) -> dict[str, Tokens]:
        define: dict[str, Tokens] = {}
        while True:
            word, name = self._word, self._named().upper()
            self._expect("AS")
            if name in define:
                self._refuse_word(f"{name} is defined twice", word)
            define[name] = self._until(",", ")")
            if not self._accept(","):
                return define

    def _parts(self) -> tuple[Node, ...]:
        """Return the parts in parentheses of PATTERN."""
        word = self._word
        branches = [self._row()]
        while self._accept("|"):
            branches.append(self._row())
        if len(branches) == 1:
            return branches[0]
        return (
            Alternatives(tuple(part[0] if len(part) == 1 else Group(part, word) for part in branches), word),
        )

    def _row(self) -> tuple[Node, ...]:
        parts: list[Node] = []
        while self._word.text not in (")", "|", ""):
            parts.append(self._part())
        if not parts:
            self._refuse_word("an empty match takes no event: leave the empty parentheses out")
        return tuple(parts)

    def _part(self) -> Node:
        word = self._word
        if word.text in _OF_PATTERN:
            self._refuse_word(_OF_PATTERN[word.text])
        if word.upper == "PERMUTE":
            self._refuse_word(
                "PERMUTE(A, B) is not answered: write A B and B A as two queries, or AND(A a, B b), whose "
                "events need not be neighbours, in a query of this language"
            )
        node: Node
        if self._accept("("):
            inner = self._parts()
            self._expect(")")
            node = inner[0] if len(inner) == 1 else Group(inner, word)
            times = self._quantifier()
            if node.times != ONCE and times != ONCE:
                self._refuse_word("a quantifier of a quantifier is not answered: keep one of them", word)
            return node if times == ONCE else replace(node, times=times)
        if word.kind not in ("name", "quoted"):
            self._fail("a variable or a group")
        return Row(self._next().name.upper(), word, self._quantifier())

    def _quantifier(self) -> Quantifier:
        signs: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
        if self._word.text in signs:
            fewest, upper = signs[self._next().text]
        elif self._accept("{"):
            fewest, upper = self._times()
        else:
            return ONCE
        return Quantifier(fewest, upper, self._accept("?"))

    def _times(self) -> tuple[int, int | None]:
        fewest = 0 if self._word.text == "," else self._number()
        upper: int | None = fewest
        if self._accept(","):
            upper = None if self._word.text == "}" else self._number()
        self._expect("}")
        return fewest, upper

    def _number(self) -> int:
        if not self._word.text.isdecimal():
            self._fail("a whole number")
        return int(self._next().text)


def conjuncts(words: Sequence[Word]) -> list[Tokens]:
    """Return the conditions that AND joins at the top of one."""
    parts: list[list[Word]] = [[]]
    depth = between = 0
    for word in words:
        depth += (word.text == "(" or word.upper == "CASE") - (word.text == ")" or word.upper == "END")
        between += depth == 0 and word.upper == "BETWEEN"
        if depth == 0 and word.upper == "AND" and not between:
            parts.append([])
            continue
        if depth == 0 and word.upper == "AND":
            between -= 1
        parts[-1].append(word)
    if any(word.upper == "OR" for word in words) and len(parts) > 1 and _has_top_or(words):
        return [tuple(words)]
    return [tuple(part) for part in parts]


def _has_top_or(words: Sequence[Word]) -> bool:
    depth = 0
    for word in words:
        depth += (word.text == "(") - (word.text == ")")
        if depth == 0 and word.upper == "OR":
            return True
    return False
