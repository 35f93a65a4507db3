"""``uncertain-cep report``."""

from __future__ import annotations

from pathlib import Path

import pytest

import uncertain_cep as uc
from tests.cli.conftest import Invoke
from tests.reporting.pages import data_of

ROWS = """\
kind,id,at,host
A,1,2026-01-05T08:00:10,h1
B,2,2026-01-05T08:00:09,h1
A,3,2026-01-05T08:00:30,h1
B,4,2026-01-05T08:00:40,h1
C,5,,h1
"""
SCHEMA = """\
tick = "1s"
[[events]]
files = "log.csv"
type_column = "kind"
id = "id"
time = "at"
uncertainty = { kind = "plus_minus", by = "3s" }
missing = "drop"
"""
QUERY = "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 15 seconds"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(ROWS)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path / "log.csv"


def test_a_page_with_what_raw_stamps_say(invoke: Invoke, trace: Path) -> None:
    out, schema = trace.parent / "page.html", trace.parent / "schema.toml"
    result = invoke("report", QUERY, trace, "--schema", schema, "-o", out, "--title", "Does B follow A?")
    assert result.exit_code == 0, result.stderr
    assert "2 matches in " in result.stderr
    assert str(out) in result.stderr
    page = out.read_text(encoding="utf-8")
    assert "<h1>Does B follow A?</h1>" in page
    assert "How uncertain the times of log.csv are: ±3s." in page
    facts = data_of(page)
    # Certain is the second pair; the stamps of the first are the wrong way round.
    assert facts["raw"]["matches"] == 1
    assert facts["raw"]["stamped"] == 4
    stamps = [facts["events"]["stamp"][place] for _, place, *_ in facts["found_drawn"][0][0]]
    assert [stamp - low for stamp, low in zip(stamps, [stamps[0], stamps[0]], strict=True)] == [0, 10]
    again = invoke("report", QUERY, trace, "--schema", schema, "-o", out)
    assert again.exit_code == 2
    assert "--overwrite" in again.stderr


def test_faults_of_the_trace_leave_no_page(invoke: Invoke, trace: Path) -> None:
    trace.write_text(ROWS.replace("2026-01-05T08:00:09", "yesterday"))
    out = trace.parent / "page.html"
    result = invoke("report", QUERY, trace, "--schema", trace.parent / "schema.toml", "-o", out)
    assert result.exit_code == 2
    assert "yesterday" in result.stderr
    assert not out.exists()


def test_a_page_does_not_replace_the_trace(invoke: Invoke, trace: Path) -> None:
    result = invoke(
        "report", QUERY, trace, "--schema", trace.parent / "schema.toml", "-o", trace, "--overwrite"
    )
    assert result.exit_code == 2
    assert trace.read_text() == ROWS


def test_python_knows_the_raw_stamps_that_the_command_knows(invoke: Invoke, trace: Path) -> None:
    schema = trace.parent / "schema.toml"
    page = trace.parent / "report.html"
    assert invoke("report", QUERY, str(trace), "--schema", str(schema), "-o", str(page)).exit_code == 0
    events = uc.read_traces(trace, schema, raw_stamps=True)
    assert [str(at) for at in events.column("stamp").to_pylist()[:2]] == [
        "2026-01-05 08:00:10",
        "2026-01-05 08:00:09",
    ]
    of_python, of_command = data_of(uc.report(events, QUERY)), data_of(page.read_text(encoding="utf-8"))
    assert of_command["raw"]["stamped"] == 4
    for name in ("raw", "events", "columns", "compared", "totals"):
        assert of_python[name] == of_command[name], name
    model = trace.parent / "model.csv"
    model.write_text("type,id,lower,upper\nA,1,1,2\n")
    with pytest.warns(uc.UncertainCepWarning, match="no raw stamps can be told"):
        assert "stamp" not in uc.read_traces(model, raw_stamps=True).column_names


def test_few_and_likely_matches_as_of_the_query(invoke: Invoke, trace: Path) -> None:
    schema, out = trace.parent / "schema.toml", trace.parent / "page.html"

    def totals(query: str, *options: object) -> dict[str, object]:
        arguments = [query, trace, "--schema", schema, "-o", out, "--overwrite", *options]
        result = invoke("report", *arguments)
        assert result.exit_code == 0, result.stderr
        facts: dict[str, object] = data_of(out.read_text(encoding="utf-8"))
        return {name: facts[name] for name in ("totals", "found_drawn")}

    likely = totals(QUERY, "--min-confidence", 0.9)
    assert likely == totals(f"{QUERY} HAVING CONFIDENCE >= 0.9")
    best = totals(QUERY, "--top", 1)
    assert best == totals(f"{QUERY} ORDER BY CONFIDENCE DESC LIMIT 1")
    assert len(best["found_drawn"]) == len(likely["found_drawn"]) == 1  # type: ignore[arg-type]
    assert totals(QUERY) != likely


@pytest.mark.parametrize("returned", ["EXPECTED COUNT", "PROBABILITY"])
@pytest.mark.parametrize("option", ["--top", "--min-confidence"])
def test_counts_and_probabilities_have_no_best_matches(
    invoke: Invoke, trace: Path, returned: str, option: str
) -> None:
    out = trace.parent / "page.html"
    arguments = [f"{QUERY} RETURN {returned}", trace, "--schema", trace.parent / "schema.toml"]
    by_match = invoke("match", *arguments, option, 1)
    by_report = invoke("report", *arguments, option, 1, "-o", out)
    assert by_match.exit_code == by_report.exit_code == 2
    assert by_match.stderr.splitlines()[-1] == by_report.stderr.splitlines()[-1]
    assert not out.exists()
