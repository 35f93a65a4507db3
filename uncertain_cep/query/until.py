"""UNTIL: no event of some kind between the first and the last event of a part of a pattern.

The ticks of the events in between are forbidden, too, so that negations in the gaps would say less. It is a
negation beside the whole, bound by two conditions on times. Where the item begins or ends with an event that
may be left out, there is one negation for each pair of events that can be its ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, NoReturn

from uncertain_cep.query.expression_text import quote_name
from uncertain_cep.query.syntax import (
    Attribute,
    Binary,
    Component,
    Conjunction,
    Disjunction,
    Expression,
    Option,
    Pattern,
    Position,
    Repeated,
    Sequence,
    Time,
)
from uncertain_cep.query.walks import patterns_in, with_leaves

__all__ = ["Spoiler", "Until", "text_of_negation", "without_until"]

Refuse = Callable[[str, Position], NoReturn]

_NUMBERED: Final = " ("
"""Between the variable of UNTIL and the number of a further negation: no variable has it in its name."""


@dataclass(frozen=True, slots=True)
class Until:
    """``item UNTIL U u``, as it is written."""

    items: tuple[Pattern]
    spoiler: Component
    """``!U u``"""
    position: Position


@dataclass(frozen=True, slots=True)
class Spoiler:
    """A negation in place of UNTIL, the variable that conditions on it have, and bounds of its time."""

    negated: Component
    variable: str
    bounds: tuple[Expression, ...]

    def of_this(self, conditions: Iterable[Expression]) -> Iterator[Expression]:
        """Yield its bounds, and the conditions on the variable where it has another name than that."""
        yield from self.bounds
        if self.negated.variable != self.variable:
            for condition in conditions:
                renamed = with_leaves(condition, self._renamed)
                if renamed != condition:
                    yield renamed

    def _renamed(self, leaf: Expression) -> Expression:
        if isinstance(leaf, Attribute | Time) and leaf.variable == self.variable:
            return replace(leaf, variable=self.negated.variable)
        return leaf


def without_until(pattern: Pattern | Until, refuse: Refuse) -> tuple[Pattern, tuple[Spoiler, ...]]:
    """Return a pattern with negations beside it in place of UNTIL, and what they are bound by.

    ``refuse`` raises an error about a position: UNTIL stands where its ends are not those of two events.
    """
    spoilers: list[Spoiler] = []

    def visit(node: Pattern | Until, *, in_row: bool) -> Pattern:
        if isinstance(node, Component):
            return node
        if not isinstance(node, Until):
            in_row = in_row and isinstance(node, Sequence)
            return replace(node, items=tuple(visit(item, in_row=in_row) for item in node.items))
        if not in_row:
            refuse("UNTIL stands behind a SEQ(...), or behind an item of one", node.position)
        inner = visit(node.items[0], in_row=True)
        spoilers.extend(_spoilers(inner, node, refuse))
        return inner

    changed = visit(pattern, in_row=True)
    if spoilers:
        changed = Conjunction((changed, *(spoiler.negated for spoiler in spoilers)), pattern.position)
    return changed, tuple(spoilers)


def text_of_negation(parts: Collection[Component]) -> str:
    """Return a negation of one component, or of several that forbid together, as the query writes it."""
    # The negations of one UNTIL have one text.
    each = list(
        dict.fromkeys(
            f"{'|'.join(map(quote_name, part.types)) or 'ANY'} {part.variable.partition(_NUMBERED)[0]}"
            for part in parts
        )
    )
    if len(each) > 1:
        return f"!SEQ({', '.join(each)})"
    return f"UNTIL {each[0]}" if any(part.needs for part in parts) else f"!{each[0]}"


def _spoilers(item: Pattern, until: Until, refuse: Refuse) -> Iterator[Spoiler]:
    """Yield a negation for each pair of events that can be the first and the last of an item.

    Of a reading those count whose events it has: one is that of its ends, and the others are within it.
    """
    position, variable = until.position, until.spoiler.variable
    (firsts, _), (lasts, _) = (_ends(item, which, position, refuse) for which in ("first", "last"))
    pairs = [(one, other) for one in firsts for other in lasts if one != other or one.kleene]
    if not pairs:
        refuse(f"{firsts[0].variable} is one event, and nothing is between its first and its last", position)
    for number, (first, last) in enumerate(pairs, 1):
        name = variable if number == 1 else f"{variable}{_NUMBERED}{number})"
        negated = replace(until.spoiler, variable=name, needs=frozenset((first.variable, last.variable)))
        # What lasts is between them if all of it is.
        begins, ends = (Time(name, None, position, part) for part in ("begin", "end"))
        behind = Time(first.variable, "first" if first.kleene else None, position, "end")
        ahead = Time(last.variable, "last" if last.kleene else None, position, "begin")
        bounds = Binary(">", begins, behind, position), Binary("<", ends, ahead, position)
        yield Spoiler(negated, variable, bounds)


def _ends(
    pattern: Pattern, which: Literal["first", "last"], position: Position, refuse: Refuse
) -> tuple[list[Component], bool]:
    """Return the components that can have the first or the last event of a pattern, and if one always has."""
    if isinstance(pattern, Component):
        return ([], False) if pattern.negated else ([pattern], pattern.least > 0)
    if any(isinstance(node, Conjunction) for node in patterns_in(pattern)):
        refuse(
            "UNTIL needs one event at each end of what it stands behind, and AND(...) has no order", position
        )
    if isinstance(pattern, Repeated):
        refuse(
            "UNTIL needs one event at each end of what it stands behind, and a repeated group has one an "
            "iteration: let a component stand at that end",
            position,
        )
    ends: list[Component] = []
    if isinstance(pattern, Disjunction):
        parts = [_ends(item, which, position, refuse) for item in pattern.items]
        return [end for part, _ in parts for end in part], all(is_sure for _, is_sure in parts)
    for item in pattern.items if which == "first" else pattern.items[::-1]:
        part, is_sure = _ends(item, which, position, refuse)
        ends += part
        if is_sure:
            return ends, not isinstance(pattern, Option)
    return ends, False
