"""Random negations beside sets, tied to them by conditions on times: as text and for the oracle."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.cases.language import Asked, conditions, traces
from tests.cases.nested import NestedCase
from tests.cases.sampling import sampled_from
from tests.cases.times import time_conditions
from uncertain_cep.testing.model import And, Component, Or, Pattern, Seq, where

__all__ = ["BESIDE", "beside_cases"]

BESIDE = ("n0", "n1")
"""The negated variables."""

_TYPES = [("A",), ("A",), ("B",), ("A", "B"), ()]


@st.composite
def _tie(draw: st.DrawFn, negated: str, positive: Component) -> Asked:
    """Draw a bound, or two, on a negated time by a positive one; perhaps by an attribute."""
    name = f"{positive.variable}{'[i]' * positive.kleene}"
    low, high = draw(st.integers(-3, 1)), draw(st.integers(0, 3))
    kind = draw(sampled_from(["upper", "lower", "both", "both", "attribute"]))

    def holds(n: Any, p: Any) -> bool | None:
        apart = n[1] - p[1]
        if kind == "attribute":
            return None if n[0]["x"] is None else bool(apart <= n[0]["x"] + low)
        return bool((kind == "upper" or apart >= low) and (kind == "lower" or apart <= high))

    text = {
        "upper": f"TIME({negated}) - TIME({name}) <= {high}",
        "lower": f"TIME({negated}) - TIME({name}) >= {low}",
        "both": f"TIME({negated}) - TIME({name}) BETWEEN {low} AND {high}",
        "attribute": f"TIME({negated}) - TIME({name}) <= {negated}.x + {low}",
    }[kind]
    return Asked(text, where(f"{negated} {name}", holds))


@st.composite
def beside_cases(draw: st.DrawFn, count: int = 5) -> NestedCase:
    """Draw a case of a set with one negation or two beside it, alone, in a SEQ or a branch of OR."""
    names = iter("abcdefgh")
    shape = draw(
        sampled_from(["alone", "alone", "alone", "in sequence", "with sequence", "branch", "readings"])
    )
    size = draw(sampled_from([1, 2, 2]))
    members: list[Pattern] = [
        Component(next(names), draw(sampled_from(_TYPES)), kleene=draw(st.integers(0, 5)) == 0)
        for _ in range(size)
    ]
    positives = [member for member in members if isinstance(member, Component)]
    if shape == "with sequence":
        pair = tuple(Component(next(names), draw(sampled_from(_TYPES))) for _ in range(2))
        members, positives = [*members[:1], Seq(pair)], [*positives[:1], *pair]
    negated = [
        Component(name, draw(sampled_from(_TYPES)), negated=True)
        for name in BESIDE[: 2 if shape == "readings" else draw(sampled_from([1, 1, 2]))]
    ]
    absent: list[Pattern] = [Or(tuple(negated))] if shape == "readings" else [*negated]
    ties = [draw(_tie(part.variable, draw(st.sampled_from(positives)))) for part in negated]
    pattern: Pattern = And(tuple(draw(st.permutations([*members, *absent]))))
    sets = frozenset(part.variable for part in positives if part.kleene)
    parts = (*positives, *negated)
    times = [*ties, *draw(st.lists(time_conditions(parts, sets), max_size=2))]
    predicates = tuple(draw(st.lists(conditions(parts, sets), max_size=2)))
    if shape in ("in sequence", "branch"):
        other = Component(next(names), draw(sampled_from(_TYPES)))
        pattern = Seq((pattern, other)) if shape == "in sequence" else Or((pattern, other))
    agree = ("k",) if draw(st.integers(0, 4)) == 0 else ()
    trace = draw(traces(agree, count))
    window = draw(sampled_from([1, 2, 3, 5, 8, 20]))
    return NestedCase(trace, pattern, predicates, "skip_till_any_match", window, agree, (), tuple(times))
