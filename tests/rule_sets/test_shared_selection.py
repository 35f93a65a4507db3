"""Events that no rule can use are left out at once, and no others."""

from __future__ import annotations

import warnings
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.rule_sets.test_rules_together import answer, comparable, traces
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.rule_sets.shared_selection import loosest, of_some_rule

SHAPES: Final = (
    "PATTERN SEQ(A a, B b) WHERE a.v {op} {x} AND b.v > {y} WITHIN 8",
    "PATTERN SEQ(A a, !C n, B b) WHERE a.v >= {x} AND n.v {op} {y} WITHIN 8",
    "PATTERN SEQ(A a, B+ b[]) WHERE a.v > {x} AND b[i].v {op} {y} WITHIN 6",
    "PATTERN OR(SEQ(A a, B b), SEQ(C c, D d)) WHERE a.v {op} {x} AND d.v < {y} WITHIN 6",
    "PATTERN SEQ(A a, B? b, D d) WHERE a.v {op} {x} AND b.v > {y} WITHIN 7",
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) AND [k] AND a.v {op} {x} AND b.v <= {y} WITHIN 8",
    "PATTERN AND(A a, D d) WHERE a.v = {x} AND d.v {op} {y} WITHIN 5",
    "PATTERN SEQ(A a, B{{1,2}} b[], C c) WHERE b[i].v {op} {x} AND c.v < {y} WITHIN 9",
    "PATTERN SEQ(A a, B b) WHERE {x} < a.v AND b.v {op} {y} WITHIN 8 RETURN PROBABILITY AS p BY k",
)
CONSTANTS: Final = st.sampled_from([-1, 0, 1, 2, 2.5, 3, 4, 9])


@settings(deadline=None)
@given(
    trace=traces(),
    shapes=st.lists(st.sampled_from(SHAPES), min_size=1, max_size=2, unique=True),
    op=st.sampled_from(["<", "<=", ">", ">="]),
    constants=st.lists(st.tuples(CONSTANTS, CONSTANTS), min_size=2, max_size=5),
    end=st.sampled_from([None, 12]),
)
def test_rules_of_one_shape_as_alone(
    trace: pa.Table, shapes: list[str], op: str, constants: list[tuple[float, float]], end: int | None
) -> None:
    queries = [shape.format(op=op, x=x, y=y) for shape in shapes for x, y in constants]
    rules = uc.rules({str(number): query for number, query in enumerate(queries)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        alone = [answer(trace, query, known_until=end) for query in queries]
        errors = {said for said in alone if isinstance(said, str)}
        if errors:
            with pytest.raises(uc.UncertainCepError) as caught:
                uc.match(trace, rules, known_until=end)
            assert type(caught.value).__name__ in errors
            return
        together = uc.match(trace, rules, known_until=end)
        for number, query in enumerate(queries):
            mask = [rule == str(number) for rule in together.column("rule").to_pylist()]
            part = together.filter(pa.array(mask, pa.bool_()))
            columns = uc.match(trace.slice(0, 0), query).column_names
            assert unpacked(part.select(columns)) == unpacked(uc.match(trace, query, known_until=end))


def unpacked(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return rows, lists of one as values: rules with lists make them of those without."""
    rows = comparable(table)

    def plain(value: Any) -> Any:
        return value[0] if isinstance(value, list) and len(value) == 1 else value

    return sorted((tuple(map(plain, row)) for row in rows), key=repr)


TABLE: Final = pa.table(
    {
        "type": ["A", "A", "B", "A", "B", "C", "C", "C", "C", "C"],
        "id": range(10),
        "lower": range(10),
        "upper": range(10),
        "v": [1, 5, 7, None, 9, 9, 9, 9, 9, 9],
        "name": [str(number) for number in range(10)],
    }
)


def plans(*queries: str) -> list[Any]:
    return [make_plan(uc.parse(query), TABLE.schema, MatchOptions()) for query in queries]


def test_comparisons_share_the_loosest() -> None:
    same = plans(
        *(f"PATTERN SEQ(A a, B b) WHERE a.v > {x} AND b.v < {y} WITHIN 5" for x, y in ((4, 6), (3, 8)))
    )
    selections = loosest(part for plan in same for part in plan.components)
    assert [one.types for one in selections] == [("A",), ("B",)]
    assert [rule.operands[1].value for _, (rule,), _ in selections] == [3, 8]  # type: ignore[union-attr]
    assert of_some_rule(same, TABLE).column("id").to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "queries",
    [
        # Most events are of use; each rule has a shape of its own; a component takes any type.
        ("PATTERN SEQ(A a, C c) WITHIN 5", "PATTERN SEQ(A a, C c) WITHIN 6"),
        ("PATTERN SEQ(A a) WHERE a.v > 4 WITHIN 5", "PATTERN SEQ(B b) WHERE b.name = 'x' WITHIN 5"),
        ("PATTERN SEQ(A a, ANY x) WHERE a.v > 7 WITHIN 5", "PATTERN SEQ(A a, ANY x) WHERE a.v > 8 WITHIN 5"),
    ],
)
def test_events_stay_where_nothing_is_gained(queries: tuple[str, ...]) -> None:
    assert of_some_rule(plans(*queries), TABLE) is TABLE
