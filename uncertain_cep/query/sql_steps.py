"""PATTERN of MATCH_RECOGNIZE as steps that take rows and gaps that pass over them, if both are answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple, NoReturn

from uncertain_cep.query.expression_text import quote_name
from uncertain_cep.query.match_recognize import (
    ONCE,
    Alternatives,
    Node,
    Quantifier,
    Recognition,
    Row,
    Tokens,
    Word,
    conjuncts,
    refuse_sql,
)

__all__ = ["Gap", "Step", "Steps"]

_SIDES: Final = {
    "<": (-1,), "<=": (-1, 0), "=": (0,), ">=": (0, 1), ">": (1,), "<>": (-1, 1), "!=": (-1, 1),
}  # fmt: skip
"""By signs of comparisons, whether the column is below, at or above what it is compared with."""
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_REGIONS: Final = ((-1, -1), (0, -1), (1, -1), (1, 0), (1, 1))
"""On which side of each of two constants a value is, of which the first is the lower one."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the pattern that takes rows: its variable, or those of a group or of alternatives."""

    kind: Literal["single", "list", "option", "group", "or"]
    names: tuple[str, ...]
    word: Word
    times: Quantifier = ONCE

    @property
    def is_fixed(self) -> bool:
        """Whether one row is taken in any case."""
        return self.kind == "single"


@dataclass(frozen=True, slots=True)
class Gap:
    """The rows between two steps: nothing, or a loose variable."""

    kind: Literal["neighbours", "loose", "last"]
    between: Row | None = None


class Steps:
    """The steps of a pattern, and the gap behind each but the last."""

    def __init__(self, read: Recognition) -> None:
        self._read = read
        self.steps: list[Step] = []
        self.gaps: list[Gap] = []
        self._take_apart()
        names = {name for step in self.steps for name in step.names}
        unknown = [name for name in read.define if name not in names | self.loose]
        if unknown:
            self._refuse_word(read.define[unknown[0]][0], f"{unknown[0]} is no variable of PATTERN")

    def _refuse_word(self, word: Word, message: str) -> NoReturn:
        refuse_sql(self._read.text, word.place, message)

    @property
    def loose(self) -> set[str]:
        """The variables of gaps."""
        return {gap.between.name for gap in self.gaps if gap.between is not None}

    # The pattern

    def _take_apart(self) -> None:
        waiting: Row | None = None
        seen: set[str] = set()
        for node in self._read.pattern:
            for name in _names_in(node):
                if name in seen:
                    self._refuse_word(
                        node.word, f"{name} stands twice in PATTERN: give each place its own variable"
                    )
                seen.add(name)
            if isinstance(node, Row) and self._is_loose(node):
                if waiting is not None or not self.steps:
                    what = "two gaps in a row" if waiting is not None else "a gap in front of the first event"
                    self._refuse_word(node.word, f"{what}: leave {node.name}{node.times.text} out")
                waiting = node
                continue
            if self.steps:
                self.gaps.append(Gap("neighbours") if waiting is None else self._gap(waiting))
            waiting = None
            self.steps.append(self._step(node))
        if waiting is not None:
            message = f"{waiting.name}{waiting.times.text} at the end"
            if waiting.times.reluctant:
                self._refuse_word(waiting.word, f"{message} takes no row: leave it out")
            self._refuse_word(waiting.word, f"{message} takes all rows to come: name what ends the run")
        self._check_gaps()

    def _is_loose(self, node: Row) -> bool:
        """Return whether a variable stands for rows that are passed over."""
        spoken = {word.name.upper() for words, _ in self._read.measures for word in words}
        spoken |= {
            word.name.upper()
            for name, words in self._read.define.items()
            if name != node.name
            for word in words
        }
        is_any = (node.times.fewest, node.times.upper) == (0, None)
        return (
            is_any
            and node.name not in spoken
            and (node.times.reluctant or node.name not in self._read.define)
        )

    def _gap(self, row: Row) -> Gap:
        return Gap("loose" if row.times.reluctant else "last", row)

    def _step(self, node: Node) -> Step:
        names = _names_in(node)
        if isinstance(node, Row):
            if node.times == ONCE:
                return Step("single", names, node.word)
            if (node.times.fewest, node.times.upper) == (0, 1):
                return Step("option", names, node.word, node.times)
            return Step("list", names, node.word, node.times)
        if any(not isinstance(part, Row) or part.times != ONCE for part in node.parts):
            self._refuse_word(
                node.word, "only single variables stand in groups and beside |: write a query for each"
            )
        if isinstance(node, Alternatives):
            if node.times != ONCE:
                self._refuse_word(
                    node.word, f"(A | B){node.times.text} is not answered: write a query for each"
                )
            return Step("or", names, node.word)
        if (node.times.fewest, node.times.upper) != (0, 1):
            self._refuse_word(
                node.word,
                f"a group with {node.times.text} is not answered: write it as often as it can stand, with "
                "variables of their own",
            )
        return Step("group", names, node.word, node.times)

    def _check_gaps(self) -> None:
        loose = False
        for place, gap in enumerate(self.gaps):
            behind = self.steps[place + 1]
            if gap.kind == "last" and (place < len(self.gaps) - 1 or not behind.is_fixed):
                assert gap.between is not None
                name = gap.between.name
                self._refuse_word(
                    gap.between.word, f"{name}* takes as many rows as it can: write {name}*?, the next row"
                )
            if loose and gap.kind == "neighbours":
                self._refuse_word(
                    behind.word,
                    f"{behind.names[0]} is the row next to one behind a gap, for which SQL goes back and "
                    "tries another: put a gap X*? in between, or uc.draw_worlds and ask each world",
                )
            if loose and gap.between is not None and gap.between.name in self._read.define:
                self._refuse_word(
                    gap.between.word,
                    f"{gap.between.name} has a condition behind another gap, for which SQL goes back and "
                    "tries another row: leave the condition out",
                )
            loose = loose or gap.kind != "neighbours"
        for step in self.steps:
            if loose and not step.is_fixed:
                self._refuse_word(
                    step.word,
                    f"{step.names[0]}{step.times.text} stands in a pattern with a gap X*?: only single rows "
                    "do; keep the rows next to each other",
                )
        for place, step in enumerate(self.steps):
            self._check_greed(step, self.steps[place + 1 :])

    def _check_greed(self, step: Step, following: list[Step]) -> None:
        """Refuse a part that may take more or fewer rows where a row could be of it or of what follows."""
        if step.kind == "or" or step.times == ONCE or step.times.fewest == step.times.upper:
            return
        name = step.names[0]
        if not following:
            if step.times.reluctant:
                self._refuse_word(
                    step.word, f"{name}{step.times.text} at the end takes as few rows as it can: say how many"
                )
            self._refuse_word(
                step.word,
                f"{name}{step.times.text} at the end takes as many rows as it can: name what ends the run, "
                f"such as ({name}{step.times.text} E) with a condition that no {name} meets",
            )
        for other in following:
            for after in other.names if other.kind != "group" else other.names[:1]:
                if not self.exclude(name, after):
                    self._refuse_word(
                        step.word,
                        f"a row can be {name} as well as {after}, so that {name}{step.times.text} takes one "
                        f"or the other: give {after} a condition that no {name} meets",
                    )
            if other.times.fewest > 0 or other.kind == "or":
                return

    # Conditions

    def conditions_of(self, name: str) -> list[Tokens]:
        """Return the conditions of the DEFINE of a variable, none if it takes any row."""
        return conjuncts(self._read.define.get(name, ()))

    def exclude(self, one: str, other: str) -> bool:
        """Return whether no row meets the conditions of two variables, as far as two comparisons show."""
        return any(
            _apart(left, right)
            for left in self._comparisons(one)
            for right in self._comparisons(other)
            if left.column == right.column
        )

    def _comparisons(self, name: str) -> list[_Comparison]:
        compared = [_compared(name, condition) for condition in self.conditions_of(name)]
        return [each for each in compared if each is not None]

    def type_of(self, name: str) -> tuple[str, list[Tokens]]:
        """Return the type that a variable's condition names, ANY without one, and the other conditions."""
        types: list[str] = []
        further: list[Tokens] = []
        for condition in self.conditions_of(name):
            compared = _compared(name, condition)
            value = None if compared is None or compared[:2] != ("type", "=") else compared.constant
            if isinstance(value, str) and not types:
                types.append(quote_name(value, reserved=True))
            elif condition:
                further.append(condition)
        return (types[0] if types else "ANY"), further


class _Comparison(NamedTuple):
    """A column of the row itself, a sign, and the words that it is compared with."""

    column: str
    sign: str
    words: tuple[str, ...]

    @property
    def constant(self) -> str | Decimal | None:
        """The text or the number that the words are, if they are one."""
        if len(self.words) == 1 and self.words[0].startswith("'"):
            return self.words[0][1:-1].replace("''", "'")
        try:
            return Decimal("".join(self.words))
        except InvalidOperation:
            return None


def _compared(name: str, condition: Tokens) -> _Comparison | None:
    """Return the comparison that a condition in the DEFINE of a variable is, if it is one of its row."""
    bare = [word for word in condition if word.text not in ("(", ")")]
    has_call = any(word.kind == "name" and behind.text == "(" for word, behind in pairwise(condition))
    words = bare if len(bare) <= _WORDS_OF_PLAIN and not has_call else list(condition)
    signs = [place for place, word in enumerate(words) if word.text in _SIDES]
    if len(signs) != 1:
        return None
    (place,) = signs
    sign, sides = words[place].text, (_of_row(name, words[:place]), _of_row(name, words[place + 1 :]))
    if _is_column(name, words[:place]):
        column, value = words[place - 1].name, sides[1]
    elif _is_column(name, words[place + 1 :]):
        column, value, sign = words[-1].name, sides[0], _FLIPPED.get(sign, sign)
    else:
        return None
    return None if value is None else _Comparison(column, sign, value)


_WORDS_OF_PLAIN: Final = 5
"""``A . x > 5``, in whatever parentheses."""


def _is_column(name: str, words: Sequence[Word]) -> bool:
    """Tell whether words are a column of the row of a variable."""
    if len(words) == 3 and words[0].name.upper() == name and words[1].text == ".":
        words = words[2:]
    return len(words) == 1 and words[0].kind in ("name", "quoted")


def _of_row(name: str, words: Sequence[Word]) -> tuple[str, ...] | None:
    """Return words that mean the same for all variables that a row may be of; None for others.

    They are constants, arithmetic, and columns of the row or of the one before it, without the name of the
    variable.
    """
    text: list[str] = []
    place = 0
    while place < len(words):
        word = words[place]
        behind = words[place + 1].text if place + 1 < len(words) else ""
        if behind == ".":
            if word.name.upper() != name:
                return None
            place += 2
            continue
        is_call = behind == "(" and word.kind in ("name", "quoted")
        if (is_call and word.upper != "PREV") or word.upper in ("AND", "OR", "NOT", "CASE", "BETWEEN", "IN"):
            return None
        text.append(f'"{word.name}"' if word.kind in ("name", "quoted") and not is_call else word.upper)
        place += 1
    return tuple(text)


def _apart(one: _Comparison, other: _Comparison) -> bool:
    """Tell whether no value meets both comparisons of a column."""
    left, right = _SIDES[one.sign], _SIDES[other.sign]
    low: Any = one.constant
    high: Any = other.constant
    if one.words == other.words or (low is not None and low == high):
        return not {*left} & {*right}
    if low is None or type(low) is not type(high):
        return False
    if low > high:
        left, right = right, left
    return not any(below in left and above in right for below, above in _REGIONS)


def _names_in(node: Node) -> tuple[str, ...]:
    if isinstance(node, Row):
        return (node.name,)
    return tuple(name for part in node.parts for name in _names_in(part))
