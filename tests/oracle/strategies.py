"""Hypothesis strategies for tiny traces and patterns with every construct, to compare the oracle's forms."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from uncertain_cep.testing.model import (
    And,
    Clock,
    Component,
    Event,
    Mention,
    Or,
    Pattern,
    Predicate,
    Query,
    Seq,
    Strategy,
)
from uncertain_cep.testing.patterns import components, set_variables

_TYPES = ("A", "B")
_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class Compare:
    """A test of two mentions' ``x`` (of several elements: its sum); null makes it unknown."""

    relation: str

    @staticmethod
    def _total(side: Event | tuple[Event, ...]) -> int | None:
        values = [event["x"] for event in (side if isinstance(side, tuple) else (side,))]
        return None if None in values else sum(value for value in values if isinstance(value, int))

    def __call__(self, left: Event | tuple[Event, ...], right: Event | tuple[Event, ...]) -> bool | None:
        """Return whether the relation holds, or None."""
        totals = self._total(left), self._total(right)
        return None if None in totals else bool(_RELATIONS[self.relation](*totals))


@st.composite
def pmfs(draw: st.DrawFn, length: int) -> tuple[Fraction, ...] | None:
    """Draw None (uniform) or probabilities of small denominators, zeros included."""
    if draw(st.booleans()):
        return None
    weights = draw(st.lists(st.integers(0, 2), min_size=length, max_size=length).filter(any))
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


@st.composite
def traces(draw: st.DrawFn) -> list[Event]:
    """Draw a few events that overlap, tie and touch a lot."""
    events = []
    for id in range(draw(st.sampled_from([0, 1, 2, 3, 4, 4, 4, 4]))):
        lower = draw(st.integers(0, 4))
        length = draw(st.sampled_from([1, 2, 2, 3, 3]))
        attributes = {
            "x": draw(st.sampled_from([0, 1, 2, None])),
            "k": draw(st.sampled_from([1, 1, 2, None])),
        }
        events.append(
            Event(
                draw(st.sampled_from(_TYPES)),
                id,
                lower,
                lower + length - 1,
                draw(pmfs(length)),
                attributes,
            )
        )
    return events


@st.composite
def clocked(draw: st.DrawFn, *, ordered: bool = False) -> list[Event]:
    """Draw a trace some of whose events share clocks, with sequences, pmfs and perhaps ordered clocks."""
    clocks = []
    for _ in range(2):
        lower, length = draw(st.integers(-2, 1)), draw(st.sampled_from([1, 2, 3, 4]))
        is_ordered = ordered and draw(st.booleans())
        clocks.append(Clock(lower, lower + length - 1, draw(pmfs(length)), is_ordered))
    events = []
    for event in draw(traces()):
        clock = draw(st.sampled_from([None, clocks[0], clocks[0], clocks[1]]))
        if clock is None:
            events.append(event)
            continue
        pmf, upper = (event.pmf, event.upper) if draw(st.booleans()) else (None, event.lower)
        moved = (event.lower + clock.lower, upper + clock.upper)
        sequence = draw(st.sampled_from([None, 1, 2, 3]))
        events.append(replace(event, lower=moved[0], upper=moved[1], pmf=pmf, clock=clock, sequence=sequence))
    return events


@st.composite
def doubtful(draw: st.DrawFn, events: st.SearchStrategy[list[Event]]) -> list[Event]:
    """Draw a trace some of whose events may not have happened; never, and events alike but for that, too."""
    chances = [Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(0), Fraction(1)]
    return [replace(event, probability=draw(st.sampled_from(chances))) for event in draw(events)]


@st.composite
def single(draw: st.DrawFn, variable: str) -> Component:
    """Draw a positive single component."""
    return Component(variable, draw(st.sampled_from([("A",), ("B",), ("A", "B"), ("A", "B", "C"), ()])))


@st.composite
def _absent(draw: st.DrawFn, names: list[str], several: bool | None = None) -> Pattern:
    """Draw a negated component, or an OR of two: readings that can give one signature."""

    def negation() -> Component:
        return Component(names.pop(), draw(single("n")).types, negated=True)

    several = draw(st.integers(0, 2)) == 0 if several is None else several
    return Or((negation(), negation())) if several else negation()


@st.composite
def sequences(draw: st.DrawFn, names: list[str], max_positives: int = 3, closed: bool = False) -> Seq:
    """Draw a SEQ of single, Kleene and negated components; ``closed``: no negation at either end."""
    items: list[Pattern] = []
    for number in range(draw(st.integers(1, max_positives))):
        if draw(st.integers(0, 4)) == 0 and not (closed and number == 0):
            items.append(draw(_absent(names)))
        items.append(
            Component(names.pop(), draw(single("c")).types, kleene=draw(st.sampled_from([0, 0, 1])) == 1)
        )
    if draw(st.integers(0, 4)) == 0 and not closed:
        items.append(draw(_absent(names)))
    return Seq(tuple(items))


def _plain(draw: st.DrawFn, names: list[str]) -> Component:
    return Component(names.pop(), draw(single("c")).types, kleene=draw(st.integers(0, 3)) == 0)


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Draw a pattern with sets, branches and nesting."""
    names = list("ponmlkjihgfedcba")
    shape = draw(st.sampled_from(["and", "seq of sets", "or", "or in seq", "readings", "seq in and"]))
    if shape == "and":
        return And(tuple(_plain(draw, names) for _ in range(draw(st.integers(1, 3)))))
    if shape == "seq of sets":
        items: list[Pattern] = [And((_plain(draw, names), _plain(draw, names)))]
        if draw(st.booleans()):
            items.append(Component(names.pop(), ("B",), negated=True))
        items.append(_plain(draw, names))
        return Seq(tuple(items))
    if shape == "or":
        return Or((draw(sequences(names, 2)), draw(sequences(names, 1))))
    if shape == "or in seq":
        return Seq((Or((_plain(draw, names), _plain(draw, names))), _plain(draw, names)))
    if shape == "readings":
        parts: list[Pattern] = [_plain(draw, names), _plain(draw, names)]
        parts.insert(draw(st.integers(0, 2)), draw(_absent(names, True)))
        return Seq(tuple(parts))
    return And((draw(sequences(names, 2, closed=True)), _plain(draw, names)))


@dataclass(frozen=True, slots=True)
class Apart:
    """A test of the difference of two events' ticks; of one event alone, of its tick."""

    relation: str
    bound: int

    def __call__(self, later: tuple[Event, int], earlier: tuple[Event, int] | None = None) -> bool:
        """Return whether the relation holds."""
        difference = later[1] - (0 if earlier is None else earlier[1])
        return bool(_RELATIONS[self.relation](difference, self.bound))


@st.composite
def times(draw: st.DrawFn, pattern: Pattern) -> Predicate:
    """Draw a condition on the time of one mention, or on the difference of two."""
    mentions = draw(_mentions(pattern, of_each=True))[: draw(st.integers(1, 2))]
    apart = Apart(draw(st.sampled_from(["<", "<=", "="])), draw(st.integers(-2, 4)))
    return Predicate(mentions, apart)


@st.composite
def predicates(draw: st.DrawFn, pattern: Pattern) -> Predicate:
    """Draw a comparison of two mentions of variables, at most one of them negated."""
    compare = Compare(draw(st.sampled_from(sorted(_RELATIONS))))
    return Predicate(draw(_mentions(pattern)), compare)


@st.composite
def _mentions(draw: st.DrawFn, pattern: Pattern, of_each: bool = False) -> tuple[Mention, ...]:
    """Draw two mentions, of single events if ``of_each``."""
    sets = set_variables(pattern)
    mentions: list[Mention] = []
    for _ in range(2):
        choices = [
            component
            for component in components(pattern)
            if not (component.negated and mentions and mentions[0].variable != component.variable)
        ]
        if mentions and any(c.negated and c.variable == mentions[0].variable for c in components(pattern)):
            choices = [c for c in choices if not c.negated or c.variable == mentions[0].variable]
        component = draw(st.sampled_from(choices))
        name = component.variable
        if not component.kleene:
            text = name
        elif name in sets:
            text = f"{name}{draw(st.sampled_from(['[i]', ''] if of_each else ['[i]', '[]', '']))}"
        else:
            indexes = ["[i]", "[i-1]", "[1]", "[{}.LEN]", ""]
            index = draw(st.sampled_from(indexes if of_each else [*indexes, "[]", "[..i-1]"]))
            text = name + index.format(name)
        mentions.append(Mention.read(text))
    return tuple(mentions)


@st.composite
def queries(draw: st.DrawFn, *, sequences_only: bool = False) -> Query:
    """Draw a query; with sets or branches under skip till any only."""
    strategy: Strategy = "skip_till_any_match"
    pattern: Pattern
    if sequences_only or draw(st.booleans()):
        pattern = draw(sequences(list("ponmlkjihgfedcba")))
        strategy = draw(
            st.sampled_from(
                [
                    "skip_till_any_match",
                    "skip_till_next_match",
                    "partition_contiguity",
                    "strict_contiguity",
                ]
            )
        )
    else:
        pattern = draw(patterns())
    return Query(
        pattern,
        draw(st.sampled_from([1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 8])),
        tuple(draw(st.lists(predicates(pattern), max_size=2))) if draw(st.booleans()) else (),
        strategy,
        ("k",) if draw(st.integers(0, 3)) == 0 else (),
        times=tuple(draw(st.lists(times(pattern), max_size=2))) if draw(st.integers(0, 2)) == 0 else (),
    )
