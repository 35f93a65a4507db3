"""How the events are split before anything is matched: by the values that the events of a match agree on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from uncertain_cep.plan.equivalence import PartitionKey

__all__ = ["Partitioning"]


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The keys by which events are split; none: all events are in one partition."""

    keys: tuple[PartitionKey, ...]

    @property
    def labels(self) -> list[str]:
        """The name of each key, or the columns that it equates."""
        return [key.name or " = ".join(key.columns) for key in self.keys]

    @property
    def names(self) -> list[str]:
        """The names of those keys that all components call the same."""
        return [key.name for key in self.keys if key.name is not None]

    @property
    def columns(self) -> list[str]:
        """The columns that components read, and then those that negated ones do; some more than once."""
        return [name for key in self.keys for name in (*key.columns, *filter(None, key.negated))]

    @property
    def is_alike(self) -> bool:
        """Whether an event is of the same partition for every component."""
        return all(len(set(key.columns)) == 1 for key in self.keys)

    def of_component(self, component: int) -> tuple[str, ...]:
        """Return the columns that hold the keys of a component's events."""
        return tuple(key.columns[component] for key in self.keys)

    def of_event(self, event: Mapping[str, Any], component: int) -> tuple[Any, ...]:
        """Return the values of the keys of one event as that of a component."""
        return tuple(map(event.get, self.of_component(component)))

    def with_negated(self, component: int) -> tuple[PartitionKey, ...]:
        """Return the keys of a pattern without negation, once one of its components is negated."""

        def moved(key: PartitionKey) -> PartitionKey:
            columns = key.columns[:component] + key.columns[component + 1 :]
            return replace(key, columns=columns, negated=(key.columns[component],))

        return tuple(map(moved, self.keys))

    def of_negation(self, number: int) -> list[tuple[str, str]]:
        """Return the pairs of columns, of the first component and of a negated one, that have to agree."""
        return [(key.columns[0], name) for key in self.keys if (name := key.negated[number]) is not None]
