"""Constraints of a trace: some events never come before others. Bounds of clocks follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, QuerySyntaxError
from uncertain_cep.timeline.durations import Duration, format_duration, parse_duration

if TYPE_CHECKING:
    from uncertain_cep.query import Query

__all__ = [
    "AllBefore",
    "Causal",
    "Constraint",
    "Encloses",
    "all_before",
    "causal",
    "encloses",
    "given_length",
    "signed_length",
]

_WITHIN = "\nWITHIN 1"
_EXAMPLE = '"SEQ(AttemptFailed a, AttemptStart b) WHERE a.task_id = b.task_id"'


@dataclass(frozen=True, slots=True)
class Causal:
    """How much later the second event of each pair that a pattern describes is than the first; see `causal`.

    ``delay`` is the least distance, ``limit`` the largest one (None: any), as text, with a sign, or in ticks.
    """

    pattern: str
    delay: str | int = 0
    limit: str | int | None = None

    def __str__(self) -> str:
        return " ".join(self.pattern.split())

    def query(self) -> Query:
        """Return the pattern as a query, whose window means nothing."""
        from uncertain_cep.query import parse

        return parse(f"PATTERN {self.pattern}{_WITHIN}")


@dataclass(frozen=True, slots=True)
class Encloses:
    """Children begin and end within their parent; see `encloses`."""

    parent: tuple[str, str]
    child: tuple[str, str]
    by: tuple[str, str]

    def __str__(self) -> str:
        parent, child = ("..".join(pair) for pair in (self.parent, self.child))
        return f"{parent} encloses {child} by {'='.join(dict.fromkeys(self.by))}"


@dataclass(frozen=True, slots=True)
class AllBefore:
    """Among events that agree on some columns none of one type is after one of another; see `all_before`."""

    first: str
    then: str
    by: tuple[str, ...]
    delay: str | int = 0

    def __str__(self) -> str:
        return f"all {self.first} before all {self.then}" + (f" by {', '.join(self.by)}" if self.by else "")


Constraint: TypeAlias = Causal | Encloses | AllBefore


@public
def causal(pattern: str, delay: Duration | int | Sequence[Duration | int] = 0) -> Causal:
    """Say that one event causes another, so that it never comes later; or how far apart two events are.

    Parameters
    ----------
    pattern : str
        A sequence of two events, and what makes them a pair, without WITHIN. An equality between the two
        keeps the number of pairs small.
    delay : str, timedelta or int, or a pair of these
        Least time from the first to the second, such as ``"5ms"``, or a number of ticks; or the least and the
        most, ``("0 s", "5 s")``. It may be negative: two events of one moment, seen by two hosts within a
        minute of each other, are ``("-60 s", "60 s")`` apart.

    Returns
    -------
    Causal
        For `infer_offsets`.

    Raises
    ------
    QuerySyntaxError, QueryError
        If the pattern cannot be read.
    OptionError
        If it is no sequence of two events, or the delay no length of time, or no pair of such.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> retry = uc.causal("SEQ(AttemptFailed a, AttemptStart b) WHERE a.task_id = b.task_id")
    >>> received = uc.causal("SEQ(Send a, Get b) WHERE a.message = b.message", delay=("0 s", "5 s"))
    """
    from uncertain_cep.query.syntax import Component
    from uncertain_cep.query.syntax import Sequence as Ordered

    made = Causal(pattern, *_delays(delay))
    try:
        query = made.query()
    except QuerySyntaxError as error:
        raise OptionError(
            f"a causal pattern is a sequence of two events and what makes them a pair, such as {_EXAMPLE}, "
            f"without PATTERN and WITHIN; this one cannot be read: {error}"
        ) from None
    items = query.pattern.items if isinstance(query.pattern, Ordered) else ()
    plain = [item for item in items if isinstance(item, Component) and not item.kleene and not item.negated]
    if len(plain) != 2 or len(items) != 2:
        raise OptionError(f"a causal pattern is a sequence of two single events, such as {_EXAMPLE}")
    return made


@public
def encloses(parent: Sequence[str], child: Sequence[str], by: str | Sequence[str]) -> Encloses:
    """Say that what two types of events begin and end lies within what two others do, as child spans do.

    Parameters
    ----------
    parent, child : pair of str
        The types of the events that begin and end it, such as ``("SpanStart", "SpanEnd")``.
    by : str or pair of str
        The column in which a parent and its children are the same; or the parent's and the child's,
        such as ``("SpanID", "ParentID")``.

    Returns
    -------
    Encloses
        For `infer_offsets`.

    Raises
    ------
    OptionError
        If these are no names of types and columns.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> inside = uc.encloses(("Start", "End"), ("Start", "End"), by=("span", "parent"))
    """
    both = (by, by) if isinstance(by, str) else by
    return Encloses(_names(parent, "parent", 2), _names(child, "child", 2), _names(both, "by", 2))


@public
def all_before(first: str, then: str, by: str | Sequence[str] = (), delay: Duration | int = 0) -> AllBefore:
    """Say that every event of one type comes before every event of another, as far as columns agree.

    Parameters
    ----------
    first, then : str
        Types of events, such as the ends of maps and the end of a shuffle that copies from all of them.
    by : str or sequence of str
        The columns that tell which events are meant together. Default: all.
    delay : str, timedelta or int
        Least time between the two, such as ``"5ms"``, or a number of ticks.

    Returns
    -------
    AllBefore
        For `infer_offsets`.

    Raises
    ------
    OptionError
        If these are no names of types and columns, or the delay no length of time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> times, hosts = [5, 8, 3], [None, None, "h"]
    >>> events = pa.table({"type": ["Map", "Map", "Reduce"], "host": hosts, "lower": times, "upper": times})
    >>> uc.infer_offsets(events, [uc.all_before("Map", "Reduce")], prior=9, source="host").to_pylist()
    [{'host': 'h', 'offset_lo': 5, 'offset_hi': 9}]
    """
    (first,), (then,) = _names((first,), "first", 1), _names((then,), "then", 1)
    columns = _names((by,) if isinstance(by, str) else by, "by", None)
    if first == then:
        raise OptionError(f"all_before: no {first} is before itself: name two types")
    return AllBefore(first, then, columns, given_length(delay, "delay"))


def _delays(delay: Any) -> tuple[str | int, str | int | None]:
    """Return the least and the largest distance of two events; None if there is no largest one."""
    if not isinstance(delay, list | tuple):
        return signed_length(delay, "delay"), None
    if len(delay) != 2:
        raise OptionError(f'delay={delay!r}: give the least and the most, such as ("0 s", "5 s")')
    shortest, longest = (signed_length(length, "delay") for length in delay)
    if isinstance(shortest, int) != isinstance(longest, int) and 0 not in (shortest, longest):
        raise OptionError(f"delay={delay!r}: give two lengths of time, or two numbers of ticks")
    if _signed(shortest) > _signed(longest):
        raise OptionError(f"delay={delay!r}: the least is more than the most")
    return shortest, longest


def _signed(length: str | int) -> int:
    if isinstance(length, int):
        return length
    return -parse_duration(length[1:]) if length.startswith("-") else parse_duration(length)


def signed_length(length: Duration | int, what: str) -> str | int:
    """Return a length as `given_length` does; a negative one is a negative number, or begins with a minus."""
    value: Any = length
    positive, is_negative = value, False
    if isinstance(value, str):
        is_negative = value.lstrip().startswith("-")
        positive = value.lstrip()[1:] if is_negative else value
    elif isinstance(value, int | np.integer | timedelta):
        zero: Any = type(value)(0)
        is_negative = bool(value < zero)
        positive = -value if is_negative else value
    size = given_length(positive, what)
    return size if not is_negative else -size if isinstance(size, int) else f"-{size}"


def given_length(length: Duration | int, what: str) -> str | int:
    """Return a length as text, or a number of ticks as it is; an OptionError says that it is neither."""
    value: Any = length
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        if value < 0:
            raise OptionError(f"{what} {value}: it must be at least 0")
        return int(value)
    return format_duration(parse_duration(value, what=what))


def _names(names: Any, what: str, count: int | None) -> tuple[Any, ...]:
    listed = isinstance(names, Sequence) and not isinstance(names, str)
    if (
        not listed
        or not all(isinstance(name, str) and name for name in names)
        or len(names) != (count or len(names))
    ):
        expected = {1: "a name", 2: "a pair of names"}.get(count or 0, "a name, or several")
        raise OptionError(f"{what}={names!r}: give {expected}")
    return tuple(names)
