"""The point-based framework beyond sequences of single events: negation, Kleene components, contiguity."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from pointbased import PointMatches
from tests.cases.cases import Trace
from tests.cases.comparison import Row, assert_answer, assert_same
from tests.cases.language import STRATEGIES, LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from tests.cases.points import sase_matches
from tests.cases.sampling import FEWER
from tests.pointbased.test_answers import cramped, in_any_order, with_and_without_merging_and_nelt
from tests.streaming.arrivals import arrivals
from tests.streaming.test_sliced import streamed
from uncertain_cep.candidates.pmfs import explicit_pmfs
from uncertain_cep.executor import candidates, constants_hold
from uncertain_cep.operators import costly_matches, next_match, points
from uncertain_cep.operators.points import PointCandidates, point_candidates
from uncertain_cep.plan import make_plan
from uncertain_cep.testing.model import Key, Strategy

EACH = pytest.mark.parametrize("strategy", STRATEGIES)


def prepared(case: LanguageCase) -> tuple[PointCandidates, pa.Table] | None:
    """Return the candidates of a case; None if there can be no match."""
    table = case.trace.table()
    plan = make_plan(uc.parse(case.text()), table.schema, evaluation="point")
    selection = candidates(plan, table)
    if selection.empty or not constants_hold(plan):
        return None
    given_ticks = [np.asarray(table.column(name).to_numpy()) for name in ("lower", "upper")]
    pmfs, lower, upper = explicit_pmfs(table, "pmf", *given_ticks)
    return point_candidates(plan, table, selection, (lower, upper), pmfs), table


def as_rows(parts: list[PointMatches], case: LanguageCase, table: pa.Table) -> dict[Key, Row]:
    """Return matches as the engine's rows, each of them once."""
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    positives = [component for component in case.components if not component.negated]
    rows: dict[Key, Row] = {}
    for matches in parts:
        for n, described in enumerate(zip(*(part.tolist() for part in matches[3:6]), strict=True)):
            events_of_match = slice(int(matches.start[n]), int(matches.start[n + 1]))
            pairs = list(
                zip(
                    matches.component[events_of_match].tolist(),
                    matches.event[events_of_match].tolist(),
                    strict=True,
                )
            )
            signature: list[Any] = []
            for number, component in enumerate(positives):
                ids = tuple(columns["id"][row] for j, row in pairs if j == number)
                signature.append((component.variable, ids if component.kleene else ids[0]))
            partition = tuple(columns[name][pairs[0][1]] for name in case.query().partition)
            key = (partition, tuple(signature))
            assert key not in rows
            rows[key] = Row(*described)
    return rows


@EACH
@FEWER
@given(data=st.data())
def test_batch_is_the_oracle(strategy: Strategy, data: st.DataObject) -> None:
    case = data.draw(language_cases(strategy))
    note(case.text())
    case.check(evaluation="point")


@EACH
@FEWER
@given(data=st.data())
def test_merging_and_nelt_change_nothing(strategy: Strategy, data: st.DataObject) -> None:
    case = data.draw(language_cases(strategy))
    note(case.text())
    given_ = prepared(case)
    if given_ is None:
        return
    fed, table = given_
    answers = [as_rows([part], case, table) for part in with_and_without_merging_and_nelt(fed)]
    for other in answers[1:]:
        assert_same(answers[0], other)
    assert_answer(answers[0], case.answer())


@pytest.mark.parametrize("space", [nullcontext, cramped])
@EACH
@FEWER
@given(data=st.data())
def test_stream_is_the_oracle(
    strategy: Strategy, space: Callable[[], AbstractContextManager[None]], data: st.DataObject
) -> None:
    """Any arrival order, any batches, any times at which it is said what is safe; witnesses arrive too."""
    case = data.draw(language_cases(strategy))
    note(case.text())
    with space():
        check_stream(case, data)


def check_stream(case: LanguageCase, data: st.DataObject) -> None:
    given_ = prepared(case)
    if given_ is None:
        return
    fed, table = given_
    assert_answer(as_rows(in_any_order(fed, data), case, table), case.answer())


@EACH
@FEWER
@given(data=st.data(), length=st.sampled_from([None, 1, 3, 1000]))
def test_the_matcher_of_streams_is_the_oracle(
    strategy: Strategy, data: st.DataObject, length: int | None
) -> None:
    case = data.draw(language_cases(strategy))
    note(case.text())
    stream = data.draw(arrivals(case.trace.events))
    assert_answer(case.rows(streamed(case.trace, stream, case.text(), length, "point")), case.answer())


@EACH
@FEWER
@given(data=st.data())
def test_on_certain_times_it_is_a_sase_engine(strategy: Strategy, data: st.DataObject) -> None:
    """One point an event: what is found has happened, and is all that has."""
    drawn = data.draw(language_cases(strategy, most=7))
    events = tuple(replace(event, upper=event.lower, pmf=None) for event in drawn.trace.events)
    case = replace(drawn, trace=Trace(events, drawn.trace.types))
    note(case.text())
    given_ = prepared(case)
    if given_ is None:
        return
    fed, table = given_
    matches = sase_matches(
        fed.automaton,
        fed.rows.component,
        fed.rows.partition,
        fed.rows.lower,
        fed.rows.row,
        fed.values,
        fed.rows.group,
    )
    assert np.all(matches.confidence == 1.0)
    assert_answer(as_rows([matches], case, table), case.answer())


@given(nested_cases("SO"))
def test_alternatives_are_the_oracle(case: NestedCase) -> None:
    note(case.text())
    case.check(evaluation="point")


TABLE = pa.table({"type": ["A"] * 6, "id": range(6), "lower": range(6), "upper": [9] * 6})
SERIES = "PATTERN SEQ(A a, A+ b[]) WHERE skip_till_next_match(a, b[]) WITHIN 20"


def test_what_is_not_answered_is_named() -> None:
    with pytest.raises(uc.OptionError, match=r"does not support event sets, AND\(\.\.\.\)"):
        uc.match(TABLE, "PATTERN AND(A a, A b) WITHIN 20", evaluation="point")
    any_match = SERIES.replace("next", "any")
    with pytest.raises(uc.OptionError, match='does not support kleene="compressed"'):
        uc.match(TABLE, any_match, evaluation="point", kleene="compressed")
    assert uc.match(TABLE, any_match, evaluation="point").num_rows
    assert "point: expand" in uc.explain(any_match, TABLE, evaluation="point")


def test_too_much_coupling_names_the_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "MOST_CONFIDENCE_STEPS", 100)
    for module in (next_match, costly_matches):
        monkeypatch.setattr(module, "MOST_CONFIDENCE_STEPS", 100)
    with pytest.raises(uc.ConfidenceCostError, match=r"the match \(a=\d, b=\[\d"):
        uc.match(TABLE, SERIES, evaluation="point")


def test_too_many_beginnings_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointbased.evaluation.MOST_PREFIXES", 1000)
    table = pa.table({"type": ["A"] * 16, "id": range(16), "lower": range(16), "upper": range(16)})
    with pytest.raises(uc.OptionError, match="more than 1,000 beginnings of matches"):
        uc.match(table, SERIES.replace("next", "any"), evaluation="point")
