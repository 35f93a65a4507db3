"""Random trees of joins, and cases that compare their events in ways that make no partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import strategies as st

from tests.cases.cases import Case, cases
from tests.cases.expressions import Apply, Attribute, Constant, Expression
from tests.cases.sampling import sampled_from
from uncertain_cep.operators import table
from uncertain_cep.operators.tree_join import tree_join
from uncertain_cep.plan.trees import Join, Leaf, Tree, format_tree

# Compared with each other: whole numbers with floats as well.
_NUMBERS = ("x", "y", "g")
_SAME = ("x", "y", "s", "f", "k", "g")


@st.composite
def trees(draw: st.DrawFn, components: Sequence[int]) -> Tree:
    """Draw a tree over components, in any order."""
    parts: list[Tree] = [Leaf(component) for component in draw(st.permutations(components))]
    while len(parts) > 1:
        place = draw(st.integers(0, len(parts) - 2))
        parts[place : place + 2] = [Join(parts[place], parts[place + 1])]
    return parts[0]


@st.composite
def _comparisons(draw: st.DrawFn, variables: Sequence[str]) -> Expression:
    one, other = draw(st.permutations(variables))[:2]
    names = [draw(sampled_from(_SAME))] * 2

    if draw(st.booleans()):
        names = [draw(sampled_from(_NUMBERS)) for _ in range(2)]
    left: Expression = Attribute(one, names[0])
    if draw(st.booleans()) and all(name in _NUMBERS for name in names):
        sign = draw(sampled_from("+%"))
        left = Apply(sign, (left, Constant(2, "2")), sign)
    sign = draw(sampled_from(["=", "=", "!=", "<"] if set(names) <= set(_NUMBERS) else ["=", "=", "!="]))
    return Apply(sign, (left, Attribute(other, names[1])), sign)


@st.composite
def compared_cases(draw: st.DrawFn) -> Case:
    """Draw a case of two components or more, often with comparisons of two of its events."""
    case = draw(cases().filter(lambda case: len(case.components) > 1))
    more = draw(st.lists(_comparisons(case.variables), max_size=3))
    return replace(case, conditions=(*case.conditions, *more))


@st.composite
def planned_cases(draw: st.DrawFn) -> tuple[Case, str]:
    """Draw such a case and a tree over its variables, in brackets."""
    case = draw(compared_cases())
    tree = draw(trees(range(len(case.variables))))
    return case, format_tree(tree, case.variables)


@contextmanager
def in_pieces(block_rows: int, materialised_rows: int) -> Iterator[None]:
    """Have joins work on smaller blocks, and hold fewer partial matches."""
    with pytest.MonkeyPatch.context() as patch:
        small = partial(tree_join, block_rows=block_rows, materialised_rows=materialised_rows)
        patch.setattr(table, "tree_join", small)
        yield
