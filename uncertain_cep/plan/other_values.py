"""A plan with other values of the same kinds for the parameters of its query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, Final, TypeVar

from uncertain_cep.query.syntax import Call, Literal, Query, expressions_in
from uncertain_cep.query.typed import Constant, parse_time
from uncertain_cep.timeline.domain import Names, TimeDomain
from uncertain_cep.timeline.durations import parse_duration

__all__ = ["with_other_values"]

PlanT = TypeVar("PlanT")


_OF_ANY_VALUES: Final = frozenset(
    {"is_null", "in", "between", "case", "coalesce", "nullif", "least", "greatest"}
)


class _UnfitError(Exception):
    """A value that is not what the plan was made for."""


def with_other_values(plan: PlanT, values: Mapping[str, Any]) -> PlanT | None:
    """Return a plan with other values in the places of parameters; None if one of them does not fit there."""
    try:
        return _changed(plan, values)  # type: ignore[no-any-return]
    except _UnfitError:
        return None


def _changed(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, tuple):
        changed = tuple(_changed(one, values) for one in part)
        return part if all(map(_same, changed, part)) else changed
    if isinstance(part, Constant | Literal):
        return part if part.parameter is None else replace(part, value=_fit(part, values[part.parameter]))
    if not is_dataclass(part) or isinstance(part, Names | TimeDomain):
        return part
    if isinstance(part, Call) and part.function not in _OF_ANY_VALUES and _has_parameter(part):
        # Patterns and digits are looked at, and functions of values alone worked out, when the plan is made.
        raise _UnfitError
    changes: dict[str, Any] = {"values": tuple(values.items())} if isinstance(part, Query) else {}
    kind: Any = type(part)
    for name in _names(kind):
        old = getattr(part, name)
        new = _changed(old, values)
        if new is not old:
            changes[name] = new
    return replace(part, **changes) if changes else part  # type: ignore[type-var]


def _has_parameter(call: Call) -> bool:
    return any(isinstance(part, Literal) and part.parameter is not None for part in expressions_in(call))


def _same(one: object, other: object) -> bool:
    return one is other


@cache
def _names(kind: type) -> tuple[str, ...]:
    """Return the fields of a kind of part that may hold constants."""
    unused = (
        {"pattern", "clause_positions", "strategy_variables", "values"} if issubclass(kind, Query) else ()
    )
    return tuple(field.name for field in fields(kind) if field.name not in unused)


def _fit(part: Constant | Literal, value: Any) -> Any:
    if isinstance(part, Literal):
        return value
    if part.kind == "duration":
        return parse_duration(value)
    if part.kind == "time":
        value = parse_time(value) if isinstance(value, str) else int(value)
    if value is None and part.kind != "null":
        raise _UnfitError
    if part.kind == "int" and not -(2**63) <= value < 2**63:
        raise _UnfitError
    return value
