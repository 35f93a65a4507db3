"""HAVING and the best k lose no match: long intervals, windows that bind, thresholds just below what occurs.

Bounds on confidences are closest where intervals overlap in the wrong order and the window cuts them off, and
matter most where a match is just as likely as asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Trace
from tests.cases.comparison import assert_answer
from tests.cases.incremental import thresholds
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from tests.cases.sampling import FEWER
from tests.operators.test_language_compressed import Case, compressed_cases
from tests.operators.test_pruning import in_small_steps
from uncertain_cep.testing.model import Match

_MOST_WORLDS = 4000
"""Of all events of a case: as many as the oracle goes through for a property."""


@st.composite
def spread_out(draw: st.DrawFn, trace: Trace) -> Trace:
    """Draw longer intervals for the events of a trace, some with probabilities that leave ticks out."""
    worlds = 1
    events = []
    for event in trace.events:
        lower = draw(st.integers(0, 6))
        length = draw(st.sampled_from([1, 2, 3, 5, 6]))
        length = length if worlds * length <= _MOST_WORLDS else 1
        worlds *= length
        pmf = None
        if length > 1 and draw(st.integers(0, 3)) == 0:
            inner = draw(st.lists(st.sampled_from([0, 0, 1, 3]), min_size=length - 2, max_size=length - 2))
            weights = [draw(st.integers(1, 3)), *inner, draw(st.integers(1, 3))]
            pmf = tuple(Fraction(weight, sum(weights)) for weight in weights)
        events.append(replace(event, lower=lower, upper=lower + length - 1, pmf=pmf))
    return Trace(tuple(events), trace.types)


@st.composite
def spread_cases(draw: st.DrawFn, cases: st.SearchStrategy[Any]) -> Any:
    """Draw a case with longer intervals, and a window that may bind."""
    case = draw(cases)
    window = draw(st.sampled_from([2, 3, 3, 4, 5, 7, 20]))
    return replace(case, trace=draw(spread_out(case.trace)), window=window)


_CASES = {
    "events one by one": language_cases(asked=False) | language_cases(),
    "contiguity": language_cases("strict_contiguity") | language_cases("partition_contiguity"),
    "sets": nested_cases("A") | nested_cases("AS"),
    "branches": nested_cases("OS") | nested_cases("AOS"),
}
CASES = pytest.mark.parametrize("kind", list(_CASES))


def _answer(case: LanguageCase | NestedCase) -> list[Match]:
    try:
        return case.answer()
    except AssertionError:
        # Branches that give one signature twice are not what is asked here.
        assume(False)
        raise


def _just_below(answer: Sequence[Match], data: st.DataObject) -> tuple[float, list[Match]]:
    """Draw a threshold just below a confidence that occurs, and return with it what reaches it."""
    occurring = sorted({match.confidence for match in answer}) or [Fraction(1, 2)]
    chosen: Fraction = data.draw(st.sampled_from(occurring))
    least = float(chosen) * (1.0 - 1e-10)
    # As far as the engine may round, others are well above it or well below.
    assume(all(abs(found.confidence / chosen - 1) > 1e-8 for found in answer if found.confidence != chosen))
    return least, [match for match in answer if match.confidence >= chosen]


@CASES
@FEWER
@given(data=st.data(), planner=st.sampled_from(["auto", "dp_bushy"]))
def test_a_threshold_just_below_a_confidence(kind: str, data: st.DataObject, planner: str) -> None:
    case = data.draw(spread_cases(_CASES[kind]))
    least, kept = _just_below(_answer(case), data)
    text = case.text(f"HAVING CONFIDENCE >= {least!r}")
    note(text)
    if case.strategy.endswith("contiguity"):
        planner = "auto"
    assert_answer(case.rows(uc.match(case.trace.table(), text, planner=planner)), kept)


@CASES
@FEWER
@given(data=st.data(), small=st.booleans())
def test_a_threshold_on_a_stream(kind: str, data: st.DataObject, small: bool) -> None:
    case = data.draw(spread_cases(_CASES[kind]))
    least, kept = _just_below(_answer(case), data)
    text = case.text(f"HAVING CONFIDENCE >= {least!r}")
    note(text)
    table = case.trace.table()
    cut = data.draw(st.integers(0, table.num_rows))
    with thresholds(small=small):
        matcher = uc.IncrementalMatcher(text, table.schema)
        parts = [matcher.push(table.slice(0, cut)), matcher.push(table.slice(cut)), matcher.close()]
    assert_answer(case.rows(pa.Table.from_batches(parts)), kept)


@CASES
@FEWER
@given(data=st.data(), limit=st.integers(1, 4), batch_rows=st.sampled_from([1, 2, 1000]))
def test_the_best_are_as_likely_as_the_best_there_are(
    kind: str, data: st.DataObject, limit: int, batch_rows: int
) -> None:
    case = data.draw(spread_cases(_CASES[kind]))
    answer = _answer(case)
    text = case.text(f"ORDER BY CONFIDENCE DESC LIMIT {limit}")
    note(text)
    with in_small_steps():
        batches = list(uc.iter_matches(case.trace.table(), text, batch_rows=batch_rows))
    assert sum(batch.num_rows for batch in batches) == min(limit, len(answer))
    if not batches:
        return
    found = case.rows(pa.Table.from_batches(batches))
    by_key = {(match.partition, match.signature): match for match in answer}
    assert_answer(found, [by_key[key] for key in found])
    ranked = sorted((match.confidence for match in answer), reverse=True)[:limit]
    for row, confidence in zip(found.values(), ranked, strict=True):
        assert row.confidence is not None
        assert math.isclose(row.confidence, confidence, rel_tol=1e-9)


@given(spread_cases(compressed_cases()), st.data())
def test_a_threshold_on_what_is_compressed(case: Case, data: st.DataObject) -> None:
    answer = case.answer()
    occurring = sorted({row[3] for row in answer.values()}) or [Fraction(1, 2)]
    chosen: Fraction = data.draw(st.sampled_from(occurring))
    text = case.text(f"HAVING CONFIDENCE >= {float(chosen) * (1.0 - 1e-10)!r}")
    note(text)
    single = [part.variable for part in case.components if not part.kleene]
    found = {
        (tuple(row[name] for name in case.agree), tuple(row[name] for name in single))
        for row in uc.match(case.trace.table(), text, kleene="compressed").to_pylist()
    }
    assert found == {key for key, row in answer.items() if row[3] >= chosen}


@pytest.mark.parametrize(("half", "window"), [(2, 24), (6, 14)])
@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match"])
def test_a_threshold_on_runs_of_equally_long_intervals(strategy: str, half: int, window: int) -> None:
    """The join cuts such runs down to where order and window are likely enough, by a search for the ends."""
    rng = np.random.default_rng(half)
    middle = np.sort(rng.integers(0, 120, 60))
    columns = {"id": np.arange(60), "lower": middle - half, "upper": middle + half}
    table = pa.table({"type": rng.choice(list("ABCD"), 60), **columns})
    text = f"PATTERN SEQ(A a, B b, C c, D d) WHERE {strategy}(a, b, c, d) WITHIN {window}"
    every = uc.match(table, text)
    confidence = np.asarray(every["confidence"])
    assert len(confidence) > 20
    for chosen in rng.choice(confidence, 8):
        least = float(chosen) * (1.0 - 1e-10)
        found = uc.match(table, f"{text} HAVING CONFIDENCE >= {least!r}")
        kept = every.filter(pa.array(confidence >= least))
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, kept.to_pylist()))


_PAIR: dict[str, list[Any]] = {"type": ["C", "B"], "id": [8, 19], "lower": [3, 4], "upper": [7, 4]}


def _as_tables(columns: Mapping[str, Sequence[Any]], text: str, **options: Any) -> list[pa.Table]:
    """Return the answer of a query in a table, and in a stream of its events."""
    table = pa.table({name: list(values) for name, values in columns.items()})
    matcher = uc.IncrementalMatcher(text, table.schema, **options)
    streamed = pa.Table.from_batches([matcher.push(table), matcher.close()])
    return [uc.match(table, text, **options), streamed]


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        ("SEQ(C a, !A d, B b)", ""),
        ("SEQ(C a, B b, !A d)", ""),
        ("SEQ(!A d, C a, B b)", ""),
        ("SEQ(C+ a[], B b)", ""),
        ("SEQ(C a, B b)", "WHERE strict_contiguity(a, b)"),
        ("SEQ(C a, B b)", "WHERE skip_till_next_match(a, b)"),
        ("SEQ(C a, OR(B b, A e))", ""),
        ("SEQ(C a, AND(B b))", ""),
    ],
)
def test_the_later_event_may_be_the_earlier_one(pattern: str, where: str) -> None:
    """c in [3, 7] is before b at 4 with 1/5, and then within 3 ticks for certain; near b with 4/5."""
    text = f"PATTERN {pattern} {where} WITHIN 3 HAVING CONFIDENCE >= 0.18"
    for found in _as_tables(_PAIR, text):
        (row,) = found.to_pylist()
        assert row["a"] in (8, [8])
        assert (row["b"], row["range_lower"], row["range_upper"]) == (19, 3, 4)
        assert row["confidence"] == pytest.approx(0.2, rel=1e-9)


def test_the_single_events_beside_a_compressed_component_may_be_in_the_wrong_order() -> None:
    columns = {name: [*_PAIR[name], value] for name, value in zip(_PAIR, ("D", 1, 5, 5), strict=True)}
    text = "PATTERN SEQ(C a, B b, D+ d[]) WITHIN 3 HAVING CONFIDENCE >= 0.18"
    (row,) = uc.match(pa.table(columns), text, kleene="compressed").to_pylist()
    assert row["confidence"] == pytest.approx(0.2, rel=1e-9)


def test_the_best_comes_behind_many_that_are_worse() -> None:
    """300 pairs of a confidence of 1/6, of smaller ids, and behind them the one of 1/5."""
    columns: dict[str, list[Any]] = {name: [] for name in _PAIR}
    for n in range(300):
        begin = 100 * n
        # c of 6 ticks begins one tick before b: 1/6.
        for row in (("C", 2 * n, begin, begin + 5), ("B", 2 * n + 1, begin + 1, begin + 1)):
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
    for row in (("C", 1000, 40_003, 40_007), ("B", 1001, 40_004, 40_004)):
        for name, value in zip(columns, row, strict=True):
            columns[name].append(value)
    for pattern in ("SEQ(C a, !A d, B b)", "SEQ(C+ a[], B b)"):
        text = f"PATTERN {pattern} WITHIN 3 ORDER BY CONFIDENCE DESC LIMIT 1"
        (found,) = uc.match(pa.table(columns), text).to_pylist()
        assert found["b"] == 1001
        assert found["confidence"] == pytest.approx(0.2, rel=1e-9)
