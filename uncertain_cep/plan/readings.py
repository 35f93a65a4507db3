"""The readings of a pattern with options: what each takes, made one by one where they are too many.

Events decide which readings there are (:mod:`uncertain_cep.candidates.possible_readings`), and how often a
repeated group can stand. Each is a plan of
its own, as the gaps, keys and distances of a reading are. Beyond 256 readings they are planned as they come;
what asks for the branches of a plan before there are events sees a few that together have each component in
every role.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

import pyarrow as pa

from uncertain_cep.plan.options import MatchOptions
from uncertain_cep.query.binder import BoundQuery
from uncertain_cep.query.branches import Alternative, Branch, alternatives_of, covering_choices
from uncertain_cep.query.iterations import bound_reading
from uncertain_cep.query.repeated_groups import few_counts, list_of, number_of, repeated_groups, with_counts
from uncertain_cep.query.syntax import Pattern, Repeated
from uncertain_cep.query.walks import components_of

__all__ = ["Choice", "Readings"]

Choice = tuple[int, ...]
"""How often each repeated group stands, the number of an alternative, and that of a branch of each of its
items."""


@dataclass(frozen=True, slots=True)
class Readings:
    """The readings of a pattern, and what their plans are made of."""

    bound: BoundQuery
    alternatives: tuple[Alternative, ...]
    """Those of a pattern without repeated groups."""
    schema: pa.Schema
    options: MatchOptions
    keys: frozenset[str]
    """The attributes that are partition keys of all readings."""
    planned: bool
    """Whether the plan has a branch for each reading, in the order of their choices."""

    @property
    def groups(self) -> tuple[Repeated, ...]:
        """The repeated groups of the pattern."""
        return repeated_groups(self.bound.pattern)

    @property
    def count(self) -> int | None:
        """How many choices there are; None where groups are repeated, which events alone bound."""
        if self.groups:
            return None
        return sum(prod(map(len, alternative.items)) for alternative in self.alternatives)

    @property
    def choices(self) -> Iterator[Choice]:
        """Yield the choices that are readings of a pattern without repeated groups."""
        for number, alternative in enumerate(self.alternatives):
            for choice in alternative.choices:
                yield number, *choice

    def with_counts(self, counts: tuple[int, ...]) -> tuple[Alternative, ...]:
        """Return the alternatives in which repeated groups stand so often."""
        return _with_counts(self.bound.pattern, counts) if counts else self.alternatives

    def is_own(self, choice: Choice) -> bool:
        """Return whether it is the choice of its reading: groups beside it stand as seldom as they can."""
        groups = self.groups
        if not groups:
            return True
        taken = {list_of(part.variable) for part in components_of(self._branch(choice).pattern)}
        return all(
            count == group.fewest or not taken.isdisjoint(part.variable for part in components_of(group))
            for count, group in zip(choice, groups, strict=False)
        )

    @property
    def covering(self) -> list[Choice]:
        """Return the choices of :func:`~uncertain_cep.query.branches.covering_choices`.

        Repeated groups stand as often as :func:`~uncertain_cep.query.repeated_groups.few_counts` says.
        """
        return [*self.covering_of({})]

    def covering_of(self, lengths: Mapping[str, int]) -> Iterator[Choice]:
        """Yield the choices of `covering` in which the groups of some variables stand so often instead."""
        return self._own(lengths, covering_choices)

    def choices_of(self, lengths: Mapping[str, int]) -> Iterator[Choice]:
        """Yield all choices in which repeated groups stand as often as in those of `covering_of`."""
        return self._own(lengths, lambda alternative: alternative.choices)

    def _own(
        self, lengths: Mapping[str, int], choices_of: Callable[[Alternative], Iterable[Choice]]
    ) -> Iterator[Choice]:
        """Yield the choices of each alternative that are no other ones', see `covering_of`."""
        for counts in self._few_counts(lengths):
            for number, alternative in enumerate(self.with_counts(counts)):
                for choice in choices_of(alternative):
                    if self.is_own((*counts, number, *choice)):
                        yield *counts, number, *choice

    def _few_counts(self, lengths: Mapping[str, int]) -> Iterable[tuple[int, ...]]:
        """Return how often repeated groups stand: few times, or as often as variables of them are to have."""
        groups = self.groups
        if not groups:
            return [()]
        stated = [
            next((lengths[part.variable] for part in components_of(group) if part.variable in lengths), None)
            for group in groups
        ]
        few = few_counts(self.bound.pattern)
        return dict.fromkeys(
            tuple(count if fixed is None else fixed for count, fixed in zip(counts, stated, strict=True))
            for counts in few
        )

    @property
    def longest(self) -> Choice:
        """The one with most components."""
        return max(self.covering, key=lambda choice: len(self.of(choice).components))

    def of(self, choice: Choice) -> BoundQuery:
        """Return the query of a reading."""
        bound = bound_reading(self.bound, self._branch(choice))
        assert bound is not None
        return bound

    def _branch(self, choice: Choice) -> Branch:
        groups = len(self.groups)
        number, *chosen = choice[groups:]
        return self.with_counts(choice[:groups])[number].branch_of(chosen)

    def that_takes(self, variables: Sequence[str], empty: frozenset[str] | None = None) -> Choice | None:
        """Return the first choice that takes events for just these variables; None if there is none.

        With ``empty`` just these variables are lists that are empty.
        """
        for counts in self._counts_of(variables):
            for number, alternative in enumerate(self.with_counts(counts)):
                choice = _choice_that_takes(alternative, variables)
                if choice is not None:
                    reading = *counts, number, *choice
                    if self.is_own(reading) and (empty is None or self._branch(reading).left_out == empty):
                        return reading
        return None

    def _counts_of(self, variables: Sequence[str]) -> Iterator[tuple[int, ...]]:
        """Yield how often groups may stand in readings with these variables."""
        counts = []
        for group in self.groups:
            names = {part.variable for part in components_of(group)}
            count = max((number_of(name) for name in variables if list_of(name) in names), default=0)
            counts.append([count] if count else [group.fewest])
        yield from product(*counts)


@lru_cache(maxsize=64)
def _with_counts(pattern: Pattern, counts: tuple[int, ...]) -> tuple[Alternative, ...]:
    return alternatives_of(with_counts(pattern, counts))


def _choice_that_takes(alternative: Alternative, variables: Sequence[str]) -> Choice | None:
    """Return the first choice of an alternative that takes events for just these variables."""
    remaining, choice = {*variables}, []
    for item in alternative.items:
        parts = [[part for part in components_of(one.pattern) if not part.negated] for one in item]
        taken = [{part.variable for part in parts_of_branch} for parts_of_branch in parts]
        here = remaining & set[str]().union(*taken)
        if here not in taken:
            return None
        choice.append(taken.index(here))
        remaining -= here
    return None if remaining or not alternative.is_reading(choice) else tuple(choice)
