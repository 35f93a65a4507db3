"""The components of a planned pattern."""

from __future__ import annotations

from dataclasses import dataclass

from uncertain_cep.query.typed import TypedExpression

__all__ = ["PlannedComponent", "PlannedNegation"]


@dataclass(frozen=True, slots=True)
class PlannedComponent:
    """One component of the pattern."""

    variable: str
    types: tuple[str, ...]
    """Event types it takes; empty for any."""
    local: tuple[TypedExpression, ...]
    """The predicates that speak of each event of this variable alone."""
    kleene: bool = False
    """Whether it takes one or more events."""


@dataclass(frozen=True, slots=True)
class PlannedNegation:
    """One negated component of the pattern."""

    component: PlannedComponent
    after: int
    """How many positive components stand before it: 0 for a leading negation, all for a trailing one."""
    joint: str = ""
    """The negated group that it stands in; empty for none. Alone it forbids nothing then."""
