"""Statistics: right where everything is counted, close where a sample is, and never in the way."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, cases
from tests.optimizer.literal import Partial
from tests.optimizer.traces import Selected, selected, skewed
from uncertain_cep.config.tuning import FINE_SAMPLE
from uncertain_cep.executor import candidates
from uncertain_cep.optimizer.choice import CHOICES, choose, estimated
from uncertain_cep.optimizer.cost_model import CostModel
from uncertain_cep.optimizer.measuring import measure
from uncertain_cep.optimizer.memory import MEMORY
from uncertain_cep.optimizer.pivot_cost import pivot_cost
from uncertain_cep.optimizer.statistics import Statistics
from uncertain_cep.plan import EvaluationPlan, make_plan
from uncertain_cep.plan.trees import left_deep


def measured(case: Selected, sampled: int = FINE_SAMPLE, seed: int = 0) -> Statistics:
    return measure(case.plan, case.table, case.selection, sampled=sampled, seed=seed)


def numbers_in(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from numbers_in(part)
    elif not isinstance(value, (str, bool)):
        yield value


def test_what_is_counted_is_counted_right() -> None:
    case = selected(
        "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.y > 0.5 AND a.x = b.x AND a.y < b.y WITHIN 30",
        skewed(400, (1, 2, 1), seed=3),
    )
    statistics, actual = measured(case), Partial(case.plan, case.table, case.selection)
    events = case.table.to_pylist()
    a, b, _ = statistics.components
    of_a = [event for event in events if event["type"] == "A"]
    of_b = [event for event in events if event["type"] == "B"]
    assert a.candidates == sum(event["y"] > 0.5 for event in of_a)
    assert b.candidates == len(of_b)
    assert a.type_share == pytest.approx(len(of_a) / len(events))
    assert a.local[0] == pytest.approx(a.candidates / len(of_a))
    lengths = [event["upper"] - event["lower"] for event in of_b]
    assert b.lengths.mean == pytest.approx(np.mean(lengths))
    assert b.lengths.longest == max(lengths)
    pair, equal = statistics.pairs[0], statistics.equalities[0]
    without = selected("PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.y > 0.5 WITHIN 30", case.table)
    near = Partial(without.plan, without.table, without.selection).count((0, 1))
    assert pair.in_time == pytest.approx(near / a.candidates / b.candidates)
    assert 0 < actual.near((1,), 0, each=True) < b.candidates
    assert pair.first_met == pytest.approx(actual.near((0,), 1, each=True) / a.candidates)
    assert pair.second_met == pytest.approx(actual.near((1,), 0, each=True) / b.candidates)
    assert equal.stated
    assert equal.share * pair.joined == pytest.approx(actual.count((0, 1)) / near)
    assert statistics.predicates[0].selectivity == equal.share
    sizes = np.bincount([event["k"] for event in events if event["type"] != "A" or event["y"] > 0.5])
    assert statistics.keys.partitions == len(sizes)
    assert statistics.keys.largest == pytest.approx(sizes.max() / sizes.sum())
    assert statistics.keys.effective == pytest.approx(sizes.sum() ** 2 / (sizes**2).sum())


def test_a_sample_of_a_large_trace_says_about_the_same() -> None:
    case = selected(
        "PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x AND a.y < b.y AND a.y + b.y < c.y WITHIN 40",
        skewed(6000, (1, 10, 10), seed=4),
    )
    whole = measured(case)
    sample = measured(case, sampled=3 * 800)
    assert sample == measured(case, sampled=3 * 800)
    assert sample != measured(case, sampled=3 * 800, seed=1)
    assert [part.candidates for part in sample.components] == [part.candidates for part in whole.components]
    for one, other in zip(sample.pairs, whole.pairs, strict=True):
        assert one.in_time == pytest.approx(other.in_time, rel=0.3)
        assert one.joined == pytest.approx(other.joined, rel=0.3)
    for sampled_part, all_of in zip(sample.predicates, whole.predicates, strict=True):
        assert sampled_part.selectivity == pytest.approx(all_of.selectivity, rel=0.4)


def test_an_event_makes_no_pair_with_itself() -> None:
    table = pa.table({"type": ["A"] * 9, "id": range(9), "lower": [0] * 9, "upper": [5] * 9, "k": range(9)})
    case = selected("PATTERN SEQ(A a, A b) WITHIN 6", table)
    assert measured(case).pairs[0].in_time == pytest.approx(8 / 9)
    alone = selected("PATTERN SEQ(A a, A b) WHERE [k] WITHIN 6", table)
    assert measured(alone).pairs[0].in_time < 1 / 81


def test_chains_of_equalities_are_followed() -> None:
    case = selected(
        "PATTERN SEQ(A a, B b, C c, D d) WHERE b.x = a.x AND c.x = b.x WITHIN 40",
        skewed(400, (1,) * 4, seed=5),
    )
    equalities = measured(case).equalities
    assert [(part.first, part.second, part.value, part.stated) for part in equalities] == [
        (0, 1, 0, True), (0, 2, 0, False), (1, 2, 0, True),
    ]  # fmt: skip


def test_statistics_survive_json() -> None:
    case = selected(
        "PATTERN SEQ(A a, !B n, C+ c[], D d) WHERE [k] AND n.y < a.y AND a.x = d.x AND c[i].y > c[i-1].y "
        "AND a.y > 0.2 WITHIN 30",
        skewed(300, (1, 2, 3, 2), seed=6),
    )
    statistics = measured(case)
    assert Statistics.from_json(statistics.to_json()) == statistics
    assert [part.variable for part in statistics.negated] == ["n"]
    # What speaks of a negated component takes no partial match away.
    assert statistics.predicates[0].selectivity == 1.0


@pytest.mark.parametrize("text", ["{}", "[]", "3", '{"events": 1, "ticks": 1, "components": [1]}'])
def test_what_is_no_statistics_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no statistics"):
        Statistics.from_json(text)


DEGENERATE: dict[str, list[tuple[str, int, int, int | None]]] = {
    "nothing": [],
    "one event": [("A", 0, 0, 1)],
    "one of each": [("A", 0, 0, 1), ("B", 5, 5, 1), ("C", 6, 9, 1)],
    "one tick": [(kind, 7, 7, key) for kind in "ABC" for key in range(9)],
    "no partition in common": [(kind, 7, 9, key) for key, kind in enumerate("ABC")],
    "no key": [(kind, time, time, None) for time, kind in enumerate("ABC")],
    "the ends of time": [("A", -(2**61), -(2**61), 1), ("B", -(2**61), 2**61, 2), ("C", 2**61, 2**61, 2)],
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize(
    "where", ["", "WHERE [k] ", "WHERE a.k = c.k AND a.lower < c.k AND a.k + b.k < c.k "]
)
@pytest.mark.parametrize("window", [3, 10, 2**61])
def test_whatever_the_events_statistics_are_finite_and_something_is_chosen(
    name: str, where: str, window: int
) -> None:
    events = DEGENERATE[name]
    table = pa.table({
        "type": pa.array([event[0] for event in events], pa.string()),
        "id": pa.array(range(len(events)), pa.int64()),
        "lower": pa.array([event[1] for event in events], pa.int64()),
        "upper": pa.array([event[2] for event in events], pa.int64()),
        "k": pa.array([event[3] for event in events], pa.int64()),
    })  # fmt: skip
    case = selected(f"PATTERN SEQ(A a, B b, C c) {where}WITHIN {window}", table)
    check(case.plan, case.table)


@given(cases(), st.sampled_from(["skip_till_any_match", "skip_till_next_match"]))
def test_whatever_the_query_statistics_are_finite_and_something_is_chosen_for_it(
    case: Case, strategy: str
) -> None:
    note(case.script())
    table = case.trace.table()
    text = replace(case, block=True).text().replace("skip_till_any_match", strategy)
    check(make_plan(uc.parse(text), table.schema), table)


def check(plan: EvaluationPlan, table: pa.Table) -> None:
    # Small tables agree in their candidates and differ in other events: what is remembered is of one of them.
    MEMORY.clear()
    CHOICES.clear()
    selection = candidates(plan, table)
    statistics = measure(plan, table, selection)
    assert all(
        math.isfinite(number) and number >= 0 for number in numbers_in(json.loads(statistics.to_json()))
    )
    for pair in statistics.pairs:
        assert pair.in_time <= 1.0
        assert pair.joined <= 1.0
    model = CostModel.of(plan, statistics)
    for cost in (pivot_cost(model), model.cost(left_deep(range(model.length)))):
        assert 0.0 <= cost < math.inf
    choice = choose(plan, table, selection)
    assert choice.why
    assert estimated(plan, table, selection, choice).statistics == statistics
