"""The commands on Spark: the same answers, written by Spark."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Invoke, write_trace
from tests.cli.test_match import MATCHES, QUERY, confidences, leftovers, read_csv
from tests.reporting.pages import data_of, values
from tests.spark.traces import NOT_GENERATED
from uncertain_cep.cli.outputs import ABOUT_FILE

ROOT = Path(__file__).resolve().parents[2]
ON_SPARK = ("--master", "local[2]")


@pytest.fixture(scope="module", autouse=True)
def session_of_its_own() -> Iterator[None]:
    """Stop the session that the commands start and share, and undo what it set."""
    from pyspark.sql import SparkSession

    before = dict(os.environ)
    yield
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True)
def ready(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the first tests alone start the process that compiles kernels aside, and Spark generate code."""
    from pyspark.sql import SparkSession

    def nothing_aside() -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    session = SparkSession.getActiveSession()
    first = (test_same_answer_on_stdout, test_same_answer_in_files)
    if session is not None and request.function not in first:
        for name, value in NOT_GENERATED.items():
            session.conf.set(name, value)
    if request.function is not test_same_answer_on_stdout:
        for command in ("spark_sessions", "casestudy"):
            monkeypatch.setattr(f"uncertain_cep.cli.{command}.compiling_aside", nothing_aside)


def test_same_answer_on_stdout(invoke: Invoke, parquet: Path) -> None:
    result = invoke("match", QUERY, parquet, *ON_SPARK)
    assert result.exit_code == 0, result.stderr
    assert "engine: Spark (because of --master)" in result.stderr
    assert confidences(read_csv(result.stdout)) == pytest.approx(MATCHES)


@pytest.mark.parametrize("name", ["out of today", "out.parquet", "out.csv", "out.jsonl"])
def test_same_answer_in_files(invoke: Invoke, parquet: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    result = invoke("match", QUERY, parquet, "-o", out, *ON_SPARK)
    assert result.exit_code == 0, result.stderr
    assert "2 matches in" in result.stderr
    if name.endswith(".csv"):
        rows = read_csv(out.read_text())
    elif name.endswith(".jsonl"):
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        rows = pq.read_table(out).to_pylist()
    assert confidences(rows) == pytest.approx(MATCHES)
    assert not leftovers(tmp_path)


def test_the_same_report(invoke: Invoke, parquet: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    result = invoke("report", QUERY, parquet, "-o", out, *ON_SPARK)
    assert result.exit_code == 0, result.stderr
    assert "engine: Spark (because of --master)" in result.stderr
    assert "2 matches in" in result.stderr
    facts = data_of(out.read_text(encoding="utf-8"))
    assert facts["raw"]["stamped"] == 0
    shown = values(facts["columns"], "confidence")
    assert shown == pytest.approx(sorted(MATCHES.values(), reverse=True))
    refused = invoke("report", QUERY, parquet, "-o", out, "--overwrite", "--threads", "2", *ON_SPARK)
    assert refused.exit_code == 2
    assert "--threads is for --engine local" in refused.stderr


@pytest.mark.parametrize("format_name", ["csv", "json"])
def test_directories_of_text(invoke: Invoke, parquet: Path, tmp_path: Path, format_name: str) -> None:
    out = tmp_path / "out"
    assert invoke("match", QUERY, parquet, "-o", out, "--format", format_name, *ON_SPARK).exit_code == 0
    assert json.loads((out / ABOUT_FILE).read_text())["matches"] == 2
    text = "".join(part.read_text() for part in sorted(out.glob("part-*")))
    if format_name == "csv":
        header = ",".join(text.splitlines()[:1])
        rows = read_csv("\n".join([header, *(line for line in text.splitlines() if line != header)]))
    else:
        rows = [json.loads(line) for line in text.splitlines()]
    assert confidences(rows) == pytest.approx(MATCHES)


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("limit", ["", " ORDER BY CONFIDENCE DESC LIMIT 5"])
def test_same_times_as_in_process(
    invoke: Invoke, figure1: pa.Table, tmp_path: Path, zone: str | None, limit: str
) -> None:
    for name in ("lower", "upper"):
        times = figure1.column(name).cast(pa.timestamp("ms", zone))
        figure1 = figure1.set_column(figure1.schema.get_field_index(name), name, times)
    trace = write_trace(figure1, tmp_path / "stamps.parquet")
    for file in ("local.csv", "local.parquet", "spark.csv", "spark.parquet"):
        on = ON_SPARK if file.startswith("spark") else ()
        result = invoke("match", QUERY + limit, trace, "--tick", "1ms", "-o", tmp_path / file, *on)
        assert result.exit_code == 0, result.stderr
    local, spark = (pq.read_table(tmp_path / f"{engine}.parquet") for engine in ("local", "spark"))
    for name in ("range_lower", "range_upper"):
        assert spark.schema.field(name).type.tz == zone
        assert sorted(spark.column(name).cast(pa.int64()).to_pylist()) == sorted(
            value * (1000 if spark.schema.field(name).type.unit == "us" else 1)
            for value in local.column(name).cast(pa.int64()).to_pylist()
        )
    read = [pyarrow.csv.read_csv(tmp_path / f"{engine}.csv").sort_by("c") for engine in ("local", "spark")]
    assert (
        read[0].select(["range_lower", "range_upper"]).equals(read[1].select(["range_lower", "range_upper"]))
    )


@pytest.mark.parametrize(
    ("unit", "zone", "format_name"), [("s", None, "json"), ("us", "Europe/Berlin", "csv")]
)
def test_times_of_events_are_written_as_in_process(
    invoke: Invoke, tmp_path: Path, unit: str, zone: str | None, format_name: str
) -> None:
    start = datetime(2026, 1, 5, 8)
    times = pa.array([start, start + timedelta(seconds=3)], pa.timestamp(unit, zone))
    columns = {
        "type": ["A", "B"], "id": [1, 2], "lower": times, "upper": times,
        "at": pa.array([start, None], pa.timestamp("ms", "UTC")), "day": pa.array([start.date()] * 2),
    }  # fmt: skip
    trace = write_trace(pa.table(columns), tmp_path / "stamps.parquet")
    returned = "a.at, a.day, b.*, b[1].lower - a.lower AS l, b[1].at AS last"
    query = f"PATTERN SEQ(A a, B+ b[]) WITHIN 10 s RETURN {returned}"
    written: list[list[dict[str, Any]]] = []
    for engine in ((), ON_SPARK):
        out = tmp_path / f"out{len(written)}"
        result = invoke("match", query, trace, "--tick", "1s", "-o", out, "--format", format_name, *engine)
        assert result.exit_code == 0, result.stderr
        text = "".join(part.read_text() for part in sorted(out.glob("part-*")))
        if format_name == "json":
            written.append([json.loads(line) for line in text.splitlines()])
        else:
            rows = csv.DictReader(io.StringIO(text))
            written.append(
                [{**row, "confidence": float(row["confidence"]), "l": float(row["l"])} for row in rows]
            )
    assert written[0] == written[1]
    assert written[0][0]["a.at"] == "2026-01-05T08:00:00.000000Z"
    assert written[0][0]["range_upper"] == f"2026-01-05T08:00:03{'' if zone is None else 'Z'}"


def test_bad_rows_end_with_2(invoke: Invoke, figure1: object, tmp_path: Path) -> None:
    file = tmp_path / "wrong.csv"
    file.write_text("type,id,lower,upper\nA,1,5,1\nB,2,1,1\n")
    result = invoke("match", QUERY, file, "-o", tmp_path / "out", *ON_SPARK)
    assert result.exit_code == 2, result.output
    assert "lower" in result.stderr
    assert not (tmp_path / "out").exists()
    assert not leftovers(tmp_path)


def test_casestudy(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "results"
    arguments = (
        "casestudy", "-o", out, "--minutes", 4, "--nodes", 3, *ON_SPARK,
    )  # fmt: skip
    result = invoke(*arguments)
    assert result.exit_code == 0, result.stderr
    names = sorted(file.stem for file in (ROOT / "datasets" / "cluster").glob("*.query"))
    assert len(names) == 5
    assert sorted(entry.name for entry in (out / "matches").iterdir()) == names
    counts = json.loads((out / ABOUT_FILE).read_text())["matches"]
    for name in names:
        assert pq.read_table(out / "matches" / name).num_rows == counts[name]
        rows = "groups" if name == "cpu_max_out_by_task" else "matches"
        assert f"{counts[name]:,} {rows} in {out / 'matches' / name}" in result.stdout
    assert result.stdout.startswith("Which tasks maxed out a node's CPU, and how sure is that?")
    assert "By the true times, which were kept aside, " in result.stdout
    assert (out / "trace" / "_truth" / "truth.parquet").is_file()
    assert f"To look at: {out / 'report.html'}" in result.stdout
    assert "<h1>Which tasks maxed out" in (out / "report.html").read_text(encoding="utf-8")
    again = invoke(*arguments)
    assert again.exit_code == 2
    assert "--overwrite" in again.stderr


def test_casestudy_without_queries_in_a_folder_says_what_to_do(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("casestudy", "-o", tmp_path / "out", "--queries", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert "leave out --queries" in result.stderr


def test_without_matches_the_candidates_are_counted(invoke: Invoke, parquet: Path, tmp_path: Path) -> None:
    query = "PATTERN SEQ(A a, BB b) WITHIN 4"
    for number, options in enumerate(([], ["--format", "csv"])):
        out = tmp_path / f"out{number}"
        result = invoke("match", query, parquet, "-o", out, *options, *ON_SPARK)
        assert result.exit_code == 0, result.stderr
        assert "warning: no event of type BB; did you mean B?" in result.stderr
        assert "\ncandidates: a 1, b 0\n" in result.stderr
