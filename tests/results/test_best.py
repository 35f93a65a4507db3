"""The best matches found with upper bounds are the best of all, whatever is pruned on the way."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace, cases
from tests.cases.comparison import RELATIVE_ERROR, assert_answer, rows_of, significant
from tests.cases.cut import cut
from tests.cases.sampling import FEWER
from tests.cases.strategies import STRATEGIES, answer_of, text_of
from tests.oracle.outputs import having
from uncertain_cep.results import top_k as best
from uncertain_cep.testing.model import Strategy
from uncertain_cep.testing.worlds import sort_key
from uncertain_cep.traces.streams import value_stream


@contextmanager
def _tried_in_parts() -> Iterator[None]:
    """Have the smallest ids tried first however few there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best, "WORTH_TRYING", 2)
        patch.setattr(best, "FIRST_SHARE", 3)
        yield


def _best(case: Case, text: str, limit: int, batch_rows: int, threads: int = 1) -> None:
    """Compare the best matches with the first ones of the whole answer in order."""
    table = case.trace.table()
    everything = rows_of(uc.match(table, text), case)
    # Two partitions with the same ids: which comes first is open.
    assume(len({signature for _, signature in everything}) == len(everything))
    ordered = sorted(
        everything.items(), key=lambda item: (-significant(item[1].confidence or 0.0), sort_key(item[0][1]))
    )
    asked = f"{text} ORDER BY CONFIDENCE DESC LIMIT {limit}"
    with _tried_in_parts(), cut(100.0):
        batches = list(uc.iter_matches(table, asked, batch_rows=batch_rows, threads=threads))
    schema = batches[0].schema if batches else uc.match(table, text).schema
    found = rows_of(pa.Table.from_batches(batches, schema), case)
    # Confidences are computed by the same kernels: not even rounding may tell the two apart.
    assert list(found.items()) == ordered[:limit]


@STRATEGIES
@FEWER
@given(
    case=cases(),
    limit=st.integers(1, 4),
    batch_rows=st.sampled_from([1, 3, 1000]),
    threads=st.sampled_from([1, 3]),
)
def test_the_best_are_the_first_of_all(
    case: Case, limit: int, batch_rows: int, threads: int, strategy: Strategy
) -> None:
    note(case.script())
    _best(case, text_of(case, strategy), limit, batch_rows, threads)


@given(cases(), st.integers(1, 4), st.sampled_from([1, 3, 1000]))
def test_the_best_of_certain_matches(case: Case, limit: int, batch_rows: int) -> None:
    """Many ties, and nothing above 1: the smallest signatures decide."""
    events = tuple(replace(event, upper=event.lower, pmf=None) for event in case.trace.events)
    case = replace(case, trace=Trace(events, case.trace.types))
    note(case.script())
    _best(case, case.text(), limit, batch_rows)


@STRATEGIES
@FEWER
@given(case=cases(), percent=st.sampled_from([1, 10, 30, 90, 100]))
def test_pruning_by_a_threshold_loses_nothing(case: Case, percent: int, strategy: Strategy) -> None:
    threshold = Fraction(percent, 100)
    matches = answer_of(case, strategy)
    # On the threshold a rounding error decides.
    assume(all(match.confidence != threshold for match in matches))
    text = text_of(case, strategy) + f"\nHAVING CONFIDENCE >= {percent}%"
    note(text)
    assert_answer(rows_of(uc.match(case.trace.table(), text), case), having(matches, threshold))


@pytest.mark.compiled
@pytest.mark.parametrize("half_interval", [0, 3, 20])
def test_the_best_of_a_longer_stream(half_interval: int) -> None:
    """Equally long intervals: runs are narrowed. Ids in no order of time: the first part is everywhere."""
    rng = np.random.default_rng(7)
    n = 3000
    middle = np.sort(rng.integers(0, 2 * n, n))
    table = pa.table(
        {
            "type": rng.choice(["A", "B", "C", "D"], n),
            "id": rng.permutation(n),
            "lower": middle - half_interval,
            "upper": middle + half_interval,
        }
    )
    for pattern, window in (
        ("SEQ(A a, B b)", 30),
        ("SEQ(A a, B b, C c)", 30),
        ("SEQ(A a, B b, C c, D d)", 12),
    ):
        text = f"PATTERN SEQ({pattern}) WITHIN {window}"
        variables = [name for name in uc.match(table, text).column_names if len(name) == 1]
        keys = [("rank", "descending"), *((name, "ascending") for name in variables)]
        ordered = uc.match(table, text)
        rank = pa.array([significant(value) for value in ordered["confidence"].to_pylist()])
        ordered = ordered.append_column("rank", rank).sort_by(keys).drop_columns("rank")
        with _tried_in_parts():
            found = uc.match(table, f"{text} ORDER BY CONFIDENCE DESC LIMIT 25")
        assert found.equals(ordered.slice(0, 25))


@pytest.mark.compiled
@pytest.mark.parametrize("threads", [2, 5])
def test_no_part_of_a_longer_stream_is_left_out(threads: int) -> None:
    events = value_stream(200_000, half_interval=50, seed=7)
    query = (
        "PATTERN SEQ(E a, E b, E c) WHERE a.value % 10 = 0 AND b.value % 11 = 0 AND c.value % 13 = 0 "
        "WITHIN 100 ORDER BY CONFIDENCE DESC LIMIT 1000"
    )
    one = uc.match(events, query, threads=1)
    assert one.num_rows == 1000
    assert uc.match(events, query, threads=threads).equals(one)


@pytest.mark.compiled
def test_batches_without_a_wanted_match_hold_no_memory() -> None:
    """Bounds leave out all matches of most batches; each such batch kept room for 131,072 matches."""
    count, ticks = 900, 101
    lower = np.arange(count)
    table = pa.table(
        {
            "type": np.array(["A", "B"])[lower % 2],
            "id": lower,
            "lower": lower,
            "upper": lower + ticks - 1,
            "pmf": pa.array([[1.0 / ticks] * ticks] * count),
        }
    )
    query = "PATTERN SEQ(A a, A b, A c) WITHIN 5000 ORDER BY CONFIDENCE DESC LIMIT 10"
    uc.match(table, query, threads=1)
    tracemalloc.start()
    try:
        found = uc.match(table, query, threads=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.num_rows == 10
    assert peak < 2**26


def test_text_ids_are_in_the_order_of_text() -> None:
    table = pa.table(
        {
            "type": ["A", "A", "B", "B"],
            "id": ["10", "9", "b", "B"],
            "lower": [1, 1, 5, 5],
            "upper": [1, 1, 5, 5],
        }
    )
    found = uc.match(table, "PATTERN SEQ(A a, B b) WITHIN 9 ORDER BY CONFIDENCE DESC LIMIT 3")
    assert found.select(["a", "b"]).to_pylist() == [
        {"a": "10", "b": "B"}, {"a": "10", "b": "b"}, {"a": "9", "b": "B"},
    ]  # fmt: skip
    assert all(math.isclose(value, 1.0, rel_tol=RELATIVE_ERROR) for value in found["confidence"].to_pylist())
