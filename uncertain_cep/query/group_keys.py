"""The names of RETURN PROBABILITY BY, bound to the columns of a trace."""

from __future__ import annotations

from dataclasses import dataclass

from uncertain_cep.query.inference import Binding
from uncertain_cep.query.syntax import Query
from uncertain_cep.query.walks import components_of

__all__ = ["GroupKey", "bound_keys"]


@dataclass(frozen=True, slots=True)
class GroupKey:
    """One name of BY, bound to a trace.

    Attributes
    ----------
    column : str
        Its column in the result.
    variable : str or None
        Whose event tells it; None: any of the match.
    attribute : str or None
        The column of the trace; None: the event itself.
    """

    column: str
    variable: str | None
    attribute: str | None


def bound_keys(query: Query, binding: Binding) -> tuple[GroupKey, ...]:
    """Return the keys of a checked query; unknown attributes are noted as faults."""
    if query.probability is None:
        return ()
    components = list(components_of(query.pattern))
    variables = {component.variable for component in components}
    positive = [component for component in components if not component.negated]
    # The events of a match of one event agree on all that it has; not so where one stands for several.
    only = None
    if (
        not query.probability.reads_fewer
        and len(positive) == 1
        and not positive[0].kleene
        and positive[0].least == 1
    ):
        only = positive[0].variable
    keys = []
    for group in query.probability.by:
        if group.variable is None and group.name in variables:
            keys.append(GroupKey(group.name, group.name, None))
            continue
        variable = group.variable or only
        column = binding.column(group.name, group.position, variable or "")
        if column is not None:
            keys.append(GroupKey(group.text, variable, column[0]))
    return tuple(keys)
