"""Events, patterns, predicates and matches of the possible-worlds oracle: plain values without behaviour.

Nothing here, or anywhere in this package, is shared with the engine or the query language: an error
in either cannot hide in both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Literal

Value = int | float | str | bool | None
Identifier = int | str
Strategy = Literal[
    "skip_till_any_match",
    "skip_till_next_match",
    "partition_contiguity",
    "strict_contiguity",
]
Index = str
"""single, first, current, previous, last, all, before; the number of ``c[2]``; ``i-2`` and so on."""

_MENTION = re.compile(r"(?P<variable>\w+)(?:\[(?P<index>.*)\])?")
_INDICES: dict[str, Index] = {
    "": "all",
    "1": "first",
    "i": "current",
    "i-1": "previous",
    "..i-1": "before",
}


Law = list[tuple[int, Fraction]]
"""Ticks of positive probability, each with its probability."""


def law(lower: int, upper: int, pmf: tuple[Fraction, ...] | None) -> Law:
    """Return a distribution over an interval; without a pmf it is uniform."""
    length = upper - lower + 1
    weights = pmf if pmf is not None else (Fraction(1, length),) * length
    return [(lower + offset, weight) for offset, weight in enumerate(weights) if weight > 0]


def _check_law(lower: int, upper: int, pmf: tuple[Fraction, ...] | None, of: object) -> None:
    if lower > upper:
        raise ValueError(f"lower > upper: {of}")
    if pmf is not None and (len(pmf) != upper - lower + 1 or sum(pmf) != 1 or min(pmf) < 0):
        raise ValueError(f"not a distribution over the interval: {of}")


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """A source: one tick of ``[lower, upper]`` is added to what it says of each of its events.

    ``ordered``: its events happened in the order of their sequences.
    """

    lower: int
    upper: int
    pmf: tuple[Fraction, ...] | None = None
    ordered: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no distribution of offsets."""
        _check_law(self.lower, self.upper, self.pmf, self)

    def offsets(self) -> Law:
        """Return the possible offsets."""
        return law(self.lower, self.upper, self.pmf)


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """An event that happened at one tick of ``[lower, upper]`` (compared by identity, not by value).

    ``pmf`` holds the probability of each tick, or None for the uniform distribution; with a clock, of each
    tick of the event's own time. It happened at all with ``probability``.
    """

    type: str
    id: Identifier
    lower: int
    upper: int
    pmf: tuple[Fraction, ...] | None = None
    attributes: Mapping[str, Value] = field(default_factory=dict)
    clock: Clock | None = None
    sequence: int | None = None
    probability: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        """Refuse what is no distribution of times, or no probability."""
        _check_law(*self._own, self.pmf, self)
        if not 0 <= self.probability <= 1:
            raise ValueError(f"not a probability: {self}")

    @property
    def _own(self) -> tuple[int, int]:
        clock = self.clock
        return (
            (self.lower, self.upper)
            if clock is None
            else (self.lower - clock.lower, self.upper - clock.upper)
        )

    def __getitem__(self, name: str) -> Value:
        """Return an attribute; ``id``, ``type``, ``lower`` and ``upper`` are attributes too."""
        if name in ("id", "type", "lower", "upper"):
            part: Value = getattr(self, name)
            return part
        return self.attributes.get(name)

    def own_ticks(self) -> Law:
        """Return the possible times by the event's clock; without one they are those of the event."""
        return self.ticks() if self.clock is None else law(*self._own, self.pmf)

    def ticks(self) -> Law:
        """Return the ticks of positive probability, each with its probability."""
        if self.clock is None:
            return law(self.lower, self.upper, self.pmf)
        total: dict[int, Fraction] = {}
        for (offset, one), (own_tick, other) in product(self.clock.offsets(), self.own_ticks()):
            total[own_tick + offset] = total.get(own_tick + offset, Fraction(0)) + one * other
        return sorted(total.items())

    def is_before(self, tick: int, other: Event, other_tick: int) -> bool:
        """Tell whether it is before another event, where both happened at certain ticks."""
        if tick != other_tick or self.clock is None or self.clock is not other.clock:
            return tick < other_tick
        both = self.sequence is not None and other.sequence is not None
        return both and self.sequence < other.sequence  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class Component:
    """``Type v``, ``(T1|T2) v``, ``ANY v`` (no types), ``Type+ v[]`` (kleene) or ``!Type v`` (negated).

    It takes from ``least`` to ``most`` events; a Kleene one any number with ``most`` None. Negated ones of
    one name ``joint`` are a group, ``!SEQ(N n, M m)``: distinct events of all of them, in order, forbid
    together.
    """

    variable: str
    types: tuple[str, ...] = ()
    kleene: bool = False
    negated: bool = False
    least: int = 1
    most: int | None = None
    joint: str = ""

    def __post_init__(self) -> None:
        """Refuse ``!Type+``, which has no meaning."""
        if self.kleene and self.negated:
            raise ValueError("a negated component cannot be Kleene")


@dataclass(frozen=True, slots=True)
class Seq:
    """``SEQ(...)``: every event of an item is before every event of the next."""

    items: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class And:
    """``AND(...)``: all items, in any order, ties allowed."""

    items: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """``OR(...)``: the union of the matches of its branches."""

    items: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """``SEQ(...)?`` or ``OR(...)?``: the one item, or nothing in its place."""

    items: tuple[Pattern]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``SEQ(...){fewest,largest}`` or ``OR(...)``: the one item so often in a row, each time with an event.

    Its variables are Kleene ones, with one place an iteration.
    """

    items: tuple[Pattern]
    fewest: int = 1
    largest: int | None = None


Pattern = Component | Seq | And | Or | Option | Repeat


def one(types: str, variable: str) -> Component:
    """Return a single component; ``types`` as in ``"A"``, ``"A|B"`` or ``""`` for ANY."""
    return Component(variable, tuple(filter(None, types.split("|"))))


def plus(types: str, variable: str) -> Component:
    """Return a Kleene component."""
    return Component(variable, tuple(filter(None, types.split("|"))), kleene=True)


def no(types: str, variable: str) -> Component:
    """Return a negated component."""
    return Component(variable, tuple(filter(None, types.split("|"))), negated=True)


def seq(*items: Pattern) -> Seq:
    """Return ``SEQ(items)``."""
    return Seq(items)


def conj(*items: Pattern) -> And:
    """Return ``AND(items)``."""
    return And(items)


def disj(*items: Pattern) -> Or:
    """Return ``OR(items)``."""
    return Or(items)


@dataclass(frozen=True, slots=True)
class Mention:
    """A variable as a predicate mentions it: ``a``, ``c[1]``, ``c[i]``, ``c[i-1]``, ``c[c.LEN]``, ..."""

    variable: str
    index: Index

    @classmethod
    def read(cls, text: str) -> Mention:
        """Read a mention; a bare Kleene variable is told from a single one by the pattern."""
        match = _MENTION.fullmatch(text)
        if match is None:
            raise ValueError(f"not a mention: {text}")
        variable, index = match["variable"], match["index"]
        if index is None:
            return cls(variable, "single")
        if index == f"{variable}.LEN":
            return cls(variable, "last")
        return cls(variable, _INDICES.get(index, index))


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition of WHERE.

    Attributes
    ----------
    mentions : tuple of Mention
    test : callable
        Takes one argument for each mention: the event, or for ``c[]`` and ``c[..i-1]`` the tuple of
        events. Anything but True (False, or None for SQL's unknown) means that it does not hold.
    """

    mentions: tuple[Mention, ...]
    test: Callable[..., bool | None]
    waits: frozenset[str] = frozenset()
    """The variables of a repeated group that it speaks of as a whole: no take of one of them can fail it."""

    def variables(self) -> frozenset[str]:
        """Return the variables it mentions."""
        return frozenset(mention.variable for mention in self.mentions)

    def indices(self, variable: str) -> frozenset[Index]:
        """Return the ways in which it mentions a variable."""
        return frozenset(mention.index for mention in self.mentions if mention.variable == variable)

    def behind(self, variable: str) -> int:
        """Return how far behind the current element of a variable it looks, by ``c[i-2]`` and so on."""
        return max((int(index[2:]) for index in self.indices(variable) if index.startswith("i-")), default=0)


def where(mentions: str, test: Callable[..., bool | None]) -> Predicate:
    """Return a predicate; ``mentions`` separated by spaces, as in ``where("a c[i]", lambda a, c: ...)``."""
    return Predicate(tuple(Mention.read(text) for text in mentions.split()), test)


@dataclass(frozen=True, slots=True)
class Query:
    """A question, without output controls (those are functions in ``outputs``).

    Attributes
    ----------
    pattern : Pattern
    window : int
        WITHIN, in ticks.
    where : tuple of Predicate
    strategy : Strategy
    agree : tuple of str
        The attributes of ``[attr]``.
    chained : tuple of str
        Attributes equated across all components by predicates in ``where``; the oracle cannot look
        into a callable, so whoever writes the query says so. They make a partition as ``agree`` does.
    times : tuple of Predicate
        Conditions on times, asked in each world: their tests take pairs of an event and its tick.
    gaps : tuple of (variable, variable, Strategy)
        Strategies of single gaps; all others, ``strategy`` included, skip till any match then.
    """

    pattern: Pattern
    window: int
    where: tuple[Predicate, ...] = ()
    strategy: Strategy = "skip_till_any_match"
    agree: tuple[str, ...] = ()
    chained: tuple[str, ...] = ()
    times: tuple[Predicate, ...] = ()
    gaps: tuple[tuple[str, str, Strategy], ...] = ()

    @property
    def partition(self) -> tuple[str, ...]:
        """The attributes whose values make a partition."""
        return self.agree + self.chained


Entry = Identifier | tuple[Identifier | None, ...] | None
"""An event id; a Kleene variable's ids in order, None in an iteration without it; None for a variable of
another OR branch."""

Signature = tuple[tuple[str, Entry], ...]
Key = tuple[tuple[Value, ...], Signature]
"""Values of the partition attributes, and signature: ids are unique only within a partition."""


@dataclass(frozen=True, slots=True)
class Match:
    """One row of the answer.

    Attributes
    ----------
    partition : tuple of Value
        Values of ``Query.partition``.
    signature : Signature
        Every positive variable in pattern order.
    range_lower, range_upper : int
    confidence : Fraction
    first_times : mapping of int to Fraction
        Probability that it is a match and its first event happened at that tick.
    """

    partition: tuple[Value, ...]
    signature: Signature
    range_lower: int
    range_upper: int
    confidence: Fraction
    first_times: Mapping[int, Fraction]

    @property
    def ids(self) -> tuple[Entry, ...]:
        """The signature's ids without the variables."""
        return tuple(entry for _, entry in self.signature)
