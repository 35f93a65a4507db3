"""Random conditions on times: as text and for the oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.cases.language import RELATIONS, Asked, LanguageCase, conditions, language_cases, traces
from tests.cases.nested import NestedCase, nested_cases, unordered
from tests.cases.sampling import sampled_from
from uncertain_cep.testing.model import Component, Seq, Strategy, where
from uncertain_cep.testing.patterns import components

__all__ = ["distant_cases", "time_conditions", "timed_cases", "timed_nested_cases", "timed_sequences"]

_RELATIONS = [*sorted(RELATIONS.keys() - {"!="}), ">="]
_TESTS: dict[str, Callable[[Any, Any], bool]] = {**RELATIONS, ">=": lambda x, y: x >= y}


@st.composite
def _mention(draw: st.DrawFn, component: Component, ordered: bool) -> str:
    name = component.variable
    if not component.kleene:
        return name
    indexes = ["[i]", ""]
    return f"{name}{draw(sampled_from([*indexes, '[1]', '[i-1]', f'[{name}.LEN]'] if ordered else indexes))}"


@st.composite
def time_conditions(
    draw: st.DrawFn, pattern_parts: Sequence[Component], sets: frozenset[str] = frozenset()
) -> Asked:
    """Draw a condition on times; the variables in ``sets`` are Kleene ones whose events have no order."""

    def mention(negated: set[str]) -> str:
        """Draw a mention of a component; no second negated one."""
        choices = [
            part for part in pattern_parts if not part.negated or not negated or part.variable in negated
        ]
        chosen = draw(sampled_from(choices))
        if chosen.negated:
            negated.add(chosen.variable)
        return draw(_mention(chosen, chosen.variable not in sets))

    used: set[str] = set()
    later, earlier = mention(used), mention(used)
    # What stands for the same event cancels.
    alone = later.removesuffix("[i]") == earlier.removesuffix("[i]") or draw(st.integers(0, 4)) == 0
    mentions = [later] if alone else [later, earlier]
    left = f"TIME({later})" if alone else f"TIME({later}) - TIME({earlier})"

    def bound(low: int, high: int) -> tuple[str, int, int | None]:
        """Draw a bound: a text, a number, and the place of the event whose x is added to it."""
        number = draw(st.integers(low, high))
        if draw(st.integers(0, 3)):
            return str(number), number, None
        mentions.append(mention(used))
        return f"{mentions[-1]}.x + {number}", number, len(mentions) - 1

    # A time on both sides says nothing, but the condition mentions it.
    both_sides = ""
    if not draw(st.integers(0, 5)):
        mentions.append(mention(used))
        both_sides = f" - TIME({mentions[-1]})"

    # Both ends of a BETWEEN are one condition, whatever each of them mentions.
    bounds: list[tuple[str, int, int | None]]
    if draw(st.integers(0, 3)):
        relation = draw(sampled_from(_RELATIONS))
        bounds, tests = [bound(-2, 6)], [_TESTS[relation]]
        text = f"{left}{both_sides} {relation} {bounds[0][0]}{both_sides}"
    else:
        bounds, tests = [bound(-2, 4), bound(0, 8)], [_TESTS[">="], _TESTS["<="]]
        low, high = (f"{end[0]}{both_sides}" for end in bounds)
        text = f"{left}{both_sides} BETWEEN {low} AND {high}"

    def holds(*pairs: Any) -> bool | None:
        value = pairs[0][1] - (0 if alone else pairs[1][1])
        outcomes: list[bool | None] = []
        for test, (_, number, place) in zip(tests, bounds, strict=True):
            more = 0 if place is None else pairs[place][0]["x"]
            outcomes.append(None if more is None else bool(test(value, number + more)))
        return False if False in outcomes else None if None in outcomes else True

    return Asked(text, where(" ".join(mentions), holds))


@st.composite
def timed_cases(draw: st.DrawFn, strategy: Strategy | None = None, most: int = 5) -> LanguageCase:
    """Draw a case of a sequence with conditions on times."""
    case = draw(language_cases(strategy, most))
    return replace(
        case, times=tuple(draw(st.lists(time_conditions(case.components), min_size=1, max_size=3)))
    )


@st.composite
def timed_sequences(draw: st.DrawFn) -> LanguageCase:
    """Draw a case of a sequence of single events that skips, with conditions on times."""
    names = "abcd"[: draw(st.integers(1, 4))]
    parts = tuple(Component(name, draw(sampled_from([("A",), ("B",), ("A", "B"), ()]))) for name in names)
    strategy: Strategy = draw(sampled_from(["skip_till_any_match", "skip_till_next_match"]))
    times = tuple(draw(st.lists(time_conditions(parts), min_size=1, max_size=3)))
    conditions_drawn = tuple(draw(st.lists(conditions(parts), max_size=1)))
    agree = ("k",) if draw(st.integers(0, 3)) == 0 else ()
    window = draw(sampled_from([2, 4, 5, 6, 8, 20]))
    return LanguageCase(
        draw(traces(agree, 6)), Seq(parts), conditions_drawn, strategy, window, agree, (), times
    )


@st.composite
def timed_nested_cases(draw: st.DrawFn) -> NestedCase:
    """Draw a case of a nested pattern with conditions on times."""
    case = draw(st.sampled_from(["SAO", "SA", "SO", "A"]).flatmap(nested_cases))
    parts, sets = components(case.pattern), unordered(case.pattern)
    return replace(case, times=tuple(draw(st.lists(time_conditions(parts, sets), min_size=1, max_size=2))))


@st.composite
def distant_cases(draw: st.DrawFn) -> LanguageCase:
    """Draw a case of a plain sequence with bounds between its events."""
    names = "abcd"[: draw(st.integers(2, 4))]
    parts = tuple(Component(name, draw(sampled_from([("A",), ("B",), ("A", "B"), ()]))) for name in names)
    bounds = []
    for number in range(draw(st.integers(1, 3))):
        earlier = draw(st.integers(0, len(parts) - 2))
        later = earlier + 1 if number < 2 else draw(st.integers(earlier + 1, len(parts) - 1))
        low, is_upper = draw(st.integers(-1, 4)), draw(st.booleans())

        def holds(*pairs: Any, low: int = low, is_upper: bool = is_upper) -> bool:
            apart = pairs[0][1] - pairs[1][1]
            return bool(apart <= low if is_upper else apart >= low)

        one, other = names[later], names[earlier]
        text = f"TIME({one}) - TIME({other}) {'<=' if is_upper else '>='} {low}"
        bounds.append(Asked(text, where(f"{one} {other}", holds)))
    trace = draw(traces((), 6))
    window = draw(sampled_from([2, 4, 5, 6, 8, 20]))
    return LanguageCase(trace, Seq(parts), (), "skip_till_any_match", window, (), (), tuple(bounds))
