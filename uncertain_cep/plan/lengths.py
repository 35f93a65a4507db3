"""Lengths that callers give, in ticks."""

from __future__ import annotations

from uncertain_cep.errors import OptionError
from uncertain_cep.plan.options import is_whole
from uncertain_cep.timeline.domain import TimeDomain
from uncertain_cep.timeline.durations import Duration, parse_duration

__all__ = ["ticks_in"]


def ticks_in(length: Duration | int, domain: TimeDomain, what: str) -> int:
    """Return how many whole ticks a length has.

    An OptionError says that it is none, or that ticks have no length.
    """
    if is_whole(length):
        ticks = int(length)  # type: ignore[arg-type]
        if ticks < 0:
            raise OptionError(f"{what}={length!r}: it must be at least 0")
        return ticks
    nanoseconds = parse_duration(length, what=what)  # type: ignore[arg-type]
    if domain.tick_nanoseconds is None:
        raise OptionError(
            f"{what}={length!r}: the times are plain ticks of unknown length: give the tick, such as "
            "tick='1ms', or the length in ticks"
        )
    return nanoseconds // domain.tick_nanoseconds
