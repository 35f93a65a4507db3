"""What binding a query to a trace's columns gives: all names resolved, all kinds checked."""

from __future__ import annotations

from dataclasses import dataclass, replace

from uncertain_cep.query.branches import Term, branches_of
from uncertain_cep.query.syntax import Pattern, Query
from uncertain_cep.query.traversal import components_of
from uncertain_cep.query.typed import TypedExpression, variables_of

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
    """A query, or one branch of it without OR, bound to the columns of a trace.

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
    pattern : Pattern
        The query's, or that of a branch.
    terms : tuple of Term
        How the confidence of a branch's signatures is added up; empty if it is one OR-free pattern alone.
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
    pattern: Pattern
    terms: tuple[Term, ...] = ()
    by: tuple[str, ...] = ()
    every: int | None = None

    def branches(self) -> tuple[BoundQuery, ...]:
        """Return the query's branches without OR.

        Each is asked the predicates that it has all variables of. One with a negated variable, which is the
        only one there, is so asked of the readings that have it.
        """
        found = []
        for branch in branches_of(self.pattern):
            names = {component.variable for component in components_of(branch.pattern)}

            def has(expression: TypedExpression | None, names: set[str] = names) -> bool:
                return expression is None or variables_of(expression) <= names

            found.append(
                replace(
                    self,
                    components=tuple(part for part in self.components if part.variable in names),
                    predicates=tuple(filter(has, self.predicates)),
                    returns=tuple(
                        item
                        for item in self.returns
                        if has(item.expression) and (item.variable is None or item.variable in names)
                    ),
                    pattern=branch.pattern,
                    terms=branch.terms if len(branch.terms) > 1 else (),
                )
            )
        return tuple(found)
