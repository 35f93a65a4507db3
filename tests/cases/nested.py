"""Random small cases of nested patterns, with sets, branches and negations: as text and for the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_letters

from hypothesis import assume
from hypothesis import strategies as st

from tests.cases.language import STRATEGIES, Asked, PatternCase, conditions, equal, traces
from tests.cases.sampling import sampled_from
from uncertain_cep.testing.model import And, Component, Or, Pattern, Seq, Strategy
from uncertain_cep.testing.patterns import components, expansions, positives, set_variables

_KINDS: dict[str, type[Seq] | type[And] | type[Or]] = {"S": Seq, "A": And, "O": Or}
_NAMES = [letter for letter in ascii_letters if letter not in "kx"]
_TYPES = [("A",), ("A",), ("B",), ("B",), ("A", "B"), ()]


class NestedCase(PatternCase):
    """A case of any pattern."""

    __slots__ = ()


@st.composite
def _absent(
    draw: st.DrawFn,
    names: Iterator[str],
    branches: bool,
    shapes: Sequence[str] = ("one", "one", "one", "two"),
) -> Pattern:
    """Draw a negated component, or an OR of negations: readings that can give one signature."""

    def negation() -> Component:
        return Component(next(names), draw(sampled_from(_TYPES)), negated=True)

    shape = draw(sampled_from(shapes)) if branches else "one"
    if shape == "one":
        return negation()
    if shape in ("two", "three"):
        return Or(tuple(negation() for _ in range(3 if shape == "three" else 2)))
    if shape == "kept":
        # One negation of both readings.
        return Seq((negation(), Or((negation(), negation()))))
    return Or((negation(), Seq((negation(), Or((negation(), negation()))))))


@st.composite
def _patterns(
    draw: st.DrawFn,
    names: Iterator[str],
    size: int,
    kinds: str,
    *,
    in_set: bool = False,
    outermost: bool = False,
) -> Pattern:
    """Draw a pattern of ``size`` positive components of the kinds S(EQ), A(ND) and O(R)."""
    if size == 1 and not (outermost and draw(st.booleans())):
        return Component(next(names), draw(sampled_from(_TYPES)), kleene=draw(st.integers(0, 3)) == 0)
    kind = draw(sampled_from(kinds))
    parts: list[int] = []
    while sum(parts) < size:
        parts.append(draw(st.integers(1, max(1, min(size - sum(parts), size - 1)))))
    items: list[Pattern] = []
    for place, part in enumerate(parts):
        inner = in_set or kind == "A"
        if kind == "S" and (place > 0 or not in_set) and draw(st.integers(0, 3)) == 0:
            items.append(draw(_absent(names, "O" in kinds)))
        items.append(draw(_patterns(names, part, kinds, in_set=inner)))
    if kind == "S" and not in_set and draw(st.integers(0, 4)) == 0:
        items.append(draw(_absent(names, "O" in kinds)))
    return _KINDS[kind](tuple(items))


def is_nested(pattern: Pattern, kinds: str) -> bool:
    """Return whether a pattern has one of some kinds."""
    if isinstance(pattern, Component):
        return False
    has_kind = any(isinstance(pattern, _KINDS[kind]) for kind in kinds)
    return has_kind or any(is_nested(item, kinds) for item in pattern.items)


def unordered(pattern: Pattern) -> frozenset[str]:
    """Return the Kleene variables whose events have no order in some branch."""
    return frozenset[str]().union(*map(set_variables, expansions(pattern)))


@st.composite
def nested_cases(draw: st.DrawFn, kinds: str, most: int = 5) -> NestedCase:
    """Draw a case of a pattern made of the given kinds."""
    size = draw(sampled_from([1, 2, 2, 3, 3, 4]))
    return draw(_cases_of(draw(_patterns(iter(_NAMES), size, kinds, outermost=True)), most))


@st.composite
def reading_cases(draw: st.DrawFn, most: int = 5, *, linear: bool = False) -> NestedCase:
    """Draw a case of a pattern with readings that differ in their negations alone."""
    names = iter(_NAMES)
    shape = "alone" if linear else draw(sampled_from(["alone", "alone", "alone", "in set", "beside"]))
    size = 2 if shape == "in set" else draw(sampled_from([1, 2, 2, 3]))
    chosen = draw(st.integers(1, size - 1) if shape == "in set" else st.integers(0, size))
    kleene = draw(st.integers(0, 2 * size))
    items: list[Pattern] = []
    for place in range(size + 1):
        if place == chosen:
            items.append(draw(_absent(names, True, ["two", "two", "three", "nested", "kept"])))
        elif shape != "in set" and draw(st.integers(0, 4)) == 0:
            items.append(draw(_absent(names, True)))
        if place < size:
            items.append(Component(next(names), draw(sampled_from(_TYPES)), kleene=place == kleene))
    pattern: Pattern = Seq(tuple(items))
    if shape != "alone":
        other = Component(next(names), draw(sampled_from(_TYPES)))
        pattern = And((pattern, other)) if shape == "in set" else Or((pattern, other))
    return draw(_cases_of(pattern, most))


@st.composite
def _cases_of(draw: st.DrawFn, pattern: Pattern, most: int) -> NestedCase:
    """Draw a trace, conditions and a strategy for a pattern."""
    # More readings could take more terms than are added.
    assume(len(expansions(pattern)) <= 32)
    strategy: Strategy = "skip_till_any_match"
    if not is_nested(pattern, "A"):
        strategy = draw(sampled_from(STRATEGIES))
    parts = tuple(components(pattern))
    sets = unordered(pattern)
    agree: tuple[str, ...] = ()
    chained: tuple[str, ...] = ()
    chain: list[Asked] = []
    keyed = draw(st.integers(0, 4))
    if keyed == 0:
        agree = ("k",)
    elif keyed == 1 and sum(not part.negated for part in parts) > 1:
        first = next(part for part in parts if not part.negated)
        chain = [equal(first, other) for other in parts if other is not first]
        # With OR, a branch without the first component does not hear of it.
        branches = [positives(expansion) for expansion in expansions(pattern)]
        if all(first in branch and len(branch) > 1 for branch in branches):
            chained = ("k",)
    conditions_drawn = draw(st.lists(conditions(parts, sets), max_size=2))
    return NestedCase(
        draw(traces((*agree, *chained), most)),
        pattern,
        tuple(draw(st.permutations([*chain, *conditions_drawn]))),
        strategy,
        draw(sampled_from([1, 2, 3, 4, 5, 6, 8, 20])),
        agree,
        chained,
    )
