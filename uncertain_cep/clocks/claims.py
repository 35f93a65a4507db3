"""Constraints on the events of a trace as claims about single ones: this one is never after that one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from confidence.flat_lists import end_to_end
from uncertain_cep.config.limits import MOST_PAIRS
from uncertain_cep.errors import OptionError, TraceError, absent_columns
from uncertain_cep.expressions.beyond_int64 import as_int64_or_float64
from uncertain_cep.expressions.codes import Values, codes_of, codes_of_values, paired, places_in
from uncertain_cep.expressions.vectorised import column_values, evaluate
from uncertain_cep.expressions.whole_numbers import with_checks
from uncertain_cep.query import bind
from uncertain_cep.query.typed import Apply, Column, TypedExpression, variables_of
from uncertain_cep.timeline.domain import Names, TimeDomain
from uncertain_cep.timeline.durations import parse_duration
from uncertain_cep.traces.constraints import AllBefore, Causal, Constraint, Encloses
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray

__all__ = ["Claims", "ClockedEvents", "claims_of", "ticks_in"]


@dataclass(frozen=True, slots=True)
class ClockedEvents:
    """Events by the times of their own clocks.

    ``source``, (n,) int64, is the place in ``sources`` of the clock that stamped an event, -1 for true time.
    ``lower`` and ``upper``, (n,) int64, ticks, are less ``start``.
    """

    table: pa.Table
    names: Names
    domain: TimeDomain
    sources: list[str]
    source: IntArray
    lower: IntArray
    upper: IntArray
    start: int


class Claims(NamedTuple):
    """Claims, each (m,) int64: row ``first`` is at least ``delay`` ticks before row ``then``.

    With a ``group``, -1 for none, one of the two is -1: every ``first`` of a group is before every ``then``
    of it. ``of`` is the number of the constraint.
    """

    first: IntArray
    then: IntArray
    group: IntArray
    delay: IntArray
    of: IntArray


def claims_of(events: ClockedEvents, constraints: Sequence[Constraint]) -> Claims:
    """Return the claims of constraints on events, in their order, then in that of the later events' rows.

    Raises
    ------
    QueryError
        If a pattern cannot be asked of the events.
    TraceError
        If there is no column of a name.
    OptionError
        If a constraint says nothing that limits the number of pairs, or its delay is no whole ticks.
    """
    parts: list[Claims] = []
    groups = 0
    for number, constraint in enumerate(constraints):
        if isinstance(constraint, AllBefore):
            claims = _grouped(events, constraint, number, groups)
            groups = max(groups, int(claims.group.max(initial=-1)) + 1)
            parts.append(claims)
            continue
        delay, limit = 0, None
        if isinstance(constraint, Causal):
            delay = ticks_in(events.domain, constraint.delay, "delay")
            if constraint.limit is not None:
                limit = ticks_in(events.domain, constraint.limit, "delay")
        pairs = (
            [_causal_pairs(events, constraint)]
            if isinstance(constraint, Causal)
            else _spans(events, constraint)
        )
        for first, then in pairs:
            order = np.lexsort((first, then))
            order = order[_tells(events, first[order], then[order])]
            first, then = first[order], then[order]
            parts.append(_claims(first, then, -1, delay, number))
            if limit is not None:
                parts[-1] = _in_turns(parts[-1], _claims(then, first, -1, -limit, number))
    columns: Iterable[tuple[IntArray, ...]] = zip(*parts, strict=True)
    if not parts:
        return Claims(*(np.zeros(0, np.int64) for _ in Claims._fields))
    return Claims(*(np.concatenate(column) for column in columns))


def ticks_in(domain: TimeDomain, length: str | int, what: str) -> int:
    """Return a length, or a number of ticks, in ticks; an OptionError says that it is no whole number."""
    if isinstance(length, int):
        return length
    if length.startswith("-"):
        return -ticks_in(domain, length[1:], what)
    if domain.tick_nanoseconds is None:
        raise OptionError(
            f"{what} {length} is a length of time, but the times are plain ticks: give a number of ticks, "
            'or say how long a tick is, tick="1ms"'
        )
    ticks, remainder = divmod(parse_duration(length, what=what), domain.tick_nanoseconds)
    if remainder:
        raise OptionError(f"{what} {length} is not a whole number of ticks of {domain.describe()}")
    return ticks


def _claims(
    first: IntArray | int, then: IntArray | int, group: IntArray | int, delay: int, number: int
) -> Claims:
    arrays = np.broadcast_arrays(first, then, group, delay, number)
    return Claims(*(np.array(part, np.int64) for part in arrays))


def _in_turns(not_nearer: Claims, not_farther: Claims) -> Claims:
    """Return the claims that pairs are not too near, each before the one that they are not too far apart."""
    return Claims(*(np.column_stack(pair).ravel() for pair in zip(not_nearer, not_farther, strict=True)))


def _tells(events: ClockedEvents, first: IntArray, then: IntArray) -> BoolArray:
    """Mark the pairs that can say something about offsets: not those of certain times by one clock."""
    certain = events.lower == events.upper
    tells: BoolArray = (events.source[first] != events.source[then]) | ~certain[first] | ~certain[then]
    return tells


def _column(events: ClockedEvents, name: str) -> pa.ChunkedArray:
    table = events.table
    if name not in table.column_names:
        raise TraceError(absent_columns([name], table.column_names, of="events"))
    return table.column(name)


def _of_type(events: ClockedEvents, *types: str) -> IntArray:
    """Return the rows of events of some types; of all where none is named."""
    if not types:
        return np.arange(events.table.num_rows)
    column = _column(events, events.names.type).cast(pa.string())
    return np.flatnonzero(places_in(column, pa.array(types, pa.string())) >= 0)


def _grouped(events: ClockedEvents, constraint: AllBefore, number: int, groups: int) -> Claims:
    """Return the claims of the events of each group, where both types are; groups count from ``groups``."""
    key = np.zeros(events.table.num_rows, np.int64)
    for name in constraint.by:
        (codes,), _ = codes_of([_column(events, name)])
        key = paired(key, codes)
    sides = [_of_type(events, name) for name in (constraint.first, constraint.then)]
    sides = [rows[key[rows] >= 0] for rows in sides]
    both = np.intersect1d(key[sides[0]], key[sides[1]])
    first, then = (rows[np.isin(key[rows], both)] for rows in sides)
    delay = ticks_in(events.domain, constraint.delay, "delay")
    before = _claims(first, -1, groups + np.searchsorted(both, key[first]), 0, number)
    after = _claims(-1, then, groups + np.searchsorted(both, key[then]), delay, number)
    return Claims(*(np.concatenate(pair) for pair in zip(before, after, strict=True)))


def _spans(events: ClockedEvents, constraint: Encloses) -> list[tuple[IntArray, IntArray]]:
    """Return the pairs of beginnings, and those of ends."""
    (parent_key, child_key), _ = codes_of([_column(events, name) for name in constraint.by])
    begins, ends = (
        _joined(
            *(rows := _of_type(events, parent_type), parent_key[rows]),
            *(child_rows := _of_type(events, child_type), child_key[child_rows]),
        )
        for parent_type, child_type in zip(constraint.parent, constraint.child, strict=True)
    )
    return [_distinct(*begins), _distinct(*reversed(ends))]


def _joined(
    left: IntArray, left_key: IntArray, right: IntArray, right_key: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the pairs of rows with the same key, not -1."""
    order = np.argsort(right_key, kind="stable")
    keys = right_key[order]
    begin, end = (np.searchsorted(keys, left_key, side) for side in ("left", "right"))
    counts = np.where(left_key >= 0, end - begin, 0)
    total = int(counts.sum())
    if total > MOST_PAIRS:
        raise OptionError(
            f"a constraint would compare {total:,} pairs of events, and at most {MOST_PAIRS:,} are: equate "
            "an attribute of the two that tells which belong together, or use all_before"
        )
    places = end_to_end(begin, counts)[0]
    return np.repeat(left, counts), right[order[places]]


def _distinct(first: IntArray, then: IntArray) -> tuple[IntArray, IntArray]:
    different = first != then
    return first[different], then[different]


def _causal_pairs(events: ClockedEvents, constraint: Causal) -> tuple[IntArray, IntArray]:
    """Return the pairs of rows that a pattern describes."""
    # The window means nothing, so a number in it needs no named tick.
    bound = bind(constraint.query(), events.table.schema, events.names, TimeDomain("tick", 1, None))
    loaded: dict[str, Values] = {}

    def column(attribute: Column) -> Values:
        if attribute.name not in loaded:
            loaded[attribute.name] = column_values(events.table.column(attribute.name), attribute.name)
        return loaded[attribute.name]

    def true_of(expression: TypedExpression, rows: dict[str, IntArray], count: int) -> IntArray:
        safe = with_checks(expression, lambda attribute: column(attribute).extremes)
        truth_values = evaluate(safe, lambda attribute: column(attribute).take(rows[attribute.variable]))
        truth = np.asarray(truth_values.data, np.bool_)
        return np.flatnonzero(
            np.broadcast_to(truth if truth_values.valid is None else truth & truth_values.valid, count)
        )

    one, two = (component.variable for component in bound.components)
    rows = {component.variable: _of_type(events, *component.types) for component in bound.components}
    across = [predicate for predicate in bound.predicates if len(variables_of(predicate)) > 1]
    keys = {variable: np.zeros(len(those), np.int64) for variable, those in rows.items()}

    def equate(sides: dict[str, Values]) -> None:
        codes, _ = codes_of_values([as_int64_or_float64(sides[one]), as_int64_or_float64(sides[two])])
        both = paired(np.concatenate([keys[one], keys[two]]), np.concatenate(codes))
        keys[one], keys[two] = both[: len(codes[0])], both[len(codes[0]) :]

    for predicate in bound.predicates:
        if predicate not in across:
            for variable in variables_of(predicate) or (one,):
                kept = true_of(predicate, rows, len(rows[variable]))
                rows[variable], keys[variable] = rows[variable][kept], keys[variable][kept]
    for name in bound.equivalences:
        values = column_values(events.table.column(name), name)
        equate({variable: values.take(rows_of_variable) for variable, rows_of_variable in rows.items()})
    for predicate in across:
        sides = _equated(predicate)
        if sides:
            equate(
                {
                    variable: _spread(
                        evaluate(
                            with_checks(side, lambda attribute: column(attribute).extremes),
                            lambda attribute: column(attribute).take(rows[attribute.variable]),
                        ),
                        len(rows[variable]),
                    )
                    for variable, side in sides.items()
                }
            )
    first, then = _distinct(*_joined(rows[one], keys[one], rows[two], keys[two]))
    for predicate in across:
        # Equality of values of different kinds is not always that of their codes, so it is asked again.
        kept = true_of(predicate, {one: first, two: then}, len(first))
        first, then = first[kept], then[kept]
    return first, then


def _equated(predicate: TypedExpression) -> dict[str, TypedExpression]:
    """Return the two sides of an equality between expressions of one variable each, else nothing."""
    if not isinstance(predicate, Apply) or predicate.operator != "equal":
        return {}
    sides = {frozenset(variables_of(side)): side for side in predicate.operands}
    alone = {next(iter(owner)): side for owner, side in sides.items() if len(owner) == 1}
    return alone if len(alone) == 2 else {}


def _spread(values: Values, count: int) -> Values:
    """Return values for each row, where they may be one for all."""
    if isinstance(values.data, pa.Array):
        return values
    valid = None if values.valid is None else np.broadcast_to(values.valid, count)
    return Values(np.broadcast_to(values.data, count), valid)
