"""Events and queries for Hypothesis; they need the extra ``testing``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from uncertain_cep.running.installation import needed

needed("testing")

from hypothesis import strategies as st  # noqa: E402

from uncertain_cep.testing.model import (  # noqa: E402
    And,
    Component,
    Event,
    Or,
    Pattern,
    Predicate,
    Query,
    Seq,
    Strategy,
    where,
)

__all__ = ["Question", "events", "queries"]

TYPES: Final = ("A", "B", "C")
COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
}
STRATEGIES: Final[tuple[Strategy, ...]] = (
    "skip_till_any_match",
    "skip_till_next_match",
    "partition_contiguity",
    "strict_contiguity",
)


@dataclass(frozen=True, slots=True)
class Question:
    """A query in both forms.

    Attributes
    ----------
    text : str
        In the query language.
    query : Query
        In the oracle's words.
    """

    text: str
    query: Query = field(repr=False)


@st.composite
def events(
    draw: st.DrawFn,
    types: Sequence[str] = TYPES,
    *,
    most: int = 5,
    last: int = 8,
    longest: int = 3,
    attributes: Mapping[str, st.SearchStrategy[Any]] | None = None,
) -> list[Event]:
    """Draw a few events that overlap, touch and tie a lot, with ids from 0.

    Parameters
    ----------
    types : sequence of str
    most : int
        Most events; one at least, as a table of none has no attributes that a query could name. Enumerating
        worlds multiplies the lengths of all that matter to a match.
    last : int
        The last tick at which an event may begin; the first is 0.
    longest : int
        The longest interval, in ticks.
    attributes : mapping of str to strategy, optional
        Default: ``x``, a small number, and ``k``, one of two texts; both may be null.

    Examples
    --------
    >>> from hypothesis import given
    >>> import uncertain_cep as uc
    >>> from uncertain_cep.testing import strategies
    >>> @given(strategies.events(), strategies.queries())
    ... def test_my_pipeline(events, question):
    ...     matches = uc.match(uc.testing.table(events), question.text)
    ...     uc.testing.assert_answer(matches, question.query, events)
    """
    drawn = _ATTRIBUTES if attributes is None else attributes
    drawn_events = []
    for id in range(draw(st.integers(1, most))):
        lower, length = draw(st.integers(0, last)), draw(st.integers(1, longest))
        weights = draw(st.none() | st.lists(st.integers(0, 3), min_size=length, max_size=length).filter(any))
        pmf = None if weights is None else tuple(Fraction(weight, sum(weights)) for weight in weights)
        values = {name: draw(strategy) for name, strategy in drawn.items()}
        drawn_events.append(Event(draw(st.sampled_from(types)), id, lower, lower + length - 1, pmf, values))
    return drawn_events


_ATTRIBUTES: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    "x": st.none() | st.integers(0, 3),
    "k": st.sampled_from(["u", "u", "u", "v", None]),
}


def _drawn_pattern(
    draw: st.DrawFn, types: Sequence[str], components: int
) -> tuple[Pattern, list[Component], Strategy]:
    """Draw a pattern; return it with its positive components and a strategy that it can have."""
    names = iter("abcdefgh")
    shape = draw(st.sampled_from(["SEQ", "SEQ", "SEQ", "AND", "OR"]))
    count = draw(st.integers(1 if shape == "SEQ" else 2, max(components, 2)))
    positive = [_component(draw, types, next(names)) for _ in range(count)]
    pattern: Pattern
    strategy: Strategy = "skip_till_any_match"
    if shape == "AND":
        pattern = And(tuple(positive))
    elif shape == "OR":
        pattern = Or(tuple(positive))
    else:
        items: list[Component] = list(positive)
        if draw(st.booleans()):
            negated = Component(next(names), (draw(st.sampled_from(types)),), negated=True)
            items.insert(draw(st.integers(0, count)), negated)
        pattern = Seq(tuple(items))
        strategy = draw(st.sampled_from(STRATEGIES))
    return pattern, positive, strategy


@st.composite
def queries(
    draw: st.DrawFn,
    types: Sequence[str] = TYPES,
    *,
    most: int = 3,
    longest: int = 10,
    value: str = "x",
    key: str = "k",
) -> Question:
    """Draw a query: sequences, sets, branches, Kleene plus, negations, and every selection strategy.

    Parameters
    ----------
    types : sequence of str
    most : int
        Most positive components.
    longest : int
        The longest window, in ticks.
    value, key : str
        Attributes of the events: one that conditions compare, and one that ``[key]`` equates. Conditions
        compare numbers.

    Examples
    --------
    >>> from hypothesis import find
    >>> from uncertain_cep.testing import strategies
    >>> print(find(strategies.queries(), lambda question: True).text)
    PATTERN SEQ(A a)
    WITHIN 1
    """
    pattern, positive, strategy = _drawn_pattern(draw, types, most)
    count, is_or = len(positive), isinstance(pattern, Or)
    compared = [component.variable for component in positive if not component.kleene]
    conditions: list[tuple[str, Predicate]] = []
    if len(compared) > 1 and not is_or and draw(st.booleans()):
        conditions.append(
            _comparison(compared[0], compared[1], value, draw(st.sampled_from(list(COMPARISONS))))
        )
    # What equates one component alone ties nothing together, and makes no partition.
    agree = (key,) if count > 1 and not is_or and draw(st.booleans()) else ()
    window = draw(st.integers(1, longest))
    conditions_text = " AND ".join([*(f"[{name}]" for name in agree), *(text for text, _ in conditions)])
    variables = ", ".join(f"{c.variable}[]" if c.kleene else c.variable for c in positive)
    block = (
        f"{strategy}({variables}) {{ {conditions_text} }}"
        if strategy != "skip_till_any_match"
        else conditions_text
    )
    lines = [f"PATTERN {_written(pattern)}", *([f"WHERE {block}"] if block else []), f"WITHIN {window}"]
    query = Query(pattern, window, tuple(predicate for _, predicate in conditions), strategy, agree)
    return Question("\n".join(lines), query)


def _component(draw: st.DrawFn, types: Sequence[str], variable: str) -> Component:
    taken = draw(st.lists(st.sampled_from(types), min_size=1, max_size=2, unique=True))
    return Component(variable, tuple(taken), kleene=draw(st.integers(0, 3)) == 3)


def _comparison(left: str, right: str, value: str, relation: str) -> tuple[str, Predicate]:
    def test(one: Event, other: Event) -> bool | None:
        values = one[value], other[value]
        return None if None in values else COMPARISONS[relation](*values)

    return f"{left}.{value} {relation} {right}.{value}", where(f"{left} {right}", test)


def _written(pattern: Pattern) -> str:
    """Return a pattern in the query language."""
    if not isinstance(pattern, Component):
        items = ", ".join(map(_written, pattern.items))
        return f"{'AND' if isinstance(pattern, And) else 'OR' if isinstance(pattern, Or) else 'SEQ'}({items})"
    types = f"({'|'.join(pattern.types)})" if len(pattern.types) > 1 else pattern.types[0]
    if pattern.negated:
        return f"!{types} {pattern.variable}"
    return f"{types}+ {pattern.variable}[]" if pattern.kleene else f"{types} {pattern.variable}"
