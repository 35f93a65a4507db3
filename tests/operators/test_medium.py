"""The engine against the naive twin on traces of 50 to 200 events with very different interval lengths."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import islice

import pyarrow as pa
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace
from tests.cases.comparison import RELATIVE_ERROR, rows_of
from tests.cases.expressions import Apply, Attribute, Constant, Expression
from tests.cases.naive import chain_mass, signatures
from uncertain_cep.testing.model import Component, Event, Key, Value

_MOST_MATCHES = 1500
_CONFIDENCES_CHECKED = 40
_TYPES = {
    "x": pa.int64(),
    "y": pa.float64(),
    "s": pa.string(),
    "f": pa.bool_(),
    "k": pa.string(),
    "g": pa.int64(),
}


def _event(chance: random.Random, number: int, time: int, keys: int) -> Event:
    # Mostly short, some long, as in real traces; lengths up to 200 ticks.
    length = chance.choice([1, 1, 2, 5, 11, 11, 11, 40, chance.randint(1, 200)])
    pmf = None
    if chance.random() < 0.15:
        weights = [chance.randint(0, 3) for _ in range(length - 1)] + [1]
        pmf = tuple(Fraction(weight, sum(weights)) for weight in weights)
    attributes: dict[str, Value] = {
        "x": chance.randint(0, 1000),
        "y": chance.choice([0.25, 0.5, 0.75, None]),
        "s": chance.choice("uv"),
        "f": chance.random() < 0.5,
        "k": chance.choice([f"key {key}" for key in range(keys)] + [None] * (keys > 3)),
        "g": chance.randint(0, 1),
    }
    lower = time - chance.randint(0, length - 1)
    return Event(chance.choice("ABCD"), number, lower, lower + length - 1, pmf, attributes)


def medium_case(seed: int) -> Case:
    """Return the case of a seed."""
    chance = random.Random(seed)
    keys = chance.choice([1, 1, 2, 5, 20])
    count = chance.randint(50, 200)
    spacing = chance.choice([0.3, 1, 3, 10])
    events = [_event(chance, number, int(number * spacing), keys) for number in range(count)]
    chance.shuffle(events)
    variables = "abcdef"[: chance.randint(2, 6)]
    components = tuple(
        Component(variable, chance.choice([("A",), ("B",), ("C", "D"), ("A", "B"), ()]))
        for variable in variables
    )
    conditions: list[Expression] = []
    for variable in variables:
        modulus = chance.choice([1, 2, 3, 5])
        if modulus > 1:
            rest = Apply("%", (Attribute(variable, "x"), Constant(modulus, str(modulus))), "%")
            conditions.append(Apply("=", (rest, Constant(0, "0")), "="))
    if chance.random() < 0.5:
        first, second = chance.sample(variables, 2)
        sign = chance.choice(["<", ">="])
        conditions.append(Apply(sign, (Attribute(first, "x"), Attribute(second, "x")), sign))
    if chance.random() < 0.3:
        first, second = chance.sample(variables, 2)
        conditions.append(Apply("!=", (Attribute(first, "s"), Attribute(second, "s")), "!="))
    agree = ("k",) if keys > 1 else ()
    window = max(len(variables), int(chance.choice([5, 20, 60, 200, 2000]) * spacing))
    return Case(Trace(tuple(events), _TYPES), components, tuple(conditions), agree, window)


@given(st.integers(0, 2**32 - 1))
def test_engine_is_the_naive_twin(seed: int) -> None:
    case = medium_case(seed)
    note(case.text())
    query = case.query()
    possible = list(islice(signatures(query, case.trace.events), _MOST_MATCHES + 1))
    assume(len(possible) <= _MOST_MATCHES)
    expected: dict[Key, tuple[Event, ...]] = {
        (
            tuple(chosen[0][name] for name in query.partition),
            tuple((variable, event.id) for variable, event in zip(case.variables, chosen, strict=True)),
        ): chosen
        for chosen in possible
    }
    rows = rows_of(uc.match(case.trace.table(), case.text()), case)
    assert not rows.keys() - expected.keys()
    # The intervals are feasible but the pmfs may have zeros just there.
    for key in expected.keys() - rows.keys():
        assert chain_mass(expected[key], case.window) is None, key
    for key in random.Random(seed).sample(sorted(rows), min(len(rows), _CONFIDENCES_CHECKED)):
        exact = chain_mass(expected[key], case.window)
        assert exact is not None
        row = rows[key]
        assert (row.range_lower, row.range_upper) == (exact.range_lower, exact.range_upper), key
        assert row.confidence is not None
        assert math.isclose(row.confidence, exact.confidence, rel_tol=RELATIVE_ERROR), key
