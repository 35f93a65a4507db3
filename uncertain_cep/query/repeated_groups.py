"""Repeated groups: the patterns in which each stands so often in a row, with variables of their own.

``SEQ(F f[], K k[])+`` stands for ``SEQ(F f[1], K k[1])``, ``SEQ(F f[1], K k[1], F f[2], K k[2])`` and so on.
How often it can stand is known from the events alone, so that no pattern is made that no events fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from uncertain_cep.query.syntax import Component, Iteration, LeftOut, Pattern, Repeated
from uncertain_cep.query.syntax import Sequence as Series
from uncertain_cep.query.walks import components_of, patterns_in

__all__ = [
    "copy_of",
    "few_counts",
    "has_repeated_groups",
    "list_of",
    "lists_by_iteration",
    "number_of",
    "repeated_groups",
    "with_counts",
    "with_few_iterations",
]


def repeated_groups(pattern: Pattern) -> tuple[Repeated, ...]:
    """Return the repeated groups of a pattern, in the order of the text."""
    return tuple(node for node in patterns_in(pattern) if isinstance(node, Repeated))


def has_repeated_groups(pattern: Pattern) -> bool:
    """Return whether a group of a pattern is repeated."""
    return any(isinstance(node, Repeated) for node in patterns_in(pattern))


def lists_by_iteration(pattern: Pattern) -> frozenset[str]:
    """Return the variables whose lists have a place for each iteration of a repeated group."""
    return frozenset(part.variable for part in components_of(pattern) if part.by_iteration)


def copy_of(variable: str, number: int) -> str:
    """Return the variable of one iteration, from 1, of a repeated group."""
    return f"{variable}[{number}]"


def list_of(variable: str) -> str:
    """Return the variable whose place in an iteration another one is; itself if it is none."""
    return variable.partition("[")[0]


def number_of(variable: str) -> int:
    """Return the number of the iteration that a variable is of; 0 if it is of none."""
    number = variable.partition("[")[2]
    return int(number[:-1]) if number else 0


def with_counts(pattern: Pattern, counts: Sequence[int]) -> Pattern:
    """Return a pattern in which each repeated group stands so often, see :func:`repeated_groups`."""
    remaining = iter(counts)

    def visit(node: Pattern) -> Pattern:
        if isinstance(node, Component):
            return node
        if not isinstance(node, Repeated):
            return replace(node, items=tuple(map(visit, node.items)))
        count = next(remaining)
        if not count:
            lists = tuple(part.variable for part in components_of(node) if not part.negated)
            return LeftOut((), node.position, lists)
        copies = [_copied(node.items[0], number) for number in range(1, count + 1)]
        return Series(tuple(Iteration((copied,), node.position) for copied in copies), node.position)

    return visit(pattern)


def _copied(pattern: Pattern, number: int) -> Pattern:
    """Return the pattern of one iteration: components of one event each."""
    if isinstance(pattern, Component):
        variable = copy_of(pattern.variable, number)
        joint = pattern.joint and copy_of(pattern.joint, number)
        return replace(pattern, variable=variable, kleene=False, by_iteration=False, joint=joint)
    return replace(pattern, items=tuple(_copied(item, number) for item in pattern.items))


def with_few_iterations(pattern: Pattern, upto: int = 3) -> Iterator[Pattern]:
    """Yield patterns in which groups stand as seldom as they can, and oftener, see `few_counts`."""
    for counts in few_counts(pattern, upto):
        yield with_counts(pattern, counts)


def few_counts(pattern: Pattern, upto: int = 3) -> list[tuple[int, ...]]:
    """Return how often repeated groups stand in patterns that have each component in every role.

    A group stands up to three times, more if it must: first, between others, and last. Each group so, with
    all others as seldom, and as often, as these do.
    """
    groups = repeated_groups(pattern)
    ranges = [_few(group, upto) for group in groups]
    if len(groups) < 3:
        return [*product(*ranges)]
    chosen: dict[tuple[int, ...], None] = {}
    for place, counts in enumerate(ranges):
        for base in (tuple(each[0] for each in ranges), tuple(each[-1] for each in ranges)):
            chosen.update(dict.fromkeys((*base[:place], count, *base[place + 1 :]) for count in counts))
    return [*chosen]


def _few(group: Repeated, upto: int) -> list[int]:
    fewest = 1 if upto == 1 else max(group.fewest, 1)
    last = max(fewest, upto if group.largest is None else min(group.largest, upto))
    return [*([] if group.fewest else [0]), *range(fewest, last + 1)]
