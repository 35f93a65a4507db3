"""The branches of a pattern and their terms, held against inclusion and exclusion over its readings."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations

from hypothesis import assume, given, note

import uncertain_cep as uc
from tests.cases.nested import NestedCase, reading_cases
from uncertain_cep.query.branches import branches_of, count_of_expansions, count_of_terms, expansions
from uncertain_cep.query.walks import components_of


@given(reading_cases())
def test_terms_are_those_of_inclusion_and_exclusion(case: NestedCase) -> None:
    note(case.text())
    pattern = uc.parse(case.text()).pattern
    assume(count_of_expansions(pattern) <= 12)
    readings: dict[tuple[str, ...], list[frozenset[str]]] = defaultdict(list)
    for expansion in expansions(pattern):
        parts = list(components_of(expansion))
        positive = tuple(part.variable for part in parts if not part.negated)
        readings[positive].append(frozenset(part.variable for part in parts if part.negated))
    branches = branches_of(pattern)
    assert len(branches) == len(readings)
    for branch in branches:
        parts = list(components_of(branch.pattern))
        own_readings = readings.pop(tuple(part.variable for part in parts if not part.negated))
        assert {part.variable for part in parts if part.negated} == frozenset().union(*own_readings)
        expected: Counter[frozenset[str]] = Counter()
        for count in range(1, len(own_readings) + 1):
            for chosen in combinations(own_readings, count):
                expected[frozenset().union(*chosen)] += (-1) ** (count + 1)
        assert {term.negated: term.weight for term in branch.terms} == {
            negated: weight for negated, weight in expected.items() if weight
        }
        assert {term.negated for term in branch.terms if term.is_reading} == set(own_readings)
    assert max(len(branch.terms) for branch in branches) == count_of_terms(pattern)
