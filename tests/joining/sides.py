"""Two tables of events, drawn."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.cases.moments import Moment, clocked_moments

__all__ = ["Trace", "traces"]

Trace = tuple[list[Moment], list[Moment], dict[str, int]]
"""Left and right events, and how wide the offset of each clock is."""


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Draw both sides, and the clocks of their events."""
    names = draw(st.sampled_from([(None,), (None, "g", "h")]))
    clocks = {name: draw(st.integers(0, 2)) for name in names if name}
    left = draw(st.lists(clocked_moments(names), min_size=1, max_size=2))
    return left, draw(st.lists(clocked_moments(names), min_size=1, max_size=3)), clocks
