"""Cases some of whose events may not have happened, and worked facts about them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st

from tests.cases.cases import Trace
from tests.cases.sampling import sampled_from
from tests.oracle import Event, no, one, plus
from tests.oracle.examples import event
from uncertain_cep.testing.model import Component, Strategy

__all__ = ["FACTS", "Fact", "doubtful"]

AnyCase = TypeVar("AnyCase", bound=Any)

_HALF = Fraction(1, 2)
# What float64 holds is the very number: of one less a probability no digit may be lost. None is as small as
# the relative 1e-9 that HAVING passes over.
_CHANCES = [
    Fraction(1), Fraction(1), _HALF, _HALF, Fraction(0.3), Fraction(0.9), Fraction(1e-8), Fraction(1 - 1e-8),
    Fraction(0),
]  # fmt: skip


@st.composite
def doubtful(draw: st.DrawFn, cases: st.SearchStrategy[AnyCase]) -> AnyCase:
    """Draw a case with probabilities: of few events or all, tiny, 1, 0, and of events that are else alike."""
    case = draw(cases)
    events = list(case.trace.events)
    chances = draw(sampled_from([_CHANCES, _CHANCES, [_HALF], [Fraction(1), Fraction(0.3)]]))
    events = [replace(event, probability=draw(sampled_from(chances))) for event in events]
    if events and draw(st.integers(0, 5)) == 0:
        alike = draw(st.integers(0, len(events) - 1))
        numbered = [event for event in events if isinstance(event.id, int)]
        if len(numbered) == len(events) and len(events) < 6:
            events.append(
                replace(
                    events[alike], id=99, probability=draw(sampled_from(_CHANCES)),
                )
            )  # fmt: skip
    changed: AnyCase = replace(case, trace=Trace(tuple(events), case.trace.types))
    return changed


class Fact(NamedTuple):
    """A pattern, its events, and what it answers."""

    components: tuple[Component, ...]
    events: tuple[Event, ...]
    expected: dict[tuple[object, ...], tuple[int, int, Fraction]]
    window: int = 20
    strategy: Strategy = "skip_till_any_match"


A, B, C, N = one("A", "a"), one("B", "b"), one("C", "c"), no("N", "n")
_ENDS = (event("A", 0, 0), event("B", 1, 10))
_SERIES = (event("A", 0, 0), event("B", 2, 2, probability=_HALF), event("B", 4, 4, probability=_HALF))

FACTS = {
    "matched": Fact(
        (A, B), (event("A", 0, 0, probability=_HALF), event("B", 1, 10, probability=Fraction(1, 4))),
        {(0, 1): (0, 10, Fraction(1, 8))},
    ),
    "never": Fact((A, B), (event("A", 0, 0), event("B", 1, 10, probability=0)), {}),
    "negation": Fact(
        (A, N, B), (*_ENDS, event("N", 2, 1, 6, probability=_HALF)), {(0, 1): (0, 10, _HALF)}
    ),
    "negation for certain": Fact((A, N, B), (*_ENDS, event("N", 2, 1, 6)), {}),
    "next": Fact(
        (A, B), (*_ENDS, event("B", 2, 1, 6, probability=Fraction(1, 4))),
        {(0, 1): (0, 10, Fraction(3, 4)), (0, 2): (0, 6, Fraction(1, 4))}, strategy="skip_till_next_match",
    ),
    "strict": Fact(
        (A, B), (*_ENDS, event("X", 2, 1, 6, probability=Fraction(1, 4))), {(0, 1): (0, 10, Fraction(3, 4))},
        strategy="strict_contiguity",
    ),
    "trailing": Fact(
        (A, B, N), (*_ENDS, event("N", 2, 11, 20, probability=_HALF)),
        {(0, 1): (0, 10, Fraction(11, 20))},
    ),
    "series, next": Fact(
        (A, plus("B", "b"), C), (*_SERIES, event("C", 9, 9)),
        {
            (0, (2,), 9): (0, 9, _HALF), (0, (4,), 9): (0, 9, Fraction(1, 4)),
            (0, (2, 4), 9): (0, 9, Fraction(1, 4)),
        },
        strategy="skip_till_next_match",
    ),
}  # fmt: skip
