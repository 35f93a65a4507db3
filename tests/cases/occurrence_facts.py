"""Probabilities of at least one match that were worked out by hand, and the traces that they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from tests.oracle.examples import event
from uncertain_cep.testing.counted_worlds import Group
from uncertain_cep.testing.model import (
    Clock,
    Component,
    Event,
    Predicate,
    Query,
    Strategy,
    no,
    one,
    seq,
    where,
)

__all__ = ["FACTS", "Fact"]

_NEXT: Final = "skip_till_next_match"


@dataclass(frozen=True)
class Fact:
    """A pattern, a trace, and the probability of so many matches of each group."""

    pattern: str
    components: tuple[Component, ...]
    events: tuple[Event, ...]
    expected: Mapping[Group, Fraction]
    window: int = 20
    strategy: Strategy = "skip_till_any_match"
    where: tuple[Predicate, ...] = ()
    conditions: tuple[str, ...] = ()
    """What ``where`` is in the query language."""
    by: tuple[str, ...] = ()
    every: int | None = None
    at_least: int = 1

    @property
    def query(self) -> Query:
        """The query in the oracle's words."""
        return Query(seq(*self.components), self.window, self.where, self.strategy)

    @property
    def text(self) -> str:
        """The query in the query language."""
        names = ", ".join(component.variable for component in self.components if not component.negated)
        conditions_texts = [*self.conditions]
        if self.strategy != "skip_till_any_match":
            conditions_texts.insert(0, f"{self.strategy}({names})")
        condition = f" WHERE {' AND '.join(conditions_texts)}" if conditions_texts else ""
        counted = f" OF AT LEAST {self.at_least} MATCHES" if self.at_least > 1 else ""
        by = f" BY {', '.join(self.by)}" if self.by else ""
        every = "" if self.every is None else f" EVERY {self.every}"
        return (
            f"PATTERN {self.pattern}{condition} WITHIN {self.window} RETURN PROBABILITY{counted}{by}{every}"
        )


_A, _B, _C = one("A", "a"), one("B", "b"), one("C", "c")
_AB: Final = ("SEQ(A a, B b)", (_A, _B))
_ABC: Final = ("SEQ(A a, B b, C c)", (_A, _B, _C))
_ANB = "SEQ(A a, !N n, B b)", (_A, no("N", "n"), _B)
_HALF: Final = Fraction(1, 2)


def _all(numerator: int, denominator: int = 1) -> Mapping[Group, Fraction]:
    """Return the answer of one group of all matches."""
    return {((), None): Fraction(numerator, denominator)}


_ONE_AND_TWO = (event("A", 1, 0, 9), event("B", 2, 0, 9), event("B", 3, 0, 9))
_TWO_AND_TWO = tuple(event(type, id, 0, 4) for type, id in (("A", 1), ("A", 2), ("B", 3), ("B", 4)))
_BY_TWO = (event("A", 1, 0, 3), event("A", 2, 2, 5), event("B", 3, 1, 6))
_BUCKETS = (event("A", 1, 3, 6), event("B", 2, 4, 9), event("B", 3, 4, 9))
_NEXT_ONE = (event("A", 1, 0), event("B", 2, 1, 4), event("B", 3, 1, 4))
_KEYS: Final = ("a.k = c.k",)
_AGREE: Final = (where("a c", lambda a, c: a["k"] == c["k"]),)


def _tasks(*clocks: Clock) -> tuple[Event, ...]:
    """Return two tasks that begin and end by clocks, and an event that is by none."""
    return (
        event("A", 1, 0, clock=clocks[0], k=1),
        event("C", 2, 4, clock=clocks[0], k=1),
        event("A", 3, 5, clock=clocks[1], k=2),
        event("C", 4, 9, clock=clocks[1], k=2),
        event("B", 5, 0, 9, k=None),
    )


def _spoiled(b: int) -> tuple[Event, ...]:
    """Return a match that ends at 10, one that ends at ``b``, and what may spoil them."""
    return event("A", 1, 0), event("B", 2, b), event("B", 3, 10), event("N", 4, 1, 20)


_CLOCK = Clock(-2, 2)

FACTS: Final[Mapping[str, Fact]] = {
    "one and two": Fact(*_AB, _ONE_AND_TWO, _all(123, 200)),
    "one and two, twice": Fact(*_AB, _ONE_AND_TWO, _all(57, 200), at_least=2),
    "two and two": Fact(*_AB, _TWO_AND_TWO, _all(94, 125)),
    "two and two, near": Fact(*_AB, _TWO_AND_TWO, _all(12, 25), window=2),
    "doubtful": Fact(
        *_AB,
        (event("A", 1, 0), *(event("B", id, 5, probability=_HALF) for id in (2, 3))),
        _all(3, 4),
    ),
    "exclusive": Fact(
        *_ABC, (event("A", 1, 0), event("C", 2, 10), event("B", 3, -5, 4), event("B", 4, 5, 14)), _all(7, 10)
    ),
    "exclusive, ends uncertain": Fact(
        *_ABC,
        (event("A", 1, -2, 2), event("C", 2, 8, 12), event("B", 3, -5, 4), event("B", 4, 5, 14)),
        _all(7, 10),
    ),
    "next": Fact(*_AB, _NEXT_ONE, _all(1), strategy=_NEXT),
    "any, as next": Fact(*_AB, _NEXT_ONE, _all(1)),
    "next, a tie": Fact(*_AB, _NEXT_ONE, _all(1, 4), strategy=_NEXT, at_least=2),
    "spoiled together": Fact(*_ANB, _spoiled(10), _all(11, 20)),
    "spoiled one by one": Fact(*_ANB, _spoiled(5), _all(4, 5)),
    "buckets": Fact(
        *_AB, _BUCKETS, {((), 0): Fraction(71, 144), ((), 5): Fraction(59, 144)}, every=5
    ),
    "buckets, twice": Fact(
        *_AB, _BUCKETS, {((), 0): Fraction(61, 144), ((), 5): Fraction(25, 144)}, every=5, at_least=2
    ),
    "by the first event": Fact(
        *_AB, _BY_TWO, {((1,), None): Fraction(3, 4), ((2,), None): Fraction(5, 12)}, by=("a",)
    ),
    "of two first events": Fact(*_AB, _BY_TWO, _all(73, 96)),
    "one type": Fact(
        "SEQ(A a, A b)", (_A, one("A", "b")), tuple(event("A", id, 0, 2) for id in (1, 2, 3)), _all(8, 9)
    ),
    "one type, never alone": Fact(
        "SEQ(A a, A b)", (_A, one("A", "b")), tuple(event("A", id, 0, 2) for id in (1, 2, 3)), _all(8, 9),
        at_least=2,
    ),
    "one clock": Fact(*_ABC, _tasks(_CLOCK, _CLOCK), _all(14, 25), where=_AGREE, conditions=_KEYS),
    "a clock each": Fact(*_ABC, _tasks(_CLOCK, Clock(-2, 2)), _all(68, 125), where=_AGREE, conditions=_KEYS),
    "exclusive times of one event": Fact(
        *_ABC,
        (
            event("A", 1, 0, k=1), event("C", 2, 5, k=1), event("A", 3, 5, k=2), event("C", 4, 10, k=2),
            event("B", 5, 1, 9, k=None),
        ),
        _all(8, 9),
        where=_AGREE, conditions=_KEYS,
    ),
}  # fmt: skip
"""The worked facts, by name; uniform times."""
