"""How long matches of every construct took, against all worlds of the events by exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.beside import beside_cases
from tests.cases.clocks import by_clocks, in_sequence
from tests.cases.existence import doubtful
from tests.cases.language import PatternCase, language_cases
from tests.cases.negated_groups import group_cases
from tests.cases.nested import nested_cases, reading_cases
from tests.cases.sampling import sampled_from
from tests.cases.times import timed_cases
from uncertain_cep.testing.model import Entry
from uncertain_cep.testing.patterns import components
from uncertain_cep.testing.worlds import ticks_of_matches

CASES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "strategies, lists, negations": language_cases(),
    "alternatives": nested_cases("SAO", 4),
    "optional components": reading_cases(4),
    "negated groups": group_cases(),
    "negations beside sets": beside_cases(),
    "conditions on times": timed_cases(most=4),
    "clocks": by_clocks(language_cases(most=4)),
    "sets by clocks": by_clocks(nested_cases("SA", 4)),
    "sequences": in_sequence(language_cases(most=4)),
    "existence": doubtful(language_cases(most=4)),
}
Law = dict[int, Fraction]


def size_of(entry: Entry) -> int:
    """Return how many events a variable has in a match."""
    if isinstance(entry, tuple):
        return sum(one is not None for one in entry)
    return int(entry is not None)


def law_of(joint: dict[tuple[int, ...], Fraction], places: tuple[int, int]) -> Law:
    """Return how likely a match took each time from one of its events to another one."""
    law: Law = {}
    for ticks, probability in joint.items():
        length = ticks[places[1]] - ticks[places[0]]
        law[length] = law.get(length, Fraction()) + probability
    return {length: probability for length, probability in law.items() if probability}


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
@given(kind=sampled_from(list(CASES)), data=st.data())
def test_times_are_those_of_all_worlds(kind: str, data: st.DataObject) -> None:
    case: PatternCase = data.draw(CASES[kind])
    table, query = case.trace.table(), case.text()
    columns = uc.match(table, query).schema
    named = [part.variable for part in components(case.query().pattern) if not part.negated]
    singles = [variable for variable in named if not pa.types.is_list(columns.field(variable).type)]
    assume(len(singles) > 1)
    of = data.draw(st.permutations(singles))[:2]
    note(f"{query} {of}")
    returned = uc.match(table, f"{query} RETURN DURATION({of[0]}, {of[1]}) AS took")
    took = uc.elapsed(table, query, of, at_most=[0, 2], quantiles=[0.5])
    worlds = ticks_of_matches(case.query(), case.trace.events)
    rows = dict(zip(case.rows(returned), returned.to_pylist(), strict=True))
    laws: dict[tuple[Any, ...], Law] = {}
    for key, row in rows.items():
        sizes = [size_of(entry) for _, entry in key[1]]
        variables = [variable for variable, _ in key[1]]
        numbers = [variables.index(variable) for variable in of]
        if not all(sizes[number] for number in numbers):
            assert row["took_lower"] is row["took_upper"] is row["took_mean"] is None
            continue
        law = law_of(worlds[key], (sum(sizes[: numbers[0]]), sum(sizes[: numbers[1]])))
        total = sum(law.values())
        mean = float(sum(length * probability for length, probability in law.items()) / total)
        assert (row["took_lower"], row["took_upper"]) == (min(law), max(law))
        assert row["took_mean"] == pytest.approx(mean, rel=1e-9, abs=1e-9)
        laws[key] = law
    matches = took.drop_columns(took.column_names[took.column_names.index("confidence") + 1 :])
    bounds = {name: pa.array([0] * took.num_rows) for name in ("range_lower", "range_upper")}
    for name, column in bounds.items():
        matches = matches.append_column(name, column)
    check_laws(took, [laws.pop(key) for key in case.rows(matches)])
    assert not laws


def check_laws(took: pa.Table, laws: list[Law]) -> None:
    """Assert that rows of ``uc.elapsed`` have the laws of their matches."""
    for row, law in zip(took.to_pylist(), laws, strict=True):
        total = sum(law.values())
        assert row["confidence"] == pytest.approx(float(total), rel=1e-9)
        assert (row["duration_lower"], row["duration_upper"]) == (min(law), max(law))
        for length, share in zip([0, 2], row["at_most"], strict=True):
            below = sum((part for one, part in law.items() if one <= length), Fraction())
            assert share == pytest.approx(float(below / total), rel=1e-9, abs=1e-12)
        (median,) = row["quantiles"]
        up_to = [
            sum((part for one, part in law.items() if one <= end), Fraction()) for end in (median - 1, median)
        ]
        assert up_to[0] <= total * (Fraction(1, 2) + Fraction(1, 10**8))
        assert up_to[1] >= total * (Fraction(1, 2) - Fraction(1, 10**8))
