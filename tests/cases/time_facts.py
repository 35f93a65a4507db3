"""Worked facts about conditions on times."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from tests.oracle import Event, no, one, plus, where
from tests.oracle.examples import event
from uncertain_cep.testing.model import Component, Predicate, Strategy

Answer = dict[tuple[object, ...], tuple[int, int, Fraction]]


def later(mentions: str, low: int | None, high: int | None) -> Predicate:
    """Return bounds, inclusive, on the time of the first mention, less that of a second one."""

    def test(*times: tuple[Event, int]) -> bool:
        difference = times[0][1] - sum(tick for _, tick in times[1:])
        return (low is None or difference >= low) and (high is None or difference <= high)

    return where(mentions, test)


class Fact(NamedTuple):
    """A query by its conditions on times, as text and for the oracle, and what it answers."""

    components: tuple[Component, ...]
    events: tuple[Event, ...]
    text: str
    times: tuple[Predicate, ...]
    expected: Answer
    window: int = 20
    strategy: Strategy = "skip_till_any_match"


A, B, C = one("A", "a"), one("B", "b"), one("C", "c")
N, M = no("N", "n"), no("N", "m")
AB = (event("A", 1, 0, 9), event("B", 2, 0, 9))
ABC = (*AB, event("C", 3, 0, 9))
NEXT = (event("A", 0, 0), event("B", 1, 10), event("B", 2, 1, 6))
TAKEN = (event("A", 0, 0), event("B", 9, 1), event("B", 1, 5), event("C", 2, 8))
BETWEEN = (event("A", 0, 0), event("B", 1, 10), event("N", 2, 1, 6))
BEHIND = (event("A", 0, 0), event("B", 1, 10), event("N", 2, 11, 20))
BOTH = (event("A", 0, 0), event("B", 1, 9), event("N", 2, 1, 8))
SERIES = (event("B", 1, 0, 2), event("B", 2, 1, 3), event("B", 3, 2, 4))
CHAIN = (event("A", 0, 0), event("C", 2, 10), event("B", 1, 0, 99))
IN_STEPS = "TIME(b) - TIME(a) BETWEEN 2 AND 4 AND TIME(c) - TIME(b) BETWEEN 2 AND 4"
STEPS = (later("b a", 2, 4), later("c b", 2, 4))


FACTS = {
    "at most": Fact(
        (A, B), AB, "TIME(b) - TIME(a) <= 3", (later("b a", None, 3),), {(1, 2): (0, 9, Fraction(6, 25))}
    ),
    "exactly": Fact(
        (A, B), AB, "TIME(b) = TIME(a) + 3", (later("b a", 3, 3),), {(1, 2): (0, 9, Fraction(7, 100))}
    ),
    "at once": Fact((A, B), AB, "TIME(b) - TIME(a) = 0", (later("b a", 0, 0),), {}),
    "until": Fact(
        (A, B), AB, "TIME(b) - TIME(a) <= 3 AND 4 >= TIME(b)", (later("b a", None, 3), later("b", None, 4)),
        {(1, 2): (0, 4, Fraction(9, 100))},
    ),
    "window": Fact((A, B), AB, "", (), {(1, 2): (0, 9, Fraction(17, 100))}, 3),
    "steps": Fact((A, B, C), ABC, IN_STEPS, STEPS, {(1, 2, 3): (0, 9, Fraction(9, 250))}),
    "chord": Fact(
        (A, B, C), ABC, f"{IN_STEPS} AND TIME(c) - TIME(a) >= 7", (*STEPS, later("c a", 7, None)),
        {(1, 2, 3): (0, 9, Fraction(1, 125))},
    ),
    "next": Fact(
        (A, B), NEXT, "TIME(b) - TIME(a) >= 4", (later("b a", 4, None),),
        {(0, 1): (0, 10, Fraction(1, 2)), (0, 2): (0, 6, Fraction(1, 2))}, strategy="skip_till_next_match",
    ),
    "next, exactly": Fact(
        (A, B), NEXT, "TIME(b) - TIME(a) = 10", (later("b a", 10, 10),), {(0, 1): (0, 10, Fraction(1))},
        strategy="skip_till_next_match",
    ),
    "strict": Fact(
        (A, B), NEXT, "TIME(b) - TIME(a) >= 4", (later("b a", 4, None),), {(0, 2): (0, 6, Fraction(1, 2))},
        strategy="strict_contiguity",
    ),
    "taken": Fact(
        (A, B, C), TAKEN, "TIME(c) - TIME(b) <= 4", (later("c b", None, 4),), {},
        strategy="skip_till_next_match",
    ),
    "not taken": Fact(
        (A, B, C), TAKEN, "TIME(c) - TIME(b) <= 4", (later("c b", None, 4),), {(0, 1, 2): (0, 8, Fraction(1))}
    ),
    "negation": Fact(
        (A, N, B), BETWEEN, "TIME(b) - TIME(n) <= 6", (later("b n", None, 6),),
        {(0, 1): (0, 10, Fraction(1, 2))},
    ),
    "trailing": Fact(
        (A, B, N), BEHIND, "TIME(n) - TIME(b) <= 3", (later("n b", None, 3),),
        {(0, 1): (0, 10, Fraction(7, 10))},
    ),
    "trailing, window": Fact(
        (A, B, N), BEHIND, "TIME(n) - TIME(b) <= 3", (later("n b", None, 3),),
        {(0, 1): (0, 10, Fraction(9, 10))}, 12,
    ),
    "two negations": Fact(
        (A, N, M, B), BOTH, "TIME(n) - TIME(a) <= 3 AND TIME(b) - TIME(m) <= 3",
        (later("n a", None, 3), later("b m", None, 3)), {(0, 1): (0, 9, Fraction(1, 4))},
    ),
    "two that overlap": Fact(
        (A, N, M, B), BOTH, "TIME(n) - TIME(a) <= 5 AND TIME(b) - TIME(m) <= 5",
        (later("n a", None, 5), later("b m", None, 5)), {},
    ),
    "series": Fact(
        (plus("B", "b"),), SERIES, "TIME(b[i]) - TIME(b[i-1]) <= 1 AND count(b[]) >= 2",
        (later("b[i] b[i-1]", None, 1),),
        {
            ((1, 2),): (0, 3, Fraction(1, 3)), ((1, 2, 3),): (0, 4, Fraction(1, 9)),
            ((1, 3),): (1, 3, Fraction(2, 9)), ((1, 3, 2),): (1, 3, Fraction(1, 27)),
            ((2, 1),): (1, 2, Fraction(1, 9)), ((2, 1, 3),): (1, 3, Fraction(1, 27)),
            ((2, 3),): (1, 4, Fraction(1, 3)), ((3, 2),): (2, 3, Fraction(1, 9)),
        },
    ),
    "no product of pairs": Fact(
        (A, B, C), CHAIN, "TIME(b) - TIME(a) <= 5 AND TIME(c) - TIME(b) BETWEEN 5 AND 9",
        (later("b a", None, 5), later("c b", 5, 9)), {(0, 1, 2): (0, 10, Fraction(1, 20))},
    ),
}  # fmt: skip
