"""Detections of Sigma, written as conditions of this language on one event."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from ipaddress import IPv4Network, ip_network
from typing import Any, Final, NoReturn

__all__ = ["SigmaError", "condition_of"]

_COMPARISONS: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_PLACES: Final = {"contains": ("%", "%"), "startswith": ("", "%"), "endswith": ("%", "")}
_FLAGS: Final = ("i", "m", "s")
_BESIDE: Final = ("all", "cased")
_MODIFIERS: Final = (*_PLACES, "re", "cidr", *_COMPARISONS, "exists", *_BESIDE)
_TOKEN: Final = re.compile(r"\s*([()|]|[^\s()|]+)")
_DEEPEST: Final = 50
"""Most parentheses of a condition inside each other."""


class SigmaError(Exception):
    """A rule of Sigma cannot be read, or says what is not answered; the text says why."""


def condition_of(detection: Any, column: Callable[[str], str]) -> str:
    """Return the condition of a detection, as this language writes it.

    Parameters
    ----------
    detection : mapping
        The value of ``detection`` in a rule.
    column : callable
        The text that stands for a field, such as ``a.cmd``.

    Raises
    ------
    SigmaError
        If it has what is not answered.

    Notes
    -----
    Whether an event is detected has two values: of a field that is not there every comparison is false. So
    what stands behind ``not`` is false where it is null, ``COALESCE(x, FALSE)``; ``and`` and ``or`` of what
    may be null are true in the same cases as those of false in its place.
    """
    if not isinstance(detection, Mapping) or "condition" not in detection:
        raise SigmaError("detection has no condition")
    if "timeframe" in detection:
        raise SigmaError("timeframe: write a correlation rule with a timespan")
    condition = detection["condition"]
    if not isinstance(condition, str):
        raise SigmaError("condition is one text: join several with or")
    parts = {str(name): part for name, part in detection.items() if name != "condition"}
    return _Condition(condition, parts, column).text()


class _Condition:
    """The condition of a detection, word by word."""

    def __init__(self, text: str, parts: Mapping[str, Any], column: Callable[[str], str]) -> None:
        self._words = _TOKEN.findall(text)
        self._parts, self._column, self._at, self._depth = parts, column, 0, 0

    def text(self) -> str:
        """Return the condition as it is written here."""
        written = self._either()
        if self._at < len(self._words):
            self._refuse_word()
        return written

    def _word(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _accept(self, *words: str) -> bool:
        here = [word.lower() for word in self._words[self._at : self._at + len(words)]]
        if here != list(words):
            return False
        self._at += len(words)
        return True

    def _refuse_word(self) -> NoReturn:
        word = self._word()
        if word == "|":
            raise SigmaError(
                "condition: | counts or looks nearby, as Sigma did before correlation rules: write one, of "
                "type event_count, value_count or temporal"
            )
        shown = repr(word) if word else "the end"
        raise SigmaError(f"condition: {shown} stands where the name of a detection is expected")

    def _either(self) -> str:
        parts = [self._both()]
        while self._accept("or"):
            parts.append(self._both())
        return _joined("OR", parts)

    def _both(self) -> str:
        parts = [self._negated()]
        while self._accept("and"):
            parts.append(self._negated())
        return _joined("AND", parts)

    def _negated(self) -> str:
        times = 0
        while self._accept("not"):
            times += 1
        written = self._single()
        # Twice is that it is detected; the first makes the null of a missing field false.
        return f"NOT COALESCE({written}, FALSE)" if times % 2 else written

    def _single(self) -> str:
        if self._accept("("):
            self._depth += 1
            if self._depth > _DEEPEST:
                raise SigmaError(f"condition: more than {_DEEPEST} parentheses inside each other")
            written = self._either()
            if not self._accept(")"):
                raise SigmaError("condition: a parenthesis is not closed")
            self._depth -= 1
            return written
        for word, sign in (("1", "OR"), ("any", "OR"), ("all", "AND")):
            if self._accept(word, "of"):
                return _joined(sign, [self._part(name) for name in self._names()])
        if self._word().isdecimal():
            raise SigmaError(f"condition: {self._word()} of: 1 of and all of are answered")
        if self._word() not in self._parts:
            self._refuse_word()
        self._at += 1
        return self._part(self._words[self._at - 1])

    def _names(self) -> list[str]:
        """Return the names that a pattern such as ``selection*``, or them, stands for."""
        pattern = self._word()
        self._at += 1
        if pattern.lower() == "them":
            names = [name for name in self._parts if not name.startswith("_")]
        else:
            names = [name for name in self._parts if fnmatchcase(name, pattern.replace("[", "[[]"))]
        if not names:
            raise SigmaError(f"condition: no detection is called {pattern or 'so'}")
        return names

    def _part(self, name: str) -> str:
        part = self._parts[name]
        try:
            if isinstance(part, Mapping):
                return self._fields(part)
            if isinstance(part, list) and part and all(isinstance(item, Mapping) for item in part):
                return _joined("OR", [self._fields(item) for item in part])
            raise SigmaError("keywords search a whole line: name a field, such as message|contains")
        except SigmaError as error:
            raise SigmaError(f"{name}: {error}") from None

    def _fields(self, fields: Mapping[Any, Any]) -> str:
        if not fields:
            raise SigmaError("it has no fields")
        return _joined("AND", [self._field(key, value) for key, value in fields.items()])

    def _field(self, key: Any, value: Any) -> str:
        if not isinstance(key, str):
            raise SigmaError(f"the name of a field is text, and {key!r} is none")
        name, *modifiers = key.split("|")
        if not name:
            raise SigmaError(f"{key}: keywords search a whole line: name a field")
        try:
            return _compared(self._column(name), modifiers, value)
        except SigmaError as error:
            raise SigmaError(f"{key}: {error}") from None


def _joined(sign: str, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({f' {sign} '.join(parts)})"


def _compared(column: str, modifiers: list[str], value: Any) -> str:
    """Return the condition of one field."""
    flags = [modifier for modifier in modifiers if modifier in _FLAGS and "re" in modifiers]
    for modifier in modifiers:
        if modifier not in (*_MODIFIERS, *flags):
            raise SigmaError(f"the modifier {modifier} is not answered: {', '.join(_MODIFIERS)} are")
    kinds = [modifier for modifier in modifiers if modifier not in (*_BESIDE, *flags)]
    if len(kinds) > 1:
        raise SigmaError(f"{kinds[0]} and {kinds[1]} do not go together")
    kind = kinds[0] if kinds else "equals"
    values = value if isinstance(value, list) else [value]
    if not values:
        raise SigmaError("it has no value")
    if kind == "exists":
        if not isinstance(value, bool):
            raise SigmaError("exists is true or false")
        return f"{column} IS {'NOT ' * value}NULL"
    if kind == "equals" and "all" not in modifiers and all(map(_is_number, values)) and len(values) > 1:
        return f"{column} IN ({', '.join(map(str, values))})"
    like = "LIKE" if "cased" in modifiers else "ILIKE"
    parts = [_of_value(column, kind, one, like, "".join(flags)) for one in values]
    return _joined("AND" if "all" in modifiers else "OR", parts)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


def _of_value(column: str, kind: str, value: Any, like: str, flags: str) -> str:
    """Return the condition that a field has to one value."""
    if kind in _COMPARISONS:
        if not _is_number(value):
            raise SigmaError(f"{kind} takes a number, and {value!r} is none")
        return f"{column} {_COMPARISONS[kind]} {value}"
    if kind == "equals" and value is None:
        return f"{column} IS NULL"
    if kind == "equals" and isinstance(value, bool):
        return f"{column} = {str(value).upper()}"
    if kind == "equals" and _is_number(value):
        return f"{column} = {value}"
    if not isinstance(value, str) and not _is_number(value):
        raise SigmaError(f"{value!r} is no text and no number")
    text = str(value)
    if kind == "re":
        return f"{column} REGEXP {_quoted(f'(?{flags}){text}' if flags else text)}"
    if kind == "cidr":
        return f"{column} REGEXP {_quoted(_addresses(text))}"
    before, behind = _PLACES.get(kind, ("", ""))
    pattern, escapes = _pattern(text)
    return f"{column} {like} {_quoted(before + pattern + behind)}" + r" ESCAPE '\'" * escapes


def _quoted(text: str) -> str:
    if len(text.splitlines()) > 1 or text.endswith(("\n", "\r")):
        raise SigmaError(f"{text!r}: a text of several lines is not answered")
    return "'" + text.replace("'", "''") + "'"


def _pattern(text: str) -> tuple[str, bool]:
    r"""Return a pattern of LIKE for a text with wildcards, and whether it has ``\`` as an escape."""
    parts: list[str] = []
    place = 0
    while place < len(text):
        sign = text[place]
        if sign == "\\" and text[place + 1 : place + 2] in ("\\", "*", "?"):
            place += 1
            parts.append(_literal(text[place]))
        else:
            parts.append({"*": "%", "?": "_"}.get(sign) or _literal(sign))
        place += 1
    return "".join(parts), any(part[0] == "\\" for part in parts)


def _literal(sign: str) -> str:
    return f"\\{sign}" if sign in "\\%_" else sign


def _addresses(text: str) -> str:
    """Return a regular expression of the addresses of a network, such as 10.0.0.0/12."""
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise SigmaError(f"{text} is no network such as 10.0.0.0/8") from None
    if not isinstance(network, IPv4Network):
        raise SigmaError(f"{text}: networks of IPv4 are answered")
    octets = str(network.network_address).split(".")
    whole, bits = divmod(network.prefixlen, 8)
    parts: Iterable[str] = octets[:whole]
    if bits:
        first = int(octets[whole])
        numbers = range(first, first + 2 ** (8 - bits))
        parts = [*parts, f"({'|'.join(map(str, numbers))})"]
    parts = [*parts]
    return "^" + r"\.".join([*parts, *["[0-9]{1,3}"] * (4 - len(parts))]) + "$"
