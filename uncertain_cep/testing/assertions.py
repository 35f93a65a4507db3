"""Assertions on matches; a failure shows the events that it is about, and when these can have been."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.boundary import public
from uncertain_cep.config.tolerances import CERTAIN
from uncertain_cep.errors import OptionError
from uncertain_cep.results.display import percent, shown_rows
from uncertain_cep.testing.model import Event, Query
from uncertain_cep.testing.worlds import answer
from uncertain_cep.traces.frames import as_arrow

__all__ = ["assert_answer", "assert_certain", "assert_likely", "assert_never", "table"]

RELATIVE_ERROR: Final = 1e-9
"""How far a confidence may be from the exact one."""

SHOWN: Final = 5
"""Most matches that a failure shows."""

WIDTH: Final = 40
"""Characters of the time line of a failure."""

_OF_ANSWERS: Final = ("range_lower", "range_upper", "confidence", "exact", "std_error")


def assert_certain(matches: Any, events: Any = None, /, **columns: Any) -> None:
    """Assert that a match happened, whatever the uncertain times were.

    Parameters
    ----------
    matches : pyarrow.Table, pandas or Polars DataFrame
        What :func:`uncertain_cep.match` returned.
    events : the same kinds, optional
        What was matched: a failure shows these events and when they can have happened.
    **columns
        What columns of the match have: ids of variables, lists of ids, or values of other columns.

    Raises
    ------
    AssertionError
        If no such match has probability 1, or those that have it are estimated.
    OptionError
        If there is no such column, or the matches have no confidence.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 2], "upper": [3, 5]})
    >>> matches = uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 9")
    >>> uc.testing.assert_certain(matches, events, a=1)
    Traceback (most recent call last):
    AssertionError: a = 1 is not certain: the best match has probability 81.2%
      a  b  range_lower  range_upper  confidence
      1  2            0            5      0.8125
    when its events can have happened:
      type  id  lower  upper
      A      1      0      3  [===========================             ]
      B      2      2      5  [             ===========================]
    """
    __tracebackhide__ = True
    _fail(_certain(matches, events, columns))


def assert_likely(matches: Any, at_least: float, events: Any = None, /, **columns: Any) -> None:
    """Assert that a match has some probability at least; of several, that the best has.

    Parameters
    ----------
    matches, events, **columns
        As for :func:`assert_certain`.
    at_least : float
        Above 0, and at most 1.

    Raises
    ------
    AssertionError
        If no such match has this probability.
    OptionError
        As of :func:`assert_certain`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 2], "upper": [3, 5]})
    >>> uc.testing.assert_likely(uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 9"), 0.8, events, a=1, b=2)
    """
    __tracebackhide__ = True
    _fail(_likely(matches, at_least, events, columns))


def assert_never(matches: Any, events: Any = None, /, **columns: Any) -> None:
    """Assert that no such match can have happened; without columns, that nothing matched.

    What HAVING or LIMIT leaves out is not among the matches, so ask without them.

    Parameters
    ----------
    matches, events, **columns
        As for :func:`assert_certain`; the confidence may be missing.

    Raises
    ------
    AssertionError
        If there is such a match.
    OptionError
        If there is no such column.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [4, 2], "upper": [5, 4]})
    >>> uc.testing.assert_never(uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 9"), events, a=1, b=2)
    """
    __tracebackhide__ = True
    _fail(_never(matches, events, columns))


def assert_answer(matches: Any, query: Query, events: Sequence[Event]) -> None:
    """Assert that matches are what enumerating all possible worlds gives.

    Parameters
    ----------
    matches : pyarrow.Table, pandas or Polars DataFrame
        With the columns of the variables and of the partition, the range in ticks, and the confidence.
    query : Query
        The same as was asked, in the oracle's words.
    events : sequence of Event
        The same as were matched.

    Raises
    ------
    AssertionError
        If a match is missing, is none, occurs twice, or has another range or confidence.
    OptionError
        If the matches lack a column.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> from uncertain_cep.testing import Event, Query, one, seq
    >>> events = [Event("A", 1, 0, 3), Event("B", 2, 2, 5)]
    >>> matches = uc.match(uc.testing.table(events), "PATTERN SEQ(A a, B b) WITHIN 9")
    >>> uc.testing.assert_answer(matches, Query(seq(one("A", "a"), one("B", "b")), 9), events)
    """
    __tracebackhide__ = True
    _fail(_other_answer(matches, query, events))


def table(events: Sequence[Event]) -> pa.Table:
    """Return the oracle's events as those of :func:`uncertain_cep.match`, with their times in ticks.

    Raises
    ------
    OptionError
        If an event has what only the oracle knows: a sequence, or a clock that is ordered or has a pmf.

    Examples
    --------
    >>> from uncertain_cep.testing import Event, table
    >>> table([Event("A", 1, 0, 3, attributes={"x": 7})]).to_pylist()
    [{'type': 'A', 'id': 1, 'lower': 0, 'upper': 3, 'x': 7}]
    """
    for event in events:
        clock = event.clock
        of_clock = clock is not None and (clock.ordered or clock.pmf is not None)
        if of_clock or event.sequence is not None:
            raise OptionError(f"only the oracle knows what this event has: {event}")
    columns: dict[str, Any] = {
        "type": pa.array([event.type for event in events], pa.string()),
        "id": [event.id for event in events] or pa.array([], pa.int64()),
        "lower": pa.array([event.lower for event in events], pa.int64()),
        "upper": pa.array([event.upper for event in events], pa.int64()),
    }
    if any(event.pmf is not None for event in events):
        pmfs = [None if event.pmf is None else list(map(float, event.pmf)) for event in events]
        columns["pmf"] = pa.array(pmfs, pa.list_(pa.float64()))
    if any(event.probability != 1 for event in events):
        columns["probability"] = pa.array([float(event.probability) for event in events], pa.float64())
    if clocks := list(dict.fromkeys(event.clock for event in events if event.clock is not None)):
        named = [event.clock for event in events]
        columns["source"] = pa.array(
            [clock and f"clock {clocks.index(clock)}" for clock in named], pa.string()
        )
        columns["offset_lower"] = pa.array([clock and clock.lower for clock in named], pa.int64())
        columns["offset_upper"] = pa.array([clock and clock.upper for clock in named], pa.int64())
    for name in dict.fromkeys(name for event in events for name in event.attributes):
        columns[name] = [event[name] for event in events]
    return pa.table(columns)


def _fail(fault: str | None) -> None:
    __tracebackhide__ = True
    if fault is not None:
        raise AssertionError(fault)


@public
def _certain(matches: Any, events: Any, columns: Mapping[str, Any]) -> str | None:
    fitting, best = _best(matches, columns)
    if best >= CERTAIN:
        if (
            "exact" not in fitting.column_names
            or pc.any(fitting.filter(_at_least(fitting, 1))["exact"]).as_py()
        ):
            return None
        return _told(
            f"{_asked(columns)} is not certain: its confidence is an estimate", fitting, events, columns
        )
    said = f"is not certain: the best match has probability {percent(best)}"
    return _told(f"{_asked(columns)} {said}", fitting, events, columns)


@public
def _likely(matches: Any, at_least: float, events: Any, columns: Mapping[str, Any]) -> str | None:
    if not 0 < at_least <= 1:
        raise OptionError(f"at_least={at_least!r}: it must be above 0, and at most 1")
    fitting, best = _best(matches, columns)
    if best >= at_least * (1 - RELATIVE_ERROR):
        return None
    said = f"does not have probability {at_least:g}: the best match has {best:.6g}"
    return _told(f"{_asked(columns)} {said}", fitting, events, columns)


@public
def _never(matches: Any, events: Any, columns: Mapping[str, Any]) -> str | None:
    fitting = _fitting(as_arrow(matches), columns)
    if not fitting.num_rows:
        return None
    return _told(f"{_asked(columns)} is possible", fitting, events, columns)


def _at_least(rows: pa.Table, threshold: float) -> pa.ChunkedArray:
    return pc.greater_equal(rows["confidence"], threshold * (1 - RELATIVE_ERROR))


def _best(matches: Any, columns: Mapping[str, Any]) -> tuple[pa.Table, float]:
    """Return the matches that fit, and the highest confidence of them; 0 if there is none."""
    table = as_arrow(matches)
    if "confidence" not in table.column_names:
        raise OptionError("the matches have no column confidence: match without confidence=False")
    fitting = _fitting(table, columns).sort_by([("confidence", "descending")])
    return fitting, fitting["confidence"][0].as_py() if fitting.num_rows else 0.0


def _fitting(matches: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    """Return the rows whose columns have these values."""
    if unknown := [name for name in columns if name not in matches.column_names]:
        raise OptionError(
            f"the matches have no column {unknown[0]!r}: they have {', '.join(matches.column_names)}"
        )
    expected = {name: list(value) if isinstance(value, tuple) else value for name, value in columns.items()}
    rows = matches.select(list(expected)).to_pylist()
    return matches.filter(pa.array([row == expected for row in rows], pa.bool_())) if expected else matches


def _asked(columns: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in columns.items()) or "a match"


def _told(said: str, rows: pa.Table, events: Any, columns: Mapping[str, Any]) -> str:
    """Return a message about a failure, with the matches in question and their events."""
    parts = [said]
    if rows.num_rows:
        parts.append(shown_rows(rows.slice(0, SHOWN)))
        if rows.num_rows > SHOWN:
            parts.append(f"  ... and {rows.num_rows - SHOWN} more")
    else:
        parts[0] = f"{_asked(columns)}: there is no such match"
    if events is not None and (line := _time_line(as_arrow(events), rows.slice(0, SHOWN), columns)):
        parts += ["when its events can have happened:", line]
    return "\n".join(parts)


def _time_line(events: pa.Table, shown: pa.Table, columns: Mapping[str, Any]) -> str:
    """Return the events that matches, or else what was asked for, name by their ids, on one time line."""
    if missing := [name for name in ("type", "id", "lower", "upper") if name not in events.column_names]:
        raise OptionError(f"the events have no column {missing[0]!r}")
    rows = shown.drop_columns([name for name in _OF_ANSWERS if name in shown.column_names]).to_pylist()
    named: list[Mapping[str, Any]] = rows or [columns]
    bounds = ["type", "id", "lower", "upper"]
    places = [
        place for place, event in enumerate(events.to_pylist()) if any(_names(row, event) for row in named)
    ]
    if not places:
        return ""
    chosen = events.take(places).select(bounds).sort_by([("lower", "ascending"), ("upper", "ascending")])
    lowers, uppers = (_ticks(chosen[name]) for name in ("lower", "upper"))
    start, length = min(lowers), max(uppers) - min(lowers) + 1
    bars = []
    for lower, upper in zip(lowers, uppers, strict=True):
        begin = (lower - start) * WIDTH // length
        end = max(begin + 1, math.ceil((upper - start + 1) * WIDTH / length))
        bars.append(" " * begin + "=" * (end - begin) + " " * (WIDTH - end))
    lines = shown_rows(chosen).split("\n")
    width = max(map(len, lines))
    return "\n".join(
        [lines[0], *(f"{line:<{width}}  [{bar}]" for line, bar in zip(lines[1:], bars, strict=True))]
    )


def _names(row: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Tell whether a match has an event's id, and its partition if the event knows it."""
    taken = any(
        event["id"] in value if isinstance(value, list | tuple) else event["id"] == value
        for name, value in row.items()
        if name not in event
    )
    return taken and all(
        event[name] == value for name, value in row.items() if name in event and name != "id"
    )


def _ticks(times: pa.ChunkedArray) -> list[int]:
    if pa.types.is_date32(times.type):
        times = times.cast(pa.int32())
    ticks: list[int] = times.cast(pa.int64()).to_pylist()
    return ticks


@public
def _other_answer(matches: Any, query: Query, events: Sequence[Event]) -> str | None:
    try:
        right = {(match.partition, match.signature): match for match in answer(query, events)}
    except ValueError as error:
        raise OptionError(f"the oracle does not define this query: {error}") from error
    answer_rows = as_arrow(matches)
    variables = [name for name, _ in next(iter(right))[1]] if right else []
    needed = [*query.partition, *variables, "range_lower", "range_upper", "confidence"]
    if missing := [name for name in needed if name not in answer_rows.column_names]:
        raise OptionError(f"the matches have no column {missing[0]!r}")
    faults = []
    for row in answer_rows.to_pylist():
        partition = tuple(row[name] for name in query.partition)
        signature = tuple(
            (name, tuple(row[name]) if isinstance(row[name], list) else row[name]) for name in variables
        )
        match = right.pop((partition, signature), None)
        if match is None:
            faults.append(f"is none, or occurs twice: {row}")
            continue
        exact = float(match.confidence)
        in_range = (row["range_lower"], row["range_upper"]) == (match.range_lower, match.range_upper)
        if not in_range or not math.isclose(row["confidence"], exact, rel_tol=RELATIVE_ERROR):
            faults.append(
                f"should have range {match.range_lower} to {match.range_upper}, probability {exact}: {row}"
            )
    faults += [
        f"is missing: {dict(signature)}, probability {float(match.confidence)}"
        for (_, signature), match in right.items()
    ]
    if not faults:
        return None
    event_table = table(events)
    line = _time_line(event_table, pa.table({"": event_table["id"]}), {})
    return "\n".join(
        ["the matches are not those of the possible worlds", *(f"  {fault}" for fault in faults), line]
    )
