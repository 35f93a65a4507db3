"""What binding a query to a trace's columns gives: all names resolved, all kinds checked."""

from __future__ import annotations

from dataclasses import dataclass

from uncertain_cep.query.syntax import Query
from uncertain_cep.query.typed import TypedExpression

__all__ = ["BoundComponent", "BoundQuery", "BoundReturn"]


@dataclass(frozen=True, slots=True)
class BoundComponent:
    """A component of ``SEQ``: the event types it takes (empty: any) and its variable."""

    variable: str
    types: tuple[str, ...]
    kleene: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True)
class BoundReturn:
    """One output column: its name and either a typed expression or the id of a variable's event."""

    name: str
    expression: TypedExpression | None
    variable: str | None


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query bound to the columns of a trace.

    Attributes
    ----------
    query : Query
    components : tuple of BoundComponent
        In pattern order.
    predicates : tuple of TypedExpression
        The conjuncts of WHERE except ``[attr]``; all of kind bool.
    equivalences : tuple of str
        The attributes of ``[attr]``, in the order written.
    window : int
        WITHIN, in ticks, at least 1.
    returns : tuple of BoundReturn
        Empty without RETURN.
    by : tuple of str
        The columns of ``RETURN EXPECTED COUNT BY``.
    every : int or None
        Its EVERY, in ticks, at least 1.
    """

    query: Query
    components: tuple[BoundComponent, ...]
    predicates: tuple[TypedExpression, ...]
    equivalences: tuple[str, ...]
    window: int
    returns: tuple[BoundReturn, ...]
    by: tuple[str, ...] = ()
    every: int | None = None
