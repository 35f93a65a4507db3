"""timeout= and --time-limit: an error that says how far it got, and nothing half written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncertain_cep as uc
from tests.cases.budgets import budget
from tests.cli.conftest import Invoke
from uncertain_cep.running import resource_limits
from uncertain_cep.running.resource_limits import Limits, within

NOTHING = "PATTERN SEQ(A a, B b, C c, D d, A e) WHERE a.x + b.x + c.x + d.x + e.x < -1 WITHIN 1000"
MANY = "PATTERN SEQ(A a, B b, C c, D d) WITHIN 1000"


@pytest.fixture(scope="module")
def events() -> pa.Table:
    """Return a trace over which the queries would take minutes."""
    count = 100_000
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "type": np.array(list("ABCD"))[rng.integers(0, 4, count)],
            "id": np.arange(count),
            "lower": 2 * np.arange(count),
            "upper": 2 * np.arange(count) + 9,
            "x": rng.integers(0, 100, count),
        }
    )


@pytest.mark.parametrize(
    "options",
    [
        {"evaluation": "query_order"},
        {"planner": "((a b) (c (d e)))"},
        {"evaluation": "any_state"},
        {"evaluation": "point"},
    ],
)
def test_match_ends_in_time(events: pa.Table, options: dict[str, Any]) -> None:
    with pytest.raises(
        uc.TimeLimitError, match=r"stopped after 0\.5 s, with 0 matches found so far"
    ) as raised:
        uc.match(events, NOTHING, timeout=0.5, **options)
    assert raised.value.found == 0
    assert raised.value.seconds == 0.5


def test_it_says_how_many_matches_there_were(events: pa.Table) -> None:
    matches = 0

    def count() -> None:
        nonlocal matches
        for batch in uc.iter_matches(events, MANY, timeout=2.0, batch_rows=1000):
            matches += batch.num_rows

    with pytest.raises(uc.TimeLimitError) as raised:
        count()
    assert raised.value.found == matches
    assert f"{matches:,} matches" in str(raised.value)


@pytest.mark.parametrize(
    ("pattern", "condition"),
    [
        # Of all events of a match, so that no part of one is given up early.
        ("AND(A a, B b, C c, D d)", "a.x + b.x + c.x + d.x < -1"),
        ("SEQ(A a, B+ b[], C c)", "a.x + b[i].x + c.x < -1"),
        ("SEQ(A a, !B n, C c, D d, B b)", "a.x + b.x + c.x + d.x < -1"),
    ],
)
def test_searches_end_in_time(events: pa.Table, pattern: str, condition: str) -> None:
    with pytest.raises(uc.TimeLimitError):
        uc.match(events, f"PATTERN {pattern} WHERE {condition} WITHIN 1000", timeout=0.5)


def test_explain_ends_in_time(events: pa.Table) -> None:
    with pytest.raises(uc.TimeLimitError, match=r"^stopped after 0\.5 s: "):
        uc.explain(NOTHING, events, analyze=True, timeout=0.5)


@pytest.mark.parametrize("evaluation", ["any_state", "sliced", "point"])
def test_a_call_of_a_stream_ends_in_time(events: pa.Table, evaluation: str) -> None:
    matcher = uc.IncrementalMatcher(
        NOTHING, events.schema, evaluation=evaluation, largest_interval=9, timeout=0.5
    )
    with pytest.raises(uc.TimeLimitError):
        matcher.push(events)
    with pytest.raises(uc.OptionError, match="an earlier call failed"):
        matcher.close()


def test_a_limit_that_is_long_enough_changes_nothing(events: pa.Table) -> None:
    few = events.slice(0, 60)
    query = "PATTERN SEQ(A a, B b, C c) WITHIN 50"
    with budget(7):
        limited = uc.match(few, query, timeout=3600)
        batches = uc.iter_matches(few, query, timeout=3600)
        assert pa.Table.from_batches(batches).num_rows == limited.num_rows
    assert limited.equals(uc.match(few, query))
    assert uc.explain(query, few, analyze=True, timeout=3600)


def test_time_between_batches_counts_and_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(resource_limits, "time", SimpleNamespace(monotonic=lambda: now))

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"a": [1, 2]})
        yield pa.RecordBatch.from_pydict({"a": [3]})

    limited = within(Limits(5.0), batches())
    assert next(limited).num_rows == 2
    now = 6.0
    with pytest.raises(uc.TimeLimitError, match="with 2 matches"):
        next(limited)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "30s"])
def test_wrong_limits_are_refused(events: pa.Table, wrong: Any) -> None:
    refused: list[Callable[[], object]] = [
        lambda: uc.match(events, MANY, timeout=wrong),
        lambda: uc.iter_matches(events, MANY, timeout=wrong),
        lambda: uc.explain(MANY, events, timeout=wrong),
        lambda: uc.IncrementalMatcher(MANY, events.schema, timeout=wrong),
    ]
    for call in refused:
        with pytest.raises(uc.OptionError, match="seconds above 0"):
            call()


def test_the_command_ends_in_time(invoke: Invoke, events: pa.Table, tmp_path: Path) -> None:
    trace = tmp_path / "trace.parquet"
    pq.write_table(events, trace)
    for out in ("out", "out.csv"):
        done = invoke("match", NOTHING, trace, "-o", tmp_path / out, "--time-limit", "2s")
        assert done.exit_code == 1
        assert "error: stopped after 2 s, with 0 matches found so far" in done.stderr
    assert os.listdir(tmp_path) == ["trace.parquet"]
    done = invoke("explain", NOTHING, trace, "--analyze", "--time-limit", "2s")
    assert done.exit_code == 1
    assert "error: stopped after 2 s" in done.stderr


@pytest.mark.parametrize("wrong", ["0s", "soon", "30", "-1s"])
def test_wrong_limits_of_the_command(invoke: Invoke, parquet: Path, wrong: str) -> None:
    done = invoke("match", MANY, parquet, "--time-limit", wrong)
    assert done.exit_code == 2
    assert "--time-limit" in done.stderr
