"""RETURN PROBABILITY of events that last, against the worlds in which there is a match."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cases.spans import Lasting, SpanCase, span_cases
from tests.occurrence.test_spread_groups import spread_rows

pytestmark = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")


KINDS: dict[str, st.SearchStrategy[SpanCase]] = {
    "spans": span_cases(spare=2),
    "clocks": span_cases(with_clocks=True),
    "negations": span_cases(negating=True, spare=2),
    "negated spans": span_cases(negating=True, negated_lasts=True, spare=2),
    "negations by clocks": span_cases(with_clocks=True, negating=True, negated_lasts=True),
    "laws": span_cases(with_laws=True, spare=2),
    "laws by clocks": span_cases(with_clocks=True, with_laws=True),
    "laws and negations": span_cases(negating=True, with_laws=True),
    "laws of negated spans": span_cases(negating=True, negated_lasts=True, with_laws=True),
}


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_probabilities_are_those_of_the_worlds(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    note(f"{case.text()}\n{case.events}\n{case.clocks}")
    at_least = data.draw(st.integers(1, 2), label="at least")
    by = data.draw(st.sampled_from([None, *range(len(case.variables))]), label="by")
    named = "" if by is None else f" BY {case.variables[by][0]}"
    expected = case.probability(at_least, by)
    tail = f"RETURN PROBABILITY OF AT LEAST {at_least} MATCHES{named}"
    rows = uc.match(case.table(), case.text(tail)).to_pylist()
    answers = {None if by is None else row[case.variables[by][0]]: row["probability"] for row in rows}
    assert answers.keys() == expected.keys()
    for group, probability in expected.items():
        assert answers[group] == pytest.approx(float(probability), rel=1e-9)


SPREAD: dict[str, st.SearchStrategy[SpanCase]] = {
    "spans": span_cases(spare=2),
    "clocks": span_cases(with_clocks=True),
    "negations by clocks": span_cases(with_clocks=True, negating=True, kinds=("SEQ",)),
    "negated spans": span_cases(negating=True, negated_lasts=True, kinds=("SEQ",)),
    "laws": span_cases(with_laws=True),
}


@pytest.mark.parametrize("kind", SPREAD)
@FEWER
@given(data=st.data(), parts=st.integers(1, 3))
def test_groups_of_several_tables_are_those_of_the_worlds(kind: str, data: st.DataObject, parts: int) -> None:
    """As on Spark: what a span must meet travels with the matches that depend on it."""
    case = data.draw(SPREAD[kind])
    note(f"{case.text()}\n{case.events}\n{case.clocks}")
    expected = case.probability(1)
    rows = spread_rows(data, case.table(), case.text("RETURN PROBABILITY"), parts, takes_spans=True)
    assert rows.num_rows == len(expected)
    for row in rows.to_pylist():
        assert row["probability"] == pytest.approx(float(expected[None]), rel=1e-9)


@FEWER
@given(case=span_cases(spare=2, with_laws=True), every=st.integers(1, 4))
def test_probabilities_by_bucket_are_those_of_the_worlds(case: SpanCase, every: int) -> None:
    note(f"{case.text()}\n{case.events}")
    expected = case.bucketed_probability(every)
    rows = uc.match(case.table(), case.text(f"RETURN PROBABILITY EVERY {every} ticks")).to_pylist()
    assert {row["bucket"] for row in rows} == expected.keys()
    for row in rows:
        assert row["probability"] == pytest.approx(float(expected[row["bucket"]]), rel=1e-9)


def _loose(count: int) -> pa.Table:
    """Return tasks of 0 to 6 ticks, none of a certain length, and each with a peak inside or behind."""
    begins = [20 * number for number in range(count)]
    tasks = {
        "type": ["T"] * count, "id": list(range(count)), "lower": begins, "upper": [b + 6 for b in begins],
        "begin_lower": begins, "begin_upper": [b + 3 for b in begins],
        "end_lower": [b + 2 for b in begins], "end_upper": [b + 6 for b in begins],
    }  # fmt: skip
    points = {
        "type": ["P"] * count, "id": [count + number for number in range(count)],
        "lower": [b + 5 for b in begins], "upper": [b + 5 for b in begins],
    }  # fmt: skip
    return pa.concat_tables([pa.table(tasks), pa.table(points)], promote_options="default")


def test_many_spans_that_share_nothing_are_weighed_one_by_one() -> None:
    """Of begins 0..3 and ends 2..6 with b <= e 19 pairs are possible, and in 8 of them 5 is inside."""
    count = 300
    query = "PATTERN AND(T t, P p) WHERE t CONTAINS p WITHIN 10"
    (row,) = uc.match(_loose(count), f"{query} RETURN PROBABILITY").to_pylist()
    assert row["probability"] == pytest.approx(1.0 - (11 / 19) ** count, rel=1e-9)
    (row,) = uc.match(_loose(4), f"{query} RETURN PROBABILITY OF AT LEAST 3 MATCHES").to_pylist()
    p = 8 / 19
    assert row["probability"] == pytest.approx(p**4 + 4 * p**3 * (1 - p), rel=1e-9)


def test_dear_groups_of_spans_have_bounds_and_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncertain_cep.occurrence.answers.MOST_GROUP_STEPS", 40)
    events = _loose(6)
    query = "PATTERN AND(T t, P p) WHERE TIME(p) < TIME(t.end) + 20 WITHIN 60 RETURN PROBABILITY"
    with pytest.raises(uc.ConfidenceCostError):
        uc.match(events, query)
    monkeypatch.undo()
    exact = uc.match(events, query)["probability"][0].as_py()
    monkeypatch.setattr("uncertain_cep.occurrence.answers.MOST_GROUP_STEPS", 40)
    (row,) = uc.match(events, query, undecided="bounds", approximate=0.01).to_pylist()
    assert row["probability_lower"] <= exact <= row["probability_upper"]
    assert abs(row["probability"] - exact) <= 5 * max(row["std_error"], 0.001)


def test_lengths_are_weighed_one_by_one() -> None:
    """Begins 0..3, and lengths of 2 or 6 at 1 and 3 of 4: 5 is inside for one begin, or for all of them."""
    events = _loose(3)
    lengths = {"length_lower": [2] * 3 + [None] * 3, "length_upper": [6] * 3 + [None] * 3}
    laws = [[0.25, 0.0, 0.0, 0.0, 0.75]] * 3 + [None] * 3
    for name, values in lengths.items():
        events = events.append_column(name, pa.array(values, pa.int64()))
    events = events.drop_columns(["end_lower", "end_upper"]).append_column("length_pmf", pa.array(laws))
    upper = [value + 3 if value is not None else point for value, point in zip(
        [b + 6 for b in (0, 20, 40)] + [None] * 3, events["upper"].to_pylist(), strict=True
    )]  # fmt: skip
    events = events.set_column(events.schema.get_field_index("upper"), "upper", pa.array(upper))
    query = "PATTERN AND(T t, P p) WHERE t CONTAINS p WITHIN 30 RETURN PROBABILITY"
    inside = 0.25 * 1 / 4 + 0.75
    (row,) = uc.match(events, query).to_pylist()
    assert row["probability"] == pytest.approx(1.0 - (1.0 - inside) ** 3, rel=1e-9)
    (row,) = uc.match(events, f"{query} OF AT LEAST 2 MATCHES").to_pylist()
    assert row["probability"] == pytest.approx(inside**2 * (3 - 2 * inside), rel=1e-9)


def test_too_many_choices_of_lengths_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncertain_cep.occurrence.conditioned_spans.MOST_LENGTHS_OF_GROUP", 3)
    size = 4
    events = pa.table(
        {
            "type": ["T", "P", "P"], "id": [1, 2, 3], "lower": [0, 2, 3], "upper": [5, 2, 3],
            "begin_lower": [0, None, None], "begin_upper": [1, None, None],
            "length_lower": [1, None, None], "length_upper": [size, None, None],
            "length_pmf": [[1 / size] * size, None, None],
        }
    )  # fmt: skip
    with pytest.raises(uc.ConfidenceCostError):
        uc.match(events, "PATTERN AND(T t, P p) WHERE t CONTAINS p WITHIN 30 RETURN PROBABILITY")


@pytest.mark.parametrize("begin", [None, (Fraction(0), Fraction(1))])
def test_lengths_beside_a_certain_begin_have_their_probabilities(begin: tuple[Fraction, ...] | None) -> None:
    """A begin at 0 for certain, by its bounds or its law: an end at 0 or 1 is as likely as its length."""
    laws = [("length", (Fraction(2, 5), Fraction(3, 5)))] + ([("begin", begin)] if begin else [])
    task = Lasting("N", 2, begin=(-1, 0) if begin else (0, 0), length=(0, 1), laws=tuple(laws))
    looks = Lasting("A", 1, point=(1, 1)), Lasting("A", 3, point=(1, 2))
    case = SpanCase((task, *looks), {}, "SEQ", (("n", "N"), ("a", "A")))
    assert case.probability(1) == {None: Fraction(7, 10)}
    (row,) = uc.match(case.table(), case.text("RETURN PROBABILITY")).to_pylist()
    assert row["probability"] == pytest.approx(0.7)
