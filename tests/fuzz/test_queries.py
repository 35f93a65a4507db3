"""Any query: it is read, bound and planned, or refused."""

from __future__ import annotations

import random
from contextlib import suppress

import pyarrow as pa
import pytest

from tests.fuzz.fuzzing import Fuzzer, allowed, mutated, pieces_left_out
from tests.query.golden import cases
from tests.query.test_fuzz import SCHEMA as BOUND_TO
from tests.query.test_fuzz import TOKENS
from uncertain_cep.boundary import public
from uncertain_cep.errors import QueryError
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.query import bind_row_condition, parse, parse_row_condition

SCHEMA = pa.unify_schemas(
    [
        BOUND_TO,
        pa.schema(
            {"k": pa.string(), "at": pa.timestamp("us", "UTC"), "odd (%)": pa.decimal128(9, 2)},
        ),
    ]
)
_OPTIONS = MatchOptions(tick="1ms")
_VALID = [case.given for name in ("parse.txt", "query_errors.txt", "bound.txt") for case in cases(name)]
_PARTS = [
    *TOKENS,
    " ",
    "\n",
    "\ud800",
    "\U0001f600",
    "a.x < b.x",
    "AND(A a, B b)",
    "A+ c[]",
    "!N n",
    "(" * 60,
    "-" * 60,
]


def query(draw: random.Random) -> str:
    """Return a query that is sound, nearly so, or not at all."""
    kind = draw.randrange(4)
    if kind == 0:
        gap = draw.choice((" ", " ", "", "\n"))
        return gap.join(draw.choices(_PARTS, k=draw.randrange(40)))
    if kind == 1:
        text = draw.choice(_VALID)
        other = draw.choice(_VALID)
        cut, place = draw.randrange(len(text) + 1), draw.randrange(len(other) + 1)
        return mutated(draw, text[:cut] + " " + other[place:], _PARTS)
    return mutated(draw, draw.choice(_VALID), _PARTS)


@public
def planned(text: str) -> None:
    """Do all that is done with a query before an event is looked at."""
    with suppress(QueryError):
        bind_row_condition(parse_row_condition(text), SCHEMA, text=text)
    make_plan(parse(text), SCHEMA, _OPTIONS)


QUERIES = Fuzzer(query, lambda text: allowed(lambda: planned(text)), pieces_left_out)


def test_a_sample_of_queries() -> None:
    QUERIES.run(300, seed=1)


@pytest.mark.thorough
def test_queries() -> None:
    QUERIES.run(1_000_000)
