"""Equalities of predicates, as numbers by which one side of a join can be looked up.

An equality between expressions of one event each is turned into codes, equal values alike. Chains of
equalities are followed: ``a.k = b.k AND b.k = c.k`` also tells which ``a`` go with which ``c``, and once it
was used to join two of the three, the third needs to be compared with one of them only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.expressions.beyond_int64 import is_beyond_int64
from uncertain_cep.expressions.bytecode import PreparedPredicates
from uncertain_cep.expressions.codes import codes_of_values
from uncertain_cep.expressions.vectorised import Values, evaluate
from uncertain_cep.expressions.whole_numbers import may_leave_int64
from uncertain_cep.query.typed import Apply, TypedExpression, variables_of

__all__ = ["Equalities", "EqualityIndex", "Known", "keys_of"]

Int64 = NDArray[np.int64]

_LARGEST_KEY: Final = 2**62

Node = tuple[int, TypedExpression]
"""A component, and an expression of its event."""

Known = Mapping[Node, frozenset[Node]]
"""What is known to have the same value as a node, itself included."""


@dataclass(frozen=True, slots=True)
class EqualityIndex:
    """The equalities by which a join looks its right side up.

    Attributes
    ----------
    left, right : (e, 3) int64
        For each one the component, where the codes of its candidates are less where its candidates start,
        and what to multiply them with: the sum is the key.
    size : int
        Above all keys.
    """

    left: Int64
    right: Int64
    size: int


def keys_of(equated: Int64, places: Mapping[int, Int64], codes: Int64) -> Int64 | None:
    """Return the keys of rows, -1 for those that have a null; None if nothing is equated.

    Parameters
    ----------
    equated : (e, 3) int64
        One side of an :class:`EqualityIndex`.
    places : mapping of int to (n,) int64
        For each component the candidates of the rows.
    codes : (c,) int64
        Of :class:`Equalities`.
    """
    key = None
    for component, shift, factor in equated.tolist():
        code = codes[shift + places[component]]
        held = code >= 0 if key is None else (code >= 0) & (key >= 0)
        key = np.where(held, code * factor + (0 if key is None else key), -1)
    return key


class Equalities:
    """The equalities among some predicates, and the codes of what they equate.

    Parameters
    ----------
    prepared : PreparedPredicates
    variables : sequence of str
        In pattern order.
    first : (l + 1,) int64
        Where each component's candidates start.
    """

    def __init__(self, prepared: PreparedPredicates, variables: Sequence[str], first: Int64) -> None:
        self._prepared, self._first = prepared, first
        self._sides: dict[TypedExpression, tuple[Node, Node]] = {}
        number = {variable: j for j, variable in enumerate(variables)}
        classes: Known = {}
        for predicate in prepared.predicates:
            sides = _sides(predicate, number)
            if sides is not None and all(map(self._has_codes, sides)):
                self._sides[predicate] = sides
                if _alike(*sides):
                    classes = _equated(classes, *sides)
        self._classes = list(dict.fromkeys(classes.values()))
        self._coded: dict[frozenset[Node], tuple[dict[Node, int], int]] = {}
        self._parts: list[Int64] = []
        self._filled = 0

    @property
    def codes(self) -> Int64:
        """The codes of all indexes so far, (c,) int64; -1 for null."""
        return np.concatenate(self._parts) if self._parts else np.zeros(0, dtype=np.int64)

    def index(
        self,
        left: Collection[int],
        right: Collection[int],
        equal_nodes: Known,
        predicates: Sequence[TypedExpression],
    ) -> tuple[EqualityIndex, Known, list[TypedExpression]]:
        """Return an index by which a join looks up its right side.

        Parameters
        ----------
        left, right : collection of int
            The components of the two sides.
        equal_nodes : Known
            What holds within them.
        predicates : sequence of TypedExpression
            Those across the two sides.

        Returns
        -------
        index : EqualityIndex
        equal_nodes : Known
            What holds among the rows that are joined.
        remaining : list of TypedExpression
            The predicates that the index does not enforce.
        """
        chosen: list[tuple[tuple[int, int, int], tuple[int, int, int]]] = []
        size = 1
        remaining = []

        def use(one: Node, other: Node, members: frozenset[Node]) -> bool:
            nonlocal size
            shifts, values = self._codes(members)
            if size * values > _LARGEST_KEY:
                return False
            if one[0] in right:
                one, other = other, one
            chosen.append(((one[0], shifts[one], size), (other[0], shifts[other], size)))
            size *= values
            return True

        for predicate in predicates:
            sides = self._sides.get(predicate)
            if sides is None:
                remaining.append(predicate)
            elif not _alike(*sides):
                if not use(*sides, frozenset(sides)):
                    remaining.append(predicate)
            elif sides[1] not in equal_nodes.get(sides[0], ()):
                members = next(part for part in self._classes if sides[0] in part)
                if not use(*sides, members):
                    remaining.append(predicate)
                equal_nodes = _equated(equal_nodes, *sides)
        for members in self._classes:
            for one, other in product(members, repeat=2):
                implied = one[0] in left and other[0] in right and other not in equal_nodes.get(one, ())
                if implied and use(one, other, members):
                    equal_nodes = _equated(equal_nodes, one, other)
        left_numbers, right_numbers = np.array(chosen, dtype=np.int64).reshape(-1, 2, 3).swapaxes(0, 1).copy()
        return EqualityIndex(left_numbers, right_numbers, max(size, 1)), equal_nodes, remaining

    def _codes(self, members: frozenset[Node]) -> tuple[dict[Node, int], int]:
        """Return where the codes of nodes are, less where their candidates start, and how many codes."""
        if members not in self._coded:
            nodes = list(members)
            values = [self._values(node) for node in nodes]
            codes, count = codes_of_values(values)
            shifts = {}
            for node, part in zip(nodes, codes, strict=True):
                shifts[node] = self._filled - int(self._first[node[0]])
                self._parts.append(part)
                self._filled += len(part)
            self._coded[members] = shifts, count
        return self._coded[members]

    def _has_codes(self, node: Node) -> bool:
        """Return whether equal values of a node have equal codes: no whole number of it leaves 64 bits."""
        return not may_leave_int64(node[1]) or not is_beyond_int64(self._values(node))

    def _values(self, node: Node) -> Values:
        component, expression = node
        size = int(self._first[component + 1] - self._first[component])
        values_of_node = evaluate(expression, self._prepared.values.__getitem__)
        valid = None if values_of_node.valid is None else np.broadcast_to(values_of_node.valid, size)
        return Values(np.broadcast_to(values_of_node.data, size), valid)


def _sides(predicate: TypedExpression, number: Mapping[str, int]) -> tuple[Node, Node] | None:
    """Return the two sides of an equality between expressions of two events; None of other predicates."""
    if not isinstance(predicate, Apply) or predicate.operator != "equal":
        return None
    owners = [variables_of(operand) for operand in predicate.operands]
    if any(len(owner) != 1 for owner in owners) or owners[0] == owners[1]:
        return None
    one, other = (
        (number[next(iter(owner))], operand)
        for owner, operand in zip(owners, predicate.operands, strict=True)
    )
    return one, other


def _alike(one: Node, other: Node) -> bool:
    """Return whether equality of these goes on along a chain: not from int over float to int."""
    return one[1].kind == other[1].kind


def _equated(equal_nodes: Known, one: Node, other: Node) -> Known:
    together = equal_nodes.get(one, frozenset((one,))) | equal_nodes.get(other, frozenset((other,)))
    return {**equal_nodes, **dict.fromkeys(together, together)}
