"""The rows of RETURN PROBABILITY: columns, HAVING, ORDER BY, LIMIT, frames, and what must not matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Trace
from tests.cases.grouped import Grouping, groupings, rows_of
from tests.cases.language import language_cases
from tests.cases.sampling import FEWER
from uncertain_cep.cli import main
from uncertain_cep.config import tuning
from uncertain_cep.errors import ConfidenceCostError, MatchLimitError
from uncertain_cep.occurrence import answers

QUERY = "PATTERN SEQ(A a, B b) WITHIN 9"
EVENTS = pa.table(
    {
        "type": ["A", "A", "B", "B", "B"],
        "id": ["p", "q", "r", "s", "t"],
        "lower": [0, 2, 1, 4, 20],
        "upper": [3, 5, 6, 4, 29],
        "host": ["x", "y", "x", None, "y"],
    }
)


def answer(clauses: str, events: Any = EVENTS, **options: Any) -> list[dict[str, Any]]:
    return uc.match(events, f"{QUERY} {clauses}", **options).to_pylist()  # type: ignore[no-any-return]


def test_types_and_names_of_columns() -> None:
    rows = uc.match(EVENTS, f"{QUERY} RETURN PROBABILITY AS p BY a, b.host EVERY 2")
    assert rows.schema == pa.schema(
        [("a", pa.string()), ("b.host", pa.string()), ("bucket", pa.int64()), ("p", pa.float64())]
    )
    assert uc.match(EVENTS, f"{QUERY} RETURN PROBABILITY").schema == pa.schema(
        [("probability", pa.float64())]
    )


def test_buckets_have_the_type_of_times() -> None:
    times = pa.array([0, 2_000], pa.timestamp("ms", tz="UTC"))
    events = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": times, "upper": times})
    rows = uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 5 s RETURN PROBABILITY EVERY 1 minute", tick="1ms")
    assert rows["bucket"].type == pa.timestamp("ms", tz="UTC")
    assert rows.num_rows == 1


def test_nulls_are_one_group() -> None:
    rows = answer("RETURN PROBABILITY BY b.host")
    assert [row["b.host"] for row in rows] == ["x", None]


def test_no_row_without_a_match() -> None:
    late = EVENTS.slice(4)
    assert answer("RETURN PROBABILITY", late) == []
    assert answer("RETURN PROBABILITY OF AT LEAST 9 MATCHES") == []
    assert answer("RETURN PROBABILITY BY a EVERY 3", late) == []


def test_having_order_and_limit_are_of_groups() -> None:
    rows = answer("RETURN PROBABILITY BY a, b")
    best = sorted(rows, key=lambda row: (-row["probability"], row["a"], row["b"]))
    assert answer("RETURN PROBABILITY BY a, b ORDER BY PROBABILITY DESC") == best
    assert answer("RETURN PROBABILITY AS p BY a, b ORDER BY p DESC LIMIT 2") == [
        {"a": row["a"], "b": row["b"], "p": row["probability"]} for row in best[:2]
    ]
    threshold = best[1]["probability"]
    kept = answer(f"HAVING PROBABILITY >= {threshold!r} RETURN PROBABILITY BY a, b")
    assert kept == [row for row in rows if row["probability"] >= threshold]
    assert answer("HAVING a = 'q' AND probability > 0 RETURN PROBABILITY BY a, b") == [
        row for row in rows if row["a"] == "q"
    ]
    query = f"{QUERY} HAVING PROBABILITY >= $x RETURN PROBABILITY BY a, b LIMIT $k"
    for k in (1, 2):
        limited = uc.match(EVENTS, query, parameters={"x": threshold, "k": k})
        assert limited.num_rows == min(k, len(kept))


def test_a_certain_group_passes_a_threshold_of_one() -> None:
    (row,) = answer("HAVING PROBABILITY >= 1 RETURN PROBABILITY", pa.concat_tables([EVENTS, CERTAIN]))
    assert row["probability"] == 1.0


CERTAIN = pa.table(
    {"type": ["A", "B"], "id": ["u", "v"], "lower": [50, 51], "upper": [50, 51], "host": ["x", "x"]}
)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_are_answered_in_kind(kind: Any) -> None:
    events = kind(EVENTS.to_pydict())
    rows = uc.match(events, f"{QUERY} RETURN PROBABILITY BY a")
    assert isinstance(rows, kind)
    assert list(rows["probability"]) == [row["probability"] for row in answer("RETURN PROBABILITY BY a")]


def test_batches_hold_the_rows() -> None:
    query = f"{QUERY} RETURN PROBABILITY BY a, b EVERY 2"
    whole = uc.match(EVENTS, query)
    batches = list(uc.iter_matches(EVENTS, query, batch_rows=2))
    assert all(batch.num_rows <= 2 for batch in batches)
    assert pa.Table.from_batches(batches, whole.schema) == whole


def test_the_command_writes_the_rows(tmp_path: Path) -> None:
    trace, out = tmp_path / "trace.parquet", tmp_path / "rows.parquet"
    pq.write_table(EVENTS, trace)
    query = f"{QUERY} RETURN PROBABILITY BY a, b EVERY 2"
    run = CliRunner().invoke(main, ["match", query, str(trace), "-o", str(out)])
    assert run.exit_code == 0, run.output
    assert pq.read_table(out).to_pylist() == uc.match(EVENTS, query).to_pylist()
    assert "one for each group and bucket" in run.stderr


def test_a_group_that_takes_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_GROUP_STEPS", 3)
    with pytest.raises(ConfidenceCostError, match=r"of a = '[pq]' takes more than .* 2 possible matches"):
        answer("RETURN PROBABILITY BY a")
    with pytest.raises(ConfidenceCostError, match="a shorter EVERY"):
        answer("RETURN PROBABILITY BY a EVERY 100")
    # Groups of one match take no steps.
    assert len(answer("RETURN PROBABILITY BY a, b")) == 4


def test_no_limit_of_matches_is_of_groups() -> None:
    with pytest.raises(MatchLimitError):
        uc.match(EVENTS, QUERY, max_matches=1)
    assert len(answer("RETURN PROBABILITY BY a", max_matches=1)) == 2


@FEWER
@given(language_cases(most=5), st.data())
def test_neither_rows_nor_threads_nor_parts_matter(case: Any, data: st.DataObject) -> None:
    grouping: Grouping = data.draw(groupings(case.query()))
    text = case.text(grouping.clause)
    note(text)
    expected = rows_of(uc.match(case.trace.table(), text, threads=1), grouping)
    shuffled = Trace(tuple(data.draw(st.permutations(case.trace.events))), case.trace.types)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "GROUPED_AT_ONCE", data.draw(st.sampled_from([1, 2, tuning.GROUPED_AT_ONCE])))
        rows = rows_of(uc.match(shuffled.table(), text, threads=data.draw(st.sampled_from([1, 3]))), grouping)
    assert rows.keys() == expected.keys()
    for key, value in expected.items():
        assert rows[key] == pytest.approx(value, rel=1e-12)


@FEWER
@given(language_cases(most=5))
def test_one_match_is_its_confidence_and_several_are_between_bounds(case: Any) -> None:
    note(case.text())
    matches = uc.match(case.trace.table(), case.text())
    rows = uc.match(case.trace.table(), case.text("RETURN PROBABILITY")).to_pylist()
    confidences = matches["confidence"].to_pylist()
    if not confidences:
        assert rows == []
        return
    probability = rows[0]["probability"]
    assert max(confidences) * (1 - 1e-12) <= probability <= min(1.0, sum(confidences) * (1 + 1e-12))
    if len(confidences) == 1:
        assert probability == confidences[0]


@FEWER
@given(language_cases(most=5))
def test_groups_are_parts_of_all_and_more_matches_are_rarer(case: Any) -> None:
    """For any groups: P of all is between the largest of theirs and their sum."""
    note(case.text())
    table = case.trace.table()

    def probability(clause: str) -> float:
        rows = uc.match(table, case.text(clause)).to_pylist()
        return float(rows[0]["probability"]) if rows else 0.0

    whole = probability("RETURN PROBABILITY")
    for variable in [item.variable for item in case.positives if not item.kleene]:
        groups = uc.match(table, case.text(f"RETURN PROBABILITY BY {variable}"))["probability"].to_pylist()
        assert max(groups, default=0.0) * (1 - 1e-12) <= whole <= sum(groups) * (1 + 1e-12)
    several = [probability(f"RETURN PROBABILITY OF AT LEAST {k} MATCHES") for k in (2, 3)]
    assert whole * (1 + 1e-12) >= several[0]
    assert several[0] * (1 + 1e-12) >= several[1]


@FEWER
@given(language_cases(most=4))
def test_parts_that_share_nothing_are_independent(case: Any) -> None:
    """The same events once more, far behind."""
    note(case.text())
    table = case.trace.table()
    later = table
    for name, distance in (("id", 10_000), ("lower", 10**6), ("upper", 10**6)):
        column = pc.add(table[name], distance)
        later = later.set_column(table.column_names.index(name), name, column)
    text = case.text("RETURN PROBABILITY")
    once = uc.match(table, text).to_pylist()
    twice = uc.match(pa.concat_tables([table, later]), text).to_pylist()
    if not once:
        assert not twice
        return
    none = 1.0 - once[0]["probability"]
    assert twice[0]["probability"] == pytest.approx(1.0 - none * none, rel=1e-12)
