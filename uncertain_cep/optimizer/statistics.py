"""What a planner knows of the data: how many candidates there are, and how many of them go together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

__all__ = [
    "ComponentStatistics",
    "EqualityStatistics",
    "KeyStatistics",
    "LengthStatistics",
    "PairStatistics",
    "PredicateStatistics",
    "Statistics",
    "TripleStatistics",
]


@dataclass(frozen=True, slots=True)
class LengthStatistics:
    """How long the intervals of a sample are, in ticks; 0 for a certain time."""

    mean: float
    median: float
    most: float
    longest: float
    """``most`` is what nine of ten do not exceed."""


@dataclass(frozen=True, slots=True)
class ComponentStatistics:
    """What one component can take."""

    variable: str
    candidates: float
    """Events that it can take: of its types, in a partition, all local predicates true."""
    rate: float
    """Candidates per tick."""
    type_share: float
    """Share of the events that have one of its types."""
    local: tuple[float, ...]
    """For each local predicate the share of these for which it is true."""
    lengths: LengthStatistics
    """Of the candidates' intervals."""


@dataclass(frozen=True, slots=True)
class PairStatistics:
    """How two components go together."""

    first: int
    second: int
    """The components, in pattern order."""
    in_time: float
    """Share of all pairs of candidates that are of one partition and can be in order within the window; in
    any order if they stand in one AND."""
    joined: float
    """Share of these, their equalities given, for which every other predicate over the two is true."""
    first_met: float = 1.0
    second_met: float = 1.0
    """Share of the first's candidates for which there is at least one of the second's in this sense, and of
    the second's for which there is one of the first's."""


@dataclass(frozen=True, slots=True)
class TripleStatistics:
    """How three components go together; only of some, to tell how bursts add up."""

    components: tuple[int, ...]
    in_time: float
    """Share of all choices that are of one partition and can be in order within the window."""
    tried: float
    """Choices in the sample."""


@dataclass(frozen=True, slots=True)
class EqualityStatistics:
    """What two components have to have the same of."""

    first: int
    second: int
    """The components, in pattern order."""
    value: int
    """What is the same has one number, whatever the components: ``a.k = b.k AND b.k = c.k`` is one."""
    share: float
    """Share of the pairs in reach of each other, equal in what has a smaller number, that are equal in
    this."""
    stated: bool
    """Whether a predicate says so, and not only a chain of predicates."""


@dataclass(frozen=True, slots=True)
class PredicateStatistics:
    """A predicate across components."""

    components: tuple[int, ...]
    """Those that it speaks of."""
    selectivity: float
    """Share of the combinations of candidates in reach of each other for which it is true."""
    equates: bool = False
    """Whether it is one of the equalities, by which joins of trees look partners up."""


@dataclass(frozen=True, slots=True)
class KeyStatistics:
    """How candidates spread over the partitions."""

    partitions: int
    largest: float
    """The largest partition's share of all candidates."""
    effective: float
    """So many partitions of one size would make two candidates meet as often."""
    shares: tuple[tuple[float, ...], ...]
    """For each of the largest partitions its share of each component's candidates."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of the candidates of one OR-free pattern."""

    events: float
    """Rows of the table."""
    ticks: float
    """Ticks from the first to the last time of a candidate."""
    components: tuple[ComponentStatistics, ...]
    """The positive ones, in pattern order."""
    negated: tuple[ComponentStatistics, ...]
    """The negated ones, in pattern order."""
    pairs: tuple[PairStatistics, ...]
    """Every two positive components."""
    triples: tuple[TripleStatistics, ...]
    equalities: tuple[EqualityStatistics, ...]
    """By pair, then by value."""
    predicates: tuple[PredicateStatistics, ...]
    """As in ``EvaluationPlan.joined``."""
    keys: KeyStatistics

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics as plain dicts, lists, strings and numbers."""
        return asdict(self)

    def to_json(self) -> str:
        """Return the statistics as JSON text."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Statistics:
        """Return the statistics that :meth:`to_json` wrote.

        Raises
        ------
        ValueError
            If the text is something else.
        """
        try:
            found = json.loads(text)
            return cls(
                events=found["events"],
                ticks=found["ticks"],
                components=tuple(map(_component, found["components"])),
                negated=tuple(map(_component, found["negated"])),
                pairs=tuple(PairStatistics(**pair) for pair in found["pairs"]),
                triples=tuple(
                    TripleStatistics(tuple(part["components"]), part["in_time"], part["tried"])
                    for part in found["triples"]
                ),
                equalities=tuple(EqualityStatistics(**part) for part in found["equalities"]),
                predicates=tuple(
                    PredicateStatistics(tuple(part["components"]), part["selectivity"], part["equates"])
                    for part in found["predicates"]
                ),
                keys=KeyStatistics(**{**found["keys"], "shares": tuple(map(tuple, found["keys"]["shares"]))}),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"these are no statistics: {error!r}") from None

    def blended(self, newer: Statistics, weight: float) -> Statistics:
        """Return these statistics moved towards newer ones of the same pattern.

        Parameters
        ----------
        weight : float
            Of the newer ones, from 0 to 1; applied at each step of a stream, what was measured k steps ago
            counts ``weight * (1 - weight) ** k``.
        """

        def mixed(old: float, new: float) -> float:
            return old + weight * (new - old)

        def lengths(old: LengthStatistics, new: LengthStatistics) -> LengthStatistics:
            return LengthStatistics(
                mixed(old.mean, new.mean),
                mixed(old.median, new.median),
                mixed(old.most, new.most),
                max(mixed(old.longest, new.longest), new.longest),
            )

        def component(old: ComponentStatistics, new: ComponentStatistics) -> ComponentStatistics:
            return ComponentStatistics(
                old.variable,
                mixed(old.candidates, new.candidates),
                mixed(old.rate, new.rate),
                mixed(old.type_share, new.type_share),
                tuple(map(mixed, old.local, new.local)),
                lengths(old.lengths, new.lengths),
            )

        return Statistics(
            events=mixed(self.events, newer.events),
            ticks=mixed(self.ticks, newer.ticks),
            components=tuple(map(component, self.components, newer.components)),
            negated=tuple(map(component, self.negated, newer.negated)),
            pairs=tuple(
                PairStatistics(
                    old.first,
                    old.second,
                    mixed(old.in_time, new.in_time),
                    mixed(old.joined, new.joined),
                    mixed(old.first_met, new.first_met),
                    mixed(old.second_met, new.second_met),
                )
                for old, new in zip(self.pairs, newer.pairs, strict=True)
            ),
            triples=tuple(
                replace(new, in_time=mixed(old.in_time, new.in_time))
                for old, new in zip(self.triples, newer.triples, strict=True)
            ),
            equalities=tuple(
                replace(old, share=mixed(old.share, new.share))
                for old, new in zip(self.equalities, newer.equalities, strict=True)
            ),
            predicates=tuple(
                replace(old, selectivity=mixed(old.selectivity, new.selectivity))
                for old, new in zip(self.predicates, newer.predicates, strict=True)
            ),
            # Which partitions are large changes from step to step: their numbers do not mean the same.
            keys=newer.keys,
        )


def _component(found: Mapping[str, Any]) -> ComponentStatistics:
    local: Sequence[float] = found["local"]
    return ComponentStatistics(**{
        **found, "local": tuple(local), "lengths": LengthStatistics(**found["lengths"]),
    })  # fmt: skip
