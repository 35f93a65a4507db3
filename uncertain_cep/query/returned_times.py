"""Times between two ends of a match that RETURN asks for: ``DURATION(a, b) AS took``.

They depend on the world, so a row has three columns of each: the shortest, the longest and the mean one.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, get_args

from uncertain_cep.query.repeated_groups import has_repeated_groups
from uncertain_cep.query.span_relations import length_ends
from uncertain_cep.query.syntax import Disjunction, Expression, Query
from uncertain_cep.query.walks import components_of, has_options, patterns_in

__all__ = ["NO_SINGLE_EVENTS", "TimeBetween", "beyond_single_events", "times_between"]

Side = Literal["lower", "upper", "mean"]

NO_SINGLE_EVENTS: Final = "a time between ends does not support {} yet: ask for the single events of a match"
"""What is said of a query of :func:`beyond_single_events`."""


class TimeBetween(NamedTuple):
    """The shortest, longest or mean time between two ends of a match."""

    ends: tuple[str, str]
    """The first and the last one, such as ``a`` and ``b.end``."""
    side: Side


def times_between(name: str, expression: Expression) -> dict[str, TimeBetween] | None:
    """Return the columns of an item of RETURN; None where it is no time between two ends."""
    ends = length_ends(expression)
    if ends is None:
        return None
    last, first = (time.variable if time.part is None else f"{time.variable}.{time.part}" for time in ends)
    return {f"{name}_{side}": TimeBetween((first, last), side) for side in get_args(Side)}


def beyond_single_events(query: Query) -> str | None:
    """Return the part of a query by which a match depends on more than single events of its own, or None."""
    if any(isinstance(pattern, Disjunction) for pattern in patterns_in(query.pattern)):
        return "OR"
    if has_options(query.pattern) or has_repeated_groups(query.pattern):
        return "optional components and repeated groups"
    parts = list(components_of(query.pattern))
    if query.gap_strategies or query.strategy != "skip_till_any_match" or any(part.negated for part in parts):
        return "negations and strategies"
    return "Kleene components" if any(part.kleene for part in parts) else None
