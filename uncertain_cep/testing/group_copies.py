"""Repeated groups by writing them out: components of one event an iteration, and conditions on these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from uncertain_cep.testing.model import Component, Event, Index, Mention, Pattern, Predicate, Repeat

__all__ = ["NOTHING", "copied", "groups_of", "lengths_in", "number_of", "place", "written_out"]

NOTHING = Event("", -1, 0, 0, None, defaultdict(lambda: None))
"""The element of a number that a list does not have: all its attributes are null."""


def place(variable: str, number: int) -> str:
    """Return the variable of an iteration, from 0."""
    return f"{variable}#{number}"


def number_of(variable: str) -> int:
    """Return the iteration, from 0, of a variable; -1 if it is of none."""
    return int(variable.partition("#")[2] or -1)


def copied(pattern: Pattern, number: int) -> Pattern:
    """Return the pattern of one iteration."""
    if isinstance(pattern, Component):
        joint = pattern.joint and place(pattern.joint, number)
        return replace(
            pattern, variable=place(pattern.variable, number), kleene=False, most=None, joint=joint
        )
    return replace(pattern, items=tuple(copied(item, number) for item in pattern.items))  # type: ignore[arg-type]


def groups_of(pattern: Pattern) -> list[list[str]]:
    """Return the variables of each repeated group."""
    if isinstance(pattern, Component):
        return []
    if isinstance(pattern, Repeat):
        return [[*_variables(pattern)]]
    return [group for item in pattern.items for group in groups_of(item)]


def _variables(pattern: Pattern) -> Iterator[str]:
    if isinstance(pattern, Component):
        yield pattern.variable
        return
    for item in pattern.items:
        yield from _variables(item)


def lengths_in(pattern: Pattern, names: Sequence[str]) -> dict[str, int]:
    """Return how often the group of each variable of one stands, in an expansion with some variables."""
    lengths: dict[str, int] = {}
    for group in groups_of(pattern):
        length = max((number_of(name) for name in names if name.partition("#")[0] in group), default=-1) + 1
        lengths |= dict.fromkeys(group, length)
    return lengths


def written_out(predicates: Sequence[Predicate], pattern: Pattern, names: Sequence[str]) -> list[Predicate]:
    """Return the predicates of an expansion with some variables, one an iteration it speaks of."""
    lengths = lengths_in(pattern, names)
    groups = groups_of(pattern)
    return [
        instance for predicate in predicates for instance in _instances(predicate, lengths, groups, {*names})
    ]


def _instances(
    predicate: Predicate, lengths: Mapping[str, int], groups: list[list[str]], names: set[str]
) -> Iterator[Predicate]:
    mentions = [mention for mention in predicate.mentions if mention.variable in lengths]
    if not mentions:
        yield predicate
        return
    runs = [m for m in mentions if m.index not in ("first", "last", "all") and not m.index.isdecimal()]
    first = max((_behind(mention.index) for mention in runs), default=0)
    iterations = range(first, lengths[runs[0].variable]) if runs else range(1)
    whole = [mention.variable for mention in mentions if mention.index in ("last", "all")]
    waits = frozenset(
        place(variable, k)
        for group in groups
        if {*whole} & {*group}
        for variable in group
        for k in range(lengths[variable])
    )
    for i in iterations:
        parts = [_part(mention, i, lengths, names) for mention in predicate.mentions]
        if all(part is not None for part in parts):
            yield _instance(predicate, [part for part in parts if part is not None], waits)


def _behind(index: Index) -> int:
    return int(index[2:]) if index.startswith("i-") else int(index in ("previous", "before"))


Part = tuple[tuple[Mention, ...], Callable[[tuple[Any, ...]], Any]]
"""The mentions that one becomes, and what its argument is of theirs."""


def _part(mention: Mention, i: int, lengths: Mapping[str, int], names: set[str]) -> Part | None:
    """Return the mentions in place of one; None if it meets what is left out."""
    variable, index = mention.variable, mention.index
    if variable not in lengths:
        return (mention,), lambda bound: bound[0]
    length = lengths[variable]
    if index in ("all", "before"):
        taken = [place(variable, k) for k in range(length if index == "all" else i)]
        present = tuple(Mention(name, "single") for name in taken if name in names)
        return (present, tuple) if present else None
    if index.isdecimal() and int(index) > length > 0:
        return (), lambda _: NOTHING
    number = {"first": 0, "last": length - 1}.get(index, i - _behind(index))
    name = place(variable, int(index) - 1 if index.isdecimal() else number)
    return ((Mention(name, "single"),), lambda bound: bound[0]) if name in names else None


def _instance(predicate: Predicate, parts: list[Part], waits: frozenset[str]) -> Predicate:
    def test(*bound: Any) -> bool | None:
        arguments, begin = [], 0
        for mentions, argument in parts:
            arguments.append(argument(bound[begin : begin + len(mentions)]))
            begin += len(mentions)
        return predicate.test(*arguments)

    mentions = tuple(mention for mentions, _ in parts for mention in mentions)
    return Predicate(mentions, test, waits)
