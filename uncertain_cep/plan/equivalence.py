"""Which attributes the WHERE clause equates across all components: the keys of the partitions."""

from __future__ import annotations

from dataclasses import dataclass

from uncertain_cep.query.bound import BoundQuery
from uncertain_cep.query.typed import Apply, Column, TypedExpression

__all__ = ["PartitionKey", "partition_keys"]


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


def partition_keys(bound: BoundQuery) -> tuple[tuple[PartitionKey, ...], tuple[TypedExpression, ...]]:
    """Return the partition keys of a query and the predicates that they do not already enforce.

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
    enforced = [set(zip(variables, key.columns, strict=True)) for key in keys]
    rest = tuple(
        predicate
        for predicate, pair in zip(bound.predicates, pairs, strict=True)
        if pair is None or not any(key.issuperset(pair) for key in enforced)
    )
    return tuple(keys), rest
