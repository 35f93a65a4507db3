"""The probability of at least one match, or of several, by enumeration of possible worlds.

Word for word the definition: a world counts for a group and a bucket if matches with as many different
signatures are in the group and begin in the bucket.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from uncertain_cep.testing.model import Event, Identifier, Key, Query, Value
from uncertain_cep.testing.patterns import Candidate, candidates, components
from uncertain_cep.testing.worlds import key_of, range_in, worlds

__all__ = ["Group", "probabilities"]

Group = tuple[tuple[Value | Identifier, ...], int | None]
"""The values of BY, and the first tick of the bucket; None without EVERY."""


def probabilities(
    query: Query,
    events: Sequence[Event],
    *,
    by: Sequence[str] = (),
    every: int | None = None,
    at_least: int = 1,
) -> dict[Group, Fraction]:
    """Return how likely each group has at least so many matches; groups without any are left out.

    Parameters
    ----------
    query : Query
    events : sequence of Event
    by : sequence of str
        ``k`` is an attribute that all events of a match agree on, ``v.k`` that of the event of a variable,
        ``v`` the id of that event; None where the variable is left out.
    every : int, optional
        Length of a bucket of first times, ticks; one starts at every multiple.
    at_least : int

    Examples
    --------
    >>> from uncertain_cep.testing import Event, Query, one, probabilities, seq
    >>> query = Query(seq(one("A", "a"), one("B", "b")), 20)
    >>> events = [Event("A", 1, 0, 9), Event("B", 2, 0, 9), Event("B", 3, 0, 9)]
    >>> {group: str(found) for group, found in probabilities(query, events).items()}
    {((), None): '123/200'}
    """
    members: dict[tuple[Value | Identifier, ...], list[tuple[Key, Candidate]]] = defaultdict(list)
    variables = {component.variable for component in components(query.pattern)}
    for candidate in candidates(query, events):
        group = tuple(_value(name, candidate, variables) for name in by)
        members[group].append((key_of(candidate, query), candidate))
    probability_of_group: dict[Group, Fraction] = {}
    for group, choices in members.items():
        for bucket, mass in _of_group(query, _that_matter(choices, events), choices, every, at_least).items():
            probability_of_group[group, bucket] = mass
    return probability_of_group


def _that_matter(choices: Sequence[tuple[Key, Candidate]], events: Sequence[Event]) -> list[Event]:
    """Return the events that some matches depend on; an ordered clock ties all events."""
    if any(event.clock is not None and event.clock.ordered for event in events):
        return list(events)
    taken = {event for _, candidate in choices for event in candidate.events}
    forbidden = {event for _, candidate in choices for gap in candidate.gaps for event in gap.forbidden}
    return [event for event in events if event in taken or event in forbidden]


def _of_group(
    query: Query,
    events: Sequence[Event],
    choices: Sequence[tuple[Key, Candidate]],
    every: int | None,
    at_least: int,
) -> Mapping[int | None, Fraction]:
    """Return the probability of enough matches in each bucket."""
    probability_of_bucket: dict[int | None, Fraction] = defaultdict(Fraction)
    for probability, world in worlds(events):
        signatures: dict[int | None, set[Key]] = defaultdict(set)
        for key, candidate in choices:
            times = range_in(candidate, query.window, world)
            if times is not None:
                signatures[None if every is None else times[0] // every * every].add(key)
        for bucket, keys in signatures.items():
            if len(keys) >= at_least:
                probability_of_bucket[bucket] += probability
    return probability_of_bucket


def _value(name: str, candidate: Candidate, variables: set[str]) -> Value | Identifier:
    """Return the value of one name of BY for a match; a variable hides an attribute of its name."""
    variable, _, attribute = name.partition(".")
    if variable not in variables:
        return candidate.events[0][name]
    bound = candidate.binding.get(variable)
    return bound[attribute or "id"] if isinstance(bound, Event) else None
