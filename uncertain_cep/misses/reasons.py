"""The answer to why there is no match: reasons, nearest misses, and how they are shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from uncertain_cep.plurals import listed
from uncertain_cep.results.display import plain_text, visible

__all__ = ["Miss", "Move", "Reason", "WhyNot", "rank_of"]

_OF_TIMES: Final = ("order", "window", "time", "source order", "contradiction", "together", "forbidden")

_MOST_SHOWN: Final = 6
"""Moves that a text lists of one reason; the fields have all."""


@dataclass(frozen=True, slots=True)
class Move:
    """One bound, and by how much it would have to move.

    Attributes
    ----------
    kind : {"event", "length", "clock", "window", "condition"}
        The bound of an event's interval, that of its length, that of a clock's offset, WITHIN, or a condition
        on times.
    name : str
        The variable, of what lasts ``v.begin`` or ``v.end``, the source, ``WITHIN`` or the condition.
    event : object
        The id of the event; None for other bounds.
    side : {"earlier", "later", "shorter", "longer", "weaker"}
        The lower bound earlier or shorter, the upper bound or the window later or longer, or the condition
        weaker.
    ticks : int
    duration : str or None
        The same as a length of time; None if ticks have no known length.
    bound : str or None
        Where the bound would be then: a time or a tick, or a length.
    text : str
    """

    kind: str
    name: str
    event: Any
    side: str
    ticks: int
    duration: str | None
    bound: str | None
    text: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Reason:
    """A condition that fails in every possible world.

    Attributes
    ----------
    kind : str
        ``order``, ``window``, ``time`` (a condition on times) and ``source order`` (of an ordered source)
        fail by an amount; so does ``forbidden``, an event that is for certain where none may be. ``type``,
        ``predicate``, ``key``, ``existence``, ``count``, ``repeated``, ``candidates`` and ``contradiction``
        have none, and neither has ``together``: conditions each of which some world meets, but none meets
        all.
    what : str
        The condition, as the query writes it, or in words.
    variables : tuple of str
        The variables it is about.
    events : tuple
        The ids of the events it is about, in the same order.
    ticks : int or None
        By how many ticks one bound would have to move for this condition alone; None where none would do.
    duration : str or None
        The same as a length of time.
    text : str
        One sentence.
    moves : tuple of Move
        Each alone makes this condition possible.
    """

    kind: str
    what: str
    variables: tuple[str, ...]
    events: tuple[Any, ...]
    text: str
    ticks: int | None = None
    duration: str | None = None
    moves: tuple[Move, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, moves as dictionaries."""
        values: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return values | {"moves": [move.as_dict() for move in self.moves]}

    @property
    def is_of_time(self) -> bool:
        """Whether it is about when the events happened."""
        return self.kind in _OF_TIMES


@dataclass(frozen=True, slots=True)
class Miss:
    """Events that are no match, and why.

    Attributes
    ----------
    events : dict
        The id of the event of each variable: a list for a Kleene variable, None where it is left out.
    reasons : tuple of Reason
        At least one; what does not depend on times first, then by falling amount.
    ticks : int or None
        The least number of ticks by which the upper bounds of all times would have to be later, or those of
        what forbids moved, so that the times would do; 0 if they do. None where nothing would help.
    duration : str or None
    moves : tuple of Move
        Each alone makes the times of the match possible; empty where several bounds have to move.
    """

    events: dict[str, Any]
    reasons: tuple[Reason, ...]
    ticks: int | None
    duration: str | None = None
    moves: tuple[Move, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, reasons and moves as dictionaries."""
        return {
            "events": self.events,
            "ticks": self.ticks,
            "duration": self.duration,
            "reasons": [reason.as_dict() for reason in self.reasons],
            "moves": [move.as_dict() for move in self.moves],
        }

    @property
    def title(self) -> str:
        """The events that are not left out, and the amount, in one line."""
        taken = {name: value for name, value in self.events.items() if value is not None}
        shown = ", ".join(f"{name} = {_shown(value)}" for name, value in taken.items())
        failing = sum(not reason.is_of_time for reason in self.reasons)
        parts = []
        if failing:
            parts.append("a condition fails" if failing == 1 else f"{failing} conditions fail")
        if self.ticks is None:
            parts.append("no single amount of time would do")
        elif self.ticks:
            amount = self.duration or f"{self.ticks:,} tick{'' if self.ticks == 1 else 's'}"
            parts.append(f"{amount} missing")
        return f"{shown}: {', '.join(parts)}"


def rank_of(miss: Miss) -> tuple[int, bool, int]:
    """Return the key by which misses are sorted: failing conditions but for times, then the amount."""
    failing = sum(not reason.is_of_time for reason in miss.reasons)
    return failing, miss.ticks is None, miss.ticks or 0


@dataclass(frozen=True, slots=True, repr=False)
class WhyNot:
    """The answer of :func:`uncertain_cep.why_not`.

    Attributes
    ----------
    named : dict
        The events that were named, by variable, and values of partition attributes.
    misses : tuple of Miss
        The nearest misses with these events, best first; empty if some variable has no event at all.
    reasons : tuple of Reason
        Those of the nearest miss; without any, of the variables that have no event.
    notes : tuple of str
        What was not looked at.
    """

    named: dict[str, Any]
    misses: tuple[Miss, ...]
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, down to plain values."""
        return {
            "named": self.named,
            "misses": [miss.as_dict() for miss in self.misses],
            "reasons": [reason.as_dict() for reason in self.reasons],
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """Return the fields as a JSON object."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, default=plain_text)

    def __str__(self) -> str:
        return "\n".join(map(visible, self._lines()))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the text for a notebook, misses as a list."""
        items = []
        for miss in self.misses:
            reasons = "".join(f"<li>{escape(line)}</li>" for line in _lines_of(miss.reasons, miss.moves))
            items.append(f"<li>{escape(miss.title)}<ul>{reasons}</ul></li>")
        if not items:
            items = [f"<li>{escape(line)}</li>" for line in _lines_of(self.reasons, ())]
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<p>{escape(self._head)}</p><ol>{''.join(items)}</ol>{notes}"

    @property
    def _head(self) -> str:
        named = ", ".join(f"{name} = {_shown(value)}" for name, value in self.named.items())
        head = f"no match with {named}" if named else "no match"
        if len(self.misses) > 1:
            return f"{head}; the {len(self.misses)} nearest misses, best first"
        return head

    def _lines(self) -> Iterator[str]:
        yield self._head
        for number, miss in enumerate(self.misses, 1):
            yield f"{number}. {miss.title}"
            yield from (f"   {line}" for line in _lines_of(miss.reasons, miss.moves))
        if not self.misses:
            yield from (f"   {line}" for line in _lines_of(self.reasons, ()))
        yield from self.notes


def _lines_of(reasons: tuple[Reason, ...], moves: tuple[Move, ...]) -> Iterator[str]:
    """Yield a line for each reason, and one for the moves that do for all of them or for each."""
    for reason in reasons:
        yield reason.text
        if reason.moves and not moves:
            yield f"  possible if {_any_of(reason.moves)}"
    if moves:
        yield f"possible if {_any_of(moves)}"


def _any_of(moves: tuple[Move, ...]) -> str:
    texts = [move.text for move in moves[:_MOST_SHOWN]]
    return listed(texts).replace(" and ", " or ") if len(texts) == 2 else ", or ".join(texts)


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return json.dumps(value, default=plain_text)
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return "left out" if value is None else plain_text(value)
