"""The option ``known_until``: the time up to which all events are known."""

from __future__ import annotations

import re
from typing import Any, Final

from uncertain_cep.config.limits import MAX_TICK
from uncertain_cep.errors import OptionError
from uncertain_cep.plurals import counted
from uncertain_cep.query import values_of
from uncertain_cep.query.syntax import Instant
from uncertain_cep.query.typed import format_time, parse_time
from uncertain_cep.timeline.domain import TimeDomain

__all__ = ["end_in_ticks", "known_end", "shown_tick", "undecided_text"]

_WHOLE: Final = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")


def known_end(value: Any) -> int | str | None:
    """Return the value of ``known_until`` as ticks, or as ISO 8601 text in UTC.

    Raises
    ------
    OptionError
        If it is neither a whole number nor a time.
    """
    if value is None:
        return None
    if isinstance(value, str):
        if _WHOLE.fullmatch(value):
            return int(value)
        moment = parse_time(value.strip())
    elif isinstance(value, bool):
        moment = None
    else:
        try:
            ((_, parsed),) = values_of({"known_until": value})
        except OptionError:
            parsed = None
        if isinstance(parsed, int) and not isinstance(parsed, Instant | bool):
            return int(parsed)
        moment = parsed if isinstance(parsed, Instant) else None
    if moment is None:
        raise OptionError(
            f"known_until={value!r}: it must be a time, such as '2026-01-05T08:00:00Z', or, where times are "
            "ticks, a whole number"
        )
    return format_time(moment)


def end_in_ticks(end: int | str | None, domain: TimeDomain) -> int | None:
    """Return the last tick up to which everything is known, of what :func:`known_end` returns.

    Raises
    ------
    OptionError
        If the events' times are not of its kind.
    """
    if end is None:
        return None
    if isinstance(end, int):
        if domain.unit != "tick":
            raise OptionError(
                f"known_until={end}: the times of these events are timestamps: give a time, such as "
                "'2026-01-05T08:00:00Z'"
            )
        return min(max(end, -MAX_TICK), MAX_TICK)
    if domain.unit == "tick":
        raise OptionError(
            f"known_until='{end}': the times of these events are whole numbers: give a number of ticks"
        )
    moment = parse_time(end)
    assert moment is not None
    assert domain.tick_nanoseconds is not None
    return moment // domain.tick_nanoseconds


def shown_tick(tick: int, domain: TimeDomain) -> str:
    """Return a tick as a message gives it: a number, or ISO 8601 text."""
    if domain.unit == "tick" or domain.tick_nanoseconds is None:
        return f"{tick:,}"
    return f"{format_time(tick * domain.tick_nanoseconds)}{'' if domain.timezone is None else 'Z'}"


def undecided_text(count: int, begin: str) -> str:
    """Return a warning about matches of a stream that events from a time on can spoil."""
    waiting = counted(count, "match is", "matches are")
    they = "it: it waits" if count == 1 else "them: they wait"
    return f"{waiting} undecided, as an event from {begin} on can spoil {they} in the checkpoint"
