"""The readings of a pattern with options: what each takes, made one by one where they are too many.

Events decide which readings there are (:mod:`uncertain_cep.candidates.possible_readings`). Each is a plan of
its own, as the gaps, keys and distances of a reading are. Beyond 256 readings they are planned as they come;
what asks for the branches of a plan before there are events sees a few that together have each component in
every role.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import pyarrow as pa

from uncertain_cep.plan.options import MatchOptions
from uncertain_cep.query.binder import BoundQuery
from uncertain_cep.query.branches import Alternative, covering_choices
from uncertain_cep.query.walks import components_of

__all__ = ["Choice", "Readings"]

Choice = tuple[int, ...]
"""The number of an alternative, and that of a branch of each of its items."""


@dataclass(frozen=True, slots=True)
class Readings:
    """The readings of a pattern, and what their plans are made of."""

    bound: BoundQuery
    alternatives: tuple[Alternative, ...]
    schema: pa.Schema
    options: MatchOptions
    keys: frozenset[str]
    """The attributes that are partition keys of all readings."""
    planned: bool
    """Whether the plan has a branch for each reading, in the order of their choices."""

    @property
    def count(self) -> int:
        """How many choices there are."""
        return sum(prod(map(len, alternative.items)) for alternative in self.alternatives)

    @property
    def choices(self) -> Iterator[Choice]:
        """Yield the choices that are readings."""
        for number, alternative in enumerate(self.alternatives):
            for choice in alternative.choices:
                yield number, *choice

    @property
    def covering(self) -> list[Choice]:
        """Return the choices of :func:`~uncertain_cep.query.branches.covering_choices`."""
        return [
            (number, *choice)
            for number, alternative in enumerate(self.alternatives)
            for choice in covering_choices(alternative)
        ]

    @property
    def longest(self) -> Choice:
        """The one with most components."""
        return max(self.covering, key=lambda choice: len(self.of(choice).components))

    def of(self, choice: Choice) -> BoundQuery:
        """Return the query of a reading."""
        number, *chosen = choice
        bound = self.bound.of_branch(self.alternatives[number].branch_of(chosen))
        assert bound is not None
        return bound

    def that_takes(self, variables: Sequence[str], empty: frozenset[str] | None = None) -> Choice | None:
        """Return the first choice that takes events for just these variables; None if there is none.

        With ``empty`` just these variables are lists that are empty.
        """
        for number, alternative in enumerate(self.alternatives):
            remaining, choice = {*variables}, [number]
            for item in alternative.items:
                parts = [[part for part in components_of(one.pattern) if not part.negated] for one in item]
                taken = [{part.variable for part in parts_of_branch} for parts_of_branch in parts]
                here = remaining & set[str]().union(*taken)
                if here not in taken:
                    break
                choice.append(taken.index(here))
                remaining -= here
            else:
                if not remaining and alternative.is_reading(choice[1:]):
                    reading = tuple(choice)
                    if empty is None or self.of(reading).left_out == empty:
                        return reading
        return None
