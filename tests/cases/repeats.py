"""Random sequences with a group that is repeated."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.cases.language import STRATEGIES, conditions, traces, untied
from tests.cases.nested import NestedCase
from tests.cases.sampling import sampled_from
from tests.cases.times import time_conditions
from uncertain_cep.testing.model import And, Component, Option, Or, Pattern, Repeat, Seq, Strategy
from uncertain_cep.testing.patterns import components

__all__ = ["repeated_cases"]

_TYPES = [("A",), ("A",), ("B",), ("B",), ("A", "B")]
_TIMES = [(1, None), (1, None), (0, None), (1, 1), (2, 2), (1, 2), (0, 1), (0, 2), (2, None)]


@st.composite
def _group(draw: st.DrawFn, names: list[str], strategy: Strategy) -> Repeat:
    """Draw a repeated group: two places at most, perhaps a negation beside them."""
    kind = draw(sampled_from(["one", "one", "two", "two", "option", "or", "inner", "set"]))
    if kind == "set" and strategy != "skip_till_any_match":
        kind = "two"

    def taken(fewest: int = 1) -> Component:
        return Component(names.pop(), draw(sampled_from(_TYPES)), kleene=True, least=fewest, most=1)

    items: list[Pattern] = [taken()]
    if kind == "or":
        items = [Or((*items, Seq((taken(),))))]
    elif kind == "set":
        items = [And((*items, taken()))]
    elif kind == "inner":
        items.append(Option((Seq((taken(),)),)))
    elif kind != "one":
        items.append(taken(int(kind == "two")))
    if draw(st.integers(0, 3)) == 0:
        negated = Component(names.pop(), draw(sampled_from(_TYPES)), negated=True)
        items.insert(draw(st.integers(0, len(items))), negated)
    whole = items[0] if kind == "or" and len(items) == 1 else Seq(tuple(items))
    return Repeat((whole,), *draw(sampled_from(_TIMES)))


@st.composite
def repeated_cases(
    draw: st.DrawFn, strategy: Strategy | None = None, largest: int = 5, timed: bool = False
) -> NestedCase:
    """Draw a case with a repeated group, alone or between components."""
    chosen: Strategy = draw(sampled_from(STRATEGIES)) if strategy is None else strategy
    names = [*"hgfedcba"]
    items: list[Pattern] = []
    if draw(st.booleans()):
        items.append(Component(names.pop(), draw(sampled_from(_TYPES)), least=draw(sampled_from([0, 1, 1]))))
    if draw(st.integers(0, 4)) == 0:
        items.append(Component(names.pop(), draw(sampled_from(_TYPES)), negated=True))
    drawn = draw(_group(names, chosen))
    group: Pattern = drawn
    around = draw(st.integers(0, 6))
    if around == 0:
        group = Option((Seq((group, Component(names.pop(), draw(sampled_from(_TYPES))))),))
    elif around == 1 and drawn.fewest:
        group = Or((group, Component(names.pop(), draw(sampled_from(_TYPES)))))
    items.append(group)
    if draw(st.integers(0, 4)) == 0:
        items.append(Component(names.pop(), draw(sampled_from(_TYPES)), negated=True))
    if draw(st.booleans()) or len(items) == 1:
        kleene = draw(st.integers(0, 3)) == 0
        items.append(Component(names.pop(), draw(sampled_from(_TYPES)), kleene=kleene))
    pattern = Seq(tuple(items))
    parts = tuple(components(pattern))
    agree = ("k",) if draw(st.integers(0, 3)) == 0 else ()
    conditions_drawn = draw(st.lists(conditions(parts), max_size=draw(sampled_from([0, 1, 2]))))
    times = draw(st.lists(time_conditions(parts), min_size=1, max_size=2)) if timed else []
    return NestedCase(
        draw(traces(agree, largest)),
        pattern,
        untied(conditions_drawn),
        chosen,
        draw(sampled_from([2, 4, 6, 20])),
        agree,
        (),
        tuple(times),
    )
