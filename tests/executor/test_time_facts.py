"""Worked facts about conditions on times, by the engine."""

from __future__ import annotations

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.cases.time_facts import FACTS


@pytest.mark.parametrize("name", FACTS)
def test_the_engine_knows_it(name: str) -> None:
    fact = FACTS[name]
    names = [found.variable + "[]" * found.kleene for found in fact.components if not found.negated]
    items = ", ".join(
        f"{'!' * found.negated}{found.types[0]}{'+' * found.kleene} {found.variable}{'[]' * found.kleene}"
        for found in fact.components
    )
    events = pa.table(
        {name: [getattr(found, name) for found in fact.events] for name in ("type", "id", "lower", "upper")}
    )
    strategy = f"{fact.strategy}({', '.join(names)})"
    query = f"PATTERN SEQ({items}) WHERE {strategy} {{ {fact.text} }} WITHIN {fact.window}"
    table = uc.match(events, query)
    found: dict[tuple[object, ...], object] = {}
    for row in table.to_pylist():
        values = list(row.values())
        ids = tuple(tuple(value) if isinstance(value, list) else value for value in values[:-3])
        found[ids] = (values[-3], values[-2], pytest.approx(values[-1], rel=1e-12))
    assert found == fact.expected
