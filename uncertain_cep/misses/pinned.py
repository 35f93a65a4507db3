"""Conditions that keep variables to certain events, as predicates on the numbers of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from uncertain_cep.misses.questions import ROW
from uncertain_cep.query.typed import Aggregated, Apply, Column, Constant, Element, TypedExpression

__all__ = ["pins_of_list", "pins_of_member", "pins_of_single"]


def pins_of_single(variable: str, row: int) -> Iterator[TypedExpression]:
    """Yield the condition that the one event of a variable is that of a row."""
    yield _equal(Column(variable, ROW, "int"), row)


def pins_of_list(variable: str, rows: Sequence[int], *, is_set: bool) -> Iterator[TypedExpression]:
    """Yield conditions that a Kleene variable takes just some rows, in this order unless it is a set."""
    count = Aggregated(variable, "", "int", function="count", span="all")
    yield _equal(count, len(rows))
    if is_set:
        members = [_equal(Column(variable, ROW, "int", "current"), row) for row in rows]
        yield members[0] if len(members) == 1 else _any(members)
        return
    for place, row in enumerate(rows):
        element: Element = place + 1 if place else "first"
        yield _equal(Column(variable, ROW, "int", element), row)


def pins_of_member(variable: str, row: int) -> Iterator[TypedExpression]:
    """Yield the condition that the event of a row is among those of a Kleene variable."""
    member = _equal(Column(variable, ROW, "int", "all"), row)
    yield Aggregated(variable, f"row {row}", "bool", computed=member, function="any", span="all", of="bool")


def _equal(column: Column, value: int) -> Apply:
    return Apply("equal", (column, Constant(value, "int")), "bool")


def _any(parts: Sequence[TypedExpression]) -> TypedExpression:
    whole = parts[0]
    for part in parts[1:]:
        whole = Apply("or", (whole, part), "bool")
    return whole
