"""The README and the pages of docs are right: code runs, commands, options and files are there."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import click
import duckdb
import pyarrow as pa
import pytest
from click.testing import CliRunner

import uncertain_cep as uc
from docs.site.drawings import DRAWINGS
from uncertain_cep.cli import main
from uncertain_cep.query import parse

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = {page.name: page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md"))}
TAKING = runpy.run_path(str(ROOT / "docs" / "take_pictures.py"))
DOCUMENTS = [
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md",
    *(f"docs/{name}" for name in DOCS),
]  # fmt: skip


def blocks(language: str, page: str) -> list[str]:
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [text for name, text in fences if name == language]


def every_command(group: click.Group) -> list[click.Command]:
    commands: list[click.Command] = []
    for command in group.commands.values():
        commands += every_command(command) if isinstance(command, click.Group) else [command]
    return commands


def test_the_quickstart_finds_what_the_text_says() -> None:
    names: dict[str, Any] = {}
    exec(blocks("python", README)[0], names)
    (row,) = names["matches"].to_dict("records")
    assert (row["node"], row["a"], row["b"], row["c"]) == ("n7", "t1:start", "c1", "t1:finish")
    assert row["confidence"] == pytest.approx(92 / 150)
    assert f"with probability {row['confidence']:.2f}." in README


def test_the_example_for_streams_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = blocks("python", DOCS["streams.md"])
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [1, 4], "upper": [3, 6]})
    query = "PATTERN SEQ(A a, B b) WITHIN 9"
    exec(example, {"uc": uc, "query": query, "schema": table.schema, "batches": table.to_batches()})
    assert "confidence: [1]" in capsys.readouterr().out


def test_the_rule_of_the_page_holds_its_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example, streamed = blocks("python", DOCS["rules.md"])
    rule, _of_sigma = blocks("toml", DOCS["rules.md"])
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "nodes.toml").write_text(rule)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {
        "events": pa.table(
            {
                "type": ["Start", "Cpu", "Cpu", "Cpu"], "id": [1, 2, 3, 4], "lower": [1, 5, 9, 14],
                "upper": [3, 5, 9, 14], "host": ["n1"] * 4, "used": [0, 95, 99, 96],
            }
        )
    }  # fmt: skip
    exec(example, names)
    assert names["alerts"].select(["m", "suppressed"]).to_pylist() == [{"m": 2, "suppressed": 0}]
    exec(streamed, {**names, "schema": names["events"].schema, "batches": names["events"].to_batches()})
    assert capsys.readouterr().out.count('rule: ["overloaded"]') == 1
    result = CliRunner().invoke(main, ["rules", "test", "rules"])
    assert result.exit_code == 0, result.output


def test_the_examples_of_schemas_read_such_files(tmp_path: Path) -> None:
    (of_days,), (of_text, *_) = (blocks("toml", DOCS[page]) for page in ("stamps.md", "text-logs.md"))
    (tmp_path / "t.csv").write_text("activity,at\nStart,31.05.2024\nEnd,31.05.2024 10:30\n")
    (tmp_path / "t.log").write_text("2015-10-17 15:37:56,547 INFO a\n2015-10-17 15:37:57,1 b\n")
    lengths = []
    for name, schema in (("t.csv", of_days), ("t.log", of_text)):
        (tmp_path / "schema.toml").write_text(schema)
        table = uc.read_traces(tmp_path / name, tmp_path / "schema.toml")
        lower, upper = (table.column(bound).cast(pa.int64()) for bound in ("lower", "upper"))
        lengths.append([end.as_py() - begin.as_py() for begin, end in zip(lower, upper, strict=True)])
    assert lengths == [[1439 * 60, 0], [999, 99_999]]


def test_the_query_can_be_read() -> None:
    (query,) = (block for block in blocks("sase", DOCS["language.md"]) if block.startswith("-- "))
    assert parse(query).limit == 20


def test_the_schema_is_that_of_the_main_job() -> None:
    schema, *_ = blocks("toml", DOCS["traces.md"])
    assert tomllib.loads(schema) == tomllib.loads((ROOT / "datasets" / "cluster" / "schema.toml").read_text())


def test_commands_and_options_exist() -> None:
    commands = {command.name for command in every_command(main)} | set(main.commands)
    text = "\n".join([README, *DOCS.values()])
    named = set(re.findall(r"^uncertain-cep ([a-z-]+)", text, re.MULTILINE))
    assert {"match", "explain", "validate"} <= named <= commands
    options = {
        option
        for command in every_command(main)
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    ours = re.sub(r"`python3 run\.py [^`\n]*`", "", text)
    assert set(re.findall(r"`[^`\n]*?(--[a-z][a-z-]+)", ours)) <= options


def test_the_examples_of_plans_run(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = blocks("python", DOCS["plans.md"])
    table = pa.table({"type": ["A", "B", "C"], "id": [1, 2, 3], "lower": [1, 4, 7], "upper": [3, 6, 9]})
    exec(example, {"uc": uc, "query": "PATTERN SEQ(A a, B b, C c) WITHIN 9", "events": table})
    assert "window" in capsys.readouterr().out


def test_the_example_of_clocks_finds_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    pages = "\n".join(DOCS[page] for page in ("clocks.md", "known-order.md", "clock-bounds.md"))
    for example in blocks("python", pages):
        exec(example, {})
        assert capsys.readouterr().out.splitlines() == re.findall(r"^# (.*)$", example, re.MULTILINE)
    (schema,) = (block for block in blocks("toml", pages) if "[[constraints]]" in block)
    (constraint,) = tomllib.loads(schema)["constraints"]
    assert str(uc.causal(constraint["causal"])) == constraint["causal"]


def ten_patterns() -> tuple[pa.Table, list[str], dict[str, list[int]]]:
    """Return the trace, the queries, and how many matches the page on other systems says that each has."""
    page = DOCS["comparison.md"].partition("\n## Ten patterns")[2].partition("\n## ")[0]
    patterns = re.findall(r"^\| \d+ \| `([^`]*)`", page, re.MULTILINE)
    queries = [f"PATTERN {text}" if "WITHIN" in text else f"PATTERN {text} WITHIN 20" for text in patterns]
    counts = re.findall(r"^\| ([a-z][^|]*) \| ([\d |]+) \|$", page, re.MULTILINE)
    names: dict[str, Any] = {}
    (events,) = (block for block in blocks("python", DOCS["language.md"]) if ">>> events = " in block)
    exec(events.split(">>> def show")[0].replace(">>> ", "").replace("... ", ""), names)
    said = {name: [int(count) for count in cells.split(" | ")] for name, cells in counts}
    return names["events"], queries, said


def test_the_ten_patterns_find_what_the_page_says() -> None:
    events, queries, said = ten_patterns()
    assert len(queries) == 10
    certain = events.set_column(events.column_names.index("upper"), "upper", events["lower"])
    rows = {"uncertain-cep and a range join": events, "uncertain-cep and Flink CEP, exact times": certain}
    for row, table in rows.items():
        assert [uc.match(table, query).num_rows for query in queries] == said[row]


def test_the_joins_of_the_ten_patterns_find_the_same() -> None:
    events, queries, said = ten_patterns()
    connection = duckdb.connect()
    connection.register("events", events)
    further_columns = {"host", "range_lower", "range_upper", "confidence"}
    joins = (Path(__file__).parent / "ten_joins.sql").read_text(encoding="utf-8").split(";\n")[:10]
    counts = []
    for query, join in zip(queries, joins, strict=True):
        rows = uc.match(events, query).to_pylist()
        ids = [tuple(value for name, value in row.items() if name not in further_columns) for row in rows]
        # The two branches of an alternative have a column each.
        if "OR(" in query:
            ids = [(s, c if n is None else n) for s, c, n in ids]
        assert sorted(connection.sql(join).fetchall(), key=str) == sorted(ids, key=str)
        counts.append(len(ids))
    assert counts == said["uncertain-cep and a range join"]


def test_the_shells_that_the_page_names_can_complete() -> None:
    for shell in re.findall(r"=(\w+)_source", DOCS["command-line.md"]):
        environment = {"_UNCERTAIN_CEP_COMPLETE": f"{shell}_source"}
        shown = CliRunner().invoke(main, [], prog_name="uncertain-cep", env=environment)
        # To find out the version of bash, click runs it.
        assert shown.exit_code == 0
        assert "_UNCERTAIN_CEP_COMPLETE" in shown.output


def test_the_readme_is_short_and_names_every_page() -> None:
    assert len(README.splitlines()) <= 150
    assert set(re.findall(r"\]\(docs/([^)#]+\.md)\)", README)) == set(DOCS)


@pytest.mark.thorough
def test_pictures_of_reports_are_of_the_page_as_it_is() -> None:
    again = "take them again: python3 run.py pictures"
    assert TAKING["MADE_OF"].read_text().strip() == TAKING["digest"](), again
    there = {file.name for file in TAKING["FOLDER"].glob("*.png")}
    assert there == {f"report-{name}.png" for name in TAKING["PICTURES"]}
    shown = {
        *re.findall(r"pictures/(report-[a-z]+\.png)", (ROOT / "docs" / "reports.md").read_text() + README)
    }
    assert shown == there


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    file = ROOT / document
    made = {f"drawings/{name}.svg" for name in DRAWINGS}
    for target, _, heading in re.findall(r"\]\(([^)#]*)(#([^)]*))?\)", file.read_text(encoding="utf-8")):
        if target in made or target.startswith("https://"):
            continue
        place = file.parent / target if target else file
        assert place.exists(), target
        assert not heading or heading in headings(place), (target, heading)


def headings(page: Path) -> set[str]:
    """Return the headings of a page as links name them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}
