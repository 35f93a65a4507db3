"""Times between two ends of a match that RETURN asks for: ``DURATION(a, b) AS took``.

They depend on the world, so a row has three columns of each: the shortest, the longest and the mean one.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, get_args

from uncertain_cep.query.span_relations import length_ends
from uncertain_cep.query.syntax import Expression

__all__ = ["NO_LENGTH", "OF_SINGLE_EVENTS", "TimeBetween", "times_between"]

Side = Literal["lower", "upper", "mean"]

OF_SINGLE_EVENTS: Final = (
    "a time between ends is of two single events, and {} takes several: name other variables"
)
"""A variable of several events has no such time."""

NO_LENGTH: Final = "{} has no length: no event of this trace has a begin and an end"


class TimeBetween(NamedTuple):
    """The shortest, longest or mean time between two ends of a match."""

    ends: tuple[str, str]
    """The first and the last one, such as ``a`` and ``b.end``."""
    side: Side

    @property
    def variables(self) -> frozenset[str]:
        """The variables of the ends."""
        return frozenset(end.partition(".")[0] for end in self.ends)


def times_between(name: str, expression: Expression) -> dict[str, TimeBetween] | None:
    """Return the columns of an item of RETURN; None where it is no time between two ends."""
    ends = length_ends(expression)
    if ends is None:
        return None
    last, first = (time.variable if time.part is None else f"{time.variable}.{time.part}" for time in ends)
    return {f"{name}_{side}": TimeBetween((first, last), side) for side in get_args(Side)}
