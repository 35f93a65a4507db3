"""The point-based framework gives the oracle's answer: both strategies, in batches and as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from pointbased import PointEvaluation, PointMatches, expansion, match_buffer, store
from tests.cases.cases import Case, cases
from tests.cases.comparison import Row, assert_answer, assert_same, rows_of
from tests.cases.points import EmitRule
from tests.cases.sampling import FEWER
from tests.cases.strategies import STRATEGIES, answer_of, text_of
from uncertain_cep.candidates.pmfs import explicit_pmfs
from uncertain_cep.executor import candidates
from uncertain_cep.operators import costly_matches, next_match, points
from uncertain_cep.operators.points import PointCandidates, point_candidates
from uncertain_cep.plan import EVALUATIONS, make_plan
from uncertain_cep.testing.model import Key, Strategy


@contextmanager
def cramped() -> Iterator[None]:
    """Pools that start with room for one row, a sweep after every step, and steps of single ticks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(match_buffer, "LEAST_ROWS", 1)
        patch.setattr(store, "LEAST_ROWS", 1)
        patch.setattr(PointEvaluation, "_due", property(lambda _: 0, lambda _, due: None), raising=False)
        patch.setattr(expansion, "POINTS_PER_STEP", 1)
        yield


def prepared(case: Case, strategy: Strategy) -> tuple[PointCandidates, pa.Table] | None:
    """Return the candidates of a case; None if there can be no match of several events."""
    table = case.trace.table()
    plan = make_plan(uc.parse(text_of(case, strategy)), table.schema, evaluation="point")
    selection = candidates(plan, table)
    if selection.empty or len(plan.components) < 2 or plan.constant:
        return None
    ticks = [np.asarray(table.column(name).to_numpy()) for name in ("lower", "upper")]
    pmfs, *ticks = explicit_pmfs(table, "pmf", *ticks)
    return point_candidates(plan, table, selection, (ticks[0], ticks[1]), pmfs), table


def with_and_without_merging_and_nelt(fed: PointCandidates) -> Iterator[PointMatches]:
    """Yield the matches of candidates, at first with both."""
    for merging, nelt in product((True, False), repeat=2):
        evaluation = PointEvaluation(fed.automaton, merging=merging, nelt=nelt)
        fed.push(evaluation, slice(None))
        yield evaluation.close()


def as_rows(parts: list[PointMatches], case: Case, table: pa.Table) -> dict[Key, Row]:
    """Return matches as the engine's rows, each of them once."""
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    rows: dict[Key, Row] = {}
    for matches in parts:
        signatures = matches.event.reshape(-1, len(case.variables)).tolist()
        for events, low, high, confidence in zip(
            signatures, *(part.tolist() for part in matches[3:6]), strict=True
        ):
            partition = tuple(columns[name][events[0]] for name in case.query().partition)
            signature = tuple(
                (variable, columns["id"][row]) for variable, row in zip(case.variables, events, strict=True)
            )
            assert (partition, signature) not in rows
            rows[partition, signature] = Row(low, high, confidence)
    return rows


@STRATEGIES
@FEWER
@given(case=cases())
def test_batch_is_the_oracle(strategy: Strategy, case: Case) -> None:
    note(case.script())
    matches = uc.match(case.trace.table(), text_of(case, strategy), evaluation="point")
    assert_answer(rows_of(matches, case), answer_of(case, strategy))


@STRATEGIES
@FEWER
@given(case=cases())
def test_merging_and_nelt_change_nothing(strategy: Strategy, case: Case) -> None:
    note(case.script())
    given_ = prepared(case, strategy)
    if given_ is None:
        return
    fed, table = given_
    answers = [as_rows([part], case, table) for part in with_and_without_merging_and_nelt(fed)]
    for other in answers[1:]:
        assert_same(answers[0], other)
    assert_answer(answers[0], answer_of(case, strategy))


@pytest.mark.parametrize("space", [nullcontext, cramped])
@STRATEGIES
@FEWER
@given(case=cases(), data=st.data())
def test_stream_is_the_oracle(
    strategy: Strategy, space: Callable[[], AbstractContextManager[None]], case: Case, data: st.DataObject
) -> None:
    """Any arrival order, any batches, any times at which it is said what is safe; final means final."""
    note(case.script())
    with space():
        check_stream(strategy, case, data)


def check_stream(strategy: Strategy, case: Case, data: st.DataObject) -> None:
    given_ = prepared(case, strategy)
    if given_ is None:
        return
    fed, table = given_
    assert_answer(as_rows(in_any_order(fed, data), case, table), answer_of(case, strategy))


def in_any_order(fed: PointCandidates, data: st.DataObject) -> list[PointMatches]:
    """Feed candidates in batches, in an order that keeps the promise; return what comes out, once final."""
    rows, first = np.unique(fed.rows.row, return_index=True)
    lower = dict(zip(rows.tolist(), fed.rows.lower[first].tolist(), strict=True))
    upper = dict(zip(rows.tolist(), fed.rows.upper[first].tolist(), strict=True))
    rule = EmitRule(max(upper[row] - lower[row] for row in lower))
    evaluation = PointEvaluation(fed.automaton)
    parts = []
    waiting = list(lower)
    while waiting:
        batch = []
        for _ in range(data.draw(st.integers(1, 3))):
            # The promise: none of those to come ends before one that has come begins.
            legal = [row for row in waiting if all(lower[row] <= upper[other] for other in waiting)]
            if legal:
                batch.append(data.draw(st.sampled_from(legal)))
                waiting.remove(batch[-1])
        chosen = np.flatnonzero(np.isin(fed.rows.row, batch))
        rule.observe(fed.rows.lower[chosen])
        parts.append(fed.push(evaluation, chosen))
        if data.draw(st.booleans()):
            assert rule.safe is not None
            # What the arrival order says, or a heartbeat that knows more.
            earliest_waiting = min((lower[row] for row in waiting), default=rule.safe)
            safe = data.draw(st.sampled_from([rule.safe, earliest_waiting]))
            parts.append(evaluation.advance(safe))
            assert all(upper[row] < safe for row in parts[-1].event[parts[-1].start[1:] - 1].tolist())
    parts.append(evaluation.close())
    return parts


TRACE = pa.table(
    {
        "type": ["A", "B", "B", "C"],
        "id": [1, 2, 3, 4],
        "lower": [0, 1, 2, 3],
        "upper": [0, 1, 2, 3],
        "k": ["u", "v", "u", "u"],
    }
)
CHAINED = "PATTERN SEQ(A a, B b, C c) WHERE {} AND skip_till_next_match(a, b, c) WITHIN 10"


@pytest.mark.parametrize("evaluation", EVALUATIONS)
@pytest.mark.parametrize(
    ("chain", "found"), [("a.k = b.k AND b.k = c.k", 1), ("[k]", 1), ("a.k = c.k AND b.k = c.k", 0)]
)
def test_a_key_keeps_out_only_what_a_component_asks_for(chain: str, found: int, evaluation: str) -> None:
    """Where only c ties b to a, b could have been taken from another partition, and so forbids."""
    assert uc.match(TRACE, CHAINED.format(chain), evaluation=evaluation).num_rows == found
    any_match = CHAINED.format(chain).replace("next", "any")
    assert uc.match(TRACE, any_match, evaluation=evaluation).num_rows == 1


def test_intervals_too_long_for_points() -> None:
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 1], "upper": [10**7, 10**7]})
    with pytest.raises(uc.OptionError, match="give a longer tick"):
        uc.match(table, "PATTERN SEQ(A a, B b) WITHIN 10", evaluation="point")


COUPLED = "PATTERN SEQ(A a, A b, A c) WHERE skip_till_next_match(a, b, c) WITHIN 20"


def test_too_much_coupling_is_the_same_error_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "MOST_CONFIDENCE_STEPS", 100)
    for module in (next_match, costly_matches):
        monkeypatch.setattr(module, "MOST_CONFIDENCE_STEPS", 100)
    table = pa.table({"type": ["A"] * 4, "id": range(4), "lower": [0, 1, 2, 3], "upper": [9, 9, 9, 9]})
    said = []
    for evaluation in ("point", "query_order"):
        with pytest.raises(uc.ConfidenceCostError, match="which couples them") as caught:
            uc.match(table, COUPLED, evaluation=evaluation)
        assert caught.value.steps > caught.value.limit == 100
        said.append(str(caught.value))
    assert "under skip_till_next_match takes about" in said[0]
    assert all("allow an estimate, approximate=" in text.lower() for text in said)
