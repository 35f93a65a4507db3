"""A planner's knowledge of the data: how many candidates there are, and how many of them go together."""

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
    """The 0.9 quantile."""
    longest: float


@dataclass(frozen=True, slots=True)
class ComponentStatistics:
    """The candidates and lengths of one component."""

    variable: str
    candidates: float
    """Events that it can take: of its types, in a partition, all local predicates true."""
    rate: float
    """Candidates per tick."""
    type_share: float
    """Share of the events that have one of its types."""
    local: tuple[float, ...]
    """For each local predicate the share of the events of these types for which it is true."""
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
    """Share of these pairs, where they meet the equalities, for which every other predicate over the two is
    true."""
    first_met: float = 1.0
    second_met: float = 1.0
    """Share of each component's candidates that are in time with at least one candidate of the other."""


@dataclass(frozen=True, slots=True)
class TripleStatistics:
    """How three components go together. Some triples are counted, to tell how bursts add up."""

    components: tuple[int, ...]
    in_time: float
    """Share of all choices that are of one partition and can be in order within the window."""
    tried: float
    """Choices in the sample."""


@dataclass(frozen=True, slots=True)
class EqualityStatistics:
    """A value that must be equal in two components."""

    first: int
    second: int
    """The components, in pattern order."""
    value: int
    """The number of the value, the same for all components: ``a.k = b.k AND b.k = c.k`` equates one value."""
    share: float
    """Share of the pairs that are equal in this value, among those in reach of each other and equal in all
    values of smaller numbers."""
    stated: bool
    """Whether one predicate states it; else it follows from a chain of predicates."""


@dataclass(frozen=True, slots=True)
class PredicateStatistics:
    """A predicate across components."""

    components: tuple[int, ...]
    """Those that it mentions."""
    selectivity: float
    """Share of the combinations of candidates in reach of each other for which it is true."""
    equates: bool = False
    """Whether it is one of the equalities that joins of trees use as an index."""


@dataclass(frozen=True, slots=True)
class KeyStatistics:
    """How candidates spread over the partitions."""

    partitions: int
    largest: float
    """The largest partition's share of all candidates."""
    effective: float
    """The number of partitions of equal size in which two candidates would meet as often."""
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
    """One for every two positive components."""
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


def _restored(kind: Any, value: Any) -> Any:
    """Return a value of a type of this module, or a tuple of such, from its JSON."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _restored(hints[name], value[name]) for name in hints})
    if get_origin(kind) is tuple:
        return tuple(_restored(get_args(kind)[0], part) for part in value)
    return value
