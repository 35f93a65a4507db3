"""What a planner knows of the data: how many candidates there are, and how many of them go together."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

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
    """What nine of ten do not exceed."""
    longest: float


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
    """Share of each one's candidates for which there is at least one of the other's in this sense."""


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
        """Return the statistics that :meth:`to_json` wrote; other text raises ValueError."""
        try:
            restored: Statistics = _restored(cls, json.loads(text))
        except (KeyError, TypeError) as error:
            raise ValueError(f"these are no statistics: {error!r}") from None
        return restored


def _restored(kind: Any, found: Any) -> Any:
    """Return what a type of this module, or a tuple of such, is made of as JSON."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _restored(hints[name], found[name]) for name in hints})
    if get_origin(kind) is tuple:
        return tuple(_restored(get_args(kind)[0], part) for part in found)
    return found
