"""Which attributes the WHERE clause equates across all components: the keys of the partitions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from uncertain_cep.query.bound import BoundQuery
from uncertain_cep.query.typed import Apply, Column, TypedExpression

__all__ = ["PartitionKey", "holds_from_the_start", "partition_keys"]


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """One attribute by which the events are partitioned: its column for each component, in pattern order."""

    columns: tuple[str, ...]

    @property
    def name(self) -> str | None:
        """The attribute, if all components call it the same; else None."""
        return self.columns[0] if len(set(self.columns)) == 1 else None


Node = tuple[str, str]


def _equated(predicate: TypedExpression) -> tuple[Node, Node] | None:
    """Return the two attributes of ``a.x = b.y``, if they are of one kind and of two events; else None."""
    if isinstance(predicate, Apply) and predicate.operator == "equal":
        left, right = predicate.operands
        if (
            isinstance(left, Column)
            and isinstance(right, Column)
            and left.variable != right.variable
            and left.kind == right.kind
        ):
            return (left.variable, left.name), (right.variable, right.name)
    return None


def holds_from_the_start(bound: BoundQuery, key: PartitionKey) -> bool:
    """Return whether every component's own conditions make it agree with those before it on a key.

    Only then is an event of another partition no event that the component could have taken: in ``a.k = c.k
    AND b.k = c.k`` nothing keeps ``b`` from taking one before ``c`` is known.
    """
    variables = [component.variable for component in bound.components]
    pairs = [pair for pair in map(_equated, bound.predicates) if pair is not None]
    pairs += [
        ((earlier, name), (later, name))
        for name in bound.equivalences
        for earlier, later in pairwise(variables)
    ]
    for count in range(2, len(variables) + 1):
        known = set(variables[:count])
        reached = {(variables[0], key.columns[0])}
        links = [pair for pair in pairs if pair[0][0] in known and pair[1][0] in known]
        for _ in links:
            for one, other in links:
                if one in reached or other in reached:
                    reached |= {one, other}
        if (variables[count - 1], key.columns[count - 1]) not in reached:
            return False
    return True


def partition_keys(
    bound: BoundQuery,
) -> tuple[tuple[PartitionKey, ...], tuple[PartitionKey, ...], tuple[TypedExpression, ...]]:
    """Return the partition keys of a query, those to split by, and the predicates that these do not enforce.

    Under skip till any match the events are split by all keys; see :func:`holds_from_the_start` for the
    strategies that ask what else could have been taken.

    ``[attr]`` equates an attribute of all components; ``a.x = b.y`` equates two, and chains of such
    equalities are followed (the transitive closure by which the match-windows paper partitions).
    """
    variables = [component.variable for component in bound.components]
    groups: dict[Node, frozenset[Node]] = {}

    def equate(nodes: list[Node]) -> None:
        merged = frozenset().union(*(groups.get(node, frozenset((node,))) for node in nodes))
        groups.update(dict.fromkeys(merged, merged))

    for name in bound.equivalences:
        equate([(variable, name) for variable in variables])
    pairs = [_equated(predicate) for predicate in bound.predicates]
    for pair in pairs:
        if pair is not None:
            equate(list(pair))

    keys: list[PartitionKey] = []
    for group in dict.fromkeys(groups.values()):
        names = [sorted(name for owner, name in group if owner == variable) for variable in variables]
        if not all(names):
            continue
        # Every [attr] is a key of its own, so that its column appears in the result.
        common = [name for name in bound.equivalences if (variables[0], name) in group]
        common = common or sorted(set(names[0]).intersection(*names))[:1]
        keys += [PartitionKey((name,) * len(variables)) for name in common]
        if not common:
            keys.append(PartitionKey(tuple(options[0] for options in names)))
    split = keys
    if bound.query.strategy != "skip_till_any_match":
        split = [key for key in keys if holds_from_the_start(bound, key)]
    enforced = [set(zip(variables, key.columns, strict=True)) for key in split]
    rest = tuple(
        predicate
        for predicate, pair in zip(bound.predicates, pairs, strict=True)
        if pair is None or not any(key.issuperset(pair) for key in enforced)
    )
    return tuple(keys), tuple(split), rest
