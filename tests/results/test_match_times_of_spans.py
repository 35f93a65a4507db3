"""Matches of events that last as events, at one of their ends: the law that enumerated worlds give."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cases.spans import SpanCase, span_cases
from tests.operators.test_span_facts import spans
from tests.results.test_posteriors_of_spans import laws_given, of_end
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.query import parse
from uncertain_cep.results.match_times import first_times_by_bucket

pytestmark = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")


ENDS = ("begin", "end")
CASES = st.one_of(span_cases(kinds=("SEQ",)), span_cases(kinds=("SEQ",), with_clocks=True))


@FEWER
@given(case=CASES, data=st.data())
def test_matches_happen_at_the_times_of_the_worlds(case: SpanCase, data: st.DataObject) -> None:
    names = [name for name, _ in case.variables]
    ends = [(f"{name}.{end}", place, int(end == "end")) for place, name in enumerate(names) for end in ENDS]
    at, place, end = data.draw(st.sampled_from([("first", 0, 0), ("last", len(names) - 1, 1), *ends]))
    note(f"{case.text()} at {at}\n{case.events}\n{case.clocks}")
    table, laws = case.table(), laws_given(case)
    joined = uc.with_matches(table, uc.match(table, case.text()), "Found", at=at, query=case.text())
    rows = joined.slice(table.num_rows).to_pylist()
    assert len(rows) == len(laws)
    for row in rows:
        exact = of_end(laws[tuple(row[name] for name in names)][place], end)
        law = dict(enumerate(row["pmf"], row["lower"]))
        assert {tick: weight for tick, weight in law.items() if weight} == pytest.approx(
            {tick: float(weight) for tick, weight in exact.items()}, rel=1e-9
        )
        # It is a moment.
        assert row["begin_lower"] is None


def test_an_end_is_named() -> None:
    events = spans(("A", 1, (0, 3), (4, 6), None), ("B", 2, (7, 8), None, None))
    query = "PATTERN SEQ(A a, B b) WITHIN 100"
    matches = uc.match(events, query)
    with pytest.raises(uc.OptionError, match=r"which end\? Name a.begin or a.end"):
        uc.with_matches(events, matches, "Found", at="a", query=query)
    joined = uc.with_matches(events, matches, "Found", at="b", query=query)
    assert joined["lower"].to_pylist()[-1] == 7


@FEWER
@given(case=CASES, every=st.integers(1, 4))
def test_matches_are_in_the_buckets_of_their_first_begins(case: SpanCase, every: int) -> None:
    # Shares are those of events that happened.
    case = replace(case, events=tuple(replace(one, probability=Fraction(1)) for one in case.events))
    table = with_all_bounds(case.table(), "lower")
    plan = make_plan(parse(case.text()), table.schema, MatchOptions(takes_spans=True))
    shares = first_times_by_bucket(plan, table, uc.match(table, case.text()), every)
    counts: dict[int, float] = defaultdict(float)
    for bucket, expected in zip(shares.bucket.tolist(), shares.expected.tolist(), strict=True):
        counts[bucket] += expected
    assert counts == pytest.approx({bucket: float(p) for bucket, p in case.bucketed(every).items()}, rel=1e-9)
