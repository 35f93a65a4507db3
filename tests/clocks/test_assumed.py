"""Constraints that a query asks about."""

from __future__ import annotations

import pytest

import uncertain_cep as uc
from uncertain_cep.clocks.assumed import assumed_in
from uncertain_cep.traces.constraints import Constraint


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("SEQ(Map a, Shuffle b)", 1),
        ("SEQ(Shuffle a, Map b)", 0),
        ("SEQ(Start a, Start b)", 1),
        ("SEQ((X|End) a, ANY b, End c)", 1),
        ("OR(SEQ(Map a, Shuffle b), SEQ(End c, Start d))", 0),
    ],
)
def test_types_in_the_order_of_a_constraint(pattern: str, count: int) -> None:
    constraints: list[Constraint] = [
        uc.all_before("Map", "Shuffle", "job"),
        uc.encloses(("Start", "End"), ("Start", "End"), "span"),
    ]
    assert len(assumed_in(uc.parse(f"PATTERN {pattern} WITHIN 9"), constraints)) == count
