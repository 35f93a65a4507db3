"""Values for the parameters of a query, ``$name``: never read as a part of its text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import date, timedelta
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

__all__ = ["Parameters", "guessed", "kinds_of", "plain_values", "values_of", "values_of_plain", "with_values"]

Scalar: TypeAlias = int | float | str | bool | Duration | None
Value: TypeAlias = Scalar | tuple[Scalar, ...]

Parameters: TypeAlias = tuple[tuple[str, Value], ...]
"""Values by the names of parameters, in the order of the names."""

_TRUTH: Final = {"true": True, "false": False}


def values_of(parameters: Mapping[str, Any] | None) -> Parameters:
    """Return the values that a caller gave to parameters.

    Raises
    ------
    OptionError
        If it is no mapping of names to numbers, text, truth values, times, lengths of time and None, or to
        lists of such.
    """
    if parameters is None:
        return ()
    mapping: Any = parameters
    if not isinstance(mapping, Mapping) or not all(isinstance(name, str) for name in mapping):
        raise OptionError(
            f"parameters={parameters!r}: it must be a mapping of names to values, such as "
            '{"limit": 5} for $limit'
        )
    return tuple((name, _value(name, parameters[name])) for name in sorted(parameters))


def _value(name: str, value: Any) -> Value:
    if not isinstance(value, str) and isinstance(value, Sequence | Set | np.ndarray | pa.Array):
        listed = value.tolist() if isinstance(value, np.ndarray) and value.dtype.kind not in "mM" else value
        listed = listed.to_pylist() if isinstance(listed, pa.Array) else listed
        # The order of a set is another one in every process.
        listed = sorted(listed, key=repr) if isinstance(listed, Set) else listed
        return tuple(_scalar(name, each) for each in listed)
    return _scalar(name, value)


def _scalar(name: str, value: Any) -> Scalar:
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if isinstance(value, Decimal):
        value = float(value)
    kind = type(value).__name__
    is_length = kind.startswith(("timedelta", "Timedelta"))
    is_time = isinstance(value, date | np.datetime64)
    if value is None or kind == "NAType" or ((is_time or is_length or kind == "NaTType") and value != value):
        return None
    if is_length:
        return _length_of(parse_duration(value, what=f"parameters: ${name} is"))
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if is_time:
        if isinstance(value, np.datetime64) and np.datetime_data(value)[0] != "ns":
            value = value.astype("datetime64[us]")
        try:
            ticks = pa.scalar(value).cast(pa.timestamp("ns")).value
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise OptionError(f"parameters: ${name} is {value!r}, beyond the years 1678 to 2261") from None
        # Arrow leaves out what pandas has beyond microseconds.
        return Instant(ticks + (getattr(value, "nanosecond", 0) if ticks % 1000 == 0 else 0))
    raise OptionError(
        f"parameters: ${name} is {value!r}: it must be a finite number, text, True or False, a datetime, a "
        "timedelta or None, or for IN a list of such"
    )


def _length_of(nanoseconds: int) -> Duration:
    """Return a length as the standard library has it, or NumPy where this has no such length."""
    if nanoseconds % 1000 == 0:
        return timedelta(microseconds=nanoseconds // 1000)
    return np.timedelta64(nanoseconds, "ns")  # type: ignore[return-value]


def plain_values(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return values as JSON can hold them; `values_of_plain` gives them back."""
    return {name: _plain(value) for name, value in values}


def values_of_plain(plain: Mapping[str, Any]) -> Parameters:
    """Return the values of which `plain_values` has made JSON."""
    return tuple((name, _of_plain(value)) for name, value in plain.items())


def _plain(value: Value) -> Any:
    if isinstance(value, tuple):
        return [*map(_plain, value)]
    if isinstance(value, Instant | Untyped):
        return {type(value).__name__: value}
    if isinstance(value, timedelta | np.timedelta64):
        return {"length": parse_duration(value)}
    return value


def _of_plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_of_plain, value))
    if isinstance(value, dict):
        kinds: dict[str, Any] = {"Instant": Instant, "Untyped": Untyped, "length": _length_of}
        ((kind, plain),) = value.items()
        return kinds[kind](plain)
    return value


def kinds_of(values: Parameters, clauses: frozenset[str]) -> tuple[object, ...]:
    """Return a key for planning: the kinds of some values, and the values themselves in ``clauses``."""
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
    value_of = dict(values)
    _check_names(value_of, query.parameters)
    if not query.parameters:
        return query
    faults: list[Fault] = []

    def put(parameter: Expression) -> Expression:
        if not isinstance(parameter, syntax.Parameter):
            return parameter
        if parameter.name not in value_of:
            faults.append(
                _fault(
                    parameter,
                    f'give parameters={{"{parameter.name}": ...}}, or --param {parameter.name}=..., a value',
                    start="no value for",
                )
            )
            return syntax.Literal(None, parameter.position)
        value: Any = value_of[parameter.name]
        if isinstance(value, tuple):
            faults.append(_fault(parameter, "a list of values stands behind IN alone: x IN $name"))
            return syntax.Literal(None, parameter.position)
        return syntax.Literal(value, parameter.position, parameter=parameter.name)

    def filled(expression: Expression) -> Expression:
        return with_leaves(expression, put, partial(_with_list, value_of=value_of, faults=faults))

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


def _check_names(names: Iterable[str], parameters: Sequence[str]) -> None:
    """Raise OptionError for a name that no parameter has."""
    for name in names:
        if name not in parameters:
            those = (
                f": it has {', '.join(f'${one}' for one in parameters)}" if parameters else " (it has none)"
            )
            hint = did_you_mean(name, list(parameters)).replace("mean ", "mean $") or those
            raise OptionError(f"parameters: the query has no ${name}{hint}")


def _with_list(call: syntax.Call, value_of: Mapping[str, Value], faults: list[Fault]) -> Expression:
    """Return ``x IN $name`` with the values of the list, FALSE if it has none."""
    value, parameter = call.arguments
    assert isinstance(parameter, syntax.Parameter)
    if parameter.name not in value_of:
        return call
    values_of_list = value_of[parameter.name]
    if isinstance(values_of_list, Untyped):
        values_of_list = tuple(Untyped(part.strip()) for part in values_of_list.split(","))
    if not isinstance(values_of_list, tuple):
        faults.append(
            _fault(parameter, f"IN ${parameter.name} takes a list, and IN (${parameter.name}) one value")
        )
        values_of_list = ()
    if not values_of_list:
        return syntax.Literal(False, call.position)
    # A plan holds for one list: none of the values is a parameter any more.
    listed = (syntax.Literal(each, parameter.position) for each in values_of_list)  # type: ignore[arg-type]
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
    number = guessed(value) if isinstance(value, Untyped) else value
    if isinstance(number, bool | Instant) or not isinstance(number, int | float):
        raise ValueError(f"{value!r} is no number")
    return number


def _limit(_query: syntax.Query, _clause: syntax.OpenClause, value: Value) -> dict[str, Any]:
    number = _number(value)
    if not isinstance(number, int):
        raise ValueError("LIMIT takes a whole number")
    return {"limit": number}


def _having(query: syntax.Query, _clause: syntax.OpenClause, value: Value) -> dict[str, Any]:
    threshold = float(_number(value))
    return {
        "min_confidence": threshold if query.min_confidence is None else max(threshold, query.min_confidence)
    }


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
    length = duration_of(number, clause.unit, position)
    if length is None:
        raise ValueError(f"{value!r} {clause.unit} is not a whole number of nanoseconds")
    return length


def _within(_query: syntax.Query, clause: syntax.OpenClause, value: Value) -> dict[str, Any]:
    return {"window": _length(clause, value)}


def _every(query: syntax.Query, clause: syntax.OpenClause, value: Value) -> dict[str, Any]:
    every = _length(clause, value)
    if query.probability is not None:
        return {"probability": replace(query.probability, every=every)}
    assert query.expected_count is not None
    return {"expected_count": replace(query.expected_count, every=every)}


_CLAUSES: Final = {"LIMIT": _limit, "HAVING": _having, "WITHIN": _within, "EVERY": _every}
