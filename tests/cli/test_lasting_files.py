"""Files of events that last: the command gives the answer of Python."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cases.spans import SpanCase, span_cases
from tests.cli.conftest import Invoke
from tests.traces.files import put

EVENTS = pa.table(
    {
        "type": ["A", "P"], "id": [1, 2], "lower": [0, 2], "upper": [4, 2], "begin_lower": [0, None],
        "begin_upper": [1, None], "length_lower": [1, None], "length_upper": [3, None],
        "begin_pmf": [[0.25, 0.75], None], "length_pmf": [[0.5, 0.0, 0.5], None],
    }
)  # fmt: skip
QUERY = "PATTERN AND(A a, P p) WHERE a CONTAINS p WITHIN 20"


def rows(text: str) -> list[dict[str, Any]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_columns_of_spans_are_read(tmp_path: Path, invoke: Invoke, ending: str) -> None:
    """Without them the first event would be at one of five ticks."""
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        pq.write_table(EVENTS, path)
    else:
        put(path, "".join(f"{json.dumps(row)}\n" for row in EVENTS.to_pylist()))
    query = put(tmp_path / "q.sase", QUERY)
    (expected,) = uc.match(EVENTS, QUERY)["confidence"].to_pylist()
    assert expected == pytest.approx(0.875)
    result = invoke("match", query, path)
    assert result.exit_code == 0, result.output
    assert [float(row["confidence"]) for row in rows(result.stdout)] == [expected]
    explained = invoke("explain", query, path)
    assert "a CONTAINS p" in explained.stdout
    assert invoke("validate", path, "--query", query).exit_code == 0


def test_a_schema_makes_spans(tmp_path: Path, invoke: Invoke) -> None:
    jobs = put(tmp_path / "jobs.csv", "job,start,took\n1,0,3\n2,2,2\n")
    schema = put(
        tmp_path / "schema.toml",
        'tick = "1s"\n[[events]]\ntype = "Job"\nid = "job"\nbegin = "start"\nduration = "took"\nunit = "s"\n'
        'uncertainty = { kind = "granularity", of = "5s" }\n',
    )
    query = put(
        tmp_path / "q.sase", "PATTERN AND(Job a, Job b) WHERE a.id < b.id AND a OVERLAPS b WITHIN 1 min"
    )
    result = invoke("match", query, jobs, "--schema", schema)
    assert result.exit_code == 0, result.output
    assert [float(row["confidence"]) for row in rows(result.stdout)] == [pytest.approx(19 / 25)]


def test_what_decide_does_not_support_is_refused(tmp_path: Path, invoke: Invoke) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(EVENTS, path)
    result = invoke("decide", put(tmp_path / "q.sase", QUERY), path)
    assert result.exit_code != 0
    assert "tied by bounds of the length" in result.output


def test_why_not_says_what_python_says(tmp_path: Path, invoke: Invoke) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(EVENTS, path)
    text = QUERY.replace("CONTAINS", "AFTER")
    result = invoke("why-not", put(tmp_path / "q.sase", text), path, "--where", "a=1")
    assert result.exit_code == 0, result.output
    assert str(uc.why_not(EVENTS, text, a=1)) in result.output


@settings(FEWER, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=span_cases(with_laws=True, spare=2), pairs=st.sampled_from(["open", "all", "cover"]))
def test_order_and_decide_say_what_python_says(
    case: SpanCase, pairs: str, tmp_path: Path, invoke: Invoke
) -> None:
    path, out = tmp_path / "events.parquet", tmp_path / "pairs.parquet"
    pq.write_table(case.table(), path)
    assert invoke("order", path, "--pairs", pairs, "-o", out, "--overwrite").exit_code == 0
    assert pq.read_table(out).equals(uc.order(case.table(), pairs=pairs))
    decided = invoke("decide", case.text(), path, "--by", "event")
    try:
        expected = f"{uc.deciding(case.table(), case.text(), by='event')}\n"
    except uc.UncertainCepError as error:
        expected = str(error)
    assert expected in decided.output


def test_flags_say_the_same(tmp_path: Path, invoke: Invoke) -> None:
    jobs = put(tmp_path / "jobs.csv", "job,start,took\n1,0,3\n2,2,2\n")
    schema = put(
        tmp_path / "schema.toml",
        'tick = "1s"\n[[events]]\ntype = "Job"\nid = "job"\nbegin = "start"\nduration = "took"\nunit = "s"\n'
        'uncertainty = { kind = "granularity", of = "5s" }\n',
    )
    flags = ["--type", "Job", "--id", "job", "--begin", "start", "--duration", "took", "--unit", "s"]
    flags += ["--tick", "1s", "--uncertainty", "granularity:5s"]
    query = (
        "PATTERN AND(Job a, Job b) WHERE a.id < b.id AND a OVERLAPS b WITHIN 1 min RETURN DURATION(a) AS took"
    )
    one, other = (invoke("match", query, jobs, *options) for options in (["--schema", schema], flags))
    assert (one.exit_code, other.exit_code) == (0, 0), other.stderr
    assert one.stdout == other.stdout
    assert [row["took_mean"] for row in rows(other.stdout)] != []
    missing = invoke("match", query, jobs, *flags[:4], "--end", "stop", *flags[8:])
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "duration" in missing.stderr
