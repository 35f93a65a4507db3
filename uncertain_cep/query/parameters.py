"""Values for the parameters of a query, ``$name``: never read as a part of its text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from uncertain_cep.errors import Fault, OptionError, QueryError
from uncertain_cep.query import syntax
from uncertain_cep.query.checker import did_you_mean
from uncertain_cep.query.syntax import Expression, Instant, Untyped, duration_of
from uncertain_cep.query.walks import with_leaves
from uncertain_cep.timeline.durations import Duration, parse_duration

__all__ = ["Parameters", "guessed", "kinds_of", "values_of", "with_values"]

Scalar: TypeAlias = int | float | str | bool | Duration | None
Value: TypeAlias = Scalar | tuple[Scalar, ...]

Parameters: TypeAlias = tuple[tuple[str, Value], ...]
"""Values by the names of parameters, in the order of the names."""

_TRUTH: Final = {"true": True, "false": False}


def values_of(given: Mapping[str, Any] | None) -> Parameters:
    """Return the values that a caller gave to parameters.

    Raises
    ------
    OptionError
        If it is no mapping of names to numbers, text, truth values, times, lengths of time and None, or to
        lists of such.
    """
    if given is None:
        return ()
    mapping: Any = given
    if not isinstance(mapping, Mapping) or not all(isinstance(name, str) for name in mapping):
        raise OptionError(
            f"parameters={given!r}: it must be a mapping of names to values, such as "
            '{"limit": 5} for $limit'
        )
    return tuple((name, _value(name, given[name])) for name in sorted(given))


def _value(name: str, given: Any) -> Value:
    if not isinstance(given, str) and isinstance(given, Sequence | Set | np.ndarray | pa.Array):
        found = given.tolist() if isinstance(given, np.ndarray) and given.dtype.kind not in "mM" else given
        found = found.to_pylist() if isinstance(found, pa.Array) else found
        # The order of a set is another one in every process.
        found = sorted(found, key=repr) if isinstance(found, Set) else found
        return tuple(_scalar(name, each) for each in found)
    return _scalar(name, given)


def _scalar(name: str, given: Any) -> Scalar:
    if isinstance(given, np.generic) and not isinstance(given, np.datetime64 | np.timedelta64):
        given = given.item()
    if isinstance(given, Decimal):
        given = float(given)
    kind = type(given).__name__
    is_length = kind.startswith(("timedelta", "Timedelta"))
    is_time = isinstance(given, date | np.datetime64)
    if given is None or kind == "NAType" or ((is_time or is_length or kind == "NaTType") and given != given):
        return None
    if is_length or isinstance(given, str | bool | int):
        return given  # type: ignore[no-any-return]
    if isinstance(given, float) and math.isfinite(given):
        return given
    if is_time:
        if isinstance(given, np.datetime64) and np.datetime_data(given)[0] != "ns":
            given = given.astype("datetime64[us]")
        try:
            ticks = pa.scalar(given).cast(pa.timestamp("ns")).value
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise OptionError(f"parameters: ${name} is {given!r}, beyond the years 1678 to 2261") from None
        # Arrow leaves out what pandas has beyond microseconds.
        return Instant(ticks + (getattr(given, "nanosecond", 0) if ticks % 1000 == 0 else 0))
    raise OptionError(
        f"parameters: ${name} is {given!r}: it must be a finite number, text, True or False, a datetime, a "
        "timedelta or None, or for IN a list of such"
    )


def kinds_of(values: Parameters, clauses: frozenset[str]) -> tuple[object, ...]:
    """Return what of some values decides how a query is planned: kinds, and the values in ``clauses``."""
    return tuple(
        (name, type(value).__name__, value if name in clauses or isinstance(value, Untyped | tuple) else None)
        for name, value in values
    )


def with_values(query: syntax.Query, values: Parameters) -> syntax.Query:
    """Return a query with the values of its parameters in their places.

    Raises
    ------
    OptionError
        If a value is for no parameter of the query.
    QueryError
        If a parameter has no value, or one that its clause cannot take; all faults at once.
    """
    wanted = query.parameters
    given = dict(values)
    for name in given:
        if name not in wanted:
            known = f": it has {', '.join(f'${one}' for one in wanted)}" if wanted else " (it has none)"
            hint = did_you_mean(name, list(wanted)).replace("mean ", "mean $") or known
            raise OptionError(f"parameters: the query has no ${name}{hint}")
    if not wanted:
        return query
    faults: list[Fault] = []

    def put(parameter: Expression) -> Expression:
        if not isinstance(parameter, syntax.Parameter):
            return parameter
        if parameter.name not in given:
            faults.append(
                _fault(
                    parameter,
                    f'give parameters={{"{parameter.name}": ...}}, or --param {parameter.name}=..., a value',
                    start="no value for",
                )
            )
            return syntax.Literal(None, parameter.position)
        value: Any = given[parameter.name]
        if isinstance(value, tuple):
            faults.append(_fault(parameter, "a list of values stands behind IN alone: x IN $name"))
            return syntax.Literal(None, parameter.position)
        return syntax.Literal(value, parameter.position, parameter=parameter.name)

    def filled(expression: Expression) -> Expression:
        return with_leaves(expression, put, partial(_with_list, given=given, faults=faults))

    changes: dict[str, Any] = {
        "where": tuple(map(filled, query.where)),
        "returns": tuple(replace(item, expression=filled(item.expression)) for item in query.returns),
        "having": query.having
        and replace(
            query.having,
            conditions=tuple(map(filled, query.having.conditions)),
        ),
        "open_clauses": (),
        "values": values,
    }
    for clause in query.open_clauses:
        literal = put(clause.parameter)
        assert isinstance(literal, syntax.Literal)
        if literal.parameter is None:
            continue
        try:
            changes |= _CLAUSES[clause.clause](query, clause, literal.value)
        except (OptionError, ValueError) as error:
            faults.append(_fault(clause.parameter, str(error)))
    if faults:
        raise QueryError(list(dict.fromkeys(faults)), text=query.text)
    return replace(query, **changes)


def _with_list(call: syntax.Call, given: Mapping[str, Value], faults: list[Fault]) -> Expression:
    """Return ``x IN $name`` with the values of the list, FALSE if it has none."""
    value, parameter = call.arguments
    assert isinstance(parameter, syntax.Parameter)
    if parameter.name not in given:
        return call
    found = given[parameter.name]
    if isinstance(found, Untyped):
        found = tuple(Untyped(part.strip()) for part in found.split(","))
    if not isinstance(found, tuple):
        faults.append(
            _fault(parameter, f"IN ${parameter.name} takes a list, and IN (${parameter.name}) one value")
        )
        found = ()
    if not found:
        return syntax.Literal(False, call.position)
    # A plan holds for one list: none of the values is a parameter any more.
    listed = (syntax.Literal(each, parameter.position) for each in found)  # type: ignore[arg-type]
    return replace(call, function="in", arguments=(value, *listed))


def _fault(parameter: syntax.Parameter, message: str, *, start: str = "") -> Fault:
    place = parameter.position
    return Fault(f"{start} ${parameter.name}: {message}".strip(), place.line, place.column)


def guessed(text: str) -> int | float | bool | str:
    """Return the number or the truth value that a text says, or the text where it says none."""
    plain = text.strip()
    if plain.lower() in _TRUTH:
        return _TRUTH[plain.lower()]
    for kind in (int, float):
        try:
            number = kind(plain.removesuffix("%"))
        except ValueError:
            continue
        if math.isfinite(number):
            return float(f"{plain[:-1]}e-2") if plain.endswith("%") else number
    return str(text)


def _number(value: Value) -> int | float:
    found = guessed(value) if isinstance(value, Untyped) else value
    if isinstance(found, bool | Instant) or not isinstance(found, int | float):
        raise ValueError(f"{value!r} is no number")
    return found


def _limit(_query: syntax.Query, _clause: syntax.OpenClause, value: Value) -> dict[str, Any]:
    number = _number(value)
    if not isinstance(number, int):
        raise ValueError("LIMIT takes a whole number")
    return {"limit": number}


def _having(query: syntax.Query, _clause: syntax.OpenClause, value: Value) -> dict[str, Any]:
    least = float(_number(value))
    return {"min_confidence": least if query.min_confidence is None else max(least, query.min_confidence)}


def _length(clause: syntax.OpenClause, value: Value) -> syntax.Duration:
    position = clause.parameter.position
    is_text = isinstance(value, str) and not (
        isinstance(value, Untyped) and isinstance(guessed(value), int | float)
    )
    if is_text or not isinstance(value, int | float | str | None):
        if clause.unit is not None:
            raise ValueError(f"{value!r} is no number of {clause.unit}")
        nanoseconds = parse_duration(value, what=f"${clause.parameter.name}")  # type: ignore[arg-type]
        return syntax.Duration(nanoseconds, "ns", nanoseconds, position)
    number = _number(value)
    if number < 0:
        raise ValueError(f"{value!r} is below 0")
    found = duration_of(number, clause.unit, position)
    if found is None:
        raise ValueError(f"{value!r} {clause.unit} is not a whole number of nanoseconds")
    return found


def _within(_query: syntax.Query, clause: syntax.OpenClause, value: Value) -> dict[str, Any]:
    return {"window": _length(clause, value)}


def _every(query: syntax.Query, clause: syntax.OpenClause, value: Value) -> dict[str, Any]:
    assert query.expected_count is not None
    return {"expected_count": replace(query.expected_count, every=_length(clause, value))}


_CLAUSES: Final = {"LIMIT": _limit, "HAVING": _having, "WITHIN": _within, "EVERY": _every}
