"""Fields around the stamps of lines: level, logger, thread, process, host, pairs of names and values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from uncertain_cep.traces.stamp_shapes import LineStamp, StampShape, stamp_in

__all__ = ["Layout", "escaped", "layouts_of"]

_MOST_LAYOUTS: Final = 6
_LEAST: Final = 0.02
"""Of the lines with a stamp those that an expression of their own is made for."""
_NEARLY_ALL: Final = 0.9
_LEAST_WITH_PAIRS: Final = 0.5
_LEAST_PAIRED: Final = 0.3
"""Of lines those that have some pair of a name and a value, and those that have the same one."""
_MOST_FIELDS: Final = 8
_MOST_PAIRS: Final = 12

_LEVELS: Final = (
    "TRACE|DEBUG|VERBOSE|INFO|INFORMATION|NOTICE|WARN|WARNING|ERROR|ERR|SEVERE|FATAL|CRITICAL|CRIT|ALERT|EMERG"
    "|PANIC|FINE|FINER|FINEST|CONFIG|LOG|HINT|DETAIL|STATEMENT|SYSTEM|NOTE"
)
_LEVEL: Final = "(?P<level>[A-Za-z]+)"
"""As it is written; looked for are the names of levels."""
_NAME: Final = r"[A-Za-z_][\w$]*"
_GAP: Final = r"[\s,:;|]*(?:- )?[\s]*"
_NESTED: Final = r"(?:[^\[\]]|\[[^\[\]]*\])*"


@dataclass(frozen=True, slots=True)
class Layout:
    """An expression for a line of a log, and the share of the lines with a stamp that it fits first."""

    expression: str
    share: float


@dataclass(frozen=True, slots=True)
class _Field:
    """A field that may come next: its names, of which the first free one counts, and its expression."""

    names: tuple[str, ...]
    expression: str


_FIELDS: Final = (
    _Field(("level",), rf"\[ *{_LEVEL} *\]{_GAP}"),
    _Field(("level",), rf"<{_LEVEL}>{_GAP}"),
    _Field(("channel", "level"), rf"(?P<channel>\w+)\.{_LEVEL}: "),
    _Field(("level", "process"), rf"{_LEVEL}/(?P<process>[^\s\]]+)\]? +"),
    _Field(("level",), rf"{_LEVEL}(?:[:,|\]]| |$){_GAP}"),
    _Field(("level",), r"(?P<level>[VDIWEF])(?:[/|\]]| ) *"),
    _Field(
        ("host", "program"), r"(?P<host>[A-Za-z0-9][\w.-]*) (?P<program>[^\s:\[\]]+)\[(?P<pid>[0-9]+)\]: ?"
    ),
    _Field(("uptime",), rf"\[(?P<uptime>[0-9]+(?:\.[0-9]+)?m?s)\]{_GAP}"),
    _Field(("pid",), rf"\[(?P<pid>[0-9]+)\]{_GAP}"),
    _Field(("thread", "context", "context2"), rf"\[(?P<thread>{_NESTED})\]{_GAP}"),
    _Field(("place",), rf"\{{(?P<place>[^{{}}]*)\}}{_GAP}"),
    _Field(("process",), rf"<(?P<process>[^<>]*)>{_GAP}"),
    _Field(("pid", "tid"), rf"(?P<pid>[0-9]+)(?: +| --- ){_GAP}"),
    _Field(("program", "pid"), rf"(?P<program>{_NAME})\[(?P<pid>[0-9]+)\](?:{_GAP})"),
    _Field(("logger",), rf"(?P<logger>{_NAME}(?:[.$/-]{_NAME})+)(?: *:| +-| ){_GAP}"),
    _Field(("logger",), rf"(?P<logger>{_NAME}): +"),
)  # fmt: skip
"""In the order in which they are looked for at each place."""

_PAIR: Final = r'(?:^|[\s,|{\[(])([A-Za-z_][\w.-]{0,40})=("(?:[^"\\]|\\.)*"|[^\s,|})\]"]+)'
_JSON_PAIR: Final = r'"([A-Za-z_][\w-]{0,40})": ?("(?:[^"\\]|\\.)*"|-?[0-9.eE+]+|true|false)'


def escaped(text: str) -> str:
    """Return an expression, as Python and RE2 read it, for a text."""
    return re.sub(r"([\\.^$*+?()\[\]{}|])", r"\\\1", text)


def layouts_of(lines: Sequence[str], shapes: Sequence[StampShape]) -> list[Layout]:
    """Return expressions for the lines that have a stamp; the last one fits all of them."""
    pattern = _stamps(shapes)
    stamped = [(line, stamp.begin, stamp.end) for line in lines for stamp in [_first(line, shapes)] if stamp]
    if not stamped:
        return []
    tail = stamped
    layouts: list[Layout] = []
    while tail and len(layouts) < _MOST_LAYOUTS and len(tail) >= max(1, _LEAST * len(stamped)):
        expression = _expression(tail, pattern)
        fits = re.compile(f"(?s){expression}")
        remaining = [one for one in tail if not fits.search(one[0])]
        if len(remaining) == len(tail):
            break
        layouts.append(Layout(expression, (len(tail) - len(remaining)) / len(stamped)))
        tail = remaining
    # Nothing with a stamp is lost.
    loose = rf"^(?P<before>.{{0,60}}?)(?P<time>{pattern})[\s\])>\"':,|-]*(?P<message>.*)"
    begin = _prefix([line[:begin] for line, begin, _ in stamped])
    if begin is not None:
        loose = rf"^{begin}(?P<time>{pattern})[\s\])>\"':,|-]*(?P<message>.*)"
    if tail or len(layouts) > 1:
        layouts.append(Layout(loose, len(tail) / len(stamped)))
    return list({layout.expression: layout for layout in layouts}.values())


def _first(line: str, shapes: Sequence[StampShape]) -> LineStamp | None:
    stamps = [stamp for shape in shapes if (stamp := stamp_in(line, shape)) is not None]
    return min(stamps, key=lambda stamp: (stamp.begin, -stamp.end), default=None)


def _stamps(shapes: Sequence[StampShape]) -> str:
    """Return one expression for stamps of several shapes, the longest tried first."""
    patterns = sorted(
        dict.fromkeys(shape.pattern for shape in shapes), key=lambda pattern: (-len(pattern), pattern)
    )
    return patterns[0] if len(patterns) == 1 else f"(?:{'|'.join(patterns)})"


def _expression(lines: Sequence[tuple[str, int, int]], pattern: str) -> str:
    """Return an expression for most of some lines, each with the begin and the end of its stamp."""
    befores = Counter(_kind(line[:begin]) for line, begin, _ in lines)
    kind, _ = max(befores.items(), key=lambda pair: (pair[1], pair[0]))
    alike = [one for one in lines if _kind(one[0][: one[1]]) == kind]
    before = _prefix([line[:begin] for line, begin, _ in alike])
    used = {"time", "message"}
    if before is None:
        before = _worded([line[:begin] for line, begin, _ in alike], used)
    rests = [line[end:] for line, _, end in alike]
    return f"^{before}(?P<time>{pattern}){_after(rests, used)}"


def _kind(before: str) -> str:
    """Return the form of a text: words as w, white space as one."""
    return re.sub(r"\s+", " ", re.sub(r"[^\s|]+", "w", before)) if re.search(r"\w", before) else before


def _prefix(befores: Sequence[str]) -> str | None:
    """Return the expression of what stands before all stamps, if it is the same or no word."""
    first = befores[0]
    if all(before == first for before in befores):
        return escaped(first)
    signs = {re.sub(r"\s+", " ", before).strip() for before in befores}
    if len(signs) == 1 and not re.search(r"\w", first):
        return rf"\s*{escaped(signs.pop())}\s*"
    return None


def _worded(befores: Sequence[str], used: set[str]) -> str:
    """Return an expression for words before stamps, each with a name if it varies."""
    rows = [re.findall(r"\s+|[^\s]+", before) for before in befores]
    if len({len(row) for row in rows}) != 1:
        used.add("before")
        return r"(?P<before>.{0,60}?)"
    parts = []
    for column in zip(*rows, strict=True):
        if column[0].isspace():
            parts.append(r"\s+")
        elif len(set(column)) == 1:
            parts.append(escaped(column[0]))
        else:
            parts.append(_word(column, used))
    return "".join(parts)


def _word(column: Sequence[str], used: set[str]) -> str:
    first = _common_begin(column)
    last = _common_begin([text[::-1] for text in column])[::-1]
    begin = re.match(r"^[^\w]*(?:[A-Za-z_]\w*[=:(])?[\"'\[(]*", first)
    end = re.search(r"[^\w]*$", last)
    head = first[: begin.end()] if begin else ""
    tail = last[end.start() :] if end else ""
    if any(len(head) + len(tail) >= len(text) for text in column):
        head = tail = ""
    name = _free(
        "client" if re.match(r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+", column[0][len(head) :]) else "name", used
    )
    return rf"{escaped(head)}(?P<{name}>\S+?){escaped(tail)}" if tail else rf"{escaped(head)}(?P<{name}>\S+)"


def _common_begin(texts: Sequence[str]) -> str:
    """Return the common beginning of all texts."""
    low, high = min(texts), max(texts)
    size = next(
        (place for place, sign in enumerate(low) if place >= len(high) or high[place] != sign), len(low)
    )
    return low[:size]


def _free(name: str, used: set[str]) -> str:
    names = [name, *(f"{name}{number}" for number in range(2, 100))]
    free = next(each for each in names if each not in used)
    used.add(free)
    return free


def _after(rests: Sequence[str], used: set[str]) -> str:
    """Return the expression of what stands behind stamps."""
    parts = []
    close = _common(rests, r"^[\])>\"'}]*(?:[:,;|]| -)?(?:\s+- (?=\S)|\s+)?")
    if close is None:
        close = r"[\s\])>\"'}:,;|-]*"
    parts.append(close)
    remaining = _cut(rests, close)
    for _ in range(_MOST_FIELDS):
        chosen = next(
            (
                field
                for field in _FIELDS
                if (field.names[0] not in used or len(field.names) > 1) and _fits(field, remaining, used)
            ),
            None,
        )
        if chosen is None:
            break
        expression = _renamed(chosen.expression, used)
        parts.append(expression)
        remaining = _cut(remaining, expression)
    pairs = _pairs(remaining, used)
    return "".join(parts) + (pairs or "(?P<message>.*)")


def _common(rests: Sequence[str], test: str) -> str | None:
    """Return the expression of the signs with which nearly all texts begin."""
    begins = Counter(re.sub(r"\s+", " ", match[0]) for tail in rests if (match := re.match(test, tail)))
    if not begins:
        return None
    begin, count = max(begins.items(), key=lambda pair: (pair[1], pair[0]))
    if count < _NEARLY_ALL * len(rests):
        return None
    return re.sub(" ", r"\\s+", escaped(begin)) if begin else ""


def _renamed(expression: str, used: set[str]) -> str:
    """Return an expression whose groups have free names, which are used then."""
    for name in re.findall(r"\(\?P<(\w+)>", expression):
        expression = expression.replace(
            f"(?P<{name}>", f"(?P<{_free(_NEXT.get(name, name) if name in used else name, used)}>"
        )
    return expression


_NEXT: Final = {"thread": "context", "pid": "tid"}


def _fits(field: _Field, rests: Sequence[str], used: set[str]) -> bool:
    if (
        not rests
        or ("level" in field.names and "level" in used)
        or ("host" in field.names and used & {"host", "level"})
    ):
        return False
    expression = re.compile(f"^{field.expression.replace(_LEVEL, f'(?P<level>(?i:{_LEVELS}))')}")
    matches = [expression.match(tail) for tail in rests]
    if sum(match is not None for match in matches) < _NEARLY_ALL * len(rests):
        return False
    # Words at which sentences begin are no loggers.
    return (
        field.names != ("logger",)
        or ":" not in field.expression
        or all(match is None or len(match[0]) <= 80 for match in matches)
    )


def _cut(rests: Sequence[str], expression: str) -> list[str]:
    compiled = re.compile(f"^{expression}")
    return [tail[match.end() :] for tail in rests if (match := compiled.match(tail))]


def _pairs(rests: Sequence[str], used: set[str]) -> str | None:
    """Return an expression for names with values, if most texts hold some; None if they do not.

    A value named as the message is the message; else the whole of them is.
    """
    for find, write in ((_PAIR, _pair), (_JSON_PAIR, _json_pair)):
        rows = [dict(re.findall(find, tail)) for tail in rests]
        if not rests or sum(bool(row) for row in rows) < _LEAST_WITH_PAIRS * len(rows):
            continue
        counts = Counter(name for row in rows for name in row)
        common = [name for name, count in counts.items() if count >= _LEAST_PAIRED * len(rows)]
        names = _in_one_order([[*row] for row in rows], common)
        if not names:
            continue
        said = next((name for name in names if name.lower() in ("msg", "message")), None)
        parts = []
        for name in names:
            quotes = {row[name].startswith('"') for row in rows if name in row}
            group = "message" if name == said else _free(re.sub(r"\W", "_", name), used)
            parts.append(write(name, group, quotes))
        return f"(?P<{'message' if said is None else _free('pairs', used)}>{''.join(parts)}.*)"
    return None


def _in_one_order(rows: Sequence[Sequence[str]], names: Sequence[str]) -> list[str]:
    """Return names that stand in all rows in one order."""
    ranks = {name: sorted(row.index(name) for row in rows if name in row) for name in names}
    kept: list[str] = []
    for name in sorted(names, key=lambda name: (ranks[name][len(ranks[name]) // 2], name)):
        if all(
            row.index(other) < row.index(name)
            for row in rows
            if name in row
            for other in kept
            if other in row
        ):
            kept.append(name)
    return kept[:_MOST_PAIRS]


def _pair(name: str, group: str, quotes: set[bool]) -> str:
    value = r'"(?:[^"\\]|\\.)*"'
    plain = r"[^\s,|})\]\"]*"
    if quotes == {True}:
        value = rf'"(?P<{group}>(?:[^"\\]|\\.)*)"'
    else:
        value = rf"(?P<{group}>{plain if quotes == {False} else f'{value}|{plain}'})"
    return rf"(?:(?:.*?[\s,|{{\[(])?{escaped(name)}={value})?"


def _json_pair(name: str, group: str, quotes: set[bool]) -> str:
    value = rf"(?P<{group}>-?[0-9.eE+]+|true|false)"
    if True in quotes:
        value = rf'"(?P<{group}>(?:[^"\\]|\\.)*)"'
    return rf'(?:.*?"{escaped(name)}": ?{value})?'
