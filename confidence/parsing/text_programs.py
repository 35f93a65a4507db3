"""Regular expressions as programs over bytes of UTF-8, with the meaning that RE2 gives them.

A program is a list of instructions (Pike's machine): bytes that are taken, choices in the order in which they
are preferred, places that are noted, and the ends of the text. What is not read here raises `UnreadError`,
and is left to RE2: flags but a leading ``(?s)``, word boundaries, classes with letters beyond ASCII, and
repetitions of what may be empty.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = [
    "BEGIN",
    "END",
    "MATCH",
    "NOTE",
    "SPLIT",
    "TAKE",
    "Instruction",
    "Program",
    "UnreadError",
    "program_of",
]

TAKE, SPLIT, NOTE, BEGIN, END, MATCH = range(6)
Instruction = tuple[int, int, int, int]
"""Its kind; the next, or the preferred, one; the other one, or the place that is noted; a mask of bytes."""

MOST_INSTRUCTIONS: Final = 5_000

_ASCII: Final = (1 << 128) - 1


def _mask(letters: bytes) -> int:
    return sum(1 << letter for letter in set(letters))


def _range(first: int, last: int) -> int:
    return (1 << (last + 1)) - (1 << first)


_DIGITS: Final = _range(ord("0"), ord("9"))
_WORD: Final = _DIGITS | _range(ord("A"), ord("Z")) | _range(ord("a"), ord("z")) | _mask(b"_")
_SPACE: Final = _mask(b"\t\n\f\r ")
_CLASSES: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a"}
_COUNT: Final = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_TAIL: Final = _range(0x80, 0xBF)
_LONG: Final = ((_range(0xC2, 0xDF), 1), (_range(0xE0, 0xEF), 2), (_range(0xF0, 0xF4), 3))
"""The bytes that letters beyond ASCII begin with, and how many come behind."""


class UnreadError(ValueError):
    """An expression of a kind that is not read here."""


@dataclass(frozen=True, slots=True)
class _Letters:
    """One letter: a mask of those of ASCII, and whether it may be any other one."""

    ascii: int
    beyond_ascii: bool


@dataclass(frozen=True, slots=True)
class _Byte:
    mask: int


@dataclass(frozen=True, slots=True)
class _Several:
    """Parts one after another or, if they are ``choices``, one of them."""

    parts: tuple[_Node, ...]
    choices: bool = False


@dataclass(frozen=True, slots=True)
class _Repeated:
    part: _Node
    fewest: int
    largest: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class _Group:
    part: _Node
    number: int


@dataclass(frozen=True, slots=True)
class _Edge:
    """The begin, or the end, of the text."""

    kind: int


_Node = _Letters | _Byte | _Several | _Repeated | _Group | _Edge


@dataclass(frozen=True, slots=True)
class Program:
    """An expression to search for, whose groups ``names`` are noted: group k in the places 2k and 2k + 1."""

    instructions: tuple[Instruction, ...]
    start: int
    names: tuple[str, ...]


def program_of(pattern: str, names: Sequence[str]) -> Program:
    """Return the program of an expression that notes some of its groups; `UnreadError` if it is not read."""
    tree = _Parser(pattern, names).whole()
    instructions: list[Instruction] = [(MATCH, 0, 0, 0)]
    start = _Writer(instructions).write(tree, 0)
    if not _is_anchored(tree):
        # Any byte may stand before, and as few as possible do.
        instructions.append((TAKE, len(instructions) + 1, 0, (1 << 256) - 1))
        instructions.append((SPLIT, start, len(instructions) - 1, 0))
        start = len(instructions) - 1
    return Program(tuple(instructions), start, tuple(names))


class _Parser:
    """Reads an expression."""

    def __init__(self, pattern: str, names: Sequence[str]) -> None:
        self._text = pattern
        self._place = 0
        self._names = list(names)
        self._all = False

    def whole(self) -> _Node:
        """Return the tree of the expression."""
        if self._taken("(?s)"):
            self._all = True
        tree = self._choices()
        if self._place < len(self._text):
            raise UnreadError(self._text)
        return tree

    def _taken(self, text: str) -> bool:
        if self._text.startswith(text, self._place):
            self._place += len(text)
            return True
        return False

    def _next(self) -> str:
        if self._place >= len(self._text):
            raise UnreadError(self._text)
        self._place += 1
        return self._text[self._place - 1]

    def _choices(self) -> _Node:
        parts = [self._sequence()]
        while self._taken("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else _Several(tuple(parts), choices=True)

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._place < len(self._text) and self._text[self._place] not in "|)":
            parts.append(self._repeated(self._one()))
        return parts[0] if len(parts) == 1 else _Several(tuple(parts))

    def _repeated(self, part: _Node) -> _Node:
        count = _COUNT.match(self._text, self._place)
        if count is not None:
            self._place = count.end()
            fewest = int(count[1])
            largest = fewest if count[2] is None else int(count[3]) if count[3] else None
        elif self._taken("*"):
            fewest, largest = 0, None
        elif self._taken("+"):
            fewest, largest = 1, None
        elif self._taken("?"):
            fewest, largest = 0, 1
        else:
            return part
        greedy = not self._taken("?")
        if self._place < len(self._text) and (
            self._text[self._place] in "*+?" or _COUNT.match(self._text, self._place)
        ):
            raise UnreadError(self._text)
        if largest != 1 and _may_be_empty(part):
            raise UnreadError(self._text)
        return _Repeated(part, fewest, largest, greedy)

    def _one(self) -> _Node:
        letter = self._next()
        if letter == "(":
            return self._group()
        if letter == "[":
            return self._class()
        if letter == "^":
            return _Edge(BEGIN)
        if letter == "$":
            return _Edge(END)
        if letter == ".":
            return _Letters(_ASCII if self._all else _ASCII & ~_mask(b"\n"), True)
        if letter == "\\":
            return self._escaped()
        if letter in "*+?" or self._text.startswith("{,", self._place - 1):
            raise UnreadError(self._text)
        return _literal(letter)

    def _group(self) -> _Node:
        number = None
        if self._taken("?P<"):
            name, _, _ = self._text[self._place :].partition(">")
            self._place += len(name) + 1
            number = self._names.index(name) if name in self._names else None
        elif not self._taken("?:") and self._taken("?"):
            raise UnreadError(self._text)
        part = self._choices()
        if not self._taken(")"):
            raise UnreadError(self._text)
        return part if number is None else _Group(part, number)

    def _escaped(self) -> _Node:
        letter = self._next()
        if (mask := _CLASSES.get(letter.lower())) is not None:
            return _Letters(mask, False) if letter.islower() else _Letters(_ASCII & ~mask, True)
        return _literal(self._literal_escape(letter))

    def _literal_escape(self, letter: str) -> str:
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter.isalnum() or not letter.isascii():
            raise UnreadError(self._text)
        return letter

    def _class(self) -> _Node:
        negated = self._taken("^")
        mask, beyond_ascii, first = 0, False, True
        while first or not self._taken("]"):
            first = False
            begin = self._class_letter()
            if isinstance(begin, _Letters):
                mask |= begin.ascii
                beyond_ascii |= begin.beyond_ascii
                continue
            end = begin
            if self._text[self._place : self._place + 1] == "-" and self._text[
                self._place + 1 : self._place + 2
            ] not in ("]", ""):
                self._place += 1
                last = self._class_letter()
                if isinstance(last, _Letters):
                    raise UnreadError(self._text)
                end = last
            if end < begin:
                raise UnreadError(self._text)
            mask |= _range(begin, end)
        return _Letters(_ASCII & ~mask, not beyond_ascii) if negated else _Letters(mask, beyond_ascii)

    def _class_letter(self) -> int | _Letters:
        """Return a letter of a class, or the letters that an escape means."""
        letter = self._next()
        if letter == "[" and self._text[self._place : self._place + 1] in (":", ".", "="):
            raise UnreadError(self._text)
        if letter == "\\":
            escaped = self._next()
            if (mask := _CLASSES.get(escaped.lower())) is not None:
                return _Letters(mask, False) if escaped.islower() else _Letters(_ASCII & ~mask, True)
            letter = self._literal_escape(escaped)
        if not letter.isascii():
            raise UnreadError(self._text)
        return ord(letter)


def _literal(letter: str) -> _Node:
    parts = tuple(_Byte(1 << byte) for byte in letter.encode())
    return parts[0] if len(parts) == 1 else _Several(parts)


def _may_be_empty(node: _Node) -> bool:
    match node:
        case _Letters() | _Byte():
            return False
        case _Edge():
            return True
        case _Several(parts, choices):
            return any(map(_may_be_empty, parts)) if choices else all(map(_may_be_empty, parts))
        case _Repeated(part, fewest, _, _):
            return fewest == 0 or _may_be_empty(part)
        case _Group(part, _):
            return _may_be_empty(part)


def _is_anchored(node: _Node) -> bool:
    """Tell whether an expression can only fit from the begin of the text on."""
    match node:
        case _Edge(kind):
            return kind == BEGIN
        case _Several(parts, choices):
            return all(map(_is_anchored, parts)) if choices else bool(parts) and _is_anchored(parts[0])
        case _Group(part, _):
            return _is_anchored(part)
    return False


class _Writer:
    """Writes the instructions of a tree, the last one first."""

    def __init__(self, instructions: list[Instruction]) -> None:
        self._written = instructions

    def write(self, node: _Node, behind: int) -> int:
        """Return the first instruction of a node that another one comes behind."""
        match node:
            case _Byte(mask):
                return self._add((TAKE, behind, 0, mask))
            case _Letters(mask, beyond_ascii):
                return self._letters(mask, behind, beyond_ascii=beyond_ascii)
            case _Several(parts, True):
                first = self.write(parts[-1], behind)
                for part in reversed(parts[:-1]):
                    first = self._add((SPLIT, self.write(part, behind), first, 0))
                return first
            case _Several(parts, _):
                for part in reversed(parts):
                    behind = self.write(part, behind)
                return behind
            case _Group(part, number):
                inside = self.write(part, self._add((NOTE, behind, 2 * number + 1, 0)))
                return self._add((NOTE, inside, 2 * number, 0))
            case _Edge(kind):
                return self._add((kind, behind, 0, 0))
            case _Repeated():
                return self._repeated(node, behind)

    def _repeated(self, node: _Repeated, behind: int) -> int:
        first = behind
        if node.largest is None:
            loop = self._add((SPLIT, 0, 0, 0))
            inside = self.write(node.part, loop)
            self._written[loop] = (SPLIT, *((inside, behind) if node.greedy else (behind, inside)), 0)
            first = loop
        else:
            for _ in range(node.largest - node.fewest):
                inside = self.write(node.part, first)
                first = self._add((SPLIT, *((inside, behind) if node.greedy else (behind, inside)), 0))
        for _ in range(node.fewest):
            first = self.write(node.part, first)
        return first

    def _letters(self, mask: int, behind: int, *, beyond_ascii: bool) -> int:
        first = self._add((TAKE, behind, 0, mask))
        if beyond_ascii:
            for begins, count in _LONG:
                tail = behind
                for _ in range(count):
                    tail = self._add((TAKE, tail, 0, _TAIL))
                first = self._add((SPLIT, first, self._add((TAKE, tail, 0, begins)), 0))
        return first

    def _add(self, instruction: Instruction) -> int:
        if len(self._written) >= MOST_INSTRUCTIONS:
            raise UnreadError("the expression is too long")
        self._written.append(instruction)
        return len(self._written) - 1
