"""Strategies of single gaps: what each forbids in its gap, and nothing elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests import oracle
from tests.cases.comparison import assert_answer, assert_same
from tests.cases.language import STRATEGIES, conditions, traces, untied
from tests.cases.nested import NestedCase
from tests.cases.sampling import FEWER, sampled_from
from tests.cases.times import time_conditions
from uncertain_cep.testing.model import Component, Match, Seq, Strategy

_TYPES = [("A",), ("A",), ("B",), ("B",), ("A", "B"), ()]


@dataclass(frozen=True, slots=True)
class GapCase:
    """A case whose strategy is that of some gaps."""

    case: NestedCase
    gaps: tuple[tuple[str, str, Strategy], ...]

    def text(self) -> str:
        asked = [f"{strategy}({one}, {other})" for one, other, strategy in self.gaps]
        asked += [f"[{name}]" for name in self.case.agree] + [f"({found.text})" for found in self.case.asked]
        asked += [found.text for found in self.case.times]
        text = self.case.text()
        return f"{text[: text.index(' WHERE ')]} WHERE {' AND '.join(asked)} WITHIN {self.case.window}"

    def answer(self) -> list[Match]:
        return oracle.answer(replace(self.case.query(), gaps=self.gaps), self.case.trace.events)


@st.composite
def gap_cases(draw: st.DrawFn, timed: bool = False) -> GapCase:
    """Draw a sequence of single events, with a negation now and then, some gaps of which have a strategy.

    If it is ``timed``, conditions on times are asked.
    """
    names = iter("abcdefgh")
    items: list[Component] = []
    for place in range(draw(sampled_from([3, 3, 4]))):
        if place and draw(st.integers(0, 4)) == 0:
            items.append(Component(next(names), draw(sampled_from(_TYPES)), negated=True))
        items.append(Component(next(names), draw(sampled_from(_TYPES))))
    taken = [item.variable for item in items if not item.negated]
    chosen = [pair for pair in pairwise(taken) if draw(st.booleans())] or [(taken[0], taken[1])]
    gaps = tuple((*pair, draw(sampled_from(STRATEGIES))) for pair in chosen)
    agree = ("k",) if draw(st.integers(0, 2)) == 0 else ()
    asked = draw(st.lists(conditions(tuple(items)), max_size=draw(sampled_from([0, 1, 2]))))
    if any(strategy == "partition_contiguity" for *_, strategy in gaps):
        asked = list(untied(asked))
    case = NestedCase(
        draw(traces(agree, 5)), Seq(tuple(items)), tuple(asked), "skip_till_any_match",
        draw(sampled_from([4, 6, 20])), agree, (),
    )  # fmt: skip
    if timed:
        times = draw(st.lists(time_conditions(tuple(items)), min_size=1, max_size=2))
        case = replace(case, times=tuple(times))
    return GapCase(case, gaps)


@given(gap_cases(timed=True), st.sampled_from(["auto", "point"]))
def test_conditions_on_times_in_gaps_are_the_oracles(drawn: GapCase, way: str) -> None:
    note(drawn.text())
    found = uc.match(drawn.case.trace.table(), drawn.text(), evaluation=way)
    assert_answer(drawn.case.rows(found), drawn.answer())


@given(gap_cases(), st.sampled_from(["auto", "auto", "point", "stream"]))
def test_engine_is_the_oracle(drawn: GapCase, way: str) -> None:
    text, table = drawn.text(), drawn.case.trace.table()
    note(text)
    if way == "stream":
        matcher = uc.IncrementalMatcher(text, table.schema)
        parts = [matcher.push(table.slice(row, 1)) for row in range(table.num_rows)] + [matcher.close()]
        found = pa.Table.from_batches(parts)
    else:
        found = uc.match(table, text, evaluation=way)
    assert_answer(drawn.case.rows(found), drawn.answer())


@pytest.mark.parametrize("strategy", STRATEGIES)
@FEWER
@given(data=st.data())
def test_the_same_strategy_in_all_gaps_is_that_of_the_pattern(
    strategy: Strategy, data: st.DataObject
) -> None:
    case = data.draw(gap_cases()).case
    whole = replace(case, strategy=strategy)
    taken = [item.variable for item in case.positives]
    gaps = GapCase(case, tuple((one, other, strategy) for one, other in pairwise(taken)))
    note(gaps.text())
    table = case.trace.table()
    assert_same(case.rows(uc.match(table, gaps.text())), case.rows(uc.match(table, whole.text())))


EVENTS = pa.table(
    {
        "type": ["A", "X", "B", "B", "X", "C", "C"], "id": [1, 2, 3, 4, 5, 6, 7],
        "lower": [0, 1, 2, 3, 4, 5, 6], "upper": [0, 1, 2, 3, 4, 5, 6], "k": [0, 0, 0, 0, 1, 0, 0],
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("skip_till_next_match(a, b)", [(1, 3, 6), (1, 3, 7)]),
        ("skip_till_next_match(b, c)", [(1, 3, 6), (1, 4, 6)]),
        ("skip_till_next_match(a, b) AND strict_contiguity(b, c)", []),
        ("skip_till_next_match(a, b) AND skip_till_next_match(b, c)", [(1, 3, 6)]),
        ("partition_contiguity(b, c) AND [k]", [(1, 4, 6)]),
        ("strict_contiguity(b, c) AND [k]", []),
        ("skip_till_any_match(a, b) AND skip_till_next_match(b, c)", [(1, 3, 6), (1, 4, 6)]),
    ],
)
def test_certain_times(where: str, found: list[tuple[int, ...]]) -> None:
    rows = uc.match(EVENTS, f"PATTERN SEQ(A a, B b, C c) WHERE {where} WITHIN 20").to_pylist()
    assert sorted((row["a"], row["b"], row["c"]) for row in rows) == found


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SEQ(A a, B b, C c) WHERE strict_contiguity(a, c)", "must list|no neighbours"),
        ("SEQ(A a, B b, C c) WHERE strict_contiguity(a, b) AND strict_contiguity(a, c)", "no neighbours"),
        ("SEQ(A a, B b, C c) WHERE strict_contiguity(a, b) AND skip_till_next_match(a, b)", "two strategies"),
        (
            "SEQ(A a, B b, C c) WHERE strict_contiguity(a, b) AND skip_till_next_match(a, b, c)",
            "two strategies",
        ),
        ("SEQ(A a, B b, C c) WHERE strict_contiguity(a, b) AND skip_till_next_match(c)", "names no gap"),
        ("SEQ(A a, B+ b[], C c) WHERE strict_contiguity(a, b[])", "another number of events than one"),
        ("SEQ(A a, B? b, C c) WHERE strict_contiguity(a, b)", "another number of events than one"),
        ("SEQ(A a, AND(B b, C c)) WHERE strict_contiguity(a, b)", "only a SEQ"),
        ("SEQ(A a, B b, C c) WHERE strict_contiguity(a[], b)", "a is a single event"),
    ],
)
def test_what_is_refused(query: str, said: str) -> None:
    with pytest.raises(uc.QueryError, match=said):
        uc.parse(f"PATTERN {query} WITHIN 9")
    with pytest.raises(uc.OptionError, match="strategies of single gaps over a stream"):
        uc.IncrementalMatcher(
            "PATTERN SEQ(A a, B b, C c) WHERE strict_contiguity(a, b) WITHIN 9", EVENTS.schema,
            evaluation="selectivity",
        )  # fmt: skip


def test_explanations_and_reports_name_the_gaps() -> None:
    query = (
        "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b) AND strict_contiguity(b, c) WITHIN 20"
    )
    assert "strict_contiguity(b, c)" in uc.explain(query)
    assert "skip_till_next_match(a, b)" in uc.explain(query, EVENTS)
    assert "Between b, c" in str(uc.report(EVENTS, query))
