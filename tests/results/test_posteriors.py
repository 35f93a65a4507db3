"""When the events of matches happened, given the matches: the law that enumerated worlds give."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise, product
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.beside import beside_cases
from tests.cases.cases import Case, cases
from tests.cases.language import LanguageCase
from tests.cases.negated_groups import group_cases
from tests.cases.nested import NestedCase, nested_cases, reading_cases
from tests.cases.sampling import FEWER
from uncertain_cep.errors import OptionError, TimeLimitError
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results import box_parts, boxes
from uncertain_cep.results.piecewise import chebyshev_sums
from uncertain_cep.results.posteriors import QUANTILES
from uncertain_cep.testing.worlds import times_given

Law = dict[int, Fraction]
LINE = "PATTERN SEQ(A a, B b, C c) WITHIN {}"


def check_law(row: dict[str, Any], law: Law, listed: bool) -> None:
    """Assert that a row says what a law is."""
    mean = float(sum(tick * share for tick, share in law.items()))
    assert row["mean"] == pytest.approx(mean, rel=1e-9, abs=1e-9)
    below = {tick: sum(share for other, share in law.items() if other <= tick) for tick in law}
    for name, share in QUANTILES.items():
        tick = row[name]
        assert float(below.get(tick, 0)) >= share * (1 - 1e-8), name
        before = max((value for other, value in below.items() if other < tick), default=Fraction(0))
        assert float(before) < share * (1 + 1e-8), name
    assert (row["pmf"] is not None) == listed
    if listed:
        lower = min(law) if len(row["pmf"]) == 1 else row["lower"]
        given = {lower + place: share for place, share in enumerate(row["pmf"])}
        assert set(law) <= set(given)
        for tick, share in given.items():
            assert share == pytest.approx(float(law.get(tick, 0)), rel=1e-9, abs=0)


def rows_with_intervals(
    case: NestedCase | LanguageCase | Case, matches: pa.Table, **options: Any
) -> list[dict[str, Any]]:
    """Return the rows of posteriors, each with the bounds of its event."""
    table = case.trace.table()
    rows = uc.posteriors(matches, table, case.text(), **options).to_pylist()
    events = uc.events_of(matches, table, case.text()).to_pylist()
    assert [[row[name] for name in ("match", "variable", "position", "id")] for row in rows] == [
        [row[name] for name in ("match", "variable", "position", "id")] for row in events
    ]
    return [{**row, "lower": event["lower"]} for row, event in zip(rows, events, strict=True)]


def check(case: NestedCase | LanguageCase | Case, listed: bool) -> None:
    """Assert that the posteriors of all matches are those of the oracle."""
    query = case.query()
    laws = times_given(query, case.trace.events)
    matches = uc.match(case.trace.table(), case.text())
    rows = iter(rows_with_intervals(case, matches, **({} if listed else {"pmf_ticks": 0})))
    names = [name for name, _ in next(iter(laws))[1]] if laws else []
    for record in matches.to_pylist():
        entries = [record[name] for name in names]
        signature = tuple(
            (name, tuple(held) if isinstance(held, list) else held)
            for name, held in zip(names, entries, strict=True)
        )
        expected = laws[tuple(record[name] for name in query.partition), signature]
        for law in expected:
            check_law(next(rows), law, listed)
    assert next(rows, None) is None


@given(nested_cases("SAO"), st.booleans())
def test_posteriors_are_those_of_the_worlds(case: NestedCase, listed: bool) -> None:
    note(case.text())
    check(case, listed)


@given(beside_cases(), st.booleans())
def test_posteriors_of_negations_beside_sets(case: NestedCase, listed: bool) -> None:
    note(case.text())
    check(case, listed)


@FEWER
@given(group_cases(), st.booleans())
def test_posteriors_of_negated_groups(case: NestedCase, listed: bool) -> None:
    note(case.text())
    check(case, listed)


@given(reading_cases(), st.booleans())
def test_posteriors_of_unions_of_readings(case: NestedCase, listed: bool) -> None:
    note(case.text())
    check(case, listed)


@given(cases(), st.booleans())
def test_posteriors_of_plain_sequences(case: Case, listed: bool) -> None:
    note(case.script())
    check(case, listed)


@contextmanager
def weighed_by_boxes() -> Iterator[None]:
    """Let weighers answer for all boxes, whatever closed forms there are."""
    with patch.object(EvaluationPlan, "asks_order_alone", False):
        yield


@given(cases(), st.booleans())
def test_weighers_with_a_box_more_know_plain_sequences(case: Case, listed: bool) -> None:
    note(case.script())
    with weighed_by_boxes():
        check(case, listed)


def brute(bounds: list[tuple[int, int]], window: int) -> list[Law]:
    """Return the laws of the times of a chain of uniform intervals by enumeration with numbers alone."""
    laws: list[dict[int, int]] = [{} for _ in bounds]
    for times in product(*(range(low, high + 1) for low, high in bounds)):
        if all(one < other for one, other in pairwise(times)) and times[-1] - times[0] < window:
            for law, tick in zip(laws, times, strict=True):
                law[tick] = law.get(tick, 0) + 1
    total = sum(laws[0].values())
    return [{tick: Fraction(count, total) for tick, count in law.items()} for law in laws]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=3, max_size=3), st.integers(3, 90)
)
def test_means_of_long_pieces(drawn: list[tuple[int, int]], window: int) -> None:
    bounds = [(low, low + length) for low, length in drawn]
    table = pa.table(
        {
            "type": list("ABC"),
            "id": [1, 2, 3],
            "lower": [low for low, _ in bounds],
            "upper": [high for _, high in bounds],
        }
    )
    matches = uc.match(table, LINE.format(window))
    if matches.num_rows:
        rows = uc.posteriors(matches, table, LINE.format(window), pmf_ticks=0).to_pylist()
        for row, law in zip(rows, brute(bounds, window), strict=True):
            check_law({**row, "lower": 0}, law, False)


@given(st.integers(2, 400), st.integers(1, 12))
def test_sums_of_chebyshev_polynomials(size: int, count: int) -> None:
    points = np.linspace(-1.0, 1.0, size)
    expected = np.polynomial.chebyshev.chebvander(points, count - 1).sum(axis=0)
    if size > 2 * count * count:
        found = chebyshev_sums(np.array([size]), count)[:, 0]
        assert found == pytest.approx(expected, rel=1e-11, abs=1e-9)


def symmetric(reach: int, tick: str) -> pa.Table:
    """Return three events of the same interval, as timestamps."""
    middle = dt.datetime(2024, 5, 1, 12)
    step = {"us": dt.timedelta(microseconds=reach), "ms": dt.timedelta(milliseconds=reach)}[tick]
    return pa.table(
        {"type": list("ABC"), "id": [1, 2, 3], "lower": [middle - step] * 3, "upper": [middle + step] * 3}
    )


def test_long_intervals_of_microseconds() -> None:
    """Three of one interval in order are its order statistics: Beta(1, 3), Beta(2, 2) and Beta(3, 1)."""
    table, query = symmetric(10**6, "us"), "PATTERN SEQ(A a, B b, C c) WITHIN 10 seconds"
    found = uc.posteriors(uc.match(table, query), table, query)
    assert (
        found.schema.field("mean").type == found.schema.field("q50").type == table.schema.field("lower").type
    )
    assert found.column("pmf").null_count == 3
    rows = found.to_pylist()
    origin = table.column("lower")[0].as_py()
    shares = [(row["mean"] - origin) / dt.timedelta(seconds=2) for row in rows]
    assert shares == pytest.approx([0.25, 0.5, 0.75], abs=1e-6)
    for name, quantile in QUANTILES.items():
        first = (rows[0][name] - origin) / dt.timedelta(seconds=2)
        last = (rows[2][name] - origin) / dt.timedelta(seconds=2)
        assert first == pytest.approx(1 - (1 - quantile) ** (1 / 3), abs=2e-6)
        assert last == pytest.approx(quantile ** (1 / 3), abs=2e-6)


def test_a_binding_window_on_long_intervals() -> None:
    table = symmetric(10**6, "us")
    short, tight = "PATTERN SEQ(A a, C c) WITHIN 10 seconds", "PATTERN SEQ(A a, C c) WITHIN 1 ms"
    wide, near = (uc.posteriors(uc.match(table, q), table, q).to_pylist() for q in (short, tight))
    origin = table.column("lower")[0].as_py()
    assert (wide[0]["mean"] - origin) / dt.timedelta(seconds=2) == pytest.approx(1 / 3, abs=1e-6)
    assert (near[0]["mean"] - origin) / dt.timedelta(seconds=2) == pytest.approx(0.5, abs=1e-3)
    assert near[1]["mean"] - near[0]["mean"] == pytest.approx(
        dt.timedelta(microseconds=500), abs=dt.timedelta(microseconds=2)
    )


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, !N n, B b) WITHIN 90000",
        "PATTERN AND(A a, B b) WITHIN 12",
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 90000",
        "PATTERN SEQ(A a, B b) WITHIN 90000",
    ],
)
def test_means_beyond_the_listed_ticks(query: str) -> None:
    """Whether probabilities are listed changes nothing else."""
    table = pa.table(
        {
            "type": ["A", "B", "N", "B"],
            "id": [1, 2, 3, 4],
            "lower": [5, 0, 10, 30],
            "upper": [9, 40, 25, 33],
            "pmf": pa.array(
                [[0.1, 0.2, 0.3, 0.25, 0.15], None, None, [0.5, 0, 0, 0.5]], pa.list_(pa.float64())
            ),
        }
    )
    matches = uc.match(table, query)
    assert matches.num_rows
    listed = uc.posteriors(matches, table, query).to_pylist()
    for row, other in zip(uc.posteriors(matches, table, query, pmf_ticks=4).to_pylist(), listed, strict=True):
        assert row.pop("mean") == pytest.approx(other.pop("mean"), rel=1e-12)
        assert (row.pop("pmf") is None) == (len(other.pop("pmf")) > 4)
        assert row == other


def test_pieces_of_boxes_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    lower = np.sort(rng.integers(0, 60, 30))
    table = pa.table(
        {
            "type": rng.choice(list("ABC"), 30),
            "id": range(30),
            "lower": lower,
            "upper": lower + rng.integers(0, 9, 30),
        }
    )
    for query in (LINE.format(20), "PATTERN SEQ(A a, !C c, B b) WITHIN 20"):
        matches = uc.match(table, query)
        whole = [uc.posteriors(matches, table, query, pmf_ticks=ticks) for ticks in (10, 0)]
        with monkeypatch.context() as patch:
            patch.setattr(boxes, "BOXES_AT_ONCE", 7)
            patch.setattr(box_parts, "BOXES_AT_ONCE", 7)
            assert [uc.posteriors(matches, table, query, pmf_ticks=ticks) for ticks in (10, 0)] == whole


def test_frames_and_no_matches() -> None:
    table = symmetric(3, "ms")
    query = "PATTERN SEQ(A a, B b) WITHIN 1 second"
    frames: list[Any] = [table.to_pandas(), pl.from_arrow(table)]
    for frame in frames:
        found = uc.posteriors(uc.match(frame, query, tick="1ms"), frame, query, tick="1ms")
        assert type(found) is type(frame)
        assert list(found.columns) == ["match", "variable", "position", "id", "mean", *QUANTILES, "pmf"]
        assert len(found) == 2
    none = uc.posteriors(uc.match(table, query, tick="1ms").slice(0, 0), table, query, tick="1ms")
    assert none.num_rows == 0


def test_what_is_no_match_is_refused() -> None:
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [5, 0], "upper": [6, 7]})
    query = "PATTERN SEQ(A a, B b) WITHIN 9"
    matches = uc.match(table, query)
    late = table.set_column(2, "lower", pa.array([8, 0])).set_column(3, "upper", pa.array([8, 7]))
    with pytest.raises(OptionError, match="row 0 of the matches is no match of the query in any world"):
        uc.posteriors(matches, late, query)
    with pytest.raises(OptionError, match="pmf_ticks=-1"):
        uc.posteriors(matches, table, query, pmf_ticks=-1)
    kleene = "PATTERN SEQ(A a, B+ b[]) WITHIN 9"
    with pytest.raises(OptionError, match="is many matches"):
        uc.posteriors(uc.match(table, kleene, kleene="compressed"), table, kleene)


@pytest.mark.compiled
def test_a_time_limit_ends_it() -> None:
    table = symmetric(4000, "us")
    query = "PATTERN SEQ(A a, !C c, B b) WITHIN 1 second"
    with pytest.raises(TimeLimitError):
        uc.posteriors(uc.match(table, query), table, query, timeout=1e-3)
