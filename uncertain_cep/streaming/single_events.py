"""One event at a time, as plain values: which components can take it, and in which partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa

from uncertain_cep.config import MAX_TICK
from uncertain_cep.expressions.scalar import INT64, Scalar, plain_attribute, scalar
from uncertain_cep.plan import EvaluationPlan

__all__ = ["SingleEvents", "Taken"]

_KINDS: Final = (
    (pa.types.is_int64, int),
    (pa.types.is_float64, float),
    (pa.types.is_string, str),
    (pa.types.is_boolean, bool),
)


class Taken(NamedTuple):
    """An event, and the components that can take it."""

    lower: int
    upper: int
    components: list[int]
    keys: list[tuple[Any, ...]]
    """For each of these components the values of the partition attributes; none without partitions."""


@dataclass(frozen=True, slots=True)
class SingleEvents:
    """Checks events that are given as mappings, where all columns hold plain values.

    An event with other values, or with faults, goes through a table of one row, whose checks name all faults.
    """

    plan: EvaluationPlan
    kinds: Mapping[str, type]
    """Of each column."""
    local: tuple[tuple[Scalar, ...], ...]
    """The predicates of each component."""
    of_type: Mapping[str, tuple[int, ...]]
    """The components that take events of each type that the pattern names."""
    of_any: tuple[int, ...]
    """The components that take events of all other types."""

    @classmethod
    def of(cls, plan: EvaluationPlan, schema: pa.Schema) -> SingleEvents | None:
        """Return the checker of events of a schema; None if a column or a predicate needs a table."""
        kinds = {}
        for field in schema:
            kind = next((kind for is_kind, kind in _KINDS if is_kind(field.type)), None)
            special = plan.names.pmf, plan.names.tick, plan.names.probability
            if kind is None or field.name in special:
                return None
            kinds[field.name] = kind
        names = plan.names
        if (kinds[names.lower], kinds[names.upper], kinds[names.id], kinds[names.type]) != (
            int,
            int,
            int,
            str,
        ):
            return None
        keys = {name for j, _ in enumerate(plan.components) for name in plan.partitioning.of_component(j)}
        if any(kinds[name] not in (int, str) for name in keys):
            return None
        local = [[scalar(predicate, plain_attribute) for predicate in part.local] for part in plan.components]
        if any(condition is None for part in local for condition in part):
            return None
        of_type = {
            name: tuple(j for j, part in enumerate(plan.components) if not part.types or name in part.types)
            for name in (name for part in plan.components for name in part.types)
        }
        return cls(
            plan,
            kinds,
            tuple(tuple(condition for condition in part if condition) for part in local),
            of_type,
            tuple(j for j, part in enumerate(plan.components) if not part.types),
        )

    def look(self, event: Mapping[str, Any]) -> Taken | None:
        """Return the components that can take an event; None if it has to go through a table."""
        names, kinds = self.plan.names, self.kinds
        for name, value in event.items():
            kind = kinds.get(name)
            if value is None and kind is not None:
                continue
            if type(value) is not kind or (kind is int and value not in INT64):
                return None
        lower, upper = event.get(names.lower), event.get(names.upper)
        type_ = event.get(names.type)
        if lower is None or upper is None or type_ is None or event.get(names.id) is None:
            return None
        if not -MAX_TICK <= lower <= upper <= MAX_TICK:
            return None
        components, keys = [], []
        for j in self.of_type.get(type_, self.of_any):
            for predicate in self.local[j]:
                if predicate(event) is not True:
                    break
            else:
                key = self.plan.partitioning.of_event(event, j)
                if None in key:
                    return None
                components.append(j)
                keys.append(key)
        return Taken(lower, upper, components, keys)
