"""Random sequences with optional and repeated components."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

from hypothesis import strategies as st

from tests.cases.language import STRATEGIES, conditions, traces, untied
from tests.cases.nested import NestedCase
from tests.cases.sampling import sampled_from
from tests.cases.times import time_conditions
from uncertain_cep.testing.model import Component, Option, Or, Pattern, Seq, Strategy
from uncertain_cep.testing.patterns import components

__all__ = ["grouped_cases", "nested_option_cases", "option_cases", "timed_option_cases"]

_TYPES = [("A",), ("A",), ("B",), ("B",), ("A", "B")]
_TIMES = [(0, None), (0, 1), (0, 2), (1, 2), (2, 2), (2, None), (1, 1)]


@st.composite
def option_cases(
    draw: st.DrawFn, strategy: Strategy | None = None, most: int = 5, fewest: int = 1
) -> NestedCase:
    """Draw a case in which one component at least is optional or repeated a bounded number of times.

    ``fewest`` components are not negated, 3 at the most.
    """
    names = iter("abcdefgh")
    items: list[Component] = []
    positives = max(draw(sampled_from([1, 2, 3, 3])), fewest)
    special = draw(st.integers(0, positives - 1))
    for place in range(positives):
        if draw(st.integers(0, 3)) == 0:
            items.append(Component(next(names), draw(sampled_from(_TYPES)), negated=True))
        types = draw(sampled_from(_TYPES))
        kind = draw(sampled_from([*["one"] * (3 - fewest), "option", "times"]))
        if place == special and kind == "one":
            kind = "option"
        if kind == "times":
            least, upper = draw(sampled_from(_TIMES))
            items.append(Component(next(names), types, kleene=True, least=least, most=upper))
        else:
            items.append(Component(next(names), types, least=int(kind == "one")))
    if draw(st.integers(0, 4)) == 0:
        items.append(Component(next(names), draw(sampled_from(_TYPES)), negated=True))
    if not any(item.least for item in items if not item.negated) and draw(st.booleans()):
        items.append(Component(next(names), draw(sampled_from(_TYPES))))
    agree = ("k",) if draw(st.integers(0, 3)) == 0 else ()
    conditions_drawn = draw(st.lists(conditions(tuple(items)), max_size=draw(sampled_from([0, 1, 2]))))
    chosen: Strategy = draw(sampled_from(STRATEGIES)) if strategy is None else strategy
    return NestedCase(
        draw(traces(agree, most)),
        Seq(tuple(items)),
        untied(conditions_drawn) if chosen == "partition_contiguity" else tuple(conditions_drawn),
        chosen,
        draw(sampled_from([2, 4, 6, 20])),
        agree,
        (),
    )


@st.composite
def timed_option_cases(draw: st.DrawFn, most: int = 5, fewest: int = 1) -> NestedCase:
    """Draw such a case, which may ask something of times."""
    case: NestedCase = draw(option_cases(most=most, fewest=fewest))
    conditions_on_times = draw(st.lists(time_conditions(components(case.pattern)), max_size=2))
    return replace(case, times=tuple(conditions_on_times))


@st.composite
def grouped_cases(draw: st.DrawFn, strategy: Strategy | None = None, largest: int = 5) -> NestedCase:
    """Draw such a case in which some components in a row are a group that may be left out, or two are."""
    case: NestedCase = draw(option_cases(strategy, most=largest, fewest=2))
    assert isinstance(case.pattern, Seq)
    items: tuple[Pattern, ...] = case.pattern.items
    for _ in range(draw(sampled_from([1, 1, 2]))):
        first = draw(st.integers(0, len(items) - 1))
        end = draw(st.integers(first + 1, len(items)))
        group: Pattern = Seq(items[first:end])
        if end == first + 2 and draw(st.booleans()) and not any(part.kleene for part in components(group)):
            group = Or(items[first:end])
        items = (*items[:first], Option((group,)), *items[end:])
    return replace(case, pattern=Seq(items))


@st.composite
def nested_option_cases(draw: st.DrawFn, most: int = 5) -> NestedCase:
    """Draw such a case in which OR has a choice of some components in a row and those behind them."""
    case: NestedCase = draw(timed_option_cases(most=most, fewest=2))
    assert isinstance(case.pattern, Seq)
    items = case.pattern.items
    # Each alternative takes an event.
    cuts = [
        cut
        for cut in combinations(range(len(items) + 1), 3)
        if all(
            any(not item.negated for item in components(Seq(items[slice(*part)]))) for part in pairwise(cut)
        )
    ]
    begin, middle, end = draw(sampled_from(cuts))
    parts = items[begin:middle], items[middle:end]
    choice: Pattern = Or(tuple(map(Seq, parts)))
    around = (*items[:begin], choice, *items[end:])
    return replace(case, pattern=Seq(around) if len(around) > 1 or draw(st.booleans()) else choice)
