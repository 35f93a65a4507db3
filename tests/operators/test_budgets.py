"""No answer depends on how much a kernel does before it comes back to Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.budget import looking_at
from tests.cases.budgets import budget
from tests.cases.cases import Case, cases
from tests.cases.comparison import assert_answer, rows_of
from tests.cases.incremental import thresholds
from tests.cases.joins import in_pieces, planned_cases
from tests.cases.language import STRATEGIES as ALL_STRATEGIES
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from tests.cases.sampling import FEWER
from tests.cases.strategies import STRATEGIES, answer_of, text_of
from tests.operators import test_language_compressed as compressed
from tests.oracle.outputs import having
from tests.results import test_counts_and_overlaps as outputs
from tests.streaming.arrivals import arrivals
from tests.streaming.test_incremental import streamed
from uncertain_cep.plan import EVALUATIONS
from uncertain_cep.streaming.stream_methods import INCREMENTAL_EVALUATIONS
from uncertain_cep.testing.model import Strategy

BUDGETS = st.sampled_from([1, 7, None])


@STRATEGIES
@pytest.mark.parametrize("evaluation", EVALUATIONS)
@FEWER
@given(case=cases(), steps=BUDGETS)
def test_sequences(evaluation: str, strategy: Strategy, case: Case, steps: int | None) -> None:
    note(case.script())
    with budget(steps):
        found = uc.match(case.trace.table(), text_of(case, strategy), evaluation=evaluation)
    assert_answer(rows_of(found, case), answer_of(case, strategy))


@STRATEGIES
@FEWER
@given(planned=planned_cases(), pieces=st.sampled_from([(8192, 2**20), (2, 3)]), steps=BUDGETS)
def test_trees(
    planned: tuple[Case, str], pieces: tuple[int, int], strategy: Strategy, steps: int | None
) -> None:
    case, tree = planned
    note(case.script())
    note(tree)
    with in_pieces(*pieces), budget(steps):
        found = uc.match(case.trace.table(), text_of(case, strategy), planner=tree)
    assert_answer(rows_of(found, case), answer_of(case, strategy))


@pytest.mark.parametrize("strategy", ALL_STRATEGIES)
@pytest.mark.parametrize("evaluation", ["auto", "point"])
@FEWER
@given(data=st.data(), steps=BUDGETS)
def test_kleene_negation_and_contiguity(
    evaluation: str, strategy: Strategy, data: st.DataObject, steps: int | None
) -> None:
    case: LanguageCase = data.draw(language_cases(strategy))
    note(case.text())
    with budget(steps):
        case.check(evaluation=evaluation)


@given(nested_cases("AAS"), BUDGETS)
def test_sets(case: NestedCase, steps: int | None) -> None:
    note(case.text())
    with budget(steps):
        case.check()


@given(st.one_of(language_cases(), nested_cases("AAS")), BUDGETS)
def test_thresholds(case: LanguageCase | NestedCase, steps: int | None) -> None:
    matches = case.answer()
    median = sorted(match.confidence for match in matches)[len(matches) // 2] if matches else 1
    # Just below a confidence that occurs.
    least = Fraction(max(math.floor(median * 10_000) - 1, 0), 10_000)
    text = case.text(f"HAVING CONFIDENCE >= {float(least):.4f}")
    note(text)
    with budget(steps):
        found = uc.match(case.trace.table(), text)
    assert_answer(case.rows(found), having(matches, least))


@given(compressed.compressed_cases(), BUDGETS)
def test_compressed_kleene(case: compressed.Case, steps: int | None) -> None:
    with budget(steps):
        compressed.check(case)


@given(st.data(), st.one_of(cases(), outputs.disjoint_cases()), st.sampled_from([None, 1, 3, 1000]), BUDGETS)
def test_expected_counts(data: st.DataObject, case: Case, every: int | None, steps: int | None) -> None:
    by = data.draw(outputs.groups(case))
    clause = outputs.clause_of(by, every)
    note(case.script("", clause))
    with budget(steps):
        found = uc.match(case.trace.table(), case.text("", clause))
    outputs.assert_counts(found, case.answer(), case, by, every)


@STRATEGIES
@pytest.mark.parametrize("evaluation", INCREMENTAL_EVALUATIONS)
@FEWER
@given(case=cases(), data=st.data(), small=st.booleans(), steps=BUDGETS)
def test_streams(
    evaluation: str,
    strategy: Strategy,
    case: Case,
    data: st.DataObject,
    small: bool,
    steps: int | None,
) -> None:
    note(case.script())
    stream = data.draw(arrivals(case.trace.events))
    with thresholds(small=small), budget(steps):
        found, _ = streamed(case, stream, evaluation, text=text_of(case, strategy))
    assert_answer(rows_of(found, case), answer_of(case, strategy))


def checkpoints(steps: int | None, match: Callable[[], object]) -> int:
    """Return how often an evaluation could have been ended."""
    met = 0

    def check(needed: int) -> None:
        nonlocal met
        met += 1

    with budget(steps), looking_at(check):
        match()
    return met


CLOCKS = ("source", "offset_lower", "offset_upper")


def busy(*more: str) -> pa.Table:
    """Return a trace of which many events are near each other, with more columns."""
    count = 40
    rng = np.random.default_rng(5)
    lower = np.sort(rng.integers(0, 60, count))
    columns = {
        "type": np.array(list("ABC"))[rng.integers(0, 3, count)],
        "id": np.arange(count),
        "lower": lower,
        "upper": lower + 3,
        "x": rng.integers(0, 9, count),
        # With clocks, of the ticks that these leave.
        "pmf": pa.array([[0.4, 0.6] if "source" in more else [0.1, 0.2, 0.3, 0.4]] * count),
        "source": np.array(["one", "other"])[rng.integers(0, 2, count)],
        "offset_lower": np.full(count, -1),
        "offset_upper": np.full(count, 1),
        "sequence": np.arange(count),
        "ordered": np.full(count, True),
    }
    return pa.table({name: columns[name] for name in ("type", "id", "lower", "upper", "x", *more)})


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("SEQ(A a, B b, C c) WHERE a.x + b.x + c.x < -1", {"evaluation": "query_order"}),
        ("SEQ(A a, B b, C c) WHERE a.x + b.x + c.x < -1", {"planner": "((a b) c)"}),
        ("SEQ(A a, B b, C c) WHERE a.x + b.x + c.x < -1", {"planner": "(a (b c))"}),
        ("SEQ(A a, B b, C c) WHERE a.x + b.x + c.x < -1", {"evaluation": "any_state"}),
        ("SEQ(A a, B b, C c) WHERE a.x + b.x + c.x < -1", {"evaluation": "selectivity"}),
        ("SEQ(A a, B b, C c) WHERE a.x + b.x + c.x < -1", {"evaluation": "point"}),
        ("SEQ(A a, B+ b[], C c) WHERE a.x + b[i].x + c.x < -1", {}),
        ("SEQ(A a, B+ b[], C c) WHERE a.x + b[i].x + c.x < -1", {"evaluation": "point"}),
        ("SEQ(A a, !C n, B b) WHERE a.x + b.x < -1", {}),
        ("SEQ(A a, B b) WHERE strict_contiguity(a, b) AND a.x + b.x < -1", {}),
        ("AND(A a, B b, C c) WHERE a.x + b.x + c.x < -1", {}),
        ("SEQ(A a, B b, C c) WHERE TIME(b) - TIME(a) <= 9 AND a.x + b.x + c.x < -1", {}),
        ("SEQ(A a, B b, C c) WHERE TIME(c) - TIME(a) <= 9 AND a.x + b.x + c.x < -1", {}),
        ("SEQ(A a, B+ b[], C c) WHERE TIME(c) - TIME(a) <= 9 AND a.x + b[i].x + c.x < -1", {}),
    ],
)
def test_what_finds_nothing_can_be_ended(query: str, options: dict[str, Any]) -> None:
    def match() -> None:
        assert uc.match(busy(), f"PATTERN {query} WITHIN 20", **options).num_rows == 0

    assert checkpoints(7, match) > 20 + checkpoints(None, match)


@pytest.mark.parametrize(
    ("query", "options", "more"),
    [
        ("SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c)", {"evaluation": "query_order"}, ()),
        ("SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c)", {"evaluation": "any_state"}, ()),
        ("SEQ(A a, !C n, B b)", {}, ()),
        ("SEQ(A a, !C n, B b)", {"evaluation": "point"}, ()),
        ("SEQ(A a, B+ b[], C c)", {"kleene": "compressed"}, ()),
        ("AND(A a, B b)", {}, ()),
        ("SEQ(A a, B b, C c)", {"evaluation": "query_order"}, ("pmf",)),
        ("SEQ(A a, B b, C c)", {"evaluation": "any_state"}, ("pmf",)),
        ("SEQ(A a, B b, C c)", {"planner": "((a b) c)"}, ("pmf",)),
        ("SEQ(A a, B b, C c) WHERE TIME(b) - TIME(a) <= 5", {}, ("pmf",)),
        ("SEQ(A a, B b, C c) WHERE TIME(c) - TIME(a) <= 5", {}, ()),
        ("SEQ(A a, B b, C c) WHERE TIME(c) - TIME(a) <= 5", {"evaluation": "any_state"}, ()),
        ("SEQ(A a, !C n, B b) WHERE TIME(n) - TIME(a) <= 5", {}, ()),
        ("SEQ(A a, !C n, B b) WHERE TIME(n) - TIME(a) <= 5", {"approximate": 0.1}, ("pmf",)),
        ("SEQ(A a, B b, C c)", {}, CLOCKS),
        ("SEQ(A a, B b, C c)", {}, (*CLOCKS, "pmf")),
        ("SEQ(A a, !C n, B b)", {}, CLOCKS),
        ("SEQ(A a, B b, C c)", {}, (*CLOCKS, "sequence")),
    ],
)
def test_confidences_can_be_ended(query: str, options: dict[str, Any], more: tuple[str, ...]) -> None:
    def match() -> None:
        uc.match(busy(*more), f"PATTERN {query} WITHIN 12", **options)

    assert checkpoints(7, match) > 20 + checkpoints(None, match)


def test_each_match_of_ordered_sources_can_be_the_last() -> None:
    events, found = busy(*CLOCKS, "sequence", "ordered"), []

    def match() -> None:
        found.append(uc.match(events, "PATTERN SEQ(A a, B b, C c) WITHIN 12").num_rows)

    assert checkpoints(None, match) > found[0] > 20


@pytest.mark.parametrize(
    "pattern",
    [
        "SEQ(A a, B b, C c)",
        "SEQ((A|B) a, (B|C) b)",
        "SEQ((A|B) a, (B|C) b, (A|C) c)",
        "SEQ((A|B) a, (B|C) b, (A|C) c, (A|B) d)",
    ],
)
def test_what_is_counted_at_once_can_be_ended(pattern: str) -> None:
    def match() -> None:
        uc.match(busy(), f"PATTERN {pattern} WITHIN 12 RETURN EXPECTED COUNT")

    assert checkpoints(7, match) > 20 + checkpoints(None, match)
