"""Random sequences with a negated group."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.cases.language import conditions, untied
from tests.cases.nested import NestedCase
from tests.cases.options import timed_option_cases
from tests.cases.repeats import repeated_cases
from tests.cases.sampling import sampled_from
from tests.cases.times import time_conditions
from uncertain_cep.testing.model import Component, Pattern, Repeat, Seq
from uncertain_cep.testing.patterns import components

__all__ = ["group_cases"]

_TYPES = [("A",), ("B",), ("B",), ("A", "B"), ("C",), ()]


def _with_group(draw: st.DrawFn, pattern: Pattern, length: int) -> tuple[Pattern, list[Component]]:
    """Put a negated group at some place of a sequence, in a repeated one if there is any."""
    group = [Component(f"n{k}", draw(sampled_from(_TYPES)), negated=True, joint="n0") for k in range(length)]
    assert isinstance(pattern, Seq)
    items = list(pattern.items)
    place = draw(st.integers(0, len(items)))
    inner = items[place] if place < len(items) else None
    if isinstance(inner, Repeat) and isinstance(inner.items[0], Seq) and draw(st.booleans()):
        parts = list(inner.items[0].items)
        at = draw(st.integers(0, len(parts)))
        items[place] = replace(inner, items=(Seq((*parts[:at], *group, *parts[at:])),))
    else:
        items[place:place] = group
    return Seq(tuple(items)), group


@st.composite
def group_cases(draw: st.DrawFn, *, repeated: bool | None = None) -> NestedCase:
    """Draw a sequence with a negated group, conditions on one of its events, and any strategy."""
    if repeated is None:
        repeated = draw(st.booleans())
    drawn = repeated_cases(largest=4) if repeated else timed_option_cases(most=4, fewest=1)
    case: NestedCase = draw(drawn)
    pattern, group = _with_group(draw, case.pattern, draw(sampled_from([2, 2, 2, 3])))
    positive = [part for part in components(pattern) if not part.negated]
    spoken = (draw(st.sampled_from(group)), *positive)
    drawn_conditions = draw(st.lists(conditions(spoken), max_size=1))
    times = draw(st.lists(time_conditions(spoken), max_size=1))
    chosen = replace(
        case, pattern=pattern, asked=(*case.asked, *untied(drawn_conditions)), times=(*case.times, *times)
    )
    return NestedCase(**{name: getattr(chosen, name) for name in chosen.__dataclass_fields__})
