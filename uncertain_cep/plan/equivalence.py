"""Equalities of the WHERE clause across all components: the keys of the partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from uncertain_cep.query.binder import BoundQuery
from uncertain_cep.query.typed import Apply, Column, TypedExpression, speaks_of_each_event

__all__ = ["Equivalences", "PartitionKey", "holds_from_the_start", "partition_keys"]


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """One attribute by which the events are partitioned: its column for each positive component, in order."""

    columns: tuple[str, ...]
    negated: tuple[str | None, ...] = ()
    """Its column for each negated component, in pattern order; None for one that nothing ties to the key."""

    @property
    def name(self) -> str | None:
        """The attribute, if all components, negated ones included, call it the same; else None."""
        return self.columns[0] if len({*self.columns, *self.negated}) == 1 else None


@dataclass(frozen=True, slots=True)
class Equivalences:
    """The partition keys that the equalities of a query give, and the other predicates."""

    keys: tuple[PartitionKey, ...]
    """Those of all positive components."""
    split: tuple[PartitionKey, ...]
    """Those by which the candidates are split before anything is matched."""
    remaining: tuple[TypedExpression, ...]
    """The predicates that splitting does not enforce."""


Node = tuple[str, str]


def _equated(predicate: TypedExpression) -> tuple[Node, Node] | None:
    """Return the two attributes of ``a.x = b.y``, if they are of one kind and of two events; else None."""
    if isinstance(predicate, Apply) and predicate.operator == "equal":
        left, right = predicate.operands
        if (
            isinstance(left, Column)
            and isinstance(right, Column)
            and speaks_of_each_event(left)
            and speaks_of_each_event(right)
            and left.variable != right.variable
            and left.kind == right.kind
        ):
            return (left.variable, left.name), (right.variable, right.name)
    return None


def _positive(bound: BoundQuery) -> list[str]:
    return [component.variable for component in bound.components if not component.negated]


def holds_from_the_start(bound: BoundQuery, key: PartitionKey) -> bool:
    """Return whether every component's own conditions make it agree with those before it on a key.

    Only then is an event of another partition no event that the component could have taken: in ``a.k = c.k
    AND b.k = c.k`` nothing keeps ``b`` from taking one before ``c`` is known. A Kleene component at the start
    has to agree with itself.
    """
    variables = _positive(bound)
    pairs = [pair for pair in map(_equated, bound.predicates) if pair is not None]
    pairs += [
        ((earlier, name), (later, name))
        for name in bound.equivalences
        for earlier, later in pairwise(variables)
    ]
    kleene = {component.variable for component in bound.components if component.kleene}
    if variables[0] in kleene and key.columns[0] not in bound.equivalences:
        return False
    place = {variable: number for number, variable in enumerate(variables)}
    links_of_components: list[list[tuple[Node, Node]]] = [[] for _ in variables]
    for one, other in pairs:
        if one[0] in place and other[0] in place:
            links_of_components[max(place[one[0]], place[other[0]])].append((one, other))
    equal: dict[Node, frozenset[Node]] = {}
    for node, links in zip(zip(variables, key.columns, strict=True), links_of_components, strict=True):
        for link in links:
            merged = frozenset[Node]().union(*(equal.get(end, {end}) for end in link))
            equal.update(dict.fromkeys(merged, merged))
        if (variables[0], key.columns[0]) not in equal.get(node, {node}):
            return False
    return True


def partition_keys(bound: BoundQuery) -> Equivalences:
    """Return the partition keys of a query, those to split by, and the predicates that these do not enforce.

    Under skip till any match, and under contiguity, whose forbidden events are looked for elsewhere, the
    candidates are split by all keys; see :func:`holds_from_the_start` for skip till next match, which asks
    what else a component could have taken.

    ``[attr]`` equates an attribute of all components; ``a.x = b.y`` equates two, and chains of such
    equalities are followed (the transitive closure by which the match-windows paper partitions), but not
    through a negated component: that no event equals both says nothing of the two.
    """
    variables = _positive(bound)
    negated = [component.variable for component in bound.components if component.negated]
    kleene = [component.variable for component in bound.components if component.kleene]
    groups: dict[Node, frozenset[Node]] = {}

    def equate(nodes: list[Node]) -> None:
        merged = frozenset().union(*(groups.get(node, frozenset((node,))) for node in nodes))
        groups.update(dict.fromkeys(merged, merged))

    for name in bound.equivalences:
        equate([(variable, name) for variable in variables])
    # Ties of a negated group are for those who weigh what it forbids.
    predicates = [part for part in bound.predicates if part not in bound.ties_of_negated]
    pairs = [_equated(predicate) for predicate in predicates]
    for pair in pairs:
        if pair is not None:
            positive_nodes = [node for node in pair if node[0] not in negated]
            # What a negated component asks of each event of a Kleene one does not make those agree.
            if len(positive_nodes) > 1 or positive_nodes[0][0] not in kleene:
                equate(positive_nodes)

    keys = [key for group in dict.fromkeys(groups.values()) for key in _keys_of(group, bound, pairs)]
    split = keys
    if bound.query.strategy == "skip_till_next_match":
        split = [key for key in keys if holds_from_the_start(bound, key)]
    other_predicates = tuple(
        predicate
        for predicate, pair in zip(predicates, pairs, strict=True)
        if pair is None or not any(_enforces(key, variables, negated, pair) for key in split)
    )
    return Equivalences(tuple(keys), tuple(split), other_predicates)


def _keys_of(
    group: frozenset[Node], bound: BoundQuery, pairs: Sequence[tuple[Node, Node] | None]
) -> Iterator[PartitionKey]:
    """Yield the keys of attributes that are equal; none if a positive component has none of them."""
    variables = _positive(bound)
    negated = [component.variable for component in bound.components if component.negated]
    names = [sorted(name for owner, name in group if owner == variable) for variable in variables]
    if not all(names):
        return
    # Every [attr] is a key of its own, so that its column appears in the result.
    common = [name for name in bound.equivalences if (variables[0], name) in group]
    common = common or sorted(set(names[0]).intersection(*names))[:1]
    free = frozenset[str]() if bound.gaps is None else bound.gaps.contiguous
    # An event that contiguity forbids has no predicates: it is of no component that may call a key otherwise.
    tied = [frozenset(common) if variable in free else _tied(variable, group, pairs) for variable in negated]
    for name in common:
        everywhere = name in bound.equivalences
        columns = (
            name if everywhere or name in names_of_component else min(names_of_component, default=None)
            for names_of_component in tied
        )
        yield PartitionKey((name,) * len(variables), tuple(columns))
    if not common:
        columns = (min(names_of_component, default=None) for names_of_component in tied)
        yield PartitionKey(tuple(options[0] for options in names), tuple(columns))


def _tied(variable: str, group: frozenset[Node], pairs: Sequence[tuple[Node, Node] | None]) -> frozenset[str]:
    """Return the attributes of a negated component that are equated to an attribute of a group."""
    attributes = set()
    for pair in pairs:
        for node, other in (pair, pair[::-1]) if pair is not None else ():
            if node[0] == variable and other in group:
                attributes.add(node[1])
    return frozenset(attributes)


def _enforces(
    key: PartitionKey, variables: Sequence[str], negated: Sequence[str], pair: tuple[Node, Node]
) -> bool:
    nodes: set[tuple[str, str | None]] = set(zip(variables, key.columns, strict=True))
    return nodes.union(zip(negated, key.negated, strict=True)).issuperset(pair)
