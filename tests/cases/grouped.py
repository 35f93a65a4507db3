"""Ways to group the matches of a case: clauses of RETURN PROBABILITY, drawn, and their answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from hypothesis import strategies as st

from tests.cases.cases import Trace
from tests.cases.comparison import RELATIVE_ERROR
from tests.cases.sampling import sampled_from
from uncertain_cep.testing.counted_worlds import Group, probabilities
from uncertain_cep.testing.model import Query
from uncertain_cep.testing.patterns import components

__all__ = ["Grouping", "assert_probabilities", "groupings", "rows_of"]


class AnyCase(Protocol):
    """A case with a trace and a query in both forms."""

    @property
    def trace(self) -> Trace: ...

    def query(self) -> Query: ...


@dataclass(frozen=True, slots=True)
class Grouping:
    """The parts of RETURN PROBABILITY."""

    by: tuple[str, ...] = ()
    every: int | None = None
    at_least: int = 1

    @property
    def clause(self) -> str:
        """In the query language."""
        several = f" OF AT LEAST {self.at_least} MATCHES" if self.at_least > 1 else ""
        by = f" BY {', '.join(self.by)}" if self.by else ""
        return f"RETURN PROBABILITY{several}{by}{'' if self.every is None else f' EVERY {self.every}'}"

    def answer(self, case: AnyCase) -> dict[Group, Any]:
        """Return the oracle's answer."""
        query = case.query()
        return dict(
            probabilities(query, case.trace.events, by=self.by, every=self.every, at_least=self.at_least)
        )


@st.composite
def groupings(draw: st.DrawFn, query: Query) -> Grouping:
    """Draw a way to group the matches of a query; ids are unique within the groups."""
    singles = [part.variable for part in components(query.pattern) if not part.negated and not part.kleene]
    names = list(query.partition)
    count = draw(st.integers(0, len(names)))
    chosen = list(draw(st.permutations(names)))[:count]
    if draw(st.booleans()) and singles:
        variable = draw(sampled_from(singles))
        name = draw(sampled_from([variable, f"{variable}.x", f"{variable}.k"]))
        if name == variable:
            chosen = names
        chosen.append(name)
    every = draw(sampled_from([None, None, 1, 3, 7]))
    return Grouping(tuple(chosen), every, draw(sampled_from([1, 1, 1, 2, 3])))


def rows_of(table: pa.Table, grouping: Grouping) -> dict[Group, float]:
    """Return the probabilities of a result by group and bucket."""
    probability_of: dict[Group, float] = {}
    for record in table.to_pylist():
        key = tuple(record[name] for name in grouping.by), record.get("bucket")
        assert key not in probability_of, f"{key} has two rows"
        probability_of[key] = record["probability"]
    return probability_of


def assert_probabilities(table: pa.Table, expected: dict[Group, Any], grouping: Grouping) -> None:
    """Assert that the engine's probabilities are the oracle's."""
    probability_of = rows_of(table, grouping)
    assert probability_of.keys() == expected.keys(), (probability_of, expected)
    for key, value in expected.items():
        assert math.isclose(probability_of[key], value, rel_tol=RELATIVE_ERROR), (
            f"{key}: {probability_of[key]} instead of {value}"
        )
