"""The readings of a sequence with options: what each takes, made one by one where they are too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from uncertain_cep.plan.options import MatchOptions
from uncertain_cep.query.binder import BoundQuery
from uncertain_cep.query.branches import Branch, all_choices, joined_branch
from uncertain_cep.query.syntax import Sequence as Series
from uncertain_cep.query.walks import components_of

__all__ = ["Choice", "Readings"]

Choice = tuple[int, ...]
"""The number of a branch of each item."""


@dataclass(frozen=True, slots=True)
class Readings:
    """The readings of a SEQ, each a choice of one branch of every item, and what their plans are made of."""

    bound: BoundQuery
    items: tuple[tuple[Branch, ...], ...]
    """The branches of each item of the sequence."""
    schema: pa.Schema
    options: MatchOptions
    keys: frozenset[str]
    """The attributes that are partition keys of all readings."""
    planned: bool
    """Whether the plan has a branch for each reading, in the order of their choices."""

    @property
    def count(self) -> int:
        """How many choices there are."""
        count = 1
        for item in self.items:
            count *= len(item)
        return count

    @property
    def choices(self) -> Iterator[Choice]:
        """Those that take an event."""
        return all_choices(self.items)

    def of(self, choice: Choice) -> BoundQuery:
        """Return the query of a reading that takes an event."""
        pattern = self.bound.pattern
        assert isinstance(pattern, Series)
        chosen = [item[number] for item, number in zip(self.items, choice, strict=True)]
        bound = self.bound.of_branch(joined_branch(pattern, chosen))
        assert bound is not None
        return bound

    def that_takes(self, variables: Sequence[str]) -> Choice | None:
        """Return the first choice that takes events for just these variables; None if there is none."""
        wanted, choice = {*variables}, []
        for item in self.items:
            parts = [[part for part in components_of(one.pattern) if not part.negated] for one in item]
            taken = [{part.variable for part in own} for own in parts]
            here = wanted & set[str]().union(*taken)
            if here not in taken:
                return None
            choice.append(taken.index(here))
            wanted -= here
        return None if wanted else tuple(choice)
