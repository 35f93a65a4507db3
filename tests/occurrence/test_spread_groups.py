"""Groups weighed from the matches of several tables, whichever table has which of them, in any parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.groups import bounding
from tests.cases.clocks import by_clocks
from tests.cases.existence import doubtful
from tests.cases.grouped import Grouping, assert_probabilities, groupings
from tests.cases.language import language_cases
from tests.cases.nested import nested_cases, reading_cases
from tests.cases.options import option_cases
from tests.cases.sampling import FEWER
from tests.cases.times import timed_cases
from tests.occurrence.test_dear_groups import EVENTS, EXACT, QUERY
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.executor import execute
from uncertain_cep.occurrence import answers
from uncertain_cep.occurrence.probability_rows import merged_rows
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.query import parse

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "language": language_cases(most=4),
    "skip till next": language_cases("skip_till_next_match", most=5),
    "contiguity": language_cases("strict_contiguity", most=4),
    "sets and branches": st.sampled_from(["SAO", "SA", "SO"]).flatmap(lambda kinds: nested_cases(kinds, 4)),
    "readings": reading_cases(4),
    "options": option_cases(most=4),
    "times": timed_cases(most=4),
    "doubtful": doubtful(language_cases(most=4)),
    "clocks": by_clocks(language_cases(most=4)),
    "clocks and times": by_clocks(timed_cases(most=4)),
    "doubtful clocks": doubtful(by_clocks(language_cases(most=4))),
}


def spread_rows(data: st.DataObject, table: pa.Table, text: str, parts: int, **options: Any) -> pa.Table:
    """Return the answer of tables that own some of the events each, and have those in reach of these."""
    plan = make_plan(parse(text), table.schema, MatchOptions(**options))
    plan = replace(plan, spread=parts)
    owner = np.array(data.draw(st.lists(st.integers(0, 2), min_size=table.num_rows, max_size=table.num_rows)))
    lower, upper = (np.asarray(table.column(name).to_numpy()) for name in ("lower", "upper"))
    blobs: dict[int, list[bytes]] = {}
    for number in range(3):
        is_owned = owner == number
        if not is_owned.any():
            continue
        begin = lower[is_owned].min() - plan.window + 1
        end = upper[is_owned].max() + plan.window - 1
        rows = np.flatnonzero((upper >= begin) & (lower <= end))
        rows = np.array(data.draw(st.permutations(rows.tolist())), dtype=np.int64)
        for batch in execute(plan, table.take(pa.array(rows)), owned=is_owned[rows]):
            for row in batch.to_pylist():
                blobs.setdefault(row["part"], []).append(row["matches"])
    assert all(0 <= part < parts for part in blobs)
    rows_of_parts = [
        merged_rows(plan, part, data.draw(st.permutations(sent))) for part, sent in blobs.items()
    ]
    return pa.Table.from_batches(rows_of_parts, plan.output_schema)


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data(), parts=st.integers(1, 4))
def test_the_answer_is_that_of_worlds(kind: str, data: st.DataObject, parts: int) -> None:
    case = data.draw(KINDS[kind])
    grouping: Grouping = data.draw(groupings(case.query()))
    text = case.text(grouping.clause)
    note(f"{text}\n{case.trace.events}")
    rows = spread_rows(data, case.trace.table(), text, parts)
    assert_probabilities(rows, grouping.answer(case), grouping)


@FEWER
@given(data=st.data(), parts=st.integers(1, 3))
def test_dear_groups_have_bounds_or_an_error_that_names_them(data: st.DataObject, parts: int) -> None:
    text = f"{QUERY} RETURN PROBABILITY BY host"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "MOST_GROUP_STEPS", 3)
        patch.setattr(bounding, "_FEWEST_STEPS", 40)
        with pytest.raises(ConfidenceCostError, match=r"host = 'x' .*undecided=\"bounds\""):
            spread_rows(data, EVENTS, text, parts)
        rows = {
            row["host"]: row for row in spread_rows(data, EVENTS, text, parts, undecided="bounds").to_pylist()
        }
    assert rows["y"]["exact"]
    assert rows["y"]["probability"] == pytest.approx(EXACT["y"])
    assert rows["x"]["probability"] is None
    assert rows["x"]["probability_lower"] < EXACT["x"] < rows["x"]["probability_upper"]


@FEWER
@given(data=st.data(), parts=st.integers(1, 3))
def test_events_that_are_counted(data: st.DataObject, parts: int) -> None:
    """Anchors of all tables, alone and with shared events."""
    text = "PATTERN SEQ(AND(A{2,} a[]), B b) WITHIN 9 RETURN PROBABILITY"
    for clause in ("", " BY b"):
        rows = spread_rows(data, EVENTS, text + clause, parts)
        expected = uc.match(EVENTS, text + clause).to_pylist()
        order = (lambda row: row["b"]) if clause else (lambda _: 0)
        assert sorted(rows.to_pylist(), key=order) == [pytest.approx(row) for row in expected]


def test_rows_that_agree_are_several_events() -> None:
    """Two samples of one id, type and time: each spoils the match for itself, in both tables."""
    table = pa.table(
        {
            "type": ["A", "N", "N", "B", "B"],
            "id": [1, 7, 7, 2, 3],
            "lower": [0, 1, 1, 8, 8],
            "upper": [0, 10, 10, 8, 8],
        }
    )
    text = "PATTERN SEQ(A a, !N n, B b) WITHIN 20 RETURN PROBABILITY"
    plan = replace(make_plan(parse(text), table.schema, MatchOptions()), spread=1)
    blobs = []
    for places in ([0, 1, 2, 3], [0, 2, 1, 4]):
        for batch in execute(plan, table.take(pa.array(places))):
            blobs += [row["matches"] for row in batch.to_pylist()]
    assert len(blobs) == 2
    assert merged_rows(plan, 0, blobs).to_pylist() == uc.match(table, text).to_pylist()
    # Each N is in the gap with probability 7/10.
    assert uc.match(table, text).to_pylist() == [{"probability": pytest.approx(0.09)}]
